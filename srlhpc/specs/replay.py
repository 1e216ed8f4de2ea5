"""What is kept of the past, how often it is learnt from, and how it is drawn."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from annotated_types import Ge, Le
from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from srlhpc.specs.batch import BatchSpec
from srlhpc.specs.schedule import Schedule, value_at
from srlhpc.specs.spec import Spec, refusal


class UniformDraw(Spec):
    """Every window that can be drawn is as likely as any other."""

    kind: Literal["uniform"] = "uniform"


class PrioritizedDraw(Spec):
    """A window is drawn in proportion to a power of its priority (Schaul et al. 2016, arXiv:1511.05952)."""

    kind: Literal["prioritized"] = "prioritized"
    alpha: Annotated[float, Ge(0.0), Le(1.0)] = 0.6
    """Exponent of priorities: 0 draws uniformly among those that are not zero, 1 in proportion."""
    beta: Schedule = 0.4
    """Exponent of importance weights: 0 corrects nothing, 1 all that priorities distort; a number in [0, 1] or a
    schedule by trained steps."""
    uniform_share: Annotated[float, Ge(0.0), Le(1.0)] = 0.001
    """Share of the probability that is spread evenly over all windows."""
    initial: Literal["acting", "greatest"] = "acting"
    """Priority of a window before it was ever drawn. acting: the rule works it out of what acting has put into the
    records; the greatest so far where the rule cannot. greatest: the greatest so far."""

    @model_validator(mode="after")
    def _check_beta(self) -> Self:
        ends = (self.beta,) if isinstance(self.beta, float) else (self.beta.start, self.beta.end)
        if not all(0.0 <= end <= 1.0 for end in ends):
            raise refusal(f"goes to {max(ends, key=lambda end: abs(end - 0.5)):g}; it must stay in [0, 1]", "beta")
        return self

    def beta_at(self, steps: float) -> float:
        """The exponent of importance weights after so many trained steps."""
        return value_at(self.beta, steps)


Draw = Annotated[UniformDraw | PrioritizedDraw, Field(discriminator="kind")]


class ReplaySpec(Spec):
    """Records that are kept and drawn again and again, in windows of `batch.burn_in_steps + batch.fragment_steps`.

    Only with learning rules that draw from replay, and then it is required. A record is a step of one agent of one
    environment, invalid ones included.
    """

    elsewhere = {
        **dict.fromkeys(("buffer_size", "size", "max_size", "replay_size"), "capacity"),
        **dict.fromkeys(("learning_starts", "warmup_steps", "min_size"), "start_steps"),
        **dict.fromkeys(
            ("train_frequency", "train_freq", "gradient_steps"),
            "samples_per_insert: trained records of a batch x updates / steps between them",
        ),
        "replay_ratio": "samples_per_insert, trained records for each that comes in",
        "prioritized": "draw: {kind: prioritized}",
        "alpha": "draw: {kind: prioritized, alpha: ...}",
        "beta": "draw: {kind: prioritized, beta: ...}",
    }

    capacity: PositiveInt = 1_000_000
    """Records kept, all replay ranks together; rounded up to whole blocks. Default: that of DQN (Mnih et al. 2015) and
    of SAC (Haarnoja et al. 2018, table 1)."""
    samples_per_insert: PositiveFloat | None = None
    """Trained records drawn for each record that comes in; records of burn-in do not count as drawn. Whoever is ahead
    of this waits: trainers for windows, actors for their next block. null: 8 with dqn, vdn and qmix (DQN was published
    with batches of 32 every four steps), 256 with sac and td3 (256 every step), 32 with dagger, and with other rules
    what they say, or else 8."""
    start_steps: NonNegativeInt = 1000
    """Environment steps that come in before the first draw, all replay ranks together. Default: that of Acme's DQN."""
    ranks: NonNegativeInt = 0
    """Replay ranks on CPU nodes; a multiple of the policy's trainers. 0: one beside each trainer, on its rank."""
    block_steps: PositiveInt = 32
    """Records of each agent that actors send at once; `batch.fragment_steps` is the trained length of a window."""
    stride: PositiveInt | None = None
    """Records between the first records of two windows. Divides block_steps. With memory a window starts where a
    recurrent state is stored, which is once in so many records. null: 1, and with memory `batch.fragment_steps`."""
    tolerance: PositiveFloat | None = None
    """How many trained records the draws of each replay rank may be ahead of what came in there, or behind it, before
    one side waits. null: samples_per_insert times one block of every group that feeds it, and two of its draws."""
    draw: Draw | None = None
    """Which windows are drawn: {kind: uniform} or {kind: prioritized}. null: as the learning rule was published."""
    max_age: PositiveInt | None = None
    """Updates since the oldest record of a block beyond which nothing is drawn from it any more; null: any."""
    checkpoint: bool = False
    """Whether checkpoints hold what is kept, so that a resumed run need not fill it again; blocks are written to files
    of their own as they come. Serial runs always do that."""

    def window_stride(self, trained: int, has_memory: bool) -> int:
        """Records between the first records of two windows.

        Args:
            trained: `batch.fragment_steps`.
            has_memory: whether the network has a recurrent state.
        """
        return self.stride or (trained if has_memory else 1)

    def check(self, batch: BatchSpec, has_memory: bool) -> None:
        """Refuses what cannot be kept and drawn together with such batches.

        Args:
            batch: what one update learns from.
            has_memory: whether the network has a recurrent state.

        Raises:
            ValidationError: at the key, counted from the policy.
        """
        often = "which draws a new batch for every update (replay.samples_per_insert says how often it learns)"
        cut = "where gradients go through the whole of a window (batch.fragment_steps)"
        for key, default, instead in (("uses", 1, often), ("queue", None, often), ("chunk_steps", None, cut)):
            if getattr(batch, key) != default:
                raise refusal(f"is {getattr(batch, key)} beside replay, {instead}; leave it out", *("batch", key))
        stride = self.window_stride(batch.fragment_steps, has_memory)
        if self.block_steps % stride:
            named = (
                f"stride ({stride})" if self.stride else f"batch.fragment_steps ({stride}), which is the stride here"
            )
            fits = -(-self.block_steps // stride) * stride
            raise refusal(
                f"is {self.block_steps}, which is no multiple of {named}; blocks begin where windows begin: set it to "
                f"{fits}, say",
                *("replay", "block_steps"),
            )
