"""What Slurm's daemons wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from srlhpc.runs.slurm_output import out_of_memory, slurm_output
from tests.launch.written_runs import last, written_run

KILLED = "slurmstepd: error: StepId=31.0 exceeded memory limit (313753600 > 52428800), being killed"


@pytest.mark.parametrize(
    "line",
    [
        KILLED,
        "slurmstepd: error: Exceeded job memory limit",
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7.0. Some of your processes may have been killed by "
        "the cgroup out-of-memory handler.",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=7.batch. Some of the step tasks have been OOM Killed.",
        "srun: error: cpu1: task 0: Out Of Memory",
    ],
)
def test_slurms_line_on_memory_is_known(line: str) -> None:
    assert out_of_memory(["srun: error: cpu1: task 0: Killed", line]) == line


@pytest.mark.parametrize("line", ["srun: error: cpu1: task 0: Killed", "slurmstepd: error: *** STEP 7.0 CANCELLED ***"])
def test_other_kills_are_not_taken_for_memory(line: str) -> None:
    assert out_of_memory([line]) is None


def test_slurms_lines_are_those_of_the_last_start(tmp_path: Path) -> None:
    paths = written_run(tmp_path, "mine")
    paths.slurm_folder.mkdir()
    (last(paths).logs / "srun.log").write_text(
        "0: hello\n10: slurmstepd-cpu1: error: y\nsrun: error: cpu1: task 1: Killed\n"
    )
    (paths.slurm_folder / "7_0_log.err").write_text(f"starting 3 ranks\n{KILLED}\nstarting 3 ranks\nslurmstepd: x\n")
    assert slurm_output(paths, last(paths)) == [
        "slurmstepd-cpu1: error: y",
        "srun: error: cpu1: task 1: Killed",
        "slurmstepd: x",
    ]
