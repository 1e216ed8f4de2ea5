"""A rank that cannot report shows that it computes; one that hangs does not."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from srlhpc.ranks.pulse import HANGS_SECONDS, PULSE_SECONDS, Pulse, cpu_seconds_of_tree


class Rank:
    """A rank whose loop and processor time a test moves."""

    def __init__(self, folder: Path) -> None:
        self.cpu = 100.0
        self.stacks = 0
        self._file = folder / "1"
        self.pulse = Pulse(self._file, lambda: self.cpu, self._write_stacks)
        self.pulse.look()

    def _write_stacks(self) -> None:
        self.stacks += 1

    def pass_by(self, *, rounds: int, cpu: float) -> None:
        self.pulse.rounds += rounds
        self.cpu += cpu
        self.pulse.look()

    @property
    def beats(self) -> int:
        return int(self._file.read_text()) if self._file.exists() else 0


def test_rank_whose_loop_goes_round_needs_no_pulse(tmp_path: Path) -> None:
    rank = Rank(tmp_path)
    rank.pass_by(rounds=1, cpu=10.0)
    assert rank.beats == 0


def test_rank_that_computes_in_one_piece_has_a_pulse_with_every_look(tmp_path: Path) -> None:
    rank = Rank(tmp_path)
    for _ in range(3):
        rank.pass_by(rounds=0, cpu=5.0)
    assert rank.beats == 3


def test_rank_that_hangs_has_none_and_writes_its_stacks_once(tmp_path: Path) -> None:
    rank = Rank(tmp_path)
    for _ in range(int(3 * HANGS_SECONDS / PULSE_SECONDS)):
        rank.pass_by(rounds=0, cpu=0.01)
    assert (rank.beats, rank.stacks) == (0, 1)


def test_folder_that_is_away_is_no_reason_to_end(tmp_path: Path) -> None:
    rank = Rank(tmp_path / "away")
    rank.pass_by(rounds=0, cpu=5.0)
    assert rank.beats == 0


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux")
def test_time_of_a_simulator_in_a_process_of_its_own_counts() -> None:
    code = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ntime.sleep(1000)"
    before = cpu_seconds_of_tree()
    own = time.process_time()
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        used = cpu_seconds_of_tree() - before - (time.process_time() - own)
        child.kill()
    assert used > 0.2
