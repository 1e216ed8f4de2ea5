"""Multi-agent MuJoCo: a robot's joints are shared out among agents (Peng et al. 2021, arXiv:2003.06709), by the
package `gymnasium-robotics`."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import NonNegativeInt

from envs._bare_modules import load_bare
from envs._mujoco_log import log_warnings
from srlhpc.environment import Environment
from srlhpc.errors import UserError
from srlhpc.specs.named_modules import EnvironmentSettings


class Settings(EnvironmentSettings):
    """One robot and how it is shared out. All agents get its reward, and their episodes end with its own."""

    requires: ClassVar[dict[str, str]] = {"gymnasium_robotics": "mamujoco"}

    scenario: Literal[
        "Ant",
        "HalfCheetah",
        "Hopper",
        "Humanoid",
        "HumanoidStandup",
        "ManySegmentAnt",
        "ManySegmentSwimmer",
        "Pusher",
        "Reacher",
        "Swimmer",
        "Walker2d",
    ]
    """Which robot; one of Gymnasium's in its version v5, or of many segments."""
    agent_conf: str
    """How its joints are shared out, mostly agents × joints of each: `6x1` or `2x3` of HalfCheetah, `4x2` of Ant, `9|8`
    of Humanoid."""
    agent_obsk: NonNegativeInt = 1
    """How many joints away an agent sees; 0: its own joints alone."""
    kwargs: dict[str, Any] = {}
    """Further arguments of `gymnasium.make`, for example `{max_episode_steps: 500}`."""
    state: bool = False
    """Whether rules that learn from all agents together get what the whole robot shows of itself; else they get all
    observations side by side."""


def build(settings: Settings, num_environments: int, seed: int, render: bool = False) -> Environment:
    """Makes the environment.

    Raises:
        UserError: the robot cannot be shared out so, or takes other arguments.
    """
    from envs._mamujoco_bodies import Body
    from envs.pettingzoo import from_simulators

    log_warnings()
    # The whole package would register hundreds of environments, with warnings about some of them.
    make = load_bare("gymnasium_robotics.envs.multiagent_mujoco.mujoco_multi").MultiAgentMujocoEnv
    bodies = [Body(_shared_out(make, settings, render)) for _ in range(num_environments)]
    where = f"environment '{settings.scenario} {settings.agent_conf}'"
    return from_simulators(bodies, seed, where, gives_state=settings.state)


def _shared_out(make: Any, settings: Settings, render: bool) -> Any:
    arguments = settings.kwargs | {"render_mode": "rgb_array"} if render else settings.kwargs
    try:
        # What Gymnasium's checker looks at is looked at again behind it.
        return make(settings.scenario, settings.agent_conf, settings.agent_obsk, disable_env_checker=True, **arguments)
    except TypeError as error:
        raise UserError(f"environment.kwargs of '{settings.scenario}': {error}") from None
    except Exception as error:
        if "UNKNOWN partitioning config" not in str(error):
            raise
        raise UserError(
            f"environment.agent_conf: '{settings.scenario}' cannot be shared out as '{settings.agent_conf}'; "
            "https://robotics.farama.org/envs/MaMuJoCo/ lists how it can"
        ) from None
