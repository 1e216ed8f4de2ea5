"""The generators of `random`, `numpy.random` and `torch` that belong to the process, for environments that use them.

torch is left alone where nobody has loaded it.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import numpy as np


def seed_generators(seed: int) -> None:
    """Seeds them all; `seed` is below 2**32."""
    random.seed(seed)
    np.random.seed(seed)
    if torch := _torch():
        torch.manual_seed(seed)


def save_generators() -> dict[str, Any]:
    """The state of them all as a tree of arrays and numbers."""
    version, words, gauss = random.getstate()
    state: dict[str, Any] = {
        "random": {"version": version, "words": np.array(words, np.uint32), "gauss": gauss},
        "numpy": dict(np.random.get_state(legacy=False)),
    }
    if torch := _torch():
        state["torch"] = {"cpu": torch.get_rng_state().numpy()}
        if torch.cuda.is_initialized():
            devices = torch.cuda.get_rng_state_all()
            state["torch"] |= {f"cuda:{index}": device.numpy() for index, device in enumerate(devices)}
    return state


def load_generators(state: Mapping[str, Any]) -> None:
    """Takes back what `save_generators` gave."""
    ours = state["random"]
    random.setstate((ours["version"], tuple(ours["words"].tolist()), ours["gauss"]))
    np.random.set_state(state["numpy"])
    if torch := _torch():
        for name, words in state.get("torch", {}).items():
            copied = torch.from_numpy(words.copy())
            if name == "cpu":
                torch.set_rng_state(copied)
            elif torch.cuda.is_available() and int(name.removeprefix("cuda:")) < torch.cuda.device_count():
                torch.cuda.set_rng_state(copied, name)


class OwnGenerators:
    """Inside `with`, the generators are those of one role, so that it does not move those of the others.

    Args:
        seed: of their beginning.
    """

    def __init__(self, seed: int) -> None:
        outside = save_generators()
        seed_generators(seed)
        self._own, self._others = save_generators(), outside
        load_generators(outside)

    def __enter__(self) -> None:
        self._others = save_generators()
        load_generators(self._own)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._own = save_generators()
        load_generators(self._others)


def _torch() -> Any:
    """torch, if it is loaded."""
    return sys.modules.get("torch")
