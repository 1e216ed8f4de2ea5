"""Who plays: the policies of several checkpoints, loaded once, all made for one environment with the same two sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from srlhpc.arena.sides import Side, described, same_agents, two_sides
from srlhpc.errors import UserError
from srlhpc.plan.plan import Plan
from srlhpc.playing import loaded_policy, plan_here, plan_of
from srlhpc.policies.policy import Policy
from srlhpc.runs.named_checkpoint import NamedCheckpoint
from srlhpc.specs.load import load_text
from srlhpc.specs.probe import check_packages


@dataclass(frozen=True)
class Contestant:
    """All policies of one checkpoint; each side that it plays is played by the policies of that side's agents."""

    name: str
    checkpoint: str
    """Name of the file."""
    updates: int
    plan: Plan
    policies: Mapping[str, Policy]
    """Policy by name, of those that have agents."""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"name": self.name, "checkpoint": self.checkpoint, "updates": self.updates}


def contestants_of(
    found: Sequence[NamedCheckpoint], patterns: Sequence[str]
) -> tuple[list[Contestant], tuple[Side, Side]]:
    """The contestants and the sides that they play, checked before anything is played.

    Args:
        found: their checkpoints.
        patterns: sides, if the user names them.

    Raises:
        UserError: there is only one, two are the same, they are of different environments, spaces or sides, ...
    """
    _check_several(found)
    names = _names(found)
    plans = [_plan(named) for named in found]
    check_packages(plans[0].spec.environment)
    sides = two_sides(plans[0], patterns, names[0])
    for name, plan in zip(names[1:], plans[1:], strict=True):
        _check_fit(name, plan, names[0], plans[0])
        if not same_agents(sides, own := two_sides(plan, patterns, name)):
            raise UserError(
                f"{name} has the sides {described(own)}, {names[0]} has {described(sides)}; play runs whose agents "
                "entries group the agents alike, or say the sides by --side"
            )
    together = zip(names, found, plans, strict=True)
    return [_contestant(name, named, plan) for name, named, plan in together], sides


def _check_several(found: Sequence[NamedCheckpoint]) -> None:
    times = Counter(named.file for named in found)
    if twice := [file for file in times if times[file] > 1]:
        raise UserError(f"{twice[0]} is meant twice; name each checkpoint once")
    if len(found) == 1:
        (only,) = found
        raise UserError(
            f"{only.label} is the only player; name another run, an earlier checkpoint (RUN@UPDATES) or a file"
        )


def _names(found: Sequence[NamedCheckpoint]) -> list[str]:
    """Labels, or the path where several have the same."""
    labels = Counter(named.label for named in found)
    return [named.label if labels[named.label] == 1 else str(named.file) for named in found]


def _plan(named: NamedCheckpoint) -> Plan:
    if named.run is not None:
        return plan_of(named.run)
    if (text := named.tree["meta"].get("spec")) is None:
        raise UserError(f"{named.file}: does not say what it was trained on; name a checkpoint in its run's folder")
    return plan_here(load_text(str(text), named.file.name))


def _contestant(name: str, named: NamedCheckpoint, plan: Plan) -> Contestant:
    if named.run is None:
        _check_weights(named, plan)
    policies = {seat.policy: loaded_policy(plan, seat.policy, named.tree, named.file, named.run) for seat in plan.seats}
    return Contestant(name, named.file.name, named.updates, plan, policies)


def _check_weights(named: NamedCheckpoint, plan: Plan) -> None:
    """Refuses policies whose only weights lie in the folder of a run that is not known."""
    given = [seat.policy for seat in plan.seats if plan.spec.policies[seat.policy].weights_from is not None]
    if lacking := [policy for policy in given if policy not in named.tree["policies"]]:
        raise UserError(
            f"{named.file}: policy '{lacking[0]}' plays with weights that lie in its run's folder (weights_from); "
            "name the checkpoint there"
        )


def _check_fit(name: str, plan: Plan, other_name: str, other: Plan) -> None:
    """Refuses a contestant that was trained in another environment than another."""
    remedy = "they cannot play together: name runs of one environment with equal settings"
    ours, theirs = (one.spec.environment.model_dump(mode="json") for one in (plan, other))
    if different := [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]:
        key = different[0]
        raise UserError(
            f"environment.{key}: is {ours.get(key)} in {name} and {theirs.get(key)} in {other_name}; {remedy}"
        )
    if plan.spaces.kinds != other.spaces.kinds:
        raise UserError(f"{name} was trained with {_shown(plan)}; {other_name} with {_shown(other)}; {remedy}")


def _shown(plan: Plan) -> str:
    """`agent (agent_0, agent_1): obs (4,), Discrete(choices=3)`, for every kind of agents."""
    kinds = plan.spaces.kinds
    seen = [", ".join(f"{key} {spec.shape}" for key, spec in kind.observations.items()) for kind in kinds]
    return "; ".join(
        f"{kind.name} ({', '.join(kind.agents)}): {shown}, {kind.actions}"
        for kind, shown in zip(kinds, seen, strict=True)
    )
