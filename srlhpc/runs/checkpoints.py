"""Where a run's checkpoints are: in its folder and, where a cluster's profile names one, in a spare place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from srlhpc.data.atomic import read_json
from srlhpc.data.checkpoint_names import checkpoint_files
from srlhpc.data.forgiving import FORGIVEN_SECONDS, FileSystemLostError
from srlhpc.runs.creation import is_run
from srlhpc.runs.paths import RunPaths

if TYPE_CHECKING:
    from srlhpc.data.checkpoint_folder import CheckpointFolder


def spare_folder(paths: RunPaths) -> Path | None:
    """The run's folder in the spare place; None if its profile names none."""
    place = ((read_json(paths.slurm) or {}).get("cluster") or {}).get("checkpoint_spare")
    return Path(place) / paths.id if place else None


def checkpoint_folder(paths: RunPaths, keep: int = 3, keep_best: int = 1) -> CheckpointFolder:
    """The run's checkpoints, for those who read or write them."""
    from srlhpc.data.checkpoint_folder import CheckpointFolder

    return CheckpointFolder(paths.checkpoints, keep, keep_best, spare=spare_folder(paths))


def all_checkpoints(paths: RunPaths, patience: float = FORGIVEN_SECONDS) -> list[Path]:
    """The run's checkpoint files, fewest updates first."""
    spare = spare_folder(paths)
    return checkpoint_files(paths.checkpoints, *([spare] if spare else []), patience=patience)


def checkpoint_named(paths: RunPaths, name: str) -> Path:
    """The file of that name; if it is nowhere, its path in the run's folder."""
    return next((path for path in all_checkpoints(paths) if path.name == name), paths.checkpoints / name)


def run_around(file: Path) -> RunPaths | None:
    """The run in whose folder a checkpoint or version file lies; None if it lies elsewhere."""
    above = file.absolute().parents
    for folder, kept in ((above[1], above[0]), (above[2], above[1])) if len(above) > 2 else ():
        paths = RunPaths(folder)
        if kept in (paths.checkpoints, paths.versions) and is_run(paths):
            return paths
    return None


def last_checkpoint(paths: RunPaths) -> str:
    """`the last checkpoint is updates-000000042.h5`."""
    try:
        files = all_checkpoints(paths, patience=1.0)
    except (FileSystemLostError, OSError) as error:
        return f"checkpoints cannot be listed: {error}"
    if not files:
        return "there is no checkpoint"
    last = files[-1]
    return f"the last checkpoint is {last.name}" + (f" in {last.parent}" if last.parent != paths.checkpoints else "")
