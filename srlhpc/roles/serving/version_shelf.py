"""The versions of a policy that a server acts with beside what is live: read from files, kept while they are used."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any

from srlhpc.policies.policy import Policy
from srlhpc.roles.serving.stacked_networks import StackedNetworks

Arrays = Mapping[str, Any]
"""Name to array of what acts."""


class VersionShelf:
    """Networks by updates of their version, of which the last used stay.

    Args:
        policy: as it is served; copies of it take the parameters.
        read: gives the parameters of a version; may take as long as a file system does.
        load: puts them into a network, or says why they do not fit.
        resident: how many networks are kept; more only while requests wait for them.
        stacks: let many act in one product where the network allows it.
        in_thread: read beside the loop; serial mode reads at once.
    """

    def __init__(
        self,
        policy: Policy,
        read: Callable[[int], Arrays],
        load: Callable[[Policy, Arrays, int], None],
        *,
        resident: int,
        in_thread: bool,
        stacks: bool = True,
    ) -> None:
        self._policy, self._read, self._load = policy, read, load
        self._resident, self._in_thread = resident, in_thread
        self._networks: dict[int, Policy] = {}
        """The last used last."""
        self.stack = StackedNetworks(policy, resident) if stacks and policy.stackable else None
        """The same networks."""
        self._wanted: list[int] = []
        self._arrived: dict[int, Arrays] = {}
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        """What broke the thread; raised by the next `has`."""
        self.loaded = 0
        """Networks that were loaded so far."""

    def has(self, versions: Collection[int]) -> bool:
        """Whether all of them are here; what is not is being read from now on.

        Raises:
            Exception: what broke the reading.
        """
        for updates in versions:
            if updates not in self._networks and updates not in self._wanted:
                self._wanted.append(updates)
        self._fetch()
        return all(updates in self._networks for updates in versions)

    @property
    def versions(self) -> Collection[int]:
        """Updates of those that are here."""
        return self._networks.keys()

    def network(self, updates: int) -> Policy:
        """The network of a version that is here; it counts as used."""
        network = self._networks.pop(updates)
        self._networks[updates] = network
        return network

    def trim(self, needed: Collection[int]) -> None:
        """Gives up those that were not used for longest, but none that is needed."""
        for updates in list(self._networks):
            if len(self._networks) <= self._resident:
                return
            if updates not in needed:
                del self._networks[updates]
                if self.stack is not None:
                    self.stack.remove(updates)

    def _fetch(self) -> None:
        if self._thread is not None and not self._thread.is_alive():
            self._thread.join()
            self._thread = None
        if self._error is not None:
            raise self._error
        if self._thread is None and self._wanted and not self._in_thread:
            self._read_all(list(self._wanted))
        for updates in [updates for updates in self._wanted if updates in self._arrived]:
            self._wanted.remove(updates)
            self._place(updates, self._arrived.pop(updates))
        if self._thread is None and self._wanted:
            self._thread = threading.Thread(
                target=self._read_aside, args=(list(self._wanted),), name="versions", daemon=True
            )
            self._thread.start()

    def _place(self, updates: int, arrays: Arrays) -> None:
        network = copy.deepcopy(self._policy)
        self._load(network, arrays, updates)
        self._networks[updates] = network
        if self.stack is not None:
            self.stack.put(updates, network)
        self.loaded += 1

    def _read_all(self, wanted: Collection[int]) -> None:
        for updates in wanted:
            self._arrived[updates] = self._read(updates)

    def _read_aside(self, wanted: Collection[int]) -> None:
        try:
            self._read_all(wanted)
        except Exception as error:
            self._error = error
