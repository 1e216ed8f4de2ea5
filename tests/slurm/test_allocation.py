"""What an allocation costs, and that it can be read back."""

from __future__ import annotations

from srlhpc.slurm.allocation import Allocation
from srlhpc.slurm.placement import allocate
from tests.slurm.placing import TWO_TYPES, planned, profile


def test_shared_nodes_cost_what_is_asked_for() -> None:
    allocation = allocate(planned(), profile(TWO_TYPES), 30)
    assert (allocation.core_hours, allocation.gpu_hours) == (4.0, 1.0)


def test_allocation_survives_writing_and_reading() -> None:
    allocation = allocate(planned(), profile(TWO_TYPES, sbatch={"mail-type": "END"}), 60)
    assert Allocation.from_json(allocation.to_json()) == allocation
