"""Making simulators as `gymnasium.make` does, with wrappers around them, and what is said where that fails."""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envs._gymnasium_names import what_to_write_instead
from envs._gymnasium_packages import what_is_missing
from envs._gymnasium_pictures import takes_no_render_mode
from srlhpc.errors import UserError, did_you_mean

Wrapper = str | dict[str, dict[str, Any]]
"""Import path of a class or function, or that and its arguments."""

OTHER_KEYWORDS = {
    "id": "it is a setting of its own, environment.id",
    "num_envs": "actors.environments says how many environments are stepped as one vector",
    "vector_kwargs": "write arguments of a native vector into environment.kwargs themselves",
    "wrappers": "it is a setting of its own, environment.wrappers",
    "additional_wrappers": "write them as environment.wrappers",
    "order_enforce": "it is an argument of gymnasium.register",
    "autoreset": "Gymnasium 1.0 removed it; srlhpc resets environments itself",
    "apply_api_compatibility": "Gymnasium 1.0 removed it; wrap the environment in environment.wrappers",
}
"""Words that belong elsewhere, and where; the environment's own arguments of these names are passed on all the same."""

_OF_THE_CALL = (
    "unexpected keyword argument",
    "takes no arguments",
    "required positional",
    "required keyword-only",
    "multiple values for",
)


@dataclass(frozen=True)
class Recipe:
    """How the simulators of one environment are made."""

    name: str
    """The id as `gymnasium.make` takes it."""
    kwargs: Mapping[str, Any]
    """Arguments of `gymnasium.make`, and `vectorization_mode` of `gymnasium.make_vec`."""
    wrappers: Sequence[Wrapper] = ()
    """Around each environment, the innermost first."""
    render: bool = False
    """Whether pictures are wanted."""

    @property
    def where(self) -> str:
        return f"environment '{self.name}'"

    @property
    def demands_native(self) -> bool:
        return self.kwargs.get("vectorization_mode") == "vector_entry_point"

    def simulator(self) -> Any:
        """One environment.

        Raises:
            UserError: the id is not known, packages are missing, arguments do not fit, ...
        """
        import gymnasium

        arguments = {"disable_env_checker": True, **self.arguments}
        try:
            with warnings.catch_warnings():
                # Whether it draws is asked of its first picture: metadata tell little.
                warnings.filterwarnings("ignore", message=".*that is not in the possible render_modes")
                made = gymnasium.make(self.name, **arguments)
        except (gymnasium.error.UnregisteredEnv, gymnasium.error.DeprecatedEnv):
            advice = what_to_write_instead(self.name)
            raise UserError(f"Gymnasium knows no environment '{self.name}'; {advice}") from None
        except (gymnasium.error.DependencyNotInstalled, ImportError) as error:
            raise UserError(f"{self.where} {what_is_missing(self.name, error)}") from None
        except gymnasium.error.Error as error:
            raise UserError(f"{self.where}: {error}") from None
        except TypeError as error:
            raise self._misfit(error) from None
        return self._wrapped(made)

    @property
    def arguments(self) -> dict[str, Any]:
        """What the simulator is made with; raises UserError where they cannot be that."""
        self._check()
        arguments = {key: value for key, value in self.kwargs.items() if key != "vectorization_mode"}
        return {**arguments, "render_mode": "rgb_array"} if self.render else arguments

    def _check(self) -> None:
        from gymnasium.envs.registration import ENV_ID_RE

        if self.name.count(":") > 1 or not ENV_ID_RE.fullmatch(self.name.rpartition(":")[2]):
            raise UserError(f"environment.id: is '{self.name}'; it must be as CartPole-v1 or module:Name-v0")
        if "id" in self.kwargs:
            raise UserError(f"environment.kwargs.id: {OTHER_KEYWORDS['id']}")
        require_limit_of_steps(self.kwargs.get("max_episode_steps"))
        if (checks := self.kwargs.get("disable_env_checker")) not in (True, False, None):
            raise UserError(
                f"environment.kwargs.disable_env_checker: is {checks!r}; it must be true, false, or null for the "
                "environment's own"
            )
        if (mode := self.kwargs.get("vectorization_mode")) not in (None, "sync", "vector_entry_point"):
            raise UserError(
                f"environment.kwargs.vectorization_mode: is {mode!r}; it must be 'sync' (one environment after "
                "the other) or 'vector_entry_point' (the environment's own vector); for more processes take more "
                "actors.ranks"
            )

    def _misfit(self, error: TypeError) -> Exception:
        """What to raise for a TypeError while the simulator was made: the user's arguments or somebody's code."""
        said = error.__cause__ if isinstance(error.__cause__, TypeError) else error
        text = str(said)
        if "gymnasium.Env" in text:
            return UserError(f"{self.where}: {text}")
        if not any(words in text for words in _OF_THE_CALL):
            return error
        word = text.split("'")[1] if "unexpected keyword" in text else ""
        if self.render and (word == "render_mode" or "takes no arguments" in text):
            return UserError(takes_no_render_mode(self.where))
        return UserError(f"environment.kwargs of '{self.name}': {text}{self._advice(word)}")

    def _advice(self, word: str) -> str:
        if word in OTHER_KEYWORDS:
            return f"; {OTHER_KEYWORDS[word]}"
        return did_you_mean(word, self._known_arguments()) if word else ""

    def _known_arguments(self) -> list[str]:
        import gymnasium
        from gymnasium.envs.registration import load_env_creator

        spec = gymnasium.registry.get(self.name.rpartition(":")[2])
        if spec is None or spec.entry_point is None:
            return []
        creator = spec.entry_point if callable(spec.entry_point) else load_env_creator(spec.entry_point)
        return [*inspect.signature(creator).parameters, "max_episode_steps", "disable_env_checker"]

    def _wrapped(self, simulator: Any) -> Any:
        for index, wrapper in enumerate(self.wrappers):
            place = f"environment.wrappers.{index}"
            if len(named := {wrapper: {}} if isinstance(wrapper, str) else wrapper) != 1:
                raise UserError(f"{place}: names {len(named)} wrappers; write each as an entry of the list")
            ((path, arguments),) = named.items()
            wrap = _find(path, place)
            try:
                simulator = wrap(simulator, **arguments)
            except (TypeError, ValueError, AssertionError) as error:
                raise UserError(f"{place}: {path} does not fit here: {type(error).__name__}: {error}") from error
        return simulator


def require_limit_of_steps(steps: Any) -> None:
    """Raises UserError if an argument `max_episode_steps` is none."""
    if steps is not None and (not isinstance(steps, int) or isinstance(steps, bool) or (steps < 1 and steps != -1)):
        raise UserError(
            f"environment.kwargs.max_episode_steps: is {steps!r}; it must be a whole number of at least 1, -1 for "
            "no limit, or null for the environment's own"
        )


def _find(path: str, place: str) -> Any:
    module, _, attribute = path.rpartition(":" if ":" in path else ".")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(
            f"{place}: there is no '{path}' ({error}); write the import path of a wrapper, as in "
            "gymnasium.wrappers.FlattenObservation or my_lab.wrappers:Small"
        ) from None
