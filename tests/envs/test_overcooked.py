"""Overcooked, beside the package's own rules and encoding."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from pydantic import ValidationError

from envs._overcooked_kitchen import LAYERS, load_kitchen
from envs.overcooked import Settings, build
from srlhpc.doctor.random_play import Seen, keep
from srlhpc.environment import Array, Environment
from srlhpc.errors import UserError
from srlhpc.import_path import missing_packages
from tests.environment_conformance import EnvironmentConformance

pytestmark = pytest.mark.skipif(bool(missing_packages(Settings.requires)), reason="needs the package overcooked")

NORTH, SOUTH, EAST, WEST, STAY, INTERACT = range(6)
POTTED = (NORTH, WEST, INTERACT, EAST, NORTH, INTERACT, *(WEST, INTERACT, EAST, NORTH, INTERACT) * 2)
"""How the first cook of `cramped_room` puts three onions into the pot."""
DISH = (WEST, SOUTH, SOUTH, INTERACT, NORTH, EAST, NORTH)
"""How it then gets a dish and comes back."""
SERVED = (INTERACT, SOUTH, EAST, SOUTH, INTERACT)
"""How it then takes the soup and serves it."""


class TestCrampedRoom(EnvironmentConformance):
    settings: ClassVar = {"factory": "overcooked", "horizon": 24, "shaping": {"start": 1.0, "end": 0.0, "steps": 60}}
    is_random = False
    offers_state = True
    returns_are_rewards = False


class TestTomatoesWithAStartOfItsOwn(EnvironmentConformance):
    settings: ClassVar = {"factory": "overcooked", "layout": "tutorial_1", "horizon": 45}
    is_random = False
    offers_state = True
    returns_are_rewards = False


def made(number: int = 1, **chosen: Any) -> Environment:
    return build(Settings.model_validate({"factory": "overcooked", **chosen}), number, 0)


def played(environment: Environment, *moves: int) -> list[Seen]:
    """The step after each move of the first cook, while the second stays."""
    return [keep(environment.step({"cook": np.array([[move, STAY]])})) for move in moves]


def total(steps: Sequence[Seen]) -> list[float]:
    """Rewards of both cooks of the first environment."""
    rewards: list[float] = np.sum([step.kinds["cook"].rewards[0] for step in steps], axis=0).tolist()
    return rewards


def as_we_show(kitchen: Any, state: Any, horizon: int) -> Array:
    """The package's own encoding, `[2, C, H, W]`."""
    own = np.array(kitchen.world.lossless_state_encoding(state, horizon))
    return own.transpose(0, 3, 2, 1) * kitchen.scale[:, None, None].astype(int)


def layouts() -> list[str]:
    if missing_packages(Settings.requires):
        return []
    with pytest.raises(UserError) as caught:
        load_kitchen("", old_dynamics=False)
    return str(caught.value).partition("there are ")[2].split(", ")


ALONE = ("cramped_room_single", "old_dynamics_cook_test", "old_dynamics_put_test")
MANY = ("multiplayer_schelling",)


@pytest.mark.parametrize("layout", sorted({*layouts()} - {*ALONE, *MANY}))
def test_every_layout_for_two_goes_as_the_package_alone_plays_it(layout: str) -> None:
    horizon, random = 60, np.random.default_rng(0)
    ours, alone = made(2, layout=layout, horizon=horizon), load_kitchen(layout, old_dynamics=False)
    seen = ours.reset(0).kinds["cook"].observations["obs"]
    states = [alone.world.get_standard_start_state() for _ in range(2)]
    for _ in range(horizon):
        np.testing.assert_array_equal(seen, [as_we_show(alone, state, horizon) for state in states])
        moves = random.choice([*range(6), INTERACT, INTERACT], (2, 2))
        now = ours.step({"cook": moves}).kinds["cook"]
        for env, chosen in enumerate(moves):
            actions = [alone._actions[move] for move in chosen]
            states[env], said = alone.world.get_state_transition(states[env], actions)
            expected = sum(said["sparse_reward_by_agent"]) + np.array(said["shaped_reward_by_agent"])
            assert now.rewards[env].tolist() == expected.tolist()
    assert now.truncated.all()
    np.testing.assert_array_equal(seen, [as_we_show(alone, state, horizon) for state in states])


def test_a_soup_is_potted_cooked_and_served() -> None:
    environment = made(horizon=60)
    environment.reset(0)
    assert total(played(environment, *POTTED)) == [9, 0]
    assert total(played(environment, INTERACT)) == [0, 0]
    assert total(played(environment, *DISH)) == [3, 0]
    # It cooks in 20 steps, of which the first began it.
    played(environment, *[STAY] * (19 - len(DISH)))
    taken, *_, served = played(environment, *SERVED)
    assert total([taken]) == [5, 0]
    assert total([served]) == [20, 20]
    (episode,) = played(environment, *[STAY] * (60 - 41))[-1].episodes
    assert episode.returns == {"cook_0": 20, "cook_1": 20}
    assert episode.metrics == {"shaped_return": 20 + (9 + 3 + 5) / 2, "shaping": 1.0}


def test_soup_is_not_ready_a_step_earlier() -> None:
    environment = made(horizon=60)
    environment.reset(0)
    played(environment, *POTTED, INTERACT, *DISH, *[STAY] * (18 - len(DISH)))
    assert total(played(environment, INTERACT)) == [0, 0]
    assert total(played(environment, INTERACT)) == [5, 0]


def test_old_dynamics_cook_by_themselves() -> None:
    cooking = LAYERS.index("cook_time_remaining")
    for old, remaining in ((False, 0), (True, 19)):
        environment = made(horizon=60, old_dynamics=old)
        environment.reset(0)
        *_, last = played(environment, *POTTED)
        assert last.kinds["cook"].observations["obs"][0, 0, cooking].max() == remaining * (255 // 20)


def test_shaping_falls_with_the_steps_that_were_played_over_episodes() -> None:
    environment = made(horizon=16, shaping={"start": 1.0, "end": 0.0, "steps": 32})
    environment.reset(0)
    steps = played(environment, *POTTED, STAY, *POTTED)
    rewards = {record: reward for record, step in enumerate(steps) if (reward := total([step])[0])}
    # Record 16 is the one after an end, so it is no step.
    before = {5: 5, 10: 10, 15: 15, 22: 21, 27: 26, 32: 31}
    assert rewards == {record: 3 * (1 - played_before / 32) for record, played_before in before.items()}
    (first,), (second,) = steps[15].episodes, steps[32].episodes
    assert first.returns == second.returns == {"cook_0": 0, "cook_1": 0}
    assert second.metrics == {"shaped_return": 3 * (11 + 6 + 1) / 32 / 2, "shaping": 1 / 32}


def test_layouts_in_one_process_keep_their_own_cooking_times() -> None:
    slow = load_kitchen("long_cook_time", old_dynamics=False)
    fast = load_kitchen("mdp_test", old_dynamics=False)
    cooking = LAYERS.index("cook_time_remaining")
    assert (slow.scale[cooking], fast.scale[cooking]) == (255 // 100, 255 // 6)
    state = slow.world.get_standard_start_state()
    pot = slow.world.terrain_pos_dict["P"][0]
    soup = slow._rules.SoupState.get_soup(pot, num_onions=3, cooking_tick=0)
    state.add_object(soup)
    assert soup.cook_time_remaining == 100


def test_kitchen_loads_nothing_that_draws_and_leaves_no_modules() -> None:
    script = (
        "import sys; from envs.overcooked import Settings, build; "
        "build(Settings(factory='overcooked'), 1, 0).reset(0); "
        "names = ('torch', 'cv2', 'pygame', 'marlenv', 'gymnasium', 'overcooked', 'overcooked.mdp.overcooked_mdp'); "
        "print([name for name in names if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        (
            {"layout": "cramped_rom"},
            "environment.layout: the package overcooked has no 'cramped_rom'; did you mean 'cr",
        ),
        ({"layout": "kitchen"}, "has no 'kitchen'; there are asymmetric_advantages, "),
        ({"layout": "cramped_room_single"}, "environment.layout: 'cramped_room_single' is for 1, not for 2; choose"),
        ({"layout": "multiplayer_schelling"}, "'multiplayer_schelling' is for 4, not for 2"),
        (
            {"layout": "mdp_test", "old_dynamics": True},
            "environment.old_dynamics: 'mdp_test': Only accept orders with 3 items when using the old_dynamics; leave",
        ),
    ],
)
def test_kitchens_that_cannot_be_played_are_refused(chosen: dict[str, Any], text: str) -> None:
    with pytest.raises(UserError) as caught:
        made(**chosen)
    assert text in str(caught.value)


def test_shaping_must_not_be_negative() -> None:
    with pytest.raises(ValidationError, match="must not be negative"):
        Settings(factory="overcooked", shaping=-1.0)


def test_pictures_show_what_changes_and_only_when_asked() -> None:
    quiet = made()
    drawing = build(Settings(factory="overcooked"), 1, 0, render=True)
    quiet.reset(0), drawing.reset(0)
    assert quiet.render() is None
    before = drawing.render()
    assert before is not None
    assert (before.shape, before.dtype) == ((4 * 48, 5 * 48, 3), np.uint8)
    # An onion beside what is left of the first cook, in the second row of cells.
    played(drawing, NORTH, WEST)
    without = drawing.render()
    played(drawing, INTERACT)
    after = drawing.render()
    assert without is not None
    assert after is not None
    rows, columns, _ = np.nonzero(without != after)
    assert {*(rows // 48).tolist()} == {*(columns // 48).tolist()} == {1}
