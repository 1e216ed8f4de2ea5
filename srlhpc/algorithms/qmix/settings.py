"""What a user may set of QMIX: what value decomposition has, and the mixer."""

from __future__ import annotations

from pydantic import PositiveInt

from srlhpc.algorithms.vdn import settings as vdn
from srlhpc.environment import Kind
from srlhpc.specs.spec import Spec


class MixerSpec(Spec):
    """The network whose weights depend on the state. Defaults are PyMARL's."""

    embedding: PositiveInt = 32
    """Hidden units of the mixture."""
    hidden: PositiveInt = 64
    """Units of the hidden layers that make its weights of the state."""


class Settings(vdn.Settings):
    """Q-learning of a mixture of the agents' values that depends on the state and that no value lowers, from replay."""

    elsewhere = {
        **vdn.Settings.elsewhere,
        "mixing_embed_dim": "mixer.embedding",
        "hypernet_embed": "mixer.hidden",
    }

    mixer: MixerSpec = MixerSpec()
    """What makes one value of the agents' values."""

    def form(self, kind: Kind) -> object:
        return super().form(kind), self.mixer
