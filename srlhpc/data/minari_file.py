"""Reads local data sets of Minari (minari.farama.org, "Dataset Standards"), without that package.

A data set is a folder with `metadata.json`, which has the spaces, and `main_data.hdf5`, which has a group for each
episode: `observations` of T + 1 entries (Dicts are groups), `actions`, `rewards`, `terminations` and `truncations` of
T. Until Minari 0.4 the file's attributes have what `metadata.json` has today.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from srlhpc.data.atomic import read_json
from srlhpc.data.blocks import OBSERVATION
from srlhpc.data.episode_file import HDF5_ERRORS, open_hdf5
from srlhpc.data.episodes import EpisodeField, Episodes
from srlhpc.data.layout import Array
from srlhpc.data.minari_spaces import Actions, Part, actions_of, observation_parts
from srlhpc.environment import ArraySpec, Kind
from srlhpc.errors import UserError

MINARI_FILE = "main_data.hdf5"
"""What a data set keeps its episodes in."""
_NO_SUCH = f"name the folder of a data set of Minari, or its {MINARI_FILE}"
_FLAG = ArraySpec((), "bool")


def read_minari(path: Path, kind: Kind | None = None) -> Episodes:
    """A data set, whole in memory: one agent, whose observations and actions are those of `envs.gymnasium`.

    There are `obs.KEY`, `actions`, `rewards`, `terminated` and `truncated`; nobody knows how likely the actions were.
    An episode whose last record ends it in no way was cut there (`truncated`); where both ends are set, it terminated.

    Args:
        path: its folder, the folder `data` in it, or the file `main_data.hdf5`.
        kind: agents that must see and do the same; None: whatever they do.

    Raises:
        UserError: there is none, it is in another form than HDF5, its images are compressed with loss, its spaces are
            not understood, or do not fit the kind.
    """
    file = _found(path)
    with open_hdf5(file, _NO_SUCH) as h5:
        try:
            episodes = _read(file, h5)
        except UserError as error:
            raise UserError(f"{file}: {error}") from None
        except HDF5_ERRORS as error:
            raise UserError(f"{file}: is damaged, or no data set of Minari: {error}; use a copy of it") from None
    if kind is not None:
        episodes.require(kind)
    return episodes


def _found(path: Path) -> Path:
    """The data set's file."""
    if not path.is_dir():
        return path
    for folder in (path / "data", path):
        if (folder / MINARI_FILE).exists():
            return folder / MINARI_FILE
        if form := _metadata(folder).get("data_format"):
            raise UserError(
                f"{path}: is a data set of Minari in the form '{form}', and only 'hdf5' is read; write it anew with "
                "data_format='hdf5'"
            )
    raise UserError(f"{path}: holds no {MINARI_FILE}; {_NO_SUCH}")


def _metadata(folder: Path) -> dict[str, Any]:
    return read_json(folder / "metadata.json") or {}


def _read(file: Path, h5: h5py.File) -> Episodes:
    said = {**dict(h5.attrs), **_metadata(file.parent)}
    for name in ("observation_space", "action_space"):
        if name not in said:
            raise UserError(f"says nothing of its {name}; load and save it with Minari 0.5, which adds it")
    parts = dict(observation_parts(json.loads(said["observation_space"])))
    actions = actions_of(json.loads(said["action_space"]))
    names = sorted((name for name in h5 if re.fullmatch(r"episode_\d+", name)), key=_number)
    names = [name for name in names if len(h5[name]["rewards"])]
    if not names:
        raise UserError("has no episode with a record")
    offsets = np.cumsum([0, *(len(h5[name]["rewards"]) + 1 for name in names)])
    arrays = _empty(parts, actions, int(offsets[-1]))
    returns = [
        _fill({each: array[start:stop] for each, array in arrays.items()}, h5[name], parts, actions)
        for name, start, stop in zip(names, offsets[:-1], offsets[1:], strict=True)
    ]
    kind = Kind("agent", ("agent",), {key: part.spec for key, part in parts.items()}, actions.space)
    fields = {name: EpisodeField(array, name.startswith(OBSERVATION)) for name, array in arrays.items()}
    numbers = np.array([_number(name) for name in names])
    return Episodes(str(file), kind, fields, offsets, np.zeros_like(numbers), numbers, np.array(returns))


def _number(name: str) -> int:
    return int(name.removeprefix("episode_"))


def _empty(parts: Mapping[str, Part], actions: Actions, rows: int) -> dict[str, Array]:
    specs = {OBSERVATION + key: part.spec for key, part in parts.items()}
    specs |= {"actions": actions.space.array, "rewards": ArraySpec((), "float32")}
    specs |= {"terminated": _FLAG, "truncated": _FLAG}
    return {name: np.zeros((rows, *spec.shape), spec.dtype) for name, spec in specs.items()}


def _fill(rows: Mapping[str, Array], episode: h5py.Group, parts: Mapping[str, Part], actions: Actions) -> float:
    """Writes an episode's T records and its last observation, `[T + 1, ...]` each; returns the sum of its rewards."""
    records = len(rows["rewards"]) - 1
    for key, part in parts.items():
        rows[OBSERVATION + key][:] = part.convert(_stored(episode, part.place, records + 1, part.stored))
    rows["actions"][:-1] = actions.convert(_stored(episode, "actions", records, actions.stored))
    rewards = _stored(episode, "rewards", records, ())
    rows["rewards"][:-1] = rewards
    terminated, truncated = rows["terminated"], rows["truncated"]
    terminated[:-1] = _stored(episode, "terminations", records, ())
    truncated[:-1] = _stored(episode, "truncations", records, ())
    if (terminated[:-2] | truncated[:-2]).any():
        raise UserError(f"{episode.name} goes on after an end; only whole episodes are read")
    truncated[-2] = not terminated[-2]
    return float(rewards.sum(dtype=np.float64))


def _stored(episode: h5py.Group, place: str, entries: int, shape: tuple[int, ...]) -> Array:
    """One array of an episode.

    Raises:
        UserError: it has another shape.
    """
    found: Array = episode[place][()]
    if not shape and found.shape == (entries, 1):
        # Flags and rewards of older versions.
        found = found[:, 0]
    if found.shape == (entries, *shape):
        return found
    if len(shape) > 1 and found.shape[:1] == (entries,) and found.ndim <= 2:
        raise UserError(
            f"{episode.name}/{place} holds images as JPEG, which loses something of them; write the data set anew with "
            "jpeg_encoding=False"
        )
    raise UserError(f"{episode.name}/{place} has the shape {list(found.shape)}, not {[entries, *shape]}")
