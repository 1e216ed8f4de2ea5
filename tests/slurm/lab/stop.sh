#!/bin/bash
# Ends the daemons that start.sh has recorded, and no others; `stop.sh --wipe` also removes jobs, accounting and logs.
set -uo pipefail
STATE=$(cd "$(dirname "$0")" && pwd)/.state
export SLURM_CONF=$STATE/etc/slurm.conf
[ -d "$STATE/pids" ] || { echo "The Slurm lab is not there."; exit 0; }

is_running() { case "$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null)" in '' | Z*) return 1 ;; esac; }
stop() {
  local name pid
  for name in "$@"; do
    pid=$(cat "$PIDS/$name" 2>/dev/null) || continue
    rm -f "$PIDS/$name"
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "${name%%-*}" ] || continue
    kill -TERM "$pid" 2>/dev/null
    for _ in $(seq 200); do is_running "$pid" || break; sleep 0.05; done
    is_running "$pid" && kill -KILL "$pid"
  done
}
PIDS=$STATE/pids
# Jobs first: what they have started would outlive the daemons.
if [ -e "$PIDS/slurmctld" ] && is_running "$(cat "$PIDS/slurmctld")"; then
  for state in PENDING RUNNING SUSPENDED; do timeout 10 scancel --state=$state 2>/dev/null; done
  for _ in $(seq 75); do [ -z "$(timeout 5 squeue -h 2>/dev/null)" ] && break; sleep 0.2; done
fi
stop slurmd-cpu1 slurmd-cpu2 slurmd-gpu1 slurmd-gpu2 slurmctld slurmdbd mariadbd munged
[ "${1:-}" = --wipe ] && rm -rf "$STATE"
echo "The Slurm lab has stopped."
