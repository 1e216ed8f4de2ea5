"""Sections of an experiment that say how many ranks have a role, and what they do it with."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from srlhpc.specs.spec import Spec


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
