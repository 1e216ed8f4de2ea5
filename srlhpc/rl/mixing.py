"""One value of what several agents do together, made of the values of what each does.

Letters: `...` any leading axes, A agents, H hidden units.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def monotonic(values: Tensor, first: Tensor, bias: Tensor, second: Tensor, rest: Tensor) -> Tensor:
    """QMIX's mixture, which no agent's value lowers (Rashid et al. 2018, section 4.1, figure 2; arXiv:1803.11485).

    Q_tot = elu(q |W1| + b1) |W2| + V. Since both weights are taken as absolute, dQ_tot / dq_i >= 0, so the joint action
    of the greatest Q_tot is that of the greatest value of each agent.

    Args:
        values: q, float32 `[..., A]`.
        first: W1, float32 `[..., A, H]`.
        bias: b1, float32 `[..., H]`.
        second: W2, float32 `[..., H]`.
        rest: V, float32 `[...]`.

    Returns:
        float32 `[...]`.
    """
    hidden = functional.elu(torch.einsum("...a,...ah->...h", values, first.abs()) + bias)
    return (hidden * second.abs()).sum(-1) + rest
