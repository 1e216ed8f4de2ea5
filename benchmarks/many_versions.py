"""What meeting many versions costs: the matchmaker, a version's way from its file, the batches of a policy server.

    PYTHONPATH=. python benchmarks/many_versions.py --versions 256 --actors 64

Two groups an actor, one side of which learns against the past by prioritised self-play; a network of two layers of 64.
One thread; medians of several repeats.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

from srlhpc.comm.channel import Link, Stream
from srlhpc.comm.inproc import InProcessTransport
from srlhpc.comm.protocol import MatchHeader
from srlhpc.data.checkpoint import read_checkpoint, write_checkpoint
from srlhpc.data.matches import LIVE, matches_layout, request_layout
from srlhpc.environment import ArraySpec, Discrete, Kind
from srlhpc.import_path import load_module
from srlhpc.league.prioritized import hard
from srlhpc.policies.policy import Policy
from srlhpc.ranks.policies import load_parameters
from srlhpc.roles.matchmaking.matchmaker import MatchGroup, Matchmaker
from srlhpc.roles.matchmaking.opponents import MatchSide, Opponents
from srlhpc.roles.serving.players import Players
from srlhpc.roles.serving.rows import Rows
from srlhpc.roles.serving.version_shelf import VersionShelf
from srlhpc.specs.policy import NormalizeSpec

LOT, RING, RESIDENT, REPEATS = 64, 2, 8, 7
SIDES = (MatchSide("left", "default", True), MatchSide("right", "default", True))
KIND = Kind("agent", ("agent",), {"obs": ArraySpec((16,), "float32")}, Discrete(6))


def cpu_of(call: Callable[[], object], times: int) -> float:
    """CPU-seconds of one call, the median of several repeats of so many."""
    call()
    spent = []
    for _ in range(REPEATS):
        begun = time.process_time()
        for _ in range(times):
            call()
        spent.append((time.process_time() - begun) / times)
    return statistics.median(spent)


class Groups:
    """A matchmaker, and groups whose matches are decided as soon as they are dealt."""

    def __init__(self, actors: int, versions: int) -> None:
        transport, count = InProcessTransport(), actors * RING
        there = [Link(Stream.MATCH_REQUESTS, group, count) for group in range(count)]
        back = [Link(Stream.MATCHES, count, group) for group in range(count)]
        asked, answered = request_layout(LOT, 2), matches_layout(LOT, 2)
        self._requests = [transport.outbox(link, asked, slots=1) for link in there]
        self._matches = [transport.inbox([link], answered) for link in back]
        self._random = np.random.default_rng(0)
        opponents = Opponents(
            SIDES, chances=hard, decay=0.99, resident=RESIDENT, kept=lambda updates: updates, seed=1
        )  # fmt: skip
        self.matchmaker = Matchmaker(
            SIDES,
            [MatchGroup(group // RING, group % 2, (count + 1, count + 1)) for group in range(count)],
            opponents,
            lot=LOT,
            requests=transport.inbox(there, asked),
            outboxes={place: transport.outbox(link, answered, slots=2) for place, link in enumerate(back)},
        )
        self.matchmaker.begin("default", range(versions))
        self._dealt = [np.zeros(0, np.int64) for _ in back]

    def ask(self) -> None:
        """Every group sends the results of its last lot."""
        for group, requests in enumerate(self._requests):
            message = requests.acquire()
            assert message is not None
            dealt = self._dealt[group]
            message.fields["matches"][: len(dealt)] = dealt
            message.fields["returns"][: len(dealt)] = self._random.choice([-1.0, 1.0], (len(dealt), 1)) * [1.0, -1.0]
            message.header[MatchHeader.GROUP], message.header[MatchHeader.COUNT] = group, len(dealt)
            requests.send(message)

    def take(self) -> None:
        """Every group takes its next lot."""
        for group, matches in enumerate(self._matches):
            matches.poll()
            message = matches.take()
            assert message is not None
            self._dealt[group] = message.fields["matches"].copy()
            matches.release(message)

    def cpu_of_a_match(self, rounds: int) -> float:
        """CPU-seconds of the matchmaker for one match: its results come in, and it is dealt."""
        spent = 0.0
        for _ in range(rounds):
            self.ask()
            begun = time.process_time()
            self.matchmaker.poll()
            spent += time.process_time() - begun
            self.take()
        return spent / rounds / len(self._matches) / LOT


def network() -> Policy:
    module = load_module("mlp", "srlhpc.policies")
    made: Policy = module.build(module.Settings(kind="mlp", hidden=(64, 64)), KIND, NormalizeSpec())
    return made


def loading(folder: Path) -> float:
    """CPU-seconds to read a version's file and to put it into a network."""
    policy, file = network(), folder / "version.h5"
    arrays = {name: tensor.numpy() for name, tensor in policy.state_dict().items()}
    write_checkpoint(file, {"meta": {"updates": 1}, "policies": {"default": {"parameters": arrays}}})

    def load() -> None:
        load_parameters(policy, read_checkpoint(file)["policies"]["default"]["parameters"], "version")

    return cpu_of(load, 50)


def serving(rows: int, versions: int, *, stacks: bool) -> float:
    """CPU-seconds of a server's batch, half of which versions play; 0: none does."""
    policy = network()
    parameters = {name: tensor.numpy() for name, tensor in policy.state_dict().items()}
    shelf = VersionShelf(
        policy,
        lambda _: parameters,
        lambda made, arrays, updates: load_parameters(made, arrays, f"version {updates}"),
        resident=max(1, versions),
        in_thread=False,
        stacks=stacks,
    )
    shelf.has(range(versions))
    players = Players(policy, shelf, torch.Generator().manual_seed(0), {})
    batch = Rows({"obs": torch.randn(rows, 16)}, {}, torch.zeros(rows, dtype=torch.bool), None, {})
    who = None
    if versions:
        who = np.where(np.arange(rows) % 2, np.random.default_rng(0).integers(versions, size=rows), LIVE)

    def act() -> None:
        with torch.inference_mode():
            players.act(batch, who)

    return cpu_of(act, 20)


def lines(actors: int, versions: int, environments: int) -> Iterator[str]:
    rows = actors * environments
    for count in (1, versions):
        match = Groups(actors, count).cpu_of_a_match(rounds=40)
        yield f"| matchmaker, {count} versions, {actors} actors | {1e6 * match:.2f} us a match |"
    with tempfile.TemporaryDirectory() as folder:
        yield f"| a version from its file into a network | {1e3 * loading(Path(folder)):.2f} ms |"
    live = serving(rows, 0, stacks=True)
    yield f"| a server's batch of {rows} rows, all live | {1e3 * live:.2f} ms |"
    for count in (1, RESIDENT, 64, versions):
        alone, together = (serving(rows, count, stacks=stacks) for stacks in (False, True))
        yield (
            f"| half of them by {count} versions | {1e3 * together:.2f} ms, {together / live:.1f} times; one version "
            f"after the other {1e3 * alone:.2f} ms, {alone / live:.1f} times |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--versions", type=int, default=256)
    parser.add_argument("--actors", type=int, default=64)
    parser.add_argument(
        "--environments", type=int, default=8, help="of a group; a server's batch has one group of each actor"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("| what | CPU |\n|---|---|")
    for line in lines(arguments.actors, arguments.versions, arguments.environments):
        print(line, flush=True)


if __name__ == "__main__":
    main()
