"""Free memory, by the node and by control groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from srlhpc.ranks.free_memory import free_bytes, room_for

MB = 1 << 20


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    folder = tmp_path / "proc"
    (folder / "self").mkdir(parents=True)
    (folder / "meminfo").write_text(f"MemTotal: {9000 << 10} kB\nMemFree: 1 kB\nMemAvailable: {3000 << 10} kB\n")
    return folder


def group(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_tightest_group_counts_and_cached_files_are_free(tmp_path: Path, proc: Path) -> None:
    (proc / "self" / "cgroup").write_text("0::/slurm/job_7/step_1\n")
    groups = tmp_path / "groups"
    group(groups / "slurm" / "job_7" / "step_1", memory__max="max\n", memory__current=f"{900 * MB}\n", memory__stat="")
    group(
        groups / "slurm" / "job_7",
        memory__max=f"{1000 * MB}\n",
        memory__current=f"{900 * MB}\n",
        memory__stat=f"anon {600 * MB}\ninactive_file {200 * MB}\n",
    )
    assert free_bytes(proc, groups) == 300 * MB


def test_memory_is_read_from_control_groups_of_the_first_version(tmp_path: Path, proc: Path) -> None:
    (proc / "self" / "cgroup").write_text("5:cpu,cpuacct:/x\n9:memory:/slurm/uid_0/job_7\n0::/y\n")
    groups = tmp_path / "groups"
    group(
        groups / "memory" / "slurm" / "uid_0" / "job_7",
        memory__limit_in_bytes=f"{500 * MB}\n",
        memory__usage_in_bytes=f"{400 * MB}\n",
        memory__stat=f"total_inactive_file {50 * MB}\n",
    )
    assert free_bytes(proc, groups) == 150 * MB


def test_memory_of_the_node_counts_without_control_groups(tmp_path: Path, proc: Path) -> None:
    (proc / "self" / "cgroup").write_text("0::/../outside\n")
    assert free_bytes(proc, tmp_path / "groups") == 3000 * MB
    (proc / "self" / "cgroup").unlink()
    assert free_bytes(proc, tmp_path / "groups") == 3000 * MB


def test_some_memory_is_free_for_this_process() -> None:
    assert free_bytes() > 0


def test_ranks_with_torch_need_more_room_and_training_keeps_a_reserve() -> None:
    assert room_for([True]) > room_for([False]) > room_for([]) > 0
