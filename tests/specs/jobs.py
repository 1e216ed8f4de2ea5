"""A job file of the tests, one setting a line so that line numbers are easy to name."""

from __future__ import annotations

from pathlib import Path

JOB = """\
seed: 1
environment: {factory: catch}
policies:
  default:
    network:
      kind: mlp
    algorithm:
      kind: ppo
      learning_rate: 3e-4
    batch:
      fragments: 8
      fragment_steps: 16
actors:
  ranks: 2
stop:
  steps: 1_000_000
"""


def write(folder: Path, text: str, name: str = "job.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path
