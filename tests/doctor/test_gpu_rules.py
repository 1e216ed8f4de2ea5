"""What Slurm granted against what torch sees."""

from __future__ import annotations

from typing import Any

from srlhpc.doctor.gpu_rules import job_gpus, local_gpus
from srlhpc.doctor.reports import RankReport
from tests.doctor.reported import lost, node, report

CUDA = {"torch": "2.9", "built": "12.8", "seen": 1, "name": "H100"}


def trainer(number: int, granted: int = 2, gpus: float = 1.0, **gpu: Any) -> RankReport:
    device = {"device": f"cuda:{number}", "identity": f"n1 {number}"}
    return report(number, gpus=gpus, host=node(granted=granted, needed=2, bound=1), gpu=CUDA | device | gpu)


def test_gpu_for_each_rank_is_ok() -> None:
    found = job_gpus([trainer(0), trainer(1)], "/env/python")
    assert found is not None
    assert found.line == "ok       GPUs:               2 GPUs (H100) for 2 ranks, bound one by one"


def test_torch_without_cuda_is_a_warning_with_the_interpreter() -> None:
    found = job_gpus([trainer(0, granted=2, built=None, seen=0)], "/env/python")
    assert found is not None
    assert (found.level, found.remedy) == ("warning", "install a torch with CUDA in the environment of /env/python")
    assert "Slurm granted 2 GPUs on n1, but this torch (2.9) has no CUDA" in found.found


def test_too_few_granted_gpus_are_a_fault_of_the_profile() -> None:
    found = job_gpus([trainer(0, granted=1)], "python")
    assert found is not None
    assert (found.level, found.found) == ("fault", "Slurm granted 1 of the 2 asked for on n1")
    assert "gpus_per_rank" in found.remedy


def test_gpus_that_torch_does_not_see_point_to_the_driver() -> None:
    found = job_gpus([trainer(0, seen=0, error="driver too old")], "python")
    assert found is not None
    assert (found.level, "driver too old" in found.found, "nvidia-smi" in found.remedy) == ("fault", True, True)


def test_other_gpus_than_granted_are_a_warning() -> None:
    found = job_gpus([trainer(0, seen=2)], "python")
    assert found is not None
    assert (found.level, "was given 1, but torch sees 2" in found.found) == ("warning", True)


def test_gpu_taken_by_two_ranks_is_a_warning_unless_the_profile_halves_it() -> None:
    shared = {"identity": "n1 0", "device": "cuda:0"}
    found = job_gpus([trainer(0, **shared), trainer(1, **shared)], "python")
    halves = job_gpus([trainer(0, gpus=0.5, **shared), trainer(1, gpus=0.5, **shared)], "python")
    assert found is not None
    assert halves is not None
    assert (found.level, halves.level) == ("warning", "ok")


def test_no_gpus_asked_for_are_ok_and_no_ranks_are_no_finding() -> None:
    none = job_gpus([report()], "python")
    assert none is not None
    assert none.level == "ok"
    assert job_gpus([lost(gpus=1.0, host={})], "python") is None


def test_gpus_of_this_machine_are_its_device_files() -> None:
    unseen = local_gpus([report(host=node(granted=1))])
    none, seen = local_gpus([report()]), local_gpus([report(gpu=CUDA)])
    assert unseen is not None
    assert none is not None
    assert seen is not None
    assert (unseen.level, none.level, seen.level) == ("warning", "ok", "ok")
    assert unseen.found == "1 GPU here, but torch 2.9 sees none (it has no CUDA)"
    assert local_gpus([lost()]) is None
