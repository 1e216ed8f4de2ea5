#!/bin/bash
# Starts a real Slurm cluster on this machine: munged, mariadbd and slurmdbd, slurmctld, four slurmd.
#
#   partition cpu: nodes cpu1 cpu2;  gpu: gpu1 gpu2, two fake GPUs each;  low: all four, pre-emptable by the others
#
# Every node has its own host name, /etc/hosts, /dev/shm and PMIx folder; nothing in /etc is touched. All state is in
# .state beside this script; a daemon that runs already is left alone. Needs root, and Debian's packages below.
# Environment: LAB_ACCOUNTING=0 leaves out the database; LAB_GRACE: seconds of warning before pre-emption (10);
# LAB_PORT: first of ten ports (18400).
set -euo pipefail
LAB=$(cd "$(dirname "$0")" && pwd)
STATE=$LAB/.state; ETC=$STATE/etc; PIDS=$STATE/pids; LOG=$STATE/log
PORT=${LAB_PORT:-18400}; ACCOUNTING=${LAB_ACCOUNTING:-1}; GRACE=${LAB_GRACE:-10}
PACKAGES="slurmctld slurmd slurm-client slurmdbd slurm-wlm-basic-plugins slurm-wlm-mysql-plugin munge mariadb-server
          libpmix2 libpmi2-0"
export SLURM_CONF=$ETC/slurm.conf

[ "$(id -u)" = 0 ] || { echo "The Slurm lab must be started as root: its nodes are namespaces." >&2; exit 1; }
if ! command -v slurmctld slurmd slurmdbd munged mariadbd >/dev/null; then
  command -v apt-get >/dev/null || { echo "The Slurm lab needs Debian's packages:" $PACKAGES >&2; exit 1; }
  apt-get -qq update
  # With this run level, Debian's scripts do not start daemons of their own.
  # shellcheck disable=SC2086
  RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $PACKAGES >/dev/null
fi

mkdir -p "$ETC" "$PIDS" "$LOG" "$STATE"/{spool,controller,munge,dev,pmix}
chmod 755 "$STATE" "$STATE/munge"

is_alive() {
  local pid; pid=$(cat "$PIDS/$1" 2>/dev/null) && [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "${1%%-*}" ] &&
    ! grep -q '^State:.Z' "/proc/$pid/status"
}
start() { local name=$1; shift; is_alive "$name" && return; setsid "$@" </dev/null >>"$LOG/$name.out" 2>&1 & echo $! >"$PIDS/$name"; }
wait_for() {
  local what=$1 tries=600; shift
  until "$@" >/dev/null 2>&1; do
    tries=$((tries - 1)); [ $tries -gt 0 ] || { echo "$what did not come up; see $LOG" >&2; exit 1; }
    sleep 0.05
  done
}

MUNGE=$STATE/munge/socket
[ -s "$STATE/munge/key" ] || (umask 077; head -c 1024 /dev/urandom >"$STATE/munge/key")
start munged munged --foreground --force --key-file="$STATE/munge/key" --socket="$MUNGE" \
  --pid-file="$STATE/munge/pid" --log-file="$LOG/munged.log" --seed-file="$STATE/munge/seed"
wait_for munged munge -n --socket="$MUNGE"

{ echo "127.0.0.1 localhost $(hostname -s) cpu1 cpu2 gpu1 gpu2"; } >"$ETC/hosts"
# Slurm only looks whether the device file of a GPU is there.
for gpu in gpu1-0 gpu1-1 gpu2-0 gpu2-1; do [ -e "$STATE/dev/$gpu" ] || mknod -m 666 "$STATE/dev/$gpu" c 1 3; done
for node in gpu1 gpu2; do echo "NodeName=$node Name=gpu File=$STATE/dev/$node-[0-1]"; done >"$ETC/gres.conf"
printf 'CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n' >"$ETC/cgroup.conf"
echo "PMIxCliTmpDirBase=$STATE/pmix" >"$ETC/mpi.conf"
if [ "$ACCOUNTING" = 1 ]; then
  STORAGE="AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$((PORT + 2))
AccountingStorageTRES=gres/gpu
AccountingStoragePass=$MUNGE"
else
  STORAGE="AccountingStorageType=accounting_storage/none"
fi
# cred_expire is also how long a requeued job waits (120 s by default). With preempt_send_user_signal, a job gets the
# signal it asked for when it is pre-empted. Time-outs are short, so that a lost node is noticed within half a minute.
cat >"$SLURM_CONF" <<CONF
ClusterName=lab
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$((PORT + 1))
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$MUNGE,cred_expire=5
CredType=cred/munge
StateSaveLocation=$STATE/controller
SlurmdSpoolDir=$STATE/spool/%n
SlurmdPidFile=$STATE/spool/%n.pid
SlurmctldPidFile=$STATE/controller.pid
SlurmdLogFile=$LOG/slurmd-%n.log
SlurmctldLogFile=$LOG/slurmctld.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=5
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
LaunchParameters=enable_nss_slurm
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,sched_interval=2,sched_min_interval=100000,batch_sched_delay=0,preempt_youngest_first
SlurmctldParameters=preempt_send_user_signal
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
SlurmdTimeout=10
SlurmctldTimeout=10
KillWait=5
MinJobAge=120
MessageTimeout=20
GresTypes=gpu
$STORAGE
NodeName=cpu1 NodeAddr=127.0.0.1 Port=$((PORT + 4)) CPUs=8 RealMemory=8000
NodeName=cpu2 NodeAddr=127.0.0.1 Port=$((PORT + 5)) CPUs=8 RealMemory=8000
NodeName=gpu1 NodeAddr=127.0.0.1 Port=$((PORT + 6)) CPUs=8 RealMemory=8000 Gres=gpu:2
NodeName=gpu2 NodeAddr=127.0.0.1 Port=$((PORT + 7)) CPUs=8 RealMemory=8000 Gres=gpu:2
PartitionName=cpu Nodes=cpu[1-2] Default=YES MaxTime=01:00:00 PriorityTier=10 PreemptMode=OFF
PartitionName=gpu Nodes=gpu[1-2] MaxTime=01:00:00 PriorityTier=10 PreemptMode=OFF
PartitionName=low Nodes=cpu[1-2],gpu[1-2] MaxTime=01:00:00 PriorityTier=1 PreemptMode=REQUEUE GraceTime=$GRACE
CONF

if [ "$ACCOUNTING" = 1 ]; then
  DATA=$STATE/database
  if [ ! -d "$DATA/mysql" ]; then
    mkdir -p "$DATA"; chown mysql:mysql "$DATA"
    mariadb-install-db --no-defaults --user=mysql --datadir="$DATA" --skip-test-db \
      --auth-root-authentication-method=normal >"$LOG/mariadb-install.out" 2>&1
  fi
  start mariadbd mariadbd --no-defaults --user=mysql --datadir="$DATA" --bind-address=127.0.0.1 --port="$PORT" \
    --socket="$DATA/socket" --pid-file="$DATA/pid" --innodb-buffer-pool-size=64M --innodb-lock-wait-timeout=900 \
    --innodb-flush-log-at-trx-commit=0
  SQL="mariadb --no-defaults --socket=$DATA/socket -uroot"
  wait_for mariadbd $SQL -e 'select 1'
  $SQL -e "create database if not exists slurm_acct_db; create user if not exists 'slurm'@'localhost' identified by
    'lab'; create user if not exists 'slurm'@'127.0.0.1' identified by 'lab'; grant all on slurm_acct_db.* to
    'slurm'@'localhost'; grant all on slurm_acct_db.* to 'slurm'@'127.0.0.1'"
  cat >"$ETC/slurmdbd.conf" <<CONF
AuthType=auth/munge
AuthInfo=socket=$MUNGE
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$((PORT + 2))
SlurmUser=root
LogFile=$LOG/slurmdbd.log
PidFile=$STATE/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$PORT
StorageUser=slurm
StoragePass=lab
StorageLoc=slurm_acct_db
CONF
  chmod 600 "$ETC/slurmdbd.conf"
  start slurmdbd slurmdbd -D
  wait_for slurmdbd sacctmgr -n list cluster
  sacctmgr -n list cluster format=cluster | grep -qw lab || sacctmgr -i add cluster lab >/dev/null
fi
start slurmctld slurmctld -D -f "$SLURM_CONF"
wait_for slurmctld scontrol ping
for node in cpu1 cpu2 gpu1 gpu2; do is_alive "slurmd-$node" || "$LAB/start-node.sh" "$node"; done
are_up() { [ "$(sinfo -h -N -p low -t idle,mix,alloc -o %N | sort -u | wc -l)" = 4 ]; }
wait_for "a node" are_up
echo "export SLURM_CONF=$SLURM_CONF"
