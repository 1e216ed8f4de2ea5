"""Action masks wherever simulators give them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from envs._action_masks import write_mask
from envs._returned_values import SimulatorError
from envs.pettingzoo import from_simulators
from srlhpc.environment import ActionSpace, Discrete, Environment, MultiDiscrete
from srlhpc.errors import UserError
from tests.envs.wrong_environments import play, told, told_vector
from tests.scripted import Script, ScriptedParallel


def mask_at(time: int) -> Any:
    return np.arange(3) == time % 3


def seen(environment: Environment, steps: int) -> list[list[bool]]:
    """The mask of environment 0 at each time."""
    step, found = environment.reset(0), []
    for _ in range(steps):
        masks = step.kinds["agent"].action_masks
        assert masks is not None
        found.append(masks[0, 0].tolist())
        step = environment.step({"agent": np.zeros((environment.num_environments, 1), int)})
    return found


def in_dict(**mask_space: Any) -> Any:
    return spaces.Dict({"observation": spaces.Box(-1, 1, (3,)), **mask_space})


def test_masks_of_infos_are_used_from_the_reset_on() -> None:
    environment = told(informs=lambda time: {"action_mask": mask_at(time)})
    assert seen(environment, 4) == [mask_at(time).tolist() for time in range(4)]


def test_masks_that_come_with_a_later_step_are_used_from_then_on() -> None:
    environment = told(informs=lambda time: {"action_mask": mask_at(time)} if time > 1 else {})
    assert seen(environment, 4) == [[True] * 3, [True] * 3, *(mask_at(time).tolist() for time in (2, 3))]


@pytest.mark.parametrize("mask_space", [spaces.Box(0, 1, (3,), np.int8), spaces.MultiBinary(3)])
def test_mask_in_a_dict_observation_is_taken_out_of_it(mask_space: Any) -> None:
    environment = told(
        observation_space=in_dict(action_mask=mask_space),
        shows=lambda time: {"observation": np.zeros(3), "action_mask": mask_at(time).astype(np.int8)},
    )
    assert list(environment.spaces.kinds[0].observations) == ["observation"]
    assert seen(environment, 4) == [mask_at(time).tolist() for time in range(4)]


def test_dict_observation_without_its_mask_is_refused() -> None:
    environment = told(
        observation_space=in_dict(action_mask=spaces.MultiBinary(3)), shows=lambda _: {"observation": np.zeros(3)}
    )
    with pytest.raises(SimulatorError, match="environment 0: observation 'action_mask' of its space is missing"):
        play(environment)


@pytest.mark.parametrize(
    ("actions", "mask_space"),
    [
        (spaces.Discrete(3), spaces.MultiBinary(4)),
        (spaces.MultiDiscrete([3, 2]), spaces.MultiBinary(6)),
        (spaces.Box(-1, 1, (3,)), spaces.MultiBinary(3)),
    ],
)
def test_mask_space_that_is_not_of_the_actions_is_refused(actions: Any, mask_space: Any) -> None:
    with pytest.raises(
        UserError, match="'action_mask' of its observation space is MultiBinary.* no mask of its action"
    ):
        told(observation_space=in_dict(action_mask=mask_space), action_space=actions)


def test_masks_of_vectors_are_used_environment_by_environment() -> None:
    def informs(time: int, num_environments: int) -> dict[str, Any]:
        masks = np.zeros((num_environments, 3), np.int8)
        masks[0] = mask_at(time)
        return {"action_mask": masks, "_action_mask": np.arange(num_environments) == 0}

    environment = told_vector(2, informs=informs)
    assert seen(environment, 4) == [mask_at(time).tolist() for time in range(4)]
    masks = environment.reset(0).kinds["agent"].action_masks
    assert masks is not None
    assert masks[1, 0].tolist() == [True] * 3


def test_mask_of_a_vector_that_comes_only_later_is_refused() -> None:
    environment = told_vector(
        2, informs=lambda time, num_environments: {"action_mask": np.ones((num_environments, 3))} if time else {}
    )
    with pytest.raises(SimulatorError, match="info has an 'action_mask' now, but at the first reset it had none"):
        play(environment)


def test_mask_of_box_actions_is_refused() -> None:
    box = spaces.Box(-1, 1, (3,))
    with pytest.raises(UserError, match="its actions are a Box, which cannot be masked"):
        told(action_space=box, informs=lambda _: {"action_mask": np.ones(3)})
    with pytest.raises(SimulatorError, match="environment 0: info has an 'action_mask' now"):
        play(told(action_space=box, informs=lambda time: {"action_mask": np.ones(3)} if time else {}))


def test_mask_that_allows_nothing_is_refused_only_while_the_agent_acts() -> None:
    def informs(time: int) -> dict[str, Any]:
        return {"action_mask": np.zeros(3) if time in (2, 4) else np.ones(3)}

    environment = told(informs=informs, ends=lambda time: (0.0, time == 2, False))
    play(environment, 3)
    with pytest.raises(SimulatorError, match="environment 0: the action mask allows no choice, but the agent must act"):
        play(told(informs=informs), 2)


def flattened(mask: Any) -> list[bool]:
    return [bool(mask)] if np.isscalar(mask) else [number for part in mask for number in flattened(part)]


def written(mask: Any, space: ActionSpace) -> list[bool]:
    out = np.zeros(space.mask_size, np.bool_)
    write_mask(mask, space, out, acts=True)
    return out.tolist()


@pytest.mark.parametrize(
    ("mask", "choices"),
    [
        ([1, 0, 1, 1, 0], (3, 2)),
        ((np.array([1, 0, 1], np.int8), np.array([1, 0], np.int8)), (3, 2)),
        (([1, 0, 1], [1, 0]), (3, 2)),
        ((((1, 0), (1, 1)), ((0, 1), (0, 1))), (2, 2, 2, 2)),
        ((((1, 0), (1, 1, 0)), ((0, 1, 0, 1), (0, 1, 1, 1, 1))), (2, 3, 4, 5)),
        ([[np.array([1, 0]), np.array([1, 1, 0])], [[0, 1], [1, 0, 1]]], (2, 3, 2, 3)),
        ((np.array([[1, 0], [0, 1]]), ((1, 1), (0, 1))), (2, 2, 2, 2)),
        (np.array([[1, 0], [0, 1]]), (2, 2)),
        (np.array([[[1, 0], [0, 1]], [[1, 1], [0, 1]]]), (2, 2, 2, 2)),
    ],
)
def test_mask_of_several_choices_may_come_in_parts(mask: Any, choices: tuple[int, ...]) -> None:
    assert written(mask, MultiDiscrete(choices)) == flattened(mask)


@pytest.mark.parametrize("mask", [[True, False, True], (1, 0, 1), np.array([1.0, 0.0, 1.0])])
def test_mask_of_one_choice_may_be_of_any_numbers_that_are_0_or_1(mask: Any) -> None:
    assert written(mask, Discrete(3)) == [True, False, True]


@pytest.mark.parametrize(
    ("mask", "space", "complaint"),
    [
        ([1, 1], Discrete(3), r"has shape \(2,\), expected 3 numbers, 0 or 1"),
        (1, Discrete(3), r"has shape \(\), expected 3"),
        ([[1, 1, 1]], Discrete(3), r"has shape \(1, 3\)"),
        ([1, 2, 0], Discrete(3), r"something else than 0 and 1: \[1, 2, 0\]"),
        ([0.0, -np.inf, 0.0], Discrete(3), "something else than 0 and 1"),
        ([1, np.nan, 0], Discrete(3), "something else than 0 and 1"),
        (["a", "b", "c"], Discrete(3), "something else than 0 and 1"),
        ([1] * 6, MultiDiscrete((3, 2)), r"expected 5 numbers, 0 or 1, for the parts \[3, 2\]"),
        (([1, 1], [1, 1, 1]), MultiDiscrete((3, 2)), r"parts of shapes \(2,\), \(3,\), expected sizes \[3, 2\]"),
        (([1, 1, 1],), MultiDiscrete((3, 2)), r"parts of shapes \(3,\), expected sizes"),
        (((1, 0), ((1, 1), 1)), MultiDiscrete((2, 2, 2)), r"parts of shapes \(2,\), \(2,\), \(\)"),
        ([1, [1, 0]], Discrete(3), "the action mask is no array"),
        (([1, 0, 1], [0, 0]), MultiDiscrete((3, 2)), "allows no choice of part 1, but the agent must act"),
    ],
)
def test_mask_that_is_none_of_the_actions_is_refused(mask: Any, space: ActionSpace, complaint: str) -> None:
    with pytest.raises(SimulatorError, match=complaint):
        written(mask, space)


class MaskedInInfos(ScriptedParallel):
    """Allows action time % 4 only, from record `start` on; nothing at all at record `nothing`."""

    def __init__(self, start: int, nothing: int = 99) -> None:
        super().__init__([Script(6)], ("a_0", "a_1"))
        self._start, self._nothing = start, nothing

    def _infos(self) -> dict[str, Any]:
        mask = (np.arange(4) == self._time % 4) & (self._time != self._nothing)
        return {agent: {"action_mask": mask} for agent in self.agents} if self._time >= self._start else {}

    def reset(self, seed: int | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        return super().reset(seed)[0], self._infos()

    def step(self, actions: Any) -> tuple[dict[str, Any], ...]:
        return *super().step(actions)[:-1], self._infos()


@pytest.mark.parametrize("start", [0, 1, 3])
def test_parallel_masks_of_infos_are_used_from_the_record_that_brings_them(start: int) -> None:
    environment = from_simulators([MaskedInInfos(start)], 0, "masked")
    step = environment.reset(0)
    for time in range(5):
        masks = step.kinds["a"].action_masks
        assert masks is not None
        expected = (np.arange(4) == time % 4).tolist() if time >= start else [True] * 4
        assert masks[0].tolist() == [expected] * 2
        step = environment.step({"a": np.zeros((1, 2), int)})


def test_parallel_mask_that_allows_nothing_names_environment_and_agent() -> None:
    environment = from_simulators([MaskedInInfos(0), MaskedInInfos(0, nothing=2)], 0, "masked")
    environment.reset(0)
    environment.step({"a": np.zeros((2, 2), int)})
    with pytest.raises(SimulatorError, match="environment 1: agent 'a_0': the action mask allows no choice"):
        environment.step({"a": np.zeros((2, 2), int)})
