"""Recorded episodes that a policy learns from instead of acting."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from srlhpc.specs.spec import Spec


def _absolute(path: str) -> str:
    """The run's ranks may work in another folder."""
    return str(Path(path).expanduser().absolute())


AbsolutePath = Annotated[str, AfterValidator(_absolute)]
"""A path as the user wrote it, from the folder where the command is given."""


class EpisodesSpec(Spec):
    """Files of episodes, which the trainers read; every record is trained once an epoch, in another order each time.

    Only with learning rules that learn from recorded episodes, and then it is required.
    """

    elsewhere = dict.fromkeys(("file", "path", "dataset", "datasets"), "files")

    files: Annotated[tuple[AbsolutePath, ...], Field(min_length=1)]
    """Recordings of `srlhpc record`, and folders of local data sets of Minari; those of several are learnt from
    together."""
    policy: str | None = None
    """Name of the policy in recordings; null: that of this policy, or the only one that is there."""
