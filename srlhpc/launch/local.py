"""Starting the ranks of one attempt on this machine, with mpiexec.

mpiexec gets a session of its own, so that Ctrl-C reaches the foreman only, and dies with the foreman. Each rank runs
under a small shell script that writes down how the rank ended and then succeeds, so that MPI's process manager never
learns of a death and leaves the other ranks alone.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, Protocol

from srlhpc.comm.networks import settings_within_a_node
from srlhpc.launch.processes import ATTEMPT_VARIABLE
from srlhpc.launch.rank_variables import numbers_of_threads, outside_any_world, settings_of_ranks, threads_lines
from srlhpc.launch.rundir import AttemptPaths
from srlhpc.objects import UserError
from srlhpc.specs.child_processes import die_with_parent

Flavour = Literal["mpich", "openmpi4", "openmpi5"]

FLAVOUR_VARIABLE = "SRLHPC_MPIEXEC"
"""Environment variable that tells a rank whose mpiexec has started it; not set under another launcher."""

RANK_VARIABLE = "SRLHPC_RANK"
"""Environment variable with the number of a rank in the plan."""

STEP_VARIABLE = "SRLHPC_STEP"
"""Environment variable that tells a rank that srun has started it."""

STANDBY = "standby"
"""What the program of a rank is given behind its attempt's number if it is to load everything and wait."""


SHARED_MEMORY = "/dev/shm"
"""Where MPI and srlhpc share memory within a node."""


class LabelledRank(Protocol):
    """What is needed of a rank of the plan."""

    @property
    def rank(self) -> int: ...

    @property
    def label(self) -> str: ...


def start_ranks(
    attempt: AttemptPaths, ranks: Sequence[LabelledRank], program: Sequence[str]
) -> subprocess.Popen[bytes]:
    """Starts all ranks of an attempt. Call it from the main thread: the ranks die when the calling thread ends.

    Args:
        attempt: its folders exist; logs and exit statuses go there.
        ranks: all ranks of the plan.
        program: command of a rank.

    Raises:
        UserError: there is no mpiexec.
    """
    script = attempt.folder / "rank.sh"
    script.write_text(rank_script(attempt, ranks, program))
    return start_mpiexec(attempt, len(ranks), script, attempt.logs / "mpiexec.log")


def start_mpiexec(attempt: AttemptPaths, ranks: int, script: Path, output: Path) -> subprocess.Popen[bytes]:
    """Starts a shell script on so many ranks, in a session of its own that ends with this process.

    Args:
        attempt: whose processes they are.
        ranks: size of the world.
        script: what each rank runs.
        output: a file that what mpiexec and the ranks say is added to.

    Raises:
        UserError: there is no mpiexec.
    """
    mpiexec = find_mpiexec()
    kind = flavour(mpiexec)
    with open(output, "ab") as said:
        return subprocess.Popen(
            mpiexec_command(mpiexec, kind, ranks, script),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            env=rank_environment(os.environ, attempt, kind),
            start_new_session=True,
            preexec_fn=die_with_parent,
        )


def find_mpiexec() -> str:
    """The mpiexec beside this Python, as the mpich wheel installs it, else the one on PATH.

    Raises:
        UserError: there is none.
    """
    beside = Path(sys.executable).with_name("mpiexec")
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("mpiexec")
    if found is None:
        raise UserError(f"no mpiexec beside {sys.executable} and none on PATH. Install one: pip install mpich")
    return found


@cache
def flavour(mpiexec: str) -> Flavour:
    """Which MPI an mpiexec belongs to.

    Raises:
        UserError: it does not run, or is of neither MPICH's nor Open MPI's kind.
    """
    try:
        done = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"{mpiexec} --version failed: {error}. Install an MPI that works: pip install mpich") from None
    text = done.stdout + done.stderr
    if "HYDRA" in text or "MPICH" in text:
        return "mpich"
    if "Open MPI" in text or "OpenRTE" in text:
        return "openmpi4" if any(f" {major}." in text for major in (2, 3, 4)) else "openmpi5"
    raise UserError(
        f"{mpiexec} is neither MPICH's nor Open MPI's; it says: {text.strip()[:200]!r}. Use one: pip install mpich"
    )


def mpiexec_command(mpiexec: str, kind: Flavour, ranks: int, script: Path) -> list[str]:
    """The command that starts all ranks on this machine, more of them than cores if need be."""
    match kind:
        case "mpich":
            # An srlhpc that runs inside a Slurm job must still start its ranks here, and not by srun.
            options = ["-launcher", "fork", "-rmk", "user", "-host", "localhost", "-disable-auto-cleanup"]
        case "openmpi4":
            options = ["--oversubscribe"]
        case "openmpi5":
            # Without fault tolerance its process manager ends all ranks when one dies, whatever the script does.
            options = ["--map-by", ":OVERSUBSCRIBE", "--with-ft", "ulfm"]
    # With setpriv a rank's script also dies when only MPI's local process manager is killed.
    guard = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
    return [mpiexec, *options, "-n", str(ranks), *guard, "sh", str(script)]


def rank_environment(outer: Mapping[str, str], attempt: AttemptPaths, kind: Flavour) -> dict[str, str]:
    """The environment of the ranks: one thread, quiet waiting, no use of cross-memory attach."""
    environment = outside_any_world(outer)
    environment |= {
        ATTEMPT_VARIABLE: str(attempt.folder),
        FLAVOUR_VARIABLE: kind,
        **settings_of_ranks(outer),
        **numbers_of_threads(outer, 1),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    # As for MPICH in comm/networks.py.
    environment.setdefault("OMPI_MCA_smsc", "^cma")
    return environment | settings_within_a_node(environment)


_ENDED_BY_TERM = """\
  [ -e {until} ] || return 0
  # Stopped, it makes no more of them; a file that it has just made is open, but not mapped yet.
  kill -STOP "$child" 2>/dev/null
  files=$({{ cat "/proc/$child/maps"; readlink "/proc/$child/fd/"*; }} 2>/dev/null |
    grep -oE '/dev/shm/(mpich_|ucx_|sm_segment)[^ ]*$' | sort -u)
  kill -KILL "$child" 2>/dev/null
"""


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
    # A shell takes note of a signal only while it waits for a command in the background; that wait then ends with the
    # signal's status. If the command ended in the same moment, only a further wait tells its own, or 127 if it has.
    note = f'  [ "$rank" != 0 ] || touch {shlex.quote(str(noted))}\n' if noted else ""
    note += _ENDED_BY_TERM.format(until=shlex.quote(str(until))) if until else ""
    note = f"on_term() {{\n{note}}}\n" if note else ""
    caught = "trap on_term TERM\n" if note else ""
    counts = {each.rank: (threads or {}).get(each.rank, 1) for each in ranks}
    logs = {each.rank: shlex.quote(str(attempt.log(each.rank, each.label))) for each in ranks}
    cases = "\n".join(f"  {rank}) log={log} threads={counts[rank]} ;;" for rank, log in logs.items())
    return f"""\
#!/bin/sh
trap '' {ignored}
rank={rank}
case "$rank" in
{cases}
  *) echo "rank '$rank' is not in the plan of {len(ranks)} ranks; which MPI started this?" >&2; exit 1 ;;
esac
exec >>"$log" 2>&1
exits={shlex.quote(str(attempt.exits))}
end="$exits/.$rank"
echo "255 $(date +%s.%N)         " >"$end"
export {RANK_VARIABLE}="$rank"
files=
{note}{threads_lines("$threads")}
{shlex.join(program)} &
child=$!
{caught}wait "$child"; code=$?
while kill -0 "$child" 2>/dev/null; do wait "$child"; code=$?; done
wait "$child" 2>/dev/null; last=$?; [ $last = 127 ] || code=$last
rm -f $files
said="$code $(date +%s.%N)"
# SIGBUS: shared memory has run out; its size and what is free of it, in KiB.
free() {{ read -r _; read -r _ size _ free _; echo "$size $free"; }}
[ $code != {128 + signal.SIGBUS} ] || said="$said $(df -kP {SHARED_MEMORY} | free)"
# Over what was written at the start, then renamed: that needs no room on a full disk.
echo "$said       " 1<>"$end" && mv -f "$end" "$exits/$rank" || echo "$said" >"$exits/$rank"
exit 0
"""


def rank_program(attempt: AttemptPaths) -> list[str]:
    """The command of a rank."""
    run = attempt.folder.parent.parent
    return [sys.executable, "-m", "srlhpc.launch.mpi_first", "srlhpc.launch.rank", str(run), str(attempt.number)]
