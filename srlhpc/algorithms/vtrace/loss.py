"""V-trace's loss of whole fragments.

Letters: T trained records of a fragment, B columns.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Batch
from srlhpc.data.blocks import CHUNK_STATE, FINAL_STATE, STATE
from srlhpc.policies.contracts import ActorCriticPolicy, Evaluated
from srlhpc.rl.losses import clipped_surrogate, value_loss
from srlhpc.rl.returns import vtrace
from srlhpc.rl.staleness import lag_weights

OF_FRAGMENTS = (STATE, FINAL_STATE, CHUNK_STATE)
"""Beginnings of the names of fields that a fragment has once: `[B, ...]`."""
_LOG_CAP = math.log(2.0)
"""APPO: logarithm of the bound of mu / pi_old."""
_LARGEST_LOG = 20.0
"""Logarithms of ratios that metrics count as this."""
_ROUNDING = 1e-4
"""A ratio so little above its bound is there by rounding."""


class Coefficients(NamedTuple):
    """Numbers of one update, schedules resolved."""

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
    sums: dict[str, Tensor]
    """float32 `[]` without gradient, by the names of metrics: those of `WEIGHED` are means by what records weigh, the
    others over valid records. `clip_fraction`: ratios that are cut, by `rho_clip` or, with it, by `clip_ratio`;
    `rho_mean`: mean of min(rho_clip, ratio)."""
    valid: Tensor
    """Number of valid records, float32 `[]`."""
    weight: Tensor
    """Sum of what they weigh, float32 `[]`."""
    max_deviation: Tensor
    """Largest |pi / mu - 1|."""
    targets: Tensor
    """v_t in units of the return, float32 `[T, B]`."""


WEIGHED = ("loss", "policy_loss", "value_loss", "entropy")
"""Names of `Loss.sums` that are divided by the weight of all trainers' records, not by their number."""


def warmed_up(policy: ActorCriticPolicy, batch: Batch) -> Batch:
    """The batch behind its burn-in, from the state that it leaves: a constant, so that no gradient goes back."""
    records = batch.burn_in_steps
    if not records:
        return batch
    state = policy.warm_up(
        {key: array[:records] for key, array in batch.observations.items()},
        batch.state,
        batch.first[:records],
        action_masks=None if batch.action_masks is None else batch.action_masks[:records],
    )
    fields = {name: array if name.startswith(OF_FRAGMENTS) else array[records:] for name, array in batch.fields.items()}
    fields |= {f"{STATE}{name}": rows for name, rows in state.items()}
    return replace(batch, fields=fields, burn_in_steps=0)


def evaluated(policy: ActorCriticPolicy, batch: Batch) -> tuple[Evaluated, Tensor]:
    """What the policy says of all T + 1 observations, and the log-probabilities `[T, B]` of the T actions.

    The bootstrap is seen by the memory that the fragment leaves, as the parameters of now have it. The batch has no
    burn-in.
    """
    said = policy.evaluate(batch.observations, batch.state, batch.first, action_masks=batch.action_masks)
    # Nothing is played at the bootstrap: an action stands there, and what is said of it is left.
    actions = torch.cat([batch.actions, batch.actions[-1:]])
    return said, said.distribution.log_prob(actions)[:-1]


def vtrace_loss(
    policy: ActorCriticPolicy, batch: Batch, coefficients: Coefficients, old_log_probs: Tensor | None = None
) -> Loss:
    """Policy gradient on V-trace's advantages, value loss and entropy bonus (Espeholt et al. 2018, section 4.2).

    With `clip_ratio` the policy's loss is APPO's, as RLlib has it: ratios of V-trace are those of the old policy to
    behaviour, and min(r A, clip(r, 1 - eps, 1 + eps) A) with r = min(mu / old, 2) * pi / mu.

    Args:
        policy: what is trained.
        batch: whole fragments, without burn-in.
        coefficients: of this update.
        old_log_probs: float32 `[T, B]`, of the actions by the old policy; only with `clip_ratio`.
    """
    valid, behaviour = batch.valid, batch.log_probs
    said, log_probs = evaluated(policy, batch)
    weights = lag_weights(batch.version - batch.versions, valid, coefficients.lag_exponent).float()
    entropy = (torch.where(valid, said.distribution.entropy()[:-1], 0.0) * weights).sum()
    known = policy.denormalize_values(said.values.detach())
    log_ratios = torch.where(valid, log_probs.detach() - behaviour, 0.0)
    estimated = vtrace(
        log_ratios if old_log_probs is None else torch.where(valid, old_log_probs - behaviour, 0.0),
        batch.rewards,
        known[:-1],
        known[1:],
        batch.terminated,
        batch.truncated,
        gamma=coefficients.gamma,
        lambda_=coefficients.trace_lambda,
        rho_clip=coefficients.rho_clip,
        c_clip=coefficients.c_clip,
        policy_rho_clip=coefficients.policy_rho_clip,
    )
    # In units of the value head: where returns are normalised, advantages are on the same scale.
    unit = policy.normalize_values(torch.ones_like(known[0])) - policy.normalize_values(torch.zeros_like(known[0]))
    advantages = estimated.advantages * unit * weights
    shown = log_ratios.clamp(-_LARGEST_LOG, _LARGEST_LOG)
    ratios = shown.exp()
    if old_log_probs is None:
        gains = torch.where(valid, log_probs, 0.0) * torch.where(valid, advantages, 0.0)
        policy_loss, clipped = -gains.sum(), (valid & (ratios > coefficients.rho_clip * (1 + _ROUNDING))).sum()
    else:
        assert coefficients.clip_ratio is not None
        beside = torch.maximum(old_log_probs, behaviour - _LOG_CAP)
        surrogate = clipped_surrogate(log_probs, beside, advantages, valid, clip_ratio=coefficients.clip_ratio)
        policy_loss, clipped = surrogate.loss, surrogate.clipped
    value = value_loss(said.values[:-1], policy.normalize_values(estimated.targets), valid, weights=weights)
    total = policy_loss + coefficients.value * value - coefficients.entropy * entropy
    with torch.no_grad():
        kl = ratios - 1 - shown
        counted = (kl, ratios.clamp(max=coefficients.rho_clip), known[:-1], torch.ones_like(ratios), weights)
        kl, rho, values, count, weight = torch.where(valid, torch.stack(counted), 0.0).flatten(1).sum(1)
        weighed = {
            name: number.detach() for name, number in zip(WEIGHED, (total, policy_loss, value, entropy), strict=True)
        }
        others = {"approx_kl": kl, "clip_fraction": clipped.float(), "rho_mean": rho, "value_mean": values}
        return Loss(total, weighed | others, count, weight, (ratios - 1).abs().max(), estimated.targets)
