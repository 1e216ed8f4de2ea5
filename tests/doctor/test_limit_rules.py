"""Times and numbers of slurm.conf that end runs."""

from __future__ import annotations

import pytest

from srlhpc.doctor.limit_rules import limit_findings

FINE = {"WaitTime": "0 sec", "InactiveLimit": "0 sec", "KillWait": "30 sec", "MaxStepCount": "40000"}


def found(**settings: str) -> tuple[str, str]:
    """Level and text of the only finding."""
    (finding,) = limit_findings({**FINE, **settings})
    return finding.level, finding.found


def test_default_or_unknown_limits_are_one_line() -> None:
    assert found() == ("ok", "WaitTime, InactiveLimit, KillWait and MaxStepCount leave runs alone")
    assert [finding.level for finding in limit_findings({})] == ["ok"]
    assert found(InactiveLimit="UNLIMITED")[0] == "ok"


@pytest.mark.parametrize(
    ("name", "value", "level"),
    [
        ("WaitTime", "30 sec", "ok"),
        ("InactiveLimit", "60 sec", "warning"),
        ("InactiveLimit", "600 sec", "ok"),
        ("KillWait", "29 sec", "warning"),
        ("KillWait", "0 sec", "warning"),
        ("MaxStepCount", "5", "warning"),
        ("MaxStepCount", "1", "fault"),
    ],
)
def test_limit_that_hurts_is_named_with_what_it_does(name: str, value: str, level: str) -> None:
    said = found(**{name: value})
    assert said[0] == level
    assert f"{name}={value.removesuffix(' sec')}" in said[1] or level == "ok"


def test_wait_time_is_said_to_be_overridden() -> None:
    assert "srun --wait=0" in found(WaitTime="30 sec")[1]
