"""A rule that declares further fields of every record, and keeps the batches that it gets instead of learning."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING

from srlhpc.environment import ArraySpec, Kind
from srlhpc.specs.contracts import ACTOR_CRITIC, Needs, RecordField
from srlhpc.specs.named_modules import AlgorithmSettings

if TYPE_CHECKING:
    from torch import Tensor

    from srlhpc.algorithms.algorithm import Algorithm, Batch, Update

FIELDS = (
    RecordField("playing", ArraySpec((), "bool"), "seen", attrgetter("alive"), has_bootstrap=True),
    RecordField("corners", ArraySpec((2,), "float32"), "seen", lambda step: step.observations["obs"][..., [0, -1]]),
    RecordField("gains", ArraySpec((), "float32"), "stepped", lambda step: 2 * step.rewards),
)
BATCHES: list[dict[str, Tensor]] = []
"""Fields of every batch."""


class Settings(AlgorithmSettings):
    def needs(self, kind: Kind) -> Needs:  # noqa: ARG002
        return Needs(ACTOR_CRITIC, fields=FIELDS)


def build(settings: Settings, policy: object, context: object) -> Algorithm:  # noqa: ARG001
    from srlhpc.algorithms.algorithm import Algorithm, Update

    class Watching(Algorithm):
        def update(self, batch: Batch) -> Generator[None, None, Update]:
            BATCHES.append({name: tensor.clone() for name, tensor in batch.fields.items()})
            yield
            return Update({})

        def state(self) -> Mapping[str, Tensor]:
            return {}

        def load_state(self, state: Mapping[str, Tensor]) -> None:
            assert not state

    return Watching()
