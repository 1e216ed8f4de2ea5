"""The spaces that a simulator declares, and whose class it is where it declares none."""

from __future__ import annotations

import inspect
from typing import Any

from srlhpc.errors import UserError


def declared_spaces(simulator: Any, where: str, prefix: str = "") -> tuple[Any, Any]:
    """Observation and action space.

    Raises:
        UserError: the simulator inside of all wrappers has none.
    """
    return _declared(simulator, f"{prefix}observation_space", where), _declared(
        simulator, f"{prefix}action_space", where
    )


def _declared(simulator: Any, name: str, where: str) -> Any:
    try:
        return getattr(simulator, name)
    except AttributeError as error:
        innermost = simulator.unwrapped
        if inspect.getattr_static(innermost, name, None) is not None:
            raise  # A property of it, or a wrapper, fails by itself.
        raise UserError(f"{where}: {place_of_class(type(innermost))} sets no {name}; set it in __init__") from error


def place_of_class(of: type) -> str:
    """Its name, file and line."""
    try:
        return f"{of.__qualname__} ({inspect.getsourcefile(of)}:{inspect.getsourcelines(of)[1]})"
    except (OSError, TypeError):
        return f"{of.__module__}.{of.__qualname__}"
