"""What people write into a profile's fields: it is meant right, or refused with the right spelling."""

from __future__ import annotations

from pathlib import Path

import pytest

from srlhpc.errors import UserError
from srlhpc.launch.submission import foreman_command
from srlhpc.slurm.allocation import Allocation, Component
from srlhpc.slurm.sbatch import sbatch_text
from srlhpc.specs.cluster import ClusterProfile, load_cluster
from tests.specs.jobs import write


def loaded(folder: Path, text: str) -> ClusterProfile:
    return load_cluster(str(write(folder, text, "mine.yaml")))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("SCRATCH", "/scratch/me")
    monkeypatch.delenv("NOWHERE", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my venv").mkdir()
    (tmp_path / "my venv" / "python").touch()


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("~/venv/bin/python", "/home/me/venv/bin/python"),
        ("$HOME/venv/bin/python", "/home/me/venv/bin/python"),
        ("'${SCRATCH}/v/bin/python3.12'", "/scratch/me/v/bin/python3.12"),
        ("/opt/python", "/opt/python"),
        ("python3", "python3"),
        (".venv/bin/python", "FOLDER/.venv/bin/python"),
        ("my venv/python", "'FOLDER/my venv/python'"),
    ],
)
def test_batch_script_runs_the_python_that_this_shell_means(tmp_path: Path, written: str, meant: str) -> None:
    cluster = loaded(tmp_path, f"python: {written}")
    assert foreman_command(cluster, tmp_path).startswith(f"{meant.replace('FOLDER', str(tmp_path))} -u -m ")
    # The profile that a job keeps means the same on a node, where another shell reads it.
    assert ClusterProfile.model_validate(cluster.model_dump(mode="json")).python == cluster.python


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("python: $NOWHERE/bin/python", "python: is '$NOWHERE/bin/python', and $NOWHERE is not set in the shell"),
        ("python: ~nobody_at_all/python", "python: is '~nobody_at_all/python', and there is no such user here"),
        ("python: $(which python)", "python: is '$(which python)'; commands are not run here"),
        ("python: apptainer exec x.sif python", "it must be the path of one program"),
        ("time_minutes: 1-00:00:00", "time_minutes: is '1-00:00:00'; write a number of minutes: 1440"),
        ("time_minutes: 2:00:00", "time_minutes: is '2:00:00'; write a number of minutes: 120"),
        ("time_minutes: 12h", "time_minutes: is '12h'; write a number of minutes: 720"),
        ("roles: {actor: {memory_mb_per_rank: 4G}}", "is '4G'; write a number of MB: 4096"),
        ("roles: {actor: {memory_mb_per_rank: 1.5 GB}}", "is '1.5 GB'; write a number of MB: 1536"),
        ("partitions: {a: {memory_mb_per_node: 1T, max_minutes: 1-0}}", "write a number of MB: 1048576"),
        ("partitions: {a: {max_minutes: 2-00:00:00}}", "write a number of minutes: 2880"),
        ("roles: {actor: {partition: [a, b]}}", "partition: is a list; write one text: 'a,b'"),
        ("roles: {actor: {partition: 'a, b'}}", "partition: is 'a, b'; write it without blanks: 'a,b'"),
        ("roles: {actor: {account: 12345}}", "account: is 12345; it must be text (write '12345')"),
        ("roles: {actor: {constraint: [a, b]}}", "constraint: is a list; write one text: 'a&b'"),
        ("roles: {actor: {constraint: [rack1|rack2]}}", "constraint: is a list; write one text: '[rack1|rack2]'"),
        (
            "modules: [gcc/12 openmpi]",
            "modules.0: is 'gcc/12 openmpi'; write one module an entry: ['gcc/12', 'openmpi']",
        ),
        ("modules: openmpi", "modules: is 'openmpi'; it must be a list"),
        ("sbatch: {mail_type: END}", "'mail_type' is no long option of sbatch; write 'mail-type'"),
        ("sbatch: {C: x}", "'C' is a short option of sbatch; write its long name"),
        ("sbatch: {-C: x}", "'-C' is a short option of sbatch; write its long name"),
        ("sbatch: {reservation: }", "sbatch.reservation: has no value; write one, true for an option without value"),
        ("sbatch: {exclude: [cpu1, cpu2]}", "sbatch.exclude: is a list; write one text: 'cpu1,cpu2'"),
        ("sbatch: {delay-boot: 1.5}", "sbatch.delay-boot: is 1.5; quote it: '1.5'"),
        ("sbatch: {gres: 'gpu:2'}", "sbatch.gres: is 'gpu:2'; GPUs follow from gpus_per_rank and gpu_type"),
        ("sbatch: {gres: 'nvme:1,gpu'}", "GPUs follow from gpus_per_rank"),
        ("sbatch: {time: 1-0}", "leave it out; write time_minutes, or submit --time"),
        ("sbatch: {mem: 4G}", "leave it out; write memory_mb_per_rank"),
        ("sbatch: {account: me}", "leave it out; write roles.default.account"),
        ("sbatch: {clusters: other}", "--clusters follows from the profile's other fields and the job"),
    ],
)
def test_field_that_slurm_or_yaml_would_not_take_gets_the_right_spelling(
    tmp_path: Path, text: str, refusal: str
) -> None:
    with pytest.raises(UserError) as caught:
        loaded(tmp_path, text)
    assert refusal in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path}/mine.yaml:1: ")


@pytest.mark.parametrize(
    ("option", "line"),
    [
        ("comment: plain", "--comment=plain"),
        ("comment: two words # no comment", "--comment='two words'"),
        ("comment: 'two words # all of it'", "--comment='two words # all of it'"),
        ("comment: it's mine", r"--comment='it\'s mine'"),
        ('comment: "say \\"hi\\""', "--comment='say \"hi\"'"),
        (r"comment: C:\x", r"--comment='C:\\x'"),
        ("exclude: 'cpu[1-3,5],gpu1'", "--exclude='cpu[1-3,5],gpu1'"),
        ("gres: nvme:1", "--gres=nvme:1"),
        ("mail-user: me@site.org", "--mail-user=me@site.org"),
        ("nice: -5", "--nice=-5"),
        ("contiguous: true", "--contiguous"),
        ("export: NONE", "--export=NONE"),
        ("licenses: matlab:2", "--licenses=matlab:2"),
        ("deadline: 2026-12-01T12:00:00", "--deadline=2026-12-01T12:00:00"),
    ],
)
def test_options_are_quoted_as_sbatch_reads_them(tmp_path: Path, option: str, line: str) -> None:
    cluster = loaded(tmp_path, f"sbatch:\n  {option}\n")
    component = Component(dict(cluster.sbatch), 0, 1, 1, (1,), 1, 0)
    text = sbatch_text(Allocation((component,), 10), cluster, name="x", folder=tmp_path, command="true")
    assert f"#SBATCH {line}" in text.splitlines()


def test_set_up_lines_keep_quotes_tabs_and_blanks(tmp_path: Path) -> None:
    lines = ["export A=\"b 'c'\"", "if true; then", '\techo "$A"', "fi", "source ~/my\\ env.sh"]
    cluster = ClusterProfile.model_validate({"setup": lines})
    text = sbatch_text(
        Allocation((Component({}, 0, 1, 1, (1,), 1, 0),), 10), cluster, name="x", folder=tmp_path, command="true"
    )
    assert "\n".join(lines) in text


def test_facts_of_several_partitions_are_the_most_of_any() -> None:
    cluster = ClusterProfile.model_validate(
        {
            "partitions": {
                "a": {"nodes": 4, "cpus_per_node": 8},
                "b": {"nodes": 2, "cpus_per_node": 16, "max_minutes": 60},
            }
        }
    )
    facts = cluster.facts("a,b")
    assert (facts.nodes, facts.cpus_per_node, facts.max_minutes, facts.gpus_per_node) == (4, 16, None, None)
