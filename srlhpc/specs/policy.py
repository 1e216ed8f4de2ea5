"""One policy of an experiment: its network, how it learns and from what."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from annotated_types import Gt, Lt
from pydantic import (
    NonNegativeInt,
    PositiveFloat,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from srlhpc.errors import counted
from srlhpc.specs.batch import BatchSpec
from srlhpc.specs.episodes import AbsolutePath, EpisodesSpec
from srlhpc.specs.named_modules import NamedAlgorithm, NamedNetwork
from srlhpc.specs.replay import ReplaySpec
from srlhpc.specs.spec import Spec, refusal


class NormalizeSpec(Spec):
    """Running statistics that are part of the policy and travel with its parameters."""

    observations: bool = False
    """Scale every float observation to zero mean and unit variance."""
    observation_clip: PositiveFloat = 10.0
    """Bound of a normalised observation, in standard deviations."""
    returns: bool | Literal["pop_art", "targets_only"] = False
    """Let the value head predict returns scaled to zero mean and unit variance. true: the statistics take in a batch
    after it was trained. pop_art: before its targets are scaled, and the head is rescaled so that its values stay what
    they were. targets_only: before, and the head is not rescaled, so values move with the statistics."""
    decay: Annotated[float, Gt(0.0), Lt(1.0)] | None = None
    """How much the statistics keep of themselves at each batch (exponential moving average, bias-corrected); null: all
    records ever seen count alike."""
    smallest_std: PositiveFloat = 1e-4
    """A smaller standard deviation is taken as this."""


class PolicySpec(Spec):
    """One policy: its network, how it learns and from what."""

    elsewhere = dict.fromkeys(("from", "init_from", "pretrained", "load_from", "warm_start"), "weights_from")

    network: NamedNetwork
    """The network; `kind` names its module, the other keys are that module's settings."""
    algorithm: NamedAlgorithm
    """The learning rule; `kind` names its module, the other keys are that module's settings."""
    batch: BatchSpec = BatchSpec(fragments=1)
    """What one update learns from; required where the policy is trained."""
    weights_from: AbsolutePath | None = None
    """Checkpoint file, or folder of a run whose newest checkpoint is meant, or RUN@UPDATES or RUN@TAG, a version of it:
    what acts begins with its parameters, which are copied into the new run. Network and normalisation must be equal
    there. A policy that nobody trains, such as an expert, plays with them throughout and needs no batch. null: initial
    values are drawn."""
    normalize: NormalizeSpec = NormalizeSpec()
    """Running normalisation."""
    replay: ReplaySpec | None = None
    """What is kept of the past and how it is drawn; required by learning rules that draw from replay, null with those
    that learn from fresh records."""
    episodes: EpisodesSpec | None = None
    """Files of episodes; required by learning rules that learn from them, null with those that act."""
    max_policy_lag: NonNegativeInt | Literal["auto"] | None = "auto"
    """Fragments start only when none of them need be more updates old than this when trained, and one that is older
    all the same is dropped. 0: data is never older than the parameters it trains, and actors wait during updates. auto:
    the least at which all actors fill fragments while a batch is trained; 1 where their fragments fit one batch, and no
    limit with batch.queue. null: only backpressure limits the lag, to a few batches that wait in slots."""

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.weights_from is None and "batch" not in self.model_fields_set:
            raise refusal("is missing.", "batch")
        self._fill_fragment_steps()
        if self.batch.burn_in_steps and not self.network.recurrent:
            raise refusal(
                f"is {self.batch.burn_in_steps} but network.recurrent is null; burn-in warms up a recurrent state: "
                "set network.recurrent, or burn_in_steps to 0",
                *("batch", "burn_in_steps"),
            )
        if self.episodes:
            self._check_episodes()
        if self.replay:
            self._check_replay(self.replay)
        elif self.batch.burn_in_steps >= self.batch.fragment_steps:
            raise refusal(
                f"is {self.batch.burn_in_steps}; it must be less than fragment_steps ({self.batch.fragment_steps}).",
                *("batch", "burn_in_steps"),
            )
        self._check_chunks()
        late = self.batch.uses - 1
        if isinstance(self.max_policy_lag, int) and self.max_policy_lag < late:
            raise refusal(
                f"is {self.max_policy_lag} but batch.uses is {self.batch.uses}: the last use of a batch comes at least "
                f"{counted(late, 'update')} late; set max_policy_lag to {late} or more, or to auto",
                "max_policy_lag",
            )
        if "batch" in self.model_fields_set:
            self.algorithm.check(self.batch, self.network)
        return self

    @model_serializer(mode="wrap")
    def _without_a_batch_of_nobody(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        found: dict[str, Any] = handler(self)
        return found if "batch" in self.model_fields_set else {key: found[key] for key in found if key != "batch"}

    def _check_episodes(self) -> None:
        unused = {
            "replay": self.replay is not None,
            "max_policy_lag": self.max_policy_lag != "auto",
            "batch.uses": self.batch.uses > 1,
            "batch.chunk_steps": self.batch.chunk_steps is not None,
        }
        for key in (key for key, is_set in unused.items() if is_set):
            raise refusal("is set beside episodes, which come from files, once an epoch; leave it out", *key.split("."))

    def _fill_fragment_steps(self) -> None:
        """What is drawn has one record to train: without memory nothing is learnt of their order."""
        if self.replay is None and self.episodes is None or "fragment_steps" in self.batch.model_fields_set:
            return
        steps = (self.replay or ReplaySpec()).block_steps if self.network.state_arrays() else 1
        # Nobody else has this model yet.
        self.__dict__["batch"] = self.batch.model_copy(update={"fragment_steps": steps})

    def _check_replay(self, replay: ReplaySpec) -> None:
        replay.check(self.batch, self.network.recurrent is not None)
        if self.max_policy_lag != "auto":
            lag = "null" if self.max_policy_lag is None else self.max_policy_lag
            raise refusal(
                f"is {lag} beside replay, whose records are meant to be old: leave it out "
                "(replay.samples_per_insert sets the pace)",
                "max_policy_lag",
            )
        if self.normalize.returns in (True, "targets_only"):
            shown = "true" if self.normalize.returns is True else self.normalize.returns
            raise refusal(
                f"is {shown} beside replay, where values were stored long before they are used and their scale has "
                "moved since; set it to false",
                *("normalize", "returns"),
            )

    def _check_chunks(self) -> None:
        batch, where = self.batch, ("batch", "chunk_steps")
        if batch.chunk_steps is None:
            return
        if not self.network.recurrent:
            raise refusal(
                f"is {batch.chunk_steps} but network.recurrent is null; chunks bound the steps through which gradients "
                "reach a recurrent state: set network.recurrent, or chunk_steps to null",
                *where,
            )
        if batch.fragment_steps % batch.chunk_steps:
            raise refusal(
                f"is {batch.chunk_steps}, which does not divide fragment_steps ({batch.fragment_steps})", *where
            )
        if batch.burn_in_steps:
            raise refusal(
                f"is {batch.chunk_steps} but burn_in_steps is {batch.burn_in_steps}; chunks start from stored states "
                "without burn-in: set one of them to null or 0",
                *where,
            )
