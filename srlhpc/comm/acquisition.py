"""The order in which a group gets leave to start fragments of several policies, so that groups never wait in a circle.

A group steps only when each of its policies has an open fragment, and a policy whose lag is limited has few to give. So
a group that holds one policy's fragment and waits for another's keeps others waiting, and groups that took them in any
order could wait for each other for ever. Therefore all policies of a run have one order, the longest fragments first,
and a group waits only for policies that come after all that it holds. Along a chain of groups that wait for each other
the place in the order then always grows, so no chain closes.

    longest:   |-------- 8 --------|-------- 8 --------|    gets 8, then 4; waits for the next 4 while it holds 8
    shorter:   |--- 4 ---|--- 4 ---|--- 4 ---|--- 4 ---|    holds nothing where an 8 ends, so it may wait for the next

Where lengths do not divide each other, such as 6 and 4, a long fragment ends within a short one. The group then must
not wait: it says so, and gets its grant at once, beyond the limit.

A policy that is drawn from several replay ranks comes first, whatever its length. Who feeds one of them may have to
wait until the others have as much, so for groups that hold nothing of the policy: who waits for those must hold nothing
that they could want.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum


class Holding(IntEnum):
    """What a group that asks for a grant holds: grants of other policies, and fragments that were started with one."""

    NOTHING = 0
    EARLIER = 1
    """It holds grants only of policies that come before in the order: it may wait."""
    LATER = 2
    """It holds a grant of a policy that comes later in the order: it must not wait."""


def in_order(fragment_steps: Mapping[str, int], first: Collection[str] = ()) -> tuple[str, ...]:
    """Policies in the order in which every group gets them: the longest fragments first, then by name.

    Args:
        fragment_steps: policy to the environment steps from a fragment's start to its end (without burn-in, which is
            repeated, not stepped).
        first: policies that come before all others.
    """
    return tuple(sorted(fragment_steps, key=lambda policy: (policy not in first, -fragment_steps[policy], policy)))


def holding(place: int, held: Sequence[bool]) -> Holding:
    """What a group holds from the point of view of the policy at `place`.

    Args:
        place: in the order.
        held: for each place whether the group holds a grant, or a fragment that was started with one.
    """
    if any(held[place + 1 :]):
        return Holding.LATER
    return Holding.EARLIER if any(held[:place]) else Holding.NOTHING


def must_not_wait(fragment_steps: Mapping[str, int], first: Collection[str] = ()) -> tuple[str, ...]:
    """Policies whose fragments may end within a later one's, so that some start beyond the limit; in order."""
    ordered = in_order(fragment_steps, first)
    return tuple(
        policy
        for place, policy in enumerate(ordered)
        if any(fragment_steps[policy] % fragment_steps[later] for later in ordered[place + 1 :])
    )
