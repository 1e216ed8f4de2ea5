"""The scripted environment that other tests rely on keeps the contract itself."""

from __future__ import annotations

from srlhpc.environment import Environment
from tests.environment_conformance import ContractConformance, EnvironmentConformance
from tests.scripted import Script, Scripted


class TestScripted(EnvironmentConformance):
    settings = {"factory": "tests.scripted", "steps": ((1, 3), (2,)), "agents": ("agent_0", "agent_1")}
    is_random = False
    offers_state = True


class TestScriptedComingsAndGoings(ContractConformance):
    is_random = False
    offers_state = True

    @classmethod
    def build(cls, seed: int = 1) -> Environment:  # noqa: ARG002
        scripts = [
            Script(5, "truncated", {"agent_1": [(0, 2)], "agent_2": [(1, 3), (4, 5)]}),
            Script(1, "truncated"),
            Script(3, "terminated", {"agent_0": [(0, 1)], "agent_1": [(2, 3)]}),
        ]
        agents = {"agent": ("agent_0", "agent_1"), "other": ("agent_2",)}
        return Scripted([scripts[env:] for env in range(cls.num_environments)], agents)
