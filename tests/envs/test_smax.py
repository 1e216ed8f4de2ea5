"""SMAX, beside the package's own battles stepped by hand."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from envs.smax import Settings, build
from srlhpc.environment import Discrete, Environment, Step
from srlhpc.errors import UserError
from srlhpc.import_path import missing_packages
from tests.environment_conformance import EnvironmentConformance

pytestmark = pytest.mark.skipif(bool(missing_packages(Settings.requires)), reason="needs jaxmarl")


def made(number: int = 1, render: bool = False, **chosen: Any) -> Environment:
    return build(Settings.model_validate({"factory": "smax", **chosen}), number, 0, render)


class TestMarines(EnvironmentConformance):
    settings: ClassVar = {"factory": "smax", "scenario": "3m", "max_steps": 25}
    offers_state: ClassVar[bool] = True


class TestUnequalTeams(EnvironmentConformance):
    """Units of drawn types in drawn places, whom the enemies shoot at random."""

    settings: ClassVar = {
        "factory": "smax",
        "scenario": "smacv2_5_units",
        "attack_mode": "random",
        "see_enemy_actions": False,
        "max_steps": 40,
        "kwargs": {"walls_cause_death": False, "observation_type": "conic"},
    }
    num_environments = 2
    offers_state: ClassVar[bool] = True


class Alone:
    """The package's battles, one after the other, by its own functions."""

    def __init__(self, scenario: str, number: int, seed: int, **arguments: Any) -> None:
        import jax

        from envs._smax_making import load_smax

        smax = load_smax()
        self._jax = jax
        self.simulator = smax.HeuristicEnemySMAX(scenario=smax.map_name_to_scenario(scenario), **arguments)
        self._keys = list(np.random.SeedSequence(seed).generate_state(2 * number).reshape(number, 2))
        self.battles: list[Any] = [None] * number

    def _key(self, env: int) -> Any:
        self._keys[env], drawn = self._jax.random.split(self._keys[env])
        return drawn

    def begin(self, env: int) -> dict[str, Any]:
        seen, self.battles[env] = self.simulator.reset(self._key(env))
        return dict(seen)

    def step(self, env: int, actions: list[int]) -> tuple[dict[str, Any], Any, Any]:
        """What is seen, the rewards, and who is dead."""
        by_agent = dict(zip(self.simulator.agents, map(np.int32, actions), strict=True))
        seen, self.battles[env], rewards, dones, _ = self.simulator.step_env(
            self._key(env), self.battles[env], by_agent
        )
        return dict(seen), rewards, dones

    def units(self, env: int) -> np.ndarray:
        return np.asarray(self.battles[env].state.unit_alive)


def actions_towards_the_enemy(step: Step, random: np.random.Generator) -> np.ndarray:
    """Shooting where that is allowed, else mostly to the right, so that battles end in each way."""
    masks = step.kinds["ally"].action_masks
    assert masks is not None
    weights = random.uniform(size=masks.shape) * masks
    weights[..., 5:] *= 10
    weights[..., 1] *= 3
    chosen: np.ndarray = weights.argmax(axis=-1)
    return chosen


@pytest.fixture(scope="module")
def compared() -> Iterator[dict[str, int]]:
    """Plays both sides for a while, and counts what happened."""
    number, seed, limit = 6, 5, 13
    happened = dict.fromkeys(("won", "lost", "cut", "left", "dead at the cut"), 0)
    ours, alone = made(number, max_steps=limit), Alone("3m", number, seed, max_steps=limit)
    agents = alone.simulator.agents
    random = np.random.default_rng(0)
    step = ours.reset(seed)
    seen = [alone.begin(env) for env in range(number)]
    brought: list[Any] = [None] * number
    there = [[True] * len(agents) for _ in range(number)]
    over, returns = [False] * number, np.zeros((number, len(agents)))
    for _ in range(150):
        now = step.kinds["ally"]
        told = {episode.environment: episode for episode in step.episodes}
        assert now.state is not None
        assert now.action_masks is not None
        for env in range(number):
            np.testing.assert_allclose(now.state[env], seen[env]["world_state"], rtol=1e-5, atol=1e-5)
            masks = alone.simulator.get_avail_actions(alone.battles[env])
            alive, begins = alone.units(env), brought[env] is None
            allies, enemies = alive[: len(agents)], alive[len(agents) :]
            cut = over[env] and bool(allies.any() and enemies.any())
            for place, agent in enumerate(agents):
                np.testing.assert_allclose(now.observations["obs"][env, place], seen[env][agent], rtol=1e-5, atol=1e-5)
                np.testing.assert_array_equal(now.action_masks[env, place], masks[agent])
                acted = there[env][place] and not begins
                reward = float(brought[env][agent]) if acted else 0.0
                np.testing.assert_allclose(now.rewards[env, place], reward, rtol=1e-5, atol=1e-6)
                returns[env, place] += reward
                dies = acted and not allies[place]
                assert now.first[env, place] == begins
                assert now.valid[env, place] == (allies[place] and not over[env])
                assert now.alive[env, place] == (there[env][place] if over[env] else allies[place])
                assert now.terminated[env, place] == (acted and (dies or (over[env] and not cut)))
                assert now.truncated[env, place] == (acted and not dies and cut)
                happened["left"] += dies and not over[env]
                happened["dead at the cut"] += dies and cut
            assert (env in told) == over[env]
            if over[env]:
                won = bool(allies.any() and not enemies.any())
                assert told[env].metrics == {"won": float(won)}
                np.testing.assert_allclose(list(told[env].returns.values()), returns[env], rtol=1e-5)
                happened["cut" if cut else "won" if won else "lost"] += 1
                returns[env] = 0.0
        actions = actions_towards_the_enemy(step, random)
        valid = now.valid.copy()
        step = ours.step({"ally": actions})
        for env in range(number):
            if over[env]:
                seen[env], brought[env], over[env] = alone.begin(env), None, False
                there[env] = [True] * len(agents)
                continue
            there[env] = valid[env].tolist()
            taken = np.where(valid[env], actions[env], 4).tolist()
            seen[env], brought[env], dones = alone.step(env, taken)
            over[env] = bool(dones["__all__"])
    yield happened
    ours.close()


@pytest.mark.parametrize("what", ["won", "lost", "cut", "left", "dead at the cut"])
def test_battles_go_as_the_package_alone_plays_them(compared: dict[str, int], what: str) -> None:
    assert compared[what]


def test_spaces_are_those_of_the_scenario() -> None:
    kind = made(scenario="5m_vs_6m").spaces.kinds[0]
    assert kind.agents == ("ally_0", "ally_1", "ally_2", "ally_3", "ally_4")
    assert kind.observations["obs"].shape == (13 * (4 + 6) + 10,)
    assert kind.actions == Discrete(5 + 6)
    assert kind.state is not None
    assert kind.state.shape == (12 * 11,)
    assert made().spaces.frames_per_step == 8


def test_groups_of_equal_settings_compile_once() -> None:
    import jax

    compiled = []

    def listen(event: str, seconds: float, **_: Any) -> None:
        if "backend_compile" in event:
            compiled.append(seconds)

    first, second = made(2), made(2)
    jax.monitoring.register_event_duration_secs_listener(listen)
    steps = [environment.reset(1) for environment in (first, second)]
    before = len(compiled)
    for _ in range(3):
        steps[0] = first.step({"ally": np.zeros((2, 3), np.int64)})
    second.load_state(first.save_state() or {})
    second.step({"ally": np.zeros((2, 3), np.int64)})
    assert before >= 1
    assert len(compiled) == before


def test_one_thread_computes() -> None:
    """What XLA computes with; it also keeps threads that wait for work of other kinds."""
    made().reset(1)
    names = [file.read_text().strip() for file in Path("/proc/self/task").glob("*/comm")]
    assert names.count("tf_XLAEigen") == 1


def test_whether_a_state_can_be_saved_is_known_before_the_first_reset() -> None:
    assert made(2).save_state() is not None


def test_battle_is_drawn() -> None:
    environment = made(render=True)
    environment.reset(1)
    picture = environment.render()
    assert picture is not None
    assert picture.shape == (480, 480, 3)
    assert {(80, 140, 240), (220, 80, 70)} <= {tuple(color) for color in picture.reshape(-1, 3).tolist()}
    assert environment.render_fps == 2.0
    assert made().render() is None


def test_loading_prints_nothing_and_leaves_no_module(capfd: pytest.CaptureFixture[str]) -> None:
    made().reset(1)
    assert capfd.readouterr().out == ""
    assert not [name for name in sys.modules if name.partition(".")[0] == "jaxmarl"]


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        ({"scenario": "3n"}, "environment.scenario: jaxmarl has no '3n'; there are 3m, 2s3z, "),
        ({"kwargs": {"wall_causes_death": True}}, "SMAX takes no such argument; did you mean 'walls_cause_death'?"),
        ({"kwargs": {"walls_cause_death": 1}}, "kwargs.walls_cause_death: is 1; write true or false"),
        ({"kwargs": {"world_steps_per_env_step": 0}}, "is 0; write a whole number above 0"),
        ({"kwargs": {"won_battle_bonus": "2"}}, "is '2'; write a number"),
        ({"kwargs": {"unit_type_attacks": [1, 2]}}, "is [1, 2]; write a list of 6, each a number"),
        ({"kwargs": {"unit_type_attacks": [1, [2, 3]]}}, "write a list of 6, each a number"),
        ({"kwargs": {"max_steps": 7}}, "kwargs.max_steps: it is a setting of its own, environment.max_steps"),
        ({"kwargs": {"observation_type": "list"}}, "environment.kwargs: Unknown observation_type: 'list'"),
    ],
)
def test_battles_that_cannot_be_made_are_refused(chosen: dict[str, Any], text: str) -> None:
    with pytest.raises(UserError) as caught:
        made(**chosen)
    assert text in str(caught.value)


def test_lists_of_numbers_change_the_units() -> None:
    environment = made(kwargs={"unit_type_health": [90, 125, 160, 150, 35, 80], "enemy_shoots": False})
    environment.reset(1)
    state = environment.save_state()
    assert state is not None
    assert state["battle.state.unit_health"].tolist() == [[90.0] * 6]
