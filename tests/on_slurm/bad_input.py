"""Bad input for `srlhpc submit`, written by hand: what people mistype, and what breaks programs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_NAMED_ELSEWHERE = {
    "environment.factory=__main__": "environment.factory",
    "actors.environments=7": "batch.fragments",
    "actors.ranks=64": "profile.yaml:17: roles.actor",
    "trainers.ranks=50": "job.yaml:11: actors",
    "trainers.threads=9": "profile.yaml:16: roles.trainer.cpus_per_rank",
    "stop.steps=null": "job.yaml:15: stop",
}
"""Overrides whose fault is that something else does not go with them."""

PROFILE = """\
description: lab
mpi: mpich
srun_mpi: pmi2
python: python3
modules: []
setup: ["true"]
signal: USR2
signal_lead_seconds: 40
requeue: true
restarts_in_place: 3
requeues: 20
time_minutes: 10
sbatch: {nice: 1}
roles:
  default: {partition: cpu, account: null, qos: null, constraint: null, memory_mb_per_rank: 100}
  trainer: {partition: gpu, gpus_per_rank: 1, gpu_type: null, cpus_per_rank: 1}
  actor: {ranks_per_node: 2, nodes: 1, exclusive: false}
partitions:
  cpu: {nodes: 2, cpus_per_node: 8, gpus_per_node: 0, memory_mb_per_node: 8000, max_minutes: 60}
  gpu: {nodes: 2, cpus_per_node: 8, gpus_per_node: 2, memory_mb_per_node: 8000, max_minutes: 60}
"""
JOB = """\
seed: 1
environment: {factory: catch}
policies:
  default:
    network: {kind: mlp, hidden: [32]}
    algorithm: {kind: ppo, learning_rate: 1.0e-3, gamma: 0.99, epochs: 2, minibatches: 2}
    batch: {fragments: 16, fragment_steps: 16}
    normalize: {observations: false}
    max_policy_lag: null
agents: [{match: ".*", policy: default, train: true}]
actors: {ranks: 1, ring: 2, environments: 8, inference: {kind: server}}
policy_servers: {ranks: 1, threads: 1, device: cpu}
trainers: {ranks: 1, threads: 1, device: cpu}
evaluators: {ranks: 0}
stop: {steps: 1000}
checkpoint: {every_seconds: 5.0, keep: 3}
"""


@dataclass(frozen=True)
class Bad:
    """One bad input."""

    about: str
    """Words that the message must have: where the mistake is."""
    profile: str | bytes = PROFILE
    job: str | bytes = JOB
    options: tuple[str, ...] = ()
    """Further options; a later --root, --name or --time counts."""
    command: tuple[str, ...] = ("job.yaml", "--cluster", "./profile.yaml")
    prepare: Callable[[Path], object] | None = None
    """Makes something in the folder where the command runs."""


def by_hand() -> Iterator[Bad]:
    for values in (times, chains, names, roots, overrides, files, clusters, refused_by_slurm, options_of_sbatch):
        yield from values()


def times() -> Iterator[Bad]:
    odd = "soon|0|-1|-5m|1e3|1e400|nan|inf|0:0|0-0|00:00:00|:30|1:|1:2:3:4|1-|1--2|-1-2|1-2-3|5w|5 minutes|٣|1_000|0x10"
    for value in [
        *odd.split("|"),
        "",
        " ",
        "9" * 50,
        "61",
        "2-0",
        "366d1",
        "99999999h",
        "1\n2",
        "$(reboot)",
        "5;ls",
        "1.5",
    ]:
        yield Bad("max_minutes" if value in ("61", "2-0") else "--time", options=(f"--time={value}",))
    yield Bad("signal_lead_seconds", PROFILE.replace("seconds: 40", "seconds: 60"), options=("--time=1",))
    yield Bad("requires an argument", options=("--time",))


def chains() -> Iterator[Bad]:
    for value in ("0", "-1", "1000000000", "101", "abc", "1.5", "", " ", "nan", "inf", "1e2", "9" * 5000, "0x2", "1;2"):
        yield Bad("--chain", options=(f"--chain={value}",))


def names() -> Iterator[Bad]:
    odd = ["", " ", ".", "..", "../x", "/tmp/x", "a/b", "a b", "-x", ".x", "latest", "a\nb", "a\tb", "ä", "😀"]
    for value in [*odd, "$(id)", "`id`", "a;b", "a'b", 'a"b', "*", "a#b", "%j", "a\\b", "a=b", "n" * 300, "n" * 5000]:
        yield Bad("--name", options=(f"--name={value}",))
    yield Bad(
        "is in use", options=("--name=used",), prepare=lambda folder: (folder / "runs" / "used").mkdir(parents=True)
    )
    yield Bad("is in use", options=("--name=used",), prepare=lambda folder: _write(folder / "runs" / "used", b""))
    yield Bad("is in use", options=("--name=used",), prepare=lambda folder: _link(folder / "runs" / "used", "nowhere"))


def roots() -> Iterator[Bad]:
    for value in ("job.yaml", "job.yaml/deeper", "/proc/runs", "/dev/null", "/dev/null/x", "r" * 300, "/sys/x"):
        yield Bad("--root", options=(f"--root={value}",))
    for value in ("a\nb", "a\n#SBATCH --array=1-9", "a\x1bb", "\udcff"):
        yield Bad("--root", options=(f"--root={value}",))
    yield Bad("--root", options=("--root=loop",), prepare=lambda folder: _link(folder / "loop", "loop"))
    yield Bad("--root", options=("--root=loop/x",), prepare=lambda folder: _link(folder / "loop", "loop"))
    yield Bad("--root", options=("--root=gone",), prepare=lambda folder: _link(folder / "gone", "/proc/none"))


def overrides() -> Iterator[Bad]:
    odd = [
        "",
        "=",
        "=1",
        "x",
        "actors",
        "actors.ranks",
        "actors.ranks=",
        "actors.ranks=0",
        "actors.ranks=-1",
        "a.b.c=1",
    ]
    odd += ["actors.ranks=.nan", "actors.ranks=1e400", "actors.ranks=[1", "actors.ranks={", "actors.ranks=!!python/x 1"]
    odd += [
        "actors.ranks=*x",
        "actors.ranks=&a [*a]",
        "actors.ranks=true",
        "actors.ranks='2'",
        "actors..ranks=2",
        ".=1",
    ]
    odd += ["actors.ranks.x=1", "agents.5.match=x", "agents.-1.match=x", "agents.x=1", "agents.0.match=(", "stop=null"]
    odd += ["policies.x.network.kind=mlp", "policies={}", "policies.default=null", "policies.default.network.kind=os"]
    odd += [
        "policies.default.network.kind=../x",
        "policies.default.network.kind=",
        "policies.default.network.kind=no.such",
    ]
    odd += ["environment.factory=os", "environment.factory=no_such", "environment.factory=catch.x", "environment=1"]
    odd += [
        "environment.factory=srlhpc",
        "environment.factory=.",
        "environment.factory=a b",
        "environment.factory=__main__",
    ]
    odd += [
        "policies.default.algorithm.kind=mlp",
        "policies.default.algorithm.gamma=2",
        "seed=-1",
        "seed=1.5",
        "seed=x",
    ]
    odd += ["actors.environments=7", "actors.ranks=64", "trainers.ranks=50", "trainers.threads=9", "stop.steps=0"]
    odd += [
        "stop.steps=null",
        "trainers.device=tpu",
        "actors.inference.kind=oracle",
        "policy_servers.ranks=0",
        "base=1",
    ]
    odd += ["actors.environments=99999999999999999999", "policies.default.batch.fragments=99999999999999999999999"]
    odd += [
        "policies.default.network.hidden=[99999999999999999999]",
        "seed=" + "9" * 5000,
        "seed=0o",
        "seed=0x",
        "\n=1",
    ]
    odd += [
        "agents=[]",
        "agents=[{match: nobody}]",
        "agents=[{train: false}]",
        "agents.0.policy=other",
        "actors=x\ny: 1",
    ]
    for value in odd:
        yield Bad(_NAMED_ELSEWHERE.get(value, "--set"), options=("--set", value))
    yield Bad("requires an argument", options=("--set",))
    yield Bad("such option", options=("--sett", "a=1"))
    yield Bad("--set actors.ranks=no", options=("--set", "actors.ranks=2", "--set", "actors.ranks=no"))


def files() -> Iterator[Bad]:
    contents: list[str | bytes] = [
        "",
        "\n",
        "# only\n",
        "---\n...\n",
        "null",
        "1",
        "[]",
        "text",
        "a: b: c",
        "\ta: 1",
        "a:\n\t- 1",
    ]
    contents += [b"\x00", b"\xff\xfe\x00\x01", b"\x89HDF\r\n", b"\x1f\x8b\x08\x00", "a: 1".encode("utf-16"), b"a: \xe4"]
    contents += [
        "a: [",
        "a: {b",
        "a: 'x",
        "a: &x [*x]",
        "a: *x",
        "&a a: *a",
        "a: !!python/object:os.system 1",
        "!!binary aaaa",
    ]
    contents += [
        "a: 1\na: 2",
        "1: 2",
        "? [a]\n: b",
        "null: 1",
        "{[a]: 1}",
        "a: |\n b\n c: 1",
        "%YAML 9.9\n---\na: 1",
        "@a",
    ]
    contents += [
        "---\na: 1\n---\nb: 2",
        "a: \x07",
        "<<: {a: 1}",
        "a: !x y",
        "[" * 3000,
        "a: " * 500,
        "x" * 100_000,
        "mpi",
    ]
    contents += [
        "a: [" + "x," * 200_000 + "]",
        _bomb(),
        "{" * 200,
        "- " * 3000,
        "a: 2024-01-01",
        "'': 1",
        "__class__: 1",
    ]
    contents += ["<html><body>404</body></html>", "#!/bin/bash\n#SBATCH -n 4\nsrun x\n", '{"json": true}', "\u202ea: 1"]
    for content in contents:
        yield Bad("profile.yaml", content)
        yield Bad("job.yaml", job=content)
    yield Bad("b.yaml", job="base: b.yaml\n" + JOB)
    yield Bad("inherits from itself", job="base: job.yaml\n" + JOB)
    yield Bad("base", job="base: [1]\n" + JOB)
    yield Bad("base", job='base: "a\\0b"\n' + JOB)
    yield Bad("base", job="base: .\n" + JOB)
    for name in ("job.yaml", "profile.yaml"):
        yield from _other_than_files(name)


def _other_than_files(name: str) -> Iterator[Bad]:
    def instead(make: Callable[[Path], object]) -> Callable[[Path], object]:
        def prepare(folder: Path) -> None:
            (folder / name).unlink()
            make(folder / name)

        return prepare

    yield Bad(name, prepare=instead(lambda _: None))
    yield Bad(name, prepare=instead(lambda path: path.mkdir()))
    yield Bad(name, prepare=instead(os.mkfifo))
    yield Bad(name, prepare=instead(lambda path: _link(path, path.name)))
    yield Bad(name, prepare=instead(lambda path: _link(path, "nowhere")))
    yield Bad(name, prepare=instead(lambda path: _link(path, "/dev/null")))
    yield Bad(name, prepare=instead(lambda path: _link(path, "/dev/zero")))
    yield Bad(name, prepare=instead(lambda path: _link(path, "/proc/self/mem")))


def clusters() -> Iterator[Bad]:
    odd = [
        "",
        " ",
        ".",
        "..",
        "/",
        "nowhere",
        "../x",
        "a\nb",
        "*",
        "lab ",
        "LAB",
        "c" * 300,
        "c" * 5000,
        "😀",
        "\udcff",
    ]
    odd += ["/nowhere/x.yaml", "x.yaml", "job.yaml/x", "/etc/passwd", "c" * 5000 + ".yaml", "~nobody/x.yaml"]
    for value in odd:
        is_path = "/" in value or value.endswith(".yaml")
        yield Bad(value if is_path else "no cluster", command=("job.yaml", "--cluster", value))
        yield Bad("srlhpc: ", command=(value, "--cluster", "./profile.yaml"))
    yield Bad("--cluster", command=("job.yaml",))
    yield Bad("JOB", command=("--cluster", "./profile.yaml"))
    yield Bad("extra argument", command=("job.yaml", "more.yaml", "--cluster", "./profile.yaml"))


def refused_by_slurm() -> Iterator[Bad]:
    """Profiles that only Slurm can know to be wrong."""
    odd = ["partition: nowhere", "partition: 'cpu,nowhere'", "constraint: liquid"]
    odd += ["constraint: '[a'", "constraint: 'a&&b'", "partition: gpu, gpus_per_rank: 9", "partition: '-'"]
    odd += ["partition: gpu, gpus_per_rank: 1, gpu_type: a100", "memory_mb_per_rank: 999999999"]
    odd += ["memory_mb_per_rank: 99999999999999999999999", "cpus_per_rank: 99999999999999999999", "partition: 'CPU'"]
    odd += ['partition: "cpu\'"', "partition: '$(id)'", "partition: '#SBATCH'", "partition: '😀'"]
    odd += ["gpus_per_rank: 1", "partition: cpu, gpus_per_rank: 0.5", "constraint: 'a b c'", "partition: '--array=1-3'"]
    for role in odd:
        yield Bad("profile.yaml:1" if "999999999999999" in role else "What to do", f"roles: {{default: {{{role}}}}}\n")
    yield Bad("profile.yaml:1: time_minutes", "time_minutes: 99999999999999\nroles: {default: {partition: cpu}}\n")
    yield Bad("What to do", "roles: {default: {partition: cpu}, actor: {partition: nowhere}}\n")


def options_of_sbatch() -> Iterator[Bad]:
    ours = "array: 1-9|hold: true|dependency: 'afterok:1'|begin: tomorrow|wait: true|test-only: true|wrap: id|output: x"
    ours += (
        "|partition: cpu|time: 5|requeue: true|no-requeue: true|signal: USR1|job-name: x|uid: 0|gid: 0|chdir: /|mem: 1"
    )
    ours += "|clusters: elsewhere"
    ours += (
        "|arra: 1-9|hol: true|depend: 'afterok:1'|beg: tomorrow|wai: true|tes: true|part: cpu|n: 4|N: 2|p: cpu|H: true"
    )
    ours += "|help: true|usage: true|version: true|vers: true|hel: true|usa: true|distribution: cyclic|het-group: 0"
    ours += (
        "|--nice: 1|Nice: 1|ni ce: 1|'nice=1': 1|'': 1|nice: false|nice: null|nice: [1]|nice: 1.5|nice: ''|nice: .nan"
    )
    ours += (
        '|nice: "a\\nb"|ntasks: 1|nodes: 5|gres: "gpu:1"|gpus: 1|ä: 1|1: 1|"nice\\n": 1|__proto__: 1|input: /etc/passwd'
    )
    for option in ours.split("|"):
        yield Bad("profile.yaml:2", f"roles: {{default: {{partition: cpu}}}}\nsbatch: {{{option}}}\n")
    theirs = "no-such-option: 1|reservation: nowhere|nodelist: nowhere|licenses: 'moon:1'|mail-type: NEVER"
    theirs += "|deadline: yesterday|tmp: 999999999|gpus-per-task-x: 1|nodefile: /nowhere"
    theirs += "|export-file: /nowhere|exclude: 'cpu[1-2]'|threads-per-core: abc|acctg-freq: abc|mincpus: 9999"
    for option in theirs.split("|"):
        yield Bad("What to do", f"roles: {{default: {{partition: cpu}}}}\nsbatch: {{{option}}}\n")


def _bomb() -> str:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]"
        for before, after in zip("abcdefgh", "bcdefghi", strict=True)
    ]
    return "\n".join(lines)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _link(path: Path, target: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
