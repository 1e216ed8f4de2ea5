"""Makes the matchmaker from the plan. Free of torch."""

from __future__ import annotations

from functools import partial

from srlhpc.data.version_folder import kept_versions
from srlhpc.import_path import load_module
from srlhpc.plan.plan import Plan, RolePlan
from srlhpc.plan.seeds import seed_of
from srlhpc.ranks.context import RankContext
from srlhpc.roles.matchmaking.matchmaker import MatchGroup, Matchmaker
from srlhpc.roles.matchmaking.opponents import MatchSide, Opponents
from srlhpc.roles.matchmaking.payoff_games import PayoffGames
from srlhpc.specs.named_modules import PayoffRuleSettings, WinRateRuleSettings

MATCHES = "matches"
"""Name of what checkpoints hold of the matchmaker."""


def build_matchmaker(context: RankContext) -> Matchmaker | None:
    """The matchmaker, with the results of the checkpoint that the attempt goes on from; None where none is needed."""
    plan, versions = context.plan, context.plan.spec.versions
    spec = plan.spec.matches
    if spec is None:
        return None
    sides = [
        MatchSide(f"{seat.policy} as '{entry.match}'", seat.policy, bool(plan.trainers(seat.policy)))
        for seat, entry in zip(plan.seats, plan.spec.agents, strict=True)
    ]
    rule = load_module(spec.rule.kind, "srlhpc.league.match_rules", ("Settings",))
    payoffs = None
    if isinstance(spec.rule, PayoffRuleSettings):
        first, second = (seat.policy for seat in plan.seats)
        payoffs = PayoffGames((first, second), spec.rule.episodes, partial(rule.mixtures, spec.rule))
    opponents = Opponents(
        sides,
        chances=None if payoffs is not None else partial(rule.chances, spec.rule),
        mixture=None if payoffs is None else payoffs.mixture,
        decay=spec.rule.decay if isinstance(spec.rule, WinRateRuleSettings) else 1.0,
        resident=spec.resident,
        kept=lambda updates: kept_versions(updates, versions.keep, versions.tags.values()),
        seed=seed_of(plan.spec.seed, "matches", context.restart),
    )
    requests, outboxes = context.wiring.matchmaker_ends()
    groups = [_group(plan, actor, place) for actor, place in plan.groups]
    matchmaker = Matchmaker(
        sides,
        groups,
        opponents,
        lot=spec.lot,
        environments=plan.spec.actors.environments,
        resident=spec.resident,
        payoffs=payoffs,
        requests=requests,
        outboxes=outboxes,
    )
    if (saved := (context.restored or {}).get(MATCHES)) is not None:
        matchmaker.load_results(saved)
    return matchmaker


def _group(plan: Plan, actor: RolePlan, place: int) -> MatchGroup:
    group = plan.group_number(actor, place)
    learning = plan.learning_seat(group)
    servers = tuple(plan.server_of(group, seat.policy).address for seat in plan.seats)
    return MatchGroup(actor.address, None if learning is None else learning.side, servers, plan.measures(group))
