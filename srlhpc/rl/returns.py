"""Advantage and return estimators.

Letters: T records of a fragment, B columns. Arrays are time-major; `rewards[t]` follows the action at t.

They need not know which records are valid. By the contract of environments, a record is invalid only after an end and
while its agent is not in the game, so between two valid records with an invalid one in between there is always an end,
and nothing passes it. What is estimated for invalid records means nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


@torch.no_grad()
def gae(
    rewards: Tensor,
    values: Tensor,
    next_values: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    *,
    gamma: float,
    lambda_: float,
) -> Tensor:
    """Generalized Advantage Estimation (Schulman et al. 2016, eq. 16; arXiv:1506.02438).

    A_t = delta_t + gamma * lambda * A_{t+1},  delta_t = r_t + gamma * V(s_{t+1}) - V(s_t).
    Termination drops the bootstrap; truncation keeps it; both stop the recursion.

    Args:
        rewards, values, next_values: float32 `[T, B]`. `next_values[t]` is V of the real successor of step t.
        terminated, truncated: bool `[T, B]`; step t was the last of its episode.
        gamma: discount of one step.
        lambda_: weight of longer returns; 0 gives TD errors, 1 Monte Carlo returns minus the baseline.

    Returns:
        Advantages, float32 `[T, B]`. The value target is `advantages + values`.
    """
    deltas = rewards + gamma * next_values * ~terminated - values
    decay = gamma * lambda_ * ~(terminated | truncated)
    advantages = torch.empty_like(deltas)
    carry = torch.zeros_like(deltas[0])
    for t in reversed(range(len(rewards))):
        carry = deltas[t] + decay[t] * carry
        advantages[t] = carry
    return advantages


class VTrace(NamedTuple):
    """What V-trace estimates, float32 `[T, B]` each."""

    targets: Tensor
    """v_t, the value targets."""
    advantages: Tensor
    """rho_t * (r_t + gamma * v_{t+1} - V(s_t)), for the policy gradient."""


@torch.no_grad()
def vtrace(
    log_ratios: Tensor,
    rewards: Tensor,
    values: Tensor,
    next_values: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    *,
    gamma: float,
    lambda_: float = 1.0,
    rho_clip: float = 1.0,
    c_clip: float = 1.0,
    policy_rho_clip: float | None = None,
) -> VTrace:
    """V-trace (Espeholt et al. 2018, eq. 1, section 4.2 and remark 2; arXiv:1802.01561).

    v_t = V(s_t) + rho_t * delta_t + gamma * c_t * (v_{t+1} - V(s_{t+1})),
    rho_t = min(rho_clip, pi/mu), c_t = lambda * min(c_clip, pi/mu).
    Advantages bootstrap from lambda * v_{t+1} + (1 - lambda) * V(s_{t+1}).
    Termination drops the bootstrap; truncation keeps it; both stop the recursion.

    Args:
        log_ratios: float32 `[T, B]`, log pi(a_t) - log mu(a_t).
        rewards, values, next_values, terminated, truncated: as in `gae`; the values are those of the target policy.
        gamma: discount of one step.
        rho_clip: bound of the ratio in the temporal difference (decides the fixed point).
        lambda_: weight of longer returns.
        c_clip: bound of the ratio in the trace (decides the speed).
        policy_rho_clip: bound of the ratio in the advantages; None: that of the temporal difference.
    """
    ratios = log_ratios.exp()
    rhos = ratios.clamp(max=rho_clip)
    goes_on = ~(terminated | truncated)
    deltas = rhos * (rewards + gamma * next_values * ~terminated - values)
    decay = gamma * lambda_ * ratios.clamp(max=c_clip) * goes_on
    corrections = torch.empty_like(deltas)
    carry = torch.zeros_like(deltas[0])
    for t in reversed(range(len(rewards))):
        carry = deltas[t] + decay[t] * carry
        corrections[t] = carry
    next_corrections = torch.zeros_like(corrections)
    next_corrections[:-1] = lambda_ * corrections[1:] * goes_on[:-1]
    weights = rhos if policy_rho_clip is None else ratios.clamp(max=policy_rho_clip)
    advantages = weights * (rewards + gamma * (next_values + next_corrections) * ~terminated - values)
    return VTrace(values + corrections, advantages)
