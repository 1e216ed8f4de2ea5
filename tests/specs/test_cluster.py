"""Cluster profiles: reading, finding, refusing."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from srlhpc.errors import UserError
from srlhpc.specs.cluster import ClusterProfile, known_clusters, load_cluster, read_cluster
from tests.specs.jobs import write

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "jobs" / "clusters").glob("*.yaml"))


def message(folder: Path, text: str) -> str:
    path = write(folder, text, "mine.yaml")
    with pytest.raises(UserError) as caught:
        load_cluster(str(path))
    return str(caught.value).replace(f"{folder}/", "")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_profile_loads(path: Path) -> None:
    assert load_cluster(str(path)).role("trainer").partition == "gpu"


def test_role_takes_from_default_what_it_leaves_out() -> None:
    roles = {"default": {"partition": "a", "account": "me"}, "actor": {"partition": "b"}}
    actor = ClusterProfile.model_validate({"roles": roles}).role("actor")
    assert (actor.partition, actor.account) == ("b", "me")


def test_null_of_a_role_is_not_the_default() -> None:
    roles = {"default": {"qos": "high"}, "actor": {"qos": None}}
    assert ClusterProfile.model_validate({"roles": roles}).role("actor").qos is None


def test_interpreter_is_by_default_the_one_that_submits() -> None:
    assert ClusterProfile().interpreter == sys.executable


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "mine.yaml: is empty; a cluster profile is a mapping. Write a first one: srlhpc cluster init"),
        ("[1]", "mine.yaml: is a list; a cluster profile is a mapping. Write a first one: srlhpc cluster init"),
        ("mpi: auto\nrequeu: true", "mine.yaml:2: requeu: unknown key; did you mean 'requeue'?"),
        ("mpi: lam", "mine.yaml:1: mpi: is 'lam'; it must be 'auto', 'mpich' or 'openmpi'."),
        (
            "roles:\n  default:\n    gpus_per_rank: -1",
            "mine.yaml:3: roles.default.gpus_per_rank: is -1; it must be at least 0.",
        ),
        (
            "roles:\n  trainer:\n    gpu_type: a b",
            "mine.yaml:3: roles.trainer.gpu_type: is 'a b'; it must be of letters, digits, `_`, `.` and `-`, as "
            "`sinfo -o %G` names it; null: any.",
        ),
        ("roles:\n  trainers: {}", "mine.yaml:2: roles.trainers: there is no such role; did you mean 'trainer'?"),
        (
            "roles:\n  default: {partition: gp}\npartitions:\n  gpu: {}",
            "mine.yaml:2: roles.default.partition: 'gp' is not in partitions; did you mean 'gpu'?",
        ),
        (
            "sbatch:\n  nodes: 3",
            "mine.yaml:2: sbatch.nodes: --nodes follows from the profile's other fields and the job; leave it out",
        ),
        (
            "sbatch:\n  --mail-type: END",
            "mine.yaml:2: sbatch.--mail-type: '--mail-type' is no long option of sbatch; "
            "write it without dashes in front",
        ),
        ("sbatch:\n  x11: false", "mine.yaml:2: sbatch.x11: is false; leave the option out instead"),
        (
            "setup:\n- '#SBATCH --nodes=9'",
            "mine.yaml:2: setup.0: options of sbatch do not belong here; write them under sbatch",
        ),
        ('setup: ["a\\nb"]', r"mine.yaml:1: setup.0: is 'a\nb'; it must be one line of printable characters."),
        ("roles:\n  default: {partition: a b}", "mine.yaml:2: roles.default.partition: is 'a b'; it must be one word."),
        ("signal_lead_seconds: 0", "mine.yaml:1: signal_lead_seconds: is 0; it must be at least 1."),
    ],
)
def test_fault_of_a_profile_has_file_line_and_path(tmp_path: Path, text: str, wanted: str) -> None:
    assert message(tmp_path, text) == wanted


def test_later_refusal_of_a_profile_names_the_line_too(tmp_path: Path) -> None:
    path = write(tmp_path, "roles:\n  actor:\n    nodes: 4\n", "mine.yaml")
    with (
        pytest.raises(UserError, match=r"mine.yaml:3: roles\.actor\.nodes: is 4"),
        read_cluster(str(path)).naming_places(),
    ):
        raise UserError("roles.actor.nodes: is 4")


def test_profile_of_the_working_directory_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for folder, word in (("clusters", "here"), ("config/srlhpc/clusters", "mine"), ("jobs/clusters", "example")):
        (tmp_path / folder).mkdir(parents=True)
        write(tmp_path / folder, f"description: {word}", "lab.yaml")
    assert load_cluster("lab").description == "here"
    Path("clusters/lab.yaml").unlink()
    assert load_cluster("lab").description == "mine"
    (tmp_path / "config/srlhpc/clusters/lab.yaml").unlink()
    assert load_cluster("lab").description == "example"


def test_examples_of_a_checkout_are_known_from_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert {"lab", "example"} <= set(known_clusters())


@pytest.mark.parametrize("name", ["lap", "nothing-like-it", "", "-x", "lab ", "\0"])
def test_unknown_cluster_lists_known_ones(name: str) -> None:
    with pytest.raises(UserError, match=r"no cluster .*known are: .*lab"):
        load_cluster(name)


def test_missing_profile_file_is_named() -> None:
    with pytest.raises(UserError, match=r"no/such\.yaml: no such file"):
        load_cluster("no/such.yaml")


_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 10**6), st.floats(), st.text(max_size=5))
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "nodes"]), inner, max_size=2),
    max_leaves=4,
)
_FIELDS = st.sampled_from([*ClusterProfile.model_fields, "no_such"])


@settings(max_examples=300)
@given(st.dictionaries(_FIELDS, _VALUES, min_size=1, max_size=3))
def test_any_profile_loads_or_is_refused_with_its_file(data: object) -> None:
    refusal = "mine.yaml"
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), yaml.safe_dump(data, allow_unicode=True), "mine.yaml")
        try:
            load_cluster(str(path))
        except UserError as error:
            refusal = str(error)
    assert "mine.yaml" in refusal
