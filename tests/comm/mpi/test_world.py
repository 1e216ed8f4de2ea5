"""Starting, checking and leaving the MPI world; tags; the way of a link."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from srlhpc.comm.channel import Link, Stream
from srlhpc.comm.inproc import InProcessTransport
from srlhpc.comm.mpi.world import _check_size, _Tags, _wrong_size
from srlhpc.comm.transport import RankTransport
from srlhpc.data.layout import Field, Layout
from srlhpc.errors import UserError
from tests.comm.launching import run_ranks

ROLES = {0: 0, 1: 0, 2: 1, 3: 2}
"""Addresses 0 and 1 live on rank 0."""
LAYOUT = Layout.of([Field("x", (2,), "float32")])


def test_tags_of_different_streams_indexes_and_roles_differ() -> None:
    tags = _Tags(ROLES, 32767)
    links = [Link(stream, 2, to, index) for stream in Stream for to in (0, 1) for index in range(3)]
    assert len({tags.tag(link) for link in links}) == len(links)


def test_tag_does_not_depend_on_the_sender() -> None:
    tags = _Tags(ROLES, 32767)
    assert tags.tag(Link(Stream.BLOCKS, 2, 1)) == tags.tag(Link(Stream.BLOCKS, 3, 1))


def test_tag_above_the_librarys_limit_is_refused() -> None:
    with pytest.raises(UserError, match="largest is 100"):
        _Tags(ROLES, 100).tag(Link(Stream.BLOCKS, 2, 0, index=50))


def test_message_above_two_gib_is_refused() -> None:
    layout = Layout.of([Field("x", (1 << 31,), "uint8")])
    with pytest.raises(UserError, match="shorter fragments"):
        _check_size(Link(Stream.BLOCKS, 2, 0), layout)


@pytest.mark.parametrize(
    ("library", "remedy"),
    [
        ("MPICH Version:      5.0.2", "--mpi=pmi2"),
        ("Open MPI v5.0.11", "--mpi=pmix"),
        ("Intel(R) MPI Library 2021.18", "--mpi=list"),
    ],
)
def test_world_of_the_wrong_size_names_the_remedy(library: str, remedy: str) -> None:
    text = _wrong_size(1, 9, library)
    assert text.startswith("MPI started 1 rank of 9;")
    assert remedy in text


def test_link_that_stays_on_the_rank_goes_in_process() -> None:
    local, remote = InProcessTransport(), InProcessTransport()
    transport = RankTransport(0, ROLES, local, remote)
    link = Link(Stream.BLOCKS, 0, 1)
    outbox, inbox = transport.outbox(link, LAYOUT, slots=1), local.inbox([link], LAYOUT)
    message = outbox.acquire()
    assert message is not None
    outbox.send(message)
    assert inbox.poll()


def test_link_to_another_rank_goes_over_mpi() -> None:
    local, remote = InProcessTransport(), InProcessTransport()
    transport = RankTransport(0, ROLES, local, remote)
    link = Link(Stream.BLOCKS, 0, 2)
    outbox, inbox = transport.outbox(link, LAYOUT, slots=1), remote.inbox([link], LAYOUT)
    message = outbox.acquire()
    assert message is not None
    outbox.send(message)
    assert inbox.poll()


def test_inbox_of_links_from_here_and_from_elsewhere_is_refused() -> None:
    transport = RankTransport(0, ROLES, InProcessTransport(), InProcessTransport())
    with pytest.raises(AssertionError, match="make two"):
        transport.inbox([Link(Stream.BLOCKS, 1, 0), Link(Stream.BLOCKS, 2, 0)], LAYOUT)


@pytest.mark.mpi
def test_world_knows_its_nodes_finds_differences_and_leaves_no_names_in_shared_memory(tmp_path: Path) -> None:
    run_ranks(3, "tests.comm.mpi_world", str(tmp_path))
    results = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(3)]
    for result in results:
        assert result["nodes"] == [0, 1, 0]
        assert result["wrong_size"].startswith("MPI started 3 ranks of 9;")
        assert result["difference"].startswith("ranks differ in layout: layout False on rank 0 (")
        assert "), but layout True on rank 2 (" in result["difference"]
        assert result["names"] == []
