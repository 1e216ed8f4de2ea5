#!/bin/bash
# kill-node.sh NODE: what a power cut does. Kills the node's daemon, its step daemons and all that they have started.
set -uo pipefail
. "$(dirname "$0")/lab.sh"
[ -n "$(processes_in "$1")" ] || fail "node $1 does not run"
kill_all processes_in "$1"
rm -f "$PIDS/slurmd-$1"
