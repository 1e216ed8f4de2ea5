"""Arrays of a batch are known before there is one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from srlhpc.data.batch_arrays import batch_arrays
from srlhpc.environment import ArraySpec, Discrete, Kind, Spaces, Stack
from srlhpc.plan.layouts import block_layout, windows_layout
from srlhpc.roles.training.staging import Staging
from tests.plan.test_planner import planned

SEEN = {"screen": ArraySpec((4, 36, 36), "uint8"), "exact": ArraySpec((2,), "float64")}
WALKERS = Spaces((Kind("walker", ("a", "b"), SEEN, Discrete(2), True, stacks={"screen": Stack(4, "zeros")}),))
JOBS: dict[str, dict[str, Any]] = {
    "stream": {"network": {"kind": "nature_cnn"}},
    "chunks": {
        "network": {"kind": "nature_cnn", "recurrent": {"kind": "lstm", "size": 8}},
        "batch": {"fragments": 8, "fragment_steps": 8, "chunk_steps": 4},
    },
    "replay": {
        "network": {"kind": "nature_cnn"},
        "algorithm": {"kind": "dqn"},
        "batch": {"fragments": 8, "fragment_steps": 1},
        "replay": {"capacity": 1000, "start_steps": 100},
    },
}


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_arrays_are_those_of_the_batch_that_is_gathered(job: dict[str, Any]) -> None:
    plan = planned(WALKERS, **job)
    layout = windows_layout(plan, "default") if "replay" in job else block_layout(plan, "default")
    for blocks in (1, 3):
        fields = Staging(layout, blocks, torch.device("cpu")).batch(version=0, steps=0, burn_in=0).fields
        expected = {name: ArraySpec(tuple(array.shape), str(array.dtype)[6:]) for name, array in fields.items()}
        assert batch_arrays(layout, blocks) == expected
    assert expected["obs.exact"].dtype == "float64"
