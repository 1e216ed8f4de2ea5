"""Where replay stands, what it keeps, and which replay is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from srlhpc.comm.channel import Stream
from srlhpc.environment import ArraySpec, Continuous, Discrete, Kind, Spaces
from srlhpc.errors import UserError
from srlhpc.plan.lag_limits import max_policy_lag, needs_grants, oldest_trained
from srlhpc.plan.layouts import block_layout, digest, fragment, shard_windows, window_shape, windows_layout
from srlhpc.plan.plan import Plan
from srlhpc.plan.replay_sizes import (
    block_records,
    disk_bytes,
    draw_of,
    drawn_bytes,
    drawn_records,
    file_blocks,
    is_in_checkpoints,
    least_tolerance,
    samples_per_insert,
    sent_bytes,
    shard_blocks,
    store_bytes,
    stored_bytes,
    tolerance,
    windows_ahead,
)
from srlhpc.plan.sizes import memory_bytes
from srlhpc.plan.table import plan_table
from srlhpc.specs.replay import PrioritizedDraw, UniformDraw
from tests.plan.test_planner import ALONE, TAG, actors, planned

RULE = {"kind": "tests.plan.wanting", "data": "replay", "feedback": True}
REPLAY = {"start_steps": 100, "capacity": 1000, "samples_per_insert": 4.0, "block_steps": 8}
BATCH = {"fragments": 8, "fragment_steps": 4}
MEMORY = {"kind": "mlp", "hidden": [8], "recurrent": {"kind": "lstm", "size": 4}}
REACH = Spaces((Kind("agent", ("agent",), {"obs": ArraySpec((2,), "float32")}, Continuous(2)),))
HUGE = Spaces((Kind("agent", ("agent",), {"obs": ArraySpec((1 << 22,), "float32")}, Discrete(4)),))


def replayed(spaces: Spaces = ALONE, *, serial: bool = False, **changes: Any) -> Plan:
    """Four groups of four environments; `replay` adds to the section."""
    section = REPLAY | changes.pop("replay", {})
    chosen = {"algorithm": RULE, "batch": BATCH, "actors": actors()} | changes
    return planned(spaces, serial=serial, replay=section, **chosen)


def labels(plan: Plan) -> list[list[str]]:
    return [[role.label for role in rank.roles] for rank in plan.ranks]


def test_replay_stands_beside_each_trainer() -> None:
    plan = replayed(trainers={"ranks": 2})
    assert labels(plan)[1:3] == [
        ["trainer-default-0", "replay-default-0"],
        ["trainer-default-1", "replay-default-1"],
    ]
    assert [plan.shards_of(trainer)[0].rank for trainer in plan.trainers("default")] == [1, 2]


def test_replay_ranks_of_their_own_are_shared_out_in_turn() -> None:
    plan = replayed(trainers={"ranks": 2}, replay={"ranks": 4})
    assert labels(plan)[4:8] == [[f"replay-default-{index}"] for index in range(4)]
    assert not any(plan.ranks[rank].needs_torch for rank in range(4, 8))
    first, second = plan.trainers("default")
    assert [replay.index for replay in plan.shards_of(first)] == [0, 2]
    assert [replay.index for replay in plan.shards_of(second)] == [1, 3]
    assert all(plan.drawer_of(replay) is first for replay in plan.shards_of(first))
    assert shard_windows(plan, "default") == 4


def test_blocks_of_a_group_go_to_one_shard_and_only_when_granted() -> None:
    plan = replayed(replay={"ranks": 2})
    assert [plan.sink_of(group, "default").label for group in range(4)] == [
        "replay-default-0", "replay-default-1", "replay-default-0", "replay-default-1",
    ]  # fmt: skip
    assert needs_grants(plan, "default")
    assert (max_policy_lag(plan, "default"), oldest_trained(plan, "default")) == (None, None)


def test_serial_run_keeps_all_shards_on_its_one_rank() -> None:
    plan = replayed(serial=True, replay={"ranks": 2})
    assert {role.rank for role in plan.replays("default")} == {0}
    assert needs_grants(plan, "default")
    assert (windows_ahead(plan), windows_ahead(replayed())) == (1, 2)
    assert windows_ahead(replayed(trainers={"prefetch": False})) == 1


def test_blocks_are_as_long_as_replay_says_and_windows_as_the_batch() -> None:
    plan = replayed(algorithm=RULE | {"after": 2}, network=MEMORY, batch=BATCH | {"burn_in_steps": 6})
    assert fragment(plan, "default") == (fragment(plan, "default").__class__(records=8, burn_in=0, chunks=2))
    shape = window_shape(plan, "default")
    assert (shape.fragment_steps, shape.burn_in_steps, shape.after, shape.stride) == (4, 6, 2, 4)
    rewards = next(field for field in windows_layout(plan, "default").fields if field.name == "rewards")
    assert rewards.shape == (12, 8)


def test_windows_without_memory_start_at_every_record() -> None:
    plan = replayed()
    assert (window_shape(plan, "default").stride, fragment(plan, "default").chunks) == (1, 1)


def test_capacity_is_rounded_up_to_whole_blocks_of_every_shard() -> None:
    plan = replayed(replay={"ranks": 2, "capacity": 1000})
    assert block_records(plan, "default") == 32
    assert shard_blocks(plan, "default") == 16
    team = replayed(TAG, replay={"capacity": 1000})
    assert (block_records(team, "default"), shard_blocks(team, "default")) == (96, 11)


def test_memory_holds_the_store_its_lists_and_what_is_drawn() -> None:
    plan = replayed(trainers={"ranks": 1}, replay={"ranks": 1, "draw": {"kind": "prioritized"}})
    block, windows = block_layout(plan, "default").size_bytes, windows_layout(plan, "default").size_bytes
    kept = stored_bytes(plan, "default")
    assert store_bytes(plan, "default") == 32 * kept + 1024 + 2 * 1024 * 8
    assert (sent_bytes(plan, "default"), drawn_bytes(plan, "default")) == (2 * windows, 3 * windows)
    memory = memory_bytes(plan)
    assert memory["replay-default-0"] == store_bytes(plan, "default") + 2 * windows + 2 * block
    assert memory["trainer-default-0"] == 3 * windows
    uniform = replayed(replay={"ranks": 1})
    assert store_bytes(uniform, "default") == 32 * kept + 1024


def test_states_at_the_end_of_blocks_take_no_memory() -> None:
    plan = replayed(network=MEMORY)
    final = sum(field.size_bytes for field in block_layout(plan, "default").fields if field.name.startswith("final_"))
    assert final
    fields = sum(field.size_bytes for field in block_layout(plan, "default").fields)
    assert stored_bytes(plan, "default") == fields - final


def test_checkpoints_hold_replay_where_it_is_wanted_and_in_serial_runs() -> None:
    wanted = replayed(replay={"checkpoint": True})
    assert [is_in_checkpoints(plan, "default") for plan in (replayed(), wanted, replayed(serial=True))] == [
        False, True, True,
    ]  # fmt: skip
    assert "checkpoints: hold nothing of it; a resumed run fills it again" in plan_table(replayed())
    megabytes = (32 + 4) * stored_bytes(wanted, "default") / 1e6
    assert disk_bytes(wanted, "default") == (32 + 4) * stored_bytes(wanted, "default")
    assert f"checkpoints: hold it in files of their own, {megabytes:,.1f} MB of records on the disk" in plan_table(
        wanted
    )


def test_files_beside_checkpoints_are_an_eighth_of_the_store_at_most() -> None:
    assert file_blocks(replayed(), "default") == 4
    assert file_blocks(replayed(replay={"capacity": 128}), "default") == 1
    assert file_blocks(replayed(HUGE, replay={"capacity": 1000}), "default") == 1


def test_tolerance_lets_all_groups_act_and_two_batches_be_drawn() -> None:
    plan = replayed(replay={"ranks": 2})
    replay = plan.replays("default")[0]
    assert drawn_records(plan, "default") == 4 * 4
    assert tolerance(plan, replay) == 4 * 32 * 2 + 2 * 16
    assert least_tolerance(plan, "default") == (16 + 4 * 32) / 2
    assert tolerance(replayed(replay={"tolerance": 80.0}), replay) == 80.0


def test_windows_are_drawn_as_the_job_says_or_else_as_its_rule_was_published() -> None:
    assert draw_of(replayed(), "default") == UniformDraw()
    assert draw_of(replayed(replay={"draw": {"kind": "prioritized"}}), "default") == PrioritizedDraw()
    dqn = {"kind": "dqn"}
    assert draw_of(replayed(algorithm=dqn), "default") == PrioritizedDraw()
    assert draw_of(replayed(algorithm=dqn, replay={"draw": {"kind": "uniform"}}), "default") == UniformDraw()


def test_age_below_which_blocks_are_too_old_when_they_come_is_refused() -> None:
    # Four groups of 32 records a block, each drawn 4 times, in batches of 32.
    replayed(replay={"max_age": 16})
    with pytest.raises(UserError, match=r"replay\.max_age: is 15, but blocks take 16 updates to be filled \(4 groups"):
        replayed(replay={"max_age": 15})


def test_a_job_that_sets_nothing_of_replay_gets_what_the_literature_has() -> None:
    batch = {"fragments": 32}
    dqn = planned(algorithm={"kind": "dqn"}, replay={}, batch=batch, actors=actors())
    assert shard_blocks(dqn, "default") == -(-1_000_000 // (32 * 4))
    assert samples_per_insert(dqn, "default") == 8.0
    assert drawn_records(dqn, "default") == 32
    sac = planned(REACH, algorithm={"kind": "sac"}, replay={}, batch=batch, actors=actors())
    assert samples_per_insert(sac, "default") == 256.0
    assert samples_per_insert(replayed(), "default") == 4.0


def test_a_window_of_replay_is_one_record_unless_a_memory_is_trained() -> None:
    assert window_shape(replayed(batch={"fragments": 8}), "default").fragment_steps == 1
    with_memory = replayed(batch={"fragments": 8}, network=MEMORY, replay={"block_steps": 20})
    assert window_shape(with_memory, "default").fragment_steps == 20


def test_plan_tells_records_bytes_memory_and_pace() -> None:
    text = plan_table(replayed(replay={"ranks": 2, "start_steps": 300}))
    assert "replay: 2 shards, each on a rank of its own, 1,024 records (16 blocks a shard)" in text
    assert "draws: uniform, windows of 4 records (burn-in 0, trained 4, behind 0), which begin at every record" in text
    assert "which is 0.125 updates for each, one every 8; from 300 steps on, each shard within" in text
    assert "replay: 1 shard beside its trainer, " in plan_table(replayed())
    assert "policy lag" not in text


def test_ranks_compare_the_layout_of_windows() -> None:
    assert digest(replayed()) != digest(replayed(batch=BATCH | {"fragments": 4}))


def test_only_replay_sends_windows_and_only_trainers_ask_for_them() -> None:
    plan = replayed()
    trainer, replay = plan.trainers("default")[0], plan.replays("default")[0]
    assert plan.link(Stream.WINDOWS, replay, trainer).source == replay.address
    with pytest.raises(AssertionError, match="does not send WINDOWS"):
        plan.link(Stream.WINDOWS, trainer, replay)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "ranks that are no multiple of the trainers": (
        {"trainers": {"ranks": 2}, "replay": {"ranks": 3}},
        "policies.default.replay.ranks: is 3; each of 2 trainers draws from as many replay ranks as the others: use a "
        "multiple of 2, or 0 for one beside each trainer",
    ),
    "batch that is no multiple of the shards": (
        {"replay": {"ranks": 3}},
        "policies.default.batch.fragments: is 8; a trainer draws equal parts of its batch from 3 replay ranks: use a "
        "multiple of 3, or change replay.ranks",
    ),
    "fewer groups than shards": (
        {"replay": {"ranks": 8}},
        "actors: 4 groups (ranks x ring) cannot feed 8 replay ranks of policy default; raise actors.ranks or "
        "actors.ring, or lower replay.ranks",
    ),
    "priorities of a rule that gives none": (
        {"algorithm": RULE | {"feedback": False}, "replay": {"draw": {"kind": "prioritized"}}},
        "policies.default.replay.draw: is prioritized, but algorithm tests.plan.wanting gives no priorities; set it to "
        "{kind: uniform}, or choose an algorithm that gives some",
    ),
    "window longer than what is stored": (
        {"batch": BATCH | {"fragment_steps": 100}},
        "policies.default.replay.capacity: is 1000, of which a replay rank keeps 32 blocks of 32 records, but a window "
        "of 100 records (0 of burn-in, 100 trained, 0 behind) needs 13 blocks of 8 steps from each of 4 groups: raise "
        "it to 1664 at least, or shorten the window",
    ),
    "start beyond what is kept": (
        {"replay": {"start_steps": 1025}},
        "policies.default.replay.start_steps: is 1025, which are 1,025 records, but only 1,024 are kept "
        "(replay.capacity 1000, in whole blocks): lower it, or raise replay.capacity",
    ),
    "tolerance at which both sides wait": (
        {"replay": {"tolerance": 79.0}},
        "policies.default.replay.tolerance: is 79; below 80 trainers and actors could wait for each other for ever "
        "(half of 32 records that a shard draws for a batch + samples_per_insert 4 x 32 records of a block): raise it "
        "to 80 at least, or leave it out",
    ),
}


@pytest.mark.parametrize(("changes", "text"), REFUSED.values(), ids=REFUSED)
def test_replay_that_cannot_work_is_refused(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(UserError, match=re.escape(text) + "$"):
        replayed(**changes)


def test_message_that_is_too_large_is_refused() -> None:
    with pytest.raises(UserError, match=r"one part of a batch has 2\.7 GB; .*: lower batch\.fragments, or raise"):
        replayed(HUGE, batch=BATCH | {"fragments": 32}, replay={"block_steps": 4}, actors=actors(ranks=1, ring=1))


def test_rule_of_fresh_records_beside_replay_is_refused() -> None:
    with pytest.raises(UserError, match=r"replay: algorithm tests.plan.wanting learns from every record as it comes"):
        replayed(algorithm=RULE | {"data": "stream"})
