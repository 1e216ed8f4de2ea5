"""What a status says of matches, and of evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from srlhpc.errors import counted

_MOST_SHOWN = 4
_LEAST_SHOWN = 0.005
_MOST_PAIRINGS = 8


def match_lines(state: Mapping[str, Any]) -> list[str]:
    """Who met the past how often and won how much of it, for people; empty without matches."""
    matches = state.get("matches")
    if not matches:
        return []
    lines = [
        f"  {found['learner']} against {counted(found['versions'], 'version')} of {found['opponent']}: "
        f"won {_percent(found['win_rate'])} of {counted(found['games'], 'match', 'matches')}"
        for found in matches["past"]
    ]
    if (payoffs := matches.get("payoffs")) is not None:
        lines += list(_payoff_lines(payoffs))
    self_play = f", {counted(matches['self_play'], 'match', 'matches')} of self-play" if matches["self_play"] else ""
    return [*lines, f"  matchmaker: {_percent(matches['busy'])} of a core{self_play}"]


def evaluation_lines(state: Mapping[str, Any]) -> list[str]:
    """What the last round of an evaluator found, for people; empty before the first."""
    evaluation = state.get("evaluation") or {}
    if "version" not in evaluation:
        return []
    when = f"  evaluated after {counted(evaluation['version'], 'update')}"
    rows = evaluation["pairings"]
    if not rows:
        return [f"{when}: {_result(evaluation)} of {counted(evaluation['episodes'], 'episode')}"]
    lines = [
        f"{when}: {row['player']} ({row['side']}) against {row['opponent']}: won {_rate_of(row)} of "
        f"{counted(row['games'], 'game')}"
        for row in rows[-_MOST_PAIRINGS:]
    ]
    left_out = len(rows) - len(lines)
    return lines + ([f"  and {counted(left_out, 'more pairing')}: srlhpc plot RUN --ratings"] if left_out else [])


def _result(evaluation: Mapping[str, Any]) -> str:
    """What came of a round, where its pairings are not known, as after a resume."""
    if "win_rate" in evaluation:
        return f"won {_percent(evaluation['win_rate'])}"
    mean = evaluation.get("return_mean")
    return "no mean return" if mean is None else f"return {mean:,.4g}"


def _rate_of(row: Mapping[str, Any]) -> str:
    """`62 % (55 to 68)`."""
    # Commands are found without numpy.
    from srlhpc.data.matches import scored
    from srlhpc.league.intervals import wilson

    if not row["games"]:
        return "–"
    rate = scored(row) / row["games"]
    low, high = wilson(scored(row), row["games"])
    return f"{_percent(rate)} ({100 * float(low):.0f} to {100 * float(high):.0f})"


def _payoff_lines(payoffs: Mapping[str, Any]) -> Iterator[str]:
    """How many versions the table has, what they are mixed to, and who is being measured."""
    rows, columns = payoffs["players"]
    if payoffs["mixtures"] is not None:
        mixed = " | ".join(_mixed(*side) for side in zip(payoffs["players"], payoffs["mixtures"], strict=True))
        yield f"  payoffs of {len(rows)} x {len(columns)} versions; they are met as {mixed}"
    if (candidate := payoffs["candidate"]) is not None:
        yield (
            f"  version {candidate['version']} of side {candidate['side']} has played {candidate['games']:,} of "
            f"{counted(candidate['needs'], 'match', 'matches')} against the others"
        )


def _mixed(versions: Sequence[int], shares: Sequence[float]) -> str:
    """The versions that are met most, as `60 % 40, 25 % 120`."""
    most = sorted(zip(shares, versions, strict=True), reverse=True)[:_MOST_SHOWN]
    shown = ", ".join(f"{_percent(share)} {version}" for share, version in most if share >= _LEAST_SHOWN)
    return shown + (" and others" if sum(share for share, _ in most) < 1 - _LEAST_SHOWN else "")


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"
