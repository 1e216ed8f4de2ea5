"""Finds the episodes of some files: recordings of srlhpc, and local data sets of Minari."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from srlhpc.data.episode_file import EpisodeFile
from srlhpc.data.episodes import Episodes, joined
from srlhpc.data.minari_file import read_minari
from srlhpc.environment import Kind


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
    return joined([_read(Path(file), policy, own, kind) for file in files])


def check_episodes(files: Sequence[str], policy: str | None, own: str, kind: Kind) -> None:
    """Refuses what `read_episodes` would, and reads no more of recordings than it must; arguments are the same."""
    for file in map(Path, files):
        if file.is_dir():
            read_minari(file, kind)
        else:
            with EpisodeFile(file) as recording:
                _chosen(recording, policy, own, kind)


def _read(path: Path, policy: str | None, own: str, kind: Kind) -> Episodes:
    if path.is_dir():
        return read_minari(path, kind)
    with EpisodeFile(path) as recording:
        return _chosen(recording, policy, own, kind).in_memory()


def _chosen(recording: EpisodeFile, policy: str | None, own: str, kind: Kind) -> Episodes:
    only = recording.policies[0] if len(recording.policies) == 1 else own
    return recording.episodes(policy or (own if own in recording.policies else only), kind)
