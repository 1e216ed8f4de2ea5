# shellcheck shell=bash
# Sourced by the lab's scripts: where its state is, and which processes are its own.
LAB=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
FOLDER=$(realpath -ms "${LAB_STATE:-$LAB/.state}")
STATE=$(readlink -m "$FOLDER")
ETC=$STATE/etc PIDS=$STATE/pids LOG=$STATE/log
NODES="cpu1 cpu2 gpu1 gpu2"
export SLURM_CONF=$ETC/slurm.conf

fail() { echo "The Slurm lab: $*" >&2; exit 1; }

# is_alive NAME: whether the process recorded as NAME, for example slurmd-cpu1, runs and is this lab's.
is_alive() {
  local pid
  pid=$(cat "$PIDS/$1" 2>/dev/null) && [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "${1%%-*}" ] && is_marked "$pid"
}
# Daemons inherit the mark, so that one that was left behind is known even if nothing was written down.
mark() { export SLURM_LAB=$STATE; }
is_marked() { grep -qzxF "SLURM_LAB=$STATE" "/proc/$1/environ" 2>/dev/null; }

is_any_alive() {
  local file
  for file in "$PIDS"/*; do [ -e "$file" ] && is_alive "${file##*/}" && return; done
  return 1
}

# processes_in NODE: all processes in the node's namespace, which is known by its PMIx folder. A pattern is possible.
processes_in() {
  grep -ls "/spool/$1/pmix $STATE/pmix " /proc/[0-9]*/mountinfo | cut -d/ -f3
}

# kill_all COMMAND...: kills what the command lists until it lists nothing.
kill_all() {
  local doomed limit=$((SECONDS + 30))
  while doomed=$("$@"); [ -n "$doomed" ]; do
    [ $SECONDS -lt $limit ] || fail "cannot be killed:" $doomed
    # Stopped first: nobody must learn of the death of another.
    # shellcheck disable=SC2086
    kill -STOP $doomed 2>/dev/null
    # shellcheck disable=SC2086
    kill -KILL $doomed 2>/dev/null
    sleep 0.02
  done
}

# wait_for WHAT COMMAND...: until the command succeeds, for a minute.
wait_for() {
  local what=$1 limit=$((SECONDS + 60)); shift
  until timeout 20 "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $limit ] || { tail -n 15 "$LOG"/* >&2; fail "$what did not come up within 60 s; its logs, above, are in $LOG"; }
    sleep 0.05
  done
}
