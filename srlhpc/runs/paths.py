"""Every path of a run.

ROOT/NAME/spec.yaml            the resolved spec, as the last attempt uses it
          run.json             identity: id, name, job, seed, created, code, command
          attempts/0001/       one start of the ranks, see `AttemptPaths`
          checkpoints/         whole files, newest last
          versions/POLICY/     parameters of past updates, a file each
          replay/              blocks of replay that checkpoints name
          metrics.jsonl        one line a report, written by the coordinator
          status.json          where the run stands, replaced about once a second
          lease.json           who runs it now
          slurm.json           on a cluster: its profile, the jobs submitted, time limit and allocation
          allocation.json      what the last job asked for
          slurm/               batch scripts and their output
          code.diff            changes to the code since its commit, if it was submitted from a git checkout
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from srlhpc.data import mailbox
from srlhpc.data.atomic import read_json
from srlhpc.data.full_disk import Reserve


@dataclass(frozen=True)
class AttemptPaths:
    """One start of the ranks: `attempts/0001`."""

    folder: Path

    @property
    def number(self) -> int:
        return int(self.folder.name)

    @property
    def attempt(self) -> Path:
        """How it was started: serial, overrides, name of the checkpoint or null, number of ranks, command, time."""
        return self.folder / "attempt.json"

    @property
    def standby(self) -> Path:
        """How it will be started; there only while its ranks stand by for the end of the attempt before it."""
        return self.folder / "standby.json"

    @property
    def ready(self) -> Path:
        """Made by rank 0 when all ranks stand by."""
        return self.folder / "ready"

    @property
    def spaces(self) -> Path:
        """Observation and action spaces of the environment."""
        return self.folder / "spaces.json"

    @property
    def plan(self) -> Path:
        """Ranks, roles and endpoints."""
        return self.folder / "plan.json"

    @property
    def outcome(self) -> Path:
        """How it ended, by the coordinator: state, reason, message. Missing after a crash."""
        return self.folder / "outcome.json"

    @property
    def end(self) -> Path:
        """How it ended, by the foreman: state, reason, message, time. Missing while it runs or after a kill."""
        return self.folder / "end.json"

    @property
    def shared_memory(self) -> Path:
        """Files in /dev/shm that MPI made for it, one name a line."""
        return self.folder / "shm.txt"

    @property
    def control(self) -> Path:
        """Mailbox: whoever wants something makes a file, the coordinator obeys and removes it."""
        return self.folder / "control"

    @property
    def stop(self) -> Path:
        """Letter in the mailbox: write a checkpoint and end."""
        return self.control / "stop"

    @property
    def checkpoint(self) -> Path:
        """Letter in the mailbox: write a checkpoint and go on."""
        return self.control / "checkpoint"

    @property
    def terminated(self) -> Path:
        """Made by the script around rank 0 when Slurm has sent TERM to the ranks."""
        return self.folder / "terminated"

    @property
    def exits(self) -> Path:
        return self.folder / "exits"

    def exit(self, rank: int) -> Path:
        """`CODE SECONDS` of a rank's end, by its wrapper; 128 + N for signal N."""
        return self.exits / str(rank)

    @property
    def failures(self) -> Path:
        return self.folder / "failures"

    def failure(self, rank: int) -> Path:
        """What a failing rank writes: rank, role, index, host, pid, time, message, traceback, kind."""
        return self.failures / f"rank-{rank:05d}.json"

    @property
    def pulses(self) -> Path:
        return self.folder / "pulses"

    def pulse(self, rank: int) -> Path:
        """File that a rank changes while it computes and cannot report, inside one long piece of work."""
        return self.pulses / str(rank)

    @property
    def stacks(self) -> Path:
        """Where a serial run was when nothing moved any more; ranks write that into their own logs."""
        return self.logs / "stacks.txt"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    def log(self, rank: int, label: str) -> Path:
        """Standard output and error of a rank, for example `rank-00003-actor-1.log`."""
        return self.logs / f"rank-{rank:05d}-{label}.log"

    def make(self) -> None:
        """Makes the folders.

        Raises:
            FileExistsError: the attempt is there already.
        """
        self.folder.mkdir(parents=True)
        with self.removed_unless_done():
            for folder in (self.control, self.exits, self.failures, self.pulses, self.logs):
                folder.mkdir()
            # The letters that must arrive on a full disk, too.
            for letter in (self.stop, self.checkpoint):
                mailbox.blank(letter).touch()

    @contextmanager
    def removed_unless_done(self) -> Iterator[None]:
        """Removes the new folder again if the body fails: an attempt that never was must not be counted."""
        try:
            yield
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise


@dataclass(frozen=True)
class RunPaths:
    """A run's folder: `RunPaths(root / name)`."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def spec(self) -> Path:
        return self.folder / "spec.yaml"

    @property
    def run(self) -> Path:
        return self.folder / "run.json"

    @property
    def attempts(self) -> Path:
        return self.folder / "attempts"

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def versions(self) -> Path:
        """Made when the first version is written."""
        return self.folder / "versions"

    def versions_of(self, policy: str) -> Path:
        """The folder of one policy."""
        return self.versions / policy

    @property
    def replay(self) -> Path:
        """Made when the first blocks are written."""
        return self.folder / "replay"

    @property
    def weights(self) -> Path:
        """What policies begin with that was learnt elsewhere; made when there is any."""
        return self.folder / "weights"

    def weights_of(self, policy: str) -> Path:
        """The file of one policy."""
        return self.weights / f"{policy}.h5"

    @property
    def metrics(self) -> Path:
        return self.folder / "metrics.jsonl"

    @property
    def status(self) -> Path:
        return self.folder / "status.json"

    @property
    def lease(self) -> Path:
        return self.folder / "lease.json"

    @property
    def slurm(self) -> Path:
        """Cluster profile, jobs (id, submitted, dependency), minutes, allocation; missing for local runs."""
        return self.folder / "slurm.json"

    @property
    def allocation(self) -> Path:
        return self.folder / "allocation.json"

    @property
    def slurm_folder(self) -> Path:
        """Batch scripts, their output, and what submitit keeps."""
        return self.folder / "slurm"

    @property
    def reserve(self) -> Reserve:
        """Room for the last words on a full disk."""
        return Reserve(self.status.with_name(".reserve"))

    @property
    def code_diff(self) -> Path:
        return self.folder / "code.diff"

    @property
    def typed(self) -> str:
        """The run's name as it is written in a command."""
        return shlex.quote(self.name)

    @property
    def id(self) -> str:
        """The run's id; its name if `run.json` cannot be read."""
        return str((read_json(self.run) or {}).get("id", self.name))

    def attempt(self, number: int) -> AttemptPaths:
        return AttemptPaths(self.attempts / f"{number:04d}")

    def attempt_numbers(self) -> list[int]:
        """Numbers of all attempts, oldest first; one whose ranks stand by has not begun."""
        numbers = sorted(int(path.name) for path in self.attempts.glob("[0-9]*") if path.name.isdigit())
        if numbers and self.attempt(numbers[-1]).standby.exists():
            numbers.pop()
        return numbers

    def last_attempt(self) -> AttemptPaths | None:
        numbers = self.attempt_numbers()
        return self.attempt(numbers[-1]) if numbers else None

    def new_attempt(self) -> AttemptPaths:
        """Makes the folders of the next attempt."""
        numbers = self.attempt_numbers()
        attempt = self.attempt(numbers[-1] + 1 if numbers else 1)
        # A folder whose ranks stood by when everything was killed is no attempt.
        self.remove(attempt)
        attempt.make()
        return attempt

    def remove(self, attempt: AttemptPaths) -> None:
        """Removes the folder of an attempt that has not begun, if it is there."""
        # A file system that keeps open files may leave something behind, which must not be taken for an attempt.
        aside = attempt.folder.with_name(f".{attempt.folder.name}.{os.getpid()}.removed")
        with suppress(FileNotFoundError):
            attempt.folder.rename(aside)
            shutil.rmtree(aside, ignore_errors=True)
