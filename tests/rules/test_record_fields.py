"""A field of a record is declared in one place: what a rule declares is recorded, travels and is in its batches."""

from __future__ import annotations

import re
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from srlhpc.data.blocks import PolicyShapes, request_layout
from srlhpc.data.episode_file import EpisodeFile
from srlhpc.environment import ArraySpec, Discrete, Kind
from srlhpc.errors import UserError
from srlhpc.plan.contract_check import check_fields
from srlhpc.ranks.serial import run_serial
from srlhpc.recording import record
from srlhpc.specs.contracts import RecordField
from tests.launch.making_runs import make_attempt, make_run, settings
from tests.rules import watching

KIND = Kind("agent", ("a",), {"obs": ArraySpec((2,), "float32")}, Discrete(2))
NUMBER = ArraySpec((), "float32")


@pytest.mark.parametrize("burn_in", [0, 3])
def test_fields_that_a_rule_declares_are_in_its_batches(burn_in: int, tmp_path: Path) -> None:
    watching.BATCHES.clear()
    job = settings(
        {"factory": "catch", "rows": 5, "columns": 3},
        stop={"updates": 3},
        network={"kind": "mlp", "hidden": [8], "recurrent": {"kind": "gru", "size": 4}},
        algorithm={"kind": "tests.rules.watching"},
        batch={"fragments": 8, "fragment_steps": 9, "burn_in_steps": burn_in},
    )
    paths = make_run(tmp_path, job)
    run_serial(paths, make_attempt(paths, job)[0])
    assert len(watching.BATCHES) == 3
    for batch in watching.BATCHES:
        records = 9 + burn_in
        assert batch["playing"].shape == (records + 1, 8)
        assert torch.equal(batch["playing"][:-1], batch["alive"])
        assert torch.equal(batch["corners"], batch["obs.obs"][:-1, :, [0, -1]])
        assert torch.equal(batch["gains"], 2 * batch["rewards"])
    assert any(batch["gains"].any() for batch in watching.BATCHES)


def test_field_that_a_rule_declares_does_not_travel_to_the_policy_server() -> None:
    shapes = PolicyShapes(KIND, {}, {}, watching.FIELDS)
    assert [field.name for field in request_layout(shapes, 1, 1).fields] == ["obs.obs", "first", "alive"]


@pytest.mark.parametrize(
    ("field", "text"),
    [
        (("rewards", NUMBER, "stepped", attrgetter("rewards")), "'rewards' of every record, but that name is taken"),
        (("obs.more", NUMBER, "seen", attrgetter("first")), "names with a dot are, too); choose another"),
        (("more", NUMBER, "replied", attrgetter("more")), "name what the network yields in `Needs.outputs`"),
        (
            ("more", NUMBER, "stepped", attrgetter("first"), True),
            "which only fields have that are 'seen' before acting",
        ),
        (("more", NUMBER, "seen", attrgetter("first"), True, True), "which only fields of every rule can be"),
    ],
    ids=["taken", "dot", "replied", "bootstrap", "request"],
)
def test_field_that_cannot_be_recorded_as_declared_is_refused(field: tuple[Any, ...], text: str) -> None:
    shapes = PolicyShapes(KIND, {}, {}, (RecordField(*field),))
    with pytest.raises(UserError, match=r"policies.x: algorithm rule declares a field .*" + re.escape(text)):
        check_fields("policies.x", "rule", shapes)


def test_fields_that_a_rule_declares_are_in_recordings(tmp_path: Path) -> None:
    job = settings(
        {"factory": "tests.scripted", "steps": [[3]]}, stop={"updates": 1}, algorithm={"kind": "tests.rules.watching"}
    )
    paths = make_run(tmp_path, job)
    run_serial(paths, make_attempt(paths, job)[0])
    record(paths, tmp_path / "file.h5", episodes=1)
    with EpisodeFile(tmp_path / "file.h5") as file:
        found = file.episodes("default").windows(np.array([0]), 3)
    assert found["gains"][:, 0].tolist() == [2, 4, 6]
    # The episode counts from 1, there is one agent, and one more is seen than acted on.
    assert found["corners"][:, 0].tolist() == [[1, 1]] * 3
    assert found["playing"][:, 0].tolist() == [True] * 4
