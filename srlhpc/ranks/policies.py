"""Makes a policy with the run's initial parameters: what acts, and on trainers what is trained."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from srlhpc.import_path import load_module
from srlhpc.plan.plan import Plan
from srlhpc.plan.seeds import seed_of
from srlhpc.policies.policy import Policy
from srlhpc.specs.contracts import Offer


def build_policy(plan: Plan, name: str) -> Policy:
    """What acts, on the CPU; its initial parameters are equal on every rank."""
    spec, kind = plan.spec.policies[name], plan.kind_of(name)
    # Layers draw their initial values from the generator of the process.
    torch.manual_seed(_seed(plan, name, "policy"))
    head = spec.algorithm.needs(kind).head
    build = _function(plan, name, _offer(plan, name).build)
    policy: Policy = build(spec.network, kind, spec.normalize, *(() if head is None else (head,)))
    return policy


def build_trained(plan: Plan, name: str, policy: Policy) -> nn.Module:
    """What the policy's rule trains: `policy` itself, or what the network puts around it, on the CPU."""
    build, spec = _offer(plan, name).build_trained, plan.spec.policies[name]
    if build is None:
        return policy
    torch.manual_seed(_seed(plan, name, "trained"))
    trained: nn.Module = _function(plan, name, build)(spec.network, policy, spec.normalize)
    return trained


def _offer(plan: Plan, name: str) -> Offer:
    spec, kind = plan.spec.policies[name], plan.kind_of(name)
    return spec.network.offers(kind)[spec.algorithm.needs(kind).contract]


def _function(plan: Plan, name: str, function: str) -> Any:
    """One of the network's module, or where a module stands before it, of that one."""
    module, _, own = function.rpartition(":")
    module = module or plan.spec.policies[name].network.kind
    return getattr(load_module(module, "srlhpc.policies", (own,)), own)


def _seed(plan: Plan, name: str, use: str) -> int:
    return seed_of(plan.spec.seed, use, list(plan.spec.policies).index(name))
