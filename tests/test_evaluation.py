"""`srlhpc eval` without the command line: how a run's policies play."""

from __future__ import annotations

import io
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from srlhpc.cli.main import run_command_line
from srlhpc.errors import UserError
from srlhpc.evaluation import evaluate
from srlhpc.ranks.serial import run_serial
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.progress import ProgressLine
from tests.launch.making_runs import change_job, checkpoint, make_attempt, make_run, settings

JOB = settings({"factory": "catch", "rows": 4, "columns": 3}, stop={"updates": 2})


def trained(root: Path, job: dict[str, Any], name: str = "run") -> RunPaths:
    paths = make_run(root, job, name)
    run_serial(paths, make_attempt(paths, job)[0])
    return paths


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunPaths:
    return trained(tmp_path_factory.mktemp("runs"), JOB)


@pytest.mark.parametrize("episodes", [1, 5, 19])
def test_exactly_so_many_episodes_are_played(run: RunPaths, episodes: int) -> None:
    result = evaluate(run, episodes=episodes)
    assert result["episodes"] == len(result["returns"]) == episodes
    assert result["length_mean"] == 3


def test_result_is_that_of_the_returns(run: RunPaths) -> None:
    result = evaluate(run, episodes=12)
    returns = result["returns"]
    assert set(returns) <= {-1.0, 1.0}
    assert result["return_mean"] == pytest.approx(sum(returns) / 12)
    assert result["policies"]["default"] == pytest.approx(result["return_mean"])
    assert (result["return_min"], result["return_max"]) == (min(returns), max(returns))


def test_same_seed_gives_the_same_episodes_and_another_seed_others(run: RunPaths) -> None:
    one, two, other = (evaluate(run, episodes=40, seed=seed)["returns"] for seed in (1, 1, 2))
    assert one == two
    assert one != other


def test_newest_checkpoint_is_played_unless_one_is_named(run: RunPaths) -> None:
    assert evaluate(run, episodes=1)["updates"] == 2
    assert evaluate(run, episodes=1, checkpoint=checkpoint(run, 1))["updates"] == 1


def test_nothing_of_the_run_is_changed(run: RunPaths) -> None:
    before = {path: path.stat().st_mtime_ns for path in run.folder.rglob("*")}
    evaluate(run, episodes=3)
    assert {path: path.stat().st_mtime_ns for path in run.folder.rglob("*")} == before


def test_every_policy_plays_its_agents_with_memory_and_normalisation(tmp_path: Path) -> None:
    policy: dict[str, Any] = {
        "network": {"kind": "mlp", "hidden": [8], "recurrent": {"kind": "gru", "size": 4}},
        "algorithm": {"kind": "ppo", "minibatches": 2},
        "batch": {"fragments": 8, "fragment_steps": 8},
        "normalize": {"observations": True, "returns": True},
    }
    job = settings({"factory": "tests.scripted", "steps": [[5]], "agents": ["a", "b"]}, stop={"updates": 1})
    job |= {
        "policies": {"left": policy, "right": policy},
        "agents": [{"match": "a", "policy": "left"}, {"match": "b", "policy": "right", "train": False}],
    }
    result = evaluate(trained(tmp_path, job), episodes=3)
    assert result["policies"] == {"left": 15.0, "right": 15.0}


ENDLESS = {
    "factory": "gymnasium",
    "id": "tests.envs.counting_environments:Native-v0",
    "kwargs": {"max_episode_steps": -1},
}


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> RunPaths:
    return trained(tmp_path_factory.mktemp("endless"), settings(ENDLESS, stop={"updates": 1}))


def test_episodes_that_never_end_are_given_up_and_progress_is_shown(
    endless: RunPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("srlhpc.playing._SECONDS_BEFORE_PROGRESS", -1.0)
    shown = io.StringIO()
    result = evaluate(endless, episodes=3, max_episode_steps=40, line=ProgressLine(shown, every_seconds=0.0))
    assert (result["episodes"], result["unfinished"], result["return_mean"]) == (0, 3, None)
    lines = shown.getvalue().splitlines()
    assert [line.rpartition(" · ")[0] for line in (lines[0], lines[-1])] == [
        "0 of 3 episodes · 3 steps · the longest under way 1",
        "0 of 3 episodes · 120 steps · the longest under way 0",
    ]


def test_limit_is_that_of_the_evaluators_where_none_is_given(endless: RunPaths) -> None:
    change_job(endless, settings(ENDLESS, stop={"updates": 1}, evaluators={"max_episode_steps": 7}))
    assert evaluate(endless, episodes=1)["max_episode_steps"] == 7


def test_eval_that_gave_episodes_up_says_what_to_do_and_exits_with_1(
    endless: RunPaths, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SRLHPC_ROOT", str(endless.folder.parent))
    assert run_command_line(["eval", endless.name, "--episodes", "2", "--max-episode-steps", "5", "--json"]) == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["unfinished"] == 2
    assert "0 of 2 episodes ended; the others were given up" in said.err
    assert "after 5 steps. Allow more by --max-episode-steps" in said.err


def test_film_of_an_episode_that_never_ends_shows_it_up_to_the_limit(endless: RunPaths, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    evaluate(endless, episodes=1, max_episode_steps=6, video=tmp_path / "film.gif")
    with image.open(tmp_path / "film.gif") as film:
        assert (film.n_frames, film.size) == (7, (6, 4))


def test_run_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="run has no checkpoint yet; one is written after its first update"):
        evaluate(make_run(tmp_path, JOB), episodes=1)


def test_checkpoint_of_another_network_is_refused(tmp_path: Path) -> None:
    paths = trained(tmp_path, JOB)
    job = JOB | {"policies": {"default": JOB["policies"]["default"] | {"network": {"kind": "mlp", "hidden": [5]}}}}
    change_job(paths, job)
    differs = "'torso.layers.0.weight' is [5, 12] here and [16, 12] there (and 5 more arrays)"
    with pytest.raises(UserError, match=re.escape(f"does not fit this run's network: {differs}; name a checkpoint")):
        evaluate(paths, episodes=1)


def test_film_of_an_environment_without_pictures_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    pytest.importorskip("imageio_ffmpeg")
    paths = trained(tmp_path, settings({"factory": "recall"}, stop={"updates": 1}))
    with pytest.raises(UserError, match="draws no pictures"):
        evaluate(paths, episodes=1, video=tmp_path / "film.gif")
    assert not (tmp_path / "film.gif").exists()


@pytest.fixture(scope="module")
def blind(tmp_path_factory: pytest.TempPathFactory) -> RunPaths:
    job = settings({"factory": "gymnasium", "id": "tests.envs.blind_environments:Blind-v0"}, stop={"updates": 1})
    return trained(tmp_path_factory.mktemp("blind"), job)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Blind", "it has no `render`; let it draw bytes"),
        ("TakesNothing", "takes no render_mode, so it draws no pictures; let it take one"),
        ("Forgets", "its `render` gives None; let it draw bytes.* kept as self.render_mode"),
        ("Fails", r"its `render` failed: .*blind_environments\.py:\d+: RuntimeError: no screen; put it right"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_film_of_a_simulator_that_cannot_draw_says_why_and_what_to_do(
    name: str,
    why: str,
    blind: RunPaths,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("PIL")
    monkeypatch.setattr("srlhpc.cli.evaluate._draw_without_a_screen", lambda: None)
    monkeypatch.setenv("SRLHPC_ROOT", str(blind.folder.parent))
    monkeypatch.setattr("tests.envs.blind_environments.Blind.step", None)
    change_job(
        blind, settings({"factory": "gymnasium", "id": f"tests.envs.blind_environments:{name}-v0"}, stop={"updates": 1})
    )
    assert run_command_line(["eval", blind.name, "--video", str(tmp_path / "sheet.png")]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert re.search(f"^srlhpc: --video: .*{why}", said)
    assert not (tmp_path / "sheet.png").exists()


def test_environment_that_cannot_be_built_for_a_film_is_told_with_its_line(blind: RunPaths, tmp_path: Path) -> None:
    change_job(
        blind, settings({"factory": "gymnasium", "id": "tests.envs.blind_environments:Refuses-v0"}, stop={"updates": 1})
    )
    with pytest.raises(UserError, match=r"cannot be built so that it draws .*blind_environments\.py:\d+: ValueError"):
        evaluate(blind, episodes=1, video=tmp_path / "sheet.png")


def test_film_of_another_format_is_refused_before_anything_is_built(
    run: RunPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("envs.catch.build", None)
    with pytest.raises(UserError, match=r"must end in \.mp4 or \.gif \(a video\) or \.png"):
        evaluate(run, episodes=1, video=tmp_path / "film.avi")


def test_film_in_a_folder_that_there_is_not_is_refused(run: RunPaths, tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    with pytest.raises(UserError, match="there is no folder"):
        evaluate(run, episodes=1, video=tmp_path / "nowhere" / "sheet.png")


def test_film_without_its_packages_is_refused(run: RunPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("srlhpc.pictures.video.missing_packages", lambda needed: list(needed.items()))
    with pytest.raises(UserError, match=r"needs PIL: pip install 'srlhpc\[video\]'"):
        evaluate(run, episodes=1, video=tmp_path / "sheet.png")


def test_contact_sheet_shows_the_first_episode_only(run: RunPaths, tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    from PIL import Image

    result = evaluate(run, episodes=3, video=tmp_path / "sheet.png")
    assert result["episodes"] == 3
    # Four observations of the first episode in one row.
    with Image.open(tmp_path / "sheet.png") as image:
        width, height = image.size
    assert width > 4 * 160
    assert height < 2 * 300


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", ["film.gif", "film.mp4"])
def test_film_shows_every_step_of_every_episode(name: str, run: RunPaths, tmp_path: Path) -> None:
    pytest.importorskip("imageio_ffmpeg")
    import imageio.v2 as imageio

    evaluate(run, episodes=2, video=tmp_path / name)
    frames = imageio.mimread(tmp_path / name)
    # Two episodes of four observations.
    assert len(frames) == 8


@pytest.mark.parametrize(("screen", "driver"), [(None, "dummy"), (":0", None)])
def test_film_needs_no_screen_and_no_loudspeaker(
    screen: str | None, driver: str | None, run: RunPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("PIL")
    known = {name: value for name, value in os.environ.items() if not re.match("SDL_|DISPLAY|WAYLAND", name)}
    monkeypatch.setattr(os, "environ", known | ({"DISPLAY": screen} if screen else {}))
    arguments = ["eval", run.name, "--root", str(run.folder.parent), "--episodes", "1"]
    assert run_command_line(arguments) == 0
    assert "SDL_AUDIODRIVER" not in os.environ
    assert run_command_line([*arguments, "--video", str(tmp_path / "sheet.png")]) == 0
    assert (os.environ.get("SDL_VIDEODRIVER"), os.environ["SDL_AUDIODRIVER"]) == (driver, "dummy")
