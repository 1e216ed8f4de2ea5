"""A PPO update on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from srlhpc.environment import Continuous, Discrete
from srlhpc.ranks.torch_precision import set_matmul_precision
from srlhpc.specs.policy import NormalizeSpec
from tests.algorithms.collecting import context, finish, moved
from tests.algorithms.test_ppo_update import GRU, LSTM, collected, learner, parameters
from tests.algorithms.tiny_environments import Matching

pytestmark = [
    pytest.mark.gpu,
    # Trained weights are views of one flat vector, which cuDNN copies together at each call.
    pytest.mark.filterwarnings("ignore:RNN module weights"),
]
NORMALIZED = NormalizeSpec(observations=True, returns="pop_art")


@pytest.fixture(autouse=True)
def exact_products() -> Iterator[None]:
    before = torch.backends.cudnn.allow_tf32
    set_matmul_precision(torch.device("cuda"), "float32")
    yield
    torch.backends.cudnn.allow_tf32 = before


@pytest.mark.parametrize("recurrent", [None, LSTM, GRU], ids=["none", "lstm", "gru"])
@pytest.mark.parametrize("actions", [Discrete(5), Continuous(2)], ids=["discrete", "continuous"])
@pytest.mark.parametrize("settings", [{}, {"target_kl": 1e-6}, {"normalize": NORMALIZED}], ids=str)
def test_update_on_a_gpu_is_that_of_a_cpu_within_rounding(
    recurrent: dict[str, Any] | None, actions: Discrete | Continuous, settings: dict[str, Any]
) -> None:
    environment = Matching(actions, length=5)
    batch = collected(environment, learner(environment, recurrent=recurrent)[0])
    found = []
    for device in ("cpu", "cuda"):
        using = context(device=device)
        policy, algorithm = learner(environment, using, recurrent=recurrent, epochs=2, minibatches=2, **settings)
        metrics = finish(algorithm.update(moved(batch, using.device)))
        found.append((metrics, {name: tensor.cpu() for name, tensor in parameters(policy).items()}))
    (metrics, weights), (metrics_gpu, weights_gpu) = found
    assert metrics_gpu == pytest.approx(metrics, rel=1e-3, abs=1e-4)
    torch.testing.assert_close(weights_gpu, weights, rtol=1e-4, atol=2e-5)


def test_update_on_a_gpu_without_memory_or_normalisers_never_holds_the_host_up() -> None:
    environment = Matching(Discrete(5), length=5)
    using = context(device="cuda")
    policy, algorithm = learner(environment, using, minibatches=4)
    batch = moved(collected(environment, learner(environment)[0]), using.device)
    torch.cuda.set_sync_debug_mode("error")
    try:
        finish(algorithm.update(batch))
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert policy.get_parameter("policy_head.linear.weight").is_cuda
