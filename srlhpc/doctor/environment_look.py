"""The process that examines an environment: `python -m srlhpc.doctor.environment_look FACTORY COUNT NORMALIZES FD`.

It reads the settings as JSON from stdin and writes each finding as a line of JSON to the file descriptor.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
from dataclasses import asdict
from typing import Any

from srlhpc.doctor.environment_check import examine_environment
from srlhpc.environment import Environment
from srlhpc.import_path import load_module


def main() -> None:
    """Examines, and tells of it."""
    faulthandler.enable(all_threads=False)
    factory, count, normalizes, descriptor = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "1", int(sys.argv[4])
    os.set_inheritable(descriptor, False)
    settings_json = sys.stdin.read()
    module = load_module(factory, "envs")
    settings: Any = module.Settings.model_validate(json.loads(settings_json))

    def build(seed: int) -> Environment:
        built: Environment = module.build(settings, num_environments=count, seed=seed)
        return built

    with open(descriptor, "w", buffering=1) as answers:
        for finding in examine_environment(build, normalizes=normalizes):
            answers.write(json.dumps(asdict(finding)) + "\n")
        answers.write("{}\n")


if __name__ == "__main__":
    main()
