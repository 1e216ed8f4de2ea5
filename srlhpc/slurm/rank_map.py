"""Which rank plays which role where, for people: a line a rank, or, of many ranks, a line for those alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from srlhpc.errors import counted
from srlhpc.plan.plan import Plan, RankPlan, RolePlan
from srlhpc.slurm.allocation import Allocation
from srlhpc.slurm.time_limit import hours_text

MOST_LINES = 40
"""Most ranks that get a line each; more are shown by the group."""


@dataclass(frozen=True)
class _Row:
    """Ranks one after the other with equal roles, on one node or on several with equally many of them."""

    ranks: range
    component: int
    nodes: range
    """Places among the component's."""
    first: tuple[RolePlan, ...]
    """Roles of the first rank."""
    last: tuple[RolePlan, ...]
    ranks_per_node: int = 1

    @classmethod
    def of(cls, rank: RankPlan, allocation: Allocation) -> _Row:
        number = allocation.component_of(rank.rank)
        node = allocation.components[number].node_of(rank.rank)
        return cls(range(rank.rank, rank.rank + 1), number, range(node, node + 1), rank.roles, rank.roles)

    def followed_by(self, other: _Row) -> _Row:
        return replace(
            self,
            ranks=range(self.ranks.start, other.ranks.stop),
            nodes=range(self.nodes.start, other.nodes.stop),
            last=other.last,
            # Ranks of one node add up; nodes alike have equally many each.
            ranks_per_node=self.ranks_per_node + other.ranks_per_node * (self.nodes == other.nodes),
        )

    def has_roles_of(self, other: _Row) -> bool:
        kinds, others = ([(role.name, role.policy) for role in row.first] for row in (self, other))
        return self.component == other.component and kinds == others

    @property
    def columns(self) -> tuple[str, str, str, str]:
        roles = " + ".join(
            first.label if first is last else f"{first.label}…{last.index}"
            for first, last in zip(self.first, self.last, strict=True)
        )
        each = f", {self.ranks_per_node} a node" if len(self.nodes) > 1 else ""
        return _span(self.ranks), str(self.component), _span(self.nodes), f"{roles}{each}"


def rank_map(plan: Plan, allocation: Allocation) -> list[str]:
    """Roles, component, and the node's place among the component's."""
    rows = [_Row.of(rank, allocation) for rank in plan.ranks]
    if len(rows) > MOST_LINES:
        rows = _merged(_merged(rows, _are_on_one_node), _are_on_nodes_alike)
    table = [("rank", "component", "node", "role"), *(row.columns for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(3)]
    return ["  ".join([*map(str.rjust, line, widths), line[3]]) for line in table]


def _merged(rows: Iterable[_Row], are_alike: Callable[[_Row, _Row], bool]) -> list[_Row]:
    merged: list[_Row] = []
    for row in rows:
        if merged and are_alike(merged[-1], row):
            merged[-1] = merged[-1].followed_by(row)
        else:
            merged.append(row)
    return merged


def _are_on_one_node(row: _Row, other: _Row) -> bool:
    return row.nodes == other.nodes and row.has_roles_of(other)


def _are_on_nodes_alike(row: _Row, other: _Row) -> bool:
    return (
        row.ranks_per_node == other.ranks_per_node and row.nodes.stop == other.nodes.start and row.has_roles_of(other)
    )


def _span(numbers: range) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}"


def resources_table(allocation: Allocation) -> list[str]:
    """A line a component, and what it can cost."""
    lines = []
    for number, component in enumerate(allocation.components):
        tasks = sorted(set(component.tasks), reverse=True)
        last = component.first_rank + component.ranks - 1
        memory = f"{component.options['mem']} a node" if "mem" in component.options else "(default)"
        lines.append(
            f"component {number}: partition {component.options.get('partition', '(default)')}, "
            f"{counted(component.nodes, 'node')} with {' or '.join(map(str, tasks))} ranks, "
            f"{counted(component.cpus, 'CPU')}, {counted(component.gpus, 'GPU')}, memory {memory}; "
            f"ranks {component.first_rank} to {last}"
        )
    hours = hours_text(allocation.minutes)
    cost = f"{allocation.core_hours:,.1f} core-hours, {allocation.gpu_hours:,.1f} GPU-hours"
    return [*lines, f"time limit {hours}: at most {cost} a job"]
