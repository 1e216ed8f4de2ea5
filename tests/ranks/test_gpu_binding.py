"""Which GPUs a rank sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from srlhpc.plan.plan import Plan
from srlhpc.plan.planner import make_plan
from srlhpc.ranks.gpu_binding import GpuError, bound, device_files, gpus_of_rank, own_gpus, shared_gpus, visible_gpus
from srlhpc.slurm.allocation import Allocation, Component
from srlhpc.specs.experiment import ExperimentSpec
from tests.launch.making_runs import settings
from tests.scripted import scripted_spaces

GPUS = Component({}, 0, 3, 1, (3,), 3, 2, (0.0, 1.0, 0.5))
CPUS = Component({}, 3, 2, 2, (1, 1), 2, 0, (0.0, 0.0))
JOB = Allocation((GPUS, CPUS), 10)


@pytest.fixture
def plan() -> Plan:
    """A coordinator, a trainer, a policy server, two actors."""
    job = settings({"factory": "catch"}, stop={"updates": 1}, actors={"ranks": 2, "environments": 4})
    return make_plan(ExperimentSpec.model_validate(job), scripted_spaces({"agent": ("agent",)}))


@pytest.mark.parametrize(
    ("environment", "names"),
    [
        ({"CUDA_VISIBLE_DEVICES": "0,1"}, ("0", "1")),
        ({"CUDA_VISIBLE_DEVICES": "GPU-8932f937-d72c, MIG-3b2a"}, ("GPU-8932f937-d72c", "MIG-3b2a")),
        ({"CUDA_VISIBLE_DEVICES": "3,-1,2"}, ("3",)),
        ({"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, ()),
        ({"CUDA_VISIBLE_DEVICES": ""}, ()),
        ({"ROCR_VISIBLE_DEVICES": "4,5"}, ("4", "5")),
        ({"ROCR_VISIBLE_DEVICES": "4,5", "CUDA_VISIBLE_DEVICES": "4,5"}, ("4", "5")),
        ({"ROCR_VISIBLE_DEVICES": "4,5", "HIP_VISIBLE_DEVICES": "1"}, ("1",)),
        ({}, ("0", "1", "2")),
    ],
)
def test_granted_gpus_have_their_names(environment: dict[str, str], names: tuple[str, ...]) -> None:
    assert visible_gpus(environment, 3) == names


@pytest.mark.parametrize(
    ("environment", "chosen", "after"),
    [
        ({"CUDA_VISIBLE_DEVICES": "0,1", "A": "b"}, ["1"], {"CUDA_VISIBLE_DEVICES": "1", "A": "b"}),
        ({}, ["1"], {"CUDA_VISIBLE_DEVICES": "1"}),
        ({"ROCR_VISIBLE_DEVICES": "4,5"}, ["5"], {"ROCR_VISIBLE_DEVICES": "5"}),
        (
            {"CUDA_VISIBLE_DEVICES": "4,5", "ROCR_VISIBLE_DEVICES": "4,5", "GPU_DEVICE_ORDINAL": "4,5"},
            ["5"],
            {"CUDA_VISIBLE_DEVICES": "5"},
        ),
        (
            {"HIP_VISIBLE_DEVICES": "0,1", "ROCR_VISIBLE_DEVICES": "4,5"},
            ["1"],
            {"HIP_VISIBLE_DEVICES": "1", "ROCR_VISIBLE_DEVICES": "4,5"},
        ),
        (
            {"CUDA_VISIBLE_DEVICES": "4,5", "ROCR_VISIBLE_DEVICES": "4,5"},
            [],
            {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""},
        ),
    ],
)
def test_bound_rank_sees_its_own_gpus_and_no_others(
    environment: dict[str, str], chosen: list[str], after: dict[str, str]
) -> None:
    assert bound(environment, chosen) == after
    assert visible_gpus(after, 9) == tuple(chosen)


def test_ranks_of_a_job_see_their_shares_and_no_others(plan: Plan) -> None:
    granted = {"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b"}
    seen = [gpus_of_rank(plan, rank, JOB, granted if rank < 3 else {}, 0) for rank in range(5)]
    assert seen == [(), ("GPU-a",), ("GPU-b",), (), ()]


def test_ranks_of_a_second_node_count_from_its_first(plan: Plan) -> None:
    job = Allocation((Component({}, 0, 4, 2, (2, 2), 4, 4, (1.0, 1.0, 1.0, 1.0)),), 10)
    seen = [gpus_of_rank(plan, rank, job, {"CUDA_VISIBLE_DEVICES": "0,1"}, 0) for rank in range(4)]
    assert seen == [("0",), ("1",), ("0",), ("1",)]


@pytest.mark.parametrize("granted", [(), ("0",)])
def test_fewer_granted_gpus_than_planned_are_refused_with_a_remedy(granted: tuple[str, ...]) -> None:
    with pytest.raises(GpuError, match=rf"grants {len(granted)} of 2 GPUs .*gpus_per_rank"):
        own_gpus(granted, [0.0, 1.0, 1.0], 1)
    assert own_gpus(granted, [0.0, 1.0, 1.0], 0) == ()


@pytest.mark.parametrize(
    ("granted", "seen"),
    [
        (("0", "1"), [(), ("0",), ("1",), ()]),
        (("0", "1", "2"), [(), ("0",), ("1",), ()]),
        (("7",), [(), ("7",), ("7",), ()]),
        ((), [(), (), (), ()]),
    ],
)
def test_ranks_of_one_machine_take_gpus_in_turn(granted: tuple[str, ...], seen: list[tuple[str, ...]]) -> None:
    wanting = [False, True, True, False]
    assert [shared_gpus(granted, wanting, rank) for rank in range(4)] == seen


def test_ranks_that_compute_see_all_gpus_where_nothing_is_known(plan: Plan) -> None:
    assert [gpus_of_rank(plan, rank, None, {}, 0) for rank in range(4)] == [(), None, None, ()]


def test_device_files_number_the_gpus_of_a_machine(plan: Plan, tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidia1", "nvidiactl", "null"):
        (tmp_path / name).touch()
    assert device_files(tmp_path) == 2
    assert [gpus_of_rank(plan, rank, None, {}, 2) for rank in range(4)] == [(), ("0",), ("1",), ()]
