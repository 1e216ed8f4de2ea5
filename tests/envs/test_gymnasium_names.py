"""An id that Gymnasium does not know is answered by what to write instead."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest

from envs import _gymnasium_names
from envs._gymnasium_names import HOMES, Home
from envs.gymnasium import Settings, build
from srlhpc.errors import UserError
from srlhpc.specs.probe import probe_spaces

REGISTERS = """
from gymnasium import Env, register, spaces

class Toy(Env):
    observation_space = action_space = spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        return 0, {}

for id in ("Trilevel-Empty-8x8-v0", "Trilevel-Door-v0", "Knot-v3"):
    register(id, Toy)
"""


def answer(name: str) -> str:
    with pytest.raises(UserError) as refused:
        build(Settings(factory="gymnasium", id=name), 1, 0)
    return str(refused.value)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of an installed package `trilevel`, whose import registers environments that no other test knows."""
    package, facts = tmp_path / "trilevel", tmp_path / "tri_grid-1.0.dist-info"
    package.mkdir()
    facts.mkdir()
    (package / "__init__.py").write_text(REGISTERS)
    (facts / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: tri-grid\nVersion: 1.0\nRequires-Dist: gymnasium>=1\n"
    )
    (facts / "top_level.txt").write_text("trilevel\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(gymnasium.envs.registration, "registry", registry := dict(gymnasium.registry))
    monkeypatch.setattr(gymnasium, "registry", registry)
    yield package
    for name in [name for name in sys.modules if name.partition(".")[0] == "trilevel"]:
        del sys.modules[name]


def give_home(monkeypatch: pytest.MonkeyPatch, module: str = "trilevel") -> None:
    homes = (Home(module, "tri-grid", "Trilevel-"), *HOMES)
    monkeypatch.setattr(_gymnasium_names, "HOMES", homes)


@pytest.mark.filterwarnings("ignore:.*out of date")
@pytest.mark.parametrize(
    ("name", "newest"),
    [("Pendulum-v0", "Pendulum-v1"), ("CartPole-v7", "CartPole-v1"), ("LunarLander-v2", "LunarLander-v3")],
)
def test_other_version_of_an_environment_is_answered_by_the_newest(name: str, newest: str) -> None:
    assert answer(name) == f"Gymnasium knows no environment '{name}'; its newest version is '{newest}'"


@pytest.mark.filterwarnings("ignore:.*out of date")
def test_version_that_moved_away_is_answered_by_the_newest_although_its_package_is_installed() -> None:
    pytest.importorskip("mujoco")
    assert answer("HalfCheetah-v3").endswith("Its newest version is 'HalfCheetah-v5'")


def test_name_in_other_letters_is_answered_by_near_ones_of_the_newest_version() -> None:
    assert "did you mean 'CartPole-v1'" in answer("cartpole-v0")
    assert "CartPole-v0" not in answer("cartpol-v1")


def test_name_of_a_package_that_is_not_installed_is_answered_by_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    give_home(monkeypatch)
    said = answer("Trilevel-Empty-8x8-v0")
    assert "pip install tri-grid, then write the id as trilevel:Trilevel-Empty-8x8-v0" in said
    assert "needs the package 'trilevel', which is not installed here: pip install tri-grid" in answer(
        "trilevel:Knot-v0"
    )


@pytest.mark.parametrize("is_known", [True, False])
def test_name_of_an_installed_package_is_answered_by_its_module(
    installed: Path, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    if is_known:
        give_home(monkeypatch)
    said = answer("Trilevel-Empty-8x8-v0")
    assert said.endswith("trilevel registers it on import: write the id as trilevel:Trilevel-Empty-8x8-v0")
    assert build(Settings(factory="gymnasium", id="trilevel:Trilevel-Empty-8x8-v0"), 1, 0).num_environments == 1


def test_name_in_a_module_of_an_installed_package_is_answered_by_that_module(installed: Path) -> None:
    (installed / "__init__.py").write_text("")
    (installed / "knots.py").write_text(REGISTERS)
    assert answer("Knot-v3").endswith("trilevel.knots registers it on import: write the id as trilevel.knots:Knot-v3")


def test_mistyped_name_of_a_known_package_is_answered_by_near_ones_with_the_module(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_home(monkeypatch)
    assert answer("Trilevel-Emty-8x8-v0").endswith("did you mean 'trilevel:Trilevel-Empty-8x8-v0'?")
    assert answer("trilevel:Trilevel-Dor-v0").endswith("did you mean 'trilevel:Trilevel-Door-v0'?")
    assert answer("trilevel:Knot-v4").endswith("its newest version is 'trilevel:Knot-v3'")


def test_installed_package_that_does_not_import_is_not_called_missing(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_home(monkeypatch)
    (installed / "__init__.py").write_text("import no_such_dependency")
    said = answer("Trilevel-Empty-8x8-v0")
    assert "importing trilevel, which should register it, fails: ModuleNotFoundError" in said
    assert "'no_such_dependency'" in said
    assert "needs the package 'no_such_dependency', which is not installed" in answer("trilevel:Trilevel-Door-v0")
    assert "pip install" not in said


def test_part_that_an_installed_package_lacks_is_told_from_a_missing_package(installed: Path) -> None:
    (installed / "__init__.py").write_text("import trilevel.old_part")
    assert "needs 'trilevel.old_part', which the installed 'trilevel' does not have" in answer("trilevel:Knot-v3")


def test_package_that_is_installed_but_broken_is_told_from_a_missing_one(installed: Path) -> None:
    (installed / "__init__.py").write_text("raise ImportError('libGL.so.1: cannot open shared object file')")
    said = answer("trilevel:Knot-v3")
    assert said.endswith("cannot be made: libGL.so.1: cannot open shared object file")


@pytest.mark.parametrize("name", ["a:b:c-v0", "Foo Bar", "", "module:", "/-v1"])
def test_id_that_is_none_is_refused_with_examples(name: str) -> None:
    assert answer(name) == f"environment.id: is '{name}'; it must be as CartPole-v1 or module:Name-v0"


def test_name_that_nobody_knows_is_answered_by_the_form_with_a_module() -> None:
    assert "name the module whose import registers it before the id" in answer("Zzyzx-v0")
    assert "it is not registered after importing json" in answer("json:Zzyzx-v0")


def test_minatar_name_is_answered_by_its_factory() -> None:
    assert "environment: {factory: minatar, game: space_invaders}" in answer("MinAtar/SpaceInvaders-v1")


def test_level_of_minigrid_is_answered_by_its_factory() -> None:
    assert "environment: {factory: minigrid, id: BabyAI-NoSuch-v0}" in answer("BabyAI-NoSuch-v0")


def test_scenario_of_vizdoom_is_answered_by_its_factory() -> None:
    assert "environment: {factory: vizdoom, scenario: health_gathering}" in answer("VizdoomHealthGathering-v9")


def test_task_of_the_control_suite_is_answered_by_our_own_adapter() -> None:
    ours = "environment: {factory: dm_control, domain: cartpole, task: swingup_sparse}"
    assert ours in answer("dm_control/cartpole-swingup_sparse-v0")


def test_atari_name_is_answered_by_its_module_and_the_faster_factory() -> None:
    pytest.importorskip("ale_py")
    # In a process of its own: here, another test may have imported the module.
    with pytest.raises(UserError) as refused:
        probe_spaces(Settings(factory="gymnasium", id="ALE/Pong-v5"))
    assert "write the id as ale_py:ALE/Pong-v5" in str(refused.value)
    assert "environment: {factory: atari, game: pong}" in str(refused.value)
