"""The parameters that policy servers act with: those of the newest update that a rule has published."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from srlhpc.policies.policy import Policy, write_vector
from srlhpc.roles.training.checkpoint_part import Counters


class Publisher(Protocol):
    """Where parameters are published (comm/parameters.py)."""

    def publish(self, version: int, write: Callable[[NDArray[np.float32]], None], *, steps: int) -> bool: ...

    @property
    def vector(self) -> NDArray[np.float32]: ...

    def poll(self) -> bool: ...

    @property
    def is_sending(self) -> bool: ...

    def forget(self, address: int) -> None: ...

    def close(self) -> None: ...


class Publication:
    """Publishes one policy's parameters; without a publisher, another trainer does, and only the version is known."""

    def __init__(self, policy: Policy, publisher: Publisher | None, counters: Counters) -> None:
        self._policy, self._publisher, self._counters = policy, publisher, counters
        self._restored: NDArray[np.float32] | None = None
        self.version = 0
        """The newest that was published."""
        self._steps = 0

    def begin(self) -> None:
        """Publishes what acts when the trainer starts: its parameters, or older ones that a saved state brought."""
        restored = self._restored
        if restored is None:
            self.publish()
        elif self._publisher is not None:
            self._publisher.publish(self.version, lambda vector: np.copyto(vector, restored), steps=self._steps)
            self._restored = None

    def publish(self) -> None:
        """Makes the policy's parameters those that act."""
        self.version, self._steps = self._counters.updates, self._counters.steps
        if self._publisher is not None:
            self._publisher.publish(self.version, lambda vector: write_vector(self._policy, vector), steps=self._steps)

    def poll(self) -> bool:
        """Answers those who ask for parameters; true if anything moved."""
        return self._publisher is not None and self._publisher.poll()

    @property
    def is_sending(self) -> bool:
        """Whether parameters are on their way."""
        return self._publisher is not None and self._publisher.is_sending

    def forget(self, addresses: Collection[int]) -> None:
        """The roles at these addresses are dead."""
        if self._publisher is not None:
            for address in addresses:
                self._publisher.forget(address)

    def save_state(self) -> dict[str, Any]:
        """What acts, where that is older than the trainer's parameters; else the part of a checkpoint has it."""
        if self._publisher is None or self.version == self._counters.updates:
            return {}
        vector = self._publisher.vector.copy()
        return {"published": {"version": self.version, "steps": self._steps, "vector": vector}}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes back what `save_state` gave; called before `begin`."""
        if "published" in state:
            published = state["published"]
            self.version, self._steps = int(published["version"]), int(published["steps"])
            self._restored = np.asarray(published["vector"], np.float32)

    def close(self) -> None:
        """Answers nothing more."""
        if self._publisher is not None:
            self._publisher.close()
