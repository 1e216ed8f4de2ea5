"""Whether the sides of a run can meet the past, and which groups do. Pure."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Iterator

from srlhpc.errors import UserError, counted
from srlhpc.plan.plan import Plan
from srlhpc.specs.matches import Part
from srlhpc.specs.named_modules import PayoffRuleSettings


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
    if isinstance(matches.rule, PayoffRuleSettings):
        _check_payoffs(plan, matches.rule, matches.shares.payoffs)
    learning = _learning(plan)
    for place, seat in enumerate(seats):
        if seat.trained and not (learning[place] or learning[None]):
            raise UserError(
                f"agents.{place}: policy {seat.policy} would never learn this side: of "
                f"{counted(len(plan.groups), 'group')} (actors.ranks x ring) {learning[None]} play themselves, and in "
                "the others one side learns, in turn; raise actors.ranks or actors.ring"
            )


def _check_payoffs(plan: Plan, rule: PayoffRuleSettings, share: float) -> None:
    """Refuses a table of payoffs that nobody can fill."""
    name, seats = rule.kind, plan.seats
    if len(seats) > 2:
        raise UserError(
            f"matches.rule: {name} is for games of two sides, and agents has {len(seats)} entries; give agents of one "
            "side one entry, or take the rule prioritized"
        )
    for place, seat in enumerate(seats):
        if not plan.trainers(seat.policy):
            raise UserError(
                f"agents.{place}: nobody trains policy {seat.policy}, so it has no versions that {name} could mix; "
                "give it an algorithm and a batch, or take the rule fictitious"
            )
    if plan.spec.versions.keep is not None:
        raise UserError(
            f"versions.keep: is {plan.spec.versions.keep}, and {name} mixes all versions that were ever written; set "
            "it to null"
        )
    if not _groups(plan)["payoffs"]:
        raise UserError(
            f"matches.shares.payoffs: {share:g} of {counted(len(plan.groups), 'group')} "
            "(actors.ranks x ring) is none in which versions could play each other; raise it, actors.ranks or "
            "actors.ring"
        )
    every, most = plan.spec.versions.every_updates, rule.most_versions
    planned = None if plan.spec.stop.updates is None or not every else 1 + plan.spec.stop.updates // every
    if planned is not None and most is not None and planned > most:
        raise UserError(
            f"versions.every_updates: is {every}, which makes {counted(planned, 'version')} of each policy by "
            f"{plan.spec.stop.updates:,} updates, and {name} with this solver takes at most {most}; raise it, or take "
            "the solver nash or regret_matching"
        )
    if getattr(rule, "solver", None) == "nash" and importlib.util.find_spec("scipy") is None:
        raise UserError(
            "matches.rule.solver: nash needs scipy, which is not installed: pip install 'srlhpc[league]', or take "
            "regret_matching"
        )


def match_notes(plan: Plan) -> Iterator[str]:
    """Which side learns in how many groups."""
    matches = plan.spec.matches
    if matches is None:
        return
    learning, groups = _learning(plan), _groups(plan)
    parts = [f"{counted(learning[None], 'group')} in which all sides learn"] if learning[None] else []
    parts += [
        f"{counted(learning[place], 'group')} in which {seat.policy} learns as side {place} ('{entry.match}') against "
        f"the past"
        for place, (seat, entry) in enumerate(zip(plan.seats, plan.spec.agents, strict=True))
        if learning[place]
    ]
    if groups["payoffs"]:
        parts.append(f"{counted(groups['payoffs'], 'group')} in which versions play each other")
    yield f"matches: {', '.join(parts)}"


def _learning(plan: Plan) -> Counter[int | None]:
    """Groups by the only side that learns there; None: all do."""
    learning = (group for group in range(len(plan.groups)) if not plan.measures(group))
    found = (plan.learning_seat(group) for group in learning)
    return Counter(None if seat is None else seat.side for seat in found)


def _groups(plan: Plan) -> Counter[Part]:
    """Groups by what they play."""
    assert plan.spec.matches is not None
    return Counter(plan.spec.matches.part_of(group)[0] for group in range(len(plan.groups)))
