"""The versions of a run's policies: where they are, which one a name means, and what a status says of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from srlhpc.data.checkpoint_names import checkpoint_files, updates_of
from srlhpc.data.full_disk import size_text
from srlhpc.errors import UserError, counted, did_you_mean
from srlhpc.runs.paths import RunPaths

if TYPE_CHECKING:
    from srlhpc.data.version_folder import VersionFolder
    from srlhpc.specs.versions import VersionsSpec


def version_folder(paths: RunPaths, policy: str, spec: VersionsSpec) -> VersionFolder:
    """One policy's versions, for whoever writes them."""
    from srlhpc.data.version_folder import VersionFolder

    return VersionFolder(paths.versions_of(policy), spec.keep, spec.tags.values())


def version_files(paths: RunPaths) -> dict[str, list[Path]]:
    """The files of each policy that has any, fewest updates first."""
    folders = sorted(paths.versions.iterdir()) if paths.versions.is_dir() else []
    found = {folder.name: checkpoint_files(folder) for folder in folders if folder.is_dir()}
    return {policy: files for policy, files in found.items() if files}


def version_named(paths: RunPaths, policy: str, name: str) -> Path:
    """The version after so many updates, or of that tag.

    Args:
        paths: the run.
        policy: whose.
        name: a number of updates, or a tag of the run's spec.

    Raises:
        UserError: there is none.
    """
    files = {updates_of(file): file for file in version_files(paths).get(policy, [])}
    updates = updates_named(paths, name)
    if updates in files:
        return files[updates]
    tags = tags_of(paths)
    known = [*(tag for tag, at in tags.items() if at in files), *map(str, files)]
    if not files:
        what = f"run {paths.name} has no version of policy {policy} yet; it keeps some if its spec sets versions"
    elif updates is None:
        what = f"run {paths.name} has no version '{name}'{did_you_mean(name, known)}"
    else:
        what = f"run {paths.name} has no version of policy {policy} after {counted(updates, 'update')}"
        what += f", when '{name}' is due" if name in tags else ""
    raise UserError(what + (f"; it has: {', '.join(known)}" if files else ""))


def updates_named(paths: RunPaths, name: str) -> int | None:
    """The updates that a number or a tag of the run's spec means; None: there is no such tag."""
    return int(name) if name.isdecimal() else tags_of(paths).get(name)


def tags_of(paths: RunPaths) -> dict[str, int]:
    """Tag to updates, as the run's spec has them; the modules that it names need not be there."""
    written = yaml.safe_load(paths.spec.read_text()) or {}
    return dict((written.get("versions") or {}).get("tags") or {})


def versions_entry(paths: RunPaths) -> dict[str, dict[str, int]]:
    """What `status --json` says: of each policy that has versions how many, the newest's updates, bytes of all."""
    entry = {}
    for policy, files in version_files(paths).items():
        size = 0
        for file in files:
            # One may be pruned meanwhile.
            with suppress(OSError):
                size += file.stat().st_size
        entry[policy] = {"count": len(files), "newest_updates": updates_of(files[-1]), "bytes": size}
    return entry


def version_lines(state: Mapping[str, Any]) -> list[str]:
    """The same for people, a line a policy."""
    return [
        f"  versions of {policy}: {entry['count']:,}, the newest after {counted(entry['newest_updates'], 'update')}, "
        f"{size_text(entry['bytes'])} on disk"
        for policy, entry in state["versions"].items()
    ]
