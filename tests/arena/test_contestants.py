"""Who may play whom, found and checked before anything is played."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from srlhpc.arena.contestants import Contestant, contestants_of
from srlhpc.data.checkpoint import read_checkpoint, write_checkpoint
from srlhpc.errors import UserError
from srlhpc.runs.named_checkpoint import find_checkpoint
from srlhpc.runs.paths import RunPaths
from srlhpc.specs.experiment import ExperimentSpec
from srlhpc.specs.load import dump_experiment
from tests.arena.players import RPS, TWO_POLICIES, always, job_of, make_players
from tests.launch.making_runs import checkpoint

UNEVEN = {"factory": "tests.arena.uneven"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    make_players(root, "one", job_of(), always(0), always(1))
    make_players(root, "two", job_of(RPS, **TWO_POLICIES), always(2))
    make_players(root, "twice", job_of(RPS | {"rock_wins": 2.0}), always(0))
    make_players(root, "uneven", job_of(UNEVEN), always(0, 2))
    return root


def found(root: Path, *names: str, patterns: Sequence[str] = ()) -> list[Contestant]:
    return contestants_of([find_checkpoint(root, name) for name in names], patterns)[0]


def test_contestants_are_called_after_run_and_updates(root: Path) -> None:
    one, two = found(root, "one@1", "two")
    assert [one.name, two.name] == ["one@1", "two@1"]
    assert [list(one.policies), list(two.policies)] == [["default"], ["left", "right"]]


def test_file_outside_of_its_run_plays_by_the_spec_that_is_in_it(root: Path, tmp_path: Path) -> None:
    kept = shutil.copy(checkpoint(RunPaths(root / "one"), 1), tmp_path / "kept.h5")
    assert [player.name for player in found(root, str(kept), "one@1")] == ["kept.h5", "one@1"]


def test_files_of_equal_names_are_called_by_their_paths(root: Path, tmp_path: Path) -> None:
    copies = []
    for updates in (1, 2):
        (tmp_path / str(updates)).mkdir()
        copies.append(shutil.copy(checkpoint(RunPaths(root / "one"), updates), tmp_path / str(updates) / "best.h5"))
    assert [player.name for player in found(root, *map(str, copies))] == [str(copy) for copy in copies]


def test_only_player_is_refused(root: Path) -> None:
    with pytest.raises(UserError, match=r"one@2 is the only player; name another run, an earlier .*RUN@UPDATES"):
        found(root, "one")


def test_same_checkpoint_twice_is_refused(root: Path) -> None:
    with pytest.raises(UserError, match=r"updates-000000002\.h5 is meant twice; name each checkpoint once"):
        found(root, "one", "one@2")


def test_other_environment_and_other_settings_are_refused(root: Path) -> None:
    message = "environment.factory: is tests.arena.uneven in uneven@1 and rock_paper_scissors in one@1; they cannot"
    with pytest.raises(UserError, match=message):
        found(root, "one@1", "uneven")
    with pytest.raises(UserError, match=r"environment\.rock_wins: is 2\.0 in twice@1 and 1\.0 in one@1"):
        found(root, "one@1", "twice")


def test_other_spaces_are_refused(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "one", tmp_path / "one")
    shutil.copytree(root / "one", tmp_path / "older")
    spaces = RunPaths(tmp_path / "older").attempt(1).spaces
    spaces.write_text(spaces.read_text().replace('"choices": 3', '"choices": 4'))
    with pytest.raises(UserError, match=r"older@2 was trained with agent \(agent_0, agent_1\): obs \(1,\), Discrete"):
        found(tmp_path, "one", "older")


def test_other_sides_are_refused(tmp_path: Path) -> None:
    entries = [
        [{"match": "lone", "policy": "default"}, {"match": ".*", "policy": "default"}],
        [{"match": "pack_0", "policy": "default"}, {"match": ".*", "policy": "default"}],
    ]
    for name, agents in zip(("mine", "yours"), entries, strict=True):
        make_players(tmp_path, name, job_of(UNEVEN, agents=agents), always(0, 2))
    message = (
        r"yours@1 has the sides pack_0 \(pack_0\) and \.\* \(lone, pack_1\), mine@1 has lone \(lone\) and .*--side"
    )
    with pytest.raises(UserError, match=message):
        found(tmp_path, "mine", "yours")
    assert found(tmp_path, "mine", "yours", patterns=["lone", "pack_.*"])


def test_file_is_refused_elsewhere_only_if_its_runs_folder_has_the_weights(root: Path, tmp_path: Path) -> None:
    job = job_of()
    weights = {"weights_from": str(checkpoint(RunPaths(root / "one"), 1))}
    spec = ExperimentSpec.model_validate(job | {"policies": {"default": job["policies"]["default"] | weights}})
    meta = {"updates": 3, "spec": dump_experiment(spec)}
    write_checkpoint(tmp_path / "kept.h5", {"meta": meta, "policies": {}})
    with pytest.raises(UserError, match=r"kept\.h5: policy 'default' plays with weights that lie in its run's folder"):
        found(root, "one", str(tmp_path / "kept.h5"))
    # What it began with does not matter where the file holds what became of it.
    policies = read_checkpoint(checkpoint(RunPaths(root / "two"), 1))["policies"]
    write_checkpoint(tmp_path / "kept.h5", {"meta": meta, "policies": {"default": policies["left"]}})
    _, kept = found(root, "one", str(tmp_path / "kept.h5"))
    played = kept.policies["default"].state_dict()["policy_head.linear.bias"]
    assert played.tolist() == policies["left"]["parameters"]["policy_head.linear.bias"].tolist()


def test_file_that_does_not_say_what_it_was_trained_on_is_refused_outside_of_its_run(
    root: Path, tmp_path: Path
) -> None:
    write_checkpoint(tmp_path / "kept.h5", {"meta": {"updates": 3}, "policies": {}})
    with pytest.raises(UserError, match=r"kept\.h5: does not say what it was trained on; name a checkpoint in its run"):
        found(root, "one", str(tmp_path / "kept.h5"))
