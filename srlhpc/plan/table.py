"""A plan for people."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from srlhpc.errors import counted
from srlhpc.plan.lag_advice import lag_plan
from srlhpc.plan.layouts import block_layout, fragment, request_layout
from srlhpc.plan.plan import Plan, RankPlan
from srlhpc.plan.replay_text import replay_lines
from srlhpc.plan.sizes import batch_blocks, block_fragments, kept_bytes, memory_bytes, pool_slots

_FOLDED = 4
"""So many ranks that are alike are told in one line."""


_ARITHMETIC = {
    "float32": "float32",
    "tf32": "tf32 on GPUs and float32 on CPUs",
    "bfloat16": "bfloat16 (float32 on processors without AVX512-BF16 or AMX)",
}


def plan_table(plan: Plan) -> str:
    """The plan for people: ranks, groups, blocks, memory, descriptors."""
    lines = [*_rank_lines(plan), ""]
    for seat in plan.whole_seats:
        plays = f"policy {seat.policy}: plays {len(seat.agents)} of kind {seat.kind} (trains {len(seat.trained)})"
        lines.append(plays + (f"; {_messages(plan, seat.policy)}" if plan.groups else ""))
        if plan.replays(seat.policy):
            lines += [f"  {line}" for line in replay_lines(plan, seat.policy)]
        elif (episodes := plan.spec.policies[seat.policy].episodes) is not None:
            batch = plan.spec.policies[seat.policy].batch
            lines.append(
                f"  batch: {counted(batch.fragments, 'fragment')} of {counted(batch.fragment_steps, 'record')} a "
                f"trainer, which reads all of {counted(len(episodes.files), 'file')}: {', '.join(episodes.files)}"
            )
        elif plan.trainers(seat.policy):
            blocks, slots = batch_blocks(plan, seat.policy), pool_slots(plan, seat.policy)
            lines.append(f"  batch: {counted(blocks, 'block')} a trainer; pool of {counted(slots, 'slot')}")
            lines.append(f"  {lag_plan(plan, seat.policy)}")
        if plan.trainers(seat.policy) and (kept := kept_bytes(plan, seat.policy)):
            lines.append(f"  kept: {kept / 1e6:,.1f} MB of batches on each trainer, by the learning rule")
    lines.append(f"networks compute in {_ARITHMETIC[plan.spec.trainers.precision]}, in acting and training")
    lines.append(f"descriptors: about {30 + len(plan.ranks)} per rank")
    lines.extend(f"note: {note}" for note in plan.notes)
    return "\n".join(lines)


def _messages(plan: Plan, policy: str) -> str:
    """The sizes of a group's messages."""
    block, request = block_layout(plan, policy).size_bytes, request_layout(plan, policy).size_bytes
    return (
        f"block {block / 1e6:.2f} MB = {counted(block_fragments(plan, policy), 'fragment')} x "
        f"{fragment(plan, policy).records} records; request {request / 1e3:.1f} kB"
    )


class _Row(NamedTuple):
    """What is said of a rank beside its number; ranks of which all is alike may share a line."""

    roles: tuple[tuple[str, str | None], ...]
    size: int
    feeds: str


def _rank_lines(plan: Plan) -> list[str]:
    memory = memory_bytes(plan)
    alike: dict[_Row, list[RankPlan]] = {}
    for rank in plan.ranks:
        size = sum(memory.get(role.label, 0) for role in rank.roles)
        row = _Row(tuple((role.name, role.policy) for role in rank.roles), size, _feeds(plan, rank))
        alike.setdefault(row, []).append(rank)
    lines = [(part, row) for row, ranks in alike.items() for part in _folded(ranks)]
    lines.sort(key=lambda line: line[0][0].rank)
    texts = [(_ranks(part), _names(part), f"{row.size / 1e6:.1f}", row.feeds) for part, row in lines]
    texts.insert(0, ("rank", "role", "buffer MB each", "feeds"))
    first, second, third = (max(len(text[column]) for text in texts) for column in range(3))
    return [
        f"{ranks:>{first}}  {names:{second}}  {size:>{third}}  {feeds}".rstrip() for ranks, names, size, feeds in texts
    ]


def _folded(ranks: Sequence[RankPlan]) -> list[Sequence[RankPlan]]:
    """Ranks that are told in one line: all, if there are many at equal distances, else each by itself."""
    distances = {after.rank - before.rank for before, after in pairwise(ranks)}
    return [ranks] if len(ranks) >= _FOLDED and len(distances) == 1 else [[rank] for rank in ranks]


def _ranks(ranks: Sequence[RankPlan]) -> str:
    """`3`, `3 … 18`, `3, 5 … 17`."""
    first, last = ranks[0].rank, ranks[-1].rank
    if first == last:
        return str(first)
    return f"{first} … {last}" if ranks[1].rank == first + 1 else f"{first}, {ranks[1].rank} … {last}"


def _names(ranks: Sequence[RankPlan]) -> str:
    first, last = (" + ".join(role.label for role in rank.roles) for rank in (ranks[0], ranks[-1]))
    return first if first == last else f"{first} … {last} ({len(ranks)} ranks)"


def _feeds(plan: Plan, rank: RankPlan) -> str:
    actors = [role for role in rank.roles if role.name == "actor"]
    groups = [plan.group_number(actor, place) for actor in actors for place in range(plan.spec.actors.ring)]
    if not groups:
        return ""
    sinks = {plan.sink_of(g, p).label for g in groups for p in plan.fed_policies}
    servers = {plan.server_of(g, s.policy).label for g in groups for s in plan.seats}
    return f"{', '.join(sorted(sinks))}; served by {', '.join(sorted(servers))}"
