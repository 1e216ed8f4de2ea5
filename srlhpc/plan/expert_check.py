"""Whether a policy's expert can label what it plays. Pure."""

from __future__ import annotations

from srlhpc.environment import Kind
from srlhpc.errors import UserError
from srlhpc.plan.plan import Plan


def check_expert(plan: Plan, policy: str) -> None:
    """Refuses an expert that is none.

    Args:
        plan: of the run.
        policy: that plays agents.

    Raises:
        UserError: with the remedy.
    """
    expert = plan.spec.policies[policy].algorithm.needs(plan.kind_of(policy)).expert
    if expert is None:
        return
    if plan.trainers(expert):
        raise UserError(
            f"policies.{policy}.algorithm.expert: is '{expert}', which is trained itself; an expert plays no "
            "agents, or only such whose entry of agents says train: false"
        )
    spec = plan.spec.policies[expert]
    if spec.weights_from is None:
        raise UserError(
            f"policies.{expert}.weights_from: is missing; an expert plays with weights that were learnt before: name "
            "a checkpoint file, or the folder of a run"
        )
    if spec.network.recurrent is not None:
        raise UserError(
            f"policies.{expert}.network.recurrent: is {spec.network.recurrent.kind}; an expert labels single "
            "observations, without memory: train one on observations that show what matters (stacks of frames)"
        )
    check_frozen(plan, expert, plan.kind_of(policy))


def check_frozen(plan: Plan, policy: str, kind: Kind) -> None:
    """Refuses a policy that plays no agents of its own and could not act for agents of a kind.

    Args:
        plan: of the run.
        policy: that nobody trains.
        kind: of the agents.

    Raises:
        UserError: with the remedy.
    """
    spec = plan.spec.policies[policy]
    try:
        needs, offers = spec.algorithm.needs(kind), spec.network.offers(kind)
    except UserError as error:
        raise UserError(f"policies.{policy}: {error}") from None
    try:
        spec.network.check(kind)
    except UserError as error:
        raise UserError(f"policies.{policy}.network: {error}") from None
    if needs.contract not in offers:
        raise UserError(
            f"policies.{policy}: algorithm {spec.algorithm.kind} trains networks that offer '{needs.contract}', but "
            f"network {spec.network.kind} offers {', '.join(offers) or 'nothing'}; give it network and algorithm of "
            "the run that its weights are from"
        )
