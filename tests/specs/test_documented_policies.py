"""The policies that documents show are valid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from srlhpc.specs.policy import PolicySpec

PAGE = Path(__file__).parents[2] / "docs" / "dqn.md"
WHOLE: dict[str, Any] = {
    "network": {"kind": "mlp"},
    "batch": {"fragments": 32, "fragment_steps": 1},
    "replay": {"capacity": 1000, "samples_per_insert": 8.0},
}
SHOWN = [yaml.safe_load(part.partition("```")[0]) for part in PAGE.read_text().split("```yaml\n")[1:]]


@pytest.mark.parametrize("policy", SHOWN, ids=["least", "dqn", "ape-x", "r2d2", "qr-dqn"])
def test_policy_of_the_page_of_dqn_is_valid(policy: dict[str, Any]) -> None:
    PolicySpec.model_validate(WHOLE | policy)
