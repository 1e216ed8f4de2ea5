from __future__ import annotations

import math
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from envs import catch, gymnasium
from srlhpc.environment import ArraySpec, Discrete, Kind, Spaces, Stack
from srlhpc.errors import UserError
from srlhpc.import_path import load_module
from srlhpc.runs.processes import ProcessIdentity
from srlhpc.specs import environment_process, probe
from srlhpc.specs.child_processes import kill_marked, marked
from srlhpc.specs.named_modules import EnvironmentSettings
from srlhpc.specs.probe import probe_spaces


def module_that(path: Path, monkeypatch: pytest.MonkeyPatch, name: str, build: str) -> EnvironmentSettings:
    """Settings of an environment module with this body of `build`."""
    body = textwrap.indent(textwrap.dedent(build).strip(), "    ")
    text = f"""
from srlhpc.specs.named_modules import EnvironmentSettings

class Settings(EnvironmentSettings):
    pairs: tuple[tuple[int, int], ...] = (); options: dict = {{}}

def build(settings, num_environments, seed, render=False):
{body}
"""
    (path / "lab").mkdir()
    (path / "lab" / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(path))
    settings = load_module(f"lab.{name}", "envs").Settings
    result: EnvironmentSettings = settings(factory=f"lab.{name}", pairs=((1, 2), (3, 4)), options={"limit": math.inf})
    return result


def test_static_spaces_are_taken_without_a_subprocess(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a subprocess was started"))
    settings = catch.Settings(factory="catch")
    assert probe_spaces(settings) == settings.spaces()


def test_other_spaces_come_from_a_built_environment_in_a_subprocess() -> None:
    spaces = probe_spaces(gymnasium.Settings(factory="gymnasium", id="FrozenLake-v1", kwargs={"map_name": "8x8"}))
    assert spaces.kinds[0].actions == Discrete(4)
    assert spaces.kinds[0].observations["obs"].shape == (64,)


def test_probing_loads_no_simulator_here() -> None:
    script = (
        "import sys; from envs import gymnasium; from srlhpc.specs.probe import probe_spaces; "
        "probe_spaces(gymnasium.Settings(factory='gymnasium', id='CartPole-v1')); "
        "print([name for name in ('gymnasium', 'torch') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout.strip() == "[]"


def test_settings_of_a_users_own_module_arrive_and_prints_do_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = module_that(
        tmp_path,
        monkeypatch,
        "talkative",
        """
        print("hello from the simulator")
        assert settings.pairs == ((1, 2), (3, 4))
        assert settings.options == {"limit": float("inf")}
        from envs import catch
        return catch.build(catch.Settings(factory="catch"), num_environments, seed)
        """,
    )
    assert probe_spaces(settings) == catch.Settings(factory="catch").spaces()


def test_users_mistake_is_told_with_the_environments_name() -> None:
    with pytest.raises(UserError, match="environment 'gymnasium' cannot be built: .*'CartPol'; did you mean"):
        probe_spaces(gymnasium.Settings(factory="gymnasium", id="CartPol"))


@pytest.mark.parametrize(
    ("name", "build", "message"),
    [
        (
            "raising",
            "raise RuntimeError('no licence\\n\\n  1. buy one')",
            r"lab.raising.py:8: RuntimeError: no licence\n\n  1",
        ),
        ("deep", "import json; json.loads('{')", r"lab.deep.py:8: json.decoder.JSONDecodeError: Expecting"),
        (
            "wrapped",
            "try: 1 / 0\nexcept ArithmeticError as e: raise KeyError('a') from e",
            r"wrapped.py:9: KeyError: 'a'",
        ),
        (
            "incomplete",
            "import no_such_simulator",
            "incomplete.py:8: ModuleNotFoundError: No module named 'no_such_sim",
        ),
        ("leaving", "import sys; print('expired'); sys.exit(0)", r"leaving.py:8: sys.exit\(0\) was called"),
        (
            "dying",
            "import os; print('expired', flush=True); os._exit(7)",
            r"\(exit code 7\); the last that it wrote: expired",
        ),
        (
            "dying_in_latin_1",
            "import os; os.write(2, b'sensor at 20\\xb0C\\n'); os._exit(7)",
            r"\(exit code 7\); the last that it wrote: sensor at 20\ufffdC$",
        ),
        ("dying_well", "import os; os._exit(0)", r"it ended its process \(exit code 0\)$"),
        ("crashing", "import ctypes; ctypes.string_at(0)", r"\(signal 11 \(SIGSEGV\)\), in .*crashing.py:8$"),
        ("foreign", "return 5", "'int' object has no attribute 'spaces'"),
    ],
)
def test_environment_that_cannot_be_built_is_told_with_its_line_and_all_of_its_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, build: str, message: str
) -> None:
    settings = module_that(tmp_path, monkeypatch, name, build)
    with pytest.raises(UserError, match=f"^environment 'lab.{name}' cannot be built: .*{message}"):
        probe_spaces(settings)


def test_build_that_hangs_is_given_up_with_the_line_where_it_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    up = tmp_path / "up"
    body = f"import pathlib, threading\npathlib.Path({str(up)!r}).touch()\nthreading.Event().wait()"
    settings = module_that(tmp_path, monkeypatch, "hanging", body)
    monkeypatch.setattr(probe, "_wait", lambda *_: wait_for(up.exists))
    with pytest.raises(UserError, match=r"was not built within 5 s, in .*lab/hanging.py:10$"):
        probe_spaces(settings, timeout_seconds=5.0)


def wait_for(happened: Callable[[], object]) -> None:
    while not happened():
        time.sleep(0.01)


CATCH = "from envs import catch; environment = catch.build(catch.Settings(factory='catch'), num_environments, seed)\n"


@pytest.mark.parametrize(
    "started",
    [
        "[subprocess.Popen(['sleep', '1000'], start_new_session=new) for new in (False, True)]",
        "os.fork() or time.sleep(1000); threading.Thread(target=time.sleep, args=(1000,)).start()",
        "os.write(1, b'{}\\n'); os.write(2, b'sensor at 20\\xb0C\\n'); print('{\"error\": \"no\"}')",
    ],
)
def test_what_an_environment_leaves_running_or_says_does_not_hold_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: str
) -> None:
    body = f"import os, subprocess, threading, time\n{CATCH}{started}\nreturn environment"
    settings = module_that(tmp_path, monkeypatch, "leaving", body)
    marks = []
    monkeypatch.setattr(probe, "_EXIT_SECONDS", 0.1)
    monkeypatch.setattr(environment_process, "kill_marked", lambda *mark: marks.append(mark) or kill_marked(*mark))
    assert probe_spaces(settings) == catch.Settings(factory="catch").spaces()
    assert marked(*marks[0]) == []


@pytest.mark.parametrize(
    ("close", "said"),
    [
        (
            "raise RuntimeError('window is gone')",
            r"its close\(\) failed: .*lab.closing.py:\d+: RuntimeError: window is gone$",
        ),
        ("sys.exit(3)", r"its close\(\) failed: .*closing.py:\d+: sys.exit\(3\) was called$"),
        ("os._exit(3)", r"its process ended in close\(\) \(exit code 3\)$"),
        ("threading.Event().wait()", r"its close\(\) did not end within 0.5 s; it was killed$"),
    ],
)
def test_close_that_fails_is_worth_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, close: str, said: str
) -> None:
    body = f"import os, sys, threading\n{CATCH}def close():\n    {close}\nenvironment.close = close\nreturn environment"
    settings = module_that(tmp_path, monkeypatch, "closing", body)
    if "within" in said:
        monkeypatch.setattr(probe, "CLOSE_SECONDS", 0.5)
    assert probe_spaces(settings) == catch.Settings(factory="catch").spaces()
    assert re.search(said, caplog.messages[-1])


def test_probe_dies_with_the_process_that_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    up = tmp_path / "up"
    body = f"import pathlib, os, time\npathlib.Path({str(up)!r}).write_text(str(os.getpid()))\ntime.sleep(1000)"
    module_that(tmp_path, monkeypatch, "slow", body)
    script = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from lab import slow; "
        "from srlhpc.specs.probe import probe_spaces; probe_spaces(slow.Settings(factory='lab.slow'))"
    )
    with subprocess.Popen([sys.executable, "-c", script]) as asking:
        wait_for(lambda: up.exists() and up.read_text())
        asking.kill()
    wait_for(lambda: ProcessIdentity.of(int(up.read_text())) is None)


class NeedsMore(EnvironmentSettings):
    requires: ClassVar[dict[str, str]] = {"numpy": "core", "no_such_simulator": "atari"}


def test_missing_package_is_told_with_the_extra_that_installs_it() -> None:
    with pytest.raises(UserError, match=r"'game' needs 'no_such_simulator'.*pip install 'srlhpc\[atari\]'"):
        probe_spaces(NeedsMore(factory="game"))


class Empty(EnvironmentSettings):
    def spaces(self) -> Spaces:
        return Spaces(())


class Blind(EnvironmentSettings):
    def spaces(self) -> Spaces:
        return Spaces((Kind("mole", ("mole_0",), {"eyes": ArraySpec((0, 3), "float32")}, Discrete(2)),))


def test_spaces_without_observations_are_refused() -> None:
    with pytest.raises(UserError, match="'burrow': kind 'mole' has no observations, so its agents cannot learn"):
        probe_spaces(Blind(factory="burrow"))


class Stacked(EnvironmentSettings):
    key: str
    frames: int

    def spaces(self) -> Spaces:
        stacks = {self.key: Stack(self.frames, "zeros")}
        return Spaces((Kind("mole", ("m",), {"eyes": ArraySpec((4, 3), "uint8")}, Discrete(2), stacks=stacks),))


def test_stack_of_an_observation_is_taken() -> None:
    settings = Stacked(factory="burrow", key="eyes", frames=4)
    assert probe_spaces(settings) == settings.spaces()


@pytest.mark.parametrize(
    ("key", "frames", "message"),
    [
        ("ears", 4, "declares a stack 'ears', but has no such observation; correct `Kind.stacks`"),
        ("eyes", 3, "declares observation 'eyes' as a stack of 3 frames, but it has shape (4, 3); the first axis"),
        ("eyes", 1, "declares observation 'eyes' as a stack of 1 frames, but it has shape (4, 3); the first axis"),
    ],
)
def test_stack_that_is_no_observation_of_so_many_frames_is_refused(key: str, frames: int, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(f"environment 'burrow': kind 'mole' {message}")):
        probe_spaces(Stacked(factory="burrow", key=key, frames=frames))


class InTurn(EnvironmentSettings):
    turn_steps: int
    stacks: dict[str, int] = {}

    def spaces(self) -> Spaces:
        stacks = {key: Stack(frames, "zeros") for key, frames in self.stacks.items()}
        eyes = {"eyes": ArraySpec((4, 3), "uint8")}
        return Spaces((Kind("mole", ("m",), eyes, Discrete(2), stacks=stacks, turn_steps=self.turn_steps),))


def test_turns_are_taken_and_survive_json() -> None:
    spaces = probe_spaces(InTurn(factory="burrow", turn_steps=2))
    assert spaces.kinds[0].takes_turns
    assert Spaces.from_json(spaces.to_json()) == spaces


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"turn_steps": 0}, "declares turn_steps 0; 1: all act at every step, else more"),
        ({"turn_steps": 2, "stacks": {"eyes": 4}}, "takes turns and declares stacks of frames (eyes), which go on at"),
    ],
)
def test_turns_that_do_not_fit_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=re.escape(f"environment 'burrow': kind 'mole' {message}")):
        probe_spaces(InTurn(factory="burrow", **settings))


def test_spaces_without_agents_are_refused() -> None:
    with pytest.raises(UserError, match="'desert' has no agents"):
        probe_spaces(Empty(factory="desert"))
