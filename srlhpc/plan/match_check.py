"""Whether the sides of a run can meet the past, and which groups do. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from srlhpc.errors import UserError, counted
from srlhpc.plan.plan import Plan


def check_matches(plan: Plan) -> None:
    """Refuses matches that nobody can play.

    Args:
        plan: of the run.

    Raises:
        UserError: with the remedy.
    """
    matches, seats = plan.spec.matches, plan.seats
    if matches is None:
        return
    if len(seats) < 2:
        raise UserError(
            "matches: need two sides, and agents has one entry; give each side an entry, for example "
            "[{match: 'player_0', policy: default}, {match: 'player_1', policy: default}]"
        )
    if not matches.shares.past:
        return
    if plan.spec.versions.every_updates is None:
        raise UserError(
            "versions.every_updates: is null, so there would be no past to meet (matches.shares.past is "
            f"{matches.shares.past:g}); set it, for example versions: {{every_updates: 50, keep: 20}}, or leave "
            "matches out, which is self-play"
        )
    learning = _learning(plan)
    for place, seat in enumerate(seats):
        if seat.trained and not (learning[place] or learning[None]):
            raise UserError(
                f"agents.{place}: policy {seat.policy} would never learn this side: of "
                f"{counted(len(plan.groups), 'group')} (actors.ranks x ring) {learning[None]} play themselves, and in "
                "the others one side learns, in turn; raise actors.ranks or actors.ring"
            )


def match_notes(plan: Plan) -> Iterator[str]:
    """Which side learns in how many groups."""
    matches = plan.spec.matches
    if matches is None:
        return
    learning = _learning(plan)
    parts = [f"{counted(learning[None], 'group')} in which all sides learn"] if learning[None] else []
    parts += [
        f"{counted(learning[place], 'group')} in which {seat.policy} learns as side {place} ('{entry.match}') against "
        f"the past"
        for place, (seat, entry) in enumerate(zip(plan.seats, plan.spec.agents, strict=True))
        if learning[place]
    ]
    yield f"matches: {', '.join(parts)}"


def _learning(plan: Plan) -> Counter[int | None]:
    """Groups by the only side that learns there; None: all do."""
    found = (plan.learning_seat(plan.group_number(actor, place)) for actor, place in plan.groups)
    return Counter(None if seat is None else seat.side for seat in found)
