"""Which tests may run at the same time."""

from __future__ import annotations

import pytest

from tests.on_slurm.labs import lab_of

FAULTS, STATES = "tests/on_slurm/test_faults.py::test_a", "tests/on_slurm/test_states.py::test_b"
OTHERS = ("tests/rl/test_gae.py::test_a", "tests/rl/test_gae.py::test_b")
SECOND = "SRLHPC_TESTS_SECOND_LAB"


def parts(*tests: str) -> set[str]:
    """The parts of the work, each of which goes to one worker."""
    pytest.importorskip("xdist")
    from tests.scheduling import Scheduling

    # Only a session with workers has the configuration that its constructor reads.
    scheduling = Scheduling.__new__(Scheduling)
    return {scheduling._split_scope(test) for test in tests}


def test_tests_of_one_lab_go_to_one_worker_and_others_to_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SECOND, raising=False)
    assert len(parts(FAULTS, STATES)) == 1
    assert len(parts(FAULTS, STATES, *OTHERS)) == 3


def test_second_lab_takes_tests_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", "/first/slurm.conf")
    monkeypatch.setenv(SECOND, "/second/slurm.conf")
    assert (lab_of(FAULTS), lab_of(STATES), lab_of(OTHERS[0])) == ("/second/slurm.conf", "/first/slurm.conf", None)
    assert len(parts(FAULTS, STATES)) == 2


def test_every_test_on_slurm_has_a_lab(request: pytest.FixtureRequest) -> None:
    on_slurm = [item for item in request.session.items if item.get_closest_marker("slurm")]
    assert [item.nodeid for item in on_slurm if lab_of(item.nodeid) is None] == []
