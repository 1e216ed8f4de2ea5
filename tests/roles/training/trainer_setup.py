"""Trainers of one policy with a fake algorithm, over in-process links that a test moves by hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Algorithm, Batch, Update
from srlhpc.comm.channel import Link, Stream
from srlhpc.comm.inproc import InProcessTransport
from srlhpc.comm.parameters import ParameterSource
from srlhpc.comm.protocol import CHUNK, HEADER_ONLY, Command, GrantHeader, Report
from srlhpc.data.blocks import BlockHeader, PolicyShapes, block_layout
from srlhpc.environment import ArraySpec
from srlhpc.roles.checkpoint_parts import PartReceiver, PartSender
from srlhpc.roles.training.batch_source import AgreeingReducer
from srlhpc.roles.training.batches import Batches
from srlhpc.roles.training.block_queue import BlockQueue
from srlhpc.roles.training.checkpoint_part import Counters, part_tensors
from srlhpc.roles.training.copy_stream import CopyStream, PartCopy
from srlhpc.roles.training.grants import LagLimiter
from srlhpc.roles.training.staging import Staging
from srlhpc.roles.training.trainer import Trainer, TrainerSettings
from tests.roles.counting_policy import KIND, CountingPolicy

T, E, A, BLOCKS = 3, 2, 1, 2
SHAPES = PolicyShapes(KIND, {"h": ArraySpec((2,), "float32")}, {"value": ArraySpec((), "float32")})
LAYOUT = block_layout(SHAPES, T, E, A)
ACTORS = (0, 1)


class FakeAlgorithm(Algorithm):
    """Adds 1 to the policy's weight; an update takes `minibatches` polls."""

    def __init__(self, policy: CountingPolicy, minibatches: int = 8) -> None:
        self.batches: list[Batch] = []
        self.publishes: Callable[[int], bool] = lambda update: True
        self.feedback: Callable[[Batch], Tensor | None] = lambda batch: None
        self._policy, self._minibatches = policy, minibatches

    def update(self, batch: Batch) -> Generator[None, None, Update]:
        self.batches.append(_copy(batch))
        for _ in range(self._minibatches):
            yield
            assert torch.equal(batch.rewards, self.batches[-1].rewards), "the batch changed while it was trained"
        with torch.no_grad():
            self._policy.weight += 1
        return Update({"loss": 0.5}, self.feedback(batch), self.publishes(len(self.batches)))

    def state(self) -> Mapping[str, Tensor]:
        return {"momentum": torch.full((2,), float(len(self.batches)))}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        raise NotImplementedError


def _copy(batch: Batch) -> Batch:
    return replace(batch, fields={name: tensor.clone() for name, tensor in batch.fields.items()})


class OneTrainer:
    """Agrees with itself."""

    trainers = 1

    def sum(self, tensor: Tensor) -> Generator[None]:
        yield from ()

    def agree(self, flags: Sequence[float]) -> Generator[None, None, list[float]]:
        yield from ()
        return list(flags)


class LockStep:
    """The reducer of several trainers in one process: `agree` returns when all have come to the same call."""

    def __init__(self, trainers: int) -> None:
        self.trainers = trainers
        self.rounds: list[list[list[float]]] = [[]]

    def sum(self, tensor: Tensor) -> Generator[None]:
        yield

    def agree(self, flags: Sequence[float]) -> Generator[None, None, list[float]]:
        mine = self.rounds[-1]
        mine.append(list(flags))
        if len(mine) == self.trainers:
            self.rounds.append([])
        while len(mine) < self.trainers:
            yield
        return [sum(values) for values in zip(*mine, strict=True)]


class Prioritised(BlockQueue):
    """Keeps the feedback of every update, as a source would that draws by it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.feedback: list[Tensor | None] = []

    def end(self, feedback: Tensor | None) -> None:
        super().end(None)
        self.feedback.append(feedback)


class Training:
    """A trainer that two actors (addresses 0 and 1) feed."""

    def __init__(
        self,
        *,
        address: int = 100,
        reducer: AgreeingReducer | None = None,
        first: bool = True,
        strict: bool = False,
        pool: int = 2,
        uses: int = 1,
        queue: int | None = None,
        max_policy_lag: int | None = None,
        stream: CopyStream | None = None,
        prefetch: bool = True,
        prioritised: bool = False,
        clock: Callable[[], float] = time.perf_counter,
        **settings: Any,
    ) -> None:
        transport = InProcessTransport()
        blocks = [Link(Stream.BLOCKS, actor, address) for actor in ACTORS]
        self.outboxes = [transport.outbox(link, LAYOUT, slots=4) for link in blocks]
        self.policy = CountingPolicy()
        self.algorithm = FakeAlgorithm(self.policy)
        self.source = ParameterSource(1) if first else None
        part = Link(Stream.PARTS, address, 0)
        self.part_receiver = PartReceiver(transport.inbox([part], CHUNK, pool=2)) if first else None
        room = [Staging(LAYOUT, BLOCKS, torch.device("cpu"), stream) for _ in range(1 + (queue or 1))]
        batches = Batches(room, uses=uses, max_policy_lag=max_policy_lag, queue=queue)
        chosen: dict[str, Any] = {
            "policy": "default", "stop_steps": None, "stop_updates": None, "checkpoint_updates": None, "pauses": False,
            "is_version": lambda _updates: False,
        } | settings  # fmt: skip
        asks = [Link(Stream.GRANT_REQUESTS, actor, address) for actor in ACTORS]
        answers = [Link(Stream.GRANTS, address, actor) for actor in ACTORS]
        self.asking = [transport.outbox(link, HEADER_ONLY, slots=1) for link in asks]
        self.answers = [transport.inbox([link], HEADER_ONLY) for link in answers]
        lag_limiter = LagLimiter(
            transport.inbox(asks, HEADER_ONLY),
            {place: transport.outbox(link, HEADER_ONLY, slots=2) for place, link in enumerate(answers)},
            fragments=E * A, batch=BLOCKS * E * A, uses=uses, max_policy_lag=uses - 1,
        )  # fmt: skip
        reducer, counters = reducer or OneTrainer(), Counters()
        self._blocks = (Prioritised if prioritised else BlockQueue)(
            transport.inbox(blocks, LAYOUT, pool=pool), batches, lag_limiter if strict else None, counters,
            trainers=reducer.trainers, feeders=ACTORS, burn_in=0, prefetch=prefetch,
        )  # fmt: skip
        self.trainer = Trainer(
            f"trainer-default-{0 if first else 1}",
            TrainerSettings(**chosen),
            self.policy,
            self.algorithm,
            reducer,
            self._blocks,
            publisher=self.source,
            parts=PartSender(transport.outbox(part, CHUNK, slots=2)) if first else None,
            counters=counters,
            part_copy=PartCopy(part_tensors(self.policy, self.algorithm), stream) if stream is not None else None,
            clock=clock,
        )
        self.sent: list[dict[str, Any]] = []
        self._random = np.random.default_rng(1)

    def send(self, actor: int = 0, *, version: int = 0, valid: bool = True) -> None:
        """A block of random numbers, all of whose records are valid, or none."""
        message = self.outboxes[actor].acquire()
        assert message is not None
        for name, array in message.fields.items():
            array[...] = self._random.integers(0, 2, array.shape)
            if name == "valid":
                array[...] = valid
        message.fields["versions"][...] = version
        message.header[BlockHeader.OLDEST_VERSION] = version
        message.header[BlockHeader.VALID] = T * E * A * valid
        message.header[BlockHeader.STEPS] = T * E * valid
        self.sent.append({name: array.copy() for name, array in message.fields.items()})
        self.outboxes[actor].send(message)

    def poll(self, times: int = 30) -> None:
        for _ in range(times):
            self.trainer.poll()

    def part(self) -> tuple[int, dict[str, Any]] | None:
        assert self.part_receiver is not None
        return self.part_receiver.poll()

    @property
    def feedback(self) -> list[Tensor | None]:
        """What a prioritised source was told of every update."""
        assert isinstance(self._blocks, Prioritised)
        return self._blocks.feedback

    def say_last(self) -> None:
        for outbox in self.outboxes:
            outbox.send_last()

    def ask(self, actor: int) -> None:
        message = self.asking[actor].acquire()
        assert message is not None
        message.header[GrantHeader.BLOCKS] = 1
        self.asking[actor].send(message)

    def granted(self, actor: int) -> int | None:
        """The version that the actor's grant needs."""
        inbox = self.answers[actor]
        inbox.poll()
        grant = inbox.take()
        if grant is None:
            return None
        inbox.release(grant)
        return int(grant.header[GrantHeader.NEEDS_VERSION])

    def report(self) -> Report:
        report = Report(1, "here", 1)
        self.trainer.fill(report)
        return report

    def obey(self, **command: Any) -> None:
        self.trainer.obey(Command(**command))
