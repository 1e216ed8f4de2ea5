"""Numbers that change with training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import PositiveFloat, PositiveInt

from srlhpc.specs.spec import Spec

if TYPE_CHECKING:
    pass


class LinearSchedule(Spec):
    """A value that moves linearly with the trained steps of the policy, then stays."""

    start: float
    """Value at step 0."""
    end: float
    """Value from `steps` on."""
    steps: PositiveFloat | PositiveInt
    """Trained steps over which it moves."""

    def at(self, steps: float) -> float:
        done = min(1.0, steps / self.steps)
        return self.start + (self.end - self.start) * done


Schedule = float | LinearSchedule


def check_not_negative(schedule: Schedule | None) -> Schedule | None:
    """The same, as a validator of settings; raises ValueError if it is below 0 at either end."""
    ends = (schedule.start, schedule.end) if isinstance(schedule, LinearSchedule) else (schedule or 0.0,)
    if min(ends) < 0:
        raise ValueError(f"is {min(ends)}; it must not be negative")
    return schedule


def check_probability(schedule: Schedule) -> Schedule:
    """The same, as a validator of settings; raises ValueError if it is below 0 or above 1 at either end."""
    ends = (schedule.start, schedule.end) if isinstance(schedule, LinearSchedule) else (schedule,)
    for end in ends:
        if not 0 <= end <= 1:
            raise ValueError(f"is {end}; a probability lies between 0 and 1")
    return schedule


def value_at(schedule: Schedule, steps: float) -> float:
    """The value of a constant or a schedule after so many trained steps."""
    return schedule.at(steps) if isinstance(schedule, LinearSchedule) else schedule
