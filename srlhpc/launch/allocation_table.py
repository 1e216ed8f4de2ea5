"""An allocation for people: what each component asks for, and what it can cost."""

from __future__ import annotations

from srlhpc.launch.allocation import Allocation
from srlhpc.launch.time_limit import hours_text


def resources_table(allocation: Allocation) -> list[str]:
    """A line a component, and what it can cost."""
    lines = []
    for number, component in enumerate(allocation.components):
        tasks = sorted(set(component.tasks), reverse=True)
        last = component.first_rank + component.ranks - 1
        memory = f"{component.options['mem']} a node" if "mem" in component.options else "(default)"
        lines.append(
            f"component {number}: partition {component.options.get('partition', '(default)')}, "
            f"{component.nodes} {_plural('node', component.nodes)} with {' or '.join(map(str, tasks))} ranks, "
            f"{component.cpus:,} CPUs, {component.gpus:,} GPUs, memory {memory}; "
            f"ranks {component.first_rank} to {last}"
        )
    hours = hours_text(allocation.minutes)
    cost = f"{allocation.core_hours:,.1f} core-hours, {allocation.gpu_hours:,.1f} GPU-hours"
    return [*lines, f"time limit {hours}: at most {cost} a job"]


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
