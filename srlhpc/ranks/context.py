"""What the builders of a rank's roles are given. Free of torch and of MPI."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from srlhpc.comm.channel import Transport
from srlhpc.plan.plan import Plan, RankPlan
from srlhpc.ranks.wiring import Wiring
from srlhpc.runs.paths import AttemptPaths, RunPaths

if TYPE_CHECKING:
    from srlhpc.comm.mpi.world import MpiWorld
    from srlhpc.comm.parameters import ParameterSource


@dataclass(frozen=True)
class RankContext:
    """One rank of an attempt, while its roles are built and played."""

    plan: Plan
    here: RankPlan
    paths: RunPaths
    attempt: AttemptPaths
    transport: Transport
    """Carries the messages of this rank's roles."""
    world: MpiWorld | None = None
    """All ranks; None in a serial run."""
    restored: Mapping[str, Any] | None = None
    """The tree of the checkpoint that the attempt goes on from, for those that read it; None from the beginning."""
    sources: dict[str, ParameterSource] = field(default_factory=dict)
    """Parameters by policy that a trainer of this rank publishes: roles beside it read them directly."""

    notes: list[str] = field(default_factory=list)
    """What building the roles found that users should know; the rank reports it once."""

    @cached_property
    def wiring(self) -> Wiring:
        """The ends of the rank's links."""
        return Wiring(self.plan, self.transport)

    @property
    def restart(self) -> int:
        """How often the run was started before without exact state; part of the seeds that may differ."""
        return 0 if self.plan.serial else self.attempt.number - 1
