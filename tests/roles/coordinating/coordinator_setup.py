"""A coordinator with fake ranks, a fake clock and a folder: rank 1 trains, ranks 2 and 3 are actors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from srlhpc.comm.channel import Inbox, Link, Outbox, Stream
from srlhpc.comm.inproc import InProcessTransport
from srlhpc.comm.protocol import CHUNK, TEXT, Command, Report, read_text, write_text
from srlhpc.data.checkpoint_folder import CheckpointFolder
from srlhpc.data.full_disk import Reserve
from srlhpc.plan.roles import ROLES, role_of
from srlhpc.roles.checkpoint_parts import PartReceiver, PartSender
from srlhpc.roles.coordinating.checkpoint_schedule import CheckpointSchedule
from srlhpc.roles.coordinating.checkpointing import Checkpointing
from srlhpc.roles.coordinating.coordinator import AWAY_SECONDS, Coordinator, CoordinatorFiles
from srlhpc.roles.coordinating.live_timing import LiveTiming
from srlhpc.roles.coordinating.liveness import Liveness, RankRecord
from srlhpc.roles.coordinating.progress import Progress
from srlhpc.roles.coordinating.run_files import RunFiles
from srlhpc.specs.experiment import StopSpec

TRAINER = 1
LABELS = {1: "trainer-default-0", 2: "actor-0", 3: "actor-1"}
SILENCE_SECONDS = 30.0


def record_of(
    rank: int, label: str, *, silence_limit_seconds: float = 300.0, heard_at: float = 0.0, **further: Any
) -> RankRecord:
    """What the coordinator knows of a rank that has one role, an actor's a server beside it."""
    row = ROLES[role_of(label)]
    return RankRecord(
        rank,
        label,
        role=row.name,
        role_names={label: row.name, **({f"policy_server-{rank - 2}": "policy_server"} if row.name == "actor" else {})},
        is_essential=row.is_essential,
        one_must_live=row.one_must_live,
        address=rank,
        silence_limit_seconds=silence_limit_seconds,
        heard_at=heard_at,
        **further,
    )


@dataclass
class Rank:
    """What a rank says and hears; its trainer sends its part when it is asked for one."""

    number: int
    reports: Outbox
    commands: Inbox
    command: Command = field(default_factory=Command)

    def report(self, **content: Any) -> None:
        message = self.reports.acquire()
        assert message is not None
        report = Report(self.number, f"host-{self.number}", 1000 + self.number, **content)
        self.reports.send(message, write_text(message, report))

    def listen(self) -> Command | None:
        self.commands.poll()
        message = self.commands.take()
        if message is None:
            return None
        self.command = Command(**read_text(message))
        self.commands.release(message)
        return self.command


class Coordinating:
    """Everything around one coordinator."""

    def __init__(
        self,
        folder: Path,
        stop: Mapping[str, Any] | None = None,
        *,
        restored: Mapping[str, Any] | None = None,
        checkpoint_seconds: float | None = None,
        first_checkpoint: bool = False,
        may_relieve: bool = False,
        is_evaluated: bool = False,
    ) -> None:
        self.now = 1000.0
        self.folder = folder
        for name in ("exits", "failures", "pulses", "control", "checkpoints"):
            (folder / name).mkdir(parents=True)
        transport = InProcessTransport()
        reports = {rank: Link(Stream.REPORTS, rank, 0) for rank in LABELS}
        commands = {rank: Link(Stream.COMMANDS, 0, rank) for rank in LABELS}
        self.ranks = {
            rank: Rank(rank, transport.outbox(reports[rank], TEXT, slots=1), transport.inbox([commands[rank]], TEXT))
            for rank in LABELS
        }
        part = Link(Stream.PARTS, TRAINER, 0)
        self.part_sender = PartSender(transport.outbox(part, CHUNK, slots=2))
        self.progress = Progress("default", 4, self.now, restored, is_evaluated=is_evaluated)
        self.checkpoints = CheckpointFolder(folder / "checkpoints")
        self.checkpointing = Checkpointing(
            self.checkpoints,
            {"default": PartReceiver(transport.inbox([part], CHUNK, pool=2))},
            lambda: self.progress.to_meta(self.now),
            score=lambda: self.progress.score,
            roles_state=None,
            in_thread=False,
            clock=lambda: self.now,
        )
        self.records = [
            record_of(rank, label, silence_limit_seconds=SILENCE_SECONDS, heard_at=self.now)
            for rank, label in LABELS.items()
        ]
        self.coordinator = Coordinator(
            7,
            StopSpec(**(stop or {"updates": 1000})),
            CoordinatorFiles(
                folder / "outcome.json",
                folder / "control" / "stop",
                folder / "control" / "checkpoint",
            ),
            RunFiles(
                folder / "status.json",
                folder / "metrics.jsonl",
                Reserve(folder / ".reserve"),
                folder,
                in_thread=False,
            ),
            transport.inbox(list(reports.values()), TEXT, pool=6),
            {rank: transport.outbox(link, TEXT, slots=2, synchronous=False) for rank, link in commands.items()},
            Liveness(self.records, folder / "exits", folder / "failures", pulses=folder / "pulses"),
            self.progress,
            self.checkpointing,
            schedule=CheckpointSchedule(checkpoint_seconds, self.now, first=first_checkpoint),
            timing=LiveTiming("server"),
            may_relieve=may_relieve,
            clock=lambda: self.now,
        )
        self._parts_sent = 0

    # --- what ranks do ---------------------------------------------------------------------------------------------

    def report(self, rank: int, **content: Any) -> Command:
        """One report and its answer; the trainer sends the part of a checkpoint that it hears of."""
        self.ranks[rank].report(**content)
        self.coordinator.poll()
        command = self.ranks[rank].listen()
        assert command is not None
        return command

    def update(self, updates: int, *, due: bool = False, **changes: Any) -> Command:
        """The trainer reports that it has made so many updates of 10 steps each."""
        return self.report(TRAINER, updates=[update(updates, checkpoint_due=due, **changes)])

    def episodes(self, count: int, value: float) -> Command:
        return self.report(2, episodes=[episode(value)] * count)

    def all_report(self, **content: Any) -> None:
        for rank, record in zip(self.ranks, self.records, strict=True):
            if not record.dead:
                self.report(rank, **content)

    def send_part(self, number: int, updates: int) -> None:
        counters = {"updates": updates, "steps": 10 * updates, "agent_steps": 10 * updates}
        self.part_sender.begin(number, {"parameters": {"weight": np.zeros(2, np.float32)}, "counters": counters})
        self.part_sender.poll()
        self.coordinator.poll()

    def wait(self, seconds: float) -> None:
        """Polls meanwhile, as a process does that runs."""
        while seconds > 0.0:
            step = min(seconds, AWAY_SECONDS)
            seconds -= step
            self.suspend(step)

    def suspend(self, seconds: float) -> None:
        """One poll, after so long without."""
        self.now += seconds
        self.coordinator.poll()

    def end(self) -> None:
        """All ranks end as they are told: part, done, exit."""
        self.send_part(self.ranks[TRAINER].command.checkpoint, self.progress.updates)
        self.end_ranks()

    def end_ranks(self) -> None:
        for _ in range(2):
            self.all_report(done=True)
        assert self.coordinator.is_done

    # --- what is in files ------------------------------------------------------------------------------------------

    def files(self) -> list[str]:
        return [path.name for path in self.checkpoints.files()]

    @property
    def outcome(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.folder / "outcome.json").read_text())
        return content

    @property
    def status(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.folder / "status.json").read_text())
        return content

    @property
    def metrics(self) -> Sequence[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "metrics.jsonl").read_text().splitlines()]


def update(updates: int, *, policy: str = "default", checkpoint_due: bool = False, **changes: Any) -> dict[str, Any]:
    content = {
        "policy": policy,
        "updates": updates,
        "steps": 10 * updates,
        "agent_steps": 20 * updates,
        "steps_used": 10 * updates,
        "dropped_fragments": 0,
        "lag": [0, 0.5, 1],
        "checkpoint_due": checkpoint_due,
        "metrics": {"loss": 0.25},
    }
    return content | changes


def episode(value: float, steps: int = 5) -> dict[str, Any]:
    return {"return": value, "steps": steps, "policies": {"default": value}, "metrics": {"boxes": 2.0}}
