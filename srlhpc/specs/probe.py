"""Finding an environment's spaces without loading its simulator into this process.

`python -m srlhpc.specs.probe FACTORY` reads the settings as JSON from stdin, builds one copy and prints the answer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from srlhpc.environment import Spaces
from srlhpc.objects import UserError, load_module, missing_packages
from srlhpc.specs.modules import EnvironmentSettings

TIMEOUT_SECONDS = 600.0


def probe_spaces(settings: EnvironmentSettings, timeout_seconds: float = TIMEOUT_SECONDS) -> Spaces:
    """The environment's spaces: from its settings where static, else from a copy built in a subprocess.

    Raises:
        UserError: a package is missing, the environment does not build, or its spaces are empty.
    """
    check_packages(settings)
    spaces = settings.spaces()
    if spaces is None:
        spaces = Spaces.from_json(_ask_subprocess(settings, timeout_seconds))
    if not spaces.kinds or not all(kind.agents for kind in spaces.kinds):
        raise UserError(f"environment '{settings.factory}' has no agents, so there is nothing to train")
    return spaces


def check_packages(settings: EnvironmentSettings) -> None:
    """Raises UserError with the command that installs what the environment needs, if anything is missing."""
    missing = missing_packages(settings.requires)
    if missing:
        packages = ", ".join(f"'{package}'" for package, _ in missing)
        extras = ",".join(sorted({extra for _, extra in missing}))
        raise UserError(
            f"environment '{settings.factory}' needs {packages}, which is not installed here: "
            f"pip install 'srlhpc[{extras}]'"
        )


def _ask_subprocess(settings: EnvironmentSettings, timeout_seconds: float) -> dict[str, Any]:
    name = settings.factory
    try:
        done = subprocess.run(
            [sys.executable, "-m", "srlhpc.specs.probe", name],
            input=settings.model_dump_json(),
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
        )
    except subprocess.TimeoutExpired:
        raise UserError(f"environment '{name}' was not built within {timeout_seconds:g} s") from None
    if done.returncode == 0:
        answer: dict[str, Any] = json.loads(done.stdout)
        if "error" in answer:
            raise UserError(f"environment '{name}' cannot be built: {answer['error']}")
        return answer
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    last = lines[-1].strip() if lines else "no message"
    raise UserError(f"environment '{name}' cannot be built (exit code {done.returncode}): {last}")


def _answer(factory: str, settings_json: str) -> dict[str, Any]:
    try:
        module = load_module(factory, "envs")
        environment = module.build(module.Settings.model_validate_json(settings_json), copies=1, seed=0)
    except UserError as error:
        return {"error": str(error)}
    spaces: dict[str, Any] = environment.spaces.to_json()
    environment.close()
    return spaces


def _main() -> None:
    # What simulators print on stdout must not mix with the answer.
    answer_file = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with answer_file:
        json.dump(_answer(sys.argv[1], sys.stdin.read()), answer_file)


if __name__ == "__main__":
    _main()
