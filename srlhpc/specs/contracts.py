"""What a learning rule declares that it needs of a network and of acting; it says so before anything is built.

A network offers contracts by name: what it can be trained as. A rule names the one that it trains. The abstract class
of a contract, which needs torch, is in srlhpc/policies/contracts.py or beside the rule that brings it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from srlhpc.environment import ArraySpec

ACTOR_CRITIC = "actor_critic"
"""A distribution over actions and a value of the same records; `value` is an output of acting."""

Written = Literal["seen", "replied", "stepped"]
"""When an array of a record is written: before the action, with the reply, or after the step."""


@dataclass(frozen=True)
class RecordColumn:
    """A further array of every record, beside those that all rules get."""

    name: str
    array: ArraySpec
    """Shape and dtype for one agent, without leading axes."""
    written: Written
    has_bootstrap: bool = False
    """Whether it has T + 1 entries, the last one for the bootstrap observation; only where it is `seen`."""


@dataclass(frozen=True)
class Needs:
    """What a learning rule needs of the network that it trains, and of every record."""

    contract: str
    """Name of the contract that it trains."""
    outputs: Mapping[str, ArraySpec] = field(default_factory=dict)
    """Outputs of acting that travel with every record: name to shape and dtype for one agent."""
    columns: tuple[RecordColumn, ...] = ()
    """Further arrays of every record."""
