"""Files of episodes that are learnt from together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from srlhpc.data.blocks import PolicyShapes
from srlhpc.data.episode_format import recorded_fields
from srlhpc.data.recorded import check_episodes, episodes_bytes, read_episodes
from srlhpc.environment import ArraySpec
from srlhpc.errors import UserError
from tests.data import recorded


def test_frames_of_stacks_and_whole_stacks_are_not_mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames, whole = tmp_path / "frames.h5", tmp_path / "whole.h5"
    recorded.write(frames, [4])
    kind = replace(recorded.KIND, stacks={})
    fields = recorded_fields(PolicyShapes(kind, {}, {"value": ArraySpec((), "float32")}))
    monkeypatch.setattr(recorded, "KIND", kind)
    monkeypatch.setattr(recorded, "FIELDS", fields)
    monkeypatch.setattr(recorded, "OLDER", {})
    recorded.write(whole, [4])
    for files in ([frames, frames], [whole, whole]):
        check_episodes([str(file) for file in files], None, "only", kind)
    text = r"whole\.h5: has obs\.screen as whole arrays, /.*/frames\.h5 as single frames of stacks of 3; "
    with pytest.raises(UserError, match=text):
        check_episodes([str(frames), str(whole)], None, "only", kind)


def test_bytes_are_those_of_all_files_in_memory(tmp_path: Path) -> None:
    files = [str(tmp_path / f"{number}.h5") for number in range(2)]
    for number, file in enumerate(files):
        recorded.write(Path(file), [4, 3 + number])
    asked = files, None, "only", recorded.KIND
    assert episodes_bytes(*asked) == read_episodes(*asked).size_bytes > 0
