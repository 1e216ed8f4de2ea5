"""What ranks get of the shell that starts them, under mpiexec and under srun."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from srlhpc.launch.mpiexec import rank_environment
from srlhpc.launch.rank_script import rank_script
from srlhpc.launch.srun_step import step_environment
from srlhpc.runs.paths import RunPaths
from srlhpc.slurm.allocation import Allocation, Component
from srlhpc.slurm.commands import slurm_environment
from tests.launch.test_mpiexec import Rank

ATTEMPT = RunPaths(Path("/runs/a")).attempt(1)
ONE = Allocation((Component({}, 0, 2, 1, (2,), 3, 0, (0.0, 0.0), (1, 2)),), 10)
WORLD = {
    **{f"PMI_{name}": "3" for name in ("RANK", "FD", "SIZE")},
    **{f"PMIX_{name}": "3" for name in ("RANK", "NAMESPACE", "SERVER_URI41", "SECURITY_MODE", "GDS_MODULE")},
    **{f"OMPI_{name}": "3" for name in ("COMM_WORLD_SIZE", "APP_CTX_NUM_PROCS")},
    **dict.fromkeys(("PMI2_JOBID", "HYDI_CONTROL_FD", "MPI_LOCALRANKID", "PRTE_LAUNCHED", "PALS_RANKID"), "3"),
}
OF_THE_LAUNCHER = dict.fromkeys(("OMPI_MCA_ess_base_jobid", "PRTE_MCA_ess", "MPIR_CVAR_X", "MPIEXEC_PORT"), "9")
JOB = {
    **{f"SLURM_{name}": "7" for name in ("JOB_ID", "STEP_ID", "PROCID", "MPI_TYPE", "WAIT", "EXPORT_ENV", "OVERLAP")},
    **dict.fromkeys(("SLURMD_NODENAME", "SBATCH_EXPORT", "SRUN_DEBUG"), "7"),
}
MINE = {"PATH": "/bin", "LD_LIBRARY_PATH": "/mpi/lib", "HOME": "/h", "SLURM_CONF": "/etc/slurm.conf", "UCX_TLS": "tcp"}


def named(environment: dict[str, str], *others: dict[str, str]) -> set[str]:
    return set(environment) & {name for other in others for name in other}


def test_no_variable_of_another_world_reaches_the_job() -> None:
    job = slurm_environment({**WORLD, **OF_THE_LAUNCHER, **JOB, **MINE, "OMP_NUM_THREADS": "64"})
    assert named(job, WORLD, OF_THE_LAUNCHER, JOB, {"OMP_NUM_THREADS": ""}) == set()
    assert {name: job[name] for name in MINE} == MINE


@pytest.mark.parametrize("kind", ["mpich", "openmpi5"])
def test_no_variable_of_another_world_reaches_the_ranks(kind: str) -> None:
    ranks = rank_environment({**WORLD, **OF_THE_LAUNCHER, **JOB, **MINE}, ATTEMPT, kind)  # type: ignore[arg-type]
    assert named(ranks, WORLD, OF_THE_LAUNCHER, JOB) == set()
    assert {name: ranks[name] for name in MINE} == MINE


def test_settings_of_mpi_reach_the_ranks_of_a_shell_outside_any_world() -> None:
    mine = {"OMPI_MCA_btl": "tcp,self", "MPIR_CVAR_CH4_NETMOD": "ucx", "PMIX_MCA_gds": "hash"}
    assert named(rank_environment(mine, ATTEMPT, "mpich"), mine) == set(mine)
    assert named(slurm_environment(mine), mine) == set(mine)


def test_only_what_the_batch_script_sets_up_reaches_the_ranks() -> None:
    made = step_environment({**WORLD, "OMPI_MCA_btl": "tcp,self", "SLURM_JOB_ID": "7"}, ATTEMPT, ONE, "pmix")
    assert named(made, WORLD) == set()
    # What srun needs to know of the job, and what the set-up lines have set.
    assert (made["SLURM_JOB_ID"], made["OMPI_MCA_btl"]) == ("7", "tcp,self")


def threads(tmp_path: Path, rank: int, **outer: str) -> list[str]:
    """The numbers of threads that a rank of the script sees: OpenMP's, MKL's."""
    attempt = RunPaths(tmp_path).attempt(1)
    if not attempt.folder.exists():
        attempt.make()
    program = ["sh", "-c", 'echo "$OMP_NUM_THREADS" "$MKL_NUM_THREADS"']
    ranks = [Rank(0, "coordinator-0"), Rank(1, "actor-0")]
    script = attempt.folder / "rank.sh"
    script.write_text(rank_script(attempt, ranks, program, rank="$1", threads=ONE.threads))
    subprocess.run(["sh", str(script), str(rank)], env={"PATH": "/usr/bin:/bin", **outer}, check=True)
    return attempt.log(rank, ranks[rank].label).read_text().split()[-2:]


def test_threads_are_by_default_the_cpus_of_each_rank(tmp_path: Path) -> None:
    assert (threads(tmp_path, 0), threads(tmp_path, 1)) == (["1", "1"], ["2", "2"])


def test_threads_exported_by_set_up_lines_hold_for_all(tmp_path: Path) -> None:
    assert threads(tmp_path, 1, OMP_NUM_THREADS="5") == ["5", "5"]
    assert threads(tmp_path, 1, MKL_NUM_THREADS="4") == ["2", "4"]


def test_threads_exported_in_the_shell_of_a_local_run_stay() -> None:
    assert rank_environment({"OMP_NUM_THREADS": "3"}, ATTEMPT, "mpich")["OPENBLAS_NUM_THREADS"] == "3"
