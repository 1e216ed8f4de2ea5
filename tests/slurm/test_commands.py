"""Running Slurm's commands: what is passed on, and what complaints become."""

from __future__ import annotations

from pathlib import Path

import pytest

from srlhpc.slurm.commands import NoSlurm, SlurmRefused, SlurmSilent, run_slurm, slurm_environment


def script(folder: Path, body: str) -> str:
    path = folder / "sbatch"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_command_gives_what_it_prints(tmp_path: Path) -> None:
    assert run_slurm([script(tmp_path, "cat; echo $1"), "7"], text="in ").stdout == "in 7\n"


def test_refusal_of_a_command_has_slurms_words_and_a_remedy(tmp_path: Path) -> None:
    fake = script(tmp_path, "echo 'sbatch: error: invalid partition specified: x' >&2; exit 1")
    with pytest.raises(SlurmRefused, match="invalid partition specified: x\nWhat to do: set partition") as caught:
        run_slurm([fake])
    assert caught.value.reason == "sbatch: error: invalid partition specified: x"


def test_controller_that_is_away_is_silence_and_no_refusal(tmp_path: Path) -> None:
    fake = script(tmp_path, "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(SlurmSilent, match="Slurm does not answer"):
        run_slurm([fake])


def test_command_that_takes_too_long_is_silence(tmp_path: Path) -> None:
    with pytest.raises(SlurmSilent, match=r"had no answer after 0\.05 s"):
        run_slurm([script(tmp_path, "exec sleep 10")], timeout=0.05)


def test_missing_command_says_what_to_do_instead() -> None:
    with pytest.raises(NoSlurm, match="no 'no-such-command' on this machine: .* srlhpc run JOB"):
        run_slurm(["no-such-command"])


def test_environment_overrides_no_script_and_describes_no_outer_job() -> None:
    outer = {"SBATCH_PARTITION": "x", "SLURM_JOB_ID": "1", "SLURM_CONF": "c", "PATH": "p"}
    assert slurm_environment(outer) == {
        "SLURM_CONF": "c",
        "PATH": "p",
        "LC_ALL": "C.UTF-8",
        "SLURM_TIME_FORMAT": "standard",
    }
