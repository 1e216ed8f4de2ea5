"""What the submitting shell and slurm.conf must not do to ranks, on the real lab."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.on_slurm.runs_on_slurm import ENDLESS, PROFILE, SlurmRun
from tests.plan.test_rank_variables import JOB, OF_THE_LAUNCHER, WORLD

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.usefixtures("lab"), pytest.mark.timeout(240)]


def test_ranks_train_from_a_shell_full_of_others_variables_and_one_dead_actor_ends_nothing(
    submit: Callable[..., SlurmRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**WORLD, **OF_THE_LAUNCHER, **JOB}.items():
        monkeypatch.setenv(name, value)
    # srun takes SLURM_WAIT as it takes WaitTime of slurm.conf.
    setup = 'setup: ["export SLURM_WAIT=1 OMP_NUM_THREADS=3"]\nsbatch: {export: NONE}\n'
    run = submit(*ENDLESS, profile=PROFILE + setup)
    run.wait_until_trains()
    actor = run.pid_of("actor")
    variables = Path(f"/proc/{actor}/environ").read_bytes().split(b"\0")
    assert b"OMP_NUM_THREADS=3" in variables
    assert not any(variable.startswith((b"PMIX_", b"OMPI_", b"MPIEXEC_")) for variable in variables)
    os.kill(actor, signal.SIGKILL)
    run.wait(lambda: run.status.get("ranks_alive") == 4)
    updates = run.status["updates"]
    run.wait(lambda: run.status["updates"] > updates + 20)
    assert run.status["attempt"] == 1
