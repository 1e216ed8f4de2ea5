"""What is made of a spec before anything starts, and who makes it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from srlhpc.errors import UserError
from srlhpc.launch.preparation import (
    check_devices,
    check_memory,
    prepare_again,
    prepare_here,
    prepare_job,
    prepare_plan,
)
from srlhpc.specs.cluster import ClusterProfile, read_cluster
from srlhpc.specs.experiment import ExperimentSpec
from srlhpc.specs.load import load_job
from tests.launch.making_runs import settings

ROOT = Path(__file__).parents[2]
CATCH = {"factory": "catch", "rows": 5, "columns": 3}
PROFILE = ClusterProfile(python="python")


def spec(**changes: object) -> ExperimentSpec:
    return ExperimentSpec.model_validate(settings(CATCH, stop={"updates": 1}, **changes))


def test_plan_of_a_job_is_that_of_a_run_here() -> None:
    assert prepare_job(spec(), PROFILE, 60).plan == prepare_plan(spec())


def test_job_asks_for_the_ranks_of_its_plan_and_its_time() -> None:
    job = prepare_job(spec(), PROFILE, 60)
    assert (job.allocation.ranks, job.allocation.minutes) == (len(job.plan.ranks), 60)


def test_serial_run_needs_no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert len(prepare_here(spec(), serial=True).ranks) == 1


def test_spec_that_was_changed_after_its_job_was_submitted_is_refused(tmp_path: Path) -> None:
    allocation = prepare_job(spec(), PROFILE, 60).allocation
    assert prepare_again(spec(), allocation, tmp_path / "spec.yaml", "mine") == prepare_plan(spec())
    more = spec(evaluators={"ranks": 2})
    with pytest.raises(UserError, match=r"spec\.yaml needs 6 ranks, but the job was allocated for 4; .* resume mine"):
        prepare_again(more, allocation, tmp_path / "spec.yaml", "mine")


def test_refusal_names_the_line_of_the_job_file_or_of_the_profile(tmp_path: Path) -> None:
    read = load_job(str(ROOT / "jobs" / "catch.yaml"), ["policies.default.batch.fragments=3"])
    with pytest.raises(UserError, match=r"policies\.default\.batch\.fragments: is 3"):
        prepare_plan(read.spec, naming=read.naming_places)
    file = tmp_path / "small.yaml"
    file.write_text("python: python\nroles:\n  default: {partition: p}\npartitions:\n  p:\n    max_minutes: 30\n")
    profile = read_cluster(str(file))
    with pytest.raises(UserError, match=r"small\.yaml:6: partitions\.p\.max_minutes: is 30"):
        prepare_job(spec(), profile.profile, 60, naming_profile=profile.naming_places)


def test_gpu_that_is_not_there_is_refused_by_its_setting(tmp_path: Path) -> None:
    for section in ("trainers", "policy_servers"):
        with pytest.raises(UserError, match=rf"^{section}\.device: is 'cuda', but this machine has no GPU"):
            check_devices(spec(**{section: {"device": "cuda"}}), tmp_path)
    (tmp_path / "nvidia0").touch()
    check_devices(spec(trainers={"device": "cuda"}), tmp_path)


def test_replay_that_is_larger_than_the_machine_is_refused_by_its_capacity() -> None:
    job = ("policies.default.replay.capacity=1000000", "policies.default.replay.ranks=0")
    plan = prepare_plan(load_job(str(ROOT / "jobs" / "cartpole_dqn.yaml"), job).spec)
    check_memory(plan, 1 << 30)
    with pytest.raises(
        UserError, match=r"^policies\.default\.replay\.capacity: is 1000000; .* machine has 0\.1 GB: lower"
    ):
        check_memory(plan, 50_000_000)


def test_batches_that_a_rule_keeps_are_refused_by_its_name() -> None:
    job = ("policies.default.algorithm.auxiliary_every_updates=2000",)
    plan = prepare_plan(load_job(str(ROOT / "jobs" / "cartpole_ppg.yaml"), job).spec)
    check_memory(plan, 1 << 30)
    with pytest.raises(
        UserError, match=r"^policies\.default\.batch\.fragments: is 32, and ppg keeps .* GB of such batches; "
    ):
        check_memory(plan, 40_000_000)


def test_batches_that_are_larger_than_the_machine_are_refused() -> None:
    plan = prepare_plan(spec())
    with pytest.raises(UserError, match=r"^actors\.environments, .* this machine has 0\.0 GB"):
        check_memory(plan, 100)


def test_nobody_else_makes_a_plan_of_spaces_that_it_probes() -> None:
    """`playing` lies below: it probes only where no attempt has left its spaces."""
    both = {"srlhpc/launch/preparation.py", "srlhpc/playing.py"}
    makers = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "srlhpc").rglob("*.py")
        if {"make_plan", "probe_spaces"} <= names_called(path)
    }
    assert makers == both


def names_called(path: Path) -> set[str]:
    calls = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    return {call.id for call in calls if isinstance(call, ast.Name)}
