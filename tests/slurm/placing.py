"""Plans and profiles of tests that place ranks on nodes."""

from __future__ import annotations

from typing import Any

import pytest

from srlhpc.errors import UserError
from srlhpc.plan.plan import Plan
from srlhpc.plan.planner import make_plan
from srlhpc.slurm.placement import allocate
from srlhpc.specs.cluster import ClusterProfile
from srlhpc.specs.experiment import ExperimentSpec
from tests.launch.making_runs import settings
from tests.scripted import scripted_spaces

NODES = {"cpus_per_node": 8, "nodes": 4, "max_minutes": 600}
CPU = {"partition": "cpu"}
GPU = {"partition": "gpu", "gpus_per_rank": 1}
PARTITIONS = {"cpu": {**NODES, "gpus_per_node": 0}, "gpu": {**NODES, "gpus_per_node": 2}}
TWO_TYPES = {"default": CPU, "trainer": GPU, "policy_server": {"partition": "gpu"}}


def planned(trainers: int = 2, actors: int = 4, actors_inference: str = "server", **changes: Any) -> Plan:
    ranks = {
        "actors": {"ranks": actors, "ring": 2, "environments": 4, "inference": {"kind": actors_inference}},
        "trainers": {"ranks": trainers, "device": "cpu"},
    }
    job = settings({"factory": "catch"}, **{"stop": {"updates": 1}, **ranks, **changes})
    return make_plan(ExperimentSpec.model_validate(job), scripted_spaces({"agent": ("agent",)}))


def profile(roles: dict[str, Any], **changes: Any) -> ClusterProfile:
    return ClusterProfile.model_validate({"roles": roles, "partitions": PARTITIONS, **changes})


def refusal(plan: Plan, cluster: ClusterProfile, minutes: int = 60) -> str:
    with pytest.raises(UserError) as caught:
        allocate(plan, cluster, minutes)
    return str(caught.value)
