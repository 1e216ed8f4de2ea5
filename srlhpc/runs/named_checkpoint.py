"""The checkpoint that a user names: a file, `RUN@UPDATES`, `RUN@TAG`, or of a run the newest whole one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srlhpc.data.checkpoint_names import name_of, updates_of
from srlhpc.errors import UserError
from srlhpc.runs.checkpoints import all_checkpoints, checkpoint_folder, checkpoint_named, run_around
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.search import find_run
from srlhpc.runs.versions import updates_named, version_files


@dataclass(frozen=True)
class NamedCheckpoint:
    """A checkpoint and where it comes from."""

    file: Path
    tree: Mapping[str, Any]
    """What is in it."""
    run: RunPaths | None
    """The run that wrote it; None where the file lies outside of its folder."""
    skipped: Sequence[str] = ()
    """What is wrong with each newer file of the run."""

    @property
    def updates(self) -> int:
        return int(self.tree["meta"]["updates"])

    @property
    def label(self) -> str:
        """`RUN@UPDATES`, else the name of the file."""
        return self.file.name if self.run is None else f"{self.run.name}@{self.updates}"


def find_checkpoint(root: Path, wanted: str) -> NamedCheckpoint:
    """The checkpoint that is meant.

    Args:
        root: the folder of all runs.
        wanted: a file; or a run as `find_run` takes it, with `@UPDATES` or `@TAG` behind it or without.

    Raises:
        UserError: there is none, or it is not whole.
    """
    from srlhpc.data.checkpoint import read_checkpoint

    file = Path(wanted).absolute()
    if file.is_file():
        return NamedCheckpoint(file, read_checkpoint(file), run_around(file))
    if file.suffix == ".h5":
        raise UserError(f"there is no file {file}; name a checkpoint file, RUN or RUN@UPDATES")
    name, at, updates = wanted.partition("@")
    run = find_run(root, name)
    if at:
        return _after(run, updates)
    newest = checkpoint_folder(run).newest_valid()
    if newest is None:
        raise UserError(f"run {run.name} has no checkpoint yet; one is written after its first update")
    return NamedCheckpoint(newest.path, newest.tree, run, newest.problems)


def _after(run: RunPaths, wanted: str) -> NamedCheckpoint:
    """What a run wrote after so many updates of each policy, or under that tag: a checkpoint, or versions of all.

    A checkpoint is named by the updates of the run's first policy, so it counts only where others have made as many.
    """
    from srlhpc.data.checkpoint import read_checkpoint

    updates = updates_named(run, wanted)
    if updates is None:
        raise UserError(
            f"'{run.name}@{wanted}': behind the @ stands a number of updates, as in {run.name}@100, or a tag of the "
            "run's versions"
        )
    file = checkpoint_named(run, name_of(updates))
    if file.exists():
        tree = read_checkpoint(file)
        counts = [part["counters"]["updates"] for part in tree.get("policies", {}).values() if "counters" in part]
        if all(int(count) == updates for count in counts):
            return NamedCheckpoint(file, tree, run)
    versions = version_files(run)
    found = [file for files in versions.values() for file in files if updates_of(file) == updates]
    if found and len(found) == len(versions):
        trees = [read_checkpoint(file) for file in found]
        policies = {name: part for tree in trees for name, part in tree["policies"].items()}
        return NamedCheckpoint(found[0], {**trees[0], "policies": policies}, run)
    known = [path.name for path in all_checkpoints(run)]
    known += [f"{len(files)} versions of {policy}" for policy, files in versions.items()]
    if file.exists():
        raise UserError(
            f"'{run.name}@{wanted}': {file.name} counts updates of the run's first policy, and others had made more or "
            f"fewer, while there are no versions after {updates}; name the file itself: {file}"
        )
    raise UserError(
        f"run {run.name} has no checkpoint {file.name}, nor such versions; it has: {', '.join(known) or 'none'}; "
        f"srlhpc checkpoint list {run.typed} lists them"
    )
