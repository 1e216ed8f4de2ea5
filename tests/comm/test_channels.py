"""The conformance suite of channels: the same plays in process and over MPI."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from srlhpc.comm.inproc import InProcessTransport
from tests.comm.launching import run_ranks
from tests.comm.scenarios import PLAYS, RECEIVER, SENDERS, run_in_process
from tests.comm.shared_transport import SharedRowsFabric, rows_of

Perform = Callable[[str], dict[int, Any]]


@pytest.fixture(
    params=[
        pytest.param(0, id="in_process"),
        pytest.param(-1, id="shared_memory"),
        pytest.param(1, id="mpi", marks=pytest.mark.mpi),
        pytest.param(3, id="mpi_3_nodes", marks=pytest.mark.mpi),
    ]
)
def perform(request: pytest.FixtureRequest, tmp_path: Path) -> Perform:
    """Runs a play by name; what every role returned."""

    def over_mpi(play: str) -> dict[int, Any]:
        run_ranks(3, "tests.comm.mpi_scenario", play, str(tmp_path), nodes=request.param)
        return {rank: json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (RECEIVER, *SENDERS)}

    def in_process(play: str) -> dict[int, Any]:
        return run_in_process(PLAYS[play], InProcessTransport())

    def in_shared_memory(play: str) -> dict[int, Any]:
        return run_in_process(PLAYS[play], SharedRowsFabric(rows_of(PLAYS[play])))

    return {0: in_process, -1: in_shared_memory}.get(request.param, over_mpi)


@pytest.mark.mpi
@pytest.mark.parametrize("memory", ["shared", "refused"])
def test_processes_of_a_node_exchange_messages_whether_or_not_they_can_share_memory(
    memory: str, tmp_path: Path
) -> None:
    run_ranks(3, "tests.comm.mpi_scenario", "order-rows", str(tmp_path), memory)
    assert json.loads((tmp_path / f"{RECEIVER}.json").read_text()) == {"1": list(range(60)), "2": list(range(60))}


@pytest.mark.parametrize("play", ["order-rows", "order-pool", "order-small-rows", "order-small-pool"])
def test_messages_of_each_outbox_arrive_in_order(perform: Perform, play: str) -> None:
    assert perform(play)[RECEIVER] == {"1": list(range(60)), "2": list(range(60))}


@pytest.mark.parametrize("play", ["large-rows", "large-pool"])
def test_64_mib_arrive_unchanged(perform: Perform, play: str) -> None:
    assert perform(play)[RECEIVER] == {"1": True, "2": True}


@pytest.mark.parametrize("play", ["backpressure-small", "backpressure-wide"])
def test_sender_with_two_slots_is_at_most_two_ahead_of_a_receiver_that_releases_nothing(
    perform: Perform, play: str
) -> None:
    results = perform(play)
    assert results[1] == 3
    assert results[RECEIVER] == 3


def test_inbox_finishes_when_all_senders_said_last(perform: Perform) -> None:
    results = perform("ending")
    assert results[RECEIVER] == [2, False, True]
    assert results[1] == results[2] == [True, True]


@pytest.mark.parametrize("play", ["forgetting-rows", "forgetting-pool"])
def test_inbox_finishes_when_the_silent_sender_is_forgotten(perform: Perform, play: str) -> None:
    assert perform(play)[RECEIVER] is False


@pytest.mark.parametrize("play", ["holding-rows", "holding-pool"])
def test_message_stays_as_it_is_until_released(perform: Perform, play: str) -> None:
    assert perform(play)[RECEIVER] == [True, 4]


def test_row_of_a_message_is_the_place_of_its_link(perform: Perform) -> None:
    assert perform("places")[RECEIVER] == {"0": 0, "1": 1, "2": 2, "3": 3}


def test_abandoned_outbox_accepts_nothing_and_waits_for_nothing(perform: Perform) -> None:
    assert perform("abandoning")[1] == [[True, False], True, True, True]


def test_subscribers_see_rising_versions_and_the_newest_at_the_end(perform: Perform) -> None:
    results = perform("parameters")
    for sender in SENDERS:
        assert results[sender] == sorted(set(results[sender]))
        assert results[sender][-1] == 19
