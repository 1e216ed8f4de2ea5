#!/bin/bash
# start-node.sh NODE: starts a node's daemon, also after kill-node.sh.
set -euo pipefail
. "$(dirname "$0")/lab.sh"
mark
export STATE NODE=$1
mkdir -p "$STATE/spool/$NODE/pmix"
# Every command replaces the one before, so that the recorded process is slurmd itself.
setsid unshare --mount --uts --propagation private sh -ec '
  hostname "$NODE"
  mount --bind "$STATE/etc/hosts" /etc/hosts
  mount -t tmpfs -o mode=1777 tmpfs /dev/shm
  mount --bind "$STATE/spool/$NODE/pmix" "$STATE/pmix"
  exec slurmd -D -N "$NODE" -f "$SLURM_CONF"' </dev/null >>"$LOG/slurmd-$NODE.out" 2>&1 &
echo $! >"$PIDS/slurmd-$NODE"
