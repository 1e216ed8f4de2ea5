"""Ranks that are forked are as if their launcher had started them."""

from __future__ import annotations

import json
import os
import resource
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from srlhpc.data.atomic import write_json
from srlhpc.launch.fork_server import ForkServer, fork_server
from srlhpc.ranks.fork_stub import SIZE
from srlhpc.runs.processes import FORK_SERVER_VARIABLE, kill_processes_of, processes_of
from srlhpc.specs.child_processes import marked
from tests.launch.fake_runs import wait_for

RANK = """
import json, os, resource, signal, subprocess, sys, time

def main():
    how = sys.argv[1] if len(sys.argv) > 1 else "tell"
    if how == "exit":
        return int(sys.argv[2])
    if how == "die":
        os.kill(os.getpid(), int(sys.argv[2]))
    if how == "raise":
        raise RuntimeError("told to")
    if how == "fork" and os.fork() == 0:
        os.setsid()
    if how in ("wait", "fork"):
        # In one piece: two processes write to one pipe.
        os.write(1, b"%d\\n" % os.getpid())
        time.sleep(600)
    print(json.dumps({
        "arguments": sys.argv, "word": os.environ.get("WORD"), "folder": os.getcwd(),
        "ignores": signal.getsignal(signal.SIGUSR1) == signal.SIG_IGN, "umask": os.umask(0),
        "said": os.read(int(os.environ["NUMBER"]), 100).decode(), "torch": "torch" in sys.modules,
        "leads": os.getsid(0) == os.getpid(), "shell": os.fsdecode(subprocess.check_output("echo $WORD", shell=True)),
        "unbuffered": sys.stdout.line_buffering or sys.stdout.write_through,
        "cores": len(os.sched_getaffinity(0)), "files": resource.getrlimit(resource.RLIMIT_NOFILE),
    }))
    print("a complaint", file=sys.stderr)
    return 0

if __name__ == "__main__":
    sys.exit(main())
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folder of the module `stand_in_rank`."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / "stand_in_rank.py").write_text(RANK)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder))
        yield folder


@pytest.fixture(scope="module")
def server(program: Path) -> Iterator[ForkServer]:  # noqa: ARG001
    with fork_server() as forks:
        assert forks is not None
        yield forks


def command(server: ForkServer, *arguments: str) -> list[str]:
    return server.program([sys.executable, "-m", "stand_in_rank", *arguments])


@contextmanager
def started(server: ForkServer, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, **server.environment}
    with subprocess.Popen(command(server, *arguments), env=environment, stdout=subprocess.PIPE, text=True) as stub:
        try:
            yield stub
        finally:
            stub.kill()


def code_of(server: ForkServer, *arguments: str) -> int:
    return subprocess.run(command(server, *arguments), env={**os.environ, **server.environment}, check=False).returncode


def pids(process: subprocess.Popen[str], count: int = 1) -> list[int]:
    assert process.stdout is not None
    return [int(process.stdout.readline()) for _ in range(count)]


def is_alive(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}") and "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()


def narrow() -> None:
    """What launchers do to a process before it starts."""
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    resource.setrlimit(resource.RLIMIT_NOFILE, (333, 444))


def told(arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """What a rank says that is started with a word, a folder, a pipe, and USR1 ignored."""
    read, write = os.pipe()
    os.write(write, b"through the pipe")
    os.close(write)
    done = subprocess.run(
        arguments,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **environment, "NUMBER": str(read)},
        pass_fds=[read],
        umask=0o027,
        preexec_fn=narrow,
    )
    os.close(read)
    assert done.stderr == "a complaint\n"
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_rank_takes_over_what_its_stub_was_started_with(server: ForkServer, tmp_path: Path) -> None:
    word = {"WORD": "wide\udcff", **server.environment}

    found = told(command(server, "tell", "it"), tmp_path, word)

    assert found.pop("torch") is True
    assert found == {
        "arguments": ["stand_in_rank", "tell", "it"],
        "word": "wide\udcff",
        "folder": str(tmp_path),
        "ignores": True,
        "umask": 0o027,
        "said": "through the pipe",
        "leads": True,
        "shell": "wide\udcff\n",
        "unbuffered": True,
        "cores": 1,
        "files": [333, 444],
    }


@pytest.mark.parametrize("code", [0, 1, 77])
def test_stub_ends_with_the_code_of_its_rank(server: ForkServer, code: int) -> None:
    assert code_of(server, "exit", str(code)) == code


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGBUS])
def test_stub_dies_of_what_its_rank_dies_of(server: ForkServer, number: signal.Signals) -> None:
    assert code_of(server, "die", str(int(number))) == -number


def test_rank_that_fails_says_so(server: ForkServer) -> None:
    environment = {**os.environ, **server.environment}
    done = subprocess.run(command(server, "raise"), env=environment, capture_output=True, text=True)

    assert done.returncode == 1
    assert done.stderr.endswith("RuntimeError: told to\n")


def test_rank_dies_with_its_stub(server: ForkServer) -> None:
    with started(server, "wait") as stub:
        (rank,) = pids(stub)

        stub.kill()

        wait_for(lambda: not is_alive(rank))


def test_stub_and_rank_die_with_the_script_around_them(server: ForkServer) -> None:
    script = f"{shlex.join(command(server, 'wait'))} & echo $!; wait"
    environment = {**os.environ, **server.environment}
    with subprocess.Popen(["sh", "-c", script], env=environment, stdout=subprocess.PIPE, text=True) as shell:
        processes = pids(shell, 2)

        shell.kill()

        wait_for(lambda: not any(is_alive(pid) for pid in processes))


def test_rank_and_stub_die_with_the_server_alone(program: Path) -> None:  # noqa: ARG001
    with fork_server() as forks:
        assert forks is not None
        with started(forks, "wait") as stub:
            (rank,) = pids(stub)

            forks.process.kill()

            assert stub.wait() == -signal.SIGKILL
            wait_for(lambda: not is_alive(rank))


def test_stub_becomes_the_rank_where_the_server_ends_while_it_loads(
    tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "h5py.py").write_text("import time; time.sleep(3); raise ImportError('not for this machine')")
    monkeypatch.setenv("PYTHONPATH", f"{broken}{os.pathsep}{program}")

    with fork_server() as forks:
        assert forks is not None
        assert code_of(forks, "exit", "5") == 5

    assert "the fork server ended with 1; ImportError: not for this machine" in caplog.text


@pytest.mark.parametrize(
    "content", [b"x", SIZE.pack(100) + b"{", SIZE.pack(2) + b"[]", SIZE.pack(19) + b'{"environment": {}}']
)
def test_request_that_breaks_off_leaves_no_descriptor_open(server: ForkServer, content: bytes) -> None:
    read, write = os.pipe()
    with socket.socket(socket.AF_UNIX) as stub:
        stub.connect("\0" + command(server)[4])
        socket.send_fds(stub, [content], [write])
    os.close(write)

    # It ends where nobody holds its other end.
    assert os.read(read, 1) == b""

    os.close(read)
    assert code_of(server, "exit", "0") == 0


def test_stub_that_does_not_know_the_secret_gets_no_rank(server: ForkServer, tmp_path: Path) -> None:
    found = told(command(server, "tell"), tmp_path, {"WORD": "", "PYTHONUNBUFFERED": "1"})

    assert not found["torch"]


def test_no_server_where_ranks_may_see_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")

    with fork_server() as forks:
        assert forks is None


def test_many_ranks_start_at_once(server: ForkServer) -> None:
    with ExitStack() as stack:
        stubs = [stack.enter_context(started(server, "exit", str(code))) for code in range(20)]

        assert [stub.wait() for stub in stubs] == list(range(20))


def test_ranks_and_what_they_forked_die_with_the_server(program: Path) -> None:  # noqa: ARG001
    with fork_server() as forks:
        assert forks is not None
        with started(forks, "fork") as stub:
            ranks = pids(stub, 2)
            # Also the one that has left the session of the other.
            assert set(ranks) < set(marked(FORK_SERVER_VARIABLE, forks.token))

            assert forks.close() == []

            assert stub.wait() == -signal.SIGKILL
            wait_for(lambda: not any(is_alive(rank) for rank in ranks))


def test_what_an_attempt_forked_is_found_by_its_description(server: ForkServer, tmp_path: Path) -> None:
    attempt = tmp_path / "attempts/0001"
    attempt.mkdir(parents=True)
    write_json(attempt / "attempt.json", {"fork_server": server.token})
    with started(server, "wait") as stub:
        (rank,) = pids(stub)

        assert rank in processes_of(attempt)


def test_stub_becomes_the_rank_where_no_server_answers(program: Path, tmp_path: Path) -> None:  # noqa: ARG001
    with fork_server() as forks:
        assert forks is not None
    environment = {"WORD": "plain", "PYTHONPATH": str(program), "PYTHONUNBUFFERED": "1"}

    found = told(command(forks, "tell"), tmp_path, environment)

    assert (found["torch"], found["word"], found["said"]) == (False, "plain", "through the pipe")
    assert Path(found["arguments"][0]).name == "stand_in_rank.py"


def test_killing_an_attempt_kills_its_server(program: Path, tmp_path: Path) -> None:  # noqa: ARG001
    attempt = tmp_path / "attempts/0001"
    attempt.mkdir(parents=True)
    with fork_server() as forks:
        assert forks is not None
        write_json(attempt / "attempt.json", {"fork_server": forks.token})
        with started(forks, "fork") as stub:
            ranks = pids(stub, 2)

            assert kill_processes_of(attempt) == []

            assert marked(FORK_SERVER_VARIABLE, forks.token) == []
            wait_for(lambda: not any(is_alive(rank) for rank in ranks))


def test_server_is_not_started_where_it_is_not_wanted() -> None:
    with fork_server(wanted=False) as forks:
        assert forks is None
