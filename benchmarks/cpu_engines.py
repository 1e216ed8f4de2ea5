"""CPU microseconds a sample of Pong's network on one thread, by the ways in which a policy could act on a CPU.

    python benchmarks/cpu_engines.py
    pip install openvino; python benchmarks/cpu_engines.py --openvino

`autocast` and `held` (weights cast once a version) give the same bits, and `held` is what srlhpc does. `packed` has
torch's own oneDNN modules (torch.utils.mkldnn), whose weights are laid out once. OpenVINO compiles a graph for each
version of the parameters (`constants`), or takes them as inputs. The best of several rounds; the last column is what a
new version costs, in milliseconds, before anybody can act with it.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.utils.mkldnn import MkldnnConv2d, MkldnnLinear

from srlhpc.environment import ArraySpec, Discrete, Kind
from srlhpc.policies import nature_cnn
from srlhpc.policies.held_weights import hold_weights
from srlhpc.policies.layers.rectified import ImageConvolution
from srlhpc.policies.layers.torsos import CnnTorso
from srlhpc.policies.policy import Policy, read_vector, vector_size, write_vector
from srlhpc.ranks.malloc import keep_freed_memory
from srlhpc.specs.policy import NormalizeSpec

ACTIONS, SHAPE, BATCHES, ROUNDS = 6, (4, 84, 84), (8, 16, 32, 64), 5


class Engine(NamedTuple):
    """One way to act."""

    name: str
    act: Callable[[int], object]
    """For so many observations."""
    new_version: Callable[[], object]


def network() -> Policy:
    """Pong's, with random weights."""
    kind = Kind("agent", ("agent",), {"obs": ArraySpec(SHAPE, "uint8")}, Discrete(ACTIONS))
    return nature_cnn.build(nature_cnn.Settings.model_validate({"kind": "nature_cnn"}), kind, NormalizeSpec())


def ours(images: torch.Tensor) -> Iterator[Engine]:
    """Float32, and both ways in bfloat16."""
    whole = network()
    held = copy.deepcopy(whole)
    hold_weights(held, torch.bfloat16)
    vector = np.empty(vector_size(whole), np.float32)
    write_vector(whole, vector)
    for name, policy, half in (("float32", whole, False), ("autocast", whole, True), ("held", held, True)):

        def act(rows: int, policy: Policy = policy, half: bool = half) -> object:
            first = torch.zeros(rows, dtype=torch.bool)
            with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
                return policy.act({"obs": images[:rows]}, {}, first, action_masks=None, generator=None, exploration={})

        yield Engine(f"torch, {name}", act, lambda policy=policy: read_vector(policy, vector))


def packed(images: torch.Tensor, dtype: torch.dtype) -> Engine:
    """The torso alone."""
    torso = next(module for module in network().modules() if isinstance(module, CnnTorso))
    layers: list[Any] = []

    def new_version() -> None:
        layers.clear()
        for layer in torso.convolutions:
            assert isinstance(layer, nn.Conv2d)
            plain = nn.Conv2d(layer.in_channels, layer.out_channels, layer.kernel_size, layer.stride)
            scales = layer.scales if isinstance(layer, ImageConvolution) else 1.0
            plain.weight.data, plain.bias = layer.weight.detach() * scales, layer.bias
            layers.append(MkldnnConv2d(plain, dtype))
        layers.append(MkldnnLinear(torso.linear, dtype))

    def act(rows: int) -> object:
        with torch.inference_mode():
            x = images[:rows].to(dtype).to_mkldnn()
            for convolution in layers[:-1]:
                x = torch.relu_(convolution(x))
            return torch.relu_(layers[-1](x.to_dense().permute(0, 2, 3, 1).flatten(1).contiguous()))

    new_version()
    return Engine(f"torch.utils.mkldnn, {str(dtype).removeprefix('torch.')}", act, new_version)


def openvino(images: torch.Tensor, precision: str, *, inputs: bool) -> Engine:
    """A graph of the same network; weights as constants or as inputs."""
    import openvino as ov
    from openvino import opset13 as op

    random = np.random.default_rng(0)
    shapes = {"w1": (32, 4, 8, 8), "b1": (1, 32, 1, 1), "w2": (64, 32, 4, 4), "b2": (1, 64, 1, 1)}
    shapes |= {
        "w3": (64, 64, 3, 3),
        "b3": (1, 64, 1, 1),
        "w4": (512, 3136),
        "b4": (1, 512),
        "w5": (7, 512),
        "b5": (1, 7),
    }
    weights = {name: 0.05 * random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    core = ov.Core()
    requests: dict[int, Any] = {}

    def compiled(rows: int) -> Any:
        x = op.parameter([rows, *SHAPE], np.uint8, name="x")
        given = {name: op.parameter(list(shape), np.float32, name=name) for name, shape in shapes.items()}
        used: Any = given if inputs else {name: op.constant(array) for name, array in weights.items()}
        h = op.multiply(op.convert(x, "f32"), op.constant(np.float32(1 / 255)))
        for layer, stride in (("1", 4), ("2", 2), ("3", 1)):
            h = op.convolution(h, used["w" + layer], [stride, stride], [0, 0], [0, 0], [1, 1])
            h = op.relu(op.add(h, used["b" + layer]))
        h = op.reshape(h, op.constant(np.array([rows, 3136])), False)
        h = op.relu(op.add(op.matmul(h, used["w4"], False, True), used["b4"]))
        h = op.add(op.matmul(h, used["w5"], False, True), used["b5"])
        model = ov.Model([h], [x, *(given.values() if inputs else ())], "pong")
        hints = {"INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1}
        return core.compile_model(model, "CPU", hints | {"PERFORMANCE_HINT": "LATENCY"}).create_infer_request()

    def act(rows: int) -> object:
        if rows not in requests:
            requests[rows] = compiled(rows)
        feed = {"x": images[:rows].numpy(), **(weights if inputs else {})}
        return requests[rows].infer(feed, share_inputs=True, share_outputs=True)

    how = "inputs" if inputs else "constants"
    new_version = (lambda: None) if inputs else (lambda: compiled(BATCHES[0]))
    return Engine(f"OpenVINO, {precision}, weights as {how}", act, new_version)


def best(call: Callable[[], object], calls: int) -> float:
    """CPU seconds of a call, the best of several rounds."""
    call()
    seconds = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        for _ in range(calls):
            call()
        seconds.append((time.process_time() - begun) / calls)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--openvino", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    images = torch.randint(0, 256, (BATCHES[-1], *SHAPE), dtype=torch.uint8)
    engines = [*ours(images), packed(images, torch.float32), packed(images, torch.bfloat16)]
    if arguments.openvino:
        ways = [(precision, inputs) for inputs in (False, True) for precision in ("f32", "bf16")]
        engines += [openvino(images, precision, inputs=inputs) for precision, inputs in ways]
    sys.stdout.write(f"| acting | {' | '.join(map(str, BATCHES))} | ms a version |\n|---{'|---' * len(BATCHES)}|---|\n")
    for engine in engines:
        cells = [f"{1e6 * best(lambda n=n: engine.act(n), 20) / n:.0f}" for n in BATCHES]  # noqa: B023
        sys.stdout.write(f"| {engine.name} | {' | '.join(cells)} | {1e3 * best(engine.new_version, 5):.1f} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
