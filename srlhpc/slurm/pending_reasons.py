"""Why Slurm lets a job wait, in its words and in plain ones, and what helps."""

from __future__ import annotations

_NEVER = "it will never start: srlhpc cancel it, and submit it again "
_WORDS = {
    "Priority": ("jobs of higher priority come first", "wait; `sprio -j JOB` shows what its priority is made of"),
    "Resources": ("it waits for free nodes", "wait, or ask for less time or fewer nodes"),
    "DependencyNeverSatisfied": ("the job that it waits for did not end as it should", _NEVER + "without it"),
    "Dependency": ("it waits for an earlier job to end", "wait: jobs of a chain run one after the other"),
    "BeginTime": ("it may not start yet; a requeued job waits up to two minutes", "wait"),
    "PartitionTimeLimit": ("it asks for more time than its partition allows", _NEVER + "with less --time"),
    "PartitionNodeLimit": ("it asks for more nodes than its partition allows", _NEVER + "with fewer nodes"),
    "PartitionDown": ("its partition is down", "wait until it is up again; `sinfo -s` shows"),
    "PartitionInactive": ("its partition takes no new jobs", "wait, or use another partition; `sinfo -s` lists them"),
    "ReqNodeNotAvail": (
        "nodes that it needs are down, drained or reserved",
        "wait; `sinfo -R` shows why they are away",
    ),
    "Nodes required for job are DOWN": ("nodes that it needs are away", "wait; `sinfo -R` shows why"),
    "Reservation": ("its reservation has not begun", "wait; `scontrol show reservation` shows when"),
    "Licenses": ("it waits for a licence", "wait; `scontrol show lic` lists them"),
    "Cleaning": ("what its last start has left is being cleaned up", "wait"),
    "AssociationJobLimit": ("you have as many jobs as you may", "wait until one of yours has ended"),
    "AssocMaxJobsLimit": ("you have as many running jobs as you may", "wait until one of yours has ended"),
    "Invalid": (
        "its account or QOS is not valid",
        _NEVER + "with account and qos from `sacctmgr show assoc user=$USER`",
    ),
    "BadConstraints": ("no node has what it asks for", _NEVER + "with other resources in the cluster profile"),
    "launch failed": (
        "its batch script could not be started",
        "look into the run's folder slurm/, then `scontrol release JOB`",
    ),
    "JobHeldAdmin": ("an administrator holds it", "ask them; they release it by `scontrol release JOB`"),
    "JobHeldUser": ("it is held", "release it: scontrol release JOB"),
    "held": ("it is held", "release it: scontrol release JOB"),
}
_LIMITS = ("Assoc", "QOS", "MaxJobs", "Grp")


def explained(reason: str, job: str) -> tuple[str, str]:
    """What a reason of Slurm's means, and what to do.

    Args:
        reason: as squeue prints it, for example `Priority` or `ReqNodeNotAvail, UnavailableNodes:cpu1`.
        job: the job's id, for commands.
    """
    # Longer names first: one may be the start of another.
    for name in sorted(_WORDS, key=len, reverse=True):
        if name in reason:
            meaning, remedy = _WORDS[name]
            return meaning, remedy.replace("JOB", job)
    if any(word in reason for word in _LIMITS):
        return (
            "a limit of your account or QOS is reached",
            "wait until jobs of yours have ended, or ask for less; `sacctmgr show assoc,qos` lists limits",
        )
    return "Slurm gives no other reason", f"wait; `scontrol show job {job}` shows more"
