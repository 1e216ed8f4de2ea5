"""Whole runs that learn from recorded episodes, without actors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from srlhpc.data.episode_file import EpisodeFile
from srlhpc.data.episodes import joined
from srlhpc.data.epoch_draws import EpochDraws
from srlhpc.errors import UserError
from srlhpc.evaluation import evaluate
from srlhpc.launch.preparation import check_memory, prepare_plan
from srlhpc.plan.lag_limits import needs_grants
from srlhpc.plan.layouts import recorded_layout
from srlhpc.plan.sizes import memory_bytes
from srlhpc.plan.table import plan_table
from srlhpc.ranks.serial import run_serial
from srlhpc.recording import record
from srlhpc.roles.training.checkpoint_part import Counters
from srlhpc.roles.training.recorded_batches import RecordedBatches
from srlhpc.roles.training.staging import Staging
from srlhpc.runs.paths import RunPaths
from srlhpc.specs.experiment import ExperimentSpec
from srlhpc.specs.load import dump_experiment, load_text
from tests.launch.making_runs import make_attempt, make_run, outcome, settings, tree_of
from tests.launch.test_dagger_runs import CATCH, NETWORK, expert
from tests.launch.test_exact_resume import differences, whole_and_resumed
from tests.launch.test_mpi_runs import ranks

__all__ = ["expert"]
LSTM = {"kind": "mlp", "hidden": [16], "recurrent": {"kind": "lstm", "size": 8}}


@pytest.fixture(scope="module")
def episodes(expert: RunPaths, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty episodes of a policy that catches."""
    file = tmp_path_factory.mktemp("episodes") / "expert.h5"
    assert record(expert, file, episodes=30)["return_mean"] >= 0.9
    return file


def job(updates: int, *files: Path, **changes: Any) -> dict[str, Any]:
    what = settings(
        CATCH,
        stop={"updates": updates},
        network=changes.pop("network", NETWORK),
        algorithm={"kind": "behaviour_cloning", "learning_rate": 5e-3},
        batch=changes.pop("batch", {"fragments": 32}),
        actors={"ranks": 0},
        checkpoint={"every_updates": 20},
    )
    what["policies"]["default"]["episodes"] = {"files": [str(file) for file in files]}
    return what | changes


def test_what_was_recorded_is_learnt(episodes: Path, tmp_path: Path) -> None:
    what = job(300, episodes)
    paths = make_run(tmp_path, what)
    run_serial(paths, make_attempt(paths, what)[0])
    assert evaluate(paths, episodes=50)["return_mean"] >= 0.9
    # Every valid record of the files counts once an epoch.
    counters = tree_of(paths, 300)["policies"]["default"]["counters"]
    with EpisodeFile(episodes) as file:
        found = file.episodes("default")
        share = found.num_records / found.num_rows
    assert counters["steps"] == pytest.approx(300 * 32 * share, rel=0.02)


@pytest.mark.parametrize("network", [NETWORK, LSTM], ids=["plain", "lstm"])
def test_run_goes_on_to_the_same_bits(network: dict[str, Any], episodes: Path, tmp_path: Path) -> None:
    batch = {"fragments": 8, "fragment_steps": 4, "burn_in_steps": 2} if network is LSTM else {"fragments": 8}

    def made(updates: int) -> dict[str, Any]:
        return job(updates, episodes, network=network, batch=batch)

    assert differences(*whole_and_resumed(tmp_path, made, 20, 40)) == []


@pytest.mark.mpi
def test_two_trainers_and_an_evaluator_are_all_that_run(episodes: Path, tmp_path: Path) -> None:
    what = job(300, episodes, trainers={"ranks": 2}, evaluators={"ranks": 1, "every_updates": 50, "episodes": 10})
    paths = make_run(tmp_path, what)
    with ranks(paths, what) as run:
        run.wait()
        assert outcome(run.attempt)["reason"] == "updates", run.logs()
        assert not {"actor", "policy_server"} & run.status["roles"].keys()
    assert evaluate(paths, episodes=50)["return_mean"] >= 0.9


def test_files_are_learnt_from_together(episodes: Path) -> None:
    with EpisodeFile(episodes) as file:
        one = file.episodes("default").in_memory()
    both = joined([one, one])
    assert (both.num_rows, both.num_sequences, both.num_episodes) == (2 * one.num_rows, 60, 60)
    starts = np.arange(one.num_rows - 5)
    for name, array in one.windows(starts, 4).items():
        np.testing.assert_array_equal(both.windows(starts + one.num_rows, 4)[name], array)


def planned(*files: Path, **changes: Any) -> Any:
    return prepare_plan(ExperimentSpec.model_validate(job(10, *files, **changes)), serial=True)


def test_plan_names_the_files(episodes: Path) -> None:
    text = plan_table(planned(episodes))
    assert f"batch: 32 fragments of 1 record a trainer, which reads all of 1 file: {episodes}" in text
    assert "block" not in text


def test_paths_are_those_of_where_the_command_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    what = job(10)
    what["policies"]["default"]["episodes"] = {"files": ["some.h5"]}
    text = dump_experiment(ExperimentSpec.model_validate(what))
    monkeypatch.chdir("/")
    found = load_text(text, "spec.yaml").policies["default"].episodes
    assert found is not None
    assert found.files == (str(tmp_path / "some.h5"),)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            lambda what: what["environment"].update(rows=6),
            r"observation 'obs' is \[15\] float32 there and \[18\] float32",
        ),
        (
            lambda what: what["policies"]["default"].pop("episodes"),
            r"^policies\.default\.episodes: is missing; algorithm behaviour_cloning learns from recorded episodes: ",
        ),
        (
            lambda what: what["policies"]["default"].update(algorithm={"kind": "ppo"}),
            r"^policies\.default\.episodes: algorithm ppo learns from what its policy does; leave episodes out, or ",
        ),
        (
            lambda what: what.update(actors={"ranks": 1}),
            r"^actors\.ranks: is 1, but all that is learnt from are files of episodes, so nothing of what they play ",
        ),
        (
            lambda what: what["policies"]["default"].update(episodes={"files": ["nowhere.h5"]}),
            r"^policies\.default\.episodes: /.*/nowhere\.h5: there is no such file; ",
        ),
        (
            lambda what: what["policies"]["default"]["episodes"].update(policy="other"),
            r"^policies\.default\.episodes: .*: has no policy 'other'; known are: default$",
        ),
    ],
    ids=["spaces", "missing", "rule", "actors", "file", "policy"],
)
def test_episodes_that_cannot_be_learnt_from_are_refused(change: Any, text: str, episodes: Path) -> None:
    what = job(10, episodes)
    what["environment"] = dict(CATCH)
    change(what)
    with pytest.raises(UserError, match=text):
        prepare_plan(ExperimentSpec.model_validate(what), serial=True)


@pytest.mark.parametrize("key", ["replay", "max_policy_lag"])
def test_what_says_nothing_beside_files_is_refused(key: str, episodes: Path) -> None:
    what = job(10, episodes)
    what["policies"]["default"][key] = {} if key == "replay" else 3
    with pytest.raises(ValueError, match="is set beside episodes, which come from files, once an epoch; leave it out"):
        ExperimentSpec.model_validate(what)


def test_nobody_acting_is_refused_where_something_is_learnt_from_acting() -> None:
    what = settings(CATCH, stop={"updates": 1}, actors={"ranks": 0})
    with pytest.raises(UserError, match=r"^actors\.ranks: is 0, but policy default learns from what it does; raise it"):
        prepare_plan(ExperimentSpec.model_validate(what), serial=True)


def test_nobody_plays_the_episodes_that_would_end_the_run(episodes: Path) -> None:
    what = job(1, episodes, stop={"return_mean": 0.9})
    with pytest.raises(UserError, match=r"^stop\.return_mean: is of training episodes, and with actors\.ranks 0 "):
        prepare_plan(ExperimentSpec.model_validate(what), serial=True)


def test_settings_of_who_does_not_act_are_named(episodes: Path) -> None:
    notes = planned(episodes, actors={"ranks": 0, "ring": 3}, policy_servers={"ranks": 2}).notes
    assert "actors.ring, policy_servers: not used, since nobody acts (actors.ranks: 0)" in notes


def test_memory_for_the_files_is_asked_for_before_the_start(episodes: Path) -> None:
    plan = planned(episodes)
    with EpisodeFile(episodes) as file:
        size = file.episodes("default").size_bytes
    check_memory(plan, sum(memory_bytes(plan).values()) + size)
    with pytest.raises(UserError, match=r"^policies\.default\.episodes: are .* GB in memory, all files on each "):
        check_memory(plan, size)


def recorded_two_step(folder: Path) -> Path:
    what = settings({"factory": "two_step"}, stop={"updates": 1}, network=NETWORK)
    paths = make_run(folder, what, "player")
    run_serial(paths, make_attempt(paths, what)[0])
    record(paths, folder / "played.h5", episodes=10)
    return folder / "played.h5"


@pytest.mark.mpi
def test_one_policy_learns_from_files_while_another_acts(tmp_path: Path) -> None:
    file = recorded_two_step(tmp_path)
    what = settings({"factory": "two_step"}, stop={"updates": 4}, network=NETWORK)
    what["policies"]["cloned"] = job(1, file)["policies"]["default"] | {"batch": {"fragments": 8}}
    what["policies"]["cloned"]["episodes"]["policy"] = "default"
    what["agents"] = [{"match": "agent_0"}, {"match": "agent_1", "policy": "cloned"}]
    plan = prepare_plan(ExperimentSpec.model_validate(what))
    assert not needs_grants(plan, "cloned")
    assert plan.fed_policies == ("default",)
    assert "trainer-cloned-0" not in next(line for line in plan_table(plan).splitlines() if "actor-0" in line)
    paths = make_run(tmp_path, what)
    with ranks(paths, what) as run:
        run.wait()
        assert outcome(run.attempt)["reason"] == "updates", run.logs()


def source(file: Path, updates: int, **changes: Any) -> RecordedBatches:
    spec = ExperimentSpec.model_validate(job(10, file))
    plan = prepare_plan(spec, serial=True)
    layout = recorded_layout(plan, "default")
    first, second = (Staging(layout, 1, torch.device("cpu"), None) for _ in range(2))
    with EpisodeFile(file) as recording:
        found = recording.episodes("default").in_memory()
    how: dict[str, Any] = {"place": 0, "trainers": 1, "fragments": 32, "records": 1, "burn_in": 0, "prefetch": True}
    draws = EpochDraws(found.num_rows, 1, seed=3)
    return RecordedBatches(found, (first, second), draws, Counters(updates=updates), **how | changes)


def drawn(batches: RecordedBatches) -> list[float]:
    assert batches.serve(updating=False, starts=True)
    observations: list[float] = batches.begin().observations["obs"].flatten().tolist()
    return observations


def test_trainer_that_goes_on_goes_on_in_the_epoch(episodes: Path) -> None:
    whole = source(episodes, 0)
    before = [drawn(whole) for _ in range(3)]
    assert drawn(source(episodes, 3)) == drawn(whole)
    assert drawn(source(episodes, 0)) == before[0] != before[1]


def test_next_batch_is_drawn_beside_an_update_only_with_prefetch(episodes: Path) -> None:
    assert not source(episodes, 0, prefetch=False).serve(updating=True, starts=True)
    assert source(episodes, 0).serve(updating=True, starts=True)


def test_agents_are_in_the_game_wherever_something_was_recorded(episodes: Path) -> None:
    batches = source(episodes, 0)
    batches.serve(updating=False, starts=True)
    assert batches.begin().alive.all()


def test_state_of_other_files_is_refused(episodes: Path, tmp_path: Path) -> None:
    other = recorded_two_step(tmp_path)
    spec = source(episodes, 0).save_state()
    with EpisodeFile(other) as recording:
        rows = recording.episodes("default").num_rows
    spec["draws"]["rows"] = rows
    with pytest.raises(UserError, match=r"^the files of episodes are not those of the checkpoint: \d+ rows in "):
        source(episodes, 0).load_state(spec)


def test_normalised_observations_are_those_of_the_records(episodes: Path, tmp_path: Path) -> None:
    what = job(60, episodes)
    what["policies"]["default"]["normalize"] = {"observations": True}
    paths = make_run(tmp_path, what)
    run_serial(paths, make_attempt(paths, what)[0])
    parameters = tree_of(paths, 60)["policies"]["default"]["parameters"]
    (mean,) = (array for name, array in parameters.items() if name.endswith("mean"))
    with EpisodeFile(episodes) as recording:
        seen = recording.episodes("default").in_memory().windows(np.arange(100), 1)
    assert mean == pytest.approx(seen["obs.obs"][0][seen["valid"][0]].mean(0), abs=0.15)
    assert evaluate(paths, episodes=20)["return_mean"] > 0.0


@pytest.mark.parametrize("rule", ["dqn", "sac", "behaviour_cloning"])
def test_statistics_that_no_update_keeps_are_refused(rule: str, episodes: Path) -> None:
    what = job(1, episodes)
    policy = what["policies"]["default"]
    policy["normalize"] = {"returns": "pop_art"}
    if rule != "behaviour_cloning":
        del policy["episodes"]
        policy |= {"algorithm": {"kind": rule}, "replay": {"capacity": 1000}, "normalize": {"observations": True}}
        what["actors"] = {"ranks": 1}
    if rule == "sac":
        what["environment"] = {"factory": "synthetic", "actions": {"kind": "continuous", "size": 2}}
    kept, value = ("returns", "'pop_art'") if rule == "behaviour_cloning" else ("observations", "true")
    text = f"policies.default.normalize.{kept}: is {value}, but algorithm {rule} keeps no running statistics of {kept}"
    with pytest.raises(UserError, match=re.escape(text)):
        prepare_plan(ExperimentSpec.model_validate(what), serial=True)
