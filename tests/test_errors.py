"""Exceptions say what kind of failure they are; advice and what follows from it stand with the kind."""

import ast
from pathlib import Path

import pytest

from srlhpc.algorithms.algorithm import DivergedError
from srlhpc.comm.mpi.world import DifferenceError, WorldSizeError
from srlhpc.data.forgiving import FileSystemLostError
from srlhpc.errors import FAILURE_KINDS, ClusterError, KnownError, UserError, kind_named, kind_of
from srlhpc.ranks.gpu_binding import GpuError
from srlhpc.roles.acting.actor import StepError
from srlhpc.roles.stillness import StandstillError

ROOT = Path(__file__).parents[1] / "srlhpc"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (UserError, "user"),
        (ClusterError, "cluster"),
        (FileSystemLostError, "cluster"),
        (WorldSizeError, "world"),
        (DifferenceError, "difference"),
        (GpuError, "gpu"),
        (StepError, "environment"),
        (DivergedError, "diverged"),
        (StandstillError, "standstill"),
    ],
)
def test_exception_says_its_kind(error: type[KnownError], kind: str) -> None:
    assert kind_of(error("x")) == kind
    assert kind in FAILURE_KINDS


def test_exception_of_somebody_else_is_of_no_kind() -> None:
    class Foreign(RuntimeError):
        kind = "user"

    assert kind_of(Foreign()) == "exception"
    assert kind_named("exception").advice == kind_named("").advice == "The rank's log has more."


def test_no_exception_is_recognised_by_the_name_of_its_class() -> None:
    names = {
        node.name
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and node.name.endswith("Error")
    }
    found = {
        (path.name, node.value)
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in names
    }
    assert not found, f"{found}: give the class a kind (srlhpc/errors.py)"
