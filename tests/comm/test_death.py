"""A sender or a receiver that vanishes in mid-message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.comm.launching import run_ranks
from tests.comm.mpi_death import SURVIVOR_MESSAGES, VICTIM_MESSAGES


@pytest.mark.mpi
@pytest.mark.parametrize(("way", "nodes"), [("rows", 1), ("rows", 3), ("pool", 1), ("pool", 3), ("shared", 1)])
def test_receiver_goes_on_with_the_others_and_finishes_when_a_sender_is_killed(
    way: str, nodes: int, tmp_path: Path
) -> None:
    run_ranks(3, "tests.comm.mpi_death", way, str(tmp_path), survive=True, nodes=nodes)
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["survivor"] == list(range(SURVIVOR_MESSAGES))
    assert result["victim"] == list(range(len(result["victim"])))
    assert 0 < len(result["victim"]) <= VICTIM_MESSAGES
    assert result["torn"] == 0
    assert result["close_seconds"] < 2.0


@pytest.mark.mpi
@pytest.mark.parametrize("nodes", [1, 3])
def test_a_sender_goes_on_with_the_others_when_a_receiver_is_killed(nodes: int, tmp_path: Path) -> None:
    run_ranks(3, "tests.comm.mpi_death", "to", str(tmp_path), survive=True, nodes=nodes)
    assert json.loads((tmp_path / "result.json").read_text()) == list(range(SURVIVOR_MESSAGES))
    assert json.loads((tmp_path / "sender.json").read_text()) >= VICTIM_MESSAGES
