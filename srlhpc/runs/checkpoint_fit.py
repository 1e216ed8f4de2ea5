"""Whether a checkpoint can be gone on with by a spec: known from what was written with it, without torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from srlhpc.data.atomic import read_json
from srlhpc.environment import Kind, Spaces
from srlhpc.errors import UserError
from srlhpc.plan.layouts import policy_shapes
from srlhpc.plan.plan import Plan
from srlhpc.runs.paths import RunPaths
from srlhpc.specs.load import load_text
from srlhpc.specs.named_modules import AlgorithmSettings
from srlhpc.specs.policy import PolicySpec
from srlhpc.specs.problems import shown

_REMEDY = "leave it as it was, or start anew with a run of its own: srlhpc run JOB --set ..."


def check_fit(tree: Mapping[str, Any], file: Path, source: RunPaths, plan: Plan) -> None:
    """Refuses a plan whose policies are not those of the checkpoint.

    Args:
        tree: the checkpoint.
        file: where it was read from.
        source: the run that wrote it.
        plan: what shall go on from it.

    Raises:
        UserError: a policy, its network, algorithm, normalisation, observations or actions differ; one line each.
    """
    found = [*_missing(tree, plan), *_settings(tree, file, plan), *_spaces(source, plan)]
    if found:
        raise UserError("\n".join(f"{line}. {file.name} cannot hold that: {_REMEDY}" for line in dict.fromkeys(found)))


def _missing(tree: Mapping[str, Any], plan: Plan) -> Iterator[str]:
    has = tree.get("policies", {})
    for name in plan.trained_policies:
        if name not in has:
            yield f"policies.{name}: the checkpoint has no such policy (it has {', '.join(has)}), the spec trains it"


def _settings(tree: Mapping[str, Any], file: Path, plan: Plan) -> Iterator[str]:
    try:
        before = load_text(str(tree["meta"]["spec"]), file.name)
    except (KeyError, UserError):
        # Written by another version, or with modules that are gone; then the ranks compare the arrays themselves.
        return
    for name, new in plan.spec.policies.items():
        given = before.policies[name].weights_from if name in before.policies else new.weights_from
        if given != new.weights_from:
            yield (
                f"policies.{name}.weights_from: the run began with {given} and keeps that, the spec names "
                f"{new.weights_from}"
            )
    for name in plan.trained_policies:
        if name not in before.policies:
            continue
        old, new = before.policies[name], plan.spec.policies[name]
        yield from network_differences(name, old, new)
        free = _not_in_arrays(old.algorithm, new.algorithm, plan.kind_of(name))
        yield from _differences(
            f"policies.{name}.algorithm", old.algorithm.model_dump(), new.algorithm.model_dump(), free
        )


def network_differences(name: str, old: PolicySpec, new: PolicySpec) -> Iterator[str]:
    """What of a policy's parameters has another form in a checkpoint, a line each.

    Args:
        name: of the policy in the new spec.
        old: as the checkpoint has it.
        new: as the spec has it.
    """
    free = new.network.not_in_checkpoints
    yield from _differences(f"policies.{name}.network", old.network.model_dump(), new.network.model_dump(), free)
    yield from _differences(f"policies.{name}.normalize", old.normalize.model_dump(), new.normalize.model_dump())


def _not_in_arrays(old: AlgorithmSettings, new: AlgorithmSettings, kind: Kind) -> tuple[str, ...]:
    """Settings of an algorithm that can change without other arrays in the checkpoint."""
    if type(old) is not type(new):
        return ()
    form = old.form(kind)
    changed = {key: old.model_copy(update={key: getattr(new, key)}) for key in type(new).model_fields if key != "kind"}
    return tuple(key for key, one in changed.items() if one.form(kind) == form)


def _differences(
    path: str, old: Mapping[str, Any], new: Mapping[str, Any], free: tuple[str, ...] = ()
) -> Iterator[str]:
    if old.get("kind") != new.get("kind"):
        old, new = {"kind": old.get("kind")}, {"kind": new.get("kind")}
    for key in {**old, **new}:
        if key not in free and old.get(key) != new.get(key):
            yield f"{path}.{key}: the checkpoint has {_value(old.get(key))}, the spec wants {_value(new.get(key))}"


def _spaces(source: RunPaths, plan: Plan) -> Iterator[str]:
    last = source.last_attempt()
    written = read_json(last.spaces) if last else None
    if written is None:
        return
    kinds = {agent: kind for kind in Spaces.from_json(written).kinds for agent in kind.agents}
    for name in plan.trained_policies:
        new = policy_shapes(plan, name).kind
        old = next((kinds[agent] for agent in new.agents if agent in kinds), None)
        if old is not None:
            yield from kind_differences(f"environment: policy {name}", old, new)


def kind_differences(where: str, old: Kind, new: Kind) -> Iterator[str]:
    """What agents see and do otherwise than those of a checkpoint, a line each; `where` begins it."""
    if dict(old.observations) != dict(new.observations):
        seen, shows = ({key: spec.shape for key, spec in kind.observations.items()} for kind in (old, new))
        yield f"{where} of the checkpoint sees observations {seen}, the spec's environment shows {shows}"
    if old.actions != new.actions:
        yield f"{where} of the checkpoint acts by {old.actions}, the spec's environment takes {new.actions}"


def _value(value: Any) -> str:
    return (
        str(list(value)) if isinstance(value, list | tuple) else str(value) if isinstance(value, dict) else shown(value)
    )
