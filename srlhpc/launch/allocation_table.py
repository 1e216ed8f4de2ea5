"""An allocation for people: what each component asks for, and which rank plays which role where."""

from __future__ import annotations

from srlhpc.launch.allocation import Allocation
from srlhpc.launch.ranks import Plan
from srlhpc.launch.time_limit import hours_text


def resources_table(allocation: Allocation) -> list[str]:
    """A line a component, and what it can cost."""
    lines = []
    for number, component in enumerate(allocation.components):
        tasks = sorted(set(component.tasks), reverse=True)
        last = component.first_rank + component.ranks - 1
        memory = component.options.get("mem")
        lines.append(
            f"component {number}: partition {component.options.get('partition', '(default)')}, "
            f"{component.nodes} {_plural('node', component.nodes)} with {' or '.join(map(str, tasks))} ranks, "
            f"{component.cpus} CPUs, {component.gpus} GPUs, memory {f'{memory} a node' if memory else '(default)'}; "
            f"ranks {component.first_rank} to {last}"
        )
    hours = hours_text(allocation.minutes)
    cost = f"{allocation.core_hours:.1f} core-hours, {allocation.gpu_hours:.1f} GPU-hours"
    return [*lines, f"time limit {hours}: at most {cost} a job"]


def rank_map(plan: Plan, allocation: Allocation) -> list[str]:
    """A line a rank: role, component, and its node's place among the component's."""
    lines = [f"{'rank':>6}  {'component':>9}  {'node':>4}  role"]
    for rank in plan.ranks:
        number = allocation.component_of(rank.rank)
        node = allocation.components[number].node_of(rank.rank)
        roles = " + ".join(role.label for role in rank.roles)
        lines.append(f"{rank.rank:>6}  {number:>9}  {node:>4}  {roles}")
    return lines


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
