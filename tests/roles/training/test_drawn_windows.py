"""A trainer's batches from replay ranks, which a test plays."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from srlhpc.comm.channel import Link, Message, Stream
from srlhpc.comm.inproc import InProcessTransport
from srlhpc.data.blocks import PolicyShapes
from srlhpc.data.windows import (
    GENERATION,
    PRIORITY,
    PROBABILITY,
    SLOT,
    DrawHeader,
    WindowHeader,
    WindowShape,
    draws_layout,
    window_layout,
)
from srlhpc.errors import UserError
from srlhpc.roles.training.checkpoint_part import Counters
from srlhpc.roles.training.drawn_windows import DrawnWindows, Shard
from srlhpc.roles.training.staging import Staging
from srlhpc.specs.replay import Draw, PrioritizedDraw, UniformDraw
from srlhpc.specs.schedule import LinearSchedule
from tests.roles.counting_policy import KIND
from tests.roles.streams import LateCopyStream

COLUMNS = 2
SHAPE = WindowShape(fragment_steps=2, burn_in_steps=1, after=1)
WINDOWS, DRAWS = window_layout(PolicyShapes(KIND, {}, {}), SHAPE.records, COLUMNS), draws_layout(COLUMNS)
TRAINER = 50
PRIORITIZED = PrioritizedDraw(beta=1.0)


class Drawing:
    """A trainer's source and its shards, each of which sends windows of slots `10 x shard + column`."""

    def __init__(
        self,
        shards: int = 2,
        *,
        draw: Draw = PRIORITIZED,
        place: int = 0,
        trainers: int = 1,
        ahead: int = 1,
        stream: LateCopyStream | None = None,
    ) -> None:
        self.transport = InProcessTransport()
        self.counters = Counters()
        windows = [Link(Stream.WINDOWS, shard, TRAINER) for shard in range(shards)]
        draws = [Link(Stream.DRAWS, TRAINER, shard) for shard in range(shards)]
        self.windows = [self.transport.outbox(link, WINDOWS, slots=2) for link in windows]
        self.draws = [self.transport.inbox([link], DRAWS) for link in draws]
        ends = [
            Shard(self.transport.inbox([one], WINDOWS), self.transport.outbox(other, DRAWS, slots=2))
            for one, other in zip(windows, draws, strict=True)
        ]
        self.source = DrawnWindows(
            ends,
            [Staging(WINDOWS, shards, torch.device("cpu"), stream) for _ in range(2)],
            SHAPE,
            draw,
            self.counters,
            place=place,
            trainers=trainers,
            ahead=ahead,
            device=torch.device("cpu"),
        )

    def serve(self, times: int = 3) -> None:
        for _ in range(times):
            self.source.serve(updating=False, starts=True)

    def send(self, shard: int, probability: float = 0.5, *, reward: float = 0.0, steps: int = 0) -> None:
        message = self.windows[shard].acquire()
        assert message is not None
        for array in message.fields.values():
            array[...] = 0
        fields = message.fields
        fields["rewards"][...], fields["valid"][...] = reward, True
        fields[SLOT][:], fields[GENERATION][:] = 10 * shard + np.arange(COLUMNS), 3
        fields[PROBABILITY][:] = probability
        message.header[WindowHeader.INSERTED_STEPS] = message.header[WindowHeader.INSERTED_VALID] = steps
        self.windows[shard].send(message)
        self.serve()

    def wishes(self, shard: int) -> list[Message]:
        """What the shard is told; the messages are released, and what they held is copied."""
        found = []
        self.serve()
        self.draws[shard].poll()
        while (message := self.draws[shard].take()) is not None:
            copy = Message.allocate(DRAWS, 0)
            copy.buffer[:] = message.buffer
            found.append(copy)
            self.draws[shard].release(message)
            self.draws[shard].poll()
        return found

    def choose(self, *others: float) -> None:
        """Agrees with trainers whose least probabilities are `others`."""

        def agree(*flags: float) -> Generator[None, None, list[float]]:
            yield
            known = iter(others)
            return [flag or next(known) for flag in flags]

        for _ in self.source.choose(agree):
            pass

    def update(self, feedback: Tensor | None = None) -> Any:
        self.choose()
        batch = self.source.begin()
        self.source.end(torch.zeros(COLUMNS * len(self.windows)) if feedback is None else feedback)
        self.counters.updates += 1
        return batch


@pytest.mark.parametrize("ahead", [1, 2])
def test_every_shard_is_told_once_how_many_windows_there_is_room_for(ahead: int) -> None:
    drawing = Drawing(ahead=ahead)
    for shard in range(2):
        (wish,) = drawing.wishes(shard)
        assert (wish.header[DrawHeader.CREDIT], wish.header[DrawHeader.HAS_FEEDBACK]) == (ahead, 0)
        assert drawing.wishes(shard) == []


def test_batch_holds_the_windows_of_all_shards_in_their_order() -> None:
    drawing = Drawing()
    drawing.send(1, reward=2.0)
    assert not drawing.source.is_ready
    assert drawing.source.waits_for() == "waits for windows of 1 of 2 replay ranks"
    drawing.send(0, reward=1.0)
    assert drawing.source.is_ready
    batch = drawing.update()
    assert batch.rewards.shape == (SHAPE.records, 4)
    assert batch.rewards[0].tolist() == [1.0, 1.0, 2.0, 2.0]
    assert (batch.burn_in_steps, batch.after) == (1, 1)
    assert (len(batch.cut), len(batch.first)) == (SHAPE.records, SHAPE.records + 1)
    assert not drawing.source.is_ready


def test_windows_that_are_ahead_wait_while_a_batch_is_gathered() -> None:
    drawing = Drawing(1, ahead=2)
    drawing.send(0, reward=1.0)
    drawing.send(0, reward=2.0)
    first = drawing.update()
    assert first.rewards[0, 0] == 1.0
    drawing.serve()
    assert first.rewards[0, 0] == 1.0
    assert drawing.update().rewards[0, 0] == 2.0


def test_weights_divide_by_the_greatest_of_all_trainers() -> None:
    drawing = Drawing(trainers=3, place=1)
    drawing.send(0, 0.5)
    drawing.send(1, 0.25)
    drawing.choose(0.125, 0.75)
    batch = drawing.source.begin()
    assert batch.weights is not None
    assert batch.weights.dtype == torch.float32
    assert batch.weights.tolist() == [0.25, 0.25, 0.5, 0.5]


def test_weights_are_those_of_the_worked_example() -> None:
    drawing = Drawing(2, draw=PrioritizedDraw(alpha=0.6, beta=0.4))
    for shard, both in enumerate(((0.182720, 0.276951), (0.419779, 0.120550))):
        message = drawing.windows[shard].acquire()
        assert message is not None
        message.fields[PROBABILITY][:] = both
        drawing.windows[shard].send(message)
    drawing.serve()
    drawing.choose()
    weights = drawing.source.begin().weights
    assert weights is not None
    assert weights.tolist() == pytest.approx([0.846745, 0.716978, 0.607097, 1.0], abs=2e-6)


def test_weights_follow_the_schedule_of_their_exponent() -> None:
    drawing = Drawing(draw=PrioritizedDraw(beta=LinearSchedule(start=0.0, end=1.0, steps=100)))
    for steps, expected in ((0, 1.0), (50, 0.5), (100, 0.25)):
        drawing.counters.steps = steps
        drawing.wishes(0), drawing.wishes(1)
        drawing.send(0, 0.8)
        drawing.send(1, 0.2)
        weights = drawing.update().weights
        assert weights[0].item() == pytest.approx(expected)
        assert weights[2].item() == 1.0


def test_uniform_draws_need_no_weights_and_no_priorities() -> None:
    drawing = Drawing(draw=UniformDraw())
    drawing.wishes(0)
    drawing.send(0)
    drawing.send(1)
    assert drawing.update().weights is None
    (wish,) = drawing.wishes(0)
    assert (wish.header[DrawHeader.CREDIT], wish.header[DrawHeader.HAS_FEEDBACK]) == (1, 0)


def test_priorities_go_back_to_the_shard_that_drew_with_room_for_the_next() -> None:
    drawing = Drawing()
    drawing.wishes(0), drawing.wishes(1)
    drawing.send(0)
    drawing.send(1)
    drawing.update(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    for shard, priorities in enumerate(([1.0, 2.0], [3.0, 4.0])):
        (wish,) = drawing.wishes(shard)
        assert (wish.header[DrawHeader.CREDIT], wish.header[DrawHeader.HAS_FEEDBACK]) == (1, 1)
        assert wish.fields[SLOT].tolist() == [10 * shard, 10 * shard + 1]
        assert wish.fields[GENERATION].tolist() == [3, 3]
        assert wish.fields[PRIORITY].tolist() == priorities


def test_missing_priorities_are_an_error_of_the_rule() -> None:
    drawing = Drawing()
    drawing.send(0)
    drawing.send(1)
    drawing.choose()
    drawing.source.begin()
    with pytest.raises(UserError, match="returned no feedback, but replay draws by priorities"):
        drawing.source.end(None)


def test_steps_are_what_came_in_since_the_last_update_and_drawn_records_count_apart() -> None:
    drawing = Drawing()
    drawing.send(0, steps=100)
    drawing.send(1, steps=200)
    found = drawing.source.next_batch()
    assert (found.new_steps, found.new_valid) == (300.0, 300.0)
    assert (found.full, found.stale) == (1.0, 0.0)
    assert found.steps == found.valid == 2 * COLUMNS * SHAPE.fragment_steps
    drawing.update()
    drawing.send(0, steps=110)
    drawing.send(1, steps=200)
    assert drawing.source.next_batch().new_steps == 10.0


def test_age_is_that_of_the_oldest_trained_record_of_each_window() -> None:
    drawing = Drawing(1)
    message = drawing.windows[0].acquire()
    assert message is not None
    message.fields["valid"][...] = True
    message.fields["versions"][...] = np.array([[0, 0], [5, 9], [7, 8], [0, 0]])
    message.fields[PROBABILITY][:] = 0.5
    drawing.windows[0].send(message)
    drawing.serve()
    drawing.counters.updates = 10
    drawing.choose()
    drawing.source.begin()
    lag = drawing.source.lag()
    assert (lag.min, lag.mean, lag.max) == (2, 3.5, 5)


def test_batch_goes_to_the_device_as_soon_as_it_is_whole() -> None:
    stream = LateCopyStream()
    drawing = Drawing(stream=stream)
    drawing.send(0, reward=3.0)
    assert len(stream.copied) == 0
    drawing.send(1, reward=3.0)
    assert len(stream.copied) == 1
    assert drawing.update().rewards[0].tolist() == [3.0] * 4


def test_end_drops_windows_and_is_finished_when_every_shard_said_last() -> None:
    drawing = Drawing()
    drawing.send(0)
    drawing.source.discard()
    drawing.send(0)
    drawing.serve()
    for shard in range(2):
        drawing.wishes(shard)
        assert drawing.draws[shard].is_finished
        assert not drawing.source.is_finished
        assert drawing.windows[shard].send_last()
        drawing.serve()
    assert drawing.source.is_finished


def test_state_holds_what_is_gathered_counted_and_to_be_told() -> None:
    drawing, other = Drawing(), Drawing()
    drawing.send(0, steps=5)
    drawing.send(1, steps=5)
    drawing.update(torch.arange(4.0))
    drawing.source.load_state(drawing.source.save_state())
    state, links = drawing.source.save_state(), drawing.transport.save_state()
    other.transport.load_state(links)
    other.source.load_state(state)
    for each in (drawing, other):
        each.send(0, reward=7.0, steps=9)
        each.send(1, reward=8.0, steps=9)
        assert each.source.next_batch().new_steps == 8.0
        assert [wish.fields[PRIORITY].tolist() for wish in each.wishes(0) if wish.header[DrawHeader.HAS_FEEDBACK]] == [
            [0.0, 1.0]
        ]
        assert each.update().rewards[0].tolist() == [7.0, 7.0, 8.0, 8.0]


def test_gathered_windows_are_part_of_the_state() -> None:
    drawing, other = Drawing(), Drawing()
    drawing.send(1, reward=8.0)
    other.source.load_state(drawing.source.save_state())
    other.send(0, reward=7.0)
    assert other.update().rewards[0].tolist() == [7.0, 7.0, 8.0, 8.0]
