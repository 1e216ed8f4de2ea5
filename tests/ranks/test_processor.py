"""What a processor computes in hardware, and what runs do where it lacks bfloat16."""

from __future__ import annotations

from pathlib import Path

import pytest

from srlhpc.data.atomic import read_json
from srlhpc.ranks.processor import has_bfloat16, processor_name
from srlhpc.ranks.serial import run_serial
from srlhpc.runs.paths import RunPaths
from tests.launch.making_runs import make_attempt, make_run, settings, tree_of
from tests.launch.test_exact_resume import differences

ZEN_4 = "processor\t: 0\nmodel name\t: AMD EPYC 9354\nflags\t\t: fpu avx512f avx512_bf16 avx512_vnni\n"
SAPPHIRE_RAPIDS = "flags\t\t: fpu avx512f amx_bf16 amx_tile\n"
CASCADE_LAKE = "model name\t: Intel(R) Xeon(R) Gold 6248\nflags\t\t: fpu avx512f avx512_vnni\n"
GRACE = "processor\t: 0\nFeatures\t: fp asimd sve i8mm bf16\n"
A64FX = "Features\t: fp asimd sve\n"


@pytest.mark.parametrize(
    ("cpuinfo", "has"), [(ZEN_4, True), (SAPPHIRE_RAPIDS, True), (CASCADE_LAKE, False), (GRACE, True), (A64FX, False)]
)
def test_bfloat16_is_seen_in_what_linux_says(cpuinfo: str, has: bool, tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text(cpuinfo)
    assert has_bfloat16(tmp_path / "cpuinfo") is has


def test_what_cannot_be_seen_is_believed_to_be_there(tmp_path: Path) -> None:
    assert has_bfloat16(tmp_path / "nothing")


def test_processor_names_itself(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text(CASCADE_LAKE)
    assert processor_name(tmp_path / "cpuinfo") == "Intel(R) Xeon(R) Gold 6248"
    assert processor_name(tmp_path / "nothing") == "this processor"


def _train(root: Path, precision: str) -> RunPaths:
    job = settings(
        {"factory": "catch", "rows": 5, "columns": 3},
        stop={"updates": 2},
        trainers={"ranks": 1, "precision": precision},
    )
    paths = make_run(root, job, precision)
    run_serial(paths, make_attempt(paths, job)[0])
    return paths


def test_processor_without_bfloat16_computes_float32_and_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("srlhpc.ranks.devices.has_bfloat16", lambda: False)
    runs = [_train(tmp_path, precision) for precision in ("bfloat16", "float32")]
    assert differences(*(tree_of(run, 2)["policies"] for run in runs)) == []
    (warning,), nothing = ((read_json(run.status) or {})["warnings"] for run in runs)
    assert "networks compute in float32 there" in warning
    assert nothing == []


def test_processor_with_bfloat16_computes_other_numbers_and_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("srlhpc.ranks.devices.has_bfloat16", lambda: True)
    runs = [_train(tmp_path, precision) for precision in ("bfloat16", "float32")]
    assert differences(*(tree_of(run, 2)["policies"]["default"]["parameters"] for run in runs)) != []
    assert [(read_json(run.status) or {})["warnings"] for run in runs] == [[], []]
