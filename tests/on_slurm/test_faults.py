"""What a run on Slurm survives: each fault against the real lab."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from srlhpc.data.checkpoint import read_checkpoint
from srlhpc.data.checkpoint_names import checkpoint_files
from srlhpc.launch.requeue import requeue
from srlhpc.launch.signals import JobSignals
from srlhpc.slurm.commands import run_slurm
from srlhpc.slurm.states import RUNNING
from tests.on_slurm.runs_on_slurm import ENDLESS, LAB_PROFILE, PROFILE, SlurmRun, lab_daemon, lab_script

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.usefixtures("lab"), pytest.mark.timeout(240)]


@pytest.mark.parametrize("role", ["trainer", "coordinator"])
def test_ranks_start_again_in_the_same_job_after_an_essential_one_is_killed(
    submit: Callable[..., SlurmRun], role: str
) -> None:
    run = submit(*ENDLESS)
    run.wait_until_trains()
    run.wait(lambda: run.paths.attempt(2).ready.exists())
    os.kill(run.pid_of(role), signal.SIGKILL)
    run.wait_until_trains(2)
    assert (run.checkpoint(2) or 0) > 0
    logs = [path.read_text() for path in run.paths.attempt(2).logs.glob("rank-*.log")]
    assert len(logs) == 5
    assert all("standing by" in text for text in logs)
    assert run.started(1)["job"] == run.started(2)["job"]
    assert "SIGKILL" in run.end(1)["message"]


def test_training_outlives_a_killed_rank_that_stands_by_and_a_restart_is_still_possible(
    submit: Callable[..., SlurmRun],
) -> None:
    run = submit(*ENDLESS)
    run.wait_until_trains()
    run.wait(lambda: run.paths.attempt(2).ready.exists())
    os.kill(run.process_of_rank_0(2), signal.SIGKILL)
    run.wait(lambda: "no ranks stand by" in run.log)
    assert not run.paths.attempt(2).folder.exists()
    updates = run.status["updates"]
    run.wait(lambda: run.status["updates"] > updates)
    os.kill(run.pid_of("trainer"), signal.SIGKILL)
    run.wait_until_trains(2)
    assert "standing by" not in run.paths.attempt(2).log(0, "coordinator-0").read_text()


def test_preempted_run_writes_a_checkpoint_is_requeued_and_resumes(
    submit: Callable[..., SlurmRun],
) -> None:
    run = submit(*ENDLESS)
    run.wait_until_trains()
    node = run.state["nodes"]
    high = ["sbatch", "--parsable", "-p", "cpu", "-w", node, "--exclusive", "--time=1", "-o", "/dev/null"]
    job = run_slurm([*high, "--wrap=sleep 20"]).stdout.strip()
    try:
        run.wait(lambda: run.end(1).get("reason") == "preemption", 30.0)
        run.wait_for_state("preempted", "running")
        run.wait_until_trains(2)
    finally:
        run_slurm(["scancel", job])
    assert (run.checkpoint(2) or 0) > 0
    assert run.started(1)["job"] == run.started(2)["job"]
    assert run.counters() == sorted(run.counters())


def test_run_that_is_requeued_by_hand_resumes(submit: Callable[..., SlurmRun]) -> None:
    run = submit(*ENDLESS)
    run.wait_until_trains()
    run_slurm(["scontrol", "requeue", run.job])
    run.wait_for_state("requeued")
    run.wait_until_trains(2)
    assert (run.checkpoint(2) or 0) > 0


def test_psro_goes_on_after_a_requeue_within_a_round_and_counts_nothing_twice(submit: Callable[..., SlurmRun]) -> None:
    games = 400
    few = ("actors.environments=8", f"matches.rule.episodes={games}", "versions.every_updates=20")
    run = submit(*few, "checkpoint.every_seconds=1", "stop.updates=100000000", job="jobs/rps_psro.yaml")
    run.wait_until_trains()

    def payoffs() -> dict[str, Any]:
        found: dict[str, Any] = (run.status.get("matches") or {}).get("payoffs") or {"players": ([], [])}
        return found

    def is_within_a_round() -> bool:
        candidate = payoffs().get("candidate")
        return (
            len(payoffs()["players"][0]) > 1 and candidate is not None and 0 < candidate["games"] < candidate["needs"]
        )

    run.wait(is_within_a_round)
    run_slurm(["scontrol", "requeue", run.job])
    run.wait_for_state("requeued")
    run.wait_until_trains(2)
    before = table(run.paths.checkpoints / str(run.started(2)["checkpoint"]))
    run.wait(lambda: len(payoffs()["players"][0]) > len(before["players-0"]))
    run_slurm(["scancel", run.job])
    run.wait_for_state("cancelled")
    after = table(max(checkpoint_files(run.paths.checkpoints)))
    played = len(before["players-0"])
    assert after["players-0"].tolist()[:played] == before["players-0"].tolist()
    assert (after["counts"][:played, :played] == games).all()
    assert after["counts"].max() == games


def table(file: Path) -> dict[str, Any]:
    """The table of payoffs in a checkpoint."""
    found: dict[str, Any] = read_checkpoint(file)["matches"]["payoffs"]
    return found


def test_scancelled_run_is_cancelled_with_a_checkpoint(submit: Callable[..., SlurmRun]) -> None:
    run = submit(*ENDLESS)
    run.wait_until_trains()
    updates = run.status["updates"]
    run_slurm(["scancel", run.job])
    run.wait_for_state("cancelled")
    assert run.state["last_checkpoint_updates"] >= updates


def test_run_that_is_scancelled_after_its_end_was_announced_is_not_revived(
    submit: Callable[..., SlurmRun],
) -> None:
    run = submit(*ENDLESS)
    run.wait_until_trains()
    run_slurm(["scancel", "--signal=USR2", "--batch", run.job])
    run_slurm(["scancel", run.job])
    # As by a foreman that had asked just before.
    assert requeue(run.job, JobSignals(), ask=lambda _job: [RUNNING]) is None
    run.wait_for_state("cancelled")
    assert run.paths.attempt_numbers() == [1]


def test_refused_requeue_leaves_the_checkpoint_and_reports_the_reason(
    submit: Callable[..., SlurmRun],
) -> None:
    run = submit(*ENDLESS)
    run.wait_until_trains()
    run_slurm(["scontrol", "update", f"jobid={run.job}", "requeue=0"])
    run_slurm(["scancel", "--signal=USR2", "--batch", run.job])
    run.wait_for_state("failed")
    assert "could not be requeued" in run.state["message"]
    assert run.state["last_checkpoint_updates"] > 0


def test_run_whose_end_is_announced_before_its_ranks_are_up_is_requeued_and_trains(
    submit: Callable[..., SlurmRun],
) -> None:
    run = submit(*ENDLESS)
    # Python has just begun: submitit loads the foreman, which then makes its plan.
    run.wait(lambda: any("Loading pickle" in path.read_text() for path in run.paths.slurm_folder.glob("*.out")))
    run_slurm(["scancel", "--signal=USR2", "--batch", run.job])
    run.wait(lambda: "requeueing job" in run.log)
    run.wait(lambda: run.status.get("updates", 0) > 0)


def test_cancelled_run_takes_its_time_and_resumes_here_and_there(
    submit: Callable[..., SlurmRun],
) -> None:
    run = submit(*ENDLESS)
    run.wait_until_trains()
    assert run.command("resume").returncode == 2
    assert run.command("cancel").returncode == 0
    run.wait_for_state("cancelled")
    updates = run.state["last_checkpoint_updates"]
    here = run.command("resume", "--here", "--set", f"stop.updates={updates + 20}")
    assert here.returncode == 0, here.stderr
    assert (run.state["state"], run.checkpoint(2)) == ("finished", updates)
    again = ["--cluster", str(run.profile), "--set", f"stop.updates={updates + 40}", "--set", "actors.ranks=3"]
    assert run.command("resume", *again).returncode == 0
    run.wait_for_state("finished")
    assert run.checkpoint(3) == updates + 20
    fork = run.command("fork", "--here", "--name", "f", "--set", f"stop.updates={updates + 60}")
    assert fork.returncode == 0, fork.stderr


def test_world_of_size_one_is_refused_within_seconds_and_not_tried_again(submit: Callable[..., SlurmRun]) -> None:
    run = submit(profile=PROFILE.replace("mpi: mpich", "srun_mpi: none"))
    run.wait_for_state("failed", seconds=30.0)
    assert run.paths.attempt_numbers() == [1]
    said = run.command("why").stdout
    assert "MPI started 1 rank of 5" in said
    assert "--mpi=pmi2" in said


def test_job_of_a_finished_run_ends_at_once(submit: Callable[..., SlurmRun]) -> None:
    run = submit("trainers.device=cpu", "stop.updates=5")
    run.wait_for_state("finished")
    run.wait(lambda: not run_slurm(["squeue", "-h", "-t", "R,CG", "-j", run.job]).stdout.strip())
    run_slurm(["scontrol", "requeue", run.job])
    run.wait(lambda: "is finished (updates) already" in run.log)
    assert run.paths.attempt_numbers() == [1]


def test_job_resumes_elsewhere_after_its_node_dies(submit: Callable[..., SlurmRun]) -> None:
    run = submit(*ENDLESS)
    run.wait_until_trains()
    node = run.state["nodes"]
    lab_script("kill-node.sh", node)
    try:
        run.wait_until_trains(2, seconds=120.0)
    finally:
        lab_script("start-node.sh", node)
    assert (run.checkpoint(2) or 0) > 0
    assert run.end(1)["reason"] == "requeued"


def test_training_and_status_outlive_a_silent_controller(submit: Callable[..., SlurmRun]) -> None:
    run = submit(*ENDLESS)
    run.wait_until_trains()
    daemon = lab_daemon("slurmctld")
    os.kill(daemon, signal.SIGSTOP)
    try:
        done = run.command("status")
        before = run.status["updates"]
        run.wait(lambda: run.status["updates"] > before)
    finally:
        os.kill(daemon, signal.SIGCONT)
    assert done.returncode == 0
    assert "warning: " in done.stderr
    assert " running " in done.stdout


def test_heterogeneous_job_is_one_world_with_roles_where_the_plan_has_them(submit: Callable[..., SlurmRun]) -> None:
    size = ("trainers.ranks=2", "actors.ranks=4", "actors.environments=4", "trainers.device=cpu")
    run = submit(*size, profile=LAB_PROFILE)
    run.wait(lambda: run.status.get("ranks_alive") == 8)
    hosts = {rank["label"]: rank["host"] for rank in run.status["ranks"]}
    run.wait_for_state("finished", seconds=120.0)
    assert run.state["reason"] == "return_mean"
    assert {host for label, host in hosts.items() if label.startswith("trainer")} <= {"gpu1", "gpu2"}
    assert sorted({host for label, host in hosts.items() if label.startswith("actor")}) == ["cpu1", "cpu2"]


def test_actors_on_another_node_killed_while_they_wait_for_an_answer_do_not_end_the_attempt(
    submit: Callable[..., SlurmRun],
) -> None:
    run = submit(*ENDLESS, "actors.ranks=4", profile=LAB_PROFILE)
    run.wait_until_trains()
    for number, debtor in enumerate(("policy_server", "trainer")):
        pid = run.pid_of(debtor)
        os.kill(pid, signal.SIGSTOP)
        try:
            run.wait(lambda debtor=debtor: run.rank(debtor)["silent_seconds"] > 1.0)
            os.kill(run.pid_of(f"actor-{2 + number}"), signal.SIGKILL)
        finally:
            os.kill(pid, signal.SIGCONT)
        run.wait(lambda alive=6 - number: run.status.get("ranks_alive") == alive)
        updates = run.status["updates"]
        run.wait(lambda updates=updates: run.status["updates"] > updates + 10)
    assert run.status["attempt"] == 1


def test_component_that_is_cancelled_by_itself_ends_the_run_and_is_reported(submit: Callable[..., SlurmRun]) -> None:
    run = submit(*ENDLESS, profile=LAB_PROFILE)
    run.wait_until_trains()
    run_slurm(["scancel", f"{run.job}+1"])
    run.wait_for_state("cancelled", seconds=120.0)
    assert "a component of job" in run.state["message"]
    assert run.state["last_checkpoint_updates"] > 0
