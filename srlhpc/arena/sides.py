"""The two sides of an environment: which agents play together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from srlhpc.errors import UserError
from srlhpc.plan.plan import Plan


@dataclass(frozen=True)
class Side:
    """Agents that play together, against the others."""

    name: str
    agents: tuple[str, ...]


def two_sides(plan: Plan, patterns: Sequence[str], run: str) -> tuple[Side, Side]:
    """The sides of a run's environment.

    An entry of `agents` is a side; where one entry has all agents, each of them is. Patterns, if there are any, are
    the sides instead.

    Args:
        plan: of the run.
        patterns: regular expressions on whole names of agents; the first that matches counts.
        run: its name, for messages.

    Raises:
        UserError: there are not two.
    """
    sides = _by_pattern(plan, patterns) if patterns else _by_entry(plan)
    if len(sides) == 2:
        return sides[0], sides[1]
    agents = _agents(plan)
    if len(agents) == 1:
        raise UserError(
            f"{run}: its environment has one agent, '{agents[0]}', so nobody plays against another; play it alone: "
            "srlhpc eval RUN"
        )
    found = ", ".join(side.name for side in sides)
    raise UserError(
        f"{run}: {len(sides)} sides ({found}), and the arena plays two against each other; say which agents play "
        f"together by two patterns, for example --side '{re.escape(agents[0])}' --side '.*' (agents: "
        f"{', '.join(agents)})"
    )


def _agents(plan: Plan) -> list[str]:
    return [agent for kind in plan.spaces.kinds for agent in kind.agents]


def _grouped(agents: Sequence[str], patterns: Sequence[str]) -> dict[int, list[str]]:
    """Place of a pattern to the agents that it is the first to match; those that match none are left out."""
    groups: dict[int, list[str]] = {place: [] for place in range(len(patterns))}
    for agent in agents:
        place = next((place for place, pattern in enumerate(patterns) if re.fullmatch(pattern, agent)), None)
        if place is not None:
            groups[place].append(agent)
    return groups


def _by_pattern(plan: Plan, patterns: Sequence[str]) -> list[Side]:
    agents = _agents(plan)
    try:
        groups = _grouped(agents, patterns)
    except re.error as error:
        raise UserError(f"--side: '{error.pattern!s}' is no regular expression: {error}; correct it") from None
    listed = f"the agents are {', '.join(agents)}"
    if empty := [patterns[place] for place, group in groups.items() if not group]:
        raise UserError(f"--side '{empty[0]}' matches no agent that no --side before it matches; {listed}")
    if left := [agent for agent in agents if not any(agent in group for group in groups.values())]:
        raise UserError(f"no --side matches agent '{left[0]}'; every agent plays on one: {listed}")
    return [Side(patterns[place], tuple(group)) for place, group in groups.items()]


def _by_entry(plan: Plan) -> list[Side]:
    entries = plan.spec.agents
    groups = {place: group for place, group in _grouped(_agents(plan), [e.match for e in entries]).items() if group}
    if len(groups) == 1:
        return [Side(agent, (agent,)) for group in groups.values() for agent in group]
    policies = [entries[place].policy for place in groups]
    return [_named(entries[place].policy, entries[place].match, group, policies) for place, group in groups.items()]


def _named(policy: str, match: str, agents: Sequence[str], policies: Sequence[str]) -> Side:
    """A side is called after its policy where no other side has that, else after its agents."""
    alone = agents[0] if len(agents) == 1 else match
    return Side(policy if policies.count(policy) == 1 else alone, tuple(agents))


def are_alike(sides: Sequence[Side], plan: Plan) -> bool:
    """Whether both sides have as many agents of the same kinds, so that a policy of one can play the other."""
    kinds = {agent: kind.name for kind in plan.spaces.kinds for agent in kind.agents}
    first, second = (sorted(kinds[agent] for agent in side.agents) for side in sides)
    return first == second


def same_agents(sides: Sequence[Side], others: Sequence[Side]) -> bool:
    """Whether the same agents play together, in whatever order the sides are."""
    one, two = ({frozenset(side.agents) for side in some} for some in (sides, others))
    return one == two


def described(sides: Sequence[Side]) -> str:
    """`hunters (adversary_0, adversary_1) and prey (agent_0)`."""
    return " and ".join(f"{side.name} ({', '.join(side.agents)})" for side in sides)


def to_json(sides: Sequence[Side]) -> list[Mapping[str, object]]:
    """Plain data."""
    return [{"name": side.name, "agents": list(side.agents)} for side in sides]
