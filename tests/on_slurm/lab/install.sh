#!/bin/bash
# Installs the lab's packages, on Debian and its relatives, if anything of them is missing. Starts no daemon.
set -euo pipefail
# Slurm's PMIx plugin loads libpmix.so, whose unversioned name only the -dev package has.
PACKAGES="slurmctld slurmd slurm-client slurmdbd slurm-wlm-basic-plugins slurm-wlm-mysql-plugin munge mariadb-server
          libpmi2-0 libpmix-dev procps util-linux hostname"
PROGRAMS="slurmctld slurmd slurmdbd srun munged mariadbd mariadb-install-db unshare hostname"
# shellcheck disable=SC2086
type $PROGRAMS >/dev/null 2>&1 && [ -n "$(ldconfig -p | grep 'libpmix\.so ')" ] && exit
command -v apt-get >/dev/null || { echo "The Slurm lab needs Debian's packages:" $PACKAGES >&2; exit 1; }
[ "$(id -u)" = 0 ] || { echo "The Slurm lab: only root can install:" $PACKAGES >&2; exit 1; }

# Debian's scripts ask this program whether they may start daemons.
POLICY=/usr/sbin/policy-rc.d
if [ ! -e $POLICY ]; then
  trap 'rm -f $POLICY' EXIT
  printf '#!/bin/sh\nexit 101\n' >$POLICY
  chmod +x $POLICY
fi
try() {
  local attempt
  for attempt in 1 2 3 4; do
    "$@" && return
    echo "attempt $attempt failed: $*" >&2
    sleep $((attempt * 5))
  done
  return 1
}
export DEBIAN_FRONTEND=noninteractive
try apt-get -qq update
# shellcheck disable=SC2086
try apt-get -qq install -y --no-install-recommends $PACKAGES >/dev/null
