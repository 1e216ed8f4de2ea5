"""Finding runs, by name, id or `latest`, in the folder of all runs."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from srlhpc.errors import UserError, did_you_mean
from srlhpc.runs.closed_runs import why_closed
from srlhpc.runs.creation import _is_folder_name, is_run
from srlhpc.runs.paths import RunPaths

_SHOWN = 10


def runs_root(given: str | os.PathLike[str] | None) -> Path:
    """Where runs are: the given folder, else $SRLHPC_ROOT, else ./runs; it need not exist yet.

    Raises:
        UserError: it is something else than a folder.
    """
    folder = Path(given or os.environ.get("SRLHPC_ROOT") or "runs").absolute()
    try:
        if not stat.S_ISDIR(folder.stat().st_mode):
            raise UserError(f"--root: {folder} is no folder; name the folder of all runs")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise UserError(f"--root: {folder}: {error.strerror}; name another folder") from None
    return folder


def all_runs(root: Path) -> list[RunPaths]:
    """Every run under a root, oldest first; not what is no run, or of another user and may not be looked at."""
    found = [RunPaths(file.parent) for file in root.glob("*/run.json") if why_closed(file.parent) is None]
    return sorted((paths for paths in found if is_run(paths)), key=lambda paths: (paths.id, paths.name))


def find_run(root: Path, wanted: str) -> RunPaths:
    """The run that the user means: an exact name, an id, `latest`, or the unique beginning of a name or an id.

    Raises:
        UserError: there is none, or several names and ids begin so, or it is another user's.
    """
    if _is_folder_name(wanted) and (closed := why_closed(root / wanted)) is not None:
        raise UserError(f"{closed}; ask for read permission, or name another run")
    if _is_folder_name(wanted) and (root / wanted / "run.json").is_file():
        return RunPaths(root / wanted)
    runs = {paths.id: paths for paths in all_runs(root)}
    if wanted in runs:
        return runs[wanted]
    if wanted == "latest" and runs:
        # Ids sort by the time of their runs.
        return runs[max(runs)]
    begun = [
        paths for paths in runs.values() if wanted and (paths.id.startswith(wanted) or paths.name.startswith(wanted))
    ]
    if len(begun) == 1:
        return begun[0]
    if begun:
        raise UserError(_several(wanted, begun, root))
    hint = did_you_mean(wanted, [paths.name for paths in runs.values()]) if runs else "; it has no runs"
    stop = "" if hint.endswith("?") else "."
    raise UserError(
        f"no run '{wanted}' in {root}{hint}{stop} Runs are looked for in --root, else $SRLHPC_ROOT, else ./runs."
    )


def _several(wanted: str, begun: Sequence[RunPaths], root: Path) -> str:
    newest = sorted(begun, key=lambda paths: paths.id, reverse=True)[:_SHOWN]
    more = f" and {len(begun) - _SHOWN} older ones" if len(begun) > _SHOWN else ""
    named = ", ".join(f"{paths.name} ({paths.id})" for paths in newest)
    return f"the names or ids of {len(begun)} runs in {root} begin with '{wanted}': {named}{more}. Give more of it."
