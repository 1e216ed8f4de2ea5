"""Reads recordings (data/episode_format.py): what is in one, and the episodes of its policies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

import h5py
import numpy as np

from srlhpc.data.blocks import OBSERVATION
from srlhpc.data.checkpoint_entries import decoded
from srlhpc.data.episode_format import (
    AGENT,
    EPISODE,
    FORMAT,
    FORMAT_VERSION,
    HAS_LAST,
    OFFSETS,
    POLICIES,
    RECORDS,
    RETURN,
)
from srlhpc.data.episodes import EpisodeField, Episodes
from srlhpc.data.layout import Array
from srlhpc.environment import ArraySpec, Kind, Spaces
from srlhpc.errors import UserError, did_you_mean

HDF5_ERRORS = (
    *(OSError, KeyError, IndexError, ValueError, TypeError, RuntimeError, OverflowError, MemoryError, AttributeError),
)
"""What h5py raises where a file is damaged, and what reads a shape or a number that is none."""
_RECORD_ONE = "`srlhpc record RUN --out FILE` writes one"


class EpisodeFile:
    """A recording that is open; use it in a `with` statement, or call `close`.

    Args:
        path: the file.

    Raises:
        UserError: there is no such file, it is truncated, damaged, of another format or version.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._h5 = open_hdf5(path, _RECORD_ONE)
        try:
            self._check_format()
            self.spaces = Spaces.from_json(json.loads(str(self._h5.attrs["spaces"])))
            self.policies = tuple(self._h5[POLICIES])
        except HDF5_ERRORS as error:
            self._h5.close()
            if isinstance(error, UserError):
                raise
            self._refuse(error)

    @property
    def attributes(self) -> Mapping[str, Any]:
        """What is said of the whole file: run, updates, seed and others (docs/recording.md)."""
        return dict(self._h5.attrs)

    def episodes(self, policy: str, kind: Kind | None = None) -> Episodes:
        """The sequences of a policy, whose arrays stay in the file until they are asked for.

        Args:
            policy: its name.
            kind: agents that must see and do the same; None: whatever they do.

        Raises:
            UserError: there is no such policy, the kind does not fit, or the file is damaged.
        """
        if policy not in self.policies:
            raise UserError(f"{self.path}: has no policy '{policy}'{did_you_mean(policy, list(self.policies))}")
        try:
            found = self._episodes(policy)
        except UserError:
            raise
        except HDF5_ERRORS as error:
            self._refuse(error)
        if kind is not None:
            found.require(kind)
        return found

    def _episodes(self, policy: str) -> Episodes:
        group = self._h5[POLICIES][policy]
        kind = {each.name: each for each in self.spaces.kinds}[str(group.attrs["kind"])]
        offsets, agents, episodes = (np.asarray(group[name], np.int64) for name in (OFFSETS, AGENT, EPISODE))
        returns = np.asarray(group[RETURN], np.float64)
        frames = {OBSERVATION + key: stack.frames for key, stack in kind.stacks.items()}
        fields: dict[str, EpisodeField] = {}
        for stored, dataset in group[RECORDS].items():
            name = decoded(stored)
            entries = _Stored(self.path, dataset)
            fields[name] = EpisodeField(entries, bool(dataset.attrs[HAS_LAST]), frames.get(name, 1))
        made = Episodes(f"{self.path}, policy '{policy}'", kind, fields, offsets, agents, episodes, returns)
        if wrong := _inconsistency(made):
            raise ValueError(wrong)
        return made

    def _check_format(self) -> None:
        if self._h5.attrs.get("format") != FORMAT:
            what = "; it looks like a data set of Minari" if "episode_0" in self._h5 else ""
            raise UserError(f"{self.path}: is HDF5, but no recording of srlhpc{what}; {_RECORD_ONE}")
        version = int(self._h5.attrs["format_version"])
        if version != FORMAT_VERSION:
            advice = "update srlhpc to read it" if version > FORMAT_VERSION else "record it anew"
            raise UserError(
                f"{self.path}: is a recording of the format version {version}, and this srlhpc reads version "
                f"{FORMAT_VERSION}; {advice}"
            )

    def _refuse(self, error: Exception) -> NoReturn:
        raise UserError(f"{self.path}: is damaged: {error}; use a copy of it, or record anew") from None

    def close(self) -> None:
        """Closes the file; what was asked of it stays."""
        self._h5.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()


def open_hdf5(path: Path, advice: str) -> h5py.File:
    """Opens an HDF5 file that is never written again.

    Raises:
        UserError: it cannot be read, is none, or not all of it is there; where there is none it says `advice`.
    """
    try:
        # Shared file systems often refuse locks; a finished file needs none.
        return h5py.File(path, "r", locking=False)
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file; {advice}") from None
    except IsADirectoryError:
        raise UserError(f"{path}: is a folder, not an HDF5 file; {advice}") from None
    except PermissionError:
        raise UserError(f"{path}: may not be read by this user; ask its owner for a copy") from None
    except OSError as error:
        if not path.stat().st_size or "file signature not found" in str(error):
            raise UserError(f"{path}: is no HDF5 file; {advice}") from None
        what = "truncated, only a part of it is there" if "truncated file" in str(error) else f"damaged: {error}"
        raise UserError(f"{path}: is {what}; copy it again") from None


class _Stored:
    """An array in a file; what cannot be read of it is told with the file."""

    def __init__(self, path: Path, dataset: h5py.Dataset) -> None:
        self._path, self._dataset = path, dataset
        self.shape: tuple[int, ...] = dataset.shape
        self.dtype: np.dtype[Any] = dataset.dtype

    def __getitem__(self, places: slice) -> Array:
        try:
            found: Array = self._dataset[places]
        except HDF5_ERRORS as error:
            raise UserError(
                f"{self._path}: is damaged: {self._dataset.name} cannot be read: {error}; use a copy of it"
            ) from None
        return found


def _inconsistency(episodes: Episodes) -> str:
    """What does not fit together in a recording; else empty."""
    offsets, sequences = episodes.offsets, episodes.num_sequences
    if len(offsets) != sequences + 1 or offsets[0] != 0 or (np.diff(offsets) < 2).any():
        return f"its offsets are none of {sequences} sequences"
    if len(episodes.episodes) != sequences or len(episodes.returns) != sequences:
        return "agents, episodes and returns are not as many"
    declared = _declared(episodes.kind)
    for name in declared.keys() - episodes.fields.keys():
        return f"it has no field '{name}'"
    for name, f in episodes.fields.items():
        rows = episodes.num_rows + sequences * (f.frames - 1)
        if f.entries.shape[0] != rows:
            return f"field '{name}' has {f.entries.shape[0]:,} entries, not {rows:,}"
        if name in declared and f.array != declared[name]:
            return f"field '{name}' is {f.array}, not {declared[name]}"
    return ""


def _declared(kind: Kind) -> dict[str, ArraySpec]:
    """Fields that every recording of the kind has."""
    flag = ArraySpec((), "bool")
    fields = {OBSERVATION + key: array for key, array in kind.observations.items()}
    fields |= {
        "actions": kind.actions.array,
        "rewards": ArraySpec((), "float32"),
        "log_probs": ArraySpec((), "float32"),
    }
    if kind.has_action_masks:
        fields["action_masks"] = ArraySpec((kind.actions.mask_size,), "bool")
    return fields | {"terminated": flag, "truncated": flag}
