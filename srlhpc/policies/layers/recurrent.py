"""Memory between torso and heads: LSTM and GRU that reset inside fragments.

Shape letters: T records of a fragment, B columns, R = T * B, N rows that act now, P pieces of at most L records,
F features, H units.
The memory computes in float32 under autocast too: its state is carried over whole episodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from srlhpc.specs.named_modules import Recurrent

_BUCKET_FACTOR = 4
"""Pieces of one bucket differ at most by this factor in length, which bounds the padding."""


class Bucket(NamedTuple):
    """Pieces of similar length side by side; shorter ones are padded with repeated records."""

    records: Tensor
    """int64 `[L, pieces]`: the record, t * B + b, of each step of each piece."""
    columns: Tensor
    """int64 `[pieces]`: where each piece comes from."""
    first: Tensor
    """bool `[pieces]`: whether it starts from zeros, not from the fragment's state at t = 0."""


class Pieces(NamedTuple):
    """The columns of a fragment cut at their resets."""

    buckets: list[Bucket]
    places: Tensor
    """int64 `[T * B]`: where each record is among the steps of all buckets, one after the other."""


def cut_at_resets(first_TB: Tensor) -> Pieces:
    """Cuts every column before each record with `first`, and at t = 0."""
    device = first_TB.device
    steps, columns = first_TB.shape
    # On the host, since where the pieces begin decides the shapes of what is computed.
    starts_BT = first_TB.cpu().T.clone()
    starts_BT[:, 0] = True
    starts = starts_BT.flatten().nonzero().flatten()
    # Columns lie one behind the other and each starts at t = 0, so a piece ends where the next begins.
    lengths = torch.diff(starts, append=torch.tensor([steps * columns]))
    places = torch.empty(steps * columns, dtype=torch.int64)
    buckets = []
    offset, longest = 0, steps
    while longest > 0:
        shortest = longest // _BUCKET_FACTOR
        taken = (lengths > shortest) & (lengths <= longest)
        longest = shortest
        if not bool(taken.any()):
            continue
        begins, sizes = starts[taken], lengths[taken]
        k = torch.arange(int(sizes.max())).unsqueeze(1)
        # A shorter piece repeats its last record as padding.
        by_column = begins + torch.minimum(k, sizes - 1)
        records = by_column % steps * columns + by_column // steps
        exists = k < sizes
        places[records[exists]] = offset + exists.flatten().nonzero().flatten()
        offset += records.numel()
        first = begins % steps != 0
        buckets.append(Bucket(records.to(device), (begins // steps).to(device), first.to(device)))
    return Pieces(buckets, places.to(device))


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
        """The state at the start of an episode: zeros."""
        return {name: torch.zeros(rows, self.size, device=self.weight_ih.device) for name in self.state_names}

    def step(self, x_NF: Tensor, state: Mapping[str, Tensor], first_N: Tensor) -> dict[str, Tensor]:
        """One step; rows with `first` start from zeros. The new state's `h` is the output."""
        with _float32(x_NF):
            return self._step(x_NF.float(), _reset(state, first_N))

    def forward(self, x_TBF: Tensor, state: Mapping[str, Tensor], first_TB: Tensor) -> Tensor:
        """Outputs `[T, B, H]`, equal to T calls of `step` within rounding.

        Without resets after t = 0 it is one call; otherwise the columns are cut at their resets, and pieces of similar
        length run side by side.
        """
        state = _reset(state, first_TB[0])
        with _float32(x_TBF):
            x_TBF = x_TBF.float()
            if not bool(first_TB[1:].any()):
                return self._scan(x_TBF, state)
            pieces = cut_at_resets(first_TB)
            x_RF = x_TBF.flatten(0, 1)
            outputs = []
            for bucket in pieces.buckets:
                x_LPF = x_RF.index_select(0, bucket.records.flatten()).view(*bucket.records.shape, -1)
                starts = {name: rows.index_select(0, bucket.columns) for name, rows in state.items()}
                outputs.append(self._scan(x_LPF, _reset(starts, bucket.first)).flatten(0, 1))
            return torch.cat(outputs).index_select(0, pieces.places).view(*first_TB.shape, self.size)

    @abstractmethod
    def _step(self, x_NF: Tensor, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """One step without reset."""

    @abstractmethod
    def _scan(self, x_TBF: Tensor, state: Mapping[str, Tensor]) -> Tensor:
        """Outputs `[T, B, H]` of steps without resets."""

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

    def _scan(self, x_TBF: Tensor, state: Mapping[str, Tensor]) -> Tensor:
        before = [state["h"].unsqueeze(0), state["c"].unsqueeze(0)]
        return torch.lstm(x_TBF, before, self._weights(), True, 1, 0.0, self.training, False, False)[0]


class GruMemory(Memory):
    """Gated recurrent unit (Cho et al. 2014); state h."""

    state_names = ("h",)

    def __init__(self, features: int, size: int) -> None:
        super().__init__(features, size, gates=3)

    def _step(self, x_NF: Tensor, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {"h": torch.gru_cell(x_NF, state["h"], *self._weights())}

    def _scan(self, x_TBF: Tensor, state: Mapping[str, Tensor]) -> Tensor:
        before = state["h"].unsqueeze(0)
        return torch.gru(x_TBF, before, self._weights(), True, 1, 0.0, self.training, False, False)[0]


def build_memory(kind: Literal["lstm", "gru"], features: int, size: int) -> Memory:
    """The memory of a `srlhpc.specs.named_modules.Recurrent` setting."""
    return LstmMemory(features, size) if kind == "lstm" else GruMemory(features, size)


def memory_of(recurrent: Recurrent | None, features: int) -> Memory | None:
    """The memory that a network's setting `recurrent` names, or None."""
    return None if recurrent is None else build_memory(recurrent.kind, features, recurrent.size)


def _reset(state: Mapping[str, Tensor], first: Tensor) -> dict[str, Tensor]:
    return {name: rows.masked_fill(first.unsqueeze(-1), 0.0) for name, rows in state.items()}


def _float32(x: Tensor) -> AbstractContextManager[object]:
    device = x.device.type
    return torch.autocast(device, enabled=False) if torch.is_autocast_enabled(device) else nullcontext()
