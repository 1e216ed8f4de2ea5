"""Attention among a set of entities, and its mean, both with masks.

Shape letters: N rows, K entities, W width of an entity's embedding, H heads, D = W / H.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

_MEAN_EPSILON = 1e-5
_MOST_ROWS = 1 << 15
"""Rows of one call on a GPU, whose kernels put rows on a grid axis of at most 65,535 blocks."""


class MaskedSelfAttention(nn.Module):
    """Residual self-attention (Vaswani et al. 2017, arXiv:1706.03762, section 3.2) in which masked entities are unseen.

    y = LayerNorm(x + W_o attention(LayerNorm(x))), without a feed-forward part. An entity's output depends on itself
    and on the unmasked entities only; where all are masked, attention is zero.

    Args:
        width: W.
        heads: H.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self._heads = heads
        self.norm_in = nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm_out = nn.LayerNorm(width)
        for layer in (self.queries_keys_values, self.out):
            nn.init.normal_(layer.weight, std=(0.125 / width) ** 0.5)

    def forward(self, x_NKW: Tensor, mask_NK: Tensor) -> Tensor:
        """Outputs `[N, K, W]`; `mask_NK` is bool, true = there."""
        rows, entities, width = x_NKW.shape
        qkv = self.queries_keys_values(self.norm_in(x_NKW))
        q_NHKD, k_NHKD, v_NHKD = qkv.view(rows, entities, 3, self._heads, -1).permute(2, 0, 3, 1, 4)
        attended_NHKD = _attend(q_NHKD, k_NHKD, v_NHKD, mask_NK[:, None, None])
        out_NKW = self.out(attended_NHKD.transpose(1, 2).reshape(rows, entities, width))
        y_NKW: Tensor = self.norm_out(x_NKW + out_NKW)
        return y_NKW


def _attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    if q.device.type != "cpu":
        return attention_in_parts(q, k, v, mask, rows=_MOST_ROWS)
    # Backwards, torch's attention in bfloat16 takes eight times as long as in float32 on a CPU.
    with torch.autocast("cpu", enabled=False):
        return functional.scaled_dot_product_attention(q.float(), k.float(), v.float(), attn_mask=mask)


def attention_in_parts(q_NHKD: Tensor, k_NHKD: Tensor, v_NHKD: Tensor, mask_N11K: Tensor, *, rows: int) -> Tensor:
    """Scaled dot-product attention `[N, H, K, D]`, at most so many rows at a time."""
    parts = zip(*(torch.split(tensor, rows) for tensor in (q_NHKD, k_NHKD, v_NHKD, mask_N11K)), strict=True)
    attended = [functional.scaled_dot_product_attention(*part) for part in parts]
    return attended[0] if len(attended) == 1 else torch.cat(attended)


def masked_mean(x_NKW: Tensor, mask_NK: Tensor) -> Tensor:
    """Mean of the unmasked entities, `[N, W]`: sum(mask x) / (sum(mask) + 1e-5); zeros where all are masked."""
    weights_NK = mask_NK.to(x_NKW.dtype)
    weights_NK = weights_NK / (weights_NK.sum(1, keepdim=True) + _MEAN_EPSILON)
    return torch.bmm(weights_NK.unsqueeze(1), x_NKW).squeeze(1)
