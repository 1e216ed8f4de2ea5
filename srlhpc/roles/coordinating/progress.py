"""Where a run stands: totals, windows, rates; what `status.json` and `metrics.jsonl` say. No files here."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from srlhpc.data.score import EPISODES_IN_MEAN, Rule, Score

_RATE_WINDOW_SECONDS = 10.0


class LagLimit(NamedTuple):
    """What bounds the policy lag of a policy."""

    limit: int | None
    """Largest policy lag in updates; None for no limit."""
    advice: str | None
    """Which setting makes data newer; None where its age was chosen."""
    is_drawn: bool = False
    """Whether data is drawn from replay, where the lag is the age of what was drawn, which is meant to be old."""


class Progress:
    """Totals of a run over all its attempts.

    Args:
        policy: the policy whose steps and updates are the run's (the first that is trained).
        frames_per_step: simulator frames of one environment step.
        now: seconds on the caller's clock.
        restored: what `to_meta` gave, from the checkpoint that this attempt goes on from.
        is_evaluated: whether there are evaluators; what they find then decides which checkpoint is best.
        lag_limits: of every trained policy; where none is given, the status leaves out the policy's lag.
    """

    def __init__(
        self,
        policy: str,
        frames_per_step: int,
        now: float,
        restored: Mapping[str, Any] | None = None,
        *,
        is_evaluated: bool = False,
        lag_limits: Mapping[str, LagLimit] | None = None,
    ) -> None:
        meta = restored or {}
        self._policy = policy
        self._frames_per_step = frames_per_step
        self._begun = now
        self._seconds_before = float(meta.get("seconds", 0.0))
        self.episodes = int(meta.get("episodes", 0))
        self._returns = _window(meta.get("returns", ()))
        self._lengths = _window(meta.get("lengths", ()))
        self._policy_returns = {name: _window(kept) for name, kept in meta.get("policy_returns", {}).items()}
        self._statistics = {name: _window(kept) for name, kept in meta.get("statistics", {}).items()}
        self.updates_of: dict[str, dict[str, Any]] = {}
        self._lag_limits = lag_limits or {}
        self._is_evaluated = is_evaluated
        self.evaluation: dict[str, Any] = dict(meta.get("evaluation", {})) if is_evaluated else {}
        self.pairings: list[dict[str, Any]] = []
        """Who met whom in the newest rounds of all evaluators, and what came of it."""
        self._played: list[dict[str, Any]] = []
        """The same of all rounds, since `take_played` gave it out."""
        self.updates = int(meta.get("updates", 0))
        self.steps = int(meta.get("steps", 0))
        self.agent_steps = int(meta.get("agent_steps", 0))
        self._rate: deque[tuple[float, int]] = deque([(now, self.steps)])

    # --- taking in -----------------------------------------------------------------------------------------------

    def add_episodes(self, episodes: Iterable[Mapping[str, Any]]) -> None:
        """Training episodes in the order they were reported: return, steps, policies, metrics.

        A return is None where no trained agent was in the game.
        """
        for episode in episodes:
            self.episodes += 1
            if episode["return"] is not None:
                self._returns.append(episode["return"])
            self._lengths.append(episode["steps"])
            for name, value in episode["policies"].items():
                self._policy_returns.setdefault(name, _window()).append(value)
            for name, value in episode["metrics"].items():
                self._statistics.setdefault(name, _window()).append(value)

    def add_update(self, update: Mapping[str, Any]) -> None:
        """An update of a policy: updates, steps, agent_steps, lag, metrics."""
        self.updates_of[update["policy"]] = dict(update)
        if update["policy"] == self._policy:
            self.updates, self.steps = int(update["updates"]), int(update["steps"])
            self.agent_steps = int(update["agent_steps"])

    def add_evaluation(self, evaluation: Mapping[str, Any]) -> None:
        """A round of an evaluator: version, episodes, return_mean and so on; a late one of older weights is dropped."""
        if evaluation["version"] >= self.evaluation.get("version", -1):
            self.evaluation = dict(evaluation)

    def add_pairings(self, rows: Iterable[dict[str, Any]]) -> None:
        """What came of pairings of rounds; each is told of before its round."""
        for row in rows:
            self._played.append(row)
            newest = self.pairings[0]["version"] if self.pairings else -1
            if row["version"] > newest:
                self.pairings = [row]
            elif row["version"] == newest:
                self.pairings.append(row)

    # --- giving out ----------------------------------------------------------------------------------------------

    def seconds(self, now: float) -> float:
        """Seconds of training, over all attempts."""
        return self._seconds_before + now - self._begun

    @property
    def return_mean(self) -> float | None:
        """Mean return of the last 100 training episodes, or of all if there are fewer."""
        return _mean(self._returns)

    @property
    def has_full_mean(self) -> bool:
        return len(self._returns) == EPISODES_IN_MEAN

    @property
    def score(self) -> Score | None:
        """Score of a checkpoint of now: the last evaluation's, else the full mean that `stop.return_mean` takes."""
        if self._is_evaluated:
            rule: Rule = "win_rate" if "win_rate" in self.evaluation else "evaluation"
            value = self.evaluation.get("win_rate" if rule == "win_rate" else "return_mean")
            return None if value is None else Score(float(value), rule)
        mean = self.return_mean
        return Score(mean, "return_mean") if mean is not None and self.has_full_mean else None

    def steps_per_second(self, now: float) -> float:
        """Trained steps per second of wall time over the last ten seconds."""
        self._rate.append((now, self.steps))
        # Two points stay, however long ago the older one is: they are a rate.
        while len(self._rate) > 2 and now - self._rate[0][0] > _RATE_WINDOW_SECONDS:
            self._rate.popleft()
        (then, before) = self._rate[0]
        return (self.steps - before) / (now - then) if now > then else 0.0

    def summary(self, now: float) -> dict[str, Any]:
        """The part of status and metrics that is about learning."""
        lag = self.updates_of.get(self._policy, {}).get("lag", [None, None, None])
        return {
            "steps": self.steps,
            "agent_steps": self.agent_steps,
            "frames": self.steps * self._frames_per_step,
            "updates": self.updates,
            "version": self.updates,
            "episodes": self.episodes,
            "return_mean": self.return_mean,
            "length_mean": _mean(self._lengths),
            "steps_per_second": self.steps_per_second(now),
            "policy_lag_mean": lag[1],
            "policy_lag_max": lag[2],
            "seconds": self.seconds(now),
            "episode": {name: _mean(values) for name, values in self._statistics.items()},
        }

    def lags(self) -> dict[str, dict[str, Any]]:
        """How old the data of each policy's last update was, in updates, and what bounds it."""
        return {
            name: {**dict(zip(("min", "mean", "max"), update["lag"], strict=True)), **self._lag_limits[name]._asdict()}
            # The run's first policy is told of first, whichever reports first.
            for name in self._lag_limits
            if (update := self.updates_of.get(name)) is not None
        }

    def details(self) -> dict[str, Any]:
        """What only the metrics file says: per policy, and of the last evaluation."""
        return {
            "policies": {
                name: {
                    "updates": update["updates"],
                    "steps": update["steps"],
                    "agent_steps": update["agent_steps"],
                    "steps_used": update["steps_used"],
                    "dropped_fragments": update["dropped_fragments"],
                    "policy_lag": update["lag"],
                    "return_mean": _mean(self._policy_returns.get(name, ())),
                    **update["metrics"],
                }
                for name, update in self.updates_of.items()
            },
            "evaluation": self.evaluation,
        }

    @property
    def has_played(self) -> bool:
        """Whether `take_played` would give something."""
        return bool(self._played)

    def take_played(self) -> list[dict[str, Any]]:
        """What came of the pairings of evaluators since the last call."""
        taken, self._played = self._played, []
        return taken

    def to_meta(self, now: float) -> dict[str, Any]:
        """What a checkpoint keeps of it; plain numbers, lists of numbers, and these by name."""
        return {
            "updates": self.updates,
            "steps": self.steps,
            "agent_steps": self.agent_steps,
            "frames": self.steps * self._frames_per_step,
            "episodes": self.episodes,
            "seconds": self.seconds(now),
            "return_mean": self.return_mean if self.return_mean is not None else math.nan,
            "returns": list(self._returns),
            "lengths": list(self._lengths),
            "policy_returns": {name: list(values) for name, values in self._policy_returns.items()},
            "statistics": {name: list(values) for name, values in self._statistics.items()},
            "evaluation": self.evaluation,
        }


def _window(values: Iterable[float] = ()) -> deque[float]:
    return deque((float(value) for value in values), maxlen=EPISODES_IN_MEAN)


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else None
