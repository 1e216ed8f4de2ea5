"""Versions on a server: when they are read, how many stay, and whose numbers a row gets."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from srlhpc.policies.policy import Policy
from srlhpc.roles.serving.version_shelf import VersionShelf
from tests.launch.fake_runs import wait_for
from tests.roles.counting_policy import CountingPolicy


def load(network: Policy, arrays: Mapping[str, Any], updates: int) -> None:  # noqa: ARG001
    network.load_state_dict({name: _tensor(array) for name, array in arrays.items()})


def _tensor(array: Any) -> Any:
    import torch

    return torch.from_numpy(np.asarray(array))


def parameters(updates: int) -> dict[str, Any]:
    return {name: np.full(tensor.shape, updates, np.float32) for name, tensor in CountingPolicy().state_dict().items()}


def test_version_is_read_at_once_in_a_serial_run() -> None:
    shelf = VersionShelf(CountingPolicy(), parameters, load, resident=2, in_thread=False)
    assert shelf.has([3, 5])
    assert set(shelf.versions) == {3, 5}
    assert all((tensor == 5).all() for tensor in shelf.network(5).state_dict().values())


def test_version_is_read_beside_the_loop() -> None:
    may_read = threading.Event()

    def read(updates: int) -> dict[str, Any]:
        may_read.wait()
        return parameters(updates)

    shelf = VersionShelf(CountingPolicy(), read, load, resident=2, in_thread=True)
    assert not shelf.has([3])
    assert not shelf.has([3])
    may_read.set()
    wait_for(lambda: shelf.has([3]))
    assert shelf.loaded == 1


def test_those_that_were_not_used_for_longest_are_given_up_but_none_that_is_needed() -> None:
    shelf = VersionShelf(CountingPolicy(), parameters, load, resident=2, in_thread=False)
    assert shelf.has([1, 2, 3, 4])
    shelf.network(1)
    shelf.trim([3])
    assert set(shelf.versions) == {3, 1}


def test_version_that_cannot_be_read_is_an_error_of_the_server() -> None:
    def read(updates: int) -> dict[str, Any]:
        raise FileNotFoundError(f"no version {updates}")

    shelf = VersionShelf(CountingPolicy(), read, load, resident=2, in_thread=True)

    def fails() -> bool:
        try:
            shelf.has([3])
        except FileNotFoundError:
            return True
        return False

    wait_for(fails)
    with pytest.raises(FileNotFoundError, match="no version 3"):
        shelf.has([4])
