"""Wording that messages share."""

from __future__ import annotations

from srlhpc.errors import counted, did_you_mean


def test_a_number_with_its_noun() -> None:
    assert [counted(number, "rank") for number in (0, 1, 2, 12_345)] == ["0 ranks", "1 rank", "2 ranks", "12,345 ranks"]
    assert [counted(number, "entry", "entries") for number in (1, 2)] == ["1 entry", "2 entries"]


def test_nearest_known_word_is_suggested() -> None:
    assert did_you_mean("rank", ["ring", "ranks"]) == "; did you mean 'ranks'?"


def test_all_known_words_are_listed_where_none_is_near() -> None:
    assert did_you_mean("xyz", ["ring", "ranks"]) == "; known are: ranks, ring"
    assert did_you_mean("xyz", []) == ""
