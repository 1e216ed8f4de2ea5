"""The batch script: a recorded text, and what must hold for every one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from srlhpc.slurm.allocation import Allocation, Component
from srlhpc.slurm.sbatch import sbatch_text
from srlhpc.specs.cluster import ClusterProfile

RECORDED = Path(__file__).with_name("heterogeneous.sbatch")
GPU = Component({"partition": "gpu", "nodes": 1, "ntasks": 4, "gpus-per-node": "a100:2"}, 0, 4, 1, (4,), 4, 2)
CPU = Component({"partition": "cpu", "nodes": 2, "ntasks": 8, "exclusive": True}, 4, 8, 2, (4, 4), 8, 0)


def text(*components: Component, dependency: str | None = None, folder: str = "/runs/x/slurm", **profile: Any) -> str:
    return sbatch_text(
        Allocation(components, 90),
        ClusterProfile.model_validate(profile),
        name="x",
        folder=Path(folder),
        command="python -m foreman",
        dependency=dependency,
    )


def test_script_of_two_components_is_as_recorded() -> None:
    made = text(GPU, CPU, modules=["gcc/12"], setup=["export A='b c'"], dependency="afterany:7")
    assert made == RECORDED.read_text()


def test_script_without_requeue_says_so() -> None:
    assert "#SBATCH --no-requeue" in text(GPU, requeue=False)


def test_submitit_is_told_of_usr1() -> None:
    made = text(GPU, signal="USR1", signal_lead_seconds=30)
    assert "#SBATCH --signal=B:USR1@30" in made
    assert "export SUBMITIT_PREEMPT_SIGNAL=USR1" in made


def test_set_up_lines_can_add_to_a_path_that_is_not_exported() -> None:
    assert "export PATH" not in text(GPU).splitlines()
    lines = text(GPU, sbatch={"export": "NONE"}, setup=["export PATH=$HOME/bin:$PATH"]).splitlines()
    assert lines.index("export PATH") < lines.index("export PATH=$HOME/bin:$PATH")


def test_folder_with_spaces_and_percents_is_quoted() -> None:
    assert "#SBATCH --output='/my runs/100%%/%j_0_log.out'" in text(GPU, folder="/my runs/100%")


def test_options_stand_before_the_first_command() -> None:
    lines = text(GPU, CPU, setup=["true"]).splitlines()
    first = next(n for n, line in enumerate(lines) if not line.startswith("#"))
    assert not any(line.startswith("#SBATCH") for line in lines[first:])
    assert lines[-1] == "exec python -m foreman"
