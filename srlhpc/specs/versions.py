"""Which of a policy's past parameters a run keeps."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field, NonNegativeInt, PositiveInt, field_validator

from srlhpc.specs.spec import Spec, refusal

VersionName = Annotated[str, Field(min_length=1)]


class VersionsSpec(Spec):
    """Versions of each trained policy: what acts after so many updates, in a file of its own, also long after.

    Checkpoints hold all that a run needs to go on, and only the newest are kept; versions are small, and many.
    """

    elsewhere = dict.fromkeys(("interval", "every", "snapshot_interval", "every_steps"), "every_updates") | {
        "names": "tags"
    }

    every_updates: PositiveInt | None = None
    """Updates of a policy between two of its versions; the first is what it begins with. null: only those of `tags`."""
    keep: PositiveInt | None = 10
    """Newest versions kept of each policy, beside those that have a tag; null: all."""
    tags: dict[VersionName, NonNegativeInt] = {}
    """Name to updates: the version after so many updates is written and always kept, and commands take its name."""

    @field_validator("tags")
    @classmethod
    def _check_names(cls, tags: dict[str, int]) -> dict[str, int]:
        for name in tags:
            if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
                raise refusal("a tag begins with a letter and may only have letters, digits, '_' and '-'", name)
        return tags

    def is_due(self, updates: int) -> bool:
        """Whether there is to be a version after so many updates."""
        return updates in self.tags.values() or (self.every_updates is not None and updates % self.every_updates == 0)

    @property
    def are_wanted(self) -> bool:
        """Whether there are to be any."""
        return self.every_updates is not None or bool(self.tags)
