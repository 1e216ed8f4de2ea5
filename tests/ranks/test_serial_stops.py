"""A serial run that is stopped after any update and goes on has the same bits as one that was never stopped."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from srlhpc.data.atomic import read_json
from srlhpc.data.checkpoint import write_checkpoint
from srlhpc.environment import Step
from srlhpc.plan.plan import Plan
from srlhpc.ranks.arrangement import environments_digest
from srlhpc.ranks.serial import run_serial
from srlhpc.roles.acting.group import Group
from srlhpc.roles.coordinating.status import StatusWriter
from srlhpc.roles.time_use import TimeUse
from srlhpc.runs.paths import RunPaths
from tests.launch.making_runs import change_job, checkpoint, make_attempt, make_run, outcome, settings, tree_of
from tests.launch.test_exact_resume import differences

END = 6
OF_TIME = {"time", "attempt", "seconds", "steps_per_second", "timing", "bottleneck"}
CATCH = {"factory": "catch", "rows": 5, "columns": 3}
RECALL = {"factory": "recall", "choices": 3, "delay": 2}
LSTM = {"kind": "mlp", "hidden": [8], "recurrent": {"kind": "lstm", "size": 4}}
ALGORITHM = {"kind": "ppo", "learning_rate": 1e-2, "epochs": 2, "minibatches": 2}
FAR = {"every_updates": 1_000_000}


def job(environment: dict[str, Any], **changes: Any) -> dict[str, Any]:
    network = changes.pop("network", {"kind": "mlp", "hidden": [8]})
    return settings(
        environment, stop={"updates": END}, checkpoint=FAR, network=network, **{"algorithm": ALGORITHM} | changes
    )


SCRIPTED = {"factory": "tests.scripted", "steps": [[5], [3, 4]], "agents": ["a", "b"]}


def two_policies(
    left: int, right: int, environment: dict[str, Any] = SCRIPTED, *, top: dict[str, Any] | None = None, **changes: Any
) -> dict[str, Any]:
    """Policies with fragments of so many steps, in groups that both play in. `changes` are of both batches."""
    made = job(environment)
    made["actors"] = {"ranks": 2, "ring": 3, "environments": 4}
    policies = {
        name: {
            "network": network,
            "algorithm": ALGORITHM,
            "batch": {"fragments": 8, "fragment_steps": steps} | changes,
        }
        for name, steps, network in (("left", left, LSTM), ("right", right, {"kind": "mlp", "hidden": [8]}))
    }
    agents = [{"match": "a", "policy": "left"}, {"match": "b", "policy": "right"}]
    return made | {"policies": policies, "agents": agents} | (top or {})


REPLAYED: dict[str, Any] = {
    "network": {"kind": "tests.rules.action_values"},
    "algorithm": {"kind": "tests.rules.replayed_q"},
    "batch": {"fragments": 8, "fragment_steps": 1},
    "replay": {
        "capacity": 100, "samples_per_insert": 0.25, "start_steps": 30, "block_steps": 6, "ranks": 2,
        "draw": {"kind": "prioritized"},
    },
}  # fmt: skip


def one_with_replay(steps: int) -> dict[str, Any]:
    """Two policies in the same groups: one learns from replay, one from fragments of so many steps."""
    made = two_policies(6, steps)
    return made | {"policies": {**made["policies"], "left": REPLAYED}}


def matched(environment: dict[str, Any] = SCRIPTED) -> dict[str, Any]:
    """One policy on both sides, against itself and against the last two versions of its past."""
    return job(environment, network=LSTM, actors={"ranks": 2, "ring": 2, "environments": 4}) | {
        "agents": [{"match": "a"}, {"match": "b"}],
        "versions": {"every_updates": 1, "keep": 2},
        "matches": {"rule": {"kind": "prioritized"}, "shares": {"self_play": 0.5, "past": 0.5}, "lot": 4},
    }


ALWAYS = {"checkpoint": {"every_updates": 1}}
"""What cannot be saved begins anew at a checkpoint, so both runs have the same ones."""
MEETING = {
    "evaluators": {
        "ranks": 1, "episodes": 5, "every_updates": 1, "players": ["live", "versions"],
        "opponents": [{"policy": "default", "version": "versions"}],
    }
}  # fmt: skip
EVALUATED = {"evaluators": {"ranks": 1, "episodes": 9, "every_updates": 2}}
STACKED = {"factory": "tests.stacked", "steps": [[5], [3, 4]], "agents": ["a", "b"]}
UNSAVED = {"factory": "tests.drawing_environment", "saves": False}

JOBS = {
    "one policy": (job(CATCH, normalize={"observations": True, "returns": True}), [1, 4]),
    "memory with burn-in, an inline server": (
        job(
            RECALL, network=LSTM, batch={"fragments": 8, "fragment_steps": 6, "burn_in_steps": 3},
            actors={"ranks": 2, "ring": 2, "environments": 4, "inference": {"kind": "inline"}},
        ),
        [2, 3],
    ),
    "more groups than a batch has room for": (
        job(CATCH, batch={"fragments": 12, "fragment_steps": 7}, actors={"ranks": 2, "ring": 3, "environments": 4}),
        [3],
    ),
    "batches used three times": (
        job(
            RECALL, network=LSTM, batch={"fragments": 8, "fragment_steps": 8, "uses": 3},
            normalize={"observations": True, "returns": True},
            actors={"ranks": 1, "ring": 3, "environments": 4},
        ),
        [1, 2],
    ),
    "a queue of batches": (
        job(
            CATCH, batch={"fragments": 8, "fragment_steps": 8, "uses": 2, "queue": 3},
            actors={"ranks": 2, "ring": 3, "environments": 4},
        ),
        [3, 4],
    ),
    "parameters that act only after every third update": (
        job(RECALL, network=LSTM, algorithm=ALGORITHM | {"kind": "tests.rules.seldom"}), [2, 5]
    ),
    "more episodes than one report holds": (
        job(
            {"factory": "catch", "rows": 2, "columns": 2},
            batch={"fragments": 64, "fragment_steps": 16}, actors={"ranks": 4, "ring": 2, "environments": 8},
        ),
        [4],
    ),
    "sides that meet the past, with memory": (matched(), [1, 3, 4]),
    "evaluators that meet versions": (matched() | ALWAYS | MEETING, [2, 3]),
    "a side that meets the past in what cannot be saved": (
        matched(UNSAVED | {"agents": ["a", "b"]}) | ALWAYS, [2, 3]
    ),
    "policies of 8 and 4": (two_policies(8, 4), [3]),
    "policies of 4 and 8": (two_policies(4, 8), [1, 4]),
    "policies of 6 and 4": (two_policies(6, 4), [1, 2, 3, 5]),
    "policies of 4 and 6, batches used twice": (two_policies(4, 6, uses=2), [2, 3]),
    "an environment that cannot be saved, with memory": (
        job(UNSAVED, network=LSTM, batch={"fragments": 12, "fragment_steps": 7, "uses": 2},
            actors={"ranks": 2, "ring": 3, "environments": 4}) | ALWAYS,
        [1, 4],
    ),
    "policies of 6 and 4 in what cannot be saved, evaluated": (
        two_policies(6, 4, UNSAVED | {"agents": ["a", "b"]}, top=ALWAYS | EVALUATED), [2, 3]
    ),
    "evaluated": (job(CATCH) | ALWAYS | EVALUATED, [1, 4]),
    "replay of two shards that are overwritten": (
        job(CATCH, **REPLAYED, actors={"ranks": 2, "ring": 2, "environments": 2}), [1, 2, 4]
    ),
    "replay with memory, in windows that begin where states are stored": (
        job(
            RECALL, network=LSTM, algorithm={"kind": "dqn", "n_steps": 2, "target_every_updates": 2},
            batch={"fragments": 8, "fragment_steps": 6, "burn_in_steps": 4},
            replay=REPLAYED["replay"] | {"samples_per_insert": 1.0, "stride": 3, "capacity": 400},
            actors={"ranks": 2, "ring": 2, "environments": 2},
        ),
        [1, 3],
    ),
    "policies of 6 and 4 that see stacks of frames": (two_policies(6, 4, STACKED), [1, 2, 3, 5]),
    "replay of stacks of frames": (
        job(STACKED, **REPLAYED, actors={"ranks": 2, "ring": 2, "environments": 2}), [1, 2, 4]
    ),
    "replay of what cannot be saved": (job(UNSAVED, **REPLAYED) | ALWAYS, [1, 4]),
    "replay of blocks of 6 beside fragments of 4": (one_with_replay(4), [2, 3]),
    "replay of blocks of 6 beside fragments of 12": (one_with_replay(12), [1, 5]),
}  # fmt: skip
"""Each with the updates after which it is stopped."""


@pytest.fixture(autouse=True)
def _a_line_for_every_update(monkeypatch: pytest.MonkeyPatch) -> None:
    is_newer = property(lambda status: status._progress.updates > status._metrics_updates)
    monkeypatch.setattr(StatusWriter, "_has_first_update", is_newer)


@pytest.mark.parametrize("name", JOBS)
def test_run_that_is_stopped_goes_on_to_the_same_bits_and_curves(name: str, tmp_path: Path) -> None:
    chosen, stops = JOBS[name]
    whole = make_run(tmp_path, chosen, "whole")
    run_serial(whole, make_attempt(whole, chosen)[0])
    parts = make_run(tmp_path, chosen, "parts")
    last = None
    for updates in (*stops, END):
        last = go_on(parts, chosen, updates, last)
    assert differences(tree_of(whole, END), tree_of(parts, END)) == []
    assert curves(whole) == curves(parts)
    assert [line["updates"] for line in curves(whole)] == list(range(1, END + 1))


@pytest.mark.parametrize("steps", [20, 33])
def test_run_that_is_stopped_by_hand_in_mid_fragment_goes_on_to_the_same_bits(
    steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen, _ = JOBS["policies of 6 and 4"]
    whole = make_run(tmp_path, chosen, "whole")
    run_serial(whole, make_attempt(whole, chosen)[0])
    parts = make_run(tmp_path, chosen, "parts")
    attempt, _ = make_attempt(parts, chosen)
    with monkeypatch.context() as patched:
        patched.setattr("srlhpc.roles.coordinating.coordinator.LOOK_SECONDS", 0.0)
        patched.setattr(Group, "step", _asking_for_a_stop(attempt.stop, steps))
        run_serial(parts, attempt)
    assert outcome(attempt)["state"] == "interrupted"
    updates = (read_json(parts.status) or {})["updates"]
    assert 1 <= updates < END
    go_on(parts, chosen, END, updates)
    assert differences(tree_of(whole, END), tree_of(parts, END)) == []
    assert curves(whole) == curves(parts)


def _asking_for_a_stop(mail: Path, steps: int) -> Callable[[Group, TimeUse], Step]:
    """A group's step; when all groups together have made so many, a stop is asked for."""
    step, left = Group.step, itertools.count(steps, -1)

    def stepped(group: Group, time_use: TimeUse) -> Step:
        if next(left) == 0:
            mail.touch()
        return step(group, time_use)

    return stepped


def test_checkpoint_of_before_goes_on_with_its_episodes_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = job(RECALL, network=LSTM, batch={"fragments": 8, "fragment_steps": 6, "burn_in_steps": 3})
    paths = make_run(tmp_path, chosen)
    attempt, plan = make_attempt(paths, chosen | {"stop": {"updates": 3}})
    change_job(paths, chosen | {"stop": {"updates": 3}})
    run_serial(paths, attempt)
    file = checkpoint(paths, 3)
    write_checkpoint(file, _as_before(tree_of(paths, 3), plan))
    begun = []
    monkeypatch.setattr(Group, "begin", lambda group, start: begun.append(start))
    go_on(paths, chosen, END, 3)
    assert begun == []
    assert "the checkpoint was written by an older srlhpc" in caplog.text
    counters = tree_of(paths, END)["policies"]["default"]["counters"]
    assert (counters["updates"], counters["steps"]) == (END, curves(paths)[-1]["steps"])


def _as_before(tree: dict[str, Any], plan: Plan) -> dict[str, Any]:
    """The tree as it was when checkpoints were written with nothing open, and held the order of asking instead."""
    roles = tree["roles"]
    del roles["links"], roles["coordinator-0"]
    roles["arrangement"] = environments_digest(plan)
    roles["trainer-default-0"] = {"asked": np.arange(2)}
    for group in roles["actor-0"]["groups"].values():
        del group["waiting"]
        kept = {"needs_version", "sequence", "tail", "start_state"}
        group["recorders"] = {
            place: {name: value for name, value in recorder.items() if name in kept}
            for place, recorder in group["recorders"].items()
        }
    return tree


def go_on(paths: RunPaths, job: dict[str, Any], updates: int, last: int | None) -> int:
    """Runs until so many updates, from the checkpoint of the last ones."""
    until = job | {"stop": {"updates": updates}}
    change_job(paths, until)
    attempt, _ = make_attempt(paths, until, checkpoint(paths, last) if last is not None else None)
    run_serial(paths, attempt)
    assert outcome(attempt)["reason"] == "updates"
    return updates


def curves(paths: RunPaths) -> list[dict[str, Any]]:
    """The lines of the metrics, without what clocks tell."""
    lines = [json.loads(line) for line in paths.metrics.read_text().splitlines()]
    return [{name: value for name, value in line.items() if name not in OF_TIME} for line in lines]
