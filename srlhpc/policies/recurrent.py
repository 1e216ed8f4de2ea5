"""Memory between torso and heads: LSTM and GRU that reset inside fragments.

Shape letters: T records of a fragment, B columns, N rows that act now, F features, H units.
The memory computes in float32 under autocast too: its state is carried over whole episodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn


class Memory(nn.Module, ABC):
    """One recurrent layer of H units; states are dicts of `[rows, H]`.

    Args:
        features: F.
        size: H.
        gates: blocks of H rows in the weights.
    """

    state_names: tuple[str, ...]

    def __init__(self, features: int, size: int, *, gates: int) -> None:
        super().__init__()
        self.size = size
        self.weight_ih = nn.Parameter(nn.init.orthogonal_(torch.empty(gates * size, features)))
        self.weight_hh = nn.Parameter(nn.init.orthogonal_(torch.empty(gates * size, size)))
        self.bias_ih = nn.Parameter(torch.zeros(gates * size))
        self.bias_hh = nn.Parameter(torch.zeros(gates * size))

    def initial_state(self, rows: int) -> dict[str, Tensor]:
        """Zeros."""
        return {name: torch.zeros(rows, self.size, device=self.weight_ih.device) for name in self.state_names}

    def step(self, x_NF: Tensor, state: Mapping[str, Tensor], first_N: Tensor) -> dict[str, Tensor]:
        """One step; rows with `first` start from zeros. The new state's `h` is the output."""
        with _float32(x_NF):
            return self._step(x_NF.float(), _reset(state, first_N))

    def forward(self, x_TBF: Tensor, state: Mapping[str, Tensor], first_TB: Tensor) -> Tensor:
        """Outputs `[T, B, H]`, equal to T calls of `step` within rounding.

        The fragment is cut before every record where any column starts an episode; each piece is one call.
        """
        starts = first_TB.any(1).nonzero().flatten().tolist()
        resets = set(starts)
        outputs = []
        with _float32(x_TBF):
            x_TBF = x_TBF.float()
            for begin, end in pairwise(sorted({0, *starts, len(x_TBF)})):
                if begin in resets:
                    state = _reset(state, first_TB[begin])
                output, state = self._scan(x_TBF[begin:end], state)
                outputs.append(output)
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs)

    @abstractmethod
    def _step(self, x_NF: Tensor, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """One step without reset."""

    @abstractmethod
    def _scan(self, x_TBF: Tensor, state: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """Steps without resets: outputs `[T, B, H]` and the state after them."""

    def _weights(self) -> list[Tensor]:
        return [self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh]


class LstmMemory(Memory):
    """Long short-term memory (Hochreiter and Schmidhuber 1997); state h and c."""

    state_names = ("h", "c")

    def __init__(self, features: int, size: int) -> None:
        super().__init__(features, size, gates=4)

    def _step(self, x_NF: Tensor, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        h, c = torch.lstm_cell(x_NF, (state["h"], state["c"]), *self._weights())
        return {"h": h, "c": c}

    def _scan(self, x_TBF: Tensor, state: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        before = (state["h"].unsqueeze(0), state["c"].unsqueeze(0))
        output, h, c = torch.lstm(x_TBF, before, self._weights(), True, 1, 0.0, self.training, False, False)
        return output, {"h": h[0], "c": c[0]}


class GruMemory(Memory):
    """Gated recurrent unit (Cho et al. 2014); state h."""

    state_names = ("h",)

    def __init__(self, features: int, size: int) -> None:
        super().__init__(features, size, gates=3)

    def _step(self, x_NF: Tensor, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {"h": torch.gru_cell(x_NF, state["h"], *self._weights())}

    def _scan(self, x_TBF: Tensor, state: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        before = state["h"].unsqueeze(0)
        output, h = torch.gru(x_TBF, before, self._weights(), True, 1, 0.0, self.training, False, False)
        return output, {"h": h[0]}


def build_memory(kind: Literal["lstm", "gru"], features: int, size: int) -> Memory:
    """The memory of a `srlhpc.specs.modules.Recurrent` setting."""
    return LstmMemory(features, size) if kind == "lstm" else GruMemory(features, size)


def _reset(state: Mapping[str, Tensor], first: Tensor) -> dict[str, Tensor]:
    kept = ~first.unsqueeze(-1)
    return {name: rows * kept for name, rows in state.items()}


def _float32(x: Tensor) -> AbstractContextManager[object]:
    device = x.device.type
    return torch.autocast(device, enabled=False) if torch.is_autocast_enabled(device) else nullcontext()
