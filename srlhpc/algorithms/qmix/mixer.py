"""QMIX's mixer: a small network whose weights other networks make of the state.

Letters: A agents, S numbers of a state, H hidden units; `...` any leading axes.
"""

from __future__ import annotations

from torch import Tensor, nn

from srlhpc.algorithms.qmix.settings import MixerSpec
from srlhpc.algorithms.vdn.mixer import Mixer
from srlhpc.rl.mixing import monotonic


class Monotonic(Mixer):
    """Mixes by `srlhpc.rl.mixing.monotonic` (Rashid et al. 2018, section 4.1; arXiv:1803.11485).

    W1 and W2 come of two layers each, as in the authors' code, b1 of one, and V of two.

    Args:
        settings: its sizes.
        agents: A.
        state: S.
    """

    uses_state = True

    def __init__(self, settings: MixerSpec, agents: int, state: int) -> None:
        super().__init__()
        hidden, embedding = settings.hidden, settings.embedding
        self._agents = agents
        self.first = _two_layers(state, hidden, agents * embedding)
        self.bias = nn.Linear(state, embedding)
        self.second = _two_layers(state, hidden, embedding)
        self.rest = _two_layers(state, embedding, 1)

    def forward(self, values: Tensor, states: Tensor | None) -> Tensor:
        assert states is not None
        first = self.first(states).unflatten(-1, (self._agents, -1))
        return monotonic(values, first, self.bias(states), self.second(states), self.rest(states).squeeze(-1))


def _two_layers(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))
