"""Who acts for the rows of one policy: what is live, or versions of it from a shelf."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from srlhpc.data.layout import Array
from srlhpc.data.matches import LIVE
from srlhpc.policies.policy import Acted, Policy
from srlhpc.roles.serving.rows import Rows, gathered
from srlhpc.roles.serving.stacked_networks import Groups, act
from srlhpc.roles.serving.version_shelf import VersionShelf


class Players:
    """The live policy, and the versions that play some rows.

    Args:
        live: the policy as it is now.
        shelf: the versions; None: there are none.
        generator: draws the actions.
        frozen_exploration: what the rule says of the exploration of rows that versions play, as in evaluation.
    """

    def __init__(
        self,
        live: Policy,
        shelf: VersionShelf | None,
        generator: torch.Generator,
        frozen_exploration: Mapping[str, float],
    ) -> None:
        self._live, self._shelf, self._generator = live, shelf, generator
        self._frozen_exploration = frozen_exploration

    def act(self, rows: Rows, players: Array | None) -> Acted:
        """Acts for all rows.

        Args:
            rows: N.
            players: who plays each, `[N]`: updates of a version that is here, or `LIVE`; None: all are live.
        """
        if players is None:
            return act(self._live, rows, self._generator)
        own = np.flatnonzero(players == LIVE)
        others = np.flatnonzero(players != LIVE)
        device = rows.first.device
        parts, order = [], [own]
        if own.size:
            parts.append(act(self._live, rows.some(torch.from_numpy(own).to(device)), self._generator))
        if others.size:
            groups = Groups(players[others])
            frozen = {
                name: torch.full((others.size,), value, device=device)
                for name, value in self._frozen_exploration.items()
            }
            some = rows.some(torch.from_numpy(others).to(device))._replace(exploration=frozen)
            parts += self._act_by_versions(some, groups)
            order.append(others[groups.order])
        return gathered(parts, torch.from_numpy(np.argsort(np.concatenate(order), kind="stable")).to(device))

    def _act_by_versions(self, rows: Rows, groups: Groups) -> list[Acted]:
        """What versions do, in the order of the groups."""
        assert self._shelf is not None
        networks = [self._shelf.network(updates) for updates in groups.numbers]
        stack = self._shelf.stack
        if stack is not None and groups.are_faster_together:
            return [stack.act(rows, groups, self._generator)]
        return [
            act(network, rows.some(torch.from_numpy(groups.rows(place)).to(rows.first.device)), self._generator)
            for place, network in enumerate(networks)
        ]
