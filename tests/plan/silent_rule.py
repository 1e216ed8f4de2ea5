"""A learning rule that does not say what it needs."""

from __future__ import annotations

from typing import NoReturn

from srlhpc.specs.named_modules import AlgorithmSettings


class Settings(AlgorithmSettings):
    pass


def build(settings: Settings, policy: object, context: object) -> NoReturn:
    raise NotImplementedError
