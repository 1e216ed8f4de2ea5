"""V-trace's loss of whole fragments.

Letters: T trained records of a fragment, B columns.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Batch
from srlhpc.policies.contracts import ActorCriticPolicy, Evaluated
from srlhpc.rl.losses import clipped_surrogate, value_loss
from srlhpc.rl.returns import vtrace
from srlhpc.rl.staleness import lag_weights

_MOST_BEHIND = math.log(2.0)
"""APPO: logarithm of the most that data weighs in whose action the old policy believes less than behaviour did."""


class Coefficients(NamedTuple):
    """Numbers of one update, schedules resolved."""

    learning_rate: float
    gamma: float
    trace_lambda: float
    rho_clip: float
    c_clip: float
    policy_rho_clip: float
    clip_ratio: float | None
    value: float
    entropy: float
    lag_exponent: float = 0.0


class Loss(NamedTuple):
    """Sums over the valid records of some fragments."""

    total: Tensor
    """Scalar with gradient: policy loss + value coefficient * value loss - entropy coefficient * entropy."""
    sums: Tensor
    """float32 `[len(SUMS) + 2]` without gradient, in the order of `SUMS`, then the number of valid records and the sum
    of what they weigh."""
    max_deviation: Tensor
    """Largest |pi / mu - 1|."""
    targets: Tensor
    """v_t in units of the return, float32 `[T, B]`."""


WEIGHED = ("loss", "policy_loss", "value_loss", "entropy")
"""Names of the first of `Loss.sums`, once divided by the weight of all trainers' records."""
SUMS = (*WEIGHED, "approx_kl", "clip_fraction", "rho_mean", "value_mean")
"""Names of `Loss.sums`, those behind `WEIGHED` once divided by the number of valid records. `clip_fraction`: ratios that
are cut, by `rho_clip` or, with it, by `clip_ratio`; `rho_mean`: mean of min(rho_clip, ratio)."""


def evaluated(policy: ActorCriticPolicy, batch: Batch) -> tuple[Evaluated, Tensor]:
    """What the policy says of all T + 1 observations, and the log-probabilities `[T, B]` of the T actions.

    The bootstrap is seen by the memory that the fragment leaves, as the parameters of now have it.
    """
    state = batch.state
    burn_in = batch.burn_in_steps
    masks = batch.action_masks
    if burn_in:
        state = dict(
            policy.warm_up(
                {key: array[:burn_in] for key, array in batch.observations.items()},
                state,
                batch.first[:burn_in],
                action_masks=None if masks is None else masks[:burn_in],
            )
        )
    if masks is not None:
        # Nothing is played at the bootstrap, so any action may stand there.
        masks = torch.cat([masks[burn_in:-1], torch.ones_like(masks[-1:])])
    said = policy.evaluate(
        {key: array[burn_in:] for key, array in batch.observations.items()},
        state,
        batch.first[burn_in:],
        action_masks=masks,
    )
    actions = batch.actions[burn_in:]
    return said, said.distribution.log_prob(torch.cat([actions, actions[-1:]]))[:-1]


def vtrace_loss(
    policy: ActorCriticPolicy, batch: Batch, coefficients: Coefficients, old_log_probs: Tensor | None = None
) -> Loss:
    """Policy gradient on V-trace's advantages, value loss and entropy bonus (Espeholt et al. 2018, section 4.2).

    With `clip_ratio` the policy's loss is APPO's, as RLlib has it: ratios of V-trace are those of the old policy to
    behaviour, and min(r A, clip(r, 1 - eps, 1 + eps) A) with r = min(mu / old, 2) * pi / mu.

    Args:
        policy: what is trained.
        batch: whole fragments, burn-in first.
        coefficients: of this update.
        old_log_probs: float32 `[T, B]`, of the actions by the old policy; only with `clip_ratio`.
    """
    trained = slice(batch.burn_in_steps, None)
    valid, behaviour = batch.valid[trained], batch.log_probs[trained]
    said, log_probs = evaluated(policy, batch)
    weights = lag_weights(batch.version - batch.versions[trained], valid, coefficients.lag_exponent).float()
    entropy = (torch.where(valid, said.distribution.entropy()[:-1], 0.0) * weights).sum()
    known = policy.denormalize_values(said.values.detach())
    log_ratios = torch.where(valid, log_probs.detach() - behaviour, 0.0)
    estimated = vtrace(
        log_ratios if old_log_probs is None else torch.where(valid, old_log_probs - behaviour, 0.0),
        batch.rewards[trained],
        known[:-1],
        known[1:],
        batch.terminated[trained],
        batch.truncated[trained],
        gamma=coefficients.gamma,
        lambda_=coefficients.trace_lambda,
        rho_clip=coefficients.rho_clip,
        c_clip=coefficients.c_clip,
        policy_rho_clip=coefficients.policy_rho_clip,
    )
    ratios, advantages = log_ratios.exp(), estimated.advantages * weights
    if coefficients.clip_ratio is None or old_log_probs is None:
        gains = torch.where(valid, log_probs, 0.0) * torch.where(valid, advantages, 0.0)
        policy_loss, clipped = -gains.sum(), (valid & (ratios > coefficients.rho_clip)).sum()
    else:
        beside = torch.maximum(old_log_probs, behaviour - _MOST_BEHIND)
        surrogate = clipped_surrogate(log_probs, beside, advantages, valid, clip_ratio=coefficients.clip_ratio)
        policy_loss, clipped = surrogate.loss, surrogate.clipped
    value = value_loss(said.values[:-1], policy.normalize_values(estimated.targets), valid, weights=weights)
    total = policy_loss + coefficients.value * value - coefficients.entropy * entropy
    with torch.no_grad():
        kl = ratios - 1 - log_ratios
        counted = (kl, ratios.clamp(max=coefficients.rho_clip), known[:-1], torch.ones_like(ratios), weights)
        kl, rho, values, count, weight = torch.where(valid, torch.stack(counted), 0.0).flatten(1).sum(1)
        sums = torch.stack([total, policy_loss, value, entropy, kl, clipped.float(), rho, values, count, weight])
        return Loss(total, sums, (ratios - 1).abs().max(), estimated.targets)
