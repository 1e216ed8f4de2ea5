"""A learning rule that needs what a test tells it to need; it learns nothing."""

from __future__ import annotations

from typing import Literal, NoReturn

from srlhpc.environment import ArraySpec, Kind
from srlhpc.specs.contracts import ACTOR_CRITIC, Needs
from srlhpc.specs.named_modules import AlgorithmSettings


class Settings(AlgorithmSettings):
    contract: str = ACTOR_CRITIC
    outputs: dict[str, tuple[int, ...]] = {}
    """Name to the shape of float32 numbers."""
    feedback: bool = False
    data: Literal["stream", "replay"] = "stream"
    after: int = 0

    def needs(self, kind: Kind) -> Needs:  # noqa: ARG002
        outputs = {name: ArraySpec(shape, "float32") for name, shape in self.outputs.items()}
        return Needs(self.contract, outputs, gives_feedback=self.feedback, data=self.data, after=self.after)


def build(settings: Settings, policy: object, context: object) -> NoReturn:
    raise NotImplementedError
