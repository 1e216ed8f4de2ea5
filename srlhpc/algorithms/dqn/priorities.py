"""Priorities of windows that were never drawn, from what acting told; free of torch.

Letters: R records of a window from the first trained one on, T trained ones, N windows.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from srlhpc.algorithms.dqn.settings import Settings
from srlhpc.environment import Array, FloatArray
from srlhpc.rl.td import n_step, priorities
from srlhpc.rl.value_rescaling import rescale, unscale


def first_priorities(settings: Settings, fields: Mapping[str, Array]) -> FloatArray:
    """What the errors of a window would be worth if the network that acted had learnt it (Horgan et al. 2018, 3).

    The value of what follows the last record is not known, so a sum that reaches it ends one record earlier; so does
    one that reaches a cut, where nothing later was acted.

    Args:
        settings: of the rule, with `n_steps` of 2 or more.
        fields: `rewards`, `terminated`, `truncated`, `cut`, `valid`, `out.q_taken`, `out.q_max`, `[R, N]` each.

    Returns:
        float32 `[N]`.
    """
    q_max = fields["out.q_max"].astype(np.float64)
    q_taken = fields["out.q_taken"]
    known = len(q_max) - 1
    steps = n_step(
        fields["rewards"][:known].astype(np.float64),
        fields["terminated"][:known],
        (fields["truncated"] | fields["cut"])[:known] | fields["cut"][1:],
        gamma=settings.gamma,
        n=settings.n_steps,
    )
    trained = len(q_max) - (settings.n_steps - 1)
    sums, discounts, lengths = (part[:trained] for part in steps)
    later = np.take_along_axis(q_max, np.arange(trained)[:, None] + lengths, axis=0)
    targets = rescale(sums + discounts * unscale(later)) if settings.rescale else sums + discounts * later
    errors = targets - q_taken[:trained]
    mixed = priorities(errors, fields["valid"][:trained], max_share=settings.priority_max_share)
    # A reward of 1e38 is no priority that float32 lacks.
    return mixed.clip(max=np.finfo(np.float32).max).astype(np.float32)
