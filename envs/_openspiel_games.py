"""Games of OpenSpiel by name: which can be played here, and how one is played from its start to its end."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

from envs._near_names import near_names
from envs._openspiel_statistics import statistics_of
from srlhpc.environment import Array
from srlhpc.errors import UserError

Shown = Literal["information_state", "observation"]
_STDERR = 2


def load_game(name: str, parameters: Mapping[str, Any]) -> Any:
    """A game in which one player acts at a time; of those where several do, players choose one after the other.

    Raises:
        UserError: there is no such game or parameter, or it cannot be played here.
    """
    import pyspiel

    plain = name.partition("(")[0]
    known = pyspiel.registered_names()
    if plain not in known:
        near = near_names(plain, known)
        hint = f"; did you mean {' or '.join(repr(word) for word in near)}?" if near else ""
        raise UserError(f"environment.game: OpenSpiel has no game '{plain}'{hint}")
    try:
        with _silent():
            game = pyspiel.load_game(name, dict(parameters)) if parameters else pyspiel.load_game(name)
    except (pyspiel.SpielError, TypeError, ValueError) as error:
        said = " ".join(str(error).split())
        raise UserError(f"environment.parameters of '{name}': {said}") from None
    kind = game.get_type()
    if kind.dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS:
        game = pyspiel.convert_to_turn_based(game)
        kind = game.get_type()
    if kind.dynamics != pyspiel.GameType.Dynamics.SEQUENTIAL:
        raise UserError(f"environment.game: '{name}' has no single players who act; choose a game of some players")
    if kind.chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC:
        raise UserError(
            f"environment.game: '{name}' draws its chance by itself, which no seed repeats and no checkpoint holds; "
            "choose a game whose chance is drawn outside of it"
        )
    return game


@contextmanager
def _silent() -> Iterator[None]:
    """OpenSpiel writes what it raises to stderr as well."""
    kept = os.dup(_STDERR)
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, _STDERR)
        yield
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)
        os.close(nothing)


def shown_tensor(game: Any, name: str, wanted: Shown | None) -> tuple[Shown, tuple[int, ...]]:
    """Which tensor players see, and its shape: what is wanted, else the information state, else the observation.

    Raises:
        UserError: the game has none, or not that one.
    """
    kind = game.get_type()
    shapes: dict[Shown, tuple[int, ...]] = {}
    if kind.provides_information_state_tensor:
        shapes["information_state"] = tuple(game.information_state_tensor_shape())
    if kind.provides_observation_tensor:
        shapes["observation"] = tuple(game.observation_tensor_shape())
    if not shapes:
        raise UserError(f"environment.game: '{name}' shows its players no tensor; choose another game")
    shown = wanted or next(iter(shapes))
    if shown not in shapes:
        raise UserError(
            f"environment.shown: is {wanted}, but '{name}' has only the {' and '.join(shapes)}; leave shown out"
        )
    return shown, shapes[shown]


class Table:
    """One game that is played: its state, with chance drawn at once, and what players have so far."""

    def __init__(self, game: Any, shown: Shown) -> None:
        self._game, self._tensor, self._statistics = game, f"{shown}_tensor", statistics_of(game)
        self.generator = np.random.default_rng(0)
        """What draws chance."""
        self._state = game.new_initial_state()

    def seed(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def begin(self) -> None:
        """A new game."""
        self._state = self._game.new_initial_state()
        self._draw()

    def play(self, action: int) -> None:
        """The move of whose turn it is."""
        self._state.apply_action(action)
        self._draw()

    def _draw(self) -> None:
        while self._state.is_chance_node():
            outcomes, chances = zip(*self._state.chance_outcomes(), strict=True)
            # One number a draw, whatever numpy's own choice would take.
            place = int(np.searchsorted(np.cumsum(chances), self.generator.random(), side="right"))
            self._state.apply_action(outcomes[min(place, len(outcomes) - 1)])

    @property
    def mover(self) -> int | None:
        """Whose turn it is; None: the game is over."""
        return None if self._state.is_terminal() else int(self._state.current_player())

    @property
    def returns(self) -> Sequence[float]:
        """What each player has so far."""
        returns: Sequence[float] = self._state.returns()
        return returns

    @property
    def statistics(self) -> Mapping[str, float]:
        """What the game tells of itself once it is over."""
        return self._statistics(self._state)

    def legal_actions(self) -> Sequence[int]:
        """Moves that are open to whose turn it is."""
        actions: Sequence[int] = self._state.legal_actions()
        return actions

    def tensor(self, player: int) -> Array:
        """What a player sees, flat, float32."""
        return np.array(getattr(self._state, self._tensor)(player), np.float32)

    def serialize(self) -> str:
        """All that `deserialize` needs, but for the generator."""
        text: str = self._state.serialize()
        return text

    def deserialize(self, text: str) -> None:
        self._state = self._game.deserialize_state(text)
