"""Finds the episodes of some files: recordings of srlhpc, and local data sets of Minari."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from srlhpc.data.episode_file import EpisodeFile
from srlhpc.data.episodes import Episodes, joined
from srlhpc.data.layout import Array
from srlhpc.data.minari_file import MINARI_FILE, read_minari
from srlhpc.environment import ActionSpace, Continuous, Kind
from srlhpc.errors import UserError


def read_episodes(files: Sequence[str], policy: str | None, own: str, kind: Kind) -> Episodes:
    """The episodes of all files together, in memory.

    Args:
        files: recordings, and folders of data sets of Minari.
        policy: its name in recordings; None for `own`, or the only one.
        own: name of the policy that learns.
        kind: its agents, who must see and do the same.

    Raises:
        UserError: a file is missing or damaged, or does not fit.
    """
    return joined([found.in_memory() for _, found in _each(files, policy, own, kind)])


def check_episodes(files: Sequence[str], policy: str | None, own: str, kind: Kind) -> None:
    """Refuses what cannot be learnt from; of recordings it reads the actions alone. Arguments are the same."""
    seen: dict[str, tuple[int, Path]] = {}
    sequences = 0
    for file, episodes in _each(files, policy, own, kind):
        sequences += episodes.num_sequences
        if not _can_be_done(episodes.fields["actions"].entries[:], kind.actions):
            raise UserError(
                f"{file}: is damaged: it has actions that its own space lacks; use a copy of it, or record anew"
            )
        for name, field in episodes.fields.items():
            frames, other = seen.setdefault(name, (field.frames, file))
            if frames != field.frames:
                raise UserError(
                    f"{file}: has {name} as {_stacked(field.frames)}, {other} as {_stacked(frames)}; learn from files "
                    "that were recorded alike"
                )
    if not sequences:
        raise UserError(f"{', '.join(files)}: no agent of the policy was ever in the game there; record more episodes")


def episodes_bytes(files: Sequence[str], policy: str | None, own: str, kind: Kind) -> int:
    """Bytes of what `read_episodes` would give; arguments are the same."""
    return sum(found.size_bytes for _, found in _each(files, policy, own, kind))


def _can_be_done(actions: Array, space: ActionSpace) -> bool:
    """Whether all actions are some of the space."""
    if isinstance(space, Continuous):
        return bool(np.isfinite(actions).all())
    return bool(((actions >= 0) & (actions < np.asarray(space.choices))).all())


def _stacked(frames: int) -> str:
    return "whole arrays" if frames == 1 else f"single frames of stacks of {frames}"


def _each(files: Sequence[str], policy: str | None, own: str, kind: Kind) -> Iterator[tuple[Path, Episodes]]:
    """Each file with its episodes, those of a recording not yet in memory; it is open until the next is asked for."""
    for file in map(Path, files):
        if file.is_dir() or file.name == MINARI_FILE:
            yield file, read_minari(file, kind)
        else:
            with EpisodeFile(file) as recording:
                yield file, _chosen(recording, policy, own, kind)


def _chosen(recording: EpisodeFile, policy: str | None, own: str, kind: Kind) -> Episodes:
    only = recording.policies[0] if len(recording.policies) == 1 else own
    return recording.episodes(policy or (own if own in recording.policies else only), kind)
