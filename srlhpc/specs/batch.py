"""What one trainer learns from in one update."""

from __future__ import annotations

from typing import Self

from pydantic import NonNegativeInt, PositiveInt, model_validator

from srlhpc.specs.spec import Spec, refusal


class BatchSpec(Spec):
    """What one trainer learns from in one update."""

    elsewhere = dict.fromkeys(("size", "batch_size", "minibatch_size"), "fragments, of fragment_steps records each")

    fragments: PositiveInt
    """Fragments per trainer; the global batch is this times the policy's trainers."""
    fragment_steps: PositiveInt = 128
    """Trained steps per fragment. With replay it is those of a window, by default 1, or with memory as many as a block
    has (replay.block_steps)."""
    burn_in_steps: NonNegativeInt = 0
    """Extra leading steps, repeated from the fragment before, that only warm up the recurrent state; never trained."""
    chunk_steps: PositiveInt | None = None
    """Steps after which gradients through time end in a network with memory: there the recurrent state of acting is
    stored and taken up again. Divides fragment_steps. null: gradients go through the whole fragment."""
    uses: PositiveInt = 1
    """Updates made of each batch, one after the other, each published; steps are counted once. A batch that has become
    older than max_policy_lag is not used again."""
    queue: PositiveInt | None = None
    """Batches with uses left that a trainer keeps. An update learns from the one with the most uses left, the newest of
    those, so from a new batch as soon as one is full; what no longer fits is not used again. null: a batch is used up
    before the next is begun."""

    @model_validator(mode="after")
    def _check_queue(self) -> Self:
        if self.queue is not None and self.uses == 1:
            raise refusal(
                f"is {self.queue} but uses is 1, so none is kept; set queue to null, or uses to 2 or more (without "
                "replay)",
                "queue",
            )
        return self

    @property
    def chunks(self) -> int:
        """Parts of a fragment with a stored recurrent state each."""
        return self.fragment_steps // (self.chunk_steps or self.fragment_steps)

    @property
    def buffers(self) -> int:
        """Batches that a trainer has room for: those that are kept, one without a queue, and the one being gathered."""
        return 1 + (self.queue or 1)
