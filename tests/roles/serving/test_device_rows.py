"""DeviceRows on their way to a device and back."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from srlhpc.roles.serving.device_rows import DeviceRows, HostDeviceRows, QueuedDeviceRows, rows_of
from tests.roles.queues import CountingStream


def queued() -> QueuedDeviceRows:
    return QueuedDeviceRows(torch.device("cpu"), 6, CountingStream())


@pytest.mark.parametrize("rows", [HostDeviceRows(), queued()], ids=["host", "queued"])
def test_parts_become_rows_one_after_the_other(rows: DeviceRows) -> None:
    parts = [np.array([[1, 2], [3, 4]]), np.array([[5, 6]])]
    assert rows.to_device("obs", parts).tolist() == [[1, 2], [3, 4], [5, 6]]
    assert rows.to_device("obs", parts[1:]).tolist() == [[5, 6]]


@pytest.mark.parametrize("rows", [HostDeviceRows(), queued()], ids=["host", "queued"])
def test_answers_keep_integers_and_widen_short_floats(rows: DeviceRows) -> None:
    arrays = rows.to_host({"actions": torch.tensor([3, 4]), "value": torch.tensor([0.5], dtype=torch.bfloat16)})
    assert (arrays["actions"].dtype, arrays["actions"].tolist()) == (np.int64, [3, 4])
    assert (arrays["value"].dtype, arrays["value"].tolist()) == (np.float32, [0.5])


def test_queue_is_waited_for_once_a_batch_whatever_it_answers() -> None:
    queue = CountingStream()
    rows = QueuedDeviceRows(torch.device("cpu"), 6, queue)
    rows.to_host({name: torch.zeros(4) for name in ("actions", "log_probs", "value")})
    assert queue.finished == 1


def test_memory_is_that_of_the_batch_before() -> None:
    rows = queued()
    first = rows.to_host({"value": torch.zeros(6)})["value"]
    second = rows.to_host({"value": torch.ones(2)})["value"]
    assert first.tolist() == [1, 1, 0, 0, 0, 0]
    assert second.shape == (2,)


def test_cpu_needs_no_queue() -> None:
    assert isinstance(rows_of(torch.device("cpu"), 6), HostDeviceRows)
