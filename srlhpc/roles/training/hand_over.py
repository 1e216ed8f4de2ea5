"""Hands over a policy's part of a checkpoint when the coordinator asks for one, and its versions when they are due.

nothing due --(an update that counts, or the coordinator's clock)--> asked --(sender idle)--> sent --> written
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from srlhpc.algorithms.algorithm import Algorithm
from srlhpc.comm.protocol import VERSION, Command
from srlhpc.policies.policy import Policy
from srlhpc.roles.checkpoint_parts import PartSender
from srlhpc.roles.training.checkpoint_part import Counters, checkpoint_part, counted, part_tensors
from srlhpc.roles.training.copy_stream import PartCopy


class HandOver:
    """The way of one trainer's parts; only a policy's first trainer has a `sender`.

    Args:
        policy: what is learnt.
        algorithm: how.
        counters: those of the trainer.
        sender: where parts go; None: this trainer sends none.
        part_copy: where a GPU's part is copied to.
        every_updates: updates between checkpoints that this trainer asks for; None: the coordinator's clock decides.
        is_version: whether there is to be a version after so many updates.
        clock: seconds.
    """

    def __init__(
        self,
        policy: Policy,
        algorithm: Algorithm,
        counters: Counters,
        sender: PartSender | None,
        part_copy: PartCopy | None,
        every_updates: int | None,
        is_version: Callable[[int], bool],
        clock: Callable[[], float],
    ) -> None:
        self._policy, self._algorithm, self._counters = policy, algorithm, counters
        self._sender, self._part_copy = sender, part_copy
        self._every_updates, self._is_version, self._clock = every_updates, is_version, clock
        self._asked = 0
        self.sent = 0
        """Number of the newest checkpoint whose part was sent."""
        self.is_due = False
        """Whether the trainer asks for a checkpoint."""
        self.seconds = 0.0
        """Time that parts took."""
        # Also where a run goes on: the version of where it stands may not have been written, or is another run's.
        self.owes_version = self.is_first and is_version(counters.updates)
        """Whether a version is to leave before the parameters change again."""

    @property
    def is_first(self) -> bool:
        """Whether this trainer speaks for the policy."""
        return self._sender is not None

    @property
    def is_over(self) -> bool:
        """Whether all that was asked for has left."""
        return self._sender is None or (self.sent >= self._asked and self._sender.is_idle and not self.owes_version)

    def poll(self) -> bool:
        """Lets a part that was sent leave."""
        if self._sender is None:
            return False
        begun = self._clock()
        moved = self._sender.poll()
        if moved:
            self.seconds += self._clock() - begun
        return moved

    def obey(self, command: Command) -> None:
        """Takes note of what was asked for."""
        self._asked = max(self._asked, command.checkpoint)

    def updated(self) -> None:
        """An update was made."""
        every, updates = self._every_updates, self._counters.updates
        if every is not None and (updates % every == 0 or updates == 1):
            self.is_due = True
        self.owes_version = self.is_first and self._is_version(updates)

    def send_if_asked(self) -> None:
        """Sends a version that is owed, or else a part that was asked for; called only between updates."""
        if self._sender is None or not self._sender.is_idle:
            return
        if self.owes_version:
            self.owes_version = False
            self._send(VERSION, ("parameters", "counters"))
        elif self.sent < self._asked:
            self.sent = self._asked
            self.is_due = False
            self._send(self.sent, ("parameters", "optimizer", "counters"))

    def _send(self, number: int, groups: Sequence[str]) -> None:
        """Lets groups of this policy's part leave."""
        assert self._sender is not None
        begun = self._clock()
        has_landed = None
        if self._part_copy is None:
            part = checkpoint_part(self._policy, self._algorithm, self._counters)
        else:
            tensors = part_tensors(self._policy, self._algorithm)
            copied = self._part_copy.begin({group: tensors[group] for group in groups if group in tensors})
            part, has_landed = copied | {"counters": counted(self._counters)}, self._part_copy.has_landed
        self._sender.begin(number, {group: part[group] for group in groups}, has_landed)
        self.seconds += self._clock() - begun
