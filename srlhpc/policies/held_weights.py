"""Weights that are held as autocast would cast them."""

from __future__ import annotations

import torch
from torch import nn

from srlhpc.policies.layers.rectified import RectifiedConvolution

_CAST = (nn.Linear, nn.Conv2d, RectifiedConvolution)
"""Layers whose parameters autocast casts whole; classes that are derived from them may do something else."""


def hold_weights(network: nn.Module, dtype: torch.dtype) -> None:
    """Turns parameters that autocast casts in every call without gradients into numbers of that type.

    What `policy.read_vector` copies into them is rounded as autocast would round it, so the network gives the same bits
    under autocast, and is cast once a version. Nothing can be trained any more.
    """
    for layer in network.modules():
        if type(layer) in _CAST:
            layer.to(dtype)
