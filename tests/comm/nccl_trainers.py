"""One of two trainers that share a GPU: `... nccl_trainers FOLDER PORT PLACE`; writes what two updates give."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from srlhpc.comm.address import LOOPBACK, Address
from srlhpc.comm.process_group import GroupReducer, join_store
from srlhpc.environment import Discrete
from tests.algorithms.collecting import context, finish, moved
from tests.algorithms.test_ppo_update import collected, learner, parameters
from tests.algorithms.tiny_environments import Matching


def main(folder: str, port: int, place: int) -> None:
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    reducer = GroupReducer(place, 2, device, join_store(Address(LOOPBACK, port), 2))
    environment = Matching(Discrete(3), num_environments=8)
    policy, algorithm = learner(environment, context(place, reducer, device="cuda"), minibatches=2)
    behaviour = learner(environment)[0]
    for batches in (1, 2):
        batch = collected(environment, behaviour, batches=batches)
        batch.rewards += place
        finish(algorithm.update(moved(batch, device)))
    torch.save({name: tensor.cpu() for name, tensor in parameters(policy).items()}, Path(folder, f"{place}.pt"))
    reducer.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
