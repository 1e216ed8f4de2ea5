"""The scripts of the Slurm lab, on a copy of it that has no database."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.on_slurm.runs_on_slurm import lab_state

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.usefixtures("lab")]

SCRIPTS = Path(__file__).with_name("lab")


class Copy:
    """A lab of its own.

    Args:
        folder: for its scripts and its state.
    """

    def __init__(self, folder: Path) -> None:
        shutil.copytree(SCRIPTS, folder, ignore=shutil.ignore_patterns(".state*"))
        self.folder = folder
        self.environment = {key: value for key, value in os.environ.items() if key not in ("LAB_PORT", "LAB_STATE")} | {
            "LAB_ACCOUNTING": "0"
        }

    def script(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.folder / name), *arguments]
        # Daemons would hold a pipe open.
        with open(self.folder / "said", "w+") as said:
            done = subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
            said.seek(0)
            return subprocess.CompletedProcess(command, done.returncode, said.read())

    def start(self) -> None:
        done = self.script("start.sh")
        assert done.returncode == 0, done.stdout

    def daemons(self) -> dict[str, int]:
        """Process of each daemon."""
        return {path.name: int(path.read_text()) for path in (self.folder / ".state" / "pids").iterdir()}

    def run(self, *command: str) -> str:
        """The output of a Slurm command."""
        path = str(self.folder / ".state" / "etc" / "slurm.conf")
        environment = os.environ | {"SLURM_CONF": path}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60).stdout

    def wait(self, happened: Callable[[], object]) -> None:
        limit = time.monotonic() + 60.0
        while not happened():
            assert time.monotonic() < limit
            time.sleep(0.1)


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Copy]:
    made = Copy(tmp_path / "lab")
    made.start()
    yield made
    made.script("stop.sh", "--wipe")


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_start_of_a_lab_that_runs_already_changes_nothing(copy: Copy) -> None:
    before = copy.daemons()
    copy.environment["LAB_PORT"] = "1"
    copy.start()
    assert copy.daemons() == before
    assert copy.run("srun", "-w", "cpu2", "hostname") == "cpu2\n"


def test_stop_ends_all_of_this_lab_and_nothing_else(copy: Copy) -> None:
    mine = copy.daemons().values()
    others = [int(path.read_text()) for path in (lab_state() / "pids").iterdir()]
    assert any(is_running(pid) for pid in others), "the lab of the other tests"
    bystander = subprocess.Popen(["sleep", "600"])
    (copy.folder / ".state" / "pids" / "slurmd-cpu1").write_text(str(bystander.pid))
    try:
        copy.script("stop.sh")
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()
    assert not [pid for pid in mine if is_running(pid)]
    assert all(is_running(pid) for pid in others)


def test_lab_runs_again_after_everything_was_killed(copy: Copy) -> None:
    before = copy.daemons()
    for pid in before.values():
        os.kill(pid, signal.SIGKILL)
    copy.start()
    assert not set(before.values()) & set(copy.daemons().values())
    assert len(copy.run("srun", "-N4", "-p", "low", "hostname").split()) == 4


def test_daemon_that_is_recorded_under_the_number_of_another_process_starts(copy: Copy) -> None:
    os.kill(copy.daemons()["slurmctld"], signal.SIGKILL)
    (copy.folder / ".state" / "pids" / "slurmctld").write_text(str(os.getpid()))
    copy.start()
    assert copy.run("srun", "hostname")
    assert copy.daemons()["slurmctld"] != os.getpid()


def test_tasks_of_a_killed_node_are_gone_and_it_can_start_again(copy: Copy) -> None:
    copy.run("sbatch", "-p", "gpu", "-w", "gpu1", "-o", "/dev/null", "--no-requeue", "--wrap=exec sleep 987")
    daemon = copy.daemons()["slurmd-gpu1"]
    copy.wait(lambda: tasks_of(daemon))
    task = tasks_of(daemon)[0]
    assert copy.script("kill-node.sh", "gpu1").returncode == 0
    assert not is_running(task)
    assert not is_running(daemon)
    assert copy.script("kill-node.sh", "gpu1").returncode == 1
    copy.script("start-node.sh", "gpu1")
    copy.run("scancel", "-w", "gpu1")
    copy.wait(lambda: copy.run("sinfo", "-h", "-N", "-n", "gpu1", "-p", "gpu", "-o", "%t").strip() == "idle")
    assert copy.run("srun", "-p", "gpu", "-w", "gpu1", "hostname") == "gpu1\n"


def tasks_of(daemon: int) -> list[int]:
    """The `sleep` on the node of a daemon."""
    done = subprocess.run(["pgrep", "-x", "sleep"], capture_output=True, text=True)
    return [int(pid) for pid in done.stdout.split() if namespace_of(int(pid)) == namespace_of(daemon)]


def namespace_of(pid: int) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt")
    except OSError:
        return None


def test_start_without_a_free_port_is_refused_with_that_reason(tmp_path: Path) -> None:
    copy = Copy(tmp_path / "lab")
    with socket.create_server(("127.0.0.1", 0)) as server:
        copy.environment["LAB_PORT"] = str(server.getsockname()[1] - 3)
        done = copy.script("start.sh")
    copy.script("stop.sh", "--wipe")
    assert done.returncode == 1
    assert "is in use" in done.stdout
