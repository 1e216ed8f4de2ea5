"""What a learning rule declares that it needs of a network and of acting; it says so before anything is built.

A network offers contracts by name: what it can be trained as. A rule names the one that it trains. What there is then:

* What acts, made by `Offer.build` on trainers, policy servers, inline actors and evaluators. Its parameters and
  normaliser travel, are the versions of the policy, and stand under `parameters` in checkpoints.
* What is trained beyond that, such as critics that do not act, made by `Offer.build_trained` on trainers alone.
* What only the rule has: targets, mixers, the optimiser, made by the rule's `build` on trainers alone.

The last two never travel; they are part of `Algorithm.state()`. The abstract class of a contract, which needs torch, is
in srlhpc/policies/contracts.py, or beside the rule that brings it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from srlhpc.environment import Array, ArraySpec, Continuous, Discrete, Kind, Stack
from srlhpc.specs.replay import Draw, UniformDraw
from srlhpc.specs.spec import Spec

ACTOR_CRITIC = "actor_critic"
"""A distribution over actions and a value of the same records; `value` is an output of acting."""
PHASIC_ACTOR_CRITIC = "phasic_actor_critic"
"""The same, and on trainers a second value of the policy's own features, which does not act."""
ACTION_VALUES = "action_values"
"""A value of each of some discrete actions, of which acting takes the greatest, or with the probability `epsilon` of
its exploration any. `Needs.head` is a `srlhpc.specs.action_values.ActionValueHead`."""

ACTOR_AND_CRITICS = "actor_and_critics"
"""An actor of continuous actions, and critics of observations and actions that only trainers have; without memory.
`Needs.head` is a `srlhpc.specs.actor_heads.ActorHead`."""

Holder = Literal["agent", "environment", "group"]
"""What has a value of its own in every record."""
EXPERT_ACTION = "expert_action"
"""Output of acting where a rule has an expert: its action."""
EXPERT = "expert"
"""Number of exploration where a rule has an expert: the probability that its action is played."""

Written = Literal["seen", "replied", "stepped"]
"""When an array of a record is written, and from what: before the action, from what the environment shows then; with
the policy server's reply, from the reply; after the step, from what the environment shows then."""


@dataclass(frozen=True)
class Offer:
    """What a network gives under one contract. Functions are named, so that nothing of torch is loaded."""

    outputs: Mapping[str, ArraySpec] = field(default_factory=dict)
    """What acting yields beside actions and log-probabilities, for one agent."""
    build: str = "build"
    """Function of the network's module that makes what acts: `(settings, kind, normalize) -> Policy`."""
    build_trained: str | None = None
    """Function that makes what the rule's `build` gets instead of what acts, and that holds it:
    `(settings, policy, normalize) -> torch.nn.Module`; of the network's module, or `module:name`. None: what acts is
    all that is trained."""
    takes_head: bool = False
    """Whether `build` takes the rule's `Needs.head` as a fourth argument."""


VALUE_OUTPUT = {"value": ArraySpec((), "float32")}
"""What acting yields as `actor_critic`: the value of what was seen."""


def phasic_actor_critic() -> dict[str, Offer]:
    """The offer of it by a network whose `build` makes a `srlhpc.policies.actor_critic.ActorCritic`."""
    return {PHASIC_ACTOR_CRITIC: Offer(VALUE_OUTPUT, build_trained="srlhpc.policies.phasic:build_trained")}


ACTION_VALUE_OUTPUTS = {"q_taken": ArraySpec((), "float32"), "q_max": ArraySpec((), "float32")}
"""What acting yields as `action_values`: the value of the action that was taken, and the greatest."""


def action_values(kind: Kind) -> dict[str, Offer]:
    """The offer of `action_values` by a network with `build_action_values`; empty where actions are not discrete."""
    if not isinstance(kind.actions, Discrete):
        return {}
    return {ACTION_VALUES: Offer(ACTION_VALUE_OUTPUTS, build="build_action_values", takes_head=True)}


def actor_and_critics(kind: Kind, *, has_memory: bool) -> dict[str, Offer]:
    """The offer of `actor_and_critics` by a network whose module has `build_actor` and `build_critics`.

    Empty where the contract does not fit: without continuous actions, and with memory.
    """
    if has_memory or not isinstance(kind.actions, Continuous):
        return {}
    return {ACTOR_AND_CRITICS: Offer(build="build_actor", build_trained="build_critics", takes_head=True)}


@dataclass(frozen=True)
class RecordField:
    """One array of every record: what it is and where it comes from. Blocks, recorders and batches follow from it.

    A rule that needs more of a record than all rules get declares further fields (`Needs.fields`), `seen` or `stepped`,
    and finds them in `Batch.fields`. What a network yields when it acts is declared as an output instead.
    """

    name: str
    array: ArraySpec
    """Shape and dtype for one agent, without leading axes."""
    written: Written
    value: Callable[[Any], Array]
    """Gives `[E, A, ...]` of a `srlhpc.environment.KindStep`, for all agents of the kind; of a reply, if `replied`.
    Without an axis that `of` has not."""
    has_bootstrap: bool = False
    """Whether it has T + 1 entries, the last one for the bootstrap observation; only where it is `seen`."""
    in_request: bool = False
    """Whether acting needs it, so that it travels to the policy server too; only where it is `seen`."""
    of: Holder = "agent"
    """Whether every agent has a value of its own, every environment, or the whole record of a group."""
    stack: Stack | None = None
    """Set where `array` is a stack of frames, of which a block has each once (data/stacks.py)."""

    @property
    def earlier(self) -> int:
        """Entries of a block before those of record 0: the older frames of its stack."""
        return 0 if self.stack is None else self.stack.frames - 1

    @property
    def entry(self) -> ArraySpec:
        """Shape and dtype of one entry of a block, for one agent."""
        return self.array if self.stack is None else ArraySpec(self.array.shape[1:], self.array.dtype)


@dataclass(frozen=True)
class Needs:
    """What a learning rule needs of the network that it trains, and of every record."""

    contract: str
    """Name of the contract that it trains."""
    outputs: Mapping[str, ArraySpec] = field(default_factory=dict)
    """Outputs of acting that travel with every record: name to shape and dtype for one agent."""
    head: Spec | None = None
    """What the heads of the network look like, where its contract leaves that to rules (`Offer.takes_head`)."""
    fields: tuple[RecordField, ...] = ()
    """Further arrays of every record."""
    expert: str | None = None
    """Name of a policy that says for every record what it would do. Nobody trains it; its actions are the output
    `expert_action`, and act with the probability that exploration calls `expert`."""
    normalizes: tuple[Literal["observations", "returns"], ...] = ()
    """What its updates keep running statistics of (`update_normalizers` of the policy); `normalize` is refused for the
    rest, which would stay as it was at the start."""
    gives_feedback: bool = False
    """Whether an update says something of each row of its batch, such as a priority, to whatever drew the rows."""
    joint: bool = False
    """Whether the agents that the policy trains in an environment are learnt from together: what else is a column of
    one agent is one of them all, `[T, B, A, ...]` in batches."""
    data: Literal["stream", "replay", "episodes"] = "stream"
    """How its batches come. stream: every record once, or `batch.uses` times. replay: drawn again and again, from what
    `replay` of the policy keeps. episodes: from files that `episodes` of the policy names."""
    draw: Draw = field(default_factory=UniformDraw)
    """How windows of replay are drawn unless the job says so."""
    samples_per_insert: float = 8.0
    """Trained records drawn from replay for each that comes in, unless the job says so."""
    after: int = 0
    """Records behind the last trained one that a window of replay holds, such as n - 1 for n-step returns; the
    bootstrap observation comes on top."""
    first_priorities: str | None = None
    """Function `module:name`, free of torch, that gives windows of replay their first priorities:
    `(settings, fields) -> float32 [N]`, with all fields of N windows as in a batch, but for the records of burn-in.
    None: the greatest so far."""
