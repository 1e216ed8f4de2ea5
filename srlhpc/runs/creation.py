"""Making runs: their ids, names and folders."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import srlhpc
from srlhpc.data.atomic import read_json, write_atomically, write_json
from srlhpc.errors import UserError
from srlhpc.runs.closed_runs import why_closed
from srlhpc.runs.paths import RunPaths

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_LONGEST_NAME = 100
_LONGEST_FILE = 255
"""Bytes of a folder's name that file systems take."""


def new_id(seconds: float, entropy: int) -> str:
    """A run id of ten letters and digits: 1/256 seconds since 1970, so that ids sort by time, and ten random bits."""
    # Forty bits of time, which last until 2106, before ten random ones: ten letters of five bits.
    value = (int(seconds * 256) << 10) | (entropy & 0x3FF)
    return "".join(_ALPHABET[(value >> shift) & 31] for shift in range(45, -1, -5))


def check_name(name: str, root: Path) -> None:
    """Refuses a name that cannot be a run's.

    Raises:
        UserError: it has other characters, means something else, or is in use.
    """
    if not _NAME.fullmatch(name) or name == "latest" or len(name) > _LONGEST_NAME:
        shown = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."
        raise UserError(
            f"'{shown}' cannot be a run's name: it may have letters, digits, '.', '_' and '-', "
            f"must not start with '.' or '-', must not be 'latest', and has at most {_LONGEST_NAME} characters. "
            "Choose another with --name."
        )
    if os.path.lexists(root / name):
        raise UserError(
            f"the name '{name}' is in use: {root / name} exists. Choose another with --name, "
            f"resume that run by `srlhpc resume {name}`, or remove its folder."
        )


def create_run(root: Path, name: str | None, job: str, spec_text: str, seed: int, command: Sequence[str]) -> RunPaths:
    """Makes a run's folder with `spec.yaml` and `run.json`.

    Args:
        root: folder of all runs; made if missing.
        name: the run's name; None for the job's name and the id.
        job: the job's name, the stem of its file.
        spec_text: the resolved spec.
        seed: the spec's seed.
        command: what the user typed.

    Raises:
        UserError: the name is no name or in use, or the folder cannot be made.
    """
    identity = new_id(time.time(), int.from_bytes(os.urandom(2), "little"))
    if name is None:
        stem = re.sub(r"[^A-Za-z0-9._-]", "-", job).lstrip(".-")[: _LONGEST_NAME - len(identity) - 1]
        name = f"{stem or 'run'}-{identity}"
    check_name(name, root)
    paths = RunPaths(root / name)
    try:
        root.mkdir(parents=True, exist_ok=True)
        paths.folder.mkdir()
    except FileExistsError:
        raise UserError(f"{paths.folder} exists: it is in use or no folder. Choose another --name or --root.") from None
    except OSError as error:
        raise UserError(f"{paths.folder}: cannot be made: {error.strerror}. Choose another folder by --root.") from None
    content = {
        "id": identity,
        "name": name,
        "job": job,
        "seed": seed,
        "created": time.time(),
        "code": code_version(),
        "command": list(command),
        "folder": os.getcwd(),
    }
    with removed_unless_done(paths):
        paths.checkpoints.mkdir()
        paths.attempts.mkdir()
        write_atomically(paths.spec, spec_text.encode())
        write_json(paths.run, content)
    return paths


@contextmanager
def removed_unless_done(paths: RunPaths) -> Iterator[None]:
    """Removes the folder of a new run again if the body fails.

    Raises:
        UserError: the body could not write, for example because the disk is full.
    """
    try:
        yield
    except BaseException as error:
        shutil.rmtree(paths.folder, ignore_errors=True)
        if isinstance(error, OSError):
            reason = error.strerror or str(error)
            raise UserError(
                f"{paths.folder}: cannot be written: {reason}. Make room, or choose another folder by --root."
            ) from None
        raise


def not_runs(root: Path) -> list[Path]:
    """Files that have the name of a run's identity and are none: broken ones, and those of other programs."""
    files = [file for file in sorted(root.glob("*/run.json")) if why_closed(file.parent) is None]
    return [file for file in files if not is_run(RunPaths(file.parent))]


def is_run(paths: RunPaths) -> bool:
    """Whether the folder has an identity that srlhpc has written."""
    # Not what would keep a reader waiting.
    identity = (read_json(paths.run) or {}) if paths.run.is_file() else {}
    return {"id", "name", "job", "command"} <= identity.keys() and isinstance(identity["id"], str)


def _is_folder_name(wanted: str) -> bool:
    """Whether this may name a folder in another: runs that were renamed may have names that no new run gets."""
    return wanted not in ("", ".", "..") and not {"/", "\0"} & set(wanted) and len(os.fsencode(wanted)) <= _LONGEST_FILE


def code_version() -> dict[str, Any]:
    """Which srlhpc this is: package version, and the git commit if it runs from a git checkout."""
    version: dict[str, Any] = {"version": srlhpc.__version__}
    package = Path(srlhpc.__file__).parent
    if shutil.which("git") and _git(package, "ls-files", "--error-unmatch", "__init__.py") is not None:
        version["commit"] = _git(package, "rev-parse", "HEAD")
        version["dirty"] = bool(_git(package, "status", "--porcelain", "--untracked-files=no"))
    return version


def write_code_diff(paths: RunPaths) -> None:
    """Writes `code.diff` if the code differs from its commit, so that it is known later what a job ran."""
    package = Path(srlhpc.__file__).parent
    if "commit" in code_version() and (diff := _git(package, "diff", "HEAD", "--", ":/")):
        write_atomically(paths.code_diff, (diff + "\n").encode())


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
