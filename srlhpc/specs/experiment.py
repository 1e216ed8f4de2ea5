"""The experiment spec: what to train, with how many ranks of which role, and until when."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from annotated_types import Gt, Lt
from pydantic import (
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from srlhpc.errors import counted, did_you_mean
from srlhpc.specs.batch import BatchSpec
from srlhpc.specs.episodes import AbsolutePath, EpisodesSpec
from srlhpc.specs.named_modules import NamedAlgorithm, NamedEnvironment, NamedNetwork
from srlhpc.specs.replay import ReplaySpec
from srlhpc.specs.spec import Spec, refusal
from srlhpc.specs.versions import VersionsSpec


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


class AgentsSpec(Spec):
    """Which agents use which policy."""

    match: str = ".*"
    """Regular expression on the whole agent name."""
    policy: str = "default"
    """Name of a policy of `policies`."""
    train: bool = True
    """Whether these agents' records are trained on."""

    @field_validator("match")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"'{pattern}' is no regular expression: {error}") from None
        return pattern


class ServerInference(Spec):
    """Policy servers act for the actors (SRL's decoupled layout)."""

    kind: Literal["server"] = "server"


class InlineInference(Spec):
    """Each actor runs the network itself (IMPALA's layout)."""

    kind: Literal["inline"] = "inline"


class TrainerInference(Spec):
    """The trainers act for the actors (SEED's layout)."""

    kind: Literal["trainer"] = "trainer"


Inference = Annotated[ServerInference | InlineInference | TrainerInference, Field(discriminator="kind")]


class ActorsSpec(Spec):
    """Ranks that step environments."""

    ranks: NonNegativeInt
    """Actor ranks; 0 where all that is learnt from are files of episodes."""
    ring: PositiveInt = 2
    """Groups of each actor: while one waits for its actions, another is stepped."""
    environments: PositiveInt = 8
    """Environments in each group, stepped as one vector."""
    inference: Inference = ServerInference()
    """Who runs the network for them."""


class PolicyServersSpec(Spec):
    """Ranks that batch observations through the network; only used with `actors.inference.kind: server`."""

    ranks: PositiveInt = 1
    """Policy server ranks."""
    threads: PositiveInt = 1
    """CPU threads of torch in each."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the network runs; auto: a GPU if the rank sees one."""


class TrainersSpec(Spec):
    """Ranks that compute gradients."""

    ranks: PositiveInt = 1
    """Trainer ranks per policy."""
    threads: PositiveInt = 1
    """CPU threads of torch in each."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where gradients are computed; auto: a GPU if the rank sees one."""
    precision: Literal["float32", "tf32", "bfloat16"] = "float32"
    """Arithmetic of the network, in training and acting; losses and traces stay float32. tf32: float32, but GPUs
    round the factors of products to 10 bits, which is faster; a CPU computes float32. bfloat16: half the time on GPUs
    and on CPUs that have instructions for it (AVX512-BF16, AMX); others compute float32, and `status` says so."""
    prefetch: bool = True
    """Gather the next batch while one is trained."""


class EvaluatorsSpec(Spec):
    """Ranks that measure the policy with deterministic actions and frozen weights."""

    ranks: NonNegativeInt = 0
    """Evaluator ranks."""
    episodes: PositiveInt = 20
    """Episodes of one round, exactly, per evaluator."""
    environments: PositiveInt = 4
    """Environments stepped as one vector."""
    every_updates: PositiveInt = 50
    """Updates of the first policy between two rounds."""
    max_episode_steps: PositiveInt = 30_000
    """An episode that has not ended after so many steps is given up, with those that its environment still had to play,
    and the round has no mean return; also in `srlhpc eval`. Atari's longest have 27,000."""


class StopSpec(Spec):
    """When the run is finished: whichever comes first. At least one must be set."""

    steps: PositiveInt | None = None
    """Trained steps (steps of one environment, counted once however often they are reused)."""
    updates: PositiveInt | None = None
    """Updates of the first policy."""
    return_mean: float | None = None
    """Mean return of the last 100 training episodes, once there are 100."""
    hours: PositiveFloat | None = None
    """Hours of training, over all attempts."""

    @model_validator(mode="after")
    def _check_any(self) -> Self:
        if all(limit is None for limit in (self.steps, self.updates, self.return_mean, self.hours)):
            raise ValueError("sets no limit; set at least one of steps, updates, return_mean, hours")
        return self


class CheckpointSpec(Spec):
    """When checkpoints are written and which are kept."""

    every_seconds: PositiveFloat | None = 600.0
    """Seconds between two; null for none; not used by serial runs."""
    every_updates: PositiveInt | None = None
    """Updates of the first policy between two; null for none."""
    keep: PositiveInt = 3
    """Newest files kept."""
    keep_best: NonNegativeInt = 1
    """Best files kept beside those: best by the last evaluation where there are evaluators, else by the mean return of
    the last 100 training episodes; before there are so many, a file has no score."""


class ExperimentSpec(Spec):
    """One experiment."""

    seed: NonNegativeInt = 1
    """Everything random follows from it."""
    environment: NamedEnvironment
    """The environment; `factory` names its module, the other keys are that module's settings."""
    policies: Annotated[dict[str, PolicySpec], Field(min_length=1)]
    """Policies by name."""
    agents: tuple[AgentsSpec, ...] = (AgentsSpec(),)
    """Which agents use which policy; the first entry that matches counts."""
    actors: ActorsSpec
    """Ranks that step environments."""
    policy_servers: PolicyServersSpec = PolicyServersSpec()
    """Ranks that serve actions."""
    trainers: TrainersSpec = TrainersSpec()
    """Ranks that train."""
    evaluators: EvaluatorsSpec = EvaluatorsSpec()
    """Ranks that evaluate."""
    stop: StopSpec
    """When the run is finished."""
    checkpoint: CheckpointSpec = CheckpointSpec()
    """Checkpoints."""
    versions: VersionsSpec = VersionsSpec()
    """Past parameters that are kept."""

    @field_validator("policies")
    @classmethod
    def _check_names(cls, policies: dict[str, PolicySpec]) -> dict[str, PolicySpec]:
        for name in policies:
            if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
                raise refusal("a policy's name may only have letters, digits, '_' and '-'", name)
        return policies

    @model_validator(mode="after")
    def _check_agents(self) -> Self:
        for index, entry in enumerate(self.agents):
            if entry.policy not in self.policies:
                hint = did_you_mean(entry.policy, list(self.policies))
                raise refusal(f"'{entry.policy}' is not in policies{hint}", *("agents", index, "policy"))
        return self
