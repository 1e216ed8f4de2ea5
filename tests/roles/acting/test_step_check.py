from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from srlhpc.environment import ActionSpace, ArraySpec, Discrete, Episode, Kind, KindStep, MultiDiscrete, Spaces, Step
from srlhpc.roles.acting.step_check import StepCheck

E, A = 2, 3
TWO = Discrete(2)


def spaces(actions: ActionSpace) -> Spaces:
    agents = tuple(f"agent_{i}" for i in range(A))
    kind = Kind("agent", agents, {"obs": ArraySpec((4,), "float32")}, actions, has_action_masks=True)
    return Spaces((kind,))


def step(actions: ActionSpace) -> Step:
    flags = {name: np.zeros((E, A), np.bool_) for name in ("first", "valid", "alive", "terminated", "truncated")}
    return Step(
        {
            "agent": KindStep(
                observations={"obs": np.zeros((E, A, 4), np.float32)},
                rewards=np.zeros((E, A), np.float32),
                action_masks=np.ones((E, A, actions.mask_size), np.bool_),
                **flags,
            )
        }
    )


def message_after(change: Callable[[KindStep], None], actions: ActionSpace = TWO) -> str:
    changed = step(actions)
    change(changed.kinds["agent"])
    with pytest.raises(ValueError, match="agent") as caught:
        StepCheck(spaces(actions), E)(changed)
    return str(caught.value)


@pytest.mark.parametrize("actions", [Discrete(2), MultiDiscrete((2, 3))])
def test_declared_step_passes(actions: ActionSpace) -> None:
    StepCheck(spaces(actions), E)(step(actions))


def test_observation_whose_shape_would_broadcast_is_refused() -> None:
    def change(kind: KindStep) -> None:
        kind.observations["obs"] = np.zeros((E, A, 1), np.float32)

    assert message_after(change) == (
        "observation 'obs' of kind 'agent' has shape (2, 3, 1) float32, declared is (2, 3, 4) float32"
    )


def test_missing_observation_is_refused() -> None:
    assert message_after(lambda kind: kind.observations.clear()) == (
        "observation 'obs' of kind 'agent' is missing, declared is (2, 3, 4) float32"
    )


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_number_that_is_not_finite_is_named(value: float) -> None:
    def observation(kind: KindStep) -> None:
        kind.observations["obs"][1, 2, 3] = value

    def reward(kind: KindStep) -> None:
        kind.rewards[0, 0] = value

    ending = " of kind 'agent' has a number that is not finite (nan or inf)"
    assert message_after(observation) == f"observation 'obs'{ending}: environment 1, agent 'agent_2', at [3]"
    assert message_after(reward) == f"rewards{ending}: environment 0, agent 'agent_0'"


def test_masks_that_allow_nothing_for_one_choice_are_refused() -> None:
    def change(kind: KindStep) -> None:
        assert kind.action_masks is not None
        kind.action_masks[1, 0, 2:] = False

    expected = (
        "action_masks of kind 'agent' allow no choice; at least one must be allowed: environment 1, agent 'agent_0'"
    )
    assert message_after(change, MultiDiscrete((2, 3))) == expected


def test_return_that_is_not_finite_is_refused() -> None:
    played = Step(step(Discrete(2)).kinds, [Episode(environment=0, steps=1, returns={"agent_0": float("nan")})])
    with pytest.raises(ValueError, match="return of an episode is not finite"):
        StepCheck(spaces(Discrete(2)), E)(played)


def test_undeclared_arrays_are_refused() -> None:
    def change(kind: KindStep) -> None:
        kind.observations["extra"] = np.zeros((E, A, 1), np.float32)

    assert message_after(change) == ("observations of kind 'agent' hold 'extra', which the spaces do not declare (obs)")
    unmasked = Spaces((replace(spaces(TWO).kinds[0], has_action_masks=False),))
    with pytest.raises(ValueError, match="gives action_masks, but declares has_action_masks as false"):
        StepCheck(unmasked, E)(step(TWO))
    with pytest.raises(ValueError, match="kinds hold 'other', which the spaces do not declare"):
        StepCheck(spaces(TWO), E)(Step({**step(TWO).kinds, "other": step(TWO).kinds["agent"]}))


def test_who_waits_is_said_where_turns_are_taken_and_nowhere_else() -> None:
    in_turn = Spaces((replace(spaces(TWO).kinds[0], turn_steps=2),))
    with pytest.raises(ValueError, match=r"^waits of kind 'agent' is missing, declared is \(2, 3\) bool$"):
        StepCheck(in_turn, E)(step(TWO))

    def change(kind: KindStep) -> None:
        kind.waits = np.zeros((E, A), np.bool_)

    assert message_after(change) == "kind 'agent' says who waits, but declares turn_steps as 1"
    said = step(TWO)
    change(said.kinds["agent"])
    StepCheck(in_turn, E)(said)
