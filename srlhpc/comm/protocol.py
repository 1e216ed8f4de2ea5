"""The whole protocol: who sends what to whom, what the sender waits for, and what unblocks it.

| message | from | to | payload | reply | the sender waits for | unblocked by | lost or late |
|---|---|---|---|---|---|---|---|
| BLOCKS | actor | sink | `block_layout`: fragments of one group for one policy | none | a free slot to start the next fragment | the sink taking a block into its pool (Ssend) | a dead actor's open fragments are missing, in strict mode counted as lost |
| REQUESTS | actor | policy server | `request_layout`: observations of one group | REPLIES | the reply (the ring steps other groups meanwhile) | the server, once its version reaches `NEEDS_VERSION` | one outstanding per group and policy |
| REPLIES | policy server | actor | `reply_layout`: actions, log-probabilities, outputs, version, state if wanted | none | nothing | - | never sent to a dead actor |
| GRANT_REQUESTS | actor | sink | header: group, what it holds | GRANTS | the grant, before it starts a fragment (only where the lag or the rate of replay is limited), and only if all that it holds comes before in the order of policies (`comm/acquisition.py`) | an update, or fragments that were dropped; a draw; at once if it must not wait | parked at the sink |
| GRANTS | sink | actor | header: needs_version | none | nothing | - | - |
| WINDOWS | replay rank | trainer | `windows_layout`: windows of records side by side, the items they are, how much came in | none | credit, enough that came in, the rate, a free slot | the trainer's DRAWS, blocks that are granted | - |
| DRAWS | trainer | replay rank | `draws_layout`, header: credit, version; priorities of windows that were trained | WINDOWS | nothing; an update waits for windows | the replay rank, once enough came in | priorities of records that were overwritten are dropped and counted |
| MATCH_REQUESTS | actor | coordinator's rank | `data/matches.py`: results of matches that were dealt | MATCHES | nothing, until a group has no match left; one outstanding per group | the matchmaker, once there is a version to meet | results of matches that it did not deal, or whose actor is dead, count for nothing |
| MATCHES | coordinator's rank | actor | `data/matches.py`: a lot, who plays whom | none | nothing | - | never sent to a dead actor |
| PULLS | subscriber | policy's first trainer | header: have version | PARAMETERS | nothing: it goes on with what it has | - | one outstanding per subscriber |
| PARAMETERS | first trainer | subscriber | `parameter_layout`: flat vector of what acts, version, trained steps | none | nothing | - | newest wins, versions may be skipped |
| REPORTS | rank | coordinator | JSON `Report`: counters, events, done, how long nothing has moved, who waits for what | COMMANDS | the command, before it reports again | the coordinator | silence beyond the role's limit counts as death, unless the rank's pulse shows that it computes |
| COMMANDS | coordinator | rank | JSON `Command`: stop, checkpoint, dead ranks, exit, relief, stacks | none | nothing | - | the next one repeats it |
| PARTS | policy's first trainer; replay rank whose store checkpoints hold | coordinator | bytes of an encoded tree, in chunks | none | nothing; what finds no slot is copied and waits; the next part waits until it has left | the coordinator taking the chunks | an incomplete checkpoint is never written |

A sink is the role that a group's blocks of a policy go to (`Plan.sink_of`): one of the policy's trainers, or, where it
learns from replay, one of its replay ranks.

Order: messages of one link arrive in order; links are independent.

Ending: the coordinator sets `stop` in every command. Trainers finish the update under way, agree, send their part of
the last checkpoint, and from then on discard blocks. Actors drop open fragments and send LAST on blocks and requests.
Policy servers end when every actor has sent LAST or is dead; trainers likewise. A trainer that draws sends LAST on draws
and waits for no window; its replay ranks send their parts of the last checkpoint, drop blocks and credit until every
actor and the trainer have sent LAST, and then send it on windows. A rank whose roles have ended reports
`done`; when all living ranks have and the checkpoint is written, the coordinator answers `exit`.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np

from srlhpc.comm.channel import HEADER_BYTES, Message
from srlhpc.data.layout import Field, Layout

TEXT_BYTES = 1 << 18
CHUNK_BYTES = 1 << 22

HEADER_ONLY = Layout(())
TEXT = Layout((Field("text", (TEXT_BYTES,), "uint8"),))
CHUNK = Layout((Field("bytes", (CHUNK_BYTES,), "uint8"),))


class GrantHeader(IntEnum):
    """Places in the header of grant requests and grants."""

    GROUP = 2
    HOLDING = 3
    NEEDS_VERSION = 4
    BLOCKS = 5
    """How many blocks the fragments make that a request is for: one of each side that the group learns with."""


class MatchHeader(IntEnum):
    """Places in the header of match requests and matches."""

    GROUP = 2
    COUNT = 3
    """How many of the message's rows count."""


class TextHeader(IntEnum):
    """Places in the header of reports and commands."""

    LENGTH = 2


class ChunkHeader(IntEnum):
    """Places in the header of a chunk of a checkpoint part."""

    CHECKPOINT = 2
    """Number of the checkpoint, or VERSION."""
    LENGTH = 3
    REMAINING = 4


VERSION = 0
"""In place of the number of a checkpoint, which count from 1: the part is a version that is kept for itself."""


@dataclass
class Report:
    """What a rank reports to the coordinator; counters are totals of this attempt, events are new since the last."""

    rank: int
    host: str
    pid: int
    counters: dict[str, dict[str, float]] = field(default_factory=dict)
    """Role label to counters."""
    episodes: list[dict[str, Any]] = field(default_factory=list)
    """Training episodes that ended: return (None: nobody who is trained took part), steps, returns by policy, metrics."""
    updates: list[dict[str, Any]] = field(default_factory=list)
    """Updates of a policy's first trainer: policy, updates, steps, lag, metrics."""
    evaluations: list[dict[str, Any]] = field(default_factory=list)
    """Rounds of an evaluator."""
    pairings: list[dict[str, Any]] = field(default_factory=list)
    """What came of who met whom in them: version of the round, side, player, opponent, wins and so on."""
    done: bool = False
    """Whether all roles of the rank have ended."""
    idle_seconds: float = 0.0
    """How long nothing of the rank's work has moved, in time that it has polled."""
    waits: dict[str, str] = field(default_factory=dict)
    """Role label to what it waits for, once nothing has moved for some seconds."""
    notes: list[str] = field(default_factory=list)
    """What users should know of the rank; in its first report only."""


@dataclass
class Command:
    """What the coordinator answers."""

    stop: bool = False
    checkpoint: int = 0
    """Number of the newest checkpoint asked for (0: none yet)."""
    dead: list[int] = field(default_factory=list)
    """Ranks that count as dead."""
    exit: bool = False
    relief: int = 0
    """How often trainers were asked to let groups start beyond the limits, since nothing moved."""
    stacks: bool = False
    """Whether the rank shall write the stacks of its threads into its log."""


def move_events(waiting: deque[dict[str, Any]], events: list[dict[str, Any]], most_bytes: int) -> None:
    """Moves the first events that wait into a report, as many as there is room for; one always finds room.

    Args:
        waiting: events, the oldest first.
        events: of the report, of whichever role.
        most_bytes: for all events of this kind.
    """
    room = most_bytes - sum(map(_size, events))
    while waiting and (not events or _size(waiting[0]) <= room):
        room -= _size(waiting[0])
        events.append(waiting.popleft())


def _size(event: Mapping[str, Any]) -> int:
    """Bytes of an event in a report."""
    return len(json.dumps(event)) + 2


def write_text(message: Message, content: Report | Command) -> int:
    """Puts a report or command into a message; returns the bytes to send."""
    # Not `asdict`, which copies everything that is in it: serial runs report after every update.
    text = json.dumps(vars(content)).encode()
    if len(text) > TEXT_BYTES:
        raise OverflowError(f"{type(content).__name__} of {len(text)} bytes; at most {TEXT_BYTES} fit")
    message.fields["text"][: len(text)] = np.frombuffer(text, np.uint8)
    message.header[TextHeader.LENGTH] = len(text)
    return HEADER_BYTES + len(text)


def read_text(message: Message) -> Mapping[str, Any]:
    """The JSON of a report or command."""
    data = message.fields["text"][: message.header[TextHeader.LENGTH]].tobytes()
    content: Mapping[str, Any] = json.loads(data)
    return content
