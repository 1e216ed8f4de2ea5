"""Bad input made from good: a valid profile or job with one value, one key or some bytes changed, by a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import yaml

from srlhpc.specs.yaml_source import parse
from tests.on_slurm.bad_input import JOB, PROFILE, Bad

Path = tuple[str, ...]

_NEVER = ("\n", "a\nb", "\x1b[2J", "\x7f", "a\u2028b", "\udcff")
"""Text that is wrong wherever a profile takes text."""
_WRONG: dict[str, tuple[Any, ...]] = {
    "line": (1, -1, 1.5, True, (), {}, {"a": 1}, ["x"], float("nan"), *_NEVER[:5]),
    "word": (1, 1.5, False, [], {"a": 1}, "", " ", "a b", "a\tb", *_NEVER[:5]),
    "count": (0, -1, -(2**40), 1.0, 1.5, "1", "", "x", True, [], [1], {}, float("nan"), float("inf"), -float("inf")),
    "size": (-1, -(2**40), 1.5, "0", "", "x", False, [], [0], {}, float("nan"), float("inf")),
    "share": (-1, -0.5, 1000, 65, "1", True, [], {}, float("nan"), float("inf"), -float("inf"), None),
    "switch": (0, 1, 2, "true", "yes", "", "on", [], [True], {}, None, float("nan")),
    "choice": ("", "x", " ", "AUTO", 0, 1, True, [], {}, None, float("nan"), "mpich\n"),
    "list": ("x", 1, True, {}, {"a": 1}, [1], [[]], [{}], [None], ["a\nb"], None),
    "mapping": ("x", 1, True, [1], ["x"], {"x": 1}, {"x": None}, {"": {}}, {"x y": []}),
}
_PROFILE: dict[str, str] = {
    "description": "line",
    "mpi": "choice",
    "srun_mpi": "word",
    "python": "word",
    "modules": "list",
    "setup": "list",
    "signal": "choice",
    "signal_lead_seconds": "count",
    "start_seconds": "count",
    "requeue": "switch",
    "restarts_in_place": "size",
    "requeues": "size",
    "time_minutes": "count",
    "roles": "mapping",
    "roles.default": "mapping",
    "roles.default.partition": "word",
    "roles.default.account": "word",
    "roles.default.qos": "word",
    "roles.default.constraint": "line",
    "roles.default.memory_mb_per_rank": "count",
    "roles.trainer.gpus_per_rank": "share",
    "roles.trainer.gpu_type": "word",
    "roles.trainer.cpus_per_rank": "count",
    "roles.actor.ranks_per_node": "count",
    "roles.actor.nodes": "count",
    "roles.actor.exclusive": "switch",
    "partitions": "mapping",
    "partitions.cpu": "mapping",
    "partitions.cpu.nodes": "count",
    "partitions.cpu.cpus_per_node": "count",
    "partitions.gpu.gpus_per_node": "size",
    "partitions.gpu.memory_mb_per_node": "count",
    "partitions.gpu.max_minutes": "count",
}
_JOB: dict[str, str] = {
    "seed": "size",
    "environment": "mapping",
    "environment.factory": "choice",
    "policies": "mapping",
    "policies.default": "mapping",
    "policies.default.network": "mapping",
    "policies.default.network.kind": "choice",
    "policies.default.network.hidden": "list",
    "policies.default.algorithm.kind": "choice",
    "policies.default.algorithm.epochs": "count",
    "policies.default.algorithm.minibatches": "count",
    "policies.default.batch": "mapping",
    "policies.default.batch.fragments": "count",
    "policies.default.batch.fragment_steps": "count",
    "policies.default.normalize": "mapping",
    "policies.default.normalize.observations": "switch",
    "policies.default.max_policy_lag": "size",
    "agents": "mapping",
    "actors": "mapping",
    "actors.ranks": "count",
    "actors.ring": "count",
    "actors.environments": "count",
    "actors.inference": "mapping",
    "actors.inference.kind": "choice",
    "policy_servers.ranks": "count",
    "policy_servers.threads": "count",
    "policy_servers.device": "choice",
    "trainers.ranks": "count",
    "trainers.device": "choice",
    "evaluators.ranks": "size",
    "stop": "mapping",
    "stop.steps": "count",
    "checkpoint.every_seconds": "share",
    "checkpoint.keep": "count",
}
_RIGHT_AFTER_ALL = (("checkpoint.every_seconds", (1000, 65, None)),)


def wrong_values(seed: int, count: int) -> Iterator[Bad]:
    """A value of the wrong type or out of its bounds."""
    chance = random.Random(seed)
    for name, table in (("profile", _PROFILE), ("job", _JOB)):
        text = PROFILE if name == "profile" else JOB
        every = [(path, value) for path, kind in table.items() for value in _WRONG[kind] if _is_wrong(path, value)]
        for path, value in chance.sample(every, count // 2):
            changed = _plain(parse(text, name).data)
            _set(changed, tuple(path.split(".")), value)
            written = yaml.safe_dump(changed, sort_keys=False)
            yield Bad(f"{name}.yaml", **{name: written})


def wrong_keys(seed: int, count: int) -> Iterator[Bad]:
    """A key that is mistyped, doubled or in the wrong place."""
    chance = random.Random(seed)
    for number in range(count):
        name, text = ("profile", PROFILE) if number % 2 else ("job", JOB)
        table = _PROFILE if number % 2 else _JOB
        path = tuple(chance.choice(list(table)).split("."))
        changed = _plain(parse(text, name).data)
        parent = _at(changed, path[:-1])
        value = parent.pop(path[-1])
        parent[_mistyped(path[-1], chance)] = value
        yield Bad(f"{name}.yaml", **{name: yaml.safe_dump(changed, sort_keys=False)})


def spoilt_bytes(seed: int, count: int) -> Iterator[Bad]:
    """Bytes removed, doubled, exchanged or put in: some of it is still right."""
    chance = random.Random(seed)
    for number in range(count):
        name, text = ("profile", PROFILE) if number % 2 else ("job", JOB)
        data = bytearray(text.encode())
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(data))
            match chance.randrange(4):
                case 0:
                    del data[at : at + chance.randint(1, 20)]
                case 1:
                    data[at:at] = data[at : at + chance.randint(1, 40)]
                case 2:
                    data[at] = chance.randrange(256)
                case 3:
                    data[at:at] = chance.choice(
                        [b"\n", b"\t", b": ", b"[", b"{", b"&a ", b"*a", b"#", b"\0", b"- ", b"'"]
                    )
        yield Bad("", **{name: bytes(data)})


def _is_wrong(path: str, value: Any) -> bool:
    return not any(path == other and value in values for other, values in _RIGHT_AFTER_ALL)


def _mistyped(key: str, chance: random.Random) -> str:
    at = chance.randrange(len(key))
    mistakes = [
        key[:at] + key[at + 1 :],
        key[:at] + key[at] + key[at:],
        f"{key} ",
        key.upper(),
        f"{key[:at]}é{key[at:]}",
    ]
    return chance.choice([mistake for mistake in mistakes if mistake != key])


def _plain(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _plain(value) for key, value in node.items()}
    return [_plain(value) for value in node] if isinstance(node, list | tuple) else node


def _at(node: Any, path: Path) -> Any:
    for key in path:
        node = node[key]
    return node


def _set(node: Any, path: Path, value: Any) -> None:
    _at(node, path[:-1])[path[-1]] = list(value) if isinstance(value, tuple) else value
