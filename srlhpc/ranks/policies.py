"""Makes a policy with the run's initial parameters: what acts, and on trainers what is trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from srlhpc.data.checkpoint import read_checkpoint
from srlhpc.errors import UserError, counted
from srlhpc.import_path import load_module
from srlhpc.plan.plan import Plan
from srlhpc.plan.seeds import seed_of
from srlhpc.policies.policy import Policy
from srlhpc.runs.paths import RunPaths
from srlhpc.specs.contracts import Offer


def build_policy(plan: Plan, name: str, paths: RunPaths | None = None) -> Policy:
    """What acts, on the CPU; its initial parameters are equal on every rank.

    Args:
        plan: of the run.
        name: of the policy.
        paths: of the run, where there are weights that a policy begins with; None: it is given others.

    Raises:
        UserError: those do not fit.
    """
    spec, kind = plan.spec.policies[name], plan.kind_of(name)
    seed_parameters(plan, name, "policy")
    head = spec.algorithm.needs(kind).head
    build = _function(plan, name, _offer(plan, name).build)
    policy: Policy = build(spec.network, kind, spec.normalize, *(() if head is None else (head,)))
    if spec.weights_from is not None and paths is not None:
        file = paths.weights_of(name)
        load_parameters(policy, read_checkpoint(file)["parameters"], f"{file}: policy '{name}'")
    return policy


def build_expert(plan: Plan, name: str, paths: RunPaths) -> Policy | None:
    """The expert of a policy's rule, on the CPU; None if it has none."""
    expert = plan.spec.policies[name].algorithm.needs(plan.kind_of(name)).expert
    return None if expert is None else build_policy(plan, expert, paths)


def load_parameters(policy: Policy, arrays: Mapping[str, Any], what: str) -> None:
    """Gives a policy the parameters of a checkpoint.

    Args:
        policy: as it is built.
        arrays: name to array.
        what: begins the message.

    Raises:
        UserError: names or shapes differ.
    """
    tensors = {key: torch.from_numpy(np.asarray(array)) for key, array in arrays.items()}
    if differs := _difference(policy.state_dict(), tensors):
        raise UserError(
            f"{what} does not fit this run's network: {differs}; name a checkpoint of this run, or of one with the "
            "same network and environment"
        )
    policy.load_state_dict(tensors)


def _difference(own: Mapping[str, Tensor], theirs: Mapping[str, Tensor]) -> str:
    """The first array that one of two networks has otherwise, or not at all, and how many there are; else empty."""
    here, there = ({key: list(tensor.shape) for key, tensor in tensors.items()} for tensors in (own, theirs))
    different = [key for key in {**here, **there} if here.get(key) != there.get(key)]
    if not different:
        return ""
    first, more = different[0], f" (and {counted(len(different) - 1, 'more array')})" if len(different) > 1 else ""
    return f"'{first}' is {here.get(first, 'missing')} here and {there.get(first, 'missing')} there{more}"


def build_trained(plan: Plan, name: str, policy: Policy) -> nn.Module:
    """What the policy's rule trains: `policy` itself, or what the network puts around it, on the CPU."""
    build, spec = _offer(plan, name).build_trained, plan.spec.policies[name]
    if build is None:
        return policy
    seed_parameters(plan, name, "trained")
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


def seed_parameters(plan: Plan, name: str, use: str) -> None:
    """Makes the initial values of the layers that are built next equal on every rank.

    Layers draw them from the generator of the process.

    Args:
        plan: of the run.
        name: of the policy.
        use: what is built; each has values of its own.
    """
    torch.manual_seed(seed_of(plan.spec.seed, use, list(plan.spec.policies).index(name)))
