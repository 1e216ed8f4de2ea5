"""The script around one rank, the same under mpiexec and srun: where its output goes, and how it ended."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from srlhpc.plan.rank_variables import threads_lines
from srlhpc.runs.paths import AttemptPaths
from srlhpc.runs.processes import RANK_VARIABLE
from srlhpc.runs.shared_memory import SHARED_MEMORY

_ENDED_BY_TERM = """\
  [ -e {until} ] || return 0
  # Stopped, it makes no more of them; a file that it has just made is open, but not mapped yet. It stops when the call
  # that it is in returns, which may be the one that makes a file.
  kill -STOP "$child" 2>/dev/null
  tries=0
  while [ $tries -lt 100 ] && [ -n "$(grep -sL '^State:.[TtXZ]' "/proc/$child/task/"*/status)" ]; do
    sleep 0.01; tries=$((tries + 1))
  done
  files=$({{ cat "/proc/$child/maps"; readlink "/proc/$child/fd/"*; }} 2>/dev/null |
    grep -oE '/dev/shm/(mpich_|ucx_|sm_segment)[^ ]*$' | sort -u)
  # First these: PMI kills the step, this script included, when a rank is gone that has not left MPI.
  rm -f $files
  kill -KILL "$child" 2>/dev/null
"""


class LabelledRank(Protocol):
    """What is needed of a rank of the plan."""

    @property
    def rank(self) -> int: ...

    @property
    def label(self) -> str: ...


def rank_script(
    attempt: AttemptPaths,
    ranks: Sequence[LabelledRank],
    program: Sequence[str],
    *,
    rank: str = "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}",
    ignored: str = "USR1",
    noted: Path | None = None,
    threads: Mapping[int, int] | None = None,
    until: Path | None = None,
) -> str:
    """The shell script around each rank.

    Args:
        attempt: where logs and exit statuses go.
        ranks: all ranks of the plan.
        program: command of a rank.
        rank: shell expression for the rank's number.
        ignored: signals that nobody may die of. MPICH's process manager sends USR1 to the ranks when one has died.
        noted: made by the script of rank 0 when TERM comes, from its first moment on.
        threads: of each rank's libraries, where nobody has set any; of a rank that is not there, 1.
        until: as long as this file is there, TERM ends the rank, and what MPI has in /dev/shm goes with it.
    """
    early, on_term, caught = _on_term(noted, until)
    if early:
        # Else one that comes between the two lines would be lost.
        ignored = " ".join(word for word in ignored.split() if word != "TERM")
    # Where TERM is caught from the first moment on, it is the child that must be told to ignore it, as all others do.
    command = shlex.join(program)
    started = f"(trap '' TERM; exec {command}) &" if early else f"{command} &"
    # A shell takes note of a signal only while it waits for a command in the background; that wait then ends with the
    # signal's status. If the command ended in the same moment, only a further wait tells its own, or 127 if it has.
    counts = {each.rank: (threads or {}).get(each.rank, 1) for each in ranks}
    logs = {each.rank: shlex.quote(str(attempt.log(each.rank, each.label))) for each in ranks}
    cases = "\n".join(f"  {rank}) log={log} threads={counts[rank]} ;;" for rank, log in logs.items())
    return f"""\
#!/bin/sh
trap '' {ignored}
{early}rank={rank}
case "$rank" in
{cases}
  *) echo "rank '$rank' is not in the plan of {len(ranks)} ranks; which MPI started this?" >&2; exit 1 ;;
esac
exec >>"$log" 2>&1
exits={shlex.quote(str(attempt.exits))}
end="$exits/.$rank"
echo "255 $(date +%s.%N)         " >"$end"
export {RANK_VARIABLE}="$rank"
{on_term}{threads_lines("$threads")}
{started}
child=$!
{caught}wait "$child"; code=$?
while kill -0 "$child" 2>/dev/null; do wait "$child"; code=$?; done
wait "$child" 2>/dev/null; last=$?; [ $last = 127 ] || code=$last
said="$code $(date +%s.%N)"
# SIGBUS: shared memory has run out; its size and what is free of it, in KiB.
free() {{ read -r _; read -r _ size _ free _; echo "$size $free"; }}
[ $code != {128 + signal.SIGBUS} ] || said="$said $(df -kP {SHARED_MEMORY} | free)"
# Over what was written at the start, then renamed: that needs no room on a full disk.
echo "$said       " 1<>"$end" && mv -f "$end" "$exits/$rank" || echo "$said" >"$exits/$rank"
exit 0
"""


def _on_term(noted: Path | None, until: Path | None) -> tuple[str, str, str]:
    """What the script says of TERM at its beginning, before it starts its rank, and right after."""
    does = f'  [ "$rank" != 0 ] || touch {shlex.quote(str(noted))}\n' if noted else ""
    does += _ENDED_BY_TERM.format(until=shlex.quote(str(until))) if until else ""
    if not does:
        return "", "", ""
    on_term, caught = f"on_term() {{\n{does}}}\n", "trap on_term TERM\n"
    if until is None:
        return "", on_term, caught
    # One that comes before there is a child is remembered.
    return "early=\ntrap 'early=1' TERM\n", on_term, caught + '[ -z "$early" ] || on_term\n'


def rank_program(attempt: AttemptPaths) -> list[str]:
    """The command of a rank."""
    run = attempt.folder.parent.parent
    return [sys.executable, "-m", "srlhpc.ranks.mpi_first", "srlhpc.ranks.rank", str(run), str(attempt.number)]
