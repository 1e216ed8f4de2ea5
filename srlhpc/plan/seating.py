"""Who plays which agents: the seats of policies. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from srlhpc.environment import Kind, Spaces
from srlhpc.errors import UserError, did_you_mean
from srlhpc.plan.plan import Seat
from srlhpc.specs.contracts import Needs
from srlhpc.specs.experiment import ExperimentSpec
from srlhpc.specs.named_modules import AlgorithmSettings


def seats(spec: ExperimentSpec, spaces: Spaces) -> Iterator[Seat]:
    """Which agents each policy plays, in the spec's order; experts, who only label, have none.

    Raises:
        UserError: an agent without a policy, a policy without agents or with agents of several kinds, no such expert.
    """
    places: dict[str, dict[str, list[tuple[int, bool]]]] = {}
    for kind in spaces.kinds:
        for place, agent in enumerate(kind.agents):
            # The first entry that matches counts.
            entry = next((e for e in spec.agents if re.fullmatch(e.match, agent)), None)
            if entry is None:
                raise UserError(
                    f"agents: no entry matches agent '{agent}' of the environment; add one, for example "
                    f"{{match: '.*', policy: {next(iter(spec.policies))}}}"
                )
            places.setdefault(entry.policy, {}).setdefault(kind.name, []).append((place, entry.train))
    experts = _experts(spec, {policy: spaces.kind(next(iter(kinds))) for policy, kinds in places.items()})
    for policy in spec.policies:
        kinds = places.get(policy)
        if not kinds and policy in experts:
            continue
        if not kinds:
            known = ", ".join(agent for kind in spaces.kinds for agent in kind.agents)
            raise UserError(f"policies.{policy}: no agent uses it; the environment's agents are {known}")
        if len(kinds) > 1:
            raise UserError(
                f"policies.{policy}: plays agents of different observation or action spaces "
                f"({', '.join(kinds)}){_remedy(spec.policies[policy].algorithm, spaces.kind(next(iter(kinds))))}"
            )
        ((kind_name, agents),) = kinds.items()
        yield Seat(
            policy,
            kind_name,
            tuple(place for place, _ in agents),
            tuple(i for i, (_, train) in enumerate(agents) if train),
        )


def _experts(spec: ExperimentSpec, kinds: Mapping[str, Kind]) -> set[str]:
    """Policies that label what others play, of those that play agents of a kind."""
    found: dict[str, str] = {}
    for policy, kind in kinds.items():
        needs = _needs(spec.policies[policy].algorithm, kind)
        if needs is None or needs.expert is None:
            continue
        if needs.expert not in spec.policies:
            raise UserError(
                f"policies.{policy}.algorithm.expert: is '{needs.expert}', which is not in policies"
                f"{did_you_mean(needs.expert, list(spec.policies))}"
            )
        other = found.setdefault(needs.expert, policy)
        if kinds[other] != kind:
            raise UserError(
                f"policies.{policy}.algorithm.expert: is '{needs.expert}', which labels what policy {other} plays, of "
                f"another kind ({kinds[other].name}, here {kind.name}); give each kind an expert of its own"
            )
    return set(found)


def _needs(rule: AlgorithmSettings, kind: Kind) -> Needs | None:
    """What a rule needs; None where it refuses the agents, which is said later and better."""
    try:
        return rule.needs(kind)
    except UserError:
        return None


def _remedy(rule: AlgorithmSettings, kind: Kind) -> str:
    """What to do where one policy plays agents of several kinds."""
    needs = _needs(rule, kind)
    if needs is not None and needs.joint:
        return (
            f", and algorithm {rule.kind} learns from agents of equal ones together; pad their spaces until they are "
            "equal, or give each kind a policy in `agents`: a team of its own"
        )
    return "; give each its own policy in `agents`"
