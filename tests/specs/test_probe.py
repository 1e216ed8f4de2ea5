from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import ClassVar

import pytest

from envs import catch, gymnasium
from srlhpc.environment import Discrete, Spaces
from srlhpc.objects import UserError, load_module
from srlhpc.specs.modules import EnvironmentSettings
from srlhpc.specs.probe import probe_spaces


def module_that(path: Path, monkeypatch: pytest.MonkeyPatch, name: str, build: str) -> EnvironmentSettings:
    """Settings of an environment module with this body of `build`."""
    body = textwrap.indent(textwrap.dedent(build).strip(), "    ")
    text = f"""
from srlhpc.specs.modules import EnvironmentSettings

class Settings(EnvironmentSettings):
    pairs: tuple[tuple[int, int], ...] = ()

def build(settings, copies, seed, render=False):
{body}
"""
    (path / "lab").mkdir()
    (path / "lab" / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(path))
    settings = load_module(f"lab.{name}", "envs").Settings
    result: EnvironmentSettings = settings(factory=f"lab.{name}", pairs=((1, 2), (3, 4)))
    return result


def test_static_spaces_are_taken_without_a_subprocess(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a subprocess was started"))
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
        from envs import catch
        return catch.build(catch.Settings(factory="catch"), copies, seed)
        """,
    )
    assert probe_spaces(settings) == catch.Settings(factory="catch").spaces()


def test_users_mistake_is_told_with_the_environments_name() -> None:
    with pytest.raises(UserError, match="environment 'gymnasium' cannot be built: .*'CartPol'; did you mean"):
        probe_spaces(gymnasium.Settings(factory="gymnasium", id="CartPol"))


@pytest.mark.parametrize(
    ("name", "build", "message"),
    [
        ("raising", "raise RuntimeError('no licence')", "RuntimeError: no licence"),
        ("dying", "import os; os._exit(7)", r"\(exit code 7\): no message"),
        ("incomplete", "import no_such_simulator", "No module named 'no_such_simulator'"),
    ],
)
def test_crash_is_told_with_the_last_line_of_its_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, build: str, message: str
) -> None:
    settings = module_that(tmp_path, monkeypatch, name, build)
    with pytest.raises(UserError, match=f"environment 'lab.{name}' cannot be built .*{message}"):
        probe_spaces(settings)


def test_build_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = module_that(tmp_path, monkeypatch, "hanging", "import threading; threading.Event().wait()")
    with pytest.raises(UserError, match="was not built within 0.5 s"):
        probe_spaces(settings, timeout_seconds=0.5)


class NeedsMore(EnvironmentSettings):
    requires: ClassVar[dict[str, str]] = {"numpy": "core", "no_such_simulator": "atari"}


def test_missing_package_is_told_with_the_extra_that_installs_it() -> None:
    with pytest.raises(UserError, match=r"'game' needs 'no_such_simulator'.*pip install 'srlhpc\[atari\]'"):
        probe_spaces(NeedsMore(factory="game"))


class Empty(EnvironmentSettings):
    def spaces(self) -> Spaces:
        return Spaces(())


def test_spaces_without_agents_are_refused() -> None:
    with pytest.raises(UserError, match="'desert' has no agents"):
        probe_spaces(Empty(factory="desert"))
