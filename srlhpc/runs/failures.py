"""How ranks ended, and which failure came first."""

from __future__ import annotations

import itertools
import re
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from srlhpc.data.atomic import read_json
from srlhpc.data.forgiving import Forgiving
from srlhpc.errors import kind_named
from srlhpc.plan.roles import role_of
from srlhpc.runs.paths import AttemptPaths
from srlhpc.runs.slurm_output import tail


@dataclass(frozen=True)
class RankEnd:
    """How a rank's process ended."""

    rank: int
    code: int
    """Exit status as a shell gives it: 128 + N for signal N."""
    time: float
    """Seconds since 1970."""
    shared_memory: tuple[float, ...] = ()
    """After SIGBUS: size of its node's /dev/shm and what was free of it, in MiB; empty: not known."""

    @property
    def is_clean(self) -> bool:
        return self.code == 0

    @property
    def text(self) -> str:
        if self.code > 128:
            return f"was killed by {signal_name(self.code - 128)}{self._shared_memory_text}"
        return f"ended with exit code {self.code}"

    @property
    def _shared_memory_text(self) -> str:
        if len(self.shared_memory) != 2:
            return ""
        size, free = self.shared_memory
        return f": /dev/shm of its node is too small or full, with {size:,.0f} MiB, {free:,.0f} MiB of them free then"


@dataclass(frozen=True)
class Failure:
    """A rank that failed."""

    rank: int
    label: str
    role: str
    host: str
    time: float
    """Seconds since 1970."""
    message: str
    """One line: what happened."""
    traceback: str
    """Traceback of the exception, if there was one."""
    advice: str

    @property
    def line(self) -> str:
        where = f", host {self.host}" if self.host else ""
        return f"{self.label} (rank {self.rank}{where}) {self.message}"


def signal_name(number: int) -> str:
    """`signal 9 (SIGKILL)`."""
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def read_ends(
    attempt: AttemptPaths, known: Mapping[int, RankEnd] | None = None, looks: Forgiving | None = None
) -> dict[int, RankEnd]:
    """The ranks whose processes have ended; files of those that are `known` are not read again.

    Raises:
        FileSystemLostError: the file system has failed all looks for too long.
    """
    ends = dict(known or {})
    looks = looks or Forgiving()
    ended = {int(name) for name in looks.names(attempt.exits) if name.isdigit()}
    for rank in ended - ends.keys():
        try:
            code, seconds, *shared = (looks.text(attempt.exit(rank)) or "").split()
            ends[rank] = RankEnd(rank, int(code), float(seconds), tuple(int(size) / 1024 for size in shared))
        except ValueError:
            # The script is just writing it.
            continue
    return ends


def failures(attempt: AttemptPaths, ends: Mapping[int, RankEnd] | None = None) -> list[Failure]:
    """Every rank that failed, the first one first."""
    labels, hosts = _labels(attempt), _hosts(attempt)
    found: dict[int, Failure] = {}
    for path in attempt.failures.glob("rank-*.json"):
        content = read_json(path)
        if content is None:
            continue
        rank = int(content.get("rank", -1))
        label = str(content.get("label") or labels.get(rank) or f"rank-{rank}")
        found[rank] = Failure(
            rank,
            label,
            str(content.get("role") or role_of(label)),
            str(content.get("host", "")),
            float(content.get("time", 0.0)),
            f"failed: {_one_line(str(content.get('message', '')))}",
            str(content.get("traceback") or ""),
            kind_named(str(content.get("kind", ""))).advice,
        )
    ended = (read_ends(attempt) if ends is None else ends).values()
    foreign = None if found else foreign_launcher(attempt, ended)
    for end in ended:
        # What the rank has written itself says more than its exit status.
        if not end.is_clean and end.rank not in found:
            label = labels.get(end.rank, "rank")
            message, advice = (
                (end.text, _advice(end.code)) if foreign is None else (foreign, kind_named("world").advice)
            )
            found[end.rank] = Failure(
                end.rank, label, role_of(label), hosts.get(end.rank, ""), end.time, message, "", advice
            )
    return sorted(found.values(), key=lambda failure: failure.time)


def first_kind(attempt: AttemptPaths) -> str:
    """The kind of the failure that came first, as the rank wrote it or MPI before it could; empty if neither did."""
    written = [content for path in attempt.failures.glob("rank-*.json") if (content := read_json(path))]
    if not written:
        return "world" if foreign_launcher(attempt, read_ends(attempt).values()) else ""
    return str(min(written, key=lambda content: content.get("time", 0.0)).get("kind", ""))


def foreign_launcher(attempt: AttemptPaths, ends: Iterable[RankEnd]) -> str | None:
    """What MPI printed if it could not start since the launcher does not speak its language; it then ends the rank."""
    labels = _labels(attempt)
    # All say the same, and there may be thousands.
    for end in itertools.islice((end for end in ends if 0 < end.code <= 128 and end.rank in labels), 3):
        if match := _FOREIGN_LAUNCHER.search(tail(attempt.log(end.rank, labels[end.rank]))):
            return (
                f"could not start MPI: {match[0]}; this MPI needs another plugin of srun: MPICH --mpi=pmi2 "
                "(mpi: mpich), Open MPI --mpi=pmix (mpi: openmpi)"
            )
    return None


_FOREIGN_LAUNCHER = re.compile(
    r"Runtime environment uses unsupported PMI version \w+|not built with SLURM's PMI support"
    r"|No PMIx server was reachable[^.]*|PMI2? is not supported[^.]*"
)
"""What MPICH and Open MPI print when they are started in each other's way."""


def _labels(attempt: AttemptPaths) -> dict[int, str]:
    """Names of the ranks, from the names of their logs."""
    labels = {}
    for path in attempt.logs.glob("rank-*.log"):
        _, number, label = path.stem.split("-", 2)
        labels[int(number)] = label
    return labels


def _hosts(attempt: AttemptPaths) -> dict[int, str]:
    status = read_json(attempt.folder.parent.parent / "status.json") or {}
    if status.get("attempt") != attempt.number:
        return {}
    return {int(entry["rank"]): str(entry.get("host", "")) for entry in status.get("ranks") or [] if "rank" in entry}


def _one_line(message: str) -> str:
    return " ".join(message.split()) or "no message"


def _advice(code: int) -> str:
    match code:
        case 137:
            return (
                "SIGKILL comes from a person, a batch system or the kernel when memory runs out; "
                "`dmesg | grep -i oom` shows it. With too little memory: fewer ranks, environments or a smaller batch."
            )
        case 135:
            return (
                "SIGBUS comes when shared memory runs out, which MPI and srlhpc need in /dev/shm: enlarge it "
                "(`mount -o remount,size=8g /dev/shm` as root; in containers `docker run --shm-size=8g`, or bind the "
                "host's), remove what others have left there (`ls -l /dev/shm`), or use fewer ranks on the node. "
                "A file that is mapped from a full disk gives the same signal."
            )
        case 139 | 134:
            return "A crash in native code (the environment, torch or MPI); the rank's log has the stack."
        case 143:
            return "SIGTERM comes from a person or a batch system that ends the job."
    return "The rank's log has the reason."
