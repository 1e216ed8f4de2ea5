#!/bin/bash
# configure.sh PORT ACCOUNTING GRACE: writes the lab's configuration, for start.sh.
set -euo pipefail
. "$(dirname "$0")/lab.sh"
PORT=$1 ACCOUNTING=$2 GRACE=$3 MUNGE=$STATE/munge/socket
HOST=$(hostname -s)

printf 'PORT=%s ACCOUNTING=%s GRACE=%s\n' "$PORT" "$ACCOUNTING" "$GRACE" >"$ETC/settings"
echo "127.0.0.1 localhost $HOST $NODES" >"$ETC/hosts"
# Slurm only looks whether the device file of a GPU is there.
for gpu in gpu1-0 gpu1-1 gpu2-0 gpu2-1; do ln -sf /dev/null "$STATE/dev/$gpu"; done
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
SlurmctldHost=$HOST(127.0.0.1)
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
KillWait=15
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

[ "$ACCOUNTING" = 1 ] || exit 0
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
