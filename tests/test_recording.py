"""`srlhpc record`: what a run's policies do in whole episodes, in a file."""

from __future__ import annotations

import io
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import yaml

from srlhpc.cli.main import run_command_line
from srlhpc.data.episode_file import EpisodeFile
from srlhpc.errors import UserError
from srlhpc.evaluation import evaluate
from srlhpc.recording import record
from srlhpc.roles.acting.player import Player
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.progress import ProgressLine
from tests.launch.making_runs import change_job, settings
from tests.test_evaluation import JOB, trained

ROOT = Path(__file__).parents[1]
POLE = settings({"factory": "gymnasium", "id": "CartPole-v1"}, stop={"updates": 1})


@pytest.fixture(scope="module")
def pole(tmp_path_factory: pytest.TempPathFactory) -> RunPaths:
    return trained(tmp_path_factory.mktemp("runs"), POLE)


@pytest.fixture(scope="module")
def catch(tmp_path_factory: pytest.TempPathFactory) -> RunPaths:
    return trained(tmp_path_factory.mktemp("runs"), JOB)


@pytest.mark.parametrize("episodes", [1, 5, 19])
def test_episodes_are_exactly_those_of_an_evaluation(episodes: int, pole: RunPaths, tmp_path: Path) -> None:
    path = tmp_path / "file.h5"
    result, expected = record(pole, path, episodes=episodes, seed=3), evaluate(pole, episodes=episodes, seed=3)
    assert {name: result.pop(name) for name in ("records", "bytes", "file")} == {
        "records": sum(expected["returns"]),
        "bytes": path.stat().st_size,
        "file": str(path),
    }
    assert result == expected
    with EpisodeFile(path) as file:
        found = file.episodes("default")
    assert (found.num_episodes, found.num_records) == (episodes, result["return_mean"] * episodes)
    assert found.returns.tolist() == expected["returns"]


def test_recording_is_read_with_h5py_alone_as_the_documents_say(pole: RunPaths, tmp_path: Path) -> None:
    document = (ROOT / "docs" / "recording.md").read_text()
    (code,) = re.findall(r"```python\n(import h5py\n.*?)```", document, re.DOTALL)
    assert 'h5py.File("episodes.h5")' in code
    result = record(pole, tmp_path / "episodes.h5", episodes=10)
    found: dict[str, Any] = {}
    exec(code.replace("episodes.h5", str(tmp_path / "episodes.h5")), found)
    # The fourth episode.
    assert len(found["rewards"]) == found["rewards"].sum() == result["returns"][3] == len(found["observations"]) - 1


def test_observations_follow_each_other_and_the_last_one_is_the_real_last(pole: RunPaths, tmp_path: Path) -> None:
    import gymnasium

    record(pole, tmp_path / "file.h5", episodes=4)
    with h5py.File(tmp_path / "file.h5") as file:
        policy = file["policies/default"]
        offsets, seen = policy["offsets"][:], policy["records/obs.obs"][:]
        actions, terminated = policy["records/actions"][:], policy["records/terminated"][:]
    simulator = gymnasium.make("CartPole-v1").unwrapped
    simulator.reset(seed=0)
    for begin, end in zip(offsets[:-1], offsets[1:], strict=True):
        assert terminated[begin:end].tolist() == [False] * (end - begin - 2) + [True, False]
        for t in range(begin, end - 1):
            simulator.state = seen[t].astype(np.float64)
            simulator.steps_beyond_terminated = None
            after, _, ended, _, _ = simulator.step(int(actions[t]))
            np.testing.assert_allclose(seen[t + 1], after, rtol=1e-5, atol=1e-6)
            assert ended == terminated[t]


def test_what_is_said_of_a_file(pole: RunPaths, tmp_path: Path) -> None:
    record(pole, tmp_path / "file.h5", episodes=1, seed=7)
    with EpisodeFile(tmp_path / "file.h5") as file:
        said = file.attributes
        assert file.episodes("default").fields.keys() >= {"out.value", "log_probs"}
    assert json.loads(said["environment"])["id"] == "CartPole-v1"
    assert (said["run"], said["run_name"], said["updates"]) == (pole.id, "run", 1)
    assert (said["seed"], bool(said["exploring"]), said["checkpoint"]) == (7, False, "updates-000000001.h5")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", said["time"])
    assert said["srlhpc"]


def recorded(paths: RunPaths, path: Path, **options: Any) -> dict[str, np.ndarray]:
    """All rows of the policy `default`."""
    record(paths, path, episodes=6, **options)
    with h5py.File(path) as file:
        return {name: array[:] for name, array in file["policies/default/records"].items()}


def test_policies_draw_their_actions_where_they_explore(pole: RunPaths, tmp_path: Path) -> None:
    still, drawn, again, other = (
        recorded(pole, tmp_path / f"{place}.h5", exploring=exploring, seed=seed)
        for place, (exploring, seed) in enumerate([(False, 1), (True, 1), (True, 1), (True, 2)])
    )
    likely = {name: np.exp(rows["log_probs"][rows["log_probs"] < 0]) for name, rows in (("0", still), ("1", drawn))}
    # The mode of two actions is never the less likely one.
    assert likely["0"].min() >= 0.5 > likely["1"].min()
    np.testing.assert_array_equal(drawn["actions"], again["actions"])
    assert drawn["actions"].tolist() != other["actions"].tolist()


def test_exploration_is_that_of_the_trained_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = {"kind": "dqn", "exploration": {"kind": "epsilon", "value": {"start": 1.0, "end": 0.0, "steps": 1000}}}
    replay = {"capacity": 400, "samples_per_insert": 4.0, "start_steps": 32, "block_steps": 8}
    batch = {"fragments": 8, "fragment_steps": 1}
    job = settings(JOB["environment"], stop={"updates": 40}, algorithm=rule, replay=replay, batch=batch)
    run = trained(tmp_path, job)
    told: list[dict[str, Any]] = []

    class Told(Player):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            told.append({name: np.asarray(value).tolist() for name, value in named["exploration"].items()})
            super().__init__(*arguments, **named)

    monkeypatch.setattr("srlhpc.playing.Player", Told)
    for exploring in (False, True):
        rows = recorded(run, tmp_path / f"{exploring}.h5", exploring=exploring)
        assert {"out.q_taken", "out.q_max"} <= rows.keys()
    with h5py.File(sorted(run.checkpoints.glob("*.h5"))[-1]) as file:
        steps = int(file["policies/default/counters/steps"][()])
    assert told[0] == {"epsilon": 0.0}
    assert 0 < steps < 1000
    assert told[1]["epsilon"] == [pytest.approx(1 - steps / 1000)] * 6


def test_every_agent_of_every_policy_is_recorded(tmp_path: Path) -> None:
    job = settings({"factory": "tests.scripted", "steps": [[5], [3]], "agents": ["a", "b", "c"]}, stop={"updates": 1})
    policy = job["policies"]["default"]
    job |= {
        "policies": {"left": policy, "right": policy},
        "agents": [{"match": "b", "policy": "left"}, {"match": ".*", "policy": "right", "train": False}],
    }
    record(trained(tmp_path, job), tmp_path / "file.h5", episodes=3)
    with EpisodeFile(tmp_path / "file.h5") as file:
        left, right = file.episodes("left"), file.episodes("right")
        assert (left.agents.tolist(), left.episodes.tolist()) == ([1, 1, 1], [0, 1, 2])
        assert (right.agents.tolist(), right.episodes.tolist()) == ([0, 2, 0, 2, 0, 2], [0, 0, 1, 1, 2, 2])
        for found in (left, right):
            rewards = found.fields["rewards"].entries[:]
            sums = np.add.reduceat(rewards.astype(np.float64), found.offsets[:-1])
            np.testing.assert_array_equal(sums, found.returns)
            # Agents see their own number.
            seen = found.fields["obs.obs"].entries[:][found.offsets[:-1], 2]
            assert seen.tolist() == (found.agents + 1).tolist()


def test_stacks_of_atari_are_rebuilt_as_acting_saw_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ale_py")
    job = settings(
        {"factory": "atari", "game": "pong", "max_frames": 160},
        stop={"updates": 1},
        network={"kind": "nature_cnn"},
        batch={"fragments": 2, "fragment_steps": 2},
        actors={"ranks": 1, "ring": 1, "environments": 2},
    )
    run = trained(tmp_path, job)
    seen: list[np.ndarray] = []
    act = Player.act

    def watched(self: Player, step: Any, actions: Any) -> None:
        seen.append(step.observations["obs"][:, 0].copy())
        act(self, step, actions)

    monkeypatch.setattr(Player, "act", watched)
    record(run, tmp_path / "file.h5", episodes=2)
    with EpisodeFile(tmp_path / "file.h5") as file:
        found = file.episodes("default")
        lengths = np.diff(found.offsets)
        assert found.num_sequences == 2
        assert lengths.min() > 20
        # Each frame once, and three before each episode.
        assert found.fields["obs.obs"].entries.shape == (lengths.sum() + 6, 84, 84)
        for env, (begin, rows) in enumerate(zip(found.offsets[:-1], lengths, strict=True)):
            stacks = found.windows(np.array([begin]), int(rows) - 1)["obs.obs"][:-1, 0]
            np.testing.assert_array_equal(stacks, [step[env] for step in seen[: rows - 1]])
            assert len({frame.tobytes() for frame in stacks[:, -1]}) > 10


def test_a_run_of_another_environment_does_not_fit(catch: RunPaths, pole: RunPaths, tmp_path: Path) -> None:
    from srlhpc.playing import plan_of

    record(pole, tmp_path / "file.h5", episodes=1)
    with EpisodeFile(tmp_path / "file.h5") as file:
        file.episodes("default", plan_of(pole).spaces.kinds[0])
        with pytest.raises(UserError, match=r"file\.h5, policy 'default' does not fit the environment: observation"):
            file.episodes("default", plan_of(catch).spaces.kinds[0])


# --- the command line ------------------------------------------------------------------------------------------------


@pytest.fixture
def command(pole: RunPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """`srlhpc record RUN --episodes 3 ...` in an empty folder."""
    monkeypatch.setenv("SRLHPC_ROOT", str(pole.folder.parent))
    monkeypatch.chdir(tmp_path)
    return lambda *options: run_command_line(["record", pole.name, "--episodes", "3", *options])


def test_command_says_what_it_wrote(command: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--out", "file.h5") == 0
    said = capsys.readouterr()
    assert re.search(r"^wrote file\.h5, \d+ KB$", said.err, re.MULTILINE)
    lines = said.out.splitlines()
    assert lines[0] == "run, updates-000000001.h5"
    names = [line.strip().partition(":")[0] for line in lines[1:]]
    assert names[:4] == ["updates", "episodes", "return_mean", "return_std"]
    assert {"records", "bytes"} <= set(names)


def test_command_gives_json_as_eval_does(command: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--out", "file.h5", "--json", "--exploring", "--seed", "4") == 0
    result = json.loads(capsys.readouterr().out)
    assert run_command_line(["eval", result["name"], "--episodes", "3", "--json"]) == 0
    evaluated = json.loads(capsys.readouterr().out)
    assert result.keys() - evaluated.keys() == {"records", "bytes", "file"}
    assert (result["run"], result["file"], result["episodes"]) == (evaluated["run"], "file.h5", 3)
    with h5py.File("file.h5") as file:
        assert (int(file.attrs["seed"]), bool(file.attrs["exploring"])) == (4, True)


def test_file_that_exists_is_replaced_by_force_alone(
    command: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file.h5").write_text("mine")
    assert command("--out", "file.h5") == 2
    assert "srlhpc: --out file.h5: exists; replace it by --force, or choose another" in capsys.readouterr().err
    assert (tmp_path / "file.h5").read_text() == "mine"
    assert command("--out", "file.h5", "--force") == 0
    EpisodeFile(tmp_path / "file.h5").close()


def test_file_that_cannot_be_written_is_refused_before_anything_is_played(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("srlhpc.recording.staged", None)
    assert command("--out", "nowhere/file.h5") == 2
    assert re.search(r"--out nowhere/file\.h5: there is no folder .*nowhere; make it first", capsys.readouterr().err)
    assert command("--out", ".", "--force") == 2
    assert "--out .: is a folder; name a file in it, for example episodes.h5" in capsys.readouterr().err
    assert command("--out", "/dev/null", "--force") == 2
    assert "--out /dev/null: is a device or a pipe, which the recording would replace" in capsys.readouterr().err


def test_full_disk_is_told_in_words_and_nothing_stays(
    command: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("srlhpc.data.full_disk.free_bytes", lambda _folder: 1000)
    assert command("--out", "file.h5") == 2
    assert re.search(
        r"^srlhpc: file\.h5: the recording cannot be written: the disk is full \(No space left on device\): 1000 bytes "
        r"free in .*; make room there, or choose another place by --out$",
        capsys.readouterr().err,
        re.MULTILINE,
    )
    assert list(tmp_path.iterdir()) == []


def test_what_an_environment_raises_is_not_taken_for_the_disk(
    pole: RunPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("srlhpc.playing.Stage.advance", fail)
    with pytest.raises(OSError, match="No space left") as failed:
        record(pole, tmp_path / "file.h5", episodes=1)
    assert not isinstance(failed.value, UserError)
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_leaves_no_file_and_says_so(
    command: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: Any, *_: Any) -> None:
        assert [path.suffix for path in tmp_path.iterdir()] == [".writing"]
        raise KeyboardInterrupt

    monkeypatch.setattr("srlhpc.roles.acting.episode_recorder.EpisodeRecorder.finish", interrupt)
    assert command("--out", "file.h5") == 130
    assert "stopped; file.h5 was not written" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_recording_that_was_killed_is_not_there(tmp_path: Path) -> None:
    program = f"""
from pathlib import Path
from tests.data.recorded import write
class Endless:
    def __iter__(self):
        print("writing", flush=True)
        while True:
            yield 100
write(Path({str(tmp_path / "file.h5")!r}), Endless())
"""
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        process.kill()
        assert process.wait() == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == [f".file.h5.{process.pid}.writing"]


def test_episodes_that_were_given_up_are_not_in_the_file(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = settings({"factory": "tests.scripted", "steps": [[3], [50]]}, stop={"updates": 1})
    run = trained(tmp_path_factory.mktemp("runs"), job)
    arguments = ["record", run.name, "--root", str(run.folder.parent), "--out", str(tmp_path / "file.h5")]
    assert run_command_line([*arguments, "--episodes", "4", "--max-episode-steps", "20"]) == 1
    assert "2 of 4 episodes ended; the others were given up" in capsys.readouterr().err
    with EpisodeFile(tmp_path / "file.h5") as file:
        assert np.diff(file.episodes("default").offsets).tolist() == [4, 4]


def test_not_one_episode_is_no_recording(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    job = settings({"factory": "tests.scripted", "steps": [[10]]}, stop={"updates": 1})
    run = trained(tmp_path_factory.mktemp("runs"), job)
    with pytest.raises(UserError, match="no episode ended within 9 steps, so nothing was recorded; allow more by"):
        record(run, tmp_path / "file.h5", episodes=2, max_episode_steps=9)
    assert list(tmp_path.iterdir()) == []


def test_progress_is_shown_as_in_an_evaluation(pole: RunPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("srlhpc.playing._SECONDS_BEFORE_PROGRESS", -1.0)
    shown = io.StringIO()
    record(pole, tmp_path / "file.h5", episodes=2, line=ProgressLine(shown, every_seconds=0.0))
    assert shown.getvalue().startswith("0 of 2 episodes · 2 steps · the longest under way 1 · ")


def test_environment_of_a_file_can_be_built_again(catch: RunPaths, tmp_path: Path) -> None:
    record(catch, tmp_path / "file.h5", episodes=1)
    with EpisodeFile(tmp_path / "file.h5") as file:
        job = JOB | {"environment": yaml.safe_load(file.attributes["environment"])}
    change_job(catch, job)
    assert evaluate(catch, episodes=1)["episodes"] == 1
