"""Weights of another run, that a policy of a new one begins with: found, checked and copied before the start.

The copy lies in the new run's folder, so the run needs nothing of the other one afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srlhpc.data.atomic import read_json
from srlhpc.data.checkpoint_names import name_of
from srlhpc.environment import Kind, Spaces
from srlhpc.errors import UserError, did_you_mean
from srlhpc.plan.plan import Plan
from srlhpc.runs.checkpoint_fit import kind_differences, network_differences
from srlhpc.runs.checkpoints import checkpoint_folder, checkpoint_named, run_around
from srlhpc.runs.creation import is_run
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.versions import updates_named, version_files, version_named
from srlhpc.specs.load import load_text
from srlhpc.specs.policy import PolicySpec


@dataclass(frozen=True)
class Source:
    """A policy of a checkpoint."""

    file: Path
    policy: str
    """Its name there."""
    tree: Mapping[str, Any]
    """The whole checkpoint."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Name to array of what acts."""
        found: Mapping[str, Any] = self.tree["policies"][self.policy]["parameters"]
        return found

    @property
    def run(self) -> RunPaths | None:
        """The run that wrote it, if the file lies in its folder."""
        return run_around(self.file)


def copy_weights(plan: Plan, paths: RunPaths) -> None:
    """Copies what the policies of a new run begin with into its folder.

    Args:
        plan: of the new run.
        paths: of it.

    Raises:
        UserError: a checkpoint is not there or does not fit.
    """
    from srlhpc.data.checkpoint import write_checkpoint

    for name, source in sources(plan):
        paths.weights.mkdir(exist_ok=True)
        meta: dict[str, str | int] = {
            "file": str(source.file),
            "policy": source.policy,
            "updates": int(source.tree["policies"][source.policy]["counters"]["updates"]),
        }
        write_checkpoint(paths.weights_of(name), {"meta": meta, "parameters": source.parameters})


def check_weights(plan: Plan) -> None:
    """Refuses what `copy_weights` would, and copies nothing.

    Raises:
        UserError: a checkpoint is not there or does not fit.
    """
    for _ in sources(plan):
        pass


def sources(plan: Plan) -> Iterator[tuple[str, Source]]:
    """What the policies of a new run begin with, by name, checked one after the other; raises as `copy_weights`."""
    for name, spec in plan.spec.policies.items():
        if spec.weights_from is None:
            continue
        source = find_source(f"policies.{name}.weights_from", spec.weights_from, name)
        if found := list(_differences(source, name, spec, plan)):
            raise UserError("\n".join(found))
        yield name, source


def find_source(where: str, given: str, name: str) -> Source:
    """The policy that is meant.

    Args:
        where: path of the setting, for messages.
        given: a checkpoint or version file; or the folder of a run, whose newest whole checkpoint is meant; or that and
            `@` with the updates or tag of a version.
        name: of the policy, and of that of the checkpoint if it has several.

    Raises:
        UserError: there is none.
    """
    from srlhpc.data.checkpoint import read_checkpoint

    file = Path(given).absolute()
    if file.is_dir():
        newest = checkpoint_folder(RunPaths(file)).newest_valid() if is_run(RunPaths(file)) else None
        if newest is None:
            what = "has no whole checkpoint yet" if is_run(RunPaths(file)) else "is no folder of a run"
            raise UserError(f"{where}: {file} {what}; name a checkpoint file, or the folder of a run that has one")
        file, tree = newest.path, newest.tree
    else:
        file = file if file.exists() else _version(where, file, name)
        try:
            tree = read_checkpoint(file)
        except UserError as error:
            raise UserError(f"{where}: {error}") from None
    policies = list(tree.get("policies", {}))
    if len(policies) != 1 and name not in policies:
        raise UserError(
            f"{where}: {file} has the policies {', '.join(policies)}{did_you_mean(name, policies)}; give this policy "
            "the name of the one that is meant"
        )
    return Source(file, name if name in policies else policies[0], tree)


def _version(where: str, given: Path, name: str) -> Path:
    """The file of `RUN@UPDATES` or `RUN@TAG`; of the policy of that name, or of the only one that has versions.

    Raises:
        UserError: there is none.
    """
    folder, _, version = given.name.rpartition("@")
    paths = RunPaths(given.with_name(folder or given.name))
    if not folder or not is_run(paths):
        raise UserError(
            f"{where}: there is no {given}; name a checkpoint file, the folder of a run, or a version: RUN@UPDATES"
        )
    policies = list(version_files(paths))
    policy = policies[0] if len(policies) == 1 else name
    try:
        return version_named(paths, policy, version)
    except UserError as error:
        checkpoint = _checkpoint_after(paths, policy, version)
        if checkpoint is None:
            raise UserError(f"{where}: {error}") from None
        return checkpoint


def _checkpoint_after(paths: RunPaths, policy: str, version: str) -> Path | None:
    """A checkpoint of the run in which a policy has made so many updates; None if there is none."""
    from srlhpc.data.checkpoint import read_checkpoint

    updates = updates_named(paths, version)
    if updates is None or not (file := checkpoint_named(paths, name_of(updates))).exists():
        return None
    part = read_checkpoint(file).get("policies", {}).get(policy)
    return file if part is not None and int(part["counters"]["updates"]) == updates else None


def _differences(source: Source, name: str, spec: PolicySpec, plan: Plan) -> Iterator[str]:
    """What of a policy is otherwise in the checkpoint, a line each with what to do."""
    try:
        before = load_text(str(source.tree["meta"]["spec"]), source.file.name).policies[source.policy]
    except (KeyError, UserError):
        # Written by another version, or with modules that are gone; then the ranks compare the arrays themselves.
        before = None
    if before is not None:
        for line in network_differences(name, before, spec):
            yield f"{line}; policies.{name} begins with its weights (weights_from): make them equal"
        if not _acts_alike(before, spec, plan.kind_of(name)):
            yield (
                f"policies.{name}.algorithm: the checkpoint's network was built for {before.algorithm.kind}, and for "
                f"{spec.algorithm.kind} as it is set here what acts looks otherwise; policies.{name} begins with its "
                "weights (weights_from): take the algorithm and settings of the run that they are from"
            )
    last = source.run.last_attempt() if source.run else None
    written = read_json(last.spaces) if last else None
    if written is None:
        return
    kinds = {agent: kind for kind in Spaces.from_json(written).kinds for agent in kind.agents}
    now = plan.kind_of(name)
    then = next((kinds[agent] for agent in now.agents if agent in kinds), next(iter(kinds.values())))
    for line in kind_differences(f"environment: policy {name}", then, now):
        yield f"{line}; name a checkpoint of these agents in policies.{name}.weights_from"


def _acts_alike(before: PolicySpec, now: PolicySpec, kind: Kind) -> bool:
    """Whether the acting parameters of both have one form; not if the former is of a rule for other agents."""
    try:
        then = _acting(before, kind)
    except UserError:
        return False
    return then == _acting(now, kind)


def _acting(spec: PolicySpec, kind: Kind) -> tuple[str, object]:
    """What the form of a policy's acting parameters follows from, beside its network."""
    needs = spec.algorithm.needs(kind)
    return spec.network.offers(kind)[needs.contract].build, needs.head
