"""What is known of each role before any is built: one row a role. Free of pydantic, numpy and torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from srlhpc.specs.cluster import ClusterProfile
    from srlhpc.specs.experiment import ExperimentSpec


@dataclass(frozen=True)
class RoleRow:
    """What sets a role apart from the others, beside what it does."""

    name: str
    """Its name in labels, reports and profiles."""
    section: str | None
    """Its section of a job file; None: there is nothing to set."""
    waits_for: str
    """What it waits for while it has nothing to do."""
    sends: tuple[str, ...]
    """Streams that it sends on (`comm/channel.py`), in small letters."""
    silence_seconds: float = 300.0
    """Seconds without a report after which its rank counts as dead."""
    needs_torch: bool = False
    needs_environment: bool = False
    """Whether it steps an environment, whose module its rank loads in advance."""
    reads_checkpoint: bool = False
    """Whether it is built from the checkpoint that the attempt goes on from."""
    is_essential: bool = False
    """Whether the death of a rank that has its name ends the step; else the others continue."""
    one_must_live: bool = False
    """Whether the step ends when the last rank that has its name is dead."""
    per_policy: bool = False
    """Whether each trained policy has its own, which its label then names."""
    answers: bool = True
    """Whether others wait for what it sends, so that its rank may not sleep for long."""
    policy_section: str | None = None
    """Its section of a policy, of which it may be left out; `ranks: 0` there puts it on the ranks of `beside`."""
    beside: str | None = None
    shares_place: bool = False
    """Whether it lies beside the rank that follows, where a profile gives it no resources of its own."""

    def ranks(self, spec: ExperimentSpec, policy: str | None) -> int | None:
        """Ranks of its own, for each policy if it is `per_policy`; None: the job has no such role."""
        if self.policy_section is not None and policy is not None:
            found = getattr(spec.policies[policy], self.policy_section)
            return None if found is None else int(found.ranks)
        section = self.settings(spec)
        return 1 if section is None else int(section.ranks)

    def settings(self, spec: ExperimentSpec) -> Any:
        """Its section of a spec; None if it has none."""
        return None if self.section is None else getattr(spec, self.section)


_ROWS = (
    RoleRow(
        "coordinator",
        section=None,
        waits_for="reports",
        sends=("commands", "matches"),
        reads_checkpoint=True,
        is_essential=True,
        shares_place=True,
    ),
    RoleRow(
        "trainer",
        section="trainers",
        waits_for="batches",
        sends=("parameters", "grants", "parts", "draws", "reports"),
        silence_seconds=600.0,
        needs_torch=True,
        reads_checkpoint=True,
        is_essential=True,
        per_policy=True,
        answers=False,
    ),
    RoleRow(
        "policy_server",
        section="policy_servers",
        waits_for="requests",
        sends=("replies", "pulls", "reports"),
        needs_torch=True,
        is_essential=True,
    ),
    RoleRow(
        "evaluator",
        section="evaluators",
        waits_for="parameters",
        sends=("pulls", "reports"),
        needs_torch=True,
        needs_environment=True,
    ),
    RoleRow(
        "replay",
        section=None,
        policy_section="replay",
        beside="trainer",
        waits_for="blocks",
        sends=("windows", "grants", "parts", "reports"),
        reads_checkpoint=True,
        is_essential=True,
        per_policy=True,
    ),
    RoleRow(
        "actor",
        section="actors",
        waits_for="actions",
        sends=("requests", "grant_requests", "blocks", "match_requests", "reports"),
        needs_environment=True,
        one_must_live=True,
    ),
)
ROLES: dict[str, RoleRow] = {row.name: row for row in _ROWS}
"""The rows by name, in the order in which ranks are numbered and the roles of a rank are built."""


def role_of(label: str) -> str:
    """The name of the role that a label names: `trainer` of `trainer-default-0`."""
    return label.partition("-")[0]


def computing(spec: ExperimentSpec) -> Iterator[tuple[RoleRow, Any]]:
    """Roles whose section says on which device and with how many threads they compute, each with its section."""
    for row in ROLES.values():
        section = row.settings(spec)
        if hasattr(section, "device"):
            yield row, section


def placed_roles(cluster: ClusterProfile) -> list[str]:
    """Roles that a profile gives resources to: all but those that lie beside others and are not named."""
    return [row.name for row in ROLES.values() if not row.shares_place or row.name in cluster.roles]
