"""The environment of a job, examined in a process of its own, which it may break."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence

from srlhpc.doctor.findings import Finding, fault
from srlhpc.specs.child_processes import die_with_parent, kill_marked
from srlhpc.specs.load import load_job
from srlhpc.specs.named_modules import EnvironmentSettings
from srlhpc.specs.probe import check_packages
from srlhpc.specs.probe_process import place_in_stack

_MARK = "SRLHPC_DOCTOR_ENVIRONMENT"
"""Environment variable of all processes that the environment starts."""
_LAST_BYTES, _LAST_LINES = 16_384, 3


def examine_job(job: str, overrides: Sequence[str]) -> Iterator[Finding]:
    """What can be told of a job's environment.

    Args:
        job: its file.
        overrides: `path=value`.

    Raises:
        UserError: the file cannot be read, or a package is missing.
    """
    spec = load_job(job, overrides).spec
    check_packages(spec.environment)
    normalizes = all(policy.normalize.observations for policy in spec.policies.values())
    return _looked_at(spec.environment, max(2, spec.actors.environments), normalizes)


def _looked_at(settings: EnvironmentSettings, count: int, normalizes: bool) -> Iterator[Finding]:
    mark = uuid.uuid4().hex
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
    reading, writing = os.pipe()
    with tempfile.TemporaryFile(buffering=0) as asked, tempfile.TemporaryFile(buffering=0) as said:
        asked.write(settings.model_dump_json().encode())
        asked.seek(0)
        arguments = [settings.factory, str(count), str(int(normalizes)), str(writing)]
        process = subprocess.Popen(
            [sys.executable, "-m", "srlhpc.doctor.environment_look", *arguments],
            stdin=asked,
            stdout=said,
            stderr=said,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths, _MARK: mark},
            pass_fds=[writing],
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
        os.close(writing)
        ended = False
        try:
            with open(reading) as answers:
                for line in answers:
                    if content := json.loads(line):
                        yield Finding(**content)
                    ended |= not content
            if not ended:
                said.seek(0)
                yield _broken(process.wait(), said.read()[-_LAST_BYTES:].decode(errors="replace"))
        finally:
            process.kill()
            process.wait()
            kill_marked(_MARK, mark)


def _broken(code: int, text: str) -> Finding:
    """What is told of a process that ended before it had told all."""
    known = -code in set(signal.Signals)
    how = (
        f"exit code {code}" if code >= 0 else f"signal {-code}" + (f" ({signal.Signals(-code).name})" if known else "")
    )
    words, _, stack = text.partition("Fatal Python error")
    where = place_in_stack(stack)
    lines = [line.strip() for line in words.splitlines() if line.strip()][-_LAST_LINES:]
    last = f"; the last that it wrote: {' / '.join(lines)}" if lines else ""
    return fault("process", f"it ended its process ({how}){f', in {where}' if where else ''}{last}", "correct it there")
