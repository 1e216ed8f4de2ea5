#!/bin/bash
# Starts a real Slurm cluster on this machine: munged, mariadbd and slurmdbd, slurmctld, four slurmd.
#
#   partition cpu: nodes cpu1 cpu2;  gpu: gpu1 gpu2, two fake GPUs each;  low: all four, pre-emptable by the others
#
# Every node has its own host name, /etc/hosts, /dev/shm and PMIx folder; nothing in /etc is touched. All state is in
# .state beside this script. A daemon that runs already is left alone, and so is the configuration then. Needs root,
# and installs the packages that it needs, where there is apt.
# Environment: LAB_ACCOUNTING=0 leaves out the database; LAB_GRACE: seconds of warning before pre-emption (10);
# LAB_PORT: first of ten ports (the first ten from 18400 that are free); LAB_STATE: another folder for all state, which
# makes it a second lab, and which the other scripts must be told, too.
set -euo pipefail
. "$(dirname "$0")/lab.sh"

[ "$(id -u)" = 0 ] || fail "only root can start it: its nodes are namespaces"
"$LAB/install.sh" || fail "its packages could not be installed"
refused=$(unshare --mount --uts --propagation private true 2>&1) ||
  fail "this machine does not let root make namespaces, which its nodes are ($refused)"
# Slurm's sockets are in there, and the name of a socket is short.
if [ ${#STATE} -gt 60 ]; then
  ln -s "$(mktemp -d /tmp/slurm-lab.XXXXXX)" "$FOLDER"
  . "$LAB/lab.sh"
fi
mark
mkdir -p "$ETC" "$PIDS" "$LOG" "$STATE"/{spool,controller,munge,dev,pmix,database}
chmod 755 "$STATE" "$STATE/munge"
are_free() {
  local port
  for port in $(seq "$1" $(($1 + 9))); do ! (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || return; done
}
if ! is_any_alive; then
  for PORT in ${LAB_PORT:-$(seq 18400 10 19390)}; do are_free "$PORT" && break; done
  are_free "$PORT" || fail "port $PORT or one of the nine behind it is in use"
  "$LAB/configure.sh" "$PORT" "${LAB_ACCOUNTING:-1}" "${LAB_GRACE:-10}"
fi
. "$ETC/settings"

start() {
  local name=$1; shift
  is_alive "$name" && return
  setsid "$@" </dev/null >>"$LOG/$name.out" 2>&1 &
  echo $! >"$PIDS/$name"
}
MUNGE=$STATE/munge/socket
[ -s "$STATE/munge/key" ] || (umask 077; head -c 1024 /dev/urandom >"$STATE/munge/key")
start munged munged --foreground --force --key-file="$STATE/munge/key" --socket="$MUNGE" \
  --pid-file="$STATE/munge/pid" --log-file="$LOG/munged.log" --seed-file="$STATE/munge/seed"
wait_for munged munge -n --socket="$MUNGE"

if [ "$ACCOUNTING" = 1 ]; then
  DATA=$STATE/database
  # As root, because the user mysql may not reach the folder.
  [ -d "$DATA/mysql" ] || mariadb-install-db --no-defaults --user=root --datadir="$DATA" --skip-test-db \
    --auth-root-authentication-method=normal >"$LOG/mariadb-install.out" 2>&1
  start mariadbd mariadbd --no-defaults --user=root --datadir="$DATA" --bind-address=127.0.0.1 --port="$PORT" \
    --socket="$DATA/socket" --pid-file="$DATA/pid" --innodb-buffer-pool-size=64M --innodb-lock-wait-timeout=900 \
    --innodb-flush-log-at-trx-commit=0
  SQL="mariadb --no-defaults --socket=$DATA/socket -uroot"
  wait_for mariadbd $SQL -e 'select 1'
  $SQL -e "create database if not exists slurm_acct_db; create user if not exists 'slurm'@'localhost' identified by
    'lab'; create user if not exists 'slurm'@'127.0.0.1' identified by 'lab'; grant all on slurm_acct_db.* to
    'slurm'@'localhost'; grant all on slurm_acct_db.* to 'slurm'@'127.0.0.1'"
  start slurmdbd slurmdbd -D
  wait_for slurmdbd sacctmgr -n list cluster
  sacctmgr -n list cluster format=cluster | grep -qw lab || sacctmgr -i add cluster lab >/dev/null
fi
start slurmctld slurmctld -D -f "$SLURM_CONF"
wait_for slurmctld scontrol ping
for node in $NODES; do is_alive "slurmd-$node" || "$LAB/start-node.sh" "$node"; done
are_up() { [ "$(sinfo -h -N -p low -t idle,mix,alloc -o %N | sort -u | wc -l)" = 4 ]; }
export -f are_up
wait_for "a node" bash -c are_up
echo "export SLURM_CONF=$FOLDER/etc/slurm.conf"
