"""The JSON schema of a job file, for editors."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import models_json_schema

from srlhpc.specs.experiment import ExperimentSpec
from srlhpc.specs.named_modules import AlgorithmSettings, EnvironmentSettings, NetworkSettings
from srlhpc.specs.spec import Spec

_BASE = {"type": "string", "description": "Another job file to inherit from, relative to this one."}


def job_schema(spec: ExperimentSpec | None = None) -> dict[str, Any]:
    """The schema of a job file.

    Args:
        spec: a job whose modules' own settings are described; None: their settings are open mappings.
    """
    models: list[type[Spec]] = [ExperimentSpec, *_OPEN, *(_modules(spec) if spec is not None else ())]
    references, schema = models_json_schema(
        [(model, "validation") for model in dict.fromkeys(models)], ref_template="#/$defs/{model}"
    )
    ref = {model: reference for (model, _), reference in references.items()}
    definitions = schema["$defs"]
    for model in _OPEN:
        definitions[_name(ref[model])]["additionalProperties"] = True
    root = definitions.pop(_name(ref[ExperimentSpec]))
    root["properties"] = {"base": _BASE, **root["properties"]}
    root["anyOf"] = [{"required": ["base"]}, {"required": root.pop("required")}]
    if spec is not None:
        root["properties"]["environment"] = ref[type(spec.environment)]
        root["properties"]["policies"]["properties"] = {
            name: _policy(definitions, ref[type(policy.network)], ref[type(policy.algorithm)])
            for name, policy in spec.policies.items()
        }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **root, "$defs": definitions}


_OPEN: list[type[Spec]] = [EnvironmentSettings, NetworkSettings, AlgorithmSettings]
"""Bases of module settings: what else a mapping holds depends on the module that it names."""


def _modules(spec: ExperimentSpec) -> list[type[Spec]]:
    found: list[type[Spec]] = [type(spec.environment)]
    for policy in spec.policies.values():
        found += [type(policy.network), type(policy.algorithm)]
    return found


def _policy(definitions: dict[str, Any], network: dict[str, Any], algorithm: dict[str, Any]) -> dict[str, Any]:
    policy: dict[str, Any] = definitions["PolicySpec"]
    return {**policy, "properties": {**policy["properties"], "network": network, "algorithm": algorithm}}


def _name(reference: dict[str, Any]) -> str:
    return str(reference["$ref"]).removeprefix("#/$defs/")
