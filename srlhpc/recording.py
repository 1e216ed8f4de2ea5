"""`srlhpc record`: an exact number of whole episodes, with all that every policy saw, did and got, in a file."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import srlhpc
from srlhpc.data.atomic import naming, written_aside
from srlhpc.data.blocks import PolicyShapes
from srlhpc.data.episode_format import recorded_fields
from srlhpc.data.episode_writer import Attributes, EpisodeWriter, RecordedPolicy
from srlhpc.data.full_disk import is_full, not_written
from srlhpc.errors import UserError
from srlhpc.plan.plan import Plan, Seat
from srlhpc.playing import Stage, result_of, staged
from srlhpc.roles.acting.episode_recorder import EpisodeRecorder, RecordedSeat
from srlhpc.runs.paths import RunPaths
from srlhpc.runs.progress import ProgressLine


def record(
    paths: RunPaths,
    out: Path,
    *,
    episodes: int,
    checkpoint: Path | None = None,
    exploring: bool = False,
    max_episode_steps: int | None = None,
    line: ProgressLine | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Plays `episodes` episodes with a run's policies, as `srlhpc.evaluation.evaluate`, and writes them to a file.

    Args:
        paths: the run.
        out: the file; it is replaced when all episodes are played, and not before.
        episodes: exactly so many; each environment plays a fixed share of them.
        checkpoint: a checkpoint file; None for the newest whole one.
        exploring: whether the policies draw their actions and explore as in training.
        max_episode_steps: an episode that has not ended after so many steps is not written, nor are those that its
            environment still had to play; None for what the run's evaluators take.
        line: where progress is shown.
        seed: changes the episodes.

    Returns:
        What `evaluate` gives, and `records` of all policies together, `bytes` and `file`.

    Raises:
        UserError: no checkpoint, a file that cannot be written, not one episode that ended, ...
    """
    line = line or ProgressLine(io.StringIO())
    with staged(paths, episodes, checkpoint, max_episode_steps, seed, line, exploring=exploring) as stage:
        said: Attributes = {"run": paths.id, "run_name": paths.name, "seed": seed, "exploring": exploring}
        records = _play(stage, out, said)
    return {**result_of(stage), "records": records, "bytes": out.stat().st_size, "file": str(out)}


def _play(stage: Stage, out: Path, said: Attributes) -> int:
    """Plays and writes; returns how many records there are."""
    seats = [_seat(stage.plan, seat) for seat in stage.plan.whole_seats]
    policies = {seat.policy: RecordedPolicy(seat.kind.name, seat.fields) for seat in seats}
    spaces, played = stage.plan.spaces, stage.round
    attributes = {**_attributes(stage), **said}
    with (
        _told(out),
        written_aside(out, sync=True) as file,
        EpisodeWriter(file, out, spaces, policies, attributes) as writer,
        closing(EpisodeRecorder(seats, len(played.playing), writer, out.absolute().parent)) as recorder,
        # Told while what the recorder has on that disk is still there: how much room is free is said.
        _told(out),
    ):
        recorder.begin(played.step)
        while not played.is_done:
            with naming(out):
                recorder.see(played.step, played.playing)
            stage.advance()
            with naming(out):
                recorder.finish(played.step, {name: player.reply for name, player in stage.players.items()})
        if not played.episodes:
            raise UserError(
                f"no episode ended within {stage.most_steps:,} steps, so nothing was recorded; allow more by "
                "--max-episode-steps, or let the environment end its episodes"
            )
        return writer.records


def _seat(plan: Plan, seat: Seat) -> RecordedSeat:
    kind, spec = plan.spaces.kind(seat.kind), plan.spec.policies[seat.policy]
    needs = spec.algorithm.needs(kind)
    # All that acting yields, whether or not the run's own rule needs it.
    shapes = PolicyShapes(kind, {}, spec.network.offers(kind)[needs.contract].outputs, needs.fields)
    return RecordedSeat(seat.policy, kind, seat.agents, recorded_fields(shapes))


def _attributes(stage: Stage) -> dict[str, str | int]:
    return {
        "environment": json.dumps(stage.plan.spec.environment.model_dump(mode="json")),
        "checkpoint": stage.file.name,
        "updates": int(stage.tree["meta"]["updates"]),
        "srlhpc": srlhpc.__version__,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@contextmanager
def _told(out: Path) -> Iterator[None]:
    """What the disk of the file refuses, in words; an environment's own errors are not meant."""
    try:
        yield
    except OSError as error:
        if error.filename != os.fspath(out):
            raise
        advice = f"{'make room there, or ' if is_full(error) else ''}choose another place by --out"
        raise UserError(
            f"{out}: the recording cannot be written: {not_written(out.absolute().parent, error)}; {advice}"
        ) from None
