"""What the adapters cost: steps per CPU second of each simulator alone and behind the environment contract.

    python benchmarks/environments.py [--seconds 3] [NAME ...]

Both sides play the same uniformly random actions, prepared beforehand. The two are measured in turns; the table shows
the best of each, as other work on the machine only ever slows one down. Time of processes that a simulator starts
counts.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from srlhpc.environment import Continuous, Environment, Spaces, Step
from srlhpc.import_path import load_module
from srlhpc.specs.child_processes import children

Stepper = Callable[[int], Any]
ROWS = 512


def random_actions(spaces: Spaces, num_environments: int) -> list[dict[str, np.ndarray]]:
    random = np.random.default_rng(0)
    rows = []
    for _ in range(ROWS):
        row: dict[str, np.ndarray] = {}
        for kind in spaces.kinds:
            shape = (num_environments, len(kind.agents), *kind.actions.array.shape)
            if isinstance(kind.actions, Continuous):
                row[kind.name] = random.uniform(-1, 1, shape).astype(np.float32)
            else:
                row[kind.name] = random.integers(kind.actions.choices, size=shape)
        rows.append(row)
    return rows


def behind_contract(settings: dict[str, Any], num_environments: int) -> Stepper:
    module = load_module(settings["factory"], "envs")
    environment = module.build(module.Settings.model_validate(settings), num_environments, 1)
    first = environment.reset(1)
    actions = random_actions(environment.spaces, num_environments)
    if any(kind.has_action_masks for kind in environment.spaces.kinds):
        return masked(environment, first, actions)
    return lambda t: environment.step(actions[t % ROWS])


def masked(environment: Environment, first: Step, drawn: list[dict[str, np.ndarray]]) -> Stepper:
    """What is drawn counts among the moves that are allowed, around and around."""
    now = first

    def step(t: int) -> None:
        nonlocal now
        chosen = {}
        for name, numbers in drawn[t % ROWS].items():
            masks = now.kinds[name].action_masks
            assert masks is not None
            chosen[name] = among_allowed(masks, numbers)
        now = environment.step(chosen)

    return step


def among_allowed(masks: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    places = numbers % masks.sum(axis=-1)
    return (masks.cumsum(axis=-1) > places[..., None]).argmax(axis=-1)


def raw_cartpole(num_environments: int) -> Stepper:
    import gymnasium

    vector = gymnasium.make_vec("CartPole-v1", num_envs=num_environments, vectorization_mode="vector_entry_point")
    vector.reset(seed=1)
    actions = np.random.default_rng(0).integers(2, size=(ROWS, num_environments))
    return lambda t: vector.step(actions[t % ROWS])


def raw_pong(num_environments: int) -> Stepper:
    from ale_py.vector_env import AtariVectorEnv

    vector = AtariVectorEnv("pong", num_environments, num_threads=1)
    vector.reset(seed=1)
    actions = np.random.default_rng(0).integers(6, size=(ROWS, num_environments))
    return lambda t: vector.step(actions[t % ROWS])


def raw_minatar(num_environments: int) -> Stepper:
    from minatar import Environment

    games = [Environment("breakout") for _ in range(num_environments)]
    for game in games:
        game.seed(1)
        game.reset()
    actions = np.random.default_rng(0).integers(6, size=(ROWS, num_environments))

    def step(t: int) -> None:
        for game, action in zip(games, actions[t % ROWS], strict=True):
            if game.act(action)[1]:
                game.reset()
            game.state()

    return step


def raw_vizdoom(num_environments: int) -> Stepper:
    import vizdoom

    games = [vizdoom.DoomGame() for _ in range(num_environments)]
    for game in games:
        game.load_config(f"{vizdoom.scenarios_path}/health_gathering.cfg")
        game.set_window_visible(False)
        game.set_screen_resolution(vizdoom.ScreenResolution.RES_160X120)
        game.set_screen_format(vizdoom.ScreenFormat.GRAY8)
        # It leaves files where it stands, and what is set beside them when it ends.
        game.set_doom_config_path(os.devnull)
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            game.init()
    actions = np.random.default_rng(0).integers(4, size=(ROWS, num_environments))
    pressed = np.eye(4)[:, 1:].tolist()

    def step(t: int) -> None:
        for game, action in zip(games, actions[t % ROWS].tolist(), strict=True):
            game.make_action(pressed[action], 4)
            if game.is_episode_finished():
                game.new_episode()
            game.get_state()

    return step


def raw_minigrid(num_environments: int) -> Stepper:
    import gymnasium

    levels = [gymnasium.make("minigrid:MiniGrid-DoorKey-6x6-v0") for _ in range(num_environments)]
    for level in levels:
        level.reset(seed=1)
    actions = np.random.default_rng(0).integers(7, size=(ROWS, num_environments))

    def step(t: int) -> None:
        for level, action in zip(levels, actions[t % ROWS], strict=True):
            *_, terminated, truncated, _ = level.step(action)
            if terminated or truncated:
                level.reset()

    return step


def raw_crafter(num_environments: int) -> Stepper:
    import crafter

    worlds = [crafter.Env(seed=1) for _ in range(num_environments)]
    for world in worlds:
        world.reset()
    actions = np.random.default_rng(0).integers(17, size=(ROWS, num_environments))

    def step(t: int) -> None:
        for world, action in zip(worlds, actions[t % ROWS], strict=True):
            if world.step(action)[2]:
                world.reset()

    return step


def raw_halfcheetah(num_environments: int) -> Stepper:
    import gymnasium

    simulators = [gymnasium.make("HalfCheetah-v5", disable_env_checker=True) for _ in range(num_environments)]
    for simulator in simulators:
        simulator.reset(seed=1)
    actions = np.random.default_rng(0).uniform(-1, 1, (ROWS, num_environments, 6)).astype(np.float32)

    def step(t: int) -> None:
        for simulator, action in zip(simulators, actions[t % ROWS], strict=True):
            *_, terminated, truncated, _ = simulator.step(action)
            if terminated or truncated:
                simulator.reset()

    return step


def raw_envpool(name: str, actions: Callable[[int], np.ndarray]) -> Callable[[int], Stepper]:
    """EnvPool's environments alone; `actions` gives a row of them for each number of environments."""

    def case(num_environments: int) -> Stepper:
        import envpool

        pool = envpool.make_gymnasium(name, num_envs=num_environments, num_threads=1, seed=1)
        pool.reset()
        rows = [actions(num_environments) for _ in range(ROWS)]
        return lambda t: pool.step(rows[t % ROWS])

    return case


def raw_cheetah_run(num_environments: int) -> Stepper:
    from dm_control import suite

    simulators = [suite.load("cheetah", "run") for _ in range(num_environments)]
    actions = np.random.default_rng(0).uniform(-1, 1, (ROWS, num_environments, 6))

    def step(t: int) -> None:
        for simulator, action in zip(simulators, actions[t % ROWS], strict=True):
            simulator.step(action)

    return step


def _parallel_step(simulators: Sequence[Any], actions: Sequence[Any]) -> Stepper:
    """Steps PettingZoo's parallel environments one after the other."""

    def step(t: int) -> None:
        for simulator, action in zip(simulators, actions[t % ROWS], strict=True):
            simulator.step(action)
            if not simulator.agents:
                simulator.reset()

    return step


def raw_simple_spread(num_environments: int) -> Stepper:
    simulators = [importlib.import_module("mpe2.simple_spread_v3").parallel_env() for _ in range(num_environments)]
    for simulator in simulators:
        simulator.reset(seed=1)
    choices = np.random.default_rng(0).integers(5, size=(ROWS, num_environments, 3))
    actions = [[dict(zip(simulators[0].agents, row, strict=True)) for row in step] for step in choices]

    return _parallel_step(simulators, actions)


def raw_cramped_room(num_environments: int) -> Stepper:
    from envs._bare_modules import load_bare

    rules = load_bare("overcooked.mdp.overcooked_mdp")
    world = rules.OvercookedGridworld.from_layout_name("cramped_room")
    states = [world.get_standard_start_state() for _ in range(num_environments)]
    choices = np.random.default_rng(0).integers(6, size=(ROWS, num_environments, 2)).tolist()
    actions = [[[rules.Action.ALL_ACTIONS[choice] for choice in pair] for pair in row] for row in choices]

    def step(t: int) -> None:
        for env, pair in enumerate(actions[t % ROWS]):
            states[env], _ = world.get_state_transition(states[env], pair)
            if states[env].timestep == 400:
                states[env] = world.get_standard_start_state()
            np.array(world.lossless_state_encoding(states[env]))

    return step


def raw_halfcheetah_of_six(num_environments: int) -> Stepper:
    from envs._bare_modules import load_bare

    make = load_bare("gymnasium_robotics.envs.multiagent_mujoco.mujoco_multi").MultiAgentMujocoEnv
    simulators = [make("HalfCheetah", "6x1", disable_env_checker=True) for _ in range(num_environments)]
    for simulator in simulators:
        simulator.reset(seed=1)
    choices = np.random.default_rng(0).uniform(-1, 1, (ROWS, num_environments, 6, 1)).astype(np.float32)
    agents = simulators[0].possible_agents
    actions = [[dict(zip(agents, row, strict=True)) for row in step] for step in choices]

    return _parallel_step(simulators, actions)


def raw_smax(scenario: str) -> Callable[[int], Stepper]:
    """The package's own step with its own reset behind ends, in one compiled call, seen as numpy arrays."""

    def case(num_environments: int) -> Stepper:
        import jax

        from envs._smax_making import load_smax

        smax = load_smax()
        simulator = smax.HeuristicEnemySMAX(scenario=smax.map_name_to_scenario(scenario))
        agents = simulator.agents

        def played(keys: Any, battles: Any, actions: Any) -> tuple[Any, ...]:
            halves = jax.vmap(jax.random.split)(keys)
            by_agent = {agent: actions[:, place] for place, agent in enumerate(agents)}
            shown, battles, rewards, ends, _ = jax.vmap(simulator.step)(halves[:, 1], battles, by_agent)
            return halves[:, 0], battles, (shown, rewards, ends, jax.vmap(simulator.get_avail_actions)(battles))

        compiled = jax.jit(played)
        keys = np.random.default_rng(0).integers(2**32, size=(num_environments, 2), dtype=np.uint32)
        _, battles = jax.vmap(simulator.reset)(keys)
        masks = np.ones((num_environments, len(agents), simulator.num_ally_actions), np.int64)
        rows = np.random.default_rng(0).integers(masks.shape[-1], size=(ROWS, *masks.shape[:2]))

        def step(t: int) -> None:
            nonlocal keys, battles, masks
            keys, battles, seen = compiled(keys, battles, among_allowed(masks, rows[t % ROWS]).astype(np.int32))
            *_, allowed = jax.tree.map(np.asarray, seen)
            masks = np.stack([allowed[agent] for agent in agents], axis=1).astype(np.int64)

        # The second call finds other types than the first, and compiles again.
        for t in range(2):
            step(t)
        return step

    return case


def raw_hanabi(num_environments: int) -> Stepper:
    import pyspiel

    game = pyspiel.load_game("hanabi")
    states = [game.new_initial_state() for _ in range(num_environments)]
    random = np.random.default_rng(0)
    choices = random.integers(20, size=(ROWS, num_environments)).tolist()

    def step(t: int) -> None:
        for env, choice in enumerate(choices[t % ROWS]):
            state = states[env]
            if not state.is_chance_node():
                moves = state.legal_actions()
                state.apply_action(moves[choice % len(moves)])
            if state.is_terminal():
                state = states[env] = game.new_initial_state()
            while state.is_chance_node():
                outcomes, chances = zip(*state.chance_outcomes(), strict=True)
                place = int(np.searchsorted(np.cumsum(chances), random.random(), side="right"))
                state.apply_action(outcomes[min(place, len(outcomes) - 1)])
            for player in range(2):
                np.array(state.observation_tensor(player), np.float32)

    return step


_RANDOM = np.random.default_rng(0)
CASES: dict[str, tuple[Callable[[int], Stepper], dict[str, Any], int]] = {
    "CartPole": (raw_cartpole, {"factory": "gymnasium", "id": "CartPole-v1"}, 8),
    "Pong": (raw_pong, {"factory": "atari", "game": "pong"}, 4),
    "MinAtar Breakout": (raw_minatar, {"factory": "minatar", "game": "breakout"}, 8),
    "ViZDoom health_gathering": (raw_vizdoom, {"factory": "vizdoom", "scenario": "health_gathering"}, 4),
    "MiniGrid DoorKey": (raw_minigrid, {"factory": "minigrid", "id": "MiniGrid-DoorKey-6x6-v0", "mission": False}, 8),
    "Crafter": (raw_crafter, {"factory": "crafter"}, 2),
    "HalfCheetah": (raw_halfcheetah, {"factory": "mujoco", "task": "HalfCheetah-v5"}, 4),
    "CartPole, EnvPool": (
        raw_envpool("CartPole-v1", lambda number: _RANDOM.integers(2, size=number)),
        {"factory": "envpool", "id": "CartPole-v1"},
        8,
    ),
    "Pong, EnvPool": (
        raw_envpool("Pong-v5", lambda number: _RANDOM.integers(6, size=number)),
        {"factory": "envpool", "id": "Pong-v5"},
        4,
    ),
    "HalfCheetah, EnvPool": (
        raw_envpool("HalfCheetah-v5", lambda number: _RANDOM.uniform(-1, 1, (number, 6))),
        {"factory": "envpool", "id": "HalfCheetah-v5"},
        4,
    ),
    "cheetah/run, EnvPool": (
        raw_envpool("CheetahRun-v1", lambda number: _RANDOM.uniform(-1, 1, (number, 6))),
        {"factory": "envpool", "id": "CheetahRun-v1"},
        4,
    ),
    "cheetah/run": (raw_cheetah_run, {"factory": "dm_control", "domain": "cheetah", "task": "run"}, 4),
    "Overcooked": (raw_cramped_room, {"factory": "overcooked", "layout": "cramped_room"}, 8),
    "HalfCheetah of six": (
        raw_halfcheetah_of_six,
        {"factory": "mamujoco", "scenario": "HalfCheetah", "agent_conf": "6x1"},
        4,
    ),
    "Hanabi of two": (raw_hanabi, {"factory": "openspiel", "game": "hanabi"}, 8),
    "SMAX 3m": (raw_smax("3m"), {"factory": "smax", "scenario": "3m"}, 32),
    "SMAX 2s3z": (raw_smax("2s3z"), {"factory": "smax", "scenario": "2s3z"}, 64),
    "simple_spread": (raw_simple_spread, {"factory": "pettingzoo", "env": "mpe2.simple_spread_v3"}, 4),
}


def microseconds(stepper: Stepper, seconds: float) -> float:
    """CPU microseconds of one vector step."""
    clock = _clock()
    steps, start = 0, clock()
    while (spent := clock() - start) < seconds:
        for _ in range(16):
            stepper(steps)
            steps += 1
    return spent / steps * 1e6


def _clock() -> Callable[[], float]:
    """Tells the CPU seconds of this process and of those that it has started by now."""
    files = [Path(f"/proc/{pid}/stat") for pid in children()]
    ticks = os.sysconf("SC_CLK_TCK")

    def spent() -> float:
        times = [file.read_text().rpartition(")")[2].split()[11:13] for file in files]
        return time.process_time() + sum(int(user) + int(system) for user, system in times) / ticks

    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CASES)}")
    parser.add_argument("--seconds", type=float, default=3.0)
    arguments = parser.parse_args()
    print(
        "| environment | in a group | raw steps/CPU-s | adapter steps/CPU-s | simulator's share | us per vector step |"
    )
    print("|---|---|---|---|---|---|")
    for name in arguments.names or CASES:
        raw_case, settings, num_environments = CASES[name]
        raw, adapter = raw_case(num_environments), behind_contract(settings, num_environments)
        rounds = [
            (microseconds(raw, arguments.seconds / 5), microseconds(adapter, arguments.seconds / 5)) for _ in range(5)
        ]
        raw_us, adapter_us = (min(column) for column in zip(*rounds, strict=True))
        print(
            f"| {name} | {num_environments} | {num_environments / raw_us * 1e6:,.0f} "
            f"| {num_environments / adapter_us * 1e6:,.0f} "
            f"| {raw_us / adapter_us:.0%} | {raw_us:.1f} -> {adapter_us:.1f} |"
        )


if __name__ == "__main__":
    main()
