"""Whether a network gives what the learning rule of its policy needs. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from srlhpc.environment import ArraySpec, Kind
from srlhpc.errors import UserError
from srlhpc.specs.experiment import PolicySpec


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
    given = offers[needs.contract].outputs
    for name, array in needs.outputs.items():
        if name not in given:
            raise UserError(
                f"{where}: algorithm {rule} needs the output '{name}' of acting, but network {network} gives only "
                f"{_listed(given)} as '{needs.contract}'; set network.kind to one that gives '{name}'"
            )
        if given[name] != array:
            raise UserError(
                f"{where}: algorithm {rule} needs the output '{name}' of acting as {_shown(array)}, but network "
                f"{network} gives {_shown(given[name])}; their Settings (`needs` and `offers`) must agree"
            )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "nothing"


def _shown(array: ArraySpec) -> str:
    return f"{array.dtype} {list(array.shape)}"
