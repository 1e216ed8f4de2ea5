"""Sums over trainers."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch

from srlhpc.comm.address import LOOPBACK, Address, facing
from srlhpc.comm.process_group import SingleReducer, host_store, join_store, join_trainers
from srlhpc.errors import ClusterError
from tests.comm.launching import ROOT, run_ranks
from tests.comm.mpi_reducers import finish


def test_single_trainer_is_its_own_sum() -> None:
    tensor = torch.tensor([1.0, 2.0])
    reducer = join_trainers(None, [4], torch.device("cpu"))
    assert isinstance(reducer, SingleReducer)
    finish(reducer.sum(tensor))
    assert tensor.tolist() == [1.0, 2.0]
    assert finish(reducer.agree([1.0, 0.0])) == ([1.0, 0.0], 0)


def test_trainers_that_meet_at_a_store_need_no_port_agreed_beforehand() -> None:
    first, second = host_store(LOOPBACK, 2), host_store(LOOPBACK, 2)
    assert first.port != second.port
    joined = join_store(Address(LOOPBACK, first.port), 2)
    joined.set("key", "value")
    assert first.get("key") == b"value"


def test_first_trainer_that_cannot_be_reached_is_named() -> None:
    store = host_store(LOOPBACK, 2)
    port = store.port
    del store
    with pytest.raises(ClusterError, match=f"cannot reach the first trainer at {LOOPBACK}:{port}"):
        join_store(Address(LOOPBACK, port), 2, timedelta(seconds=0))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only one number of the loopback interface is there")
def test_store_listens_at_its_own_number_only() -> None:
    store = host_store(LOOPBACK, 2)
    socket.create_connection((LOOPBACK, store.port), 5).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", store.port), 5)


def test_store_of_several_nodes_listens_at_the_interface_that_faces_them() -> None:
    # From one number of the loopback interface, the others are reached by that interface alone.
    assert facing("127.0.0.2") == LOOPBACK
    store = host_store(facing(socket.gethostname()), 2)
    joined = join_store(Address(facing(socket.gethostname()), store.port), 2)
    joined.set("key", "value")
    assert store.get("key") == b"value"


def test_name_that_means_nothing_is_passed_over_for_the_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"here": "127.0.0.1"}

    def resolve(name: str, port: int, **_: Any) -> list[Any]:
        if name not in known:
            raise socket.gaierror(f"no {name}")
        return [(socket.AF_INET, socket.SOCK_DGRAM, 17, "", (known[name], port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket, "gethostname", lambda: "here")
    assert facing("there") == LOOPBACK
    known.clear()
    with pytest.raises(ClusterError, match="neither 'there' nor this node's own name 'here' can be resolved"):
        facing("there")


@pytest.mark.mpi
@pytest.mark.parametrize(("trainers", "what"), [(2, "sum"), (3, "sum"), (3, "nodes")])
def test_trainers_sum_and_agree_and_yield_while_one_is_late(trainers: int, what: str, tmp_path: Path) -> None:
    run_ranks(trainers, "tests.comm.mpi_reducers", str(tmp_path), str(trainers), what)
    total = sum(range(trainers))
    for rank in range(trainers):
        result = json.loads((tmp_path / f"{rank}.json").read_text())
        assert result["trainers"] == trainers
        assert result["sum"] == [float(trainers * place + total) for place in range(5)]
        assert result["agreed"] == [float(trainers), 1.0]
        assert rank == 0 or result["yields"] > 0


@pytest.mark.mpi
def test_trainer_that_dies_is_an_error_for_the_others(tmp_path: Path) -> None:
    run_ranks(2, "tests.comm.mpi_reducers", str(tmp_path), "2", "die", survive=True)
    assert "one of them is gone" in json.loads((tmp_path / "0.json").read_text())["error"]
    assert not (tmp_path / "1.json").exists()


@pytest.mark.gpu
def test_trainers_that_share_a_gpu_have_equal_parameters(tmp_path: Path) -> None:
    store = host_store(LOOPBACK, 2)
    command = [sys.executable, "-m", "tests.comm.nccl_trainers", str(tmp_path), str(store.port)]
    # NCCL refuses two ranks of one host on one card.
    trainers = [
        subprocess.Popen(
            [*command, str(place)],
            cwd=ROOT,
            env=os.environ | {"NCCL_HOSTID": str(place), "NCCL_SOCKET_IFNAME": "lo", "PYTHONPATH": str(ROOT)},
        )
        for place in (0, 1)
    ]
    try:
        assert [trainer.wait(100) for trainer in trainers] == [0, 0]
    finally:
        for trainer in trainers:
            trainer.kill()
    one, other = (torch.load(tmp_path / f"{place}.pt") for place in (0, 1))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
