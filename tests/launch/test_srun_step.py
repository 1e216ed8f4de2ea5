"""How srun is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from srlhpc.errors import ClusterError
from srlhpc.launch.srun_step import srun_complaint, step_environment
from srlhpc.runs.paths import RunPaths
from srlhpc.slurm import srun
from srlhpc.slurm.allocation import Allocation, Component
from srlhpc.slurm.srun import srun_command, srun_plugin
from srlhpc.specs.cluster import ClusterProfile

GPU = Component({"partition": "gpu", "cpus-per-task": 2}, 0, 4, 1, (4,), 8, 2)
CPU = Component({"partition": "cpu"}, 4, 4, 2, (2, 2), 4, 0)
ATTEMPT = RunPaths(Path("runs/a")).attempt(1)


def test_one_component_is_a_plain_step() -> None:
    command = srun_command(Allocation((GPU,), 10), "pmi2", Path("rank.sh"))
    assert command[0] == "srun"
    assert not any(word.startswith("--het-group") for word in command)
    assert {"--mpi=pmi2", "--kill-on-bad-exit=0", "--ntasks=4", "--nodes=1", "--cpus-per-task=2"} <= set(command)
    # Whatever WaitTime in slurm.conf and `export` of the batch script say.
    assert {"--wait=0", "--export=ALL"} <= set(command)
    assert command[-3:] == ["sh", "rank.sh", "0"]


def test_step_beside_another_shares_what_that_has() -> None:
    assert "--overlap" not in srun_command(Allocation((GPU,), 10), "pmi2", Path("rank.sh"))
    command = srun_command(Allocation((GPU, CPU), 10), "pmi2", Path("rank.sh"), overlap=True)
    assert command.count("--overlap") == 2


def test_two_components_are_one_step_in_rank_order() -> None:
    command = srun_command(Allocation((GPU, CPU), 10), "pmix", Path("rank.sh"))
    middle = command.index(":")
    assert "--het-group=0" in command[:middle]
    assert {"--het-group=1", "--mpi=pmix", "--ntasks=4", "--ntasks-per-node=2"} <= set(command[middle:])


def test_gpus_of_the_batch_node_are_not_handed_to_the_ranks() -> None:
    outer = {"CUDA_VISIBLE_DEVICES": "0", "PATH": "/bin"}
    environment = step_environment(outer, ATTEMPT, Allocation((GPU,), 10), "pmi2")
    assert "CUDA_VISIBLE_DEVICES" not in environment
    assert environment["PATH"] == "/bin"


def test_pmi2_takes_every_rank_for_alone_if_nodes_have_different_numbers_of_ranks() -> None:
    both = Allocation((GPU, CPU), 10)
    assert step_environment({}, ATTEMPT, both, "pmi2")["MPIR_CVAR_NOLOCAL"] == "1"
    assert "MPIR_CVAR_NOLOCAL" not in step_environment({}, ATTEMPT, both, "pmix")


def test_components_in_another_order_than_ranks_are_each_given_their_offset() -> None:
    command = srun_command(Allocation((CPU, GPU), 10), "pmix", Path("rank.sh"))
    middle = command.index(":")
    assert (command[1], command[middle - 1]) == ("--het-group=0", "4")
    assert (command[middle + 1], command[-1]) == ("--het-group=1", "-4")


def test_complaint_is_the_last_error_of_srun_itself(tmp_path: Path) -> None:
    attempt = RunPaths(tmp_path).attempt(1)
    attempt.make()
    assert srun_complaint(attempt) == ""
    lines = ["srun: error: cannot load", "srun: error: Invalid MPI type 'pmix'", "0: srun: error: not srun's"]
    (attempt.logs / "srun.log").write_text("\n".join(lines))
    assert srun_complaint(attempt) == " (Invalid MPI type 'pmix')"


def test_error_names_mpi4py_that_is_not_loaded_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(srun, "_LOAD_SECONDS", 0.001)
    cluster = ClusterProfile.model_validate({"roles": {"default": {"partition": "cpu"}}})
    with pytest.raises(ClusterError, match="mpi4py was not loaded within"):
        srun_plugin(cluster)
