from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from envs._returned_values import SimulatorError
from envs.vizdoom import Settings, build, shrunk
from srlhpc.environment import Environment, KindStep
from srlhpc.errors import UserError
from srlhpc.specs.child_processes import children
from tests.environment_conformance import EnvironmentConformance

vizdoom = pytest.importorskip("vizdoom")


class TestGreyStack(EnvironmentConformance):
    settings = {"factory": "vizdoom", "scenario": "basic", "config": {"episode_timeout": 41}, "variables": ["AMMO2"]}
    num_environments = 2
    steps = 40


class TestColourOfTwoChoices(EnvironmentConformance):
    settings = {
        "factory": "vizdoom",
        "scenario": "health_gathering",
        "config": {"episode_timeout": 60},
        "actions": "groups",
        "colour": True,
        "stack": 2,
    }
    num_environments = 2
    steps = 40


@pytest.fixture
def make() -> Iterator[Callable[..., Environment]]:
    made: list[Environment] = []

    def _make(num_environments: int = 1, render: bool = False, **chosen: Any) -> Environment:
        made.append(build(Settings(factory="vizdoom", **chosen), num_environments, 0, render))
        return made[-1]

    yield _make
    for environment in made:
        environment.close()


def play(environment: Environment, action: Any) -> KindStep:
    return environment.step({"agent": np.full((environment.num_environments, 1), action)}).kinds["agent"]


def by_hand(scenario: str, seed: int, folder: Path) -> Any:
    """The package's own game, started as an environment of ours starts its first one; its own limit is on."""
    doom = vizdoom.DoomGame()
    doom.load_config(f"{vizdoom.scenarios_path}/{scenario}.cfg")
    doom.set_window_visible(False)
    doom.set_screen_resolution(vizdoom.ScreenResolution.RES_160X120)
    doom.set_screen_format(vizdoom.ScreenFormat.GRAY8)
    doom.set_doom_config_path(str(folder / "engine.ini"))
    doom.init()
    doom.set_seed(int(np.random.SeedSequence(seed).generate_state(1)[0]))
    doom.new_episode()
    return doom


def engines() -> list[int]:
    """Engines that this process has started."""
    return [pid for pid in sorted(children()) if identity(pid)]


def identity(pid: int) -> str:
    """What an engine calls itself and what it shares; empty for other processes."""
    words = [*Path(f"/proc/{pid}/cmdline").read_text().split("\0"), "", ""]
    return dict(zip(words, words[1:], strict=False)).get("+viz_instance_id", "")


def shared_by(identities: list[str]) -> list[Path]:
    return [file for name in identities for file in Path("/dev/shm").glob(f"ViZDoom*{name}")]


def until(holds: Callable[[], bool]) -> None:
    while not holds():
        time.sleep(0.01)


def test_records_are_those_of_the_package_stepped_by_hand(
    make: Callable[..., Environment], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ours = make(scenario="basic", stack=2, shrink=1, frame_skip=7)
    alone, random = by_hand("basic", 3, tmp_path), np.random.default_rng(0)
    now, ends = ours.reset(3).kinds["agent"], set()
    before = alone.get_state().screen_buffer
    np.testing.assert_array_equal(now.observations["obs"][0, 0], [before, before])
    for _ in range(150):
        choice = int(random.integers(4))
        reward = alone.make_action([float(choice == button + 1) for button in range(3)], 7)
        now = play(ours, choice)
        assert now.rewards.item() == reward
        assert now.truncated.item() == alone.is_episode_timeout_reached()
        assert now.terminated.item() == (alone.is_episode_finished() and not alone.is_episode_timeout_reached())
        frames = now.observations["obs"][0, 0]
        np.testing.assert_array_equal(frames[0], before)
        if not alone.is_episode_finished():
            before = alone.get_state().screen_buffer
            np.testing.assert_array_equal(frames[1], before)
            continue
        ends.add("limit" if now.truncated else "exit")
        # Where the package shows nothing: a frame of its own at the limit, else the one before.
        assert np.array_equal(frames[1], before) == now.terminated.item()
        alone.new_episode()
        before = alone.get_state().screen_buffer
        now = play(ours, 1)
        assert now.first.item()
        np.testing.assert_array_equal(now.observations["obs"][0, 0], [before, before])
    alone.close()
    assert ends == {"limit", "exit"}


def test_limit_shows_the_frame_that_a_game_without_it_goes_on_from(make: Callable[..., Environment]) -> None:
    chosen: dict[str, Any] = {"scenario": "health_gathering", "stack": 1, "frame_skip": 10}
    cut, free = make(config={"episode_timeout": 25}, **chosen), make(config={"episode_timeout": 0}, **chosen)
    cut.reset(5), free.reset(5)
    for length in (10, 10, 5):
        now = play(cut, 1)
        assert now.rewards.item() == length
    assert (now.truncated.item(), now.terminated.item()) == (True, False)
    free._tics = 5  # type: ignore[attr-defined]
    for _ in range(5):
        other = play(free, 1)
    np.testing.assert_array_equal(now.observations["obs"], other.observations["obs"])
    assert other.valid.item()


def test_death_is_a_termination(make: Callable[..., Environment]) -> None:
    environment = make(scenario="health_gathering", frame_skip=35, variables=["HEALTH"])
    now, seen = environment.reset(0).kinds["agent"], [100.0]
    while not now.terminated.item():
        seen.append(now.observations["variables"].item())
        now = play(environment, 0)
        assert not now.truncated.item()
    assert now.rewards.item() < 0
    assert seen == sorted(seen, reverse=True)
    assert now.observations["variables"].item() == seen[-1]


def test_dead_engine_is_explained(make: Callable[..., Environment]) -> None:
    environment = make(2, scenario="basic")
    environment.reset(0)
    os.kill(engines()[1], signal.SIGKILL)
    with pytest.raises(SimulatorError, match="environment 1: ViZDoom's engine.*`dmesg`.*`srlhpc resume`"):
        play(environment, 0)


def test_engines_play_on_after_signals_that_end_a_run(make: Callable[..., Environment]) -> None:
    environment = make(scenario="basic")
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(engines()[0], number)
    for _ in range(3):
        assert play(environment, 0).valid.item()


def test_nothing_is_left_of_a_process_that_is_killed(tmp_path: Path) -> None:
    script = (
        "import time; from envs.vizdoom import Settings, build; from srlhpc.specs.child_processes import children; "
        "environment = build(Settings(factory='vizdoom', scenario='basic'), 2, 0); "
        "print(*children(), flush=True); time.sleep(600)"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment) as killed:
        assert killed.stdout is not None
        pids = [int(pid) for pid in killed.stdout.readline().split()]
        identities = [identity(pid) for pid in pids if identity(pid)]
        assert (len(pids), len(identities), len(shared_by(identities))) == (3, 2, 6)
        assert list(tmp_path.iterdir())
        killed.kill()
    # The last that the guard does.
    until(lambda: not list(tmp_path.iterdir()))
    assert not shared_by(identities)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def test_nothing_is_left_after_close_and_nothing_is_written_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = children()
    environment = build(Settings(factory="vizdoom", scenario="basic"), 1, 0)
    assert len(children() - before) == 2
    play(environment, 0)
    environment.close()
    assert Path.cwd() == tmp_path
    assert not list(tmp_path.iterdir())
    assert children() == before


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"scenario": "basik"}, "environment.scenario: ViZDoom has no 'basik'; did you mean 'basic'"),
        ({"scenario": "maps/mine.cfg"}, "there is no file .*maps/mine.cfg"),
        ({"scenario": "doom2"}, "ViZDoom does not start: FileDoesNotExistException: .*doom2.wad"),
        ({"scenario": "basic", "resolution": "84x84"}, "has no 84x84; it has 160x120, "),
        ({"scenario": "basic", "shrink": 7}, "7 does not divide 160 and 120"),
        ({"scenario": "basic", "variables": ["HELTH"]}, "no 'HELTH'; did you mean 'HEALTH'"),
        ({"scenario": "basic", "config": {"doom_skil": 3}}, "environment.config: is not understood.*doom_skil"),
        ({"scenario": "basic", "config": {"screen_format": "GRAY8"}}, "write environment.colour"),
        ({"scenario": "deathmatch"}, "environment.deltas: button LOOK_UP_DOWN_DELTA takes any number"),
    ],
)
def test_what_there_is_not_is_refused_with_what_there_is(chosen: dict[str, Any], message: str) -> None:
    before = children()
    with pytest.raises(UserError, match=message):
        build(Settings(factory="vizdoom", **chosen), 1, 0)
    assert children() == before


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("", "has no available_buttons"),
        ("available_buttons = { ATTACK FIRE }", "is not understood by ViZDoom: WARNING.*fire"),
        ("available_buttons = { ATTACK }\ngame_args += -host 2", "for several players"),
    ],
)
def test_file_that_cannot_be_played_is_refused(tmp_path: Path, lines: str, message: str) -> None:
    file = tmp_path / "mine.cfg"
    file.write_text(lines)
    with pytest.raises(UserError, match=message):
        build(Settings(factory="vizdoom", scenario=str(file)), 1, 0)


def test_scenario_of_ones_own_is_played(
    make: Callable[..., Environment], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "maps").mkdir()
    shutil.copy(f"{vizdoom.scenarios_path}/basic.wad", tmp_path / "maps")
    (tmp_path / "mine.cfg").write_text(
        "doom_scenario_path = maps/basic.wad\nepisode_timeout = 12\navailable_buttons = { ATTACK }\nliving_reward = 2\n"
    )
    monkeypatch.chdir(tmp_path)
    environment = make(scenario="mine.cfg")
    environment.reset(0)
    assert [play(environment, 0).rewards.item() for _ in range(3)] == [8.0, 8.0, 8.0]
    assert environment.spaces.kinds[0].actions.mask_size == 2


def test_squares_of_pixels_become_their_mean() -> None:
    frame = np.array([[[0, 1, 255, 255], [1, 0, 255, 254]]], np.uint8)
    assert shrunk(frame, 2).tolist() == [[[1, 255]]]
    assert shrunk(np.full((3, 32, 16), 255, np.uint8), 16).tolist() == [[[255], [255]]] * 3


def test_render_gives_a_picture_only_when_asked(make: Callable[..., Environment]) -> None:
    quiet, drawing = make(scenario="basic"), make(scenario="basic", render=True, colour=True)
    assert quiet.render() is None
    picture = drawing.render()
    assert picture is not None
    assert (picture.shape, picture.dtype) == ((120, 160, 3), np.uint8)
    assert drawing.render_fps == 35 / 4
