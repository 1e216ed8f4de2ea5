"""`srlhpc checkpoint`."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from srlhpc.cli.main import run_command_line
from srlhpc.data.checkpoint import write_checkpoint
from srlhpc.data.segments import Run, append, begin_segment, segments_to_tree
from tests.launch.written_runs import written_run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file.h5"
    write_checkpoint(path, {"meta": {"updates": 7, "spec": "seed: 1\n"}, "w": np.zeros((2, 3), np.float32)})
    return path


def test_show_prints_values_shapes_and_text(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["checkpoint", "show", str(file)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "meta/",
        "  spec:",
        "    | seed: 1",
        "  updates: 7",
        "w: float32[2, 3]",
    ]


def test_show_refuses_a_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["checkpoint", "show", str(tmp_path / "none.h5")]) == 2
    assert "there is no such checkpoint file" in capsys.readouterr().err


def test_verify_names_the_broken_file(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = file.with_name("broken.h5")
    broken.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(SystemExit) as end:
        run_command_line(["checkpoint", "verify", str(file), str(broken)])
    assert end.value.code == 2
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"{file}: whole"
    assert second.startswith(f"{broken}: is truncated")


def test_verify_reads_the_blocks_that_a_checkpoint_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = written_run(tmp_path, "mine")
    run.replay.mkdir()
    blocks = Run(0, np.zeros(2, np.int64), np.arange(2), {"reward": np.ones((2, 3), np.float32)})
    segment = append(run.replay, begin_segment(run.replay, "replay-0", 0), blocks)
    file = run.checkpoints / "file.h5"
    file.parent.mkdir(exist_ok=True)
    write_checkpoint(file, {"replay": {"replay-0": {"segments": segments_to_tree([segment])}}})
    copy = Path(shutil.copy(file, tmp_path))
    assert run_command_line(["checkpoint", "verify", str(file), str(copy)]) == 0
    whole, elsewhere = capsys.readouterr().out.splitlines()
    assert whole == f"{file}: whole, with the replay that it names"
    assert elsewhere.startswith(f"{copy}: whole; it names blocks of replay, which lie in its run's folder")

    damaged = bytearray((run.replay / segment.name).read_bytes())
    damaged[-1] ^= 1
    (run.replay / segment.name).write_bytes(damaged)
    with pytest.raises(SystemExit) as end:
        run_command_line(["checkpoint", "verify", str(file)])
    assert end.value.code == 2
    assert f"{file}: the replay that it names is not whole: {run.replay / segment.name}: " in capsys.readouterr().out
