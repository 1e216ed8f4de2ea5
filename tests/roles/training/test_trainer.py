"""What a trainer learns from, when it publishes, hands over, grants and ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from srlhpc.errors import ClusterError, UserError
from srlhpc.roles.training.checkpoint_part import load_part
from srlhpc.roles.training.update_events import MOST_EVENTS
from tests.roles.counting_policy import CountingPolicy
from tests.roles.training.trainer_setup import BLOCKS, LAYOUT, A, E, FakeAlgorithm, LockStep, T, Training

STEPS = BLOCKS * T * E


def full(training: Training, version: int = 0) -> None:
    """Sends one batch."""
    for block in range(BLOCKS):
        training.send(block % 2, version=version)


def test_batch_is_its_blocks_side_by_side_field_by_field() -> None:
    training = Training()
    full(training)
    training.poll()
    (batch,) = training.algorithm.batches
    first, second = training.sent
    gathered = {
        "obs.obs": batch.observations["obs"],
        "out.value": batch.outputs["value"],
        "state.h": batch.state["h"],
        "final_state.h": batch.final_state["h"],
    } | {
        name: getattr(batch, name)
        for name in ("actions", "log_probs", "rewards", "terminated", "truncated", "first", "valid")
    }
    assert set(gathered) | {"versions", "alive"} == {field.name for field in LAYOUT.fields}
    for name, tensor in gathered.items():
        time_axes = 0 if name.endswith("state.h") else 1
        columns = [np.concatenate([b[name].reshape(*b[name].shape[:time_axes], E * A, *b[name].shape[time_axes + 2 :])
                                   for b in (first, second)], axis=time_axes)]  # fmt: skip
        np.testing.assert_array_equal(tensor.numpy(), columns[0], err_msg=name)


def test_versions_of_a_block_are_those_of_all_its_columns() -> None:
    training = Training()
    training.send(version=0)
    training.send(version=0)
    training.poll()
    training.send(version=0)
    training.send(version=1)
    training.poll()
    assert training.algorithm.batches[1].versions.tolist() == [[0, 0, 1, 1]] * T


def test_update_needs_a_whole_batch() -> None:
    training = Training()
    training.send()
    training.poll()
    assert training.algorithm.batches == []


def test_batch_says_the_version_and_the_steps_before_it() -> None:
    training = Training()
    full(training)
    training.poll()
    full(training, version=1)
    training.poll()
    assert [(batch.version, batch.steps) for batch in training.algorithm.batches] == [(0, 0), (1, STEPS)]


def test_new_parameters_are_published_after_every_update_and_at_the_start() -> None:
    training = Training()
    training.poll(1)
    assert training.source is not None
    assert training.source.version == 0
    full(training)
    training.poll()
    assert training.source.version == 1


def test_update_that_is_not_published_is_a_version_with_which_nobody_acts() -> None:
    training = Training(strict=True, max_policy_lag=3)
    training.algorithm.publishes = lambda update: update % 2 == 0
    seen = []
    for _ in range(4):
        full(training)
        training.poll()
        assert training.source is not None
        seen.append((training.trainer.version, training.source.version))
        training.ask(0)
        training.poll()
        seen[-1] += (training.granted(0),)
    assert seen == [(1, 0, 0), (2, 2, 2), (3, 2, 2), (4, 4, 4)]


def test_feedback_goes_to_the_source_of_the_batch() -> None:
    training = Training(prioritised=True)
    training.algorithm.feedback = lambda batch: batch.rewards.sum(0)
    full(training)
    training.poll()
    (batch,), (feedback,) = training.algorithm.batches, training.feedback
    assert feedback is not None
    assert torch.equal(feedback, batch.rewards.sum(0))


def test_feedback_that_nobody_takes_is_an_error() -> None:
    training = Training()
    training.algorithm.feedback = lambda batch: batch.rewards.sum(0)
    full(training)
    with pytest.raises(UserError, match="feedback, but fresh batches are not drawn by it"):
        training.poll()


def test_blocks_of_the_next_batch_are_gathered_while_one_is_trained() -> None:
    training = Training(pool=1)
    full(training)
    training.poll(3)
    training.send()
    training.poll(1)
    assert training.trainer.version == 0
    assert training.outboxes[0].is_drained


def test_blocks_that_come_during_an_update_do_not_touch_its_batch() -> None:
    training = Training()
    full(training)
    training.poll(3)
    full(training)
    training.poll(60)
    # The fake algorithm looks at its batch at every minibatch.
    first, second = (batch.rewards for batch in training.algorithm.batches)
    assert first.tolist() != second.tolist()


def test_without_prefetch_blocks_wait_until_the_update_is_over() -> None:
    training = Training(prefetch=False, pool=1)
    full(training)
    training.poll(3)
    training.send()
    training.send()
    training.trainer.poll()
    assert training.trainer.version == 0
    assert not training.outboxes[0].is_drained
    training.poll()
    assert training.trainer.version == 2


def test_older_blocks_than_the_lag_limit_are_dropped_and_counted() -> None:
    training = Training(max_policy_lag=1)
    for version in (0, 0, 1, 1):
        training.send(version=version)
    training.poll(60)
    training.send(version=0)
    training.poll()
    assert training.trainer.counters()["dropped_fragments"] == E * A
    training.send(version=1)
    training.send(version=2)
    training.poll()
    assert training.algorithm.batches[2].versions.tolist() == [[1, 1, 2, 2]] * T


@pytest.mark.parametrize(
    "settings", [{"max_policy_lag": 0}, {"uses": 3, "max_policy_lag": 2}], ids=["used once", "used three times"]
)
def test_block_that_comes_during_an_update_counts_as_trained_after_all_uses_of_its_batch(
    settings: dict[str, int],
) -> None:
    training = Training(**settings)
    full(training)
    training.poll(3)
    training.send(version=0)
    training.poll(1)
    assert training.trainer.counters()["dropped_fragments"] == E * A


def test_event_of_an_update_tells_counts_lag_and_metrics() -> None:
    training = Training()
    full(training)
    training.poll()
    (event,) = training.report().updates
    assert event["updates"] == 1
    assert event["steps"] == STEPS
    assert event["agent_steps"] == BLOCKS * T * E * A
    assert event["lag"] == [0, 0.0, 0]
    assert event["metrics"] == {"loss": 0.5}
    assert training.report().updates == []


def test_event_is_news() -> None:
    training = Training()
    assert not training.trainer.has_news
    full(training)
    training.poll()
    assert training.trainer.has_news


# --- using a batch again -------------------------------------------------------------------------------------------


def test_batch_is_used_as_often_as_set_and_its_lag_grows() -> None:
    training = Training(uses=3)
    full(training)
    training.poll(60)
    assert training.trainer.version == 3
    first, *others = training.algorithm.batches
    assert all(torch.equal(batch.rewards, first.rewards) for batch in others)
    assert [(batch.version, batch.is_first_use) for batch in training.algorithm.batches] == [
        (0, True), (1, False), (2, False),
    ]  # fmt: skip
    assert [event["lag"] for event in training.report().updates] == [[0, 0.0, 0], [1, 1.0, 1], [2, 2.0, 2]]


def test_steps_are_counted_once_and_used_steps_at_every_use() -> None:
    training = Training(uses=3)
    full(training)
    training.poll(60)
    event = training.report().updates[-1]
    assert (event["steps"], event["agent_steps"], event["steps_used"]) == (STEPS, STEPS * A, 3 * STEPS)
    assert training.trainer.counters()["steps_trained"] == STEPS


def test_next_batch_is_gathered_between_the_uses_and_comes_after_the_last() -> None:
    training = Training(uses=2)
    full(training)
    training.poll(3)
    full(training)
    training.poll(60)
    one, two, three, four = (batch.rewards for batch in training.algorithm.batches)
    assert torch.equal(one, two)
    assert torch.equal(three, four)
    assert not torch.equal(two, three)


def test_batch_that_has_become_too_old_is_not_used_again() -> None:
    training = Training(uses=3, max_policy_lag=2)
    training.send(version=0)
    training.send(version=-1)
    training.poll(60)
    assert [batch.version for batch in training.algorithm.batches] == [0, 1]
    assert training.trainer.counters()["dropped_uses"] == 1
    full(training, version=2)
    training.poll(90)
    assert [batch.version for batch in training.algorithm.batches] == [0, 1, 2, 3, 4]


def test_grants_wait_until_a_batch_is_used_up() -> None:
    training = Training(strict=True, uses=2)
    for _ in range(BLOCKS):
        training.ask(0)
        training.trainer.poll()
        assert training.granted(0) == 0
        training.send(0)
    training.ask(1)
    while training.trainer.version < 2:
        assert training.granted(1) is None
        training.trainer.poll()
    training.poll(2)
    assert training.granted(1) == 2


def test_trainers_use_batches_again_together_and_drop_together() -> None:
    one, other, _ = two(uses=3, max_policy_lag=2)
    full(one)
    full(other, version=-1)
    together(one, other, 120)
    assert [len(training.algorithm.batches) for training in (one, other)] == [2, 2]
    full(one, version=2)
    full(other, version=2)
    together(one, other, 120)
    assert one.trainer.version == other.trainer.version == 5


def test_batch_with_uses_left_goes_on_in_a_trainer_that_took_its_state() -> None:
    training, restored = Training(uses=3, pauses=True), Training(uses=3)
    full(training)
    poll_until_it_pauses(training)
    assert training.trainer.version == 1
    restored.trainer.load_state(training.trainer.save_state())
    restored.poll(60)
    assert [batch.is_first_use for batch in restored.algorithm.batches] == [False, False]
    assert torch.equal(restored.algorithm.batches[0].rewards, training.algorithm.batches[0].rewards)


def played(training: Training) -> list[tuple[int, bool]]:
    """Which batch each update learnt from, counted in the order of first uses, and whether it was its first use."""
    seen: list[torch.Tensor] = []
    found = []
    for batch in training.algorithm.batches:
        if batch.is_first_use:
            seen.append(batch.rewards)
        place = next(i for i, rewards in enumerate(seen) if torch.equal(rewards, batch.rewards))
        found.append((place, batch.is_first_use))
    return found


def test_queue_begins_a_new_batch_at_once_and_then_takes_the_most_uses_left_the_newest_first() -> None:
    training = Training(uses=3, queue=4)
    full(training)
    training.poll(3)  # the update of the first batch is under way
    full(training)
    training.poll(90)
    assert played(training) == [(0, True), (1, True), (1, False), (0, False), (1, False), (0, False)]
    assert training.trainer.counters()["dropped_uses"] == 0


def test_queue_without_room_drops_the_uses_of_the_oldest() -> None:
    training = Training(uses=3, queue=1)
    full(training)
    training.poll(3)
    full(training)
    training.poll(60)
    assert played(training) == [(0, True), (1, True), (1, False), (1, False)]
    assert training.trainer.counters()["dropped_uses"] == 2


def test_queue_goes_on_with_old_batches_while_a_new_one_fills() -> None:
    training = Training(uses=4, queue=2)
    full(training)
    training.send()
    training.poll(12)
    training.send()
    training.poll(90)
    batches = [batch for batch, _ in played(training)]
    assert batches[:2] == [0, 0]
    assert sorted(batches) == [0] * 4 + [1] * 4


def test_queue_skips_a_new_batch_that_grew_too_old_while_it_filled() -> None:
    training = Training(uses=4, queue=2, max_policy_lag=3, strict=True)
    full(training)
    training.send(version=0)
    training.poll(60)
    assert training.trainer.version == 4
    training.send(version=4)
    training.poll(60)
    assert training.trainer.version == 4
    assert training.trainer.counters()["dropped_fragments"] == BLOCKS * E * A
    full(training, version=4)
    training.poll(60)
    assert training.trainer.version == 8


def test_block_that_comes_during_an_update_of_a_queue_counts_as_trained_after_it() -> None:
    training = Training(uses=3, queue=2, max_policy_lag=2)
    full(training, version=0)
    training.poll(3)
    training.send(version=-2)
    training.send(version=-1)
    training.poll(1)
    assert training.trainer.counters()["dropped_fragments"] == E * A


def test_trainers_with_queues_begin_a_new_batch_only_together() -> None:
    one, other, _ = two(uses=3, queue=2)
    full(one)
    full(other)
    together(one, other, 3)
    full(one)
    together(one, other, 20)
    full(other)
    together(one, other, 200)
    for training in (one, other):
        assert [first for _, first in played(training)].count(True) == 2
    assert played(one) == played(other)
    assert played(one)[1] == (0, False)


def test_queue_goes_on_in_a_trainer_that_took_its_state() -> None:
    training, restored = Training(uses=3, queue=2, stop_updates=2), Training(uses=3, queue=2)
    full(training)
    training.poll(3)
    full(training)
    training.poll(60)
    restored.trainer.load_state(training.trainer.save_state())
    restored.poll(90)
    old, new = (batch.rewards for batch in training.algorithm.batches)
    assert [batch.is_first_use for batch in restored.algorithm.batches] == [False] * 4
    assert [torch.equal(batch.rewards, new) for batch in restored.algorithm.batches] == [True, False, True, False]
    assert torch.equal(restored.algorithm.batches[1].rewards, old)


# --- grants --------------------------------------------------------------------------------------------------------


def test_grants_stop_at_a_batch_until_it_is_trained() -> None:
    training = Training(strict=True)
    for _ in range(BLOCKS):
        training.ask(0)
        training.trainer.poll()
        assert training.granted(0) == 0
        training.send(0)
    training.ask(1)
    training.poll(3)
    assert training.trainer.version == 0
    assert training.granted(1) is None
    training.poll()
    assert training.granted(1) == 1


def poll_until_it_pauses(training: Training) -> None:
    for _ in range(60):
        training.trainer.poll()
        if training.trainer.is_pausing:
            return
    raise AssertionError("no batch was used")


def test_frozen_trainer_takes_nothing_and_grants_nothing_until_it_goes_on() -> None:
    training = Training(strict=True, pauses=True)
    full(training)
    poll_until_it_pauses(training)
    training.trainer.freeze()
    full(training, version=1)
    training.ask(0)
    training.poll()
    assert training.granted(0) is None
    training.trainer.go_on()
    training.poll(1)
    assert training.granted(0) == 1
    assert training.trainer.version == 1
    training.poll()
    assert training.trainer.version == 2


def test_serial_trainer_pauses_after_a_batch_that_is_skipped() -> None:
    # Otherwise nobody would hear of a stop where no agent is ever in the game.
    training = Training(pauses=True)
    for actor in range(BLOCKS):
        training.send(actor, valid=False)
    poll_until_it_pauses(training)
    assert training.trainer.version == 0


def test_frozen_trainer_ends_the_update_that_is_under_way_begins_no_other_and_hands_over_its_part() -> None:
    training = Training(pauses=True, uses=2)
    full(training)
    while not training.trainer.is_updating:
        training.poll(1)
    training.trainer.freeze()
    training.poll()
    assert (training.trainer.version, training.trainer.is_updating) == (1, False)
    training.obey(checkpoint=1)
    training.poll()
    part = training.part()
    assert part is not None
    assert (part[0], part[1]["counters"]["updates"]) == (1, 1)
    training.trainer.go_on()
    training.poll()
    assert training.trainer.version == 2


def test_batch_that_is_gathered_goes_on_in_a_trainer_that_took_its_state() -> None:
    training, restored = Training(), Training()
    training.send(0)
    training.poll()
    restored.trainer.load_state(training.trainer.save_state())
    restored.send(1)
    restored.poll()
    assert restored.trainer.version == 1
    rewards = torch.from_numpy(np.concatenate([training.sent[0]["rewards"], restored.sent[0]["rewards"]], axis=1))
    assert torch.equal(restored.algorithm.batches[0].rewards.flatten(), rewards.flatten(1).flatten())


def test_stopping_trainer_grants_nothing() -> None:
    training = Training(strict=True)
    training.obey(stop=True)
    training.ask(0)
    training.poll()
    assert training.granted(0) is None


def test_dropped_block_lets_another_start() -> None:
    training = Training(strict=True, max_policy_lag=0)
    full(training)
    training.poll()
    for _ in range(BLOCKS):
        training.ask(0)
        training.poll()
        assert training.granted(0) == 1
        training.send(0, version=0)
        training.poll()
    training.ask(0)
    training.poll()
    assert training.granted(0) == 1


# --- limits, checkpoints, the end ----------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [{"stop_updates": 1}, {"stop_steps": STEPS}])
def test_trainer_at_its_limit_waits_for_the_coordinator(limit: dict[str, int]) -> None:
    training = Training(**limit)
    full(training)
    training.poll()
    full(training, version=1)
    training.poll(60)
    assert training.trainer.version == 1
    assert training.trainer.has_news


def test_checkpoint_is_due_after_the_first_update_and_every_so_many() -> None:
    training = Training(checkpoint_updates=2)
    due = []
    for number in range(1, 5):
        full(training, version=number - 1)
        training.poll()
        due.append(training.report().updates[0]["checkpoint_due"])
        training.obey(checkpoint=number)
        training.poll()
        training.part()
    assert due == [True, True, False, True]


def test_part_is_handed_over_between_updates_only() -> None:
    training = Training()
    full(training)
    training.poll(3)
    training.obey(checkpoint=1)
    training.poll(1)
    assert training.trainer.version == 0
    assert training.part() is None
    training.poll()
    number, part = training.part() or (0, {})
    assert number == 1
    assert part["counters"]["updates"] == part["counters"]["version"] == 1
    assert part["parameters"]["weight"].tolist() == [1.0]
    assert part["optimizer"]["momentum"].tolist() == [1.0, 1.0]


def test_part_is_sent_once_for_each_checkpoint_asked_for() -> None:
    training = Training()
    numbers = []
    for asked in (1, 1, 2):
        training.obey(checkpoint=asked)
        training.poll()
        numbers.append((training.part() or (None,))[0])
        training.poll()
    assert numbers == [1, None, 2]


def test_stop_while_waiting_ends_after_every_actor_said_last() -> None:
    training = Training()
    training.send()
    training.obey(stop=True)
    training.poll()
    assert not training.trainer.is_done
    training.say_last()
    training.poll()
    assert training.trainer.is_done
    assert training.algorithm.batches == []


def test_stop_while_updating_finishes_the_update_and_hands_over_its_outcome() -> None:
    training = Training()
    full(training)
    training.poll(3)
    training.obey(stop=True, checkpoint=1)
    training.poll()
    assert training.trainer.version == 1
    assert (training.part() or (0, {}))[1]["counters"]["updates"] == 1


def test_time_that_checkpoints_take_is_counted_apart_from_computing() -> None:
    training = Training()
    training.obey(checkpoint=1)
    training.poll()
    counters = training.trainer.counters()
    assert counters["checkpoints"] == 1
    assert counters["checkpoint_seconds"] > 0
    assert counters["computing_seconds"] == 0


def test_stopped_trainer_discards_what_still_comes() -> None:
    training = Training()
    training.obey(stop=True)
    training.poll()
    for _ in range(3):
        full(training)
        training.poll()
    assert all(outbox.is_drained for outbox in training.outboxes)
    assert training.algorithm.batches == []


def test_stopped_trainer_does_not_wait_for_a_dead_actor() -> None:
    training = Training()
    training.obey(stop=True)
    training.poll()
    training.outboxes[0].send_last()
    training.trainer.forget([1])
    training.poll()
    assert training.trainer.is_done


def test_trainer_that_no_actor_feeds_any_more_says_so() -> None:
    training = Training()
    training.trainer.forget([0])
    training.obey(dead=[1])
    training.trainer.forget([1])
    with pytest.raises(ClusterError, match="every actor that feeds trainer-default-0 is dead"):
        training.obey(dead=[1, 2])


def test_stopping_trainer_needs_no_actors() -> None:
    training = Training()
    training.trainer.forget([0, 1])
    training.obey(stop=True, dead=[1, 2])
    training.poll()
    assert training.trainer.is_done


def handed_over(training: Training) -> dict[str, Any]:
    training.obey(checkpoint=1)
    training.poll()
    _, part = training.part() or (0, {})
    return part


def test_part_that_was_put_back_gives_the_same_part_again() -> None:
    training = Training()
    full(training)
    training.poll()
    part = handed_over(training)
    policy = CountingPolicy()

    class Optimiser(FakeAlgorithm):
        def load_state(self, state):  # type: ignore[no-untyped-def]
            self.restored = state

    algorithm = Optimiser(policy)
    counters = load_part(part, policy, algorithm)
    assert (counters.updates, counters.steps) == (1, STEPS)
    assert policy.weight.item() == 1
    assert torch.equal(algorithm.restored["momentum"], torch.ones(2))


def test_part_of_another_network_is_refused() -> None:
    part = handed_over(Training())
    part["parameters"]["other"] = part["parameters"].pop("weight")
    policy = CountingPolicy()
    with pytest.raises(ValueError, match="do not fit the network"):
        load_part(part, policy, FakeAlgorithm(policy))


# --- two trainers --------------------------------------------------------------------------------------------------


def test_part_leaves_while_the_other_trainer_has_no_batch_yet() -> None:
    first, _second, _ = two()
    first.send(0)
    first.send(1)
    first.poll()
    first.obey(checkpoint=1)
    first.poll()
    part = first.part()
    assert part is not None
    assert (part[0], part[1]["counters"]["updates"]) == (1, 0)


def two(**settings: Any) -> tuple[Training, Training, LockStep]:
    reducer = LockStep(2)
    other = Training(reducer=reducer, first=False, address=101, **settings)
    return Training(reducer=reducer, **settings), other, reducer


def together(one: Training, other: Training, times: int = 60) -> None:
    for _ in range(times):
        one.trainer.poll()
        other.trainer.poll()


def test_trainers_update_only_when_both_have_a_batch() -> None:
    one, other, _ = two()
    full(one)
    together(one, other)
    assert one.algorithm.batches == other.algorithm.batches == []
    full(other)
    together(one, other)
    assert one.trainer.version == other.trainer.version == 1


def test_steps_are_those_of_both_trainers() -> None:
    one, other, _ = two()
    full(one)
    full(other)
    together(one, other)
    assert one.report().updates[0]["steps"] == 2 * STEPS


def test_only_the_first_trainer_reports_updates() -> None:
    one, other, _ = two()
    full(one)
    full(other)
    together(one, other)
    assert len(one.report().updates) == 1
    assert other.report().updates == []


def test_stop_told_to_one_stops_both_at_the_same_version() -> None:
    one, other, reducer = two()
    full(one)
    full(other)
    together(one, other)
    full(one, version=1)
    together(one, other)
    other.obey(stop=True)
    together(one, other)
    assert one.trainer.version == other.trainer.version == 1
    one.obey(stop=True)
    for training in (one, other):
        training.say_last()
    together(one, other)
    assert one.trainer.is_done
    assert other.trainer.is_done
    assert reducer.rounds[-1] == []


def test_batch_without_a_valid_record_is_skipped_and_the_next_one_trained() -> None:
    training = Training()
    for _ in range(BLOCKS):
        training.send(valid=False)
    training.poll()
    assert (training.trainer.version, len(training.algorithm.batches)) == (0, 0)
    assert training.trainer.counters()["empty_batches"] == 1
    full(training)
    training.poll()
    assert (training.trainer.version, len(training.algorithm.batches)) == (1, 1)


def test_report_when_the_coordinator_was_slow_tells_the_newest_updates_only() -> None:
    training = Training()
    for _ in range(MOST_EVENTS + 3):
        full(training)
        training.poll()
    told = [event["updates"] for event in training.report().updates]
    assert told == list(range(4, MOST_EVENTS + 4))


# --- long updates and standstills ------------------------------------------------------------------------------------


class Clock:
    """Seconds that a test lets pass."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def after_an_update(clock: Clock, seconds: float, **settings: Any) -> Training:
    """A trainer that has made one update, which took so long, and has the next batch."""
    training = Training(clock=clock, **settings)
    for _ in range(2):
        training.send(0)
        training.send(1)
        training.poll(1)
    clock.now += seconds
    training.poll()
    return training


def test_stop_that_came_in_a_long_update_is_heard_before_the_next() -> None:
    training = after_an_update(Clock(), 90.0)
    assert training.trainer.version == 1
    # A command that was under way says nothing of the update.
    training.obey()
    training.poll()
    assert training.trainer.version == 1
    assert training.report().updates
    training.obey(stop=True)
    training.poll()
    training.say_last()
    training.poll()
    assert (training.trainer.is_done, training.trainer.version) == (True, 1)


def test_trainer_that_has_heard_goes_on() -> None:
    training = after_an_update(Clock(), 90.0)
    training.report()
    training.obey()
    training.poll()
    assert training.trainer.version == 2


def test_coordinator_that_does_not_answer_holds_up_training_for_a_tenth_of_the_time_at_most() -> None:
    clock = Clock()
    training = after_an_update(clock, 90.0)
    clock.now += 8.9
    training.poll()
    assert training.trainer.version == 1
    clock.now += 0.2
    training.poll()
    assert training.trainer.version == 2


@pytest.mark.parametrize(("seconds", "pauses"), [(0.5, False), (90.0, True)])
def test_after_a_short_update_and_in_serial_runs_nobody_waits(seconds: float, pauses: bool) -> None:
    assert after_an_update(Clock(), seconds, pauses=pauses).trainer.version == 2


def test_update_moves_while_it_goes_on_and_a_trainer_that_waits_does_not() -> None:
    training = Training()
    training.poll()
    before = training.trainer.moves
    training.poll()
    assert training.trainer.moves == before
    assert training.trainer.waits_for() == "waits for blocks, has 0 of 2"
    training.send(0)
    training.send(1)
    training.poll(3)
    seen = training.trainer.moves
    training.poll(2)
    assert training.trainer.moves == seen + 2
    assert training.trainer.waits_for() == ""


def test_relief_grants_beyond_the_limit_and_makes_room_where_a_batch_is_full() -> None:
    first, second, _ = two(strict=True)
    for actor in (0, 1):
        first.ask(actor)
    first.poll()
    assert [first.granted(actor) for actor in (0, 1)] == [0, 0]
    for _ in range(2):
        first.send(0)
        first.send(1)
        first.poll()
        first.ask(0)
    first.poll()
    assert first.granted(0) is None
    first.obey(relief=1)
    assert first.granted(0) == 0
    first.poll()
    assert first.trainer.counters()["dropped_fragments"] == 2 * E * A
    first.ask(1)
    first.obey(relief=1)
    first.poll()
    assert first.granted(1) is None
    second.send(0)
    second.send(1)
    for _ in range(30):
        first.poll(1)
        second.poll(1)
    assert first.trainer.version == 1
