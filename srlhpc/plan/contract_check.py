"""Whether a network gives what the learning rule of its policy needs. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from srlhpc.data.blocks import PolicyShapes, record_fields
from srlhpc.environment import ArraySpec, Kind
from srlhpc.errors import UserError
from srlhpc.specs.contracts import Needs, Offer
from srlhpc.specs.policy import PolicySpec
from srlhpc.specs.problems import shown


def check_contract(where: str, policy: PolicySpec, kind: Kind) -> None:
    """Refuses a rule whose network lacks its contract or an output that has to travel with its records.

    Args:
        where: name of the policy in the spec, for messages.
        policy: network and rule.
        kind: agents that the policy plays.

    Raises:
        UserError: with both names, and what would do.
    """
    rule, network = policy.algorithm.kind, policy.network.kind
    try:
        needs, offers = policy.algorithm.needs(kind), policy.network.offers(kind)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    if needs.contract not in offers:
        raise UserError(
            f"{where}: algorithm {rule} trains networks that offer '{needs.contract}', but network {network} offers "
            f"{_listed(offers)}; set network.kind to one that offers '{needs.contract}', or algorithm.kind to a rule "
            "that trains what the network offers"
        )
    _check_offer(f"{where}: algorithm {rule}", network, offers[needs.contract], needs)


def check_data(where: str, policy: PolicySpec, kind: Kind) -> None:
    """Refuses a trained policy that does not say where its rule's batches come from; arguments as `check_contract`.

    Raises:
        UserError: with what to add or leave out.
    """
    rule, needs = policy.algorithm.kind, policy.algorithm.needs(kind)
    if needs.data == "replay" and policy.replay is None:
        raise UserError(
            f"{where}.replay: is missing; algorithm {rule} draws from replay: add "
            "{capacity: 100000} for the last 100,000 records, or {} for the last million"
        )
    if needs.data == "stream" and policy.replay is not None:
        raise UserError(
            f"{where}.replay: algorithm {rule} learns from every record as it comes; leave replay out, or set "
            "algorithm.kind to a rule that draws from replay"
        )
    if needs.data == "episodes" and policy.episodes is None:
        raise UserError(
            f"{where}.episodes: is missing; algorithm {rule} learns from recorded episodes: add "
            "{files: [FILE]}, with a file that `srlhpc record` has written"
        )
    if needs.data != "episodes" and policy.episodes is not None:
        raise UserError(
            f"{where}.episodes: algorithm {rule} learns from what its policy does; leave episodes out, or set "
            "algorithm.kind to behaviour_cloning"
        )
    for what, value in (("observations", policy.normalize.observations), ("returns", policy.normalize.returns)):
        if value and what not in needs.normalizes:
            raise UserError(
                f"{where}.normalize.{what}: is {shown(value)}, but algorithm {rule} keeps no running statistics of "
                f"{what}, so nothing would be scaled by them; set it to false"
            )
    if needs.data == "episodes" and (needs.outputs or needs.fields or needs.after or needs.joint):
        raise UserError(
            f"{where}.algorithm: {rule} learns from recorded episodes, but its Settings (`needs`) ask for outputs of "
            "acting, further fields, records behind the last one or joint columns, which such batches do not have"
        )


def _check_offer(who: str, network: str, offer: Offer, needs: Needs) -> None:
    if offer.takes_head != (needs.head is not None):
        raise UserError(
            f"{who} declares {'no head' if needs.head is None else 'a head'}, but network {network} "
            f"{'takes one' if offer.takes_head else 'takes none'} as '{needs.contract}'; their Settings (`Needs.head` "
            "and `Offer.takes_head`) must agree"
        )
    given = offer.outputs
    for name, array in needs.outputs.items():
        if name not in given:
            raise UserError(
                f"{who} needs the output '{name}' of acting, but network {network} gives only "
                f"{_listed(given)} as '{needs.contract}'; set network.kind to one that gives '{name}'"
            )
        if given[name] != array:
            raise UserError(
                f"{who} needs the output '{name}' of acting as {_shown(array)}, but network "
                f"{network} gives {_shown(given[name])}; their Settings (`needs` and `offers`) must agree"
            )


def check_fields(where: str, rule: str, shapes: PolicyShapes) -> None:
    """Refuses further fields of a record that cannot be recorded as declared.

    Args:
        where: name of the policy in the spec, for messages.
        rule: name of the learning rule that declares them.
        shapes: of the policy, with the rule's fields.

    Raises:
        UserError: a name that a record has already, a field that nobody writes.
    """
    names = [field.name for field in record_fields(shapes)]
    for field in shapes.fields:
        declared = f"{where}: algorithm {rule} declares a field '{field.name}' of every record"
        if names.count(field.name) > 1 or "." in field.name:
            raise UserError(f"{declared}, but that name is taken (names with a dot are, too); choose another")
        if field.written == "replied":
            raise UserError(
                f"{declared}, written with the reply; name what the network yields in `Needs.outputs`, or let the "
                "field be 'seen' before acting or 'stepped'"
            )
        if field.written == "stepped" and field.has_bootstrap:
            raise UserError(f"{declared} with a bootstrap, which only fields have that are 'seen' before acting")
        if field.in_request or field.of != "agent":
            raise UserError(f"{declared}, with in_request or not of agents, which only fields of every rule can be")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "nothing"


def _shown(array: ArraySpec) -> str:
    return f"{array.dtype} {list(array.shape)}"
