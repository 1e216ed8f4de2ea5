"""`base:`: what a job file inherits from others."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from srlhpc.errors import UserError
from srlhpc.specs.load import load_experiment
from tests.specs.jobs import JOB, write


def complaint(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        load_experiment(path)
    return str(caught.value)


def test_mappings_over_a_base_are_merged_key_by_key(tmp_path: Path) -> None:
    write(tmp_path, JOB, "parent.yaml")
    spec = load_experiment(write(tmp_path, "base: parent.yaml\nactors: {ring: 4}\n"))
    assert (spec.actors.ranks, spec.actors.ring) == (2, 4)


def test_list_over_a_base_replaces_its_list(tmp_path: Path) -> None:
    write(tmp_path, JOB + "agents: [{match: a}, {match: b}]\n", "parent.yaml")
    spec = load_experiment(write(tmp_path, "base: parent.yaml\nagents: [{match: c}]\n"))
    assert [entry.match for entry in spec.agents] == ["c"]


def test_base_is_relative_to_the_file_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").mkdir()
    write(tmp_path, JOB, "grandparent.yaml")
    write(tmp_path / "a", "base: ../grandparent.yaml\nseed: 5\nactors: {ring: 3}\n", "parent.yaml")
    spec = load_experiment(write(tmp_path / "a" / "b", "base: ../parent.yaml\nactors: {ring: 4}\n"))
    assert (spec.seed, spec.actors.ring, spec.actors.ranks) == (5, 4, 2)


def test_another_factory_than_the_bases_drops_its_other_keys_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, JOB.replace("factory: catch", "factory: gymnasium, id: CartPole-v1"), "parent.yaml")
    path = write(tmp_path, "base: parent.yaml\nenvironment: {factory: catch}\n")
    with caplog.at_level(logging.INFO):
        assert load_experiment(path).environment.factory == "catch"
    assert caplog.messages == [f"{path}:2: environment names another module or variant; dropped its id"]


def test_same_factory_as_the_bases_keeps_its_other_keys(tmp_path: Path) -> None:
    write(tmp_path, JOB.replace("factory: catch", "factory: gymnasium, id: CartPole-v1"), "parent.yaml")
    spec = load_experiment(write(tmp_path, "base: parent.yaml\nenvironment: {factory: gymnasium}\n"))
    assert spec.environment.model_dump()["id"] == "CartPole-v1"


def test_wrong_value_of_a_base_names_the_base(tmp_path: Path) -> None:
    parent = write(tmp_path, JOB.replace("ranks: 2", "ranks: -1"), "parent.yaml")
    assert complaint(write(tmp_path, "base: parent.yaml\n")) == (
        f"{parent}:14: actors.ranks: is -1; it must be at least 0."
    )


def test_wrong_value_over_a_base_names_the_heir(tmp_path: Path) -> None:
    write(tmp_path, JOB, "parent.yaml")
    path = write(tmp_path, "base: parent.yaml\n\nactors: 3\n")
    assert complaint(path) == f"{path}:3: actors: is 3; it must be a mapping."


def test_base_that_inherits_from_its_heir_is_refused(tmp_path: Path) -> None:
    parent = write(tmp_path, "base: job.yaml\n", "parent.yaml")
    path = write(tmp_path, "base: parent.yaml\n")
    assert (
        complaint(path)
        == f"{parent}:1: base: inherits from itself: {path} -> {parent} -> {path}; leave one of them out"
    )


def test_missing_base_gets_a_suggestion(tmp_path: Path) -> None:
    parent = write(tmp_path, JOB, "parent.yaml")
    path = write(tmp_path, "seed: 1\nbase: parnt.yaml\n")
    assert complaint(path) == f"{path}:2: base: {tmp_path}/parnt.yaml: no such file; did you mean '{parent}'?"


def test_base_that_is_no_path_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "base: [a.yaml]\n")
    assert complaint(path) == f"{path}:1: base: is a list; it must be the path of a job file"
