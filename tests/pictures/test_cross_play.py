"""Pictures of who beats whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from srlhpc.league.ratings import Ratings
from srlhpc.pictures import cross_play
from srlhpc.pictures.cross_play import Matrix, draw_cross_play


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures that are drawn."""
    figures: list[Any] = []
    make = cross_play.new_figure

    def kept(width: float, height: float) -> Any:
        figures.append(make(width, height))
        return figures[-1]

    monkeypatch.setattr(cross_play, "new_figure", kept)
    return figures


def draw(players: int, out: Path, returns: int = 0) -> None:
    values = np.arange(players * players, dtype=np.float64).reshape(players, players)
    np.fill_diagonal(values, np.nan)
    ratings = Ratings(*(np.arange(players) + shift for shift in (0.0, -1.0, 1.0)))
    below = [Matrix(f"return {number}", values, rows="a", columns="b") for number in range(returns)]
    draw_cross_play([f"run@{n}" for n in range(players)], Matrix("rate", values, (0.0, 9.0)), ratings, below, out)


def test_matrix_has_a_number_for_every_pairing_that_was_played(tmp_path: Path, drawn: list[Any]) -> None:
    draw(3, tmp_path / "out.png")
    left, right = drawn[0].axes
    assert [text.get_text() for text in left.texts] == ["1", "2", "3", "5", "6", "7"]
    assert [label.get_text() for label in left.get_yticklabels()] == ["run@0  1", "run@1  2", "run@2  3"]
    # The first player is above, as in the matrix.
    assert right.get_ylim() == left.get_ylim() == (2.5, -0.5)
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


def test_returns_are_below(tmp_path: Path, drawn: list[Any]) -> None:
    draw(2, tmp_path / "out.svg", returns=2)
    assert [axes.get_title(loc="left") for axes in drawn[0].axes] == [
        "rate",
        "rating (Elo scale), 95 % interval",
        "return 0",
        "return 1",
    ]
    assert (drawn[0].axes[2].get_ylabel(), drawn[0].axes[2].get_xlabel()) == ("a", "b")


def test_many_players_are_told_by_colours(tmp_path: Path, drawn: list[Any]) -> None:
    draw(20, tmp_path / "out.png")
    assert not drawn[0].axes[0].texts
    assert len(drawn[0].axes) == 3
