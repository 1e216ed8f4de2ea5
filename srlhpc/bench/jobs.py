"""Jobs with the synthetic environment, as a job file would say them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from srlhpc.bench.runs import STEPS_WITHOUT_END

MLP = {"kind": "mlp", "hidden": [64, 64]}
CNN = {"kind": "nature_cnn"}
PIXELS = {"observation_shape": [4, 84, 84], "observation_dtype": "uint8"}


def synthetic_job(
    environment: Mapping[str, Any],
    actors: Mapping[str, Any],
    *,
    network: Mapping[str, Any] = MLP,
    fragments: int,
    fragment_steps: int,
    epochs: int = 1,
    minibatches: int = 1,
    **sections: Any,
) -> dict[str, Any]:
    """A job without end.

    Args:
        environment: settings of `envs.synthetic`.
        actors: as in a spec.
        network: as in a spec.
        fragments: of a batch.
        fragment_steps: of a batch.
        epochs: of PPO.
        minibatches: of PPO.
        sections: further sections of the spec.
    """
    return {
        "environment": {"factory": "synthetic", **environment},
        "policies": {
            "default": {
                "network": dict(network),
                "algorithm": {"kind": "ppo", "epochs": epochs, "minibatches": minibatches},
                "batch": {"fragments": fragments, "fragment_steps": fragment_steps},
            }
        },
        "actors": dict(actors),
        "stop": {"steps": STEPS_WITHOUT_END},
        "checkpoint": {"every_seconds": None},
        **sections,
    }
