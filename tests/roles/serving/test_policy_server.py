"""Batched inference: who is answered when, with which parameters and whose state."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from srlhpc.comm.channel import Inbox, Link, Outbox, Stream
from srlhpc.comm.inproc import InProcessTransport
from srlhpc.comm.parameters import LocalSubscription, ParameterSource
from srlhpc.data.blocks import PolicyShapes, ReplyHeader, RequestHeader, reply_layout, request_layout
from srlhpc.data.matches import LIVE
from srlhpc.environment import ArraySpec
from srlhpc.policies import mlp
from srlhpc.policies.policy import NO_EXPLORATION, Acted, Exploration, Policy
from srlhpc.roles.serving.device_rows import DeviceRows, QueuedDeviceRows
from srlhpc.roles.serving.policy_server import PolicyServer
from srlhpc.roles.serving.served_policy import ServedPolicy
from srlhpc.roles.serving.version_shelf import VersionShelf
from srlhpc.specs.policy import NormalizeSpec
from tests.launch.fake_runs import wait_for
from tests.roles.counting_policy import KIND, CountingPolicy
from tests.roles.queues import CountingStream

SERVER, E, A = 50, 2, 2
SHAPES = PolicyShapes(KIND, {"h": ArraySpec((1,), "float32")}, {"value": ArraySpec((), "float32")})
GROUPS = 3


class Network(NamedTuple):
    """A policy that takes the most probable action, instead of the counting one."""

    policy: Policy
    shapes: PolicyShapes


class Served:
    """A server of three groups, each of an actor of its own (addresses 0, 1, 2), moved by hand."""

    def __init__(
        self,
        seed: int = 1,
        *,
        trained: bool = True,
        way: DeviceRows | None = None,
        network: Network | None = None,
        device: str = "cpu",
        explore: Callable[[int], dict[str, NDArray[np.float32]]] | None = None,
        shelf: Callable[[Policy], VersionShelf] | None = None,
    ) -> None:
        transport = InProcessTransport()
        asks = [Link(Stream.REQUESTS, group, SERVER) for group in range(GROUPS)]
        answers = [Link(Stream.REPLIES, SERVER, group) for group in range(GROUPS)]
        shapes = SHAPES if network is None else network.shapes
        request = request_layout(shapes, E, A, has_players=shelf is not None)
        reply = reply_layout(shapes, E, A)
        self.requests: list[Outbox] = [transport.outbox(link, request, slots=1) for link in asks]
        self.replies: list[Inbox] = [transport.inbox([link], reply) for link in answers]
        self.policy = CountingPolicy()
        self.source = ParameterSource(1)
        self.served = ServedPolicy(
            self.policy if network is None else network.policy,
            LocalSubscription(self.source) if trained else None,
            transport.inbox(asks, request),
            {place: transport.outbox(link, reply, slots=2) for place, link in enumerate(answers)},
            rows=E * A,
            outputs=tuple(shapes.outputs),
            device=torch.device(device),
            autocast=None,
            generator=torch.Generator(device).manual_seed(seed),
            explore=explore,
            way=way,
            shelf=None if shelf is None else shelf(self.policy),
        )
        self.server = PolicyServer("policy_server-0", {"default": self.served})

    def publish(self, version: int, steps: int = 0) -> None:
        self.source.publish(version, _filled(version), steps=steps)

    def ask(
        self,
        group: int,
        *,
        first: bool | NDArray[np.bool_] = False,
        obs: float = 0,
        alive: Any = True,
        players: Any = None,
        **header: int,
    ) -> None:
        message = self.requests[group].acquire()
        assert message is not None
        message.fields["first"][...] = first
        message.fields["obs.obs"][...] = obs
        message.fields["alive"][...] = alive
        if players is not None:
            message.fields["players"][...] = players
        message.header[RequestHeader.GROUP] = group
        message.header[RequestHeader.NEEDS_VERSION] = header.get("needs_version", 0)
        message.header[RequestHeader.WANT_STATE] = header.get("want_state", 0)
        self.requests[group].send(message)

    def answer(self, group: int) -> dict[str, Any] | None:
        inbox = self.replies[group]
        inbox.poll()
        message = inbox.take()
        if message is None:
            return None
        reply: dict[str, Any] = {name: array.copy() for name, array in message.fields.items()}
        reply["version"] = int(message.header[ReplyHeader.VERSION])
        reply["has_state"] = bool(message.header[ReplyHeader.HAS_STATE])
        inbox.release(message)
        return reply


def _filled(value: float) -> Callable[[NDArray[np.float32]], None]:
    return lambda vector: vector.fill(value)


def must(reply: dict[str, Any] | None) -> dict[str, Any]:
    assert reply is not None
    return reply


def test_all_requests_that_are_here_make_one_batch() -> None:
    served = Served()
    served.publish(0)
    served.ask(0)
    served.ask(2)
    served.server.poll()
    assert served.policy.batches == [2 * E * A]
    assert served.answer(0) is not None
    assert served.answer(1) is None
    assert served.answer(2) is not None


def test_each_group_gets_its_own_rows_back() -> None:
    served = Served()
    served.publish(0)
    served.ask(0, obs=1)
    served.ask(1, obs=2)
    served.server.poll()
    assert (must(served.answer(0))["log_probs"] == -1).all()
    assert (must(served.answer(1))["log_probs"] == -2).all()


def test_agents_that_are_not_in_the_game_are_not_computed_and_get_zeros() -> None:
    served = Served()
    served.publish(0)
    served.ask(0, obs=1, alive=np.array([[True, False], [False, True]]), want_state=1)
    served.ask(1, obs=2)
    served.server.poll()
    assert served.policy.batches == [2 + E * A]
    reply = must(served.answer(0))
    assert reply["log_probs"].tolist() == [[-1, 0], [0, -1]]
    assert reply["state.h"][..., 0].tolist() == [[1, 0], [0, 1]]
    assert (must(served.answer(1))["log_probs"] == -2).all()


def test_state_of_an_agent_stays_while_it_is_not_in_the_game() -> None:
    served = Served()
    served.publish(0)
    for alive in (True, np.array([[True, True], [True, False]]), True):
        served.ask(0, alive=alive, want_state=1)
        served.server.poll()
        reply = must(served.answer(0))
    assert reply["state.h"][..., 0].tolist() == [[3, 3], [3, 2]]


def test_nothing_is_answered_before_the_first_parameters() -> None:
    served = Served()
    served.ask(0)
    served.server.poll()
    assert served.answer(0) is None
    served.publish(0)
    served.server.poll()
    assert must(served.answer(0))["version"] == 0


def test_policy_that_nobody_trains_is_served_at_once() -> None:
    served = Served(trained=False)
    served.ask(0)
    served.server.poll()
    assert must(served.answer(0))["version"] == 0


def test_request_waits_for_the_version_that_it_needs_while_others_are_served() -> None:
    served = Served()
    served.publish(0)
    served.ask(0, needs_version=1)
    served.ask(1)
    served.server.poll()
    assert served.answer(0) is None
    assert must(served.answer(1))["version"] == 0
    served.publish(1)
    served.server.poll()
    reply = must(served.answer(0))
    assert reply["version"] == 1
    assert (reply["out.value"] >= 1).all()


def test_state_goes_on_and_starts_again_where_first() -> None:
    served = Served()
    served.publish(0)
    first = np.array([[True, False], [False, False]])
    for flags in (True, False, first, False):
        served.ask(0, first=flags)
        served.server.poll()
        actions = must(served.answer(0))["actions"]
    assert actions.tolist() == [[1, 3], [3, 3]]


def test_rows_of_two_groups_do_not_mix() -> None:
    served = Served()
    served.publish(0)
    for groups in ((0, 1), (1,), (0, 1, 2)):
        for group in groups:
            served.ask(group)
        served.server.poll()
        actions = {group: must(served.answer(group))["actions"] for group in groups}
    assert {group: set(array.flatten().tolist()) for group, array in actions.items()} == {0: {1}, 1: {2}, 2: {0}}


def test_state_is_given_to_those_who_want_it() -> None:
    served = Served()
    served.publish(0)
    served.ask(0, want_state=1)
    served.ask(1)
    served.server.poll()
    wanted, other = must(served.answer(0)), must(served.answer(1))
    assert wanted["has_state"]
    assert wanted["state.h"].flatten().tolist() == [1] * 4
    assert not other["has_state"]


def test_reply_without_state_holds_none_of_before() -> None:
    served = Served()
    served.publish(0)
    for want_state in (1, 0):
        served.ask(0, want_state=want_state)
        served.ask(1, want_state=1)
        served.server.poll()
        reply = must(served.answer(0))
        must(served.answer(1))
    assert not reply["state.h"].any()


def test_dead_actor_gets_no_reply_and_the_others_do() -> None:
    served = Served()
    served.publish(0)
    served.ask(0, needs_version=1)
    served.ask(1, needs_version=1)
    served.server.poll()
    served.server.forget([0])
    served.publish(1)
    served.server.poll()
    assert served.answer(0) is None
    assert served.answer(1) is not None


def test_server_is_done_when_every_actor_said_last_or_is_dead() -> None:
    served = Served()
    served.requests[0].send_last()
    served.requests[1].send_last()
    served.server.poll()
    assert not served.server.is_done
    served.server.forget([2])
    assert served.server.is_done


def test_counters_count_rows_and_batches() -> None:
    served = Served()
    served.publish(0)
    served.ask(0)
    served.ask(1)
    served.server.poll()
    counters = served.server.counters()
    assert (counters["steps_inferred"], counters["batches"]) == (8, 1)


def test_server_whose_rows_pass_through_a_queue_answers_the_same_and_waits_once_a_batch() -> None:
    queue = CountingStream()
    plain, queued = Served(), Served(way=QueuedDeviceRows(torch.device("cpu"), GROUPS * E * A, queue))
    one_alive = np.array([[True, False], [False, True]])
    for groups, alive in (((0, 1, 2), True), ((2,), one_alive), ((0, 1), one_alive), ((1, 2), True)):
        replies = []
        for served in (plain, queued):
            served.publish(0)
            for group in groups:
                served.ask(group, obs=group, alive=alive, want_state=group % 2)
            served.server.poll()
            replies.append([must(served.answer(group)) for group in groups])
        for one, other in zip(*replies, strict=True):
            for name in one:
                np.testing.assert_array_equal(one[name], other[name], err_msg=name)
    assert queue.finished == 4


def test_saved_server_goes_on_with_the_same_states_and_the_same_draws() -> None:
    one, other = Served(seed=1), Served(seed=2)
    for served in (one, other):
        served.publish(0)
    one.ask(0)
    one.server.poll()
    one.answer(0)
    other.server.load_state(one.server.save_state())
    replies = []
    for served in (one, other):
        served.ask(0)
        served.server.poll()
        replies.append(must(served.answer(0)))
    assert replies[1]["actions"].tolist() == [[1, 1], [1, 1]]
    np.testing.assert_array_equal(replies[0]["out.value"], replies[1]["out.value"])


class Exploring(CountingPolicy):
    """Writes down what it is told of exploration."""

    def __init__(self) -> None:
        super().__init__(recurrent=False)
        self.told: list[Exploration] = []

    def act(self, *seen: Any, exploration: Exploration = NO_EXPLORATION, **keys: Any) -> Acted:
        self.told.append(exploration)
        return super().act(*seen, **keys)


def exploring(**how: Any) -> tuple[Served, Exploring]:
    policy = Exploring()
    return Served(network=Network(policy, replace(SHAPES, state={})), **how), policy


def test_every_row_acts_with_the_exploration_of_its_column_at_the_trained_steps() -> None:
    def explore(steps: int) -> dict[str, NDArray[np.float32]]:
        return {"epsilon": np.arange(GROUPS * E * A, dtype=np.float32) + steps}

    served, policy = exploring(explore=explore)
    served.publish(0, steps=100)
    served.ask(2)
    served.ask(0)
    served.server.poll()
    served.publish(1, steps=200)
    served.ask(1, alive=np.array([[True, False], [False, True]]))
    served.server.poll()
    both, alive = (told["epsilon"].tolist() for told in policy.told)
    assert sorted(both) == [100, 101, 102, 103, 108, 109, 110, 111]
    assert alive == [204, 207]


def test_rule_that_says_nothing_of_exploration_costs_nothing_a_batch() -> None:
    served, policy = exploring()
    served.publish(0)
    served.ask(0)
    served.server.poll()
    assert policy.told[0] is NO_EXPLORATION


def test_outputs_that_are_not_declared_stay_with_the_server() -> None:
    served = Served(network=Network(CountingPolicy(), replace(SHAPES, outputs={})))
    served.publish(0)
    served.ask(0)
    served.server.poll()
    assert [name for name in must(served.answer(0)) if name.startswith("out.")] == []


def test_saved_state_does_not_change_when_the_server_goes_on() -> None:
    served = Served()
    served.publish(0)
    state = served.server.save_state()
    served.ask(0)
    served.server.poll()
    assert not state["default"]["state"]["h"].any()


def deterministic(device: str) -> Network:
    """An MLP with memory on a device, whose actions do not depend on the generator."""
    torch.manual_seed(0)
    settings = mlp.Settings.model_validate({"kind": "mlp", "recurrent": {"kind": "lstm", "size": 8}})
    policy = mlp.build(settings, KIND, NormalizeSpec()).to(device)
    act = policy.act
    policy.act = lambda *seen, **keys: act(*seen, **keys | {"generator": None})  # type: ignore[method-assign]
    state = {name: ArraySpec((8,), "float32") for name in ("h", "c")}
    return Network(policy, PolicyShapes(KIND, state, {"value": ArraySpec((), "float32")}))


@pytest.mark.gpu
def test_server_on_a_gpu_answers_as_on_a_cpu() -> None:
    here, there = (Served(trained=False, network=deterministic(name), device=name) for name in ("cpu", "cuda"))
    one_alive = np.array([[True, False], [False, True]])
    for turn, (groups, alive) in enumerate((((0, 1, 2), True), ((2,), one_alive), ((0, 1), one_alive), ((1, 2), True))):
        replies = []
        for served in (here, there):
            for group in groups:
                served.ask(group, obs=turn - group, alive=alive, want_state=1)
            served.server.poll()
            replies.append([must(served.answer(group)) for group in groups])
        for one, other in zip(*replies, strict=True):
            np.testing.assert_array_equal(one["actions"], other["actions"])
            for name in ("log_probs", "out.value", "state.h", "state.c"):
                np.testing.assert_allclose(one[name], other[name], rtol=1e-4, atol=1e-5, err_msg=name)


# --- matches -------------------------------------------------------------------------------------------------------


def with_versions(may_read: threading.Event | None = None) -> Served:
    """A server whose versions have their number as their weight; read aside, when `may_read` is set, if it is given."""

    def read(updates: int) -> dict[str, Any]:
        if may_read is not None:
            may_read.wait()
        return {"weight": np.full(1, updates, np.float32)}

    def load(network: Policy, arrays: Any, updates: int) -> None:  # noqa: ARG001
        network.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})

    return Served(shelf=lambda policy: VersionShelf(policy, read, load, resident=1, in_thread=may_read is not None))


def whole_values(reply: dict[str, Any]) -> list[list[float]]:
    """Values without the noise below a half, `[E, A]`."""
    values: list[list[float]] = np.floor(reply["out.value"]).tolist()
    return values


def test_each_environment_is_played_by_its_version_or_by_what_is_live() -> None:
    served = with_versions()
    served.publish(1)
    served.ask(0, players=[LIVE, 30])
    served.ask(1, players=[40, 30])
    served.ask(2, players=[LIVE, LIVE])
    served.server.poll()
    replies = [must(served.answer(group)) for group in range(GROUPS)]
    assert [whole_values(reply) for reply in replies] == [
        [[1.0, 1.0], [30.0, 30.0]], [[40.0, 40.0], [30.0, 30.0]], [[1.0, 1.0], [1.0, 1.0]],
    ]  # fmt: skip
    assert [reply["version"] for reply in replies] == [1, 1, 1]


def test_memory_follows_the_row_whoever_plays_it() -> None:
    served = with_versions()
    served.publish(1)
    for players in ([LIVE, 30], [40, 30]):
        served.ask(0, players=players, want_state=1)
        served.server.poll()
        reply = must(served.answer(0))
    assert reply["state.h"][:, :, 0].tolist() == [[2.0, 2.0], [2.0, 2.0]]
    served.ask(0, players=[LIVE, LIVE], first=np.array([[True, True], [False, False]]), want_state=1)
    served.server.poll()
    assert must(served.answer(0))["state.h"][:, :, 0].tolist() == [[1.0, 1.0], [3.0, 3.0]]


def test_rows_of_agents_that_are_not_in_the_game_are_left_out_of_a_version_too() -> None:
    served = with_versions()
    served.publish(1)
    served.ask(0, players=[LIVE, 30], alive=np.array([[True, False], [False, True]]))
    served.server.poll()
    assert whole_values(must(served.answer(0))) == [[1.0, 0.0], [0.0, 30.0]]


def test_request_waits_until_its_version_is_read() -> None:
    may_read = threading.Event()
    served = with_versions(may_read)
    served.publish(1)
    served.ask(0, players=[LIVE, 30])
    served.ask(1, players=[LIVE, LIVE])
    served.server.poll()
    assert served.answer(0) is None
    assert must(served.answer(1))
    assert served.server.waits_for() == "default waits for version 30 to be read (waiting: 1 request)"
    may_read.set()
    wait_for(served.server.poll)
    assert whole_values(must(served.answer(0))) == [[1.0, 1.0], [30.0, 30.0]]
