"""Which tests `pytest -n` may run at the same time: all but those of one Slurm lab."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

from tests.on_slurm.labs import lab_of


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Each test goes to the next free worker; those of a lab, which end its nodes and fill it, all to one, first."""

    def _split_scope(self, nodeid: str) -> str:
        return lab_of(nodeid) or nodeid
