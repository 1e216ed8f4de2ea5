"""Which environment variables ranks get. Pure; the rule for users is in docs/running_on_slurm.md.

Ranks inherit from what starts them, a shell or the batch script, but not what describes the MPI world or the job that
this itself is a process of. Numbers of threads are set where nobody has set them.
"""

from __future__ import annotations

from collections.abc import Mapping

_OF_A_WORLD = ("PMI_", "PMI2_", "PMIX_", "PRTE_", "HYDI_", "PALS_", "MPI_LOCAL", "MV2_COMM_", "OMPI_COMM_", "OMPI_APP_")
"""Which MPI world a process belongs to, and who speaks for it there."""
_OF_MPI = (
    "OMPI_",
    "ORTE_",
    "PRTE_",
    "PMIX_",
    "MPI_",
    "MPIR_",
    "MPICH_",
    "MPIEXEC_",
    "MPIRUN_",
    "HYDRA_",
    "I_MPI_",
    "MV2_",
)
"""All else of MPI's: settings, by the user or by the launcher of such a world."""
_OF_SLURM = (
    "SLURM_", "SLURMD_", "SBATCH_", "SALLOC_", "SRUN_", "SQUEUE_", "SINFO_", "SACCT_", "SCANCEL_", "SCONTROL_"
)  # fmt: skip
"""Variables of the job that a process is in, and options of Slurm's commands."""
_FOR_REACHING_SLURM = ("SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT", "SBATCH_RESERVATION")
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""How many threads libraries start; the first is what the others follow."""


def outside_any_world(outer: Mapping[str, str]) -> dict[str, str]:
    """A shell's environment as it would be outside the MPI world that the shell may be in, and outside any Slurm job.

    In such a world MPI's settings go as well: its launcher has made some of them for its own ranks.
    """
    kept = without_world(outer)
    if len(kept) < len(outer):
        kept = {name: value for name, value in kept.items() if not name.startswith(_OF_MPI)}
    return {
        name: value for name, value in kept.items() if name in _FOR_REACHING_SLURM or not name.startswith(_OF_SLURM)
    }


def without_world(outer: Mapping[str, str]) -> dict[str, str]:
    """The environment without what says which MPI world a process belongs to; settings (`PMIX_MCA_gds`) stay."""
    return {name: value for name, value in outer.items() if "_MCA_" in name or not name.startswith(_OF_A_WORLD)}


def without_threads(outer: Mapping[str, str]) -> dict[str, str]:
    """The environment without numbers of threads, which are right for another machine."""
    return {name: value for name, value in outer.items() if name not in THREADS}


def settings_of_ranks(outer: Mapping[str, str]) -> dict[str, str]:
    """What every rank gets, whoever starts it: quiet waiting unless the user wants it otherwise, output at once."""
    return {
        "OMP_WAIT_POLICY": outer.get("OMP_WAIT_POLICY", "PASSIVE"),
        "HDF5_USE_FILE_LOCKING": "FALSE",
        "PYTHONUNBUFFERED": "1",
    }


def numbers_of_threads(outer: Mapping[str, str], threads: int) -> dict[str, str]:
    """The numbers of threads for ranks that are all alike; those that are set already stay."""
    first = outer.get(THREADS[0], str(threads))
    return {name: outer.get(name, first) for name in THREADS}


def threads_lines(threads: str) -> str:
    """Shell lines that do the same in the script of a rank.

    Args:
        threads: shell expression for the rank's number.
    """
    first, *others = THREADS
    lines = [f'export {first}="${{{first}:-{threads}}}"']
    lines += [f'export {name}="${{{name}:-${first}}}"' for name in others]
    return "\n".join(lines)
