"""The environment of entities that other tests rely on keeps the contract itself."""

from __future__ import annotations

from tests.environment_conformance import EnvironmentConformance


class TestFinding(EnvironmentConformance):
    settings = {"factory": "tests.finding"}
    offers_state = True
