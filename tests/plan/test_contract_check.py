"""A rule trains only networks that offer its contract and give the outputs that it needs."""

from __future__ import annotations

import re
from typing import Any

import pytest

from srlhpc.errors import UserError
from srlhpc.plan.layouts import block_layout, reply_layout
from tests.plan.test_planner import planned

RULE = {"kind": "tests.plan.wanting"}


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (
            {"contract": "crystal_ball"},
            "policies.default: algorithm tests.plan.wanting trains networks that offer 'crystal_ball', but network "
            "mlp offers 'actor_critic', 'phasic_actor_critic', 'action_values'; set network.kind to one that offers "
            "'crystal_ball', or algorithm.kind to a rule that trains what the network offers",
        ),
        (
            {"outputs": {"visits": (4,)}},
            "policies.default: algorithm tests.plan.wanting needs the output 'visits' of acting, but network mlp gives "
            "only 'value' as 'actor_critic'; set network.kind to one that gives 'visits'",
        ),
        (
            {"outputs": {"value": (2,)}},
            "policies.default: algorithm tests.plan.wanting needs the output 'value' of acting as float32 [2], but "
            "network mlp gives float32 []; their Settings (`needs` and `offers`) must agree",
        ),
        (
            {"contract": "action_values"},
            "policies.default: algorithm tests.plan.wanting declares no head, but network mlp takes one as "
            "'action_values'; their Settings (`Needs.head` and `Offer.takes_head`) must agree",
        ),
        (
            {"kind": "tests.plan.silent_rule"},
            "policies.default: algorithm tests.plan.silent_rule does not say which networks it trains; its Settings "
            "must define `needs(kind)`, which returns a srlhpc.specs.contracts.Needs",
        ),
        (
            {"data": "replay"},
            "policies.default.replay: is missing; algorithm tests.plan.wanting draws from replay: add {capacity: "
            "100000} for the last 100,000 records, or {} for the last million",
        ),
    ],
    ids=["contract", "output", "shape", "head", "silent", "replay"],
)
def test_network_that_lacks_what_a_rule_needs_is_refused(rule: dict[str, Any], text: str) -> None:
    with pytest.raises(UserError, match=re.escape(text) + "$"):
        planned(algorithm=RULE | rule)


def test_layouts_hold_the_outputs_that_the_rule_needs_and_no_others() -> None:
    def outputs(**rule: Any) -> list[set[str]]:
        plan = planned(algorithm=RULE | rule)
        layouts = block_layout(plan, "default"), reply_layout(plan, "default")
        return [{field.name for field in layout.fields if field.name.startswith("out.")} for layout in layouts]

    assert outputs() == [set(), set()]
    assert outputs(outputs={"value": ()}) == [{"out.value"}, {"out.value"}]
