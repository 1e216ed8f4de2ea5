"""Values of a team, mixed of its agents' values, learnt like those of one.

Letters: R records of a window, T trained ones, B columns (copies), A agents.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from srlhpc.algorithms.algorithm import Algorithm, Batch, Context
from srlhpc.algorithms.q_learning.learned import Means
from srlhpc.algorithms.q_learning.update import QLearning, Values
from srlhpc.algorithms.q_learning.windows import Pair, places_of, sums, trained, values
from srlhpc.algorithms.vdn.mixer import Mixer
from srlhpc.algorithms.vdn.settings import Settings
from srlhpc.algorithms.vdn.team import of_agents, of_team, present, states
from srlhpc.policies.contracts import ActionValuePolicy


class _Both(NamedTuple):
    """The parts of what is trained, or of its target."""

    policy: ActionValuePolicy
    mixer: Mixer


def mixed(settings: Settings, policy: ActionValuePolicy, mixer: Mixer, context: Context) -> Algorithm:
    """Q-learning of what a mixer makes of the values of a policy's agents.

    Args:
        settings: of the rule.
        policy: what acts.
        mixer: on the device of the policy; trained with it, and on trainers alone.
        context: of the trainer.
    """
    online = nn.ModuleList([policy, mixer])

    def of_team_values(target: nn.Module, batch: Batch) -> Values:
        return _values(settings, _Both(policy, mixer), _parts(target), batch, context)

    learned = Means(is_huber=settings.loss == "huber", rescaled=settings.rescale)
    return QLearning(settings, online, of_team_values, learned, context, mixer)


def _parts(module: nn.Module) -> _Both:
    policy, mixer = cast("nn.ModuleList", module)
    return _Both(cast("ActionValuePolicy", policy), cast("Mixer", mixer))


def _values(settings: Settings, online: _Both, target: _Both, batch: Batch, context: Context) -> Values:
    team = of_team(batch, settings.team_reward)
    steps = sums(team, gamma=settings.gamma, n=settings.n_steps)
    agents = batch.valid.shape[-1]
    with context.arithmetic():
        lengths = steps.lengths.repeat_interleave(agents, dim=1)
        each = values(online.policy, target.policy, of_agents(batch), lengths, double=settings.double)
    taken, later = (part.view(len(part), -1, agents) for part in each)

    now = trained(batch)
    places = places_of(steps.lengths) + batch.burn_in_steps
    columns = torch.arange(places.shape[1], device=places.device)
    taken = torch.where(batch.valid[now], taken, 0.0)
    later = torch.where(present(batch)[places, columns], later, 0.0)
    with torch.no_grad():
        seen = states(batch) if online.mixer.uses_state else None
        followed = target.mixer(later, None if seen is None else seen[places, columns])
    together: Tensor = online.mixer(taken, None if seen is None else seen[now])
    return Values(steps, Pair(together, followed), team.valid[now])
