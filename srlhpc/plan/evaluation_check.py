"""Which sides evaluators measure against whom, and whether anybody can play that. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from srlhpc.errors import UserError, counted, did_you_mean
from srlhpc.plan.expert_check import check_frozen
from srlhpc.plan.plan import Plan, Seat
from srlhpc.plan.seating import sides
from srlhpc.specs.evaluators import ALL_VERSIONS, LIVE, OpponentSpec


@dataclass(frozen=True)
class Matchup:
    """A side that is measured, and who plays all others."""

    side: Seat
    opponent: OpponentSpec


def evaluated_sides(plan: Plan) -> tuple[Seat, ...]:
    """The sides that evaluators know, one for each entry of `agents`; without opponents all that a policy plays is one.

    Raises:
        UserError: entries of `agents` are no sides.
    """
    if plan.spec.evaluators.opponents is None:
        return plan.whole_seats
    return plan.seats if plan.spec.matches is not None else tuple(sides(plan.spec, plan.spaces))


def matchups(plan: Plan) -> Iterator[Matchup]:
    """All that is measured in a round."""
    seats = evaluated_sides(plan)
    for opponent in plan.spec.evaluators.opponents or ():
        for seat in seats:
            others = [other for other in seats if other is not seat]
            if plan.trainers(seat.policy) and _can_play(plan, opponent.policy, others):
                yield Matchup(seat, opponent)


def evaluation_notes(plan: Plan) -> Iterator[str]:
    """Who meets whom in a round."""
    spec = plan.spec.evaluators
    for opponent in spec.opponents or ():
        sides = [matchup.side.name for matchup in matchups(plan) if matchup.opponent == opponent]
        which = {LIVE: "as it is", ALL_VERSIONS: "each of its versions"}.get(
            opponent.version, f"its version '{opponent.version}'"
        )
        yield (
            f"evaluators: a round has {counted(spec.episodes, 'game')} of {' and of '.join(sides)} "
            f"({', '.join(spec.players)}) against {opponent.policy}, {which}"
        )


def _can_play(plan: Plan, policy: str, seats: Sequence[Seat]) -> bool:
    """A policy plays its own sides; one that has none plays every side of its kind."""
    if plan.seats_of(policy):
        return all(seat.policy == policy for seat in seats)
    return all(seat.kind == plan.kind_of(policy).name for seat in seats)


def check_evaluators(plan: Plan) -> None:
    """Refuses opponents that nobody can meet.

    Args:
        plan: of the run.

    Raises:
        UserError: with the remedy.
    """
    spec = plan.spec.evaluators
    if spec.opponents is None:
        return
    if not spec.ranks:
        raise UserError("evaluators.opponents: nobody plays against them, since evaluators.ranks is 0; raise it")
    if len(plan.spec.agents) < 2:
        raise UserError(
            "evaluators.opponents: need two sides, and agents has one entry; give each side an entry, for example "
            "[{match: 'player_0', policy: default}, {match: 'player_1', policy: default}]"
        )
    if taken := [word for word in (LIVE, ALL_VERSIONS) if word in plan.spec.versions.tags]:
        raise UserError(
            f"versions.tags.{taken[0]}: evaluators mean something else by '{taken[0]}'; give the tag another name"
        )
    for place, opponent in enumerate(spec.opponents):
        _check_opponent(plan, f"evaluators.opponents.{place}", opponent)
    measured = {matchup.side.policy for matchup in matchups(plan)}
    for place, word in enumerate(spec.players):
        for policy in measured:
            _check_word(plan, f"evaluators.players.{place}", policy, word)


def _check_opponent(plan: Plan, where: str, opponent: OpponentSpec) -> None:
    policy = opponent.policy
    if not plan.seats_of(policy):
        if len(plan.spaces.kinds) > 1:
            raise UserError(
                f"{where}.policy: {policy} plays no agents, and the environment has agents of "
                f"{counted(len(plan.spaces.kinds), 'kind')} ({', '.join(kind.name for kind in plan.spaces.kinds)}), so "
                "it is not said which it could play; play such runs against each other by srlhpc arena"
            )
        if plan.spec.policies[policy].weights_from is None:
            raise UserError(
                f"policies.{policy}.weights_from: is missing; an opponent that plays no agents plays with weights that "
                "were learnt before: name a checkpoint file, or the folder of a run"
            )
        check_frozen(plan, policy, plan.kind_of(policy))
    _check_word(plan, f"{where}.version", policy, opponent.version)
    if not any(matchup.opponent is opponent for matchup in matchups(plan)):
        raise UserError(
            f"{where}.policy: {policy} meets no side that learns: it can play "
            f"{', '.join(seat.name for seat in evaluated_sides(plan) if _can_play(plan, policy, [seat])) or 'none'}, "
            "and must play all sides but the one that is measured; name another policy, or give agents of one side "
            "one entry"
        )


def _check_word(plan: Plan, where: str, policy: str, word: str) -> None:
    """Whether there will be such versions of a policy."""
    tags = plan.spec.versions.tags
    if word == LIVE:
        return
    if not plan.trainers(policy):
        raise UserError(
            f"{where}: is '{word}', and nobody trains policy {policy}, so it has no versions; leave it out, or write "
            f"{LIVE}"
        )
    if word == ALL_VERSIONS and not plan.spec.versions.are_wanted:
        raise UserError(
            f"{where}: is {ALL_VERSIONS}, and the run keeps none; set versions, for example "
            "versions: {every_updates: 50, keep: 20}"
        )
    if word != ALL_VERSIONS and word not in tags:
        known = [LIVE, ALL_VERSIONS, *tags]
        raise UserError(f"{where}: is '{word}', which is no tag of versions{did_you_mean(word, known)}")
