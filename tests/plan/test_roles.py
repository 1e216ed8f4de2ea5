"""The rows of the roles, against all that names roles by itself."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from srlhpc.comm.channel import Stream
from srlhpc.plan.roles import ROLES, role_of
from srlhpc.ranks.building import BUILDERS
from srlhpc.specs import cluster
from srlhpc.specs.experiment import ExperimentSpec
from tests.plan.test_planner import planned


def test_profile_takes_resources_of_every_role_and_no_other() -> None:
    assert list(ROLES) == list(cluster.ROLES)


def test_every_section_of_a_role_is_one_of_a_job_file() -> None:
    assert {row.section for row in ROLES.values()} - {None} <= set(ExperimentSpec.model_fields)


def test_every_role_but_the_coordinator_has_a_builder() -> None:
    assert set(BUILDERS) == set(ROLES) - {"coordinator"}
    for builder in BUILDERS.values():
        module, _, function = builder.partition(":")
        assert callable(getattr(importlib.import_module(module), function))


def test_every_stream_is_sent_by_some_role_and_no_other_is_named() -> None:
    assert {stream for row in ROLES.values() for stream in row.sends} == {stream.name.lower() for stream in Stream}


def test_role_that_does_not_send_a_stream_gets_no_link_for_it() -> None:
    plan = planned()
    (actor, *_), (trainer,) = plan.named("actor"), plan.named("trainer")
    with pytest.raises(AssertionError, match="actor-0 does not send PARAMETERS"):
        plan.link(Stream.PARAMETERS, actor, trainer)


def test_label_names_its_role() -> None:
    assert {role_of(role.label) for role in planned().roles} <= set(ROLES)


def test_commands_that_look_at_runs_take_rows_without_pydantic_or_numpy() -> None:
    look = "import sys, srlhpc.plan.roles; print([n for n in ('pydantic', 'numpy', 'torch') if n in sys.modules])"
    assert subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout == "[]\n"
