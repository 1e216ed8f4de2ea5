"""Who plays which agents: the seats of policies. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from srlhpc.environment import Kind, Spaces
from srlhpc.errors import UserError, counted, did_you_mean
from srlhpc.plan.plan import Seat
from srlhpc.specs.contracts import Needs
from srlhpc.specs.experiment import AgentsSpec, ExperimentSpec
from srlhpc.specs.named_modules import AlgorithmSettings

_Played = Sequence[tuple[int, AgentsSpec]]
"""Places in a kind's agent axis, each with the entry of `agents` that matches."""


def seats(spec: ExperimentSpec, spaces: Spaces) -> Iterator[Seat]:
    """Which agents each policy plays, in the spec's order; experts, who only label, and opponents of evaluators
    may have none.

    With matches, each entry of `agents` is a side, in their order.

    Raises:
        UserError: an agent without a policy, a policy without agents or with agents of several kinds, no such expert,
            sides of one policy that are unlike.
    """
    found = _played(spec, spaces)
    if spec.matches is None:
        yield from (_seat(policy, kind, agents) for policy, (kind, agents) in found.items())
    else:
        yield from _sides(spec, found)


def sides(spec: ExperimentSpec, spaces: Spaces) -> Iterator[Seat]:
    """The seats as with matches: one for each entry of `agents`.

    Raises:
        UserError: as `seats`.
    """
    return _sides(spec, _played(spec, spaces))


def _played(spec: ExperimentSpec, spaces: Spaces) -> dict[str, tuple[str, _Played]]:
    """The kind and agents of each policy that plays any."""
    places = _places(spec, spaces)
    opponents = {opponent.policy for opponent in spec.evaluators.opponents or ()}
    experts = _experts(spec, {policy: spaces.kind(next(iter(kinds))) for policy, kinds in places.items()})
    found: dict[str, tuple[str, _Played]] = {}
    for policy in spec.policies:
        kinds = places.get(policy)
        if not kinds and policy in (experts | opponents):
            continue
        if not kinds:
            known = ", ".join(agent for kind in spaces.kinds for agent in kind.agents)
            raise UserError(f"policies.{policy}: no agent uses it; the environment's agents are {known}")
        if len(kinds) > 1:
            raise UserError(
                f"policies.{policy}: plays agents of different observation or action spaces "
                f"({', '.join(kinds)}){_remedy(spec.policies[policy].algorithm, spaces.kind(next(iter(kinds))))}"
            )
        found[policy] = next(iter(kinds.items()))
    return found


def _places(spec: ExperimentSpec, spaces: Spaces) -> dict[str, dict[str, _Played]]:
    """The agents of each policy, by kind."""
    places: dict[str, dict[str, list[tuple[int, AgentsSpec]]]] = {}
    for kind in spaces.kinds:
        for place, agent in enumerate(kind.agents):
            # The first entry that matches counts.
            entry = next((e for e in spec.agents if re.fullmatch(e.match, agent)), None)
            if entry is None:
                raise UserError(
                    f"agents: no entry matches agent '{agent}' of the environment; add one, for example "
                    f"{{match: '.*', policy: {next(iter(spec.policies))}}}"
                )
            places.setdefault(entry.policy, {}).setdefault(kind.name, []).append((place, entry))
    return {policy: dict(kinds) for policy, kinds in places.items()}


def _seat(policy: str, kind: str, agents: _Played, side: int | None = None) -> Seat:
    places = tuple(place for place, _ in agents)
    return Seat(policy, kind, places, tuple(i for i, (_, entry) in enumerate(agents) if entry.train), side)


def _sides(spec: ExperimentSpec, found: Mapping[str, tuple[str, _Played]]) -> Iterator[Seat]:
    """A seat for each entry of `agents`, whose place is the number of its side."""
    sizes: dict[str, tuple[int, int]] = {}
    for side, entry in enumerate(spec.agents):
        # One that labels, or is met by evaluators, may play no agents at all.
        kind, played = found.get(entry.policy, ("", ()))
        own = [(place, other) for place, other in played if other is entry]
        if not own:
            raise UserError(
                f"agents.{side}.match: is '{entry.match}', which matches no agent that an earlier entry leaves; with "
                "matches, or opponents of evaluators, every entry is a side: correct it, or leave it out"
            )
        first, size = sizes.setdefault(entry.policy, (side, len(own)))
        if size != len(own):
            raise UserError(
                f"agents.{side}: is a side of {counted(len(own), 'agent')}, and agents.{first}, which policy "
                f"{entry.policy} plays too, of {size}; sides of one policy have equally many agents: give each a "
                "policy of its own"
            )
        yield _seat(entry.policy, kind, own, side)


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
