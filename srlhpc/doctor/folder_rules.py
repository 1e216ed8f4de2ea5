"""Turns what was seen in the run folder into findings. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from srlhpc.doctor.findings import Finding, fault, ok, warning
from srlhpc.doctor.folder_probe import KEPT_OUT, OPENED, FolderFacts
from srlhpc.doctor.reports import RankReport
from srlhpc.errors import counted

SPACE, LOCKS = "run folder", "HDF5 file locks"
LITTLE_BYTES = 2 << 30
FEW_FILES = 1000
_OTHER = "choose another folder by --root or SRLHPC_ROOT, or remove old runs"


def space(facts: FolderFacts) -> Finding:
    """Whether checkpoints can be written there."""
    if facts.error:
        return fault(SPACE, f"{facts.folder} cannot hold a run: {facts.error}", _OTHER)
    free = f"{facts.free_bytes / (1 << 30):.1f} GiB free in {facts.folder}"
    if facts.over_quota:
        return warning(SPACE, f"{free}, but `quota` says: {facts.over_quota}", _OTHER)
    if facts.free_bytes < LITTLE_BYTES:
        return warning(SPACE, free, f"a run keeps several checkpoints: {_OTHER}")
    if facts.free_files is not None and facts.free_files < FEW_FILES:
        return warning(SPACE, f"{counted(facts.free_files, 'file')} may still be made in {facts.folder}", _OTHER)
    return ok(SPACE, free)


def locks(facts: FolderFacts, ranks: Sequence[RankReport] = ()) -> Finding:
    """Whether HDF5's locks keep a second process out, here and on the nodes.

    srlhpc itself needs none: it never opens a file that is being written.
    """
    remedy = "srlhpc works without locks; for other programs that read checkpoints: export HDF5_USE_FILE_LOCKING=FALSE"
    answers = {f"here, in {facts.folder}": facts.lock} if facts.lock else {}
    answers |= {f"on {rank.host['host']}": rank.lock for rank in ranks if rank.lock and rank.host}
    for where, answer in answers.items():
        if answer == OPENED:
            return warning(LOCKS, f"not kept: a file that one process has locked was opened by another {where}", remedy)
        if answer != KEPT_OUT:
            return warning(LOCKS, f"not to be had {where} ({answer})", remedy)
    places = f" here and on {', '.join(dict.fromkeys(rank.host['host'] for rank in ranks if rank.lock))}"
    return ok(LOCKS, f"keep a second process out{places if any(rank.lock for rank in ranks) else ''}")
