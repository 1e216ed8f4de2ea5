#!/bin/bash
# kill-node.sh NODE: what a power cut does. Kills the node's daemon, its step daemons and all that they have started.
set -uo pipefail
STATE=$(cd "$(dirname "$0")" && pwd)/.state; NODE=$1
daemon=$(cat "$STATE/pids/slurmd-$NODE") || exit 1
# The node's processes are those in its mount namespace.
space=$(readlink "/proc/$daemon/ns/mnt"); doomed=""
for process in /proc/[0-9]*; do
  [ "$(readlink "$process/ns/mnt" 2>/dev/null)" = "$space" ] && doomed="$doomed ${process#/proc/}"
done
# shellcheck disable=SC2086
kill -KILL $doomed 2>/dev/null
rm -f "$STATE/pids/slurmd-$NODE"
echo "killed$doomed"
