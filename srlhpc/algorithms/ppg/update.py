"""One update of phasic policy gradient: PPO's on the batch, and after so many of them an auxiliary phase.

The auxiliary phase is a part of the update in which it falls due, so that it needs no batch of its own.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

import torch
from torch import Tensor

from srlhpc.algorithms.algorithm import Algorithm, Batch, Context, DivergedError, Update
from srlhpc.algorithms.named_tensors import check_fits, joined, part_of
from srlhpc.algorithms.ppg.auxiliary_phase import METRICS, AuxiliaryPhase
from srlhpc.algorithms.ppg.kept_batches import KeptBatches
from srlhpc.algorithms.ppg.settings import Settings
from srlhpc.algorithms.ppo.update import Ppo
from srlhpc.algorithms.undoing import undone_if_diverged
from srlhpc.policies.layers.heads import Scale
from srlhpc.policies.phasic import PhasicActorCritic

_KEPT = "kept"


class Ppg(Algorithm):
    """Phasic policy gradient of an actor-critic, and of a value beside its policy that only trainers have."""

    def __init__(self, settings: Settings, trained: PhasicActorCritic, context: Context) -> None:
        self._settings, self._trained, self._context = settings, trained, context
        self._ppo = Ppo(settings, trained.policy, context, trained.evaluate_apart)
        self._phase = AuxiliaryPhase(settings, trained, self._ppo.optimizer, context)
        self._kept = KeptBatches(context.batch, settings.auxiliary_every_updates)
        self._phases = torch.zeros((), dtype=torch.int64)
        self._told = torch.zeros(len(METRICS), dtype=torch.float64)

    def update(self, batch: Batch) -> Generator[None, None, Update]:
        kept = self._kept.count
        optimizers = self._ppo.optimizer, self._phase.policy_adam, self._phase.head_adam
        try:
            with undone_if_diverged(self._trained, *optimizers):
                return Update((yield from self._update(batch)))
        except DivergedError:
            self._kept.forget_since(kept)
            raise

    def state(self) -> Mapping[str, Tensor]:
        kept = {_KEPT: self._kept.state()} if self._settings.keeps_in_checkpoints else {}
        return joined(self._parts() | kept)

    @torch.no_grad()
    def load_state(self, state: Mapping[str, Tensor]) -> None:
        kept = part_of(state, _KEPT)
        others = {name: tensor for name, tensor in state.items() if not name.startswith(f"{_KEPT}.")}
        check_fits(joined(self._parts()), others, "state of ppg")
        for name, part in (
            ("policy", self._ppo.optimizer),
            ("auxiliary", self._phase.policy_adam),
            ("head", self._phase.head_adam),
        ):
            part.load_state({key: tensor for key, tensor in part_of(state, name).items() if key != "parameters"})
        self._phase.head_adam.parameters.copy_(state["head.parameters"])
        self._phases.copy_(state["phases.count"])
        self._told.copy_(state["phases.told"])
        self._kept.load_state(kept)

    def _parts(self) -> dict[str, Mapping[str, Tensor]]:
        head = self._phase.head_adam
        return {
            "policy": self._ppo.state(),
            "auxiliary": self._phase.policy_adam.state(),
            "head": {"parameters": head.parameters, **head.state()},
            "phases": {"count": self._phases, "told": self._told},
        }

    def _update(self, batch: Batch) -> Generator[None, None, dict[str, float]]:
        estimated = self._ppo.estimates(batch)
        before = self._scale()
        metrics = yield from self._ppo.learn(batch, estimated)
        # Nobody reads the auxiliary value before the next phase: what it stands for stays, however returns are scaled.
        self._trained.auxiliary_head.rescale(before, self._scale())
        if batch.is_first_use:
            self._kept.keep(batch, estimated.returns)
        if self._kept.is_full:
            told = yield from self._phase.run(self._kept.as_one(batch), self._kept.count)
            self._told.copy_(torch.tensor(told, dtype=torch.float64))
            self._phases += 1
            self._kept.forget_since(0)
        return metrics | self._metrics()

    def _scale(self) -> Scale:
        """What the value head's 0 and 1 stand for, in units of the return."""
        shift, one = self._trained.policy.denormalize_values(torch.tensor([0.0, 1.0], device=self._context.device))
        return Scale(shift, one - shift)

    def _metrics(self) -> dict[str, float]:
        """Numbers of the last phase: of all updates of a second only the newest is told, which seldom holds a phase."""
        phases = float(self._phases)
        told = dict(zip(METRICS, self._told.tolist(), strict=True)) if phases else {}
        return {"auxiliary_phases": phases, **told}
