"""Files of episodes that are learnt from together."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from srlhpc.data.blocks import PolicyShapes
from srlhpc.data.episode_format import recorded_fields
from srlhpc.data.recorded import check_episodes, episodes_bytes, read_episodes
from srlhpc.environment import ArraySpec, MultiDiscrete
from srlhpc.errors import UserError
from tests.data import recorded

VALUE = ArraySpec((), "float32")


def test_frames_of_stacks_and_whole_stacks_are_not_mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames, whole = tmp_path / "frames.h5", tmp_path / "whole.h5"
    recorded.write(frames, [4])
    kind = replace(recorded.KIND, stacks={})
    fields = recorded_fields(PolicyShapes(kind, {}, {"value": VALUE}))
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


def test_actions_that_nobody_can_take_are_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file.h5"
    # The recorded actions count rows, from 0 to 3.
    for choices, refused in ((4, False), (3, True)):
        kind = replace(recorded.KIND, actions=MultiDiscrete((choices,)))
        monkeypatch.setattr(recorded, "KIND", kind)
        monkeypatch.setattr(recorded, "FIELDS", recorded_fields(PolicyShapes(kind, {}, {"value": VALUE})))
        recorded.write(file, [4])
        said = pytest.raises(UserError, match=r"file\.h5: is damaged: it has actions ") if refused else nullcontext()
        with said:
            check_episodes([str(file)], None, "only", kind)


def test_files_without_an_episode_teach_nothing(tmp_path: Path) -> None:
    empty, whole = str(tmp_path / "empty.h5"), str(tmp_path / "whole.h5")
    recorded.write(Path(empty), [])
    recorded.write(Path(whole), [4])
    check_episodes([empty, whole], None, "only", recorded.KIND)
    with pytest.raises(UserError, match=r"empty\.h5: no agent of the policy was ever in the game there; record more"):
        check_episodes([empty], None, "only", recorded.KIND)
