"""Settings of phasic policy gradient."""

from __future__ import annotations

import pytest

from srlhpc.algorithms import ppg
from srlhpc.errors import UserError
from srlhpc.policies import mlp
from srlhpc.specs.batch import BatchSpec
from tests.algorithms.test_ppo_update import LSTM


def test_defaults_are_the_authors() -> None:
    settings = ppg.Settings(kind="ppg")
    assert (settings.auxiliary_every_updates, settings.epochs, settings.auxiliary_epochs) == (32, 1, 6)
    assert (settings.learning_rate, settings.auxiliary_learning_rate) == (5e-4, 5e-4)
    assert (settings.gamma, settings.gae_lambda, settings.clip_ratio) == (0.999, 0.95, 0.2)
    # 64 fragments of each of 32 batches, 4 at a time.
    assert (settings.minibatches, settings.auxiliary_minibatches) == (8, 64 // 4)


def test_minibatches_of_the_phase_must_divide_the_batch() -> None:
    settings = ppg.Settings(kind="ppg", minibatches=2, auxiliary_minibatches=3)
    settings.check(BatchSpec(fragments=4, fragment_steps=6), mlp.Settings(kind="mlp"))
    with pytest.raises(UserError, match="algorithm.auxiliary_minibatches is 3, .* batch of 4 fragments"):
        settings.check(
            BatchSpec(fragments=4, fragment_steps=6), mlp.Settings.model_validate({"kind": "mlp", "recurrent": LSTM})
        )


@pytest.mark.parametrize(
    ("key", "here"),
    [("n_pi", "auxiliary_every_updates"), ("beta_clone", "kl_coefficient"), ("lr", "learning_rate")],
)
def test_words_of_other_tools_are_answered(key: str, here: str) -> None:
    with pytest.raises(ValueError, match=f"here it is {here}"):
        ppg.Settings.model_validate({"kind": "ppg", key: 1})


def test_negative_learning_rates_are_refused() -> None:
    for key in ("learning_rate", "auxiliary_learning_rate"):
        with pytest.raises(ValueError, match="must not be negative"):
            ppg.Settings.model_validate({"kind": "ppg", key: -1.0})
