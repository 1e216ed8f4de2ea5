"""SMAX, where jaxmarl is installed."""

from __future__ import annotations

import importlib.util
from typing import ClassVar

import pytest

from tests.environment_conformance import EnvironmentConformance

pytestmark = pytest.mark.skipif(importlib.util.find_spec("jaxmarl") is None, reason="needs the package jaxmarl")


class TestMarines(EnvironmentConformance):
    settings: ClassVar = {"factory": "smax", "scenario": "3m", "max_steps": 25}
    offers_state: ClassVar[bool] = True
