"""Submitting the foreman: one small process that owns the whole allocation."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from submitit.core import utils
from submitit.slurm.slurm import SlurmExecutor, SlurmJob

from srlhpc.data.atomic import write_json
from srlhpc.data.forgiving import read_surely
from srlhpc.errors import ClusterError
from srlhpc.runs.earlier_jobs import ended_attempt
from srlhpc.runs.paths import RunPaths
from srlhpc.slurm.allocation import Allocation
from srlhpc.slurm.commands import SlurmRefused, no_slurm, run_slurm, slurm_is_here
from srlhpc.slurm.partitions import NodeState, read_nodes
from srlhpc.slurm.sbatch import sbatch_text
from srlhpc.slurm.start_outlook import outlook
from srlhpc.specs.cluster import ClusterProfile

_NO_LIMIT = 10**9
"""submitit takes every signal for a time-out where the time limit is under ten minutes; `requeue` counts itself."""


class ForemanExecutor(SlurmExecutor):
    """submitit's executor for a process that starts MPI ranks itself, in one job of several components.

    It overrides:
        _make_submission_file_text: our own text, with the components of heterogeneous jobs and `exec`, see
            `sbatch_text`.
        _num_tasks: submitit sees one task, whatever the number of ranks.
        _submit_command: sbatch is run by `run_slurm`, which explains refusals; submitit does not follow the job.
        affinity: whether there is Slurm is checked before.

    Args:
        folder: for the batch script, its output, and what submitit pickles.
        allocation: what to ask for.
        cluster: the profile.
        name: of the job.
        dependency: as `--dependency` takes it.
        record: called with the job's id before its foreman can start.
    """

    def __init__(
        self,
        folder: Path,
        allocation: Allocation,
        cluster: ClusterProfile,
        *,
        name: str,
        dependency: str | None,
        record: Callable[[str], None],
    ) -> None:
        super().__init__(folder, max_num_timeout=_NO_LIMIT, python=shlex.quote(cluster.interpreter))
        self._allocation, self._cluster, self._name, self._dependency = allocation, cluster, name, dependency
        self._record = record
        # submitit counts a signal as a time-out by this limit.
        self.update_parameters(time=allocation.minutes, use_srun=False)

    @classmethod
    def affinity(cls) -> int:
        return 2

    def _num_tasks(self) -> int:
        return 1

    def _make_submission_file_text(self, command: str, uid: str) -> str:  # noqa: ARG002 (submitit's command and id)
        return sbatch_text(
            self._allocation,
            self._cluster,
            name=self._name,
            folder=Path(self.folder),
            command=foreman_command(self._cluster, Path(self.folder)),
            dependency=self._dependency,
        )

    def _submit_command(self, command: str) -> SlurmJob[Any]:
        folder = utils.JobPaths.get_first_id_independent_folder(self.folder)
        script = folder / f".submission_{time.time_ns()}.sh"
        script.write_text(self._make_submission_file_text(command, ""))
        try:
            output = run_slurm(["sbatch", "--parsable", str(script)]).stdout
        except ClusterError:
            script.unlink()
            raise
        job_id = submitted_id(output)
        # A foreman waits for the pickle, which submitit moves to its place after this method.
        try:
            self._record(job_id)
        except OSError:
            # The job was not recorded, so nobody would know of it.
            run_slurm(["scancel", job_id])
            raise
        job: SlurmJob[Any] = SlurmJob(folder=self.folder, job_id=job_id, tasks=[0])
        job.paths.move_temporary_file(script, "submission_file")
        return job


def submitted_id(output: str) -> str:
    """The id in what `sbatch --parsable` prints.

    Raises:
        ClusterError: it prints something else.
    """
    last = output.strip().rpartition("\n")[2].partition(";")[0]
    if not last.isdecimal():
        raise ClusterError(
            f"sbatch ended well but gave no job's number; it says: {output.strip()[:200]!r}. Look whether a job is in "
            "the queue (squeue --me), and correct sbatch in the cluster profile"
        )
    return last


def foreman_command(cluster: ClusterProfile, folder: Path) -> str:
    """The shell command that runs a submitted foreman."""
    held = "srlhpc.launch.hold_signals"
    return shlex.join([cluster.interpreter, "-u", "-m", held, "submitit.core._submit", str(folder)])


def submit_foreman(
    paths: RunPaths,
    allocation: Allocation,
    cluster: ClusterProfile,
    *,
    minutes: int,
    dependency: str | None = None,
) -> str:
    """Submits a job that goes on with a run, and writes it down in `slurm.json`.

    Args:
        paths: the run; its folder is made.
        allocation: what to ask for.
        cluster: the profile; kept in `slurm.json` for requeues and resumes.
        minutes: time limit that the user asked for.
        dependency: as `--dependency` takes it, for example `afterany:17`.

    Returns:
        The job's id.

    Raises:
        ClusterError: there is no Slurm, it does not answer, or refuses.
    """
    from srlhpc.launch.submitted_foreman import SubmittedForeman

    if not slurm_is_here():
        raise ClusterError(no_slurm("sbatch"))
    paths.slurm_folder.mkdir(exist_ok=True)

    def record(job_id: str) -> None:
        jobs = (read_surely(paths.slurm) or {}).get("jobs", [])
        content = {
            "cluster": cluster.model_dump(mode="json"),
            "jobs": [
                *jobs,
                {
                    "id": job_id,
                    "submitted": time.time(),
                    "after_attempt": ended_attempt(paths),
                    "dependency": dependency,
                },
            ],
            "minutes": minutes,
            "allocation": allocation.to_json(),
        }
        write_json(paths.allocation, allocation.to_json())
        write_json(paths.slurm, content)

    executor = ForemanExecutor(
        paths.slurm_folder, allocation, cluster, name=paths.name, dependency=dependency, record=record
    )
    return str(executor.submit(SubmittedForeman(str(paths.folder))).job_id)


def start_estimate(text: str, allocation: Allocation) -> str:
    """What Slurm says on when a job could start, in one sentence; nothing is submitted.

    Args:
        text: the batch script.
        allocation: what it asks for.

    Raises:
        SlurmRefused: it would refuse the job.
    """
    if not slurm_is_here():
        return "not available (no Slurm on this machine)"
    try:
        output = run_slurm(["sbatch", "--test-only"], text=text).stderr
    except SlurmRefused:
        raise
    except ClusterError as error:
        return f"not available ({str(error).partition('. ')[0].splitlines()[0]})"
    lines = [line.removeprefix("sbatch: ").strip() for line in output.splitlines() if " to start at " in line]
    nodes = _nodes() if len(allocation.components) > 1 else []
    # Slurm has looked at each component of a heterogeneous job by itself.
    together = (
        [f"not earlier, but all components start together: the job {outlook(allocation, nodes)}"] if nodes else []
    )
    return "; ".join([*lines, *together]) or "not available (Slurm gives none)"


def _nodes() -> list[NodeState]:
    """All nodes; none where Slurm does not list them, which is no reason to keep back what it has printed."""
    try:
        return list(read_nodes())
    except ClusterError:
        return []
