"""Submitting a foreman."""

from __future__ import annotations

import pytest

from srlhpc.errors import ClusterError
from srlhpc.launch.submission import submitted_id


@pytest.mark.parametrize("said", ["17\n", "17;cluster\n", "sbatch: a site's own words\n17\n"])
def test_number_of_the_job_is_found_in_the_output_of_sbatch(said: str) -> None:
    assert submitted_id(said) == "17"


@pytest.mark.parametrize("said", ["", "\n", "queued\n"])
def test_output_of_sbatch_without_a_number_is_the_error(said: str) -> None:
    with pytest.raises(ClusterError, match="gave no job's number"):
        submitted_id(said)
