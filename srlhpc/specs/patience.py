"""How long a run waits for what, where nothing else says so."""

from __future__ import annotations

LAST_CHECKPOINT_SECONDS = 60.0
"""How long the coordinator tries to write the last checkpoint; on Slurm the profile's lead time says how long."""


START_SECONDS = 300
"""How long the ranks of an attempt may take until all of them work, unless a profile says otherwise."""
