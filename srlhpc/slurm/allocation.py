"""What a job asks Slurm for: components, and what they cost. Plain data, kept in a run's slurm.json.

A component is what one block of sbatch options describes: nodes of one type, alike. Ranks are numbered through the
components in order and lie in blocks on the nodes of each, evenly: of five ranks on two nodes, three are on the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

Option = str | int | bool


@dataclass(frozen=True)
class Component:
    """Nodes of one type."""

    options: Mapping[str, Option]
    """Options of sbatch by their long names; True: without a value. Time limit, name and signal are not among them."""
    first_rank: int
    ranks: int
    nodes: int
    tasks: tuple[int, ...]
    """Ranks on each node, as Slurm's block distribution puts them."""
    cpus: int
    """CPUs of all nodes together that are paid for."""
    gpus: int
    """GPUs of all nodes together."""
    gpu_shares: tuple[float, ...] = ()
    """GPUs of each rank; 0.5: it shares one."""
    threads: tuple[int, ...] = ()
    """Threads of each rank's libraries: the CPUs that it is to have."""

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Component:
        known: dict[str, Any] = {
            field: tuple(content[field]) if isinstance(content[field], list) else content[field]
            for field in cls.__dataclass_fields__
            if field in content
        }
        return cls(**known)

    def ranks_beside(self, rank: int) -> range:
        """The ranks on a rank's node, itself included."""
        node = self.node_of(rank)
        first = self.first_rank + sum(self.tasks[:node])
        return range(first, first + self.tasks[node])

    def node_of(self, rank: int) -> int:
        """The place of a rank's node among the component's."""
        place = rank - self.first_rank
        for node, count in enumerate(self.tasks):
            if place < count:
                return node
            place -= count
        raise AssertionError(f"rank {rank} is not in the component of rank {self.first_rank}")


@dataclass(frozen=True)
class Allocation:
    """What one job asks for."""

    components: tuple[Component, ...]
    """The batch script runs on the first node of the first. Rank 0, the coordinator, is there too, unless the order
    had to follow the nodes' names, see `node_order`."""
    minutes: int
    """Time limit."""

    @property
    def ranks(self) -> int:
        return sum(component.ranks for component in self.components)

    @property
    def core_hours(self) -> float:
        """CPUs times hours, if the job runs to its time limit."""
        return sum(component.cpus for component in self.components) * self.minutes / 60

    @property
    def gpu_hours(self) -> float:
        """GPUs times hours, if the job runs to its time limit."""
        return sum(component.gpus for component in self.components) * self.minutes / 60

    @property
    def threads(self) -> dict[int, int]:
        """Threads by rank, where they are known."""
        return {
            component.first_rank + place: count
            for component in self.components
            for place, count in enumerate(component.threads)
        }

    def component_of(self, rank: int) -> int:
        """The number of the component that a rank is in."""
        starts = [(component.first_rank, number) for number, component in enumerate(self.components)]
        return max(entry for entry in starts if entry[0] <= rank)[1]

    def to_json(self) -> dict[str, Any]:
        return {
            "components": [asdict(component) for component in self.components],
            "minutes": self.minutes,
            "core_hours": self.core_hours,
            "gpu_hours": self.gpu_hours,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Allocation:
        return cls(tuple(Component.from_json(entry) for entry in content["components"]), int(content["minutes"]))
