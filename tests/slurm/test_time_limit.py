"""Time limits."""

from __future__ import annotations

import pytest

from srlhpc.errors import UserError
from srlhpc.slurm.time_limit import hours_text, minutes_of, slurm_minutes


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("90", 90),
        ("1:30", 2),
        ("12:00:00", 720),
        ("2-0", 2880),
        ("1-02:30", 1590),
        ("1-02:30:01", 1591),
        ("90m", 90),
        ("1.5h", 90),
        ("2d", 2880),
        (" 5min", 5),
    ],
)
def test_time_limit_of_slurm_or_people_is_minutes(text: str, minutes: int) -> None:
    assert minutes_of(text) == minutes


@pytest.mark.parametrize("text", ["", "soon", "-5", "1:2:3:4", "5 hours", "1e3", "½h", "٣", "1-", "inf", "nanh", ":5"])
def test_wrong_time_limit_is_refused_with_examples(text: str) -> None:
    with pytest.raises(UserError, match="is no time limit; write minutes, 12:00:00"):
        minutes_of(text)


@pytest.mark.parametrize("text", ["0", "0:00", "0h", "999999999", "400d"])
def test_time_limit_that_is_too_short_or_too_long_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="at least a minute and at most a year"):
        minutes_of(text)


def test_minutes_are_shown_as_slurm_does() -> None:
    assert [hours_text(90), hours_text(1590)] == ["01:30:00", "1-02:30:00"]


@pytest.mark.parametrize(
    ("text", "minutes"), [("1:00:00", 60), ("5-00:00:00", 7200), ("infinite", None), ("n/a", None)]
)
def test_limit_of_a_partition_is_minutes_or_none(text: str, minutes: int | None) -> None:
    assert slurm_minutes(text) == minutes
