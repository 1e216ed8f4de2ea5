"""The JSON schema of job files."""

from __future__ import annotations

from typing import Any

from srlhpc.specs.load import load_text
from srlhpc.specs.schema import job_schema
from tests.specs.jobs import JOB


def resolve(schema: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = schema["$defs"][part["$ref"].removeprefix("#/$defs/")]
    return found


def references(part: Any) -> set[str]:
    if isinstance(part, dict):
        own = {part["$ref"]} if isinstance(part.get("$ref"), str) else set()
        return own.union(*(references(value) for value in part.values()))
    return set().union(*(references(value) for value in part)) if isinstance(part, list) else set()


def test_schema_without_a_job_leaves_module_settings_open() -> None:
    schema = job_schema()
    assert resolve(schema, schema["properties"]["environment"])["additionalProperties"] is True


def test_schema_of_a_job_describes_its_modules_settings() -> None:
    schema = job_schema(load_text(JOB, "job.yaml"))
    policy = schema["properties"]["policies"]["properties"]["default"]
    algorithm = resolve(schema, policy["properties"]["algorithm"])
    assert algorithm["additionalProperties"] is False
    assert "learning_rate" in algorithm["properties"]


def test_every_reference_of_the_schema_resolves() -> None:
    schema = job_schema(load_text(JOB, "job.yaml"))
    assert references(schema) <= {f"#/$defs/{name}" for name in schema["$defs"]}


def test_fields_of_the_schema_have_descriptions() -> None:
    assert resolve(job_schema(), {"$ref": "#/$defs/BatchSpec"})["properties"]["fragments"]["description"] == (
        "Fragments per trainer; the global batch is this times the policy's trainers."
    )
