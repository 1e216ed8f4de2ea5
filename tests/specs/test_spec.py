"""The base of everything that a user writes."""

from __future__ import annotations

import pytest
from pydantic import PositiveInt, ValidationError, model_validator

from srlhpc.specs.spec import Spec, refusal


class Leaf(Spec):
    sizes: tuple[PositiveInt, ...] = (1,)

    @model_validator(mode="after")
    def _check(self) -> Leaf:
        if 13 in self.sizes:
            raise refusal("is 13", "sizes", self.sizes.index(13))
        return self


class Tree(Spec):
    left: Leaf
    right: Leaf = Leaf()


def errors(data: object) -> list[tuple[tuple[int | str, ...], str]]:
    with pytest.raises(ValidationError) as caught:
        Tree.model_validate(data)
    return [(error["loc"], error["msg"]) for error in caught.value.errors()]


def test_unknown_keys_and_wrong_values_are_all_reported() -> None:
    assert errors({"left": {"size": [1]}, "right": {"sizes": [0]}, "rigth": 1}) == [
        (("rigth",), "unknown key; did you mean 'right'?"),
        (("left", "size"), "unknown key; did you mean 'sizes'?"),
        (("right", "sizes", 0), "Input should be greater than 0"),
    ]


def test_suggested_key_is_not_reported_as_missing_too() -> None:
    assert errors({"lft": {}}) == [(("lft",), "unknown key; did you mean 'left'?")]


def test_refusal_of_a_nested_validator_has_its_whole_path() -> None:
    assert errors({"left": {"sizes": [1, 13]}, "more": 1}) == [
        (("more",), "unknown key; known keys: left, right"),
        (("left", "sizes", 1), "is 13"),
    ]


def test_spec_survives_json() -> None:
    tree = Tree(left=Leaf(sizes=(2, 4)))
    assert Tree.model_validate_json(tree.model_dump_json()) == tree


def test_spec_refuses_assignment() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Leaf().sizes = (2,)  # type: ignore[misc]
