"""Who runs a run."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from srlhpc.data.atomic import write_json
from srlhpc.data.server_time import age
from srlhpc.errors import UserError
from srlhpc.runs.lease import Lease, read_lease
from srlhpc.runs.processes import ProcessIdentity, is_used, processes_of
from tests.failing_disk import FailingDisk


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lease.json"


def hold(path: Path, identity: ProcessIdentity) -> None:
    write_json(path, {**identity.to_json(), "attempt": 3, "renewed": 0.0})


def test_taken_lease_names_this_process(path: Path) -> None:
    Lease(path).take(2)
    holder = read_lease(path)
    assert holder
    assert (holder.process.pid, holder.attempt, holder.is_alive()) == (os.getpid(), 2, True)
    assert [file.name for file in path.parent.iterdir()] == ["lease.json"]


def test_lease_of_a_living_holder_is_refused(path: Path) -> None:
    identity = ProcessIdentity.of(os.getppid())
    assert identity
    hold(path, identity)
    with pytest.raises(UserError, match=rf"is in use: process {os.getppid()} on .* runs attempt 3"):
        Lease(path).take(4)


def test_lease_of_a_dead_holder_is_taken_over(path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        identity = ProcessIdentity.of(process.pid)
    assert identity
    hold(path, identity)
    Lease(path).take(4)
    holder = read_lease(path)
    assert holder
    assert holder.process.pid == os.getpid()


def test_lease_of_a_dead_holder_with_a_reused_number_is_taken_over(path: Path) -> None:
    own = ProcessIdentity.own()
    hold(path, ProcessIdentity(own.host, own.pid, "another boot:1"))
    Lease(path).take(4)
    assert read_lease(path)


def test_lease_of_a_holder_on_another_host_is_refused(path: Path) -> None:
    hold(path, ProcessIdentity("elsewhere", 1, "boot:1"))
    with pytest.raises(UserError, match="on elsewhere"):
        Lease(path).take(4)


@pytest.mark.parametrize(("job", "refused"), [("7", False), ("8", True), ("9", False)], ids=["own", "live", "dead"])
def test_lease_of_a_job_is_refused_unless_it_is_gone_or_our_own(
    path: Path, monkeypatch: pytest.MonkeyPatch, job: str, refused: bool
) -> None:
    monkeypatch.setattr("srlhpc.runs.lease.job_is_active", lambda job: job in ("7", "8"))
    write_json(path, {**ProcessIdentity("elsewhere", 1, "boot:1").to_json(), "attempt": 3, "job": job})
    if refused:
        with pytest.raises(UserError, match="job 8 runs attempt 3"):
            Lease(path, "7").take(4)
        return
    Lease(path, "7").take(4)
    holder = read_lease(path)
    assert holder
    assert (holder.job, holder.attempt) == ("7", 4)


def test_unreadable_lease_is_taken_over(path: Path) -> None:
    path.write_text("half a")
    Lease(path).take(1)
    assert read_lease(path)


def test_one_of_two_takers_of_a_lease_is_refused(path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from srlhpc.runs.lease import Lease; from srlhpc.errors import UserError\n"
        "try: Lease(Path(sys.argv[1])).take(1); print('taken', flush=True)\n"
        "except UserError: print('refused', flush=True)\n"
        "input()"
    )
    hold(path, ProcessIdentity(ProcessIdentity.own().host, 2**22 + 1, "boot:1"))
    both = [
        subprocess.Popen([sys.executable, "-c", program, str(path)], stdin=-1, stdout=-1, text=True) for _ in range(2)
    ]
    said = [process.stdout.readline().strip() for process in both if process.stdout]
    for process in both:
        process.communicate("\n")
    assert sorted(said) == ["refused", "taken"]


def test_processes_of_two_hosts_with_one_number_do_not_share_a_lease(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def second(source: Path, target: Path) -> None:
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr("os.link", link)
            elsewhere.setattr("socket.gethostname", lambda: "elsewhere")
            Lease(path).take(1)
        link(source, target)

    monkeypatch.setattr("os.link", second)
    with pytest.raises(UserError, match="on elsewhere"):
        Lease(path).take(1)


def test_released_lease_is_gone(path: Path) -> None:
    with Lease(path).held(1):
        assert path.exists()
    assert not path.exists()


def test_release_leaves_the_lease_of_another(path: Path) -> None:
    lease = Lease(path)
    lease.take(1)
    hold(path, ProcessIdentity("elsewhere", 1, "boot:1"))
    lease.release()
    assert path.exists()


def test_zombie_has_no_identity() -> None:
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert ProcessIdentity.of(process.pid) is None
    process.wait()


def test_processes_of_an_attempt_are_only_its_own(tmp_path: Path) -> None:
    environment = os.environ | {"SRLHPC_ATTEMPT": str(tmp_path / "0001")}
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, env=environment) as process:
        assert processes_of(tmp_path / "0001") == [process.pid]
        assert processes_of(tmp_path / "000") == []


def test_file_of_no_process_is_unused(tmp_path: Path) -> None:
    assert not is_used(tmp_path / "file")
    with open(tmp_path / "file", "w"):
        assert is_used(tmp_path / "file")
    assert is_used(Path(os.path.realpath("/proc/self/exe")))


def other_holder() -> ProcessIdentity:
    identity = ProcessIdentity.of(os.getppid())
    assert identity
    return identity


def test_renewal_names_another_holder_and_writes_nothing(path: Path) -> None:
    lease = Lease(path)
    lease.take(1)
    assert lease.renew() is None
    hold(path, other_holder())
    before = path.read_bytes()
    holder = lease.renew(2)
    assert holder
    assert holder.process == other_holder()
    assert path.read_bytes() == before


def test_renewal_leaves_the_lease_to_who_took_it_meanwhile(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = Lease(path)
    lease.take(1)
    content = lease._content

    def taken_over() -> dict[str, object]:
        path.unlink()
        hold(path, other_holder())
        return content()

    monkeypatch.setattr(lease, "_content", taken_over)
    lease.renew()
    monkeypatch.undo()
    holder = read_lease(path)
    assert holder
    assert holder.process == other_holder()
    assert lease.renew() is not None


def test_renewal_takes_a_removed_lease_again_but_makes_no_folder(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    lease = Lease(folder / "lease.json")
    lease.take(1)
    (folder / "lease.json").unlink()
    assert lease.renew(2) is None
    holder = read_lease(folder / "lease.json")
    assert holder
    assert holder.attempt == 2
    (folder / "lease.json").unlink()
    folder.rmdir()
    assert lease.renew() is None
    assert not folder.exists()


def test_renewal_survives_a_removed_lease_and_a_failed_look(tmp_path: Path, failing_disk: FailingDisk) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    lease = Lease(folder / "lease.json")
    lease.take(1)
    (folder / "lease.json").unlink()
    failing_disk.fail("run", errno.ESTALE, times=1)
    assert lease.renew() is None
    assert lease.renew() is None
    assert read_lease(folder / "lease.json")


def test_renewal_needs_no_room(path: Path, failing_disk: FailingDisk) -> None:
    lease = Lease(path)
    lease.take(9)
    failing_disk.fill(lambda name: not name.endswith("lease.json"))
    lease.renew(10)
    lease.renew(3)
    holder = read_lease(path)
    assert holder
    assert holder.attempt == 3
    failing_disk.fail("lease.json", errno.ESTALE)
    assert lease.renew() is None


def test_lease_that_cannot_be_read_just_now_is_not_taken_over(path: Path, failing_disk: FailingDisk) -> None:
    hold(path, other_holder())
    failing_disk.fail("lease.json", errno.EIO, times=1)
    with pytest.raises(UserError, match="is in use"):
        Lease(path).take(4)


def test_age_of_a_lease_is_by_the_clock_that_stamps_files(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Lease(path).take(1)
    monkeypatch.setattr("time.time", lambda: 1e9)
    seconds = age(path)
    assert seconds is not None
    assert seconds < 1e6
    os.utime(path, (0, os.stat(path).st_mtime - 5000))
    seconds = age(path)
    assert seconds is not None
    assert 5000 <= seconds < 1e6
    assert [file.name for file in path.parent.iterdir()] == ["lease.json"]
    assert age(path.with_name("none")) is None
