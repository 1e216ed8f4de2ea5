"""Whole runs with an expert, and with weights of another run: learnt, resumed bit for bit, refused if they differ."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from srlhpc.errors import UserError
from srlhpc.evaluation import evaluate
from srlhpc.launch.preparation import prepare_plan
from srlhpc.ranks.serial import run_serial
from srlhpc.runs.checkpoint_fit import check_fit
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.starting_weights import copy_weights
from srlhpc.specs.experiment import ExperimentSpec
from tests.launch.making_runs import change_job, checkpoint, make_attempt, make_run, outcome, settings, tree_of
from tests.launch.test_exact_resume import differences
from tests.launch.test_mpi_runs import ranks

CATCH = {"factory": "catch", "rows": 5, "columns": 3}
NETWORK = {"kind": "mlp", "hidden": [32]}


@pytest.fixture(scope="module")
def expert(tmp_path_factory: pytest.TempPathFactory) -> RunPaths:
    """A run that has learnt to catch."""
    what = settings(
        CATCH,
        stop={"updates": 400, "return_mean": 0.95},
        network=NETWORK,
        algorithm={"kind": "ppo", "learning_rate": 1e-2, "epochs": 4, "minibatches": 2},
        batch={"fragments": 16, "fragment_steps": 16},
        actors={"ranks": 1, "ring": 1, "environments": 16, "inference": {"kind": "inline"}},
    )
    paths = make_run(tmp_path_factory.mktemp("expert"), what, "expert")
    run_serial(paths, make_attempt(paths, what)[0])
    assert evaluate(paths, episodes=50)["return_mean"] >= 0.9
    return paths


def job(updates: int, weights: Path, **changes: Any) -> dict[str, Any]:
    what = settings(
        CATCH,
        stop={"updates": updates},
        network=NETWORK,
        algorithm={"kind": "dagger", "expert": "expert", "beta": {"start": 1.0, "end": 0.0, "steps": 200}},
        batch={"fragments": 32, "fragment_steps": 1},
        replay={"capacity": 2000, "samples_per_insert": 16.0, "start_steps": 64, "block_steps": 4},
        actors={"ranks": 1, "ring": 2, "environments": 4, "inference": {"kind": "inline"}},
        checkpoint={"every_updates": 20},
    )
    what["policies"]["expert"] = {"network": NETWORK, "algorithm": {"kind": "ppo"}, "weights_from": str(weights)}
    return what | changes


def made(root: Path, what: dict[str, Any], name: str = "run") -> RunPaths:
    paths = make_run(root, what, name)
    copy_weights(prepare_plan(ExperimentSpec.model_validate(what)), paths)
    return paths


def test_what_the_expert_does_is_learnt_from_few_labels(expert: RunPaths, tmp_path: Path) -> None:
    what = job(400, expert.folder)
    paths = made(tmp_path, what)
    run_serial(paths, make_attempt(paths, what)[0])
    assert evaluate(paths, episodes=50)["return_mean"] >= 0.9
    policies = tree_of(paths, 400)["policies"]
    assert list(policies) == ["default"], "nobody trains the expert"
    assert policies["default"]["counters"]["steps"] < 1000


def test_run_with_an_expert_goes_on_to_the_same_bits_without_the_run_it_came_from(
    expert: RunPaths, tmp_path: Path
) -> None:
    copy = RunPaths(Path(shutil.copytree(expert.folder, tmp_path / "copy")))
    whole, halves = (made(tmp_path, job(n, copy.folder), name) for n, name in ((40, "whole"), (20, "halves")))
    shutil.rmtree(copy.folder)
    run_serial(whole, make_attempt(whole, job(40, copy.folder))[0])
    run_serial(halves, make_attempt(halves, job(20, copy.folder))[0])
    change_job(halves, job(40, copy.folder))
    resumed = make_attempt(halves, job(40, copy.folder), checkpoint(halves, 20))[0]
    run_serial(halves, resumed)
    assert outcome(resumed)["state"] == "finished"
    assert differences(tree_of(whole, 40), tree_of(halves, 40)) == []


@pytest.mark.mpi
def test_servers_ask_the_expert_too(expert: RunPaths, tmp_path: Path) -> None:
    what = job(
        400,
        expert.folder,
        actors={"ranks": 2, "ring": 1, "environments": 4, "inference": {"kind": "server"}},
        policy_servers={"ranks": 1},
        trainers={"ranks": 2},
    )
    what["policies"]["default"]["replay"]["ranks"] = 2
    paths = made(tmp_path, what)
    with ranks(paths, what) as run:
        run.wait()
        assert outcome(run.attempt)["reason"] == "updates", run.logs()
    assert evaluate(paths, episodes=50)["return_mean"] >= 0.9


def test_trained_policy_begins_with_the_weights(expert: RunPaths, tmp_path: Path) -> None:
    what = settings(
        CATCH,
        stop={"updates": 1},
        network=NETWORK,
        algorithm={"kind": "ppo", "learning_rate": 0.0, "epochs": 1, "minibatches": 1},
    )
    what["policies"]["default"]["weights_from"] = str(expert.folder)
    paths = made(tmp_path, what)
    run_serial(paths, make_attempt(paths, what)[0])
    before = tree_of(expert, max(int(f.stem.split("-")[1]) for f in expert.checkpoints.glob("updates-*.h5")))
    after = tree_of(paths, 1)
    for name, array in before["policies"]["default"]["parameters"].items():
        np.testing.assert_array_equal(after["policies"]["default"]["parameters"][name], array)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            lambda what: what["policies"]["expert"].update(weights_from="nowhere"),
            r"^policies\.expert\.weights_from: there is no /.*/nowhere; name a checkpoint file, the folder of a run, ",
        ),
        (
            lambda what: what["policies"]["expert"].update(weights_from=str(Path(__file__).parent)),
            r"^policies\.expert\.weights_from: /.* is no folder of a run; name a checkpoint file, or the folder of a ",
        ),
        (
            lambda what: what["policies"]["expert"].update(network={"kind": "mlp", "hidden": [8]}),
            r"^policies\.expert\.network\.hidden: the checkpoint has \[32\], the spec wants \[8\]; policies\.expert "
            r"begins with its weights \(weights_from\): make them equal$",
        ),
        (
            lambda what: what["environment"].update(rows=6),
            r"^environment: policy expert of the checkpoint sees observations \{'obs': \(15,\)\}, the spec's "
            r"environment shows \{'obs': \(18,\)\}; name a checkpoint of these agents in policies\.expert\.",
        ),
        (
            lambda what: what["policies"]["default"]["algorithm"].update(expert="exprt"),
            r"^policies\.default\.algorithm\.expert: is 'exprt', which is not in policies; did you mean 'expert'\?$",
        ),
        (
            lambda what: what["policies"]["expert"].update(weights_from=None, batch={"fragments": 8}),
            r"^policies\.expert\.weights_from: is missing; an expert plays with weights that were learnt before",
        ),
        (
            lambda what: what["policies"]["expert"].update(network=NETWORK | {"recurrent": {"kind": "lstm"}}),
            r"^policies\.expert\.network\.recurrent: is lstm; an expert labels single observations, without memory",
        ),
        (
            lambda what: what["policies"]["expert"].update(algorithm={"kind": "sac"}),
            r"^policies\.expert: algorithm sac trains continuous actions, but agents of kind 'agent' take ",
        ),
    ],
    ids=["missing", "folder", "network", "spaces", "unknown", "random", "memory", "rule"],
)
def test_expert_that_cannot_label_is_refused(change: Any, text: str, expert: RunPaths, tmp_path: Path) -> None:
    what = job(10, expert.folder)
    what["policies"]["expert"]["network"] = dict(NETWORK)
    what["environment"] = dict(CATCH)
    change(what)
    with pytest.raises(UserError, match=text):
        made(tmp_path, what)


def test_expert_that_is_trained_is_refused(expert: RunPaths) -> None:
    what = job(10, expert.folder)
    what["environment"] = {"factory": "two_step"}
    what["policies"]["expert"] |= {"batch": {"fragments": 8}}
    what["agents"] = [{"match": "agent_0"}, {"match": "agent_1", "policy": "expert"}]
    with pytest.raises(UserError, match=r"is 'expert', which is trained itself; an expert plays .* says train: false$"):
        prepare_plan(ExperimentSpec.model_validate(what))


def test_expert_of_agents_of_two_kinds_is_refused(expert: RunPaths) -> None:
    what = job(10, expert.folder)
    what["environment"] = {"factory": "pettingzoo", "env": "mpe2.simple_tag_v3"}
    what["policies"]["other"] = dict(what["policies"]["default"])
    what["agents"] = [{"match": "adversary_.*"}, {"match": "agent_.*", "policy": "other"}]
    text = r"^policies\.other\.algorithm\.expert: is 'expert', which labels what policy default plays, of another kind"
    with pytest.raises(UserError, match=text):
        prepare_plan(ExperimentSpec.model_validate(what))


def test_weights_of_another_head_are_refused(expert: RunPaths, tmp_path: Path) -> None:
    what = job(10, expert.folder)
    what["policies"]["expert"]["algorithm"] = {"kind": "dqn"}
    text = r"^policies\.expert\.algorithm: the checkpoint's network was built for ppo, and for dqn as it is set here "
    with pytest.raises(UserError, match=text):
        made(tmp_path, what)


def test_weights_of_a_rule_for_other_actions_are_refused_as_those_of_the_checkpoint(tmp_path: Path) -> None:
    pendulum = settings(
        {"factory": "gymnasium", "id": "Pendulum-v1"},
        stop={"updates": 1},
        network=NETWORK,
        algorithm={"kind": "td3", "exploration": {"kind": "gaussian_noise", "uniform_steps": 8}},
        batch={"fragments": 4, "fragment_steps": 1},
        replay={"capacity": 64, "samples_per_insert": 1.0, "start_steps": 8},
        actors={"ranks": 1, "ring": 1, "environments": 2, "inference": {"kind": "inline"}},
    )
    paths = make_run(tmp_path, pendulum, "pendulum")
    run_serial(paths, make_attempt(paths, pendulum)[0])
    text = r"^policies\.expert\.algorithm: the checkpoint's network was built for td3, and for ppo as it is set here "
    with pytest.raises(UserError, match=text):
        made(tmp_path, job(10, paths.folder))


def test_file_that_is_no_checkpoint_is_refused_by_the_name_of_the_setting(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no checkpoint")
    with pytest.raises(UserError, match=r"^policies\.expert\.weights_from: .*notes\.txt"):
        made(tmp_path, job(10, tmp_path / "notes.txt"))


def test_run_that_goes_on_keeps_the_weights_that_it_began_with(expert: RunPaths, tmp_path: Path) -> None:
    paths = made(tmp_path, job(10, expert.folder))
    run_serial(paths, make_attempt(paths, job(10, expert.folder))[0])
    file = checkpoint(paths, 10)
    other = job(20, tmp_path / "another")
    text = r"^policies\.expert\.weights_from: the run began with .*/expert and keeps that, the spec names .*/another\. "
    with pytest.raises(UserError, match=text):
        check_fit(tree_of(paths, 10), file, paths, prepare_plan(ExperimentSpec.model_validate(other), serial=True))


def test_frozen_opponent_needs_neither_batch_nor_replay(expert: RunPaths) -> None:
    what = settings({"factory": "two_step"}, stop={"updates": 1})
    what["policies"]["opponent"] = {
        "network": NETWORK,
        "algorithm": {"kind": "dqn"},
        "weights_from": str(expert.folder),
    }
    what["agents"] = [{"match": "agent_0"}, {"match": "agent_1", "policy": "opponent", "train": False}]
    assert prepare_plan(ExperimentSpec.model_validate(what)).trained_policies == ("default",)
    what["agents"][1]["train"] = True
    with pytest.raises(UserError, match=r"^policies\.opponent\.batch: is missing; agents that play opponent train it"):
        prepare_plan(ExperimentSpec.model_validate(what))


def test_policy_without_a_batch_needs_weights() -> None:
    what = settings(CATCH, stop={"updates": 1})
    del what["policies"]["default"]["batch"]
    with pytest.raises(ValueError, match=re.escape("is missing.")):
        ExperimentSpec.model_validate(what)
