"""What a checkpoint holds of replay, and whether a run can go on with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from srlhpc.data.segment_folder import segments_of
from srlhpc.data.segments import Run, append, begin_segment, segments_to_tree
from srlhpc.errors import UserError
from srlhpc.plan.plan import Plan
from srlhpc.plan.replay_sizes import shard_blocks
from srlhpc.runs.replay_checkpoint import (
    check_files,
    copy_files,
    identity,
    replay_resumes,
    saved_shards,
    why_empty,
)
from tests.plan.test_planner import actors, planned
from tests.plan.test_replay import replayed


def saved(plan: Plan, folder: Path) -> dict[str, Any]:
    """A checkpoint of this plan, with one block in each shard."""
    parts = {}
    for replay in plan.replays("default"):
        block = Run(0, np.zeros(1, np.int64), np.zeros(1, np.int64), {"x": np.zeros(4)})
        segment = append(folder, begin_segment(folder, replay.label, 0), block)
        store = {"inserted_blocks": 1, "generations": np.zeros(8, np.int64)}
        parts[replay.label] = identity(plan, replay) | {"store": store, "segments": segments_to_tree([segment])}
    return {"replay": parts}


def why(tree: dict[str, Any], plan: Plan, folder: Path) -> str | None:
    return why_empty(tree, plan, "default", folder)


def test_replay_goes_on_where_groups_and_layout_are_the_same(tmp_path: Path) -> None:
    tree = saved(replayed(replay={"ranks": 2}), tmp_path / "replay")
    for plan in (
        replayed(replay={"ranks": 2}),
        replayed(replay={"ranks": 4}),
        replayed(trainers={"ranks": 2}),
        replayed(replay={"capacity": 500, "start_steps": 100, "samples_per_insert": 1.0}),
        replayed(actors=actors(ranks=4, ring=1)),
        replayed(serial=True),
    ):
        assert why(tree, plan, tmp_path / "replay") is None
    (resumed,) = replay_resumes(tree, replayed(), tmp_path / "replay")
    assert (resumed.text, resumed.is_empty) == ("replay of policy default goes on with 2 blocks", False)


def test_smaller_replay_goes_on_with_the_newest_blocks_that_it_has_room_for(tmp_path: Path) -> None:
    tree = saved(replayed(replay={"ranks": 2}), tmp_path / "replay")
    for part in tree["replay"].values():
        part["store"] |= {"inserted_blocks": 400, "generations": np.zeros(400, np.int64)}
    smaller = replayed(replay={"capacity": 500, "start_steps": 100, "samples_per_insert": 1.0})
    (resumed,) = replay_resumes(tree, smaller, tmp_path / "replay")
    room = shard_blocks(smaller, "default")
    assert room < 800
    assert f"goes on with {room} blocks, the newest of 800 in the checkpoint" in resumed.text


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"actors": actors(ranks=4)}, "it was kept of 4 groups, and there are 8 now"),
        ({"actors": actors() | {"environments": 2}}, "its blocks have another layout"),
        ({"replay": {"block_steps": 16}}, "its blocks have another layout"),
    ],
)
def test_replay_of_other_groups_or_layouts_starts_empty(changes: Any, reason: str, tmp_path: Path) -> None:
    tree = saved(replayed(), tmp_path / "replay")
    assert (why(tree, replayed(**changes), tmp_path / "replay") or "").startswith(reason)


def test_replay_that_was_not_kept_starts_empty_and_says_for_how_long(tmp_path: Path) -> None:
    (resumed,) = replay_resumes({}, replayed(replay={"start_steps": 5000, "capacity": 5000}), tmp_path / "replay")
    assert resumed.is_empty
    assert resumed.text == (
        "replay of policy default starts empty: the checkpoint holds nothing of it (with replay.checkpoint: true later "
        "ones will); training goes on when 5,000 steps came in"
    )
    assert why({}, replayed(replay={"checkpoint": True}), tmp_path) == "the checkpoint holds nothing of it"


def test_shard_that_is_missing_leaves_nothing_of_the_policy(tmp_path: Path) -> None:
    tree = saved(replayed(replay={"ranks": 2}), tmp_path / "replay")
    assert [part["index"] for part in saved_shards(tree, "default")] == [0, 1]
    del tree["replay"]["replay-default-0"]
    assert saved_shards(tree, "default") == []
    assert saved_shards(tree, "other") == []


def test_file_that_is_missing_or_cut_off_is_the_reason(tmp_path: Path) -> None:
    folder = tmp_path / "replay"
    tree = saved(replayed(replay={"ranks": 2}), folder)
    (segment,) = segments_of(tree["replay"]["replay-default-1"])
    data = (folder / segment.name).read_bytes()
    (folder / segment.name).write_bytes(data[:-1])
    assert "is cut off" in (why(tree, replayed(), folder) or "")
    (folder / segment.name).unlink()
    assert "is missing" in (why(tree, replayed(), folder) or "")
    with pytest.raises(UserError, match=r"is missing\. A serial run .* `srlhpc fork RUN` starts"):
        check_files(tree, folder)
    (folder / segment.name).write_bytes(data[:-1] + b"?")
    assert why(tree, replayed(), folder) is None
    with pytest.raises(UserError, match="is damaged"):
        check_files(tree, folder)


def test_run_without_replay_resumes_without_a_word(tmp_path: Path) -> None:
    check_files({}, tmp_path)
    assert list(replay_resumes({}, planned(), tmp_path)) == []


def test_fork_has_its_own_names_of_the_files(tmp_path: Path) -> None:
    tree = saved(replayed(replay={"ranks": 2}), tmp_path / "replay")
    copy_files(tree, tmp_path / "replay", tmp_path / "forked")
    for path in (tmp_path / "replay").iterdir():
        path.unlink()
    check_files(tree, tmp_path / "forked")
    copy_files(tree, tmp_path / "gone", tmp_path / "other")
    assert list((tmp_path / "other").iterdir()) == []
    copy_files({}, tmp_path / "gone", tmp_path / "none")
    assert not (tmp_path / "none").exists()
