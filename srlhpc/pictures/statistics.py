"""Statistics of the episodes of runs, in the panels that their environment declares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from srlhpc.errors import UserError
from srlhpc.pictures.curves import Axis, Curve, read_statistics
from srlhpc.runs.paths import RunPaths
from srlhpc.specs.load import load_experiment
from srlhpc.specs.named_modules import EnvironmentSettings, Panel


@dataclass(frozen=True)
class Statistics:
    """What is drawn: panels, and the curves of every statistic by group of runs."""

    panels: Sequence[Panel]
    groups: Mapping[str, Sequence[Mapping[str, Curve]]]
    """Name of a group to the statistics of each of its runs."""

    def curves(self, group: str, statistic: str) -> list[Curve]:
        """The curves of the runs of a group that have the statistic."""
        return [curves[statistic] for curves in self.groups[group] if statistic in curves]


def statistics_of(groups: Mapping[str, Sequence[RunPaths]], axis: Axis) -> Statistics:
    """The statistics of all runs.

    Args:
        groups: name to runs, as `srlhpc.pictures.curves.grouped` gives them.
        axis: what they are drawn against.

    Raises:
        UserError: the runs are of several environments, or one has no statistics.
    """
    environments = {name: load_experiment(runs[0].spec).environment for name, runs in groups.items()}
    _check_one_environment(environments)
    found = {name: [read_statistics(paths, axis) for paths in runs] for name, runs in groups.items()}
    names = list(dict.fromkeys(name for runs in found.values() for curves in runs for name in curves))
    return Statistics(_panels(_declared(environments.values()), names), found)


def _check_one_environment(environments: Mapping[str, EnvironmentSettings]) -> None:
    factories = {name: settings.factory for name, settings in environments.items()}
    if len(set(factories.values())) > 1:
        listed = ", ".join(f"{factory} ({name})" for name, factory in factories.items())
        raise UserError(
            f"--statistics draws runs of one environment, and these are of several: {listed}. Draw each alone."
        )


def _declared(environments: Iterable[EnvironmentSettings]) -> list[Panel]:
    panels: list[Panel] = []
    for settings in environments:
        panels += [panel for panel in settings.statistics() if panel not in panels]
    return panels


def _panels(declared: Sequence[Panel], names: Sequence[str]) -> list[Panel]:
    """Declared panels, with the statistics that there are; one panel for each statistic if none is declared."""
    if not declared:
        return [Panel(name, "mean", {name: name}) for name in names]
    kept = [
        replace(panel, statistics={name: label for name, label in panel.statistics.items() if name in names})
        for panel in declared
    ]
    if not any(panel.statistics for panel in kept):
        wanted = ", ".join(name for panel in declared for name in panel.statistics)
        raise UserError(
            f"--statistics: statistics() of the environment's Settings names {wanted}, but its episodes have "
            f"{', '.join(names)}; correct the names there"
        )
    return [panel for panel in kept if panel.statistics]
