"""Whether a job can start, and what it waits for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from srlhpc.cli import why
from srlhpc.errors import UserError
from srlhpc.launch import preparation
from srlhpc.launch import submission as executor
from srlhpc.launch.preparation import check_can_start
from srlhpc.launch.submission import start_estimate
from srlhpc.slurm import partitions
from srlhpc.slurm.allocation import Allocation, Component
from srlhpc.slurm.jobs import JobState
from srlhpc.slurm.partitions import NodeState
from srlhpc.slurm.start_outlook import outlook, shortage
from tests.launch.written_runs import written_run


def part(partition: str | None, nodes: int, cpus: int = 4, gpus: int = 0) -> Component:
    """A part with one task of so many CPUs on each node."""
    options = {"cpus-per-task": cpus, **({"partition": partition} if partition else {})}
    return Component(options, 0, nodes, nodes, (1,) * nodes, cpus * nodes, gpus * nodes)


def node(name: str, *names: str, gpus: int = 0, idle: int = 8) -> list[NodeState]:
    """A node of eight CPUs in several partitions; `cpu` is the default."""
    kinds = {"": gpus} if gpus else {}
    return [NodeState(each, each == "cpu", name, "mix", 8, idle, 8000, 60, kinds, 0) for each in names]


LAB = [
    *node("cpu1", "cpu", "low"),
    *node("cpu2", "cpu", "low", idle=2),
    *node("gpu1", "gpu", "low", gpus=2),
    *node("gpu2", "gpu", "low", gpus=2),
]


@pytest.mark.parametrize(
    ("parts", "needed", "able"),
    [
        ([part("gpu", 1, gpus=2), part("gpu", 2)], 3, 2),
        ([part(None, 1), part("cpu", 2)], 3, 2),
        ([part("gpu", 2), part("cpu", 2), part("low", 1)], 5, 4),
        ([part("gpu", 1), part("cpu", 1), part("low", 2, gpus=1)], 3, 2),
        ([part("gpu", 1), part("gpu,cpu", 4)], 5, 4),
    ],
)
def test_components_that_need_more_nodes_than_there_are_never_start(
    parts: list[Component], needed: int, able: int
) -> None:
    said = shortage(Allocation(tuple(parts), 10), LAB)
    assert said is not None
    assert said.startswith(f"the job needs {needed} nodes at once (1 node of " if parts[0].nodes == 1 else "the job")
    assert f"but only {able} can serve them (" in said


@pytest.mark.parametrize(
    "parts",
    [
        [part("gpu", 9)],
        [part("gpu", 1, gpus=2), part("gpu", 1)],
        [part("gpu", 1), part("low", 3)],
        [part("hidden", 2), part("hidden", 2)],
    ],
)
def test_components_with_enough_or_unknown_nodes_are_no_shortage(parts: list[Component]) -> None:
    assert shortage(Allocation(tuple(parts), 10), LAB) is None


def test_outlook_has_what_is_needed_and_what_is_free() -> None:
    assert outlook(Allocation((part("gpu", 1, gpus=1), part(None, 2)), 10), LAB) == (
        "needs 1 node of partition gpu with 4 CPUs and 1 GPU and 2 nodes of the default partition with 4 CPUs at once; "
        "such nodes free now: 2 of partition gpu and 1 of the default partition"
    )


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (executor, preparation, partitions):
        monkeypatch.setattr(module, "read_nodes", lambda: LAB)
    for module in (executor, preparation):
        monkeypatch.setattr(module, "slurm_is_here", lambda: True)


@pytest.mark.usefixtures("lab")
def test_submission_of_a_job_that_could_never_start_is_refused() -> None:
    check_can_start(Allocation((part("gpu", 1), part("cpu", 2)), 10))
    with pytest.raises(
        UserError, match=r"^roles: the job needs 3 nodes at once .*: it would never start\. Ask for fewer"
    ):
        check_can_start(Allocation((part("gpu", 1), part("gpu", 2)), 10))


@pytest.mark.usefixtures("lab")
def test_estimate_of_a_heterogeneous_job_adds_what_slurm_leaves_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Said:
        stderr = "sbatch: Job 7 to start at 2026-11-28T00:00:00 using 2 processors on gpu1\n"

    monkeypatch.setattr(executor, "run_slurm", lambda *_, **__: Said)
    said = start_estimate("", Allocation((part("gpu", 1), part("cpu", 1)), 10))
    assert said.startswith(
        "Job 7 to start at 2026-11-28T00:00:00 using 2 processors on gpu1; not earlier, but all components"
    )
    assert start_estimate("", Allocation((part("gpu", 1),), 10)) == Said.stderr.strip().removeprefix("sbatch: ")


@pytest.fixture
def waits(tmp_path: Path) -> Callable[..., list[str]]:
    """What `why` says of a job that waits for these parts."""
    from srlhpc.data.atomic import write_json

    def ask(reason: str, *parts: Component) -> list[str]:
        paths = written_run(tmp_path, "mine")
        content: dict[str, Any] = Allocation(parts, 10).to_json()
        write_json(paths.allocation, content)
        return list(why._waiting(paths, JobState("7", "PENDING", reason)))

    return ask


@pytest.mark.usefixtures("lab")
def test_why_of_a_waiting_job_names_nodes_needed_and_free(waits: Callable[..., list[str]]) -> None:
    said = waits("Resources", part("gpu", 1), part("cpu", 2))
    assert said[0] == "job 7 waits: it waits for free nodes (Slurm says Resources)"
    assert said[1].startswith("the job needs 1 node of partition gpu with 4 CPUs and 2 nodes of partition cpu")


@pytest.mark.usefixtures("lab")
def test_why_of_a_job_that_can_never_start_says_so(waits: Callable[..., list[str]]) -> None:
    said = waits("Resources", part("gpu", 1), part("gpu", 2))
    assert said[0].startswith("job 7 can never start: the job needs 3 nodes at once")
    assert not any("wait" in line for line in said)
