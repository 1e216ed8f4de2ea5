from __future__ import annotations

import configparser
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from envs._gymnasium_packages import OUR_EXTRAS, what_is_missing
from tests.environment_conformance import EnvironmentConformance


# Box2D's bindings are older than what Python warns of; as an error that warning crashes the interpreter.
@pytest.mark.filterwarnings("ignore:builtin type .* has no __module__ attribute:DeprecationWarning")
class TestLunarLander(EnvironmentConformance):
    settings = {"factory": "gymnasium", "id": "LunarLander-v3"}
    num_environments = 2
    steps = 160

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _needs_packages(cls) -> None:
        pytest.importorskip("Box2D")


@pytest.mark.parametrize(("package", "extra"), OUR_EXTRAS.items())
def test_package_of_an_extra_of_ours_is_answered_by_it(
    package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_of_it(name: str, *others: Any) -> Any:
        return None if name == package else find_spec(name, *others)

    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", none_of_it)
    error = ImportError(f'{package} is not installed, run `pip install "gymnasium[all]"`')
    error.__cause__ = ModuleNotFoundError(f"No module named '{package}'", name=package)
    answer = what_is_missing("LunarLander-v3", error)
    assert answer == f"needs the package '{package}', which is not installed here: pip install '{extra}'"


def test_every_extra_of_ours_is_declared() -> None:
    declared = configparser.ConfigParser()
    declared.read(Path(__file__).parents[2] / "setup.cfg")
    extras = {extra.removeprefix("srlhpc[").removesuffix("]") for extra in OUR_EXTRAS.values()}
    assert extras <= set(declared["options.extras_require"])
