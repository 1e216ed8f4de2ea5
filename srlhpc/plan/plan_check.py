"""Whether the parts of a plan fit each other: agents, networks, rules, batches, messages. Pure."""

from __future__ import annotations

from srlhpc.errors import UserError, counted
from srlhpc.plan.contract_check import check_contract, check_data, check_fields
from srlhpc.plan.expert_check import check_expert
from srlhpc.plan.exploration import check_exploration, columns
from srlhpc.plan.layouts import block_layout, policy_shapes, request_layout, windows_layout
from srlhpc.plan.plan import Plan, Seat
from srlhpc.plan.sizes import block_fragments

_MAX_MESSAGE_BYTES = (1 << 31) - 1


def check_acting(plan: Plan) -> None:
    """Whether somebody acts where something is learnt from it, and nobody where nothing is.

    Raises:
        UserError: it is otherwise, or only training episodes, which nobody plays, would end the run.
    """
    spec, trained = plan.spec, plan.trained_policies
    acting = [policy for policy in trained if spec.policies[policy].episodes is None]
    if acting and not spec.actors.ranks:
        raise UserError(
            f"actors.ranks: is 0, but policy {acting[0]} learns from what it does; raise it, or let the policy learn "
            "from recorded episodes (episodes, algorithm behaviour_cloning)"
        )
    if not acting and spec.actors.ranks:
        raise UserError(
            f"actors.ranks: is {spec.actors.ranks}, but all that is learnt from are files of episodes, so nothing of "
            "what they play would be used; set it to 0 (evaluators play all the same)"
        )
    stop = spec.stop
    if not spec.actors.ranks and stop.steps is None and stop.updates is None and stop.hours is None:
        raise UserError(
            "stop.return_mean: is of training episodes, and with actors.ranks 0 nobody plays any, so the run would "
            "never end; set stop.updates, stop.steps or stop.hours"
        )


def check_policy(plan: Plan, seat: Seat) -> None:
    """Whether network, learning rule and agents of a policy fit each other.

    Raises:
        UserError: they do not.
    """
    where, policy, kind = f"policies.{seat.policy}", plan.spec.policies[seat.policy], plan.spaces.kind(seat.kind)
    if seat.trained and "batch" not in policy.model_fields_set:
        raise UserError(
            f"{where}.batch: is missing; agents that play {seat.policy} train it: say what an update learns from, for "
            "example batch: {fragments: 32, fragment_steps: 32}, or let their entry of agents say train: false"
        )
    check_contract(where, policy, kind)
    if seat.trained:
        check_data(where, policy, kind)
    check_expert(plan, seat.policy)
    check_exploration(where, policy.algorithm, columns(plan, seat.policy))
    try:
        policy.network.check(kind)
    except UserError as error:
        raise UserError(f"{where}.network: {error}") from None
    check_fields(where, policy.algorithm.kind, policy_shapes(plan, seat.policy))


def check_feedback(plan: Plan, policy: str) -> None:
    """Refuses a rule that gives feedback to what does not draw.

    Raises:
        UserError: it does.
    """
    algorithm = plan.spec.policies[policy].algorithm
    if algorithm.needs(plan.kind_of(policy)).gives_feedback:
        raise UserError(
            f"policies.{policy}.algorithm: {algorithm.kind} gives feedback on the rows of a batch, such as priorities, "
            "but every batch is made of fresh blocks, which are not drawn by it; choose an algorithm that gives none"
        )


def check_batch(plan: Plan, policy: str) -> None:
    """Whether blocks make up batches, and there are enough groups.

    Raises:
        UserError: with a number that would do.
    """
    spec = plan.spec.policies[policy]
    brought, wanted = block_fragments(plan, policy), spec.batch.fragments
    if wanted % brought:
        raise UserError(
            f"policies.{policy}.batch.fragments: is {wanted}; one block brings {counted(brought, 'fragment')} "
            f"({counted(plan.spec.actors.environments, 'environment')} x {_columns_of_one(plan, policy)}), "
            f"and a batch is a whole number of blocks: use a multiple of {brought}, or change actors.environments"
        )
    trainers = plan.trainers(policy)
    if not all(plan.feeders(trainer) for trainer in trainers):
        raise UserError(
            f"actors: {counted(len(plan.groups), 'group')} (ranks x ring) cannot feed "
            f"{counted(len(trainers), 'trainer')} of policy {policy}; raise actors.ranks or actors.ring"
        )


def _columns_of_one(plan: Plan, policy: str) -> str:
    agents = counted(len(plan.seat(policy).trained), "trained agent")
    return f"1 column of {agents}" if policy_shapes(plan, policy).joint_agents else agents


def check_message_sizes(plan: Plan, policy: str) -> None:
    """Whether each message of a policy fits into one of MPI.

    Raises:
        UserError: with what to lower.
    """
    replays = bool(plan.replays(policy))
    steps = "replay.block_steps" if replays else "batch.fragment_steps"
    messages = [
        ("block", block_layout(plan, policy), f"actors.environments or {steps}"),
        ("request", request_layout(plan, policy), "actors.environments"),
    ]
    if replays:
        messages.append(("part of a batch", windows_layout(plan, policy), "batch.fragments, or raise replay.ranks"))
    for name, layout, remedy in messages:
        if layout.size_bytes > _MAX_MESSAGE_BYTES:
            raise UserError(
                f"policies.{policy}: one {name} has {layout.size_bytes / 1e9:.1f} GB; at most 2 GiB fit in a message: "
                f"lower {remedy}"
            )
