"""Submitting a foreman."""

from __future__ import annotations

import pytest

from srlhpc.errors import ClusterError
from srlhpc.launch.submission import submitted_id


@pytest.mark.parametrize("said", ["17\n", "17;cluster\n", "sbatch: a site's own words\n17\n"])
def test_number_when_sbatch_gives_one_then_found(said: str) -> None:
    assert submitted_id(said) == "17"


@pytest.mark.parametrize("said", ["", "\n", "queued\n"])
def test_number_when_sbatch_gives_none_then_an_error_with_its_words(said: str) -> None:
    with pytest.raises(ClusterError, match="gave no job's number"):
        submitted_id(said)
