"""An agent that is cut while others go on: from its last observation by way of the policy server to its advantages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from srlhpc.algorithms import ppo
from srlhpc.algorithms.ppo.update import Ppo
from srlhpc.comm.channel import Message
from srlhpc.data.blocks import PolicyShapes, block_layout
from srlhpc.environment import ArraySpec, Kind
from srlhpc.policies.policy import Acted, Policy, State
from srlhpc.roles.serving.served_policy import ServedPolicy
from srlhpc.roles.training.staging import Staging
from tests.algorithms.collecting import context
from tests.roles.counting_policy import CountingPolicy
from tests.roles.playing import Play
from tests.scripted import Script, Scripted

AGENTS = ("a", "b")
CUT = Script(6, "terminated", {"b": [(0, 2)]}, cut=["b"])
"""b is cut after its record 1."""


class Clock(CountingPolicy):
    """The value of a state is its time + 1 and, with memory, 8 times the square of the records seen before."""

    def __init__(self, kind: Kind, *, recurrent: bool) -> None:
        super().__init__(kind, recurrent=recurrent)

    def act(self, observations: Mapping[str, Tensor], state: State, first: Tensor, **rest: Any) -> Acted:
        acted = super().act(observations, state, first, **rest)
        value = observations["obs"][:, 1] + (8 * acted.actions.float().square() if state else 0.0)
        return acted._replace(actions=torch.zeros_like(acted.actions), outputs={"value": value})


def advantages(records: int, *, recurrent: bool, script: Script = CUT) -> tuple[Tensor, Tensor]:
    """Of the first fragment, and which records are valid: `[T, 2]`, gamma and lambda are 0.5."""
    environment = Scripted([[script]], {"agent": AGENTS})
    play = Play(environment, default={"agents": (0, 1), "records": records, "recurrent": recurrent})
    seat, kind = play.only, environment.spaces.kinds[0]
    policy: Policy = Clock(kind, recurrent=recurrent)
    served = ServedPolicy(
        policy, None, seat.requests, {0: seat.replies}, rows=2, outputs=["value"], device=torch.device("cpu"),
        autocast=None, generator=torch.Generator(),
    )  # fmt: skip
    seat.serve = served.serve  # type: ignore[method-assign]
    play.run(records)
    state = {"h": ArraySpec((1,), "float32")} if recurrent else {}
    layout = block_layout(PolicyShapes(kind, state, {"value": ArraySpec((), "float32")}), records, 1, 2)
    staging = Staging(layout, 1, torch.device("cpu"))
    staging.add(cast(Message, play.only.blocks[0]))
    batch = staging.batch(version=0, steps=0, burn_in=0, is_first_use=True)
    algorithm = ppo.build(ppo.Settings(kind="ppo", gamma=0.5, gae_lambda=0.5), policy, context())
    assert isinstance(algorithm, Ppo)
    return algorithm.estimates(batch).advantages, batch.valid


@pytest.mark.parametrize("records", [4, 3, 2])
def test_cut_agent_bootstraps_from_its_last_observation_also_at_the_fragments_border(records: int) -> None:
    found, valid = advantages(records, recurrent=False)
    # Values 1, 2 and, of the last observation, 3; rewards 1, 2: deltas 1 + 1 - 1 and 2 + 1.5 - 2; decay 0.25.
    assert found[:2, 1].tolist() == [1.375, 1.5]
    assert valid[:, 1].tolist() == [True, True, False, False][:records]


@pytest.mark.parametrize("records", [4, 3, 2])
def test_cut_agent_bootstraps_with_its_memory(records: int) -> None:
    found, _ = advantages(records, recurrent=True)
    # Values 1, 2 + 8, 3 + 32: deltas 1 + 5 - 1 and 2 + 17.5 - 10; decay 0.25.
    assert found[:2, 1].tolist() == [7.375, 9.5]


@pytest.mark.parametrize("records", [4, 2])
def test_agent_that_dies_bootstraps_from_nothing(records: int) -> None:
    dies = Script(6, "terminated", {"b": [(0, 2)]})
    found, _ = advantages(records, recurrent=True, script=dies)
    # Deltas 1 + 5 - 1 and 2 - 10.
    assert found[:2, 1].tolist() == [3.0, -8.0]
