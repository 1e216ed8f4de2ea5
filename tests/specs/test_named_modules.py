"""Modules that a job file names: what their `build` must take."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from srlhpc.algorithms.vtrace.settings import Settings
from srlhpc.errors import UserError
from srlhpc.specs.load import load_text
from tests.specs.jobs import JOB

Write = Callable[[str, str], None]


@pytest.fixture
def write_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes the module `my_lab`: the Settings of another one, and some text."""

    def write(source: str, text: str) -> None:
        (tmp_path / "my_lab.py").write_text(
            f"from {source} import Settings as Base\n\n\nclass Settings(Base):\n    pass\n\n\n{text}\n"
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "my_lab", raising=False)

    return write


@pytest.mark.parametrize(
    ("source", "line", "build", "message"),
    [
        (
            "envs.catch",
            "factory: catch",
            "def build(settings, copies, seed, render=False): ...",
            "job.yaml:2: environment.factory: my_lab.build takes (settings, copies, seed, render) and is called as "
            "build(settings, num_environments=..., seed=..., render=...): missing a required argument: 'copies'; "
            "correct its parameters",
        ),
        (
            "envs.catch",
            "factory: catch",
            "def build(settings, num_environments, seed): ...",
            "job.yaml:2: environment.factory: my_lab.build takes (settings, num_environments, seed) and is called as "
            "build(settings, num_environments=..., seed=..., render=...): got an unexpected keyword argument 'render'; "
            "correct its parameters",
        ),
        (
            "srlhpc.policies.mlp",
            "kind: mlp",
            "class build:\n    def __init__(self, settings, kind): ...",
            "job.yaml:6: policies.default.network.kind: my_lab.build takes (settings, kind) and is called as "
            "build(settings, kind, normalize): too many positional arguments; correct its parameters",
        ),
        (
            "srlhpc.algorithms.ppo",
            "kind: ppo",
            "build = 3",
            "job.yaml:8: policies.default.algorithm.kind: my_lab.build is 3; it must be a function, called as "
            "build(settings, policy, context)",
        ),
    ],
)
def test_build_that_cannot_be_called_is_refused_before_a_job_waits_for_nodes(
    write_module: Write, source: str, line: str, build: str, message: str
) -> None:
    write_module(source, build)
    with pytest.raises(UserError) as caught:
        load_text(JOB.replace(line, f"{line.partition(':')[0]}: my_lab"), "job.yaml")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "build",
    [
        "def build(*arguments, **named): ...",
        "def build(settings, num_environments, seed, render=False, *, more=1): ...",
        "build = dict",
    ],
)
def test_build_that_can_be_called_is_taken(write_module: Write, build: str) -> None:
    write_module("envs.catch", build)
    assert load_text(JOB.replace("factory: catch", "factory: my_lab"), "job.yaml").environment.factory == "my_lab"


@pytest.mark.parametrize("value", [1e39, {"start": 0.0, "end": 1e39, "steps": 10}])
def test_number_of_a_rule_that_float32_lacks_is_refused(value: object) -> None:
    with pytest.raises(ValidationError, match=r"is 1e\+39; it must be at most 3\.40282e\+38, the largest number of"):
        Settings.model_validate({"kind": "vtrace", "clip_ratio": value, "minibatches": 2})
    Settings.model_validate({"kind": "vtrace", "clip_ratio": 1e38, "minibatches": 2})
