"""The cluster profile: where ranks of each role run, and how jobs are started there."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
    field_validator,
    model_validator,
)

import srlhpc
from srlhpc.errors import UserError, did_you_mean
from srlhpc.specs import cluster_words
from srlhpc.specs.load import naming_places
from srlhpc.specs.patience import START_SECONDS
from srlhpc.specs.problems import problems, shown
from srlhpc.specs.renamed import collecting
from srlhpc.specs.spec import Spec, refusal
from srlhpc.specs.text_file import read_text
from srlhpc.specs.time_text import MOST_MINUTES
from srlhpc.specs.yaml_source import Written, parse

_log = logging.getLogger(__name__)

ROLES = ("coordinator", "trainer", "policy_server", "evaluator", "replay", "actor")

# fmt: off
_OURS = (
    "account", "array", "begin", "chdir", "clusters", "constraint", "cpus-per-gpu", "cpus-per-task", "dependency",
    "distribution", "error", "exclusive", "gid", "gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task",
    "help", "het-group", "hold", "input", "job-name", "kill-on-invalid-dep", "mem", "mem-per-cpu", "mem-per-gpu",
    "no-kill", "no-requeue", "nodes", "ntasks", "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-node",
    "ntasks-per-socket", "open-mode", "output", "overcommit", "parsable", "partition", "qos", "requeue", "signal",
    "test-only", "time", "time-min", "uid", "usage", "version", "wait", "wrap",
)
# fmt: on
"""Options of sbatch that follow from other fields of the profile, from the job, or that would break a run."""
_FIELDS = {
    **{name: f"roles.default.{name}" for name in ("account", "partition", "qos", "constraint", "exclusive")},
    **dict.fromkeys(("time", "time-min"), "time_minutes, or submit --time"),
    **dict.fromkeys(("mem", "mem-per-cpu", "mem-per-gpu"), "memory_mb_per_rank"),
    **dict.fromkeys(("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket"), "gpus_per_rank"),
    **dict.fromkeys(("requeue", "no-requeue"), "requeue"),
    "cpus-per-task": "cpus_per_rank",
    "ntasks-per-node": "ranks_per_node",
    "signal": "signal and signal_lead_seconds",
}
"""Option of sbatch to the field of the profile that stands for it."""


def _one_line(text: str) -> str:
    if any(not character.isprintable() for character in text):
        raise ValueError(f"is {text!r}; it must be one line of printable characters.")
    return text


def _word(text: str) -> str:
    if not text or any(not character.isprintable() or character.isspace() for character in text):
        raise ValueError(f"is {text!r}; it must be one word.")
    return text


def _gpu_type(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", text):
        raise ValueError(
            f"is {text!r}; it must be of letters, digits, `_`, `.` and `-`, as `sinfo -o %G` names it; null: any."
        )
    return text


def _set_up(text: str) -> str:
    return _one_line(text.replace("\t", "    ")) and text


def _module(text: str) -> str:
    if len(text.split()) > 1:
        raise ValueError(f"is {text!r}; write one module an entry: {text.split()}")
    return _word(text)


Line = Annotated[str, AfterValidator(_one_line)]
Word = Annotated[str, AfterValidator(_word)]
Name = Annotated[Word, BeforeValidator(cluster_words.one_text(","))]
"""Names, with commas between them."""
Megabytes = Annotated[PositiveInt, BeforeValidator(cluster_words.megabytes)]
Interpreter = Annotated[str, AfterValidator(_one_line), AfterValidator(cluster_words.interpreter)]


class RoleResources(Spec):
    """Where the ranks of a role run and what each of them gets. What a role leaves out, `default` says."""

    partition: Name | None = None
    """Partition; null: the cluster's default."""
    account: Name | None = None
    """Account that pays; null: the user's default."""
    qos: Name | None = None
    """Quality of service; null: the account's default."""
    constraint: Annotated[Line, BeforeValidator(cluster_words.one_text("&"))] | None = None
    """Features that a node must have, as sbatch takes them."""
    gpus_per_rank: Annotated[NonNegativeFloat, Field(le=64)] = 0.0
    """GPUs of each rank; 0.5: two ranks share one."""
    gpu_type: Annotated[str, AfterValidator(_gpu_type)] | None = None
    """Type of GPU, as `sinfo -o %G` names it; null: any."""
    cpus_per_rank: PositiveInt | None = None
    """CPUs of each rank; null: as many as the job gives the role threads."""
    memory_mb_per_rank: Megabytes | None = None
    """Memory of each rank in MB; null: what the partition gives by default."""
    ranks_per_node: PositiveInt | None = None
    """Most ranks of this role on one node; null: as many as fit by `partitions`."""
    nodes: PositiveInt | None = None
    """Nodes to spread the ranks over; null: as few as hold them."""
    exclusive: bool = False
    """Whether nothing else may run on the nodes."""


def _absolute(path: str) -> str:
    """A path that means the same from wherever a job starts."""
    if not path.startswith("/"):
        raise ValueError(f"'{path}' is no absolute path; write it from / on")
    return path


AbsolutePath = Annotated[Word, AfterValidator(_absolute)]


class PartitionFacts(Spec):
    """What one node of a partition has; `srlhpc cluster init` writes it down. null: not known."""

    nodes: PositiveInt | None = None
    """Nodes of the partition."""
    cpus_per_node: PositiveInt | None = None
    """CPUs of a node, as Slurm counts them."""
    gpus_per_node: NonNegativeInt | None = None
    """GPUs of a node."""
    memory_mb_per_node: Megabytes | None = None
    """Memory of a node in MB."""
    max_minutes: Annotated[PositiveInt, BeforeValidator(cluster_words.minutes)] | None = None
    """Longest time limit in minutes."""


class ClusterProfile(Spec):
    """One cluster, as its user sees it."""

    description: Line = ""
    """One line for people."""
    mpi: Literal["auto", "mpich", "openmpi"] = "auto"
    """MPI that mpi4py uses on the nodes; auto: it is asked when the job starts."""
    srun_mpi: Word | None = None
    """Plugin for `srun --mpi=`; null: pmi2 for MPICH, pmix for Open MPI."""
    python: Interpreter | None = None
    """Path of the Python interpreter on the nodes, where `~` and `$NAME` are those of the shell that submits; null: the
    one that submits."""
    modules: tuple[Annotated[str, AfterValidator(_module)], ...] = ()
    """Modules to load first, in order."""
    setup: tuple[Annotated[str, AfterValidator(_set_up)], ...] = ()
    """Shell lines that run in the batch script before the foreman starts, after the modules are loaded."""
    signal: Literal["USR1", "USR2"] = "USR2"
    """Signal that announces the end of a job: time limit or pre-emption."""
    signal_lead_seconds: Annotated[PositiveInt, Field(le=65535)] = 90
    """Seconds before the time limit at which that signal is sent; a checkpoint must be written within."""
    start_seconds: PositiveInt = START_SECONDS
    """Longest time in seconds from the start of the ranks until all of them work; more for thousands of ranks whose
    Python lies on a slow file system."""
    checkpoint_spare: AbsolutePath | None = None
    """Folder on another disk, seen from all nodes, for a checkpoint that cannot be written to the run's; null: none."""
    requeue: bool = True
    """Whether a job that was cut short goes back into the queue."""
    restarts_in_place: NonNegativeInt = 3
    """Restarts of crashed ranks within one job; the count starts anew when training has got further."""
    standby: bool = True
    """Whether the ranks of the next attempt are started in advance, load everything and wait, so that training goes on
    within seconds when an essential rank dies. They need memory beside that of the ranks that train."""
    requeues: NonNegativeInt = 20
    """Most returns of one job into the queue."""
    time_minutes: Annotated[PositiveInt, Field(le=MOST_MINUTES), BeforeValidator(cluster_words.minutes)] = 60
    """Time limit where `--time` gives none, in minutes."""
    sbatch: dict[str, Annotated[Line | int | bool, BeforeValidator(cluster_words.option_value)]] = {}
    """Further options of sbatch for every component, by their long names; true: an option without value."""
    roles: dict[str, RoleResources] = {}
    """Resources by role; `default` holds what a role does not say itself. A coordinator that is not named runs beside
    the first trainer."""
    partitions: dict[Word, PartitionFacts] = {}
    """What nodes have, by partition."""

    @field_validator("roles")
    @classmethod
    def _check_roles(cls, roles: dict[str, RoleResources]) -> dict[str, RoleResources]:
        for name in roles:
            if name not in (*ROLES, "default"):
                raise refusal(f"there is no such role{did_you_mean(name, [*ROLES, 'default'])}", name)
        return roles

    @field_validator("setup")
    @classmethod
    def _check_setup(cls, lines: tuple[str, ...]) -> tuple[str, ...]:
        for index, line in enumerate(lines):
            if line.lstrip().startswith("#SBATCH"):
                raise refusal("options of sbatch do not belong here; write them under sbatch", index)
        return lines

    @field_validator("sbatch")
    @classmethod
    def _check_sbatch(cls, options: dict[str, str | int | bool]) -> dict[str, str | int | bool]:
        for name, value in options.items():
            if wrong := cluster_words.option_name(name):
                raise refusal(wrong, name)
            # sbatch takes the beginning of an option's name for the option.
            if ours := next((option for option in _OURS if option.startswith(name)), None):
                field = f"; write {_FIELDS[ours]}" if ours in _FIELDS else ""
                raise refusal(
                    f"--{ours} follows from the profile's other fields and the job; leave it out{field}", name
                )
            if name in ("gre", "gres") and re.search(r"(^|,)(gres[:/])?gpu\b", str(value)):
                raise refusal(f"is {value!r}; GPUs follow from gpus_per_rank and gpu_type; leave them out", name)
            if value is False:
                raise refusal("is false; leave the option out instead", name)
        return options

    @model_validator(mode="after")
    def _check_partitions(self) -> Self:
        for name, role in self.roles.items():
            if self.partitions and role.partition is not None:
                for word in role.partition.split(","):
                    if word not in self.partitions:
                        hint = did_you_mean(word, list(self.partitions))
                        raise refusal(f"'{word}' is not in partitions{hint}", *("roles", name, "partition"))
        return self

    def role(self, name: str) -> RoleResources:
        """What a role gets: its own settings over those of `default`."""
        default = self.roles.get("default", RoleResources())
        own = self.roles.get(name, RoleResources())
        return default.model_copy(update={field: getattr(own, field) for field in own.model_fields_set})

    def facts(self, partition: str | None) -> PartitionFacts:
        """What is known of a partition's nodes; of several with commas, the most that one of them has."""
        each = [self.partitions.get(name, PartitionFacts()) for name in (partition or "").split(",")]
        most = {
            field: None if None in values else max(values)
            for field in PartitionFacts.model_fields
            if (values := [getattr(facts, field) for facts in each])
        }
        return each[0] if len(each) == 1 else PartitionFacts(**most)

    @property
    def interpreter(self) -> str:
        """The Python interpreter of the job."""
        return self.python or sys.executable


class ClusterFile(NamedTuple):
    """A profile and where each of its values was written."""

    profile: ClusterProfile
    written: Written
    path: Path

    @contextmanager
    def naming_places(self) -> Iterator[None]:
        """Adds file and line to a UserError from inside, whose message starts with a path of the profile."""
        with naming_places(self.written, ClusterProfile.model_fields):
            yield


def load_cluster(name_or_path: str) -> ClusterProfile:
    """The profile of a cluster.

    Args:
        name_or_path: a name, looked for in `profile_folders()`, or the path of a YAML file.

    Raises:
        UserError: there is none, or something in it is wrong; one line for every problem, with file, line and path.
    """
    return read_cluster(name_or_path).profile


def read_cluster(name_or_path: str) -> ClusterFile:
    """Same as `load_cluster`, for callers who find problems later that belong to a line of the file."""
    path = _path(name_or_path)
    written = parse(read_text(str(path)), str(path))
    if not isinstance(written.data, dict):
        kind = "empty" if written.data is None else shown(written.data)
        raise UserError(f"{path}: is {kind}; a cluster profile is a mapping. Write a first one: srlhpc cluster init")
    try:
        with collecting() as former:
            profile = ClusterProfile.model_validate(written.data)
    except ValidationError as error:
        found = problems(error.errors(include_url=False), written)
        raise UserError("\n".join(str(problem) for problem in found)) from None
    for word in former:
        _log.warning(word.note(written))
    return ClusterFile(profile, written, path)


def profile_folders() -> list[Path]:
    """Where profiles are looked for, in this order: ./clusters, the user's, ./jobs/clusters, those of a checkout."""
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    checkout = Path(srlhpc.__file__).parents[1] / "jobs" / "clusters"
    return [Path("clusters"), settings / "srlhpc" / "clusters", Path("jobs/clusters"), checkout]


def known_clusters() -> dict[str, Path]:
    """Profiles by name; of two with one name, the one that is found first."""
    found: dict[str, Path] = {}
    for folder in profile_folders():
        for path in sorted(folder.glob("*.yaml")):
            found.setdefault(path.stem, path)
    return found


def _path(name_or_path: str) -> Path:
    if "/" in name_or_path or name_or_path.endswith((".yaml", ".yml")):
        return Path(name_or_path)
    known = known_clusters()
    if name_or_path in known:
        return known[name_or_path]
    folders = ", ".join(str(folder) for folder in dict.fromkeys(profile_folders()))
    hint = did_you_mean(name_or_path, list(known)) if known else "; there are no profiles yet"
    others = f" (known are: {', '.join(sorted(known))})" if known and "did you mean" in hint else ""
    raise UserError(
        f"no cluster '{name_or_path}'{hint}{others}. Profiles are looked for in {folders}; "
        "name a file, or write one: srlhpc cluster init"
    )
