"""Agents that take turns: from what an actor records by way of the policy server to what a trainer learns from."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor

from srlhpc.algorithms import ppo
from srlhpc.algorithms.algorithm import Batch
from srlhpc.algorithms.own_turns import of_own_turns
from srlhpc.algorithms.ppo.update import Ppo
from srlhpc.algorithms.q_learning.windows import places_of, sums
from srlhpc.comm.channel import Message
from srlhpc.data.block_store import BlockStore
from srlhpc.data.blocks import PolicyShapes, block_layout
from srlhpc.data.windows import WindowShape, window_layout
from srlhpc.environment import ArraySpec, Kind
from srlhpc.policies.policy import Acted, State
from srlhpc.roles.acting.player import Player
from srlhpc.roles.serving.served_policy import ServedPolicy
from srlhpc.roles.training.staging import Staging
from srlhpc.specs.replay import UniformDraw
from tests.algorithms.collecting import context
from tests.roles.counting_policy import CountingPolicy
from tests.roles.playing import Play, column
from tests.turn_taking import Game, TurnTaking

GAME = Game((0, 1, 0, 1, 0), {1: {0: 1, 1: 2}, 4: {0: 4, 1: -4}})
"""Agent 0 moves last, and agent 1 loses while it waits."""


class Clock(CountingPolicy):
    """The value of a state is its time + 1 and, with memory, 16 times the turns before."""

    def __init__(self, kind: Kind, *, recurrent: bool) -> None:
        super().__init__(kind, recurrent=recurrent)

    def act(self, observations: Mapping[str, Tensor], state: State, first: Tensor, **rest: Any) -> Acted:
        acted = super().act(observations, state, first, **rest)
        value = observations["obs"][:, 1] + (16 * acted.actions.float() if state else 0.0)
        return acted._replace(actions=torch.zeros_like(acted.actions), outputs={"value": value})


class Played:
    """Two agents of one policy, fragments of so many records, gamma and lambda 0.5."""

    def __init__(self, *games: Game, records: int, recurrent: bool = False, fragments: int = 1) -> None:
        self.environment = TurnTaking([games])
        self.play = Play(self.environment, default={"agents": (0, 1), "records": records, "recurrent": recurrent})
        seat, kind = self.play.only, self.environment.spaces.kinds[0]
        self.policy = Clock(kind, recurrent=recurrent)
        self.served = ServedPolicy(
            self.policy, None, seat.requests, {0: seat.replies}, rows=2, outputs=["value"],
            device=torch.device("cpu"), autocast=None, generator=torch.Generator(),
        )  # fmt: skip
        seat.serve = self.served.serve  # type: ignore[method-assign]
        self.play.run(records * fragments)
        state = {"h": ArraySpec((1,), "float32")} if recurrent else {}
        self._layout = block_layout(PolicyShapes(kind, state, {"value": ArraySpec((), "float32")}), records, 1, 2)

    def batch(self, fragment: int = 0) -> Batch:
        staging = Staging(self._layout, 1, torch.device("cpu"))
        staging.add(cast(Message, self.play.only.blocks[fragment]))
        return of_own_turns(staging.batch(version=0, steps=0, burn_in=0))

    def advantages(self, agent: int, fragment: int = 0) -> list[float]:
        batch = self.batch(fragment)
        algorithm = ppo.build(ppo.Settings(kind="ppo", gamma=0.5, gae_lambda=0.5), self.policy, context())
        assert isinstance(algorithm, Ppo)
        found: list[float] = algorithm.estimates(batch).advantages[:, agent][batch.valid[:, agent]].tolist()
        return found


@pytest.mark.parametrize("records", [5, 6, 7])
def test_end_by_anothers_move_ends_the_turn_before_also_at_the_fragments_border(records: int) -> None:
    played = Played(GAME, records=records)
    # Values 1, 3, 5; rewards 1, 0, 4: deltas 1 + 1.5 - 1, 0 + 2.5 - 3, 4 - 5; decay 0.25.
    assert played.advantages(0) == [1.3125, -0.75, -1.0]
    # Values 2, 4; rewards 2, -4: deltas 2 + 2 - 2, -4 - 4.
    assert played.advantages(1) == [0.0, -8.0]


def test_memory_counts_turns_and_stays_while_others_act() -> None:
    played = Played(GAME, records=6, recurrent=True)
    batch = played.batch()
    assert batch.outputs["value"][batch.valid].tolist() == [1, 2, 3 + 16, 4 + 16, 5 + 32]
    # deltas 1 + 9.5 - 1, 0 + 18.5 - 19, 4 - 37.
    assert played.advantages(0) == [9.5 - 0.25 * (0.5 + 0.25 * 33), -0.5 - 0.25 * 33, -33.0]


def test_memory_of_who_waits_passes_the_border_of_fragments() -> None:
    played = Played(GAME, records=3, recurrent=True, fragments=2)
    first, second = played.play.only.blocks[:2]
    assert first["final_state.h"][0, :, 0].tolist() == second["state.h"][0, :, 0].tolist() == [2, 1]
    # Agent 1 is at its turn behind the fragment: value 4 + 16 follows its first turn. Agent 0 waits.
    assert played.advantages(1) == [2 + 10 - 2]
    assert played.advantages(0) == [1 + 0.5 * 19 - 1]
    # Its turn at record 4 is known to end; the one at 2 was not trained, nor is it now.
    assert played.advantages(0, fragment=1) == [4 - 37]


def test_turn_that_waits_behind_the_fragment_is_not_counted() -> None:
    batch = Played(GAME, records=4).batch()
    assert batch.valid.sum(0).tolist() == [2, 1]
    assert batch.truncated[:, 1].tolist() == [True, False, False, False]


def test_time_limit_while_waiting_bootstraps_from_the_last_observation() -> None:
    cut = Game((0, 1), {1: {0: 1}}, end="truncated")
    for records in (2, 3, 4):
        played = Played(cut, records=records)
        # Values 1, 3 and 2, 3: 1 + 1.5 - 1 and 0 + 1.5 - 2.
        assert played.advantages(0)[0] == 1.5
        assert played.advantages(1) == [-0.5]


def test_reward_before_a_first_turn_belongs_to_the_first_action() -> None:
    early = Game((0, 1, 0), {0: {1: 3}, 1: {1: 4}})
    played = Played(early, early, records=8)
    assert column(played.play.only.blocks[0]["rewards"], agent=1) == [0, 7, 0, 0] * 2
    # Also where the fragment begins with the first turn.
    ahead = Game((0, 0, 1, 0), {0: {1: 1}, 1: {1: 2}, 2: {1: 4}})
    later = Played(ahead, records=2, fragments=2)
    assert column(later.play.only.blocks[0]["rewards"], agent=1) == [0, 0]
    assert column(later.play.only.blocks[1]["rewards"], agent=1) == [7, 0]


def test_who_has_no_turn_gets_nothing_and_learns_nothing() -> None:
    lonely = Game((0, 0), {1: {1: -1}})
    played = Played(lonely, GAME, records=9)
    batch = played.batch()
    assert batch.valid.sum(0).tolist() == [5, 2]
    assert batch.rewards[:, 1].sum() == 2 - 4
    assert not batch.terminated[0, 1]


def test_rows_of_who_waits_are_not_computed() -> None:
    played = Played(GAME, records=6)
    # Of the record after the end both.
    assert played.policy.batches == [1, 1, 1, 1, 1, 2]


def test_nobody_is_computed_where_all_wait() -> None:
    environment = TurnTaking([[GAME]])
    play = Play(environment, a={"agents": (0,), "recurrent": True}, b={"agents": (1,), "recurrent": True})
    seat = play.seats["b"]
    policy = Clock(environment.spaces.kinds[0], recurrent=True)
    served = ServedPolicy(
        policy, None, seat.requests, {0: seat.replies}, rows=1, outputs=["value"],
        device=torch.device("cpu"), autocast=None, generator=torch.Generator(),
    )  # fmt: skip
    seat.serve = served.serve  # type: ignore[method-assign]
    play.run(4)
    assert policy.batches[:4] == [0, 1, 0, 1]
    (block,) = seat.blocks
    assert block["final_state.h"].tolist() == [[[2.0]]]
    assert column(block["out.value"]) == [0, 2, 0, 4 + 16]


def test_blocks_count_turns_alone() -> None:
    environment = TurnTaking([[GAME]])
    play = Play(environment, a={"agents": (0,), "records": 6}, b={"agents": (1,), "records": 6})
    play.run(6)
    counts = {name: seat.blocks[0].header[4:6] for name, seat in play.seats.items()}
    assert counts == {"a": [3, 3], "b": [2, 2]}


def test_player_keeps_the_memory_of_who_waits() -> None:
    environment = TurnTaking([[GAME]])
    policy = CountingPolicy(environment.spaces.kinds[0])
    player = Player(policy, "agent", (0, 1), 1)
    step, actions, counted = environment.reset(0), np.zeros((1, 2), np.int64), []
    for mover in GAME.movers:
        player.act(step.kinds["agent"], actions)
        counted.append(int(actions[0, mover]))
        step = environment.step({"agent": actions})
    assert counted == [0, 0, 1, 1, 2]


def test_windows_of_replay_sum_turns_across_the_borders_of_blocks() -> None:
    environment = TurnTaking([[GAME]])
    shapes = PolicyShapes(environment.spaces.kinds[0], {}, {"value": ArraySpec((), "float32")})
    play = Play(environment, default={"agents": (0, 1), "records": 4})
    play.run(40)
    # Two turns of two agents, and what follows them.
    window = WindowShape(fragment_steps=1, after=3)
    store = BlockStore(
        block_layout(shapes, 4, 1, 2), window, slots=16, draw=UniformDraw(), generator=np.random.default_rng(1),
        first_priority=None,
    )  # fmt: skip
    for block in play.only.blocks:
        store.add(SimpleNamespace(header=np.array(block.header), fields=block.fields))
    layout = window_layout(shapes, window.records, 200)
    fields = {field.name: np.zeros(field.shape, field.dtype) for field in layout.fields}
    store.draw(fields)
    batch = of_own_turns(
        Batch({name: torch.from_numpy(array) for name, array in fields.items()}, 0, version=0, steps=0, after=3)
    )
    steps = sums(batch, gamma=0.5, n=2)
    columns = torch.arange(200)
    later = batch.observations["obs"][places_of(steps.lengths), columns][0, :, 1]
    found = set()
    for drawn in torch.nonzero(batch.valid[0]).flatten().tolist():
        _, time, agent = batch.observations["obs"][0, drawn].tolist()
        value = float(later[drawn]) - 1 if steps.discounts[0, drawn] else None
        found.add((agent - 1, time - 1, float(steps.sums[0, drawn]), float(steps.discounts[0, drawn]), value))
    assert not batch.valid[1:].any()
    # Agent 0: rewards 1, 0, 4 of its turns; agent 1: 2, -4. Only after the first is there a value to come, that of 4.
    assert found == {
        (0, 0, 1.0, 0.25, 4.0), (0, 2, 0.5 * 4, 0.0, None), (0, 4, 4.0, 0.0, None),
        (1, 1, 2 - 0.5 * 4, 0.0, None), (1, 3, -4.0, 0.0, None),
    }  # fmt: skip
