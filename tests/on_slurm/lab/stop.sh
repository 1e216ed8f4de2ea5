#!/bin/bash
# Ends the lab that start.sh has started, and nothing else; `stop.sh --wipe` also removes jobs, accounting and logs.
set -uo pipefail
. "$(dirname "$0")/lab.sh"
[ -d "$STATE" ] || { echo "The Slurm lab is not there."; exit 0; }

stop() {
  local name pid
  for name in "$@"; do
    is_alive "$name" || continue
    pid=$(cat "$PIDS/$name")
    kill -TERM "$pid"
    for _ in $(seq 200); do is_alive "$name" || break; sleep 0.05; done
  done
}
# All that is the lab's by its mark or its node, for what no file tells of.
leftovers() {
  processes_in '[a-z0-9]*'
  grep -lszxF "SLURM_LAB=$STATE" /proc/[0-9]*/environ | cut -d/ -f3
}
# Jobs first: what they have started would outlive the daemons.
if is_alive slurmctld; then
  for state in PENDING RUNNING SUSPENDED; do timeout 10 scancel --state=$state 2>/dev/null; done
  for _ in $(seq 75); do [ -z "$(timeout 5 squeue -h 2>/dev/null)" ] && break; sleep 0.2; done
fi
stop slurmd-cpu1 slurmd-cpu2 slurmd-gpu1 slurmd-gpu2 slurmctld slurmdbd mariadbd munged
kill_all leftovers
rm -rf "$PIDS"
[ "${1:-}" = --wipe ] && rm -rf "$STATE" "$FOLDER"
echo "The Slurm lab has stopped."
