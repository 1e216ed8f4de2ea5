"""A network that values actions, and acts by them with a probability of drawing any."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import PositiveInt

from srlhpc.environment import ArraySpec, Kind
from srlhpc.specs.contracts import Offer
from srlhpc.specs.named_modules import NetworkSettings
from srlhpc.specs.policy import NormalizeSpec

if TYPE_CHECKING:
    from tests.rules.action_values_modules import ActionValues

ACTION_VALUES = "action_values"
"""A value of each action; acting explores with `epsilon`, and gives the value of the action as `q`."""


class Settings(NetworkSettings):
    hidden: PositiveInt = 32
    """Units of the one layer."""

    def offers(self, kind: Kind) -> Mapping[str, Offer]:  # noqa: ARG002
        return {ACTION_VALUES: Offer({"q": ArraySpec((), "float32")})}


def build(settings: Settings, kind: Kind, normalize: NormalizeSpec) -> ActionValues:
    from tests.rules.action_values_modules import ActionValues

    return ActionValues(kind, settings.hidden, normalize)
