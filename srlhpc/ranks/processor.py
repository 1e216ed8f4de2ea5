"""What the processor of this machine computes in hardware."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
_BFLOAT16 = {"avx512_bf16", "amx_bf16", "bf16"}
"""Names that Linux has for instructions with bfloat16: of x86-64, and of ARM (the last)."""


def has_bfloat16(cpuinfo: Path = CPUINFO) -> bool:
    """Whether products of bfloat16 are instructions of this processor; true where that cannot be seen.

    Without them, libraries compute them by others. Training the network of Mnih et al. 2015 then took 2.4 times as long
    as in float32 with AVX-512, and 10 times with AVX2.
    """
    flags = [set(value.split()) for name, value in _entries(cpuinfo) if name in ("flags", "Features")]
    return not flags or bool(flags[0] & _BFLOAT16)


def processor_name(cpuinfo: Path = CPUINFO) -> str:
    """What the processor calls itself."""
    return next((value for name, value in _entries(cpuinfo) if name == "model name" and value), "this processor")


def _entries(cpuinfo: Path) -> Iterator[tuple[str, str]]:
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        name, _, value = line.partition(":")
        yield name.strip(), value.strip()
