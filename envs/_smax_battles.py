"""Battles of one scenario of SMAX, E of them in one compiled call.

Letters: E environments, A agents (the allies), U units of both teams, allies first, O what an agent sees, C its
actions, S the state of a battle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from srlhpc.environment import Array, BoolArray


class Moment(NamedTuple):
    """E battles now, and what the last step brought. Those arrays that are shown are numpy's, and cannot be written."""

    battles: Any
    """JAX's tree of arrays `[E, ...]`."""
    keys: Any
    """uint32 `[E, 2]`: what everything random from here on follows from."""
    observations: Array
    """float32 `[E, A, O]`."""
    masks: Array
    """bool `[E, A, C]`."""
    state: Array
    """float32 `[E, S]`."""
    rewards: Array
    """float32 `[E, A]`, of dead agents too."""
    alive: BoolArray
    """bool `[E, U]`."""
    is_over: BoolArray
    """bool `[E]`: one team is dead, or the time is up."""


class Unit(NamedTuple):
    """What is drawn of a unit, in the units of the map."""

    position: tuple[float, float]
    radius: float
    health: float
    """The part that is left, 0 to 1."""
    is_ally: bool
    aims_at: tuple[float, float] | None
    """Where the unit is that it was told to shoot at; None: it moved or stood."""


class Battles:
    """The rules of one scenario. It holds no battles.

    Args:
        simulator: the package's `HeuristicEnemySMAX`.

    Attributes:
        agents: names of the A agents.
        sizes: O, C and S.
        frames_per_step: steps of the package's world in one of ours.
        seconds: game time of one of our steps.
        map: width and height of it.
    """

    def __init__(self, simulator: Any) -> None:
        import jax

        self._simulator = simulator
        self.agents = tuple(simulator.agents)
        self.sizes = (int(simulator.obs_size), int(simulator.num_ally_actions), int(simulator.state_size))
        self.frames_per_step = int(simulator.world_steps_per_env_step)
        self.seconds = self.frames_per_step * float(simulator.time_per_step)
        self.map = (int(simulator.map_width), int(simulator.map_height))
        self._stop = simulator.num_movement_actions - 1
        _, self._like = jax.eval_shape(simulator.reset, jax.ShapeDtypeStruct((2,), np.uint32))
        self._advance = jax.jit(self._traced)

    def blank(self, num_environments: int) -> Moment:
        """Zeros, before any battle has begun. Nothing is compiled for it."""
        import jax

        def zeros(shape: tuple[int, ...], dtype: Any) -> Array:
            return np.zeros((num_environments, *shape), dtype)

        (seen, actions, state), agents = self.sizes, len(self.agents)
        return Moment(
            battles=jax.tree.map(lambda leaf: zeros(leaf.shape, leaf.dtype), self._like),
            keys=zeros((2,), np.uint32),
            observations=zeros((agents, seen), np.float32),
            masks=zeros((agents, actions), np.bool_),
            state=zeros((state,), np.float32),
            rewards=zeros((agents,), np.float32),
            alive=zeros(self._like.state.unit_alive.shape, np.bool_),
            is_over=zeros((), np.bool_),
        )

    def step(self, now: Moment, actions: Array, begins: Array) -> Moment:
        """Plays one step in all battles. The first call with another E compiles, for seconds.

        Args:
            now: the moment before.
            actions: integers `[E, A]`; those of dead agents are ignored.
            begins: bool `[E]`: where a battle begins instead.
        """
        battles, keys, *shown = self._advance(now.battles, now.keys, actions.astype(np.int32), begins)
        return Moment(battles, keys, *map(np.asarray, shown))

    def _traced(self, battles: Any, keys: Any, actions: Any, begins: Any) -> tuple[Any, ...]:
        import jax
        import jax.numpy as jnp

        simulator, agents = self._simulator, self.agents
        halves = jax.vmap(jax.random.split)(keys)
        keys, drawn = halves[:, 0], halves[:, 1]
        able = battles.state.unit_alive[:, : len(agents)]
        actions = jnp.where(able, actions, self._stop)
        by_agent = {agent: actions[:, place] for place, agent in enumerate(agents)}
        seen, played, rewards, _, _ = jax.vmap(simulator.step_env)(drawn, battles, by_agent)

        def chosen(fresh: Any, old: Any) -> Any:
            return jnp.where(begins.reshape(-1, *[1] * (old.ndim - 1)), fresh, old)

        seen, battles = jax.lax.cond(
            begins.any(),
            lambda: self._alike(jax.tree.map(chosen, jax.vmap(simulator.reset)(drawn), (seen, played))),
            lambda: self._alike((seen, played)),
        )
        masks = jax.vmap(simulator.get_avail_actions)(battles)
        return (
            battles,
            keys,
            jnp.stack([seen[agent] for agent in agents], axis=1),
            jnp.stack([masks[agent] for agent in agents], axis=1).astype(bool),
            seen["world_state"],
            jnp.stack([rewards[agent] for agent in agents], axis=1),
            battles.state.unit_alive,
            battles.state.done,
        )

    def _alike(self, seen_and_battles: tuple[Any, Any]) -> tuple[Any, Any]:
        """Battles of the same types at every step: others would be compiled anew."""
        import jax

        seen, battles = seen_and_battles
        return seen, jax.tree.map(lambda leaf, like: leaf.astype(like.dtype), battles, self._like)

    def units(self, battles: Any) -> list[Unit]:
        """The units of the first battle that are alive."""
        shown = {
            name: np.asarray(getattr(battles.state, name))[0]
            for name in ("unit_positions", "unit_types", "unit_health", "unit_alive", "prev_attack_actions")
        }
        agents, simulator = len(self.agents), self._simulator
        units = []
        for place in np.flatnonzero(shown["unit_alive"]).tolist():
            kind, is_ally = int(shown["unit_types"][place]), place < agents
            # Enemies count their targets from the last ally.
            chosen = int(shown["prev_attack_actions"][place]) - simulator.num_movement_actions
            target = (agents + chosen if is_ally else agents - 1 - chosen) if chosen >= 0 else None
            units.append(
                Unit(
                    position=_point(shown["unit_positions"][place]),
                    radius=float(simulator.unit_type_radiuses[kind]),
                    health=float(shown["unit_health"][place] / simulator.unit_type_health[kind]),
                    is_ally=is_ally,
                    aims_at=None if target is None else _point(shown["unit_positions"][target]),
                )
            )
        return units

    def to_arrays(self, battles: Any) -> dict[str, Array]:
        """Battles as arrays by name, copied."""
        import jax

        named, _ = jax.tree_util.tree_flatten_with_path(battles)
        return {jax.tree_util.keystr(path).lstrip("."): np.array(leaf) for path, leaf in named}

    def from_arrays(self, arrays: Mapping[str, Array]) -> Any:
        import jax

        named, structure = jax.tree_util.tree_flatten_with_path(self._like)
        leaves = [arrays[jax.tree_util.keystr(path).lstrip(".")] for path, _ in named]
        return jax.tree_util.tree_unflatten(structure, leaves)


def _point(pair: Array) -> tuple[float, float]:
    return float(pair[0]), float(pair[1])
