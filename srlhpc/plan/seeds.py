"""Every seed of a run, from one root: (run seed, what it is for, numbers)."""

from __future__ import annotations

import zlib

import numpy as np


def seed_of(run_seed: int, purpose: str, *numbers: int) -> int:
    """A seed below 2**31 that differs for every purpose and tuple of numbers.

    Args:
        run_seed: the spec's seed.
        purpose: what it is for: `environment`, `policy`, ...
        numbers: actor index, group, restart number, and so on.
    """
    sequence = np.random.SeedSequence([run_seed, zlib.crc32(purpose.encode()), *numbers])
    return int(sequence.generate_state(1, np.uint32)[0] >> 1)
