"""Which role holds up the others, and what helps: one line, from the shares of time alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from srlhpc.roles.time_use import Part

Inference = Literal["server", "inline", "trainer"]
Shares = Mapping[Part, float]
"""Parts of 1 (roles/time_use.py), the mean over all ranks of a role."""

_MATTERS = 0.1
"""A share of waiting that is worth a word."""
_BUSY = 0.6
"""A policy server that computes so much of its time has requests waiting most of the time."""


def bottleneck(shares: Mapping[str, Shares], inference: Inference) -> str | None:
    """`trainer waits 43 % of its time for batches: ...`; None as long as trainers or actors have not reported.

    A trainer that is never idle is as fast as training gets. If it waits, the reason is what its actors do most: wait
    for slots, wait for actions, or step. If it does not wait, its actors may be too many.

    Args:
        shares: of trainer, actor and, if there are any, policy_server and replay.
        inference: who acts for the actors (`actors.inference.kind`).
    """
    trainer, actor = shares.get("trainer"), shares.get("actor")
    if not trainer or not actor:
        return None
    if line := _replay(trainer, actor, shares.get("replay", {}), shares.get("policy_server", {}), inference):
        return line
    starved, blocked = trainer.get("input", 0.0), actor.get("slot", 0.0)
    takes_turns = min(starved, blocked) >= _MATTERS and not shares.get("replay")
    if takes_turns and blocked >= max(actor.get("input", 0.0), actor.get("environment", 0.0)):
        return (
            f"trainer waits {_percent(starved)} of its time for batches and actors {_percent(blocked)} for leave to "
            "begin: they take turns: raise max_policy_lag, or turn on trainers.prefetch"
        )
    if trainer.get("others", 0.0) >= max(_MATTERS, starved):
        return _interrupted(trainer["others"], inference)
    if starved >= _MATTERS:
        waits = f"trainer waits {_percent(starved)} of its time for batches"
        return f"{waits}; {_slow_actors(actor, shares.get('policy_server', {}), inference)}"
    if blocked >= _MATTERS:
        less = "lower replay.samples_per_insert" if shares.get("replay") else "work less on each batch"
        return (
            f"actors wait {_percent(blocked)} of their time for a free slot: the trainer is the limit: add a trainer, "
            f"or {less}"
        )
    return f"trainer computes {_percent(trainer.get('computing', 0.0))} of its time and waits little: well balanced"


def _replay(trainer: Shares, actor: Shares, replay: Shares, server: Shares, inference: Inference) -> str | None:
    """What the rate of replay holds up; None where it holds up nobody."""
    starved, blocked = trainer.get("input", 0.0), actor.get("slot", 0.0)
    if min(starved, replay.get("others", 0.0)) >= _MATTERS:
        return (
            f"replay rate: trainer waits {_percent(starved)} of its time until more has come in "
            f"(replay.samples_per_insert); {_slow_actors(actor, server, inference)}"
        )
    if min(blocked, replay.get("slot", 0.0)) < _MATTERS:
        return None
    waits = f"replay rate: actors wait {_percent(blocked)} of their time until more is learnt from what they sent"
    if starved < max(_MATTERS, trainer.get("computing", 0.0) / 2):
        return f"{waits}: the trainer is the limit: add a trainer, lower replay.samples_per_insert, or use fewer actors"
    if replay.get("computing", 0.0) >= _BUSY:
        return f"{waits}, and replay ranks compute {_percent(replay['computing'])}: raise replay.ranks"
    return (
        f"{waits}, and the trainer {_percent(starved)} for windows: raise batch.fragments, so that it waits less often"
    )


def _interrupted(share: float, inference: Inference) -> str:
    if inference == "trainer":
        return (
            f"trainer's rank serves actions {_percent(share)} of its time: use policy servers "
            "(actors.inference.kind: server)"
        )
    return f"trainers wait {_percent(share)} of their time for each other: fewer trainers, or larger batches for each"


def _slow_actors(actor: Shares, server: Shares, inference: Inference) -> str:
    """What actors that are too slow spend their time on, and what helps."""
    waits, steps = actor.get("input", 0.0), actor.get("environment", 0.0)
    if waits <= max(steps, actor.get("computing", 0.0)):
        return (
            f"actors step {_percent(steps)} of theirs: the environment is the limit: add actors"
            if steps >= actor.get("computing", 0.0)
            else f"actors handle records and messages {_percent(actor['computing'])} of theirs: raise "
            "actors.environments, or add actors"
        )
    said = f"actors wait {_percent(waits)} of theirs for actions"
    if inference == "inline":
        return (
            f"{said}, which they compute themselves: add actors, or use policy servers (actors.inference.kind: server)"
        )
    if inference == "trainer":
        return f"{said}, which trainers compute: use policy servers (actors.inference.kind: server)"
    computes = server.get("computing", 0.0)
    if computes >= _BUSY:
        return f"{said} and policy servers compute {_percent(computes)}: add policy servers"
    return f"{said}, though policy servers compute only {_percent(computes)}: raise actors.ring or actors.environments"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
