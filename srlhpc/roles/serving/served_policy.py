"""One policy of a policy server: batches the observations of many seats through the network, answers with actions.

Letters: E environments of a group, A agents of the policy in one environment, R = E x A rows of one group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from srlhpc.comm.channel import Inbox, Message, Outbox
from srlhpc.comm.parameters import ParameterSubscription
from srlhpc.data.blocks import STATE, ReplyHeader, RequestHeader
from srlhpc.data.layout import Array, prefixed
from srlhpc.data.matches import LIVE, PLAYERS
from srlhpc.errors import counted
from srlhpc.policies.expert import advice, labelled
from srlhpc.policies.held_weights import hold_weights
from srlhpc.policies.policy import NO_EXPLORATION, Acted, Exploration, Policy, read_vector
from srlhpc.roles.serving.device_rows import DeviceRows, rows_of
from srlhpc.roles.serving.players import Players
from srlhpc.roles.serving.rows import Rows
from srlhpc.roles.serving.version_shelf import VersionShelf
from srlhpc.specs.contracts import EXPERT


class ServedPolicy:
    """One policy for the groups of one server: parameters, recurrent states by row, randomness."""

    def __init__(
        self,
        policy: Policy,
        subscription: ParameterSubscription | None,
        requests: Inbox,
        replies: Mapping[int, Outbox],
        *,
        rows: int,
        outputs: Sequence[str],
        device: torch.device,
        autocast: torch.dtype | None,
        generator: torch.Generator,
        explore: Callable[[int], Mapping[str, Array]] | None = None,
        expert: Policy | None = None,
        shelf: VersionShelf | None = None,
        frozen_exploration: Mapping[str, float] = MappingProxyType({}),
        way: DeviceRows | None = None,
    ) -> None:
        """Serves one policy.

        Args:
            policy: on `device`; it is only served from now on.
            subscription: None for a policy that nobody trains: it acts with the parameters it has.
            requests: one slot per group, in the order of `replies`.
            replies: address-free: place of the group in `requests` to its outbox.
            rows: R, of one group.
            outputs: names of those outputs of acting that replies carry.
            device: where the network runs.
            autocast: bfloat16 for the network's arithmetic, or None.
            generator: draws the actions.
            explore: trained steps to what the rule says of the exploration of the rows of all groups, in the order of
                `replies`: name to float32 `[groups x R]`. None: it says nothing.
            expert: says of every row what it would do, and acts in some; on `device`, without memory.
            shelf: in matches, the versions that play some rows; requests then say which.
            frozen_exploration: what the rule says of the exploration of those rows.
            way: of rows to the device and back; None: the one that the device needs.
        """
        self.version = 0 if subscription is None else -1
        if autocast is not None and device.type == "cpu":
            for network in (policy, *([] if expert is None else [expert])):
                hold_weights(network, autocast)
        self._expert = expert
        self._policy, self._subscription = policy, subscription
        self._requests, self._replies = requests, replies
        self._rows, self._device, self._autocast, self._generator = rows, device, autocast, generator
        self._outputs = tuple(outputs)
        self._state = {name: tensor.to(device) for name, tensor in policy.initial_state(rows * len(replies)).items()}
        self._way = way or rows_of(device, rows * len(replies))
        self._shelf = shelf
        self._players = Players(policy, shelf, generator, frozen_exploration)
        self._explore = explore
        with self._way.computing():
            self._exploration = self._explored(0)
        self._waiting: list[Message] = []
        self._observation_keys = tuple(policy.kind.observations)
        self.rows_inferred = 0
        self.batches = 0
        self.dead: set[int] = set()

    def refresh(self) -> bool:
        """Takes over newer parameters."""
        if self._subscription is None or not self._subscription.poll() or self._subscription.version <= self.version:
            return False
        with self._way.computing():
            read_vector(self._policy, self._subscription.vector)
            self._exploration = self._explored(self._subscription.steps)
        self.version = self._subscription.version
        return True

    def _explored(self, steps: int) -> Exploration:
        if self._explore is None:
            return NO_EXPLORATION
        return {name: torch.from_numpy(rows).to(self._device) for name, rows in self._explore(steps).items()}

    def serve(self) -> bool:
        """Acts at once for all requests that are here and whose version has come."""
        self._requests.poll()
        while (message := self._requests.take()) is not None:
            self._waiting.append(message)
        ready: list[Message] = []
        waiting: list[Message] = []
        for message in self._waiting:
            (ready if self._can_act(message) else waiting).append(message)
        self._waiting = waiting
        if not ready:
            return False
        with self._way.computing():
            values = self._values(ready, self._act(ready))
        self._answer(ready, values)
        if self._shelf is not None:
            self._shelf.trim({updates for message in waiting for updates in _versions(message)})
        return True

    def _can_act(self, request: Message) -> bool:
        """Whether all that acts for it is here; versions that are not are read from now on."""
        has_versions = self._shelf is None or self._shelf.has(_versions(request))
        return has_versions and bool(max(0, request.header[RequestHeader.NEEDS_VERSION]) <= self.version)

    def _act(self, requests: Sequence[Message]) -> Acted:
        def rows(field: str) -> Tensor:
            parts = [
                request.fields[field].reshape(self._rows, *request.fields[field].shape[2:]) for request in requests
            ]
            return self._way.to_device(field, parts)

        alive = self._alive(requests)

        def seen(field: str) -> Tensor:
            return rows(field) if alive is None else rows(field)[alive]

        observations = {key: seen(f"obs.{key}") for key in self._observation_keys}
        masks = seen("action_masks") if self._policy.kind.has_action_masks else None
        whole = self._places(requests) if self._state or self._exploration else None
        places = whole if whole is None or alive is None else whole[alive]
        state = {name: tensor[places] for name, tensor in self._state.items()}
        exploration = self._exploration and {name: rows[places] for name, rows in self._exploration.items()}
        with (
            torch.inference_mode(),
            torch.autocast(
                self._device.type, dtype=self._autocast or torch.bfloat16, enabled=self._autocast is not None
            ),
        ):
            first = seen("first")
            rows_in = Rows(observations, state, first, masks, exploration)
            acted = self._players.act(rows_in, self._players_of(requests, alive))
            if self._expert is not None:
                by_expert = advice(self._expert, observations, first, action_masks=masks)
                acted = labelled(acted, by_expert, exploration[EXPERT], self._generator)
            # Agents that wait or are not in the game keep their state; `first` resets it when they appear again.
            for name, tensor in acted.state.items():
                self._state[name][places] = tensor.to(self._state[name].dtype)
        self.rows_inferred += self._rows * len(requests)
        self.batches += 1
        if alive is None:
            return acted
        spread = _spread(acted, alive, self._rows * len(requests))
        return spread._replace(state={name: self._state[name][whole] for name in acted.state})

    def _players_of(self, requests: Sequence[Message], alive: Tensor | None) -> Array | None:
        """Who plays each row that is computed; None where no version does."""
        if self._shelf is None:
            return None
        players = np.concatenate([np.repeat(m.fields[PLAYERS], self._rows // m.fields[PLAYERS].size) for m in requests])
        # A device is asked which rows are alive only where a version plays some.
        if alive is not None and not (players == LIVE).all():
            players = players[alive.cpu().numpy()]
        return None if (players == LIVE).all() else players

    def _alive(self, requests: Sequence[Message]) -> Tensor | None:
        """Rows of agents that are in the game and do not wait; None for all rows.

        Where no agent is in the game all are computed, since state is of no use then; where all wait, none.
        """
        alive = np.concatenate([request.fields["alive"] for request in requests], axis=None)
        count = np.count_nonzero(alive)
        if count == alive.size or not (count or self._policy.kind.takes_turns):
            return None
        return self._way.to_device("alive", [np.flatnonzero(alive)])

    def _places(self, requests: Sequence[Message]) -> Tensor:
        """Rows of the recurrent state that belong to these requests."""
        own = np.arange(self._rows)
        return self._way.to_device("places", [request.slot * self._rows + own for request in requests])

    def _values(self, requests: Sequence[Message], acted: Acted) -> dict[str, Array]:
        """What replies are made of, rows of all requests together."""
        arrays = {"actions": acted.actions, "log_probs": acted.log_probs}
        arrays |= {f"out.{name}": acted.outputs[name] for name in self._outputs}
        if any(request.header[RequestHeader.WANT_STATE] for request in requests):
            arrays |= {f"{STATE}{name}": tensor for name, tensor in acted.state.items()}
        return self._way.to_host(arrays)

    def _answer(self, requests: Sequence[Message], values: Mapping[str, Array]) -> None:
        for i, request in enumerate(requests):
            reply = None if request.sender in self.dead else self._replies[request.slot].acquire()
            if reply is not None:
                wants_state = request.header[RequestHeader.WANT_STATE]
                if reply.header[ReplyHeader.HAS_STATE] and not wants_state:
                    # Nobody reads them, but what is under way is in checkpoints, and a slot that is new has none.
                    for field in prefixed(reply.fields, STATE).values():
                        field[...] = 0
                for name, array in values.items():
                    if wants_state or not name.startswith(STATE):
                        field = reply.fields[name]
                        field[...] = array[i * self._rows : (i + 1) * self._rows].reshape(field.shape)
                reply.header[ReplyHeader.GROUP] = request.header[RequestHeader.GROUP]
                reply.header[ReplyHeader.VERSION] = self.version
                reply.header[ReplyHeader.HAS_STATE] = wants_state
                self._replies[request.slot].send(reply)
            self._requests.release(request)

    def forget(self, addresses: Collection[int]) -> None:
        """Actors at these addresses are dead: nothing is sent to them again."""
        for address in set(addresses) - self.dead:
            self.dead.add(address)
            self._requests.forget(address)

    @property
    def waits_for(self) -> str:
        """What its requests wait for, in words."""
        if not self._waiting:
            return "requests"
        waiting = f"waiting: {counted(len(self._waiting), 'request')}"
        if self._shelf is not None:
            wanted = {updates for message in self._waiting for updates in _versions(message)}
            if missing := wanted.difference(self._shelf.versions):
                return f"version {min(missing)} to be read ({waiting})"
        needed = min(int(message.header[RequestHeader.NEEDS_VERSION]) for message in self._waiting)
        return f"version {needed} (has {self.version}; {waiting})"

    @property
    def is_finished(self) -> bool:
        return self._requests.is_finished

    def save_state(self) -> dict[str, Any]:
        return {
            "state": {name: tensor.cpu().numpy().copy() for name, tensor in self._state.items()},
            "generator": self._generator.get_state().cpu().numpy(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        for name, array in state.get("state", {}).items():
            self._state[name].copy_(torch.from_numpy(np.asarray(array)))
        self._generator.set_state(torch.from_numpy(np.asarray(state["generator"], np.uint8)))

    def close(self) -> None:
        self._requests.close()
        if self._subscription is not None:
            self._subscription.close()


def _versions(request: Message) -> set[int]:
    """The versions that act for a request."""
    return set(request.fields[PLAYERS].tolist()) - {LIVE}


def _spread(acted: Acted, places: Tensor, rows: int) -> Acted:
    """What was acted for some rows, as if for all but for the state; zeros for the others."""

    def spread(tensor: Tensor) -> Tensor:
        return tensor.new_zeros((rows, *tensor.shape[1:])).index_copy_(0, places, tensor)

    outputs = {name: spread(tensor) for name, tensor in acted.outputs.items()}
    return Acted(spread(acted.actions), spread(acted.log_probs), outputs, acted.state)
