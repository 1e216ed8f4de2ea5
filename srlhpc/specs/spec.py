"""The base of everything that a user writes: frozen, strict, unknown keys refused with a suggestion."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import CoreSchema, ErrorDetails, InitErrorDetails, PydanticCustomError

from srlhpc.specs.attribute_docs import attribute_docs
from srlhpc.specs.renamed import translated


class Spec(BaseModel):
    """A frozen model. Docstrings under the fields become their descriptions in the JSON schema.

    Sequences are tuples; lists are taken as such.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        ser_json_inf_nan="strings",
    )

    former_keys: ClassVar[Mapping[str, str]] = {}
    """Keys as they were called before, and their names today."""
    former_values: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """Former names of values and their names today, by key."""
    elsewhere: ClassVar[Mapping[str, str]] = {}
    """Keys that other libraries have in such a place, and what they are here."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        # pydantic can do so itself, but reads the source of every class at its definition: in every process, for
        # nothing, and by way of all modules that are loaded, which ranks that were forked would no longer share.
        found = handler(core_schema)
        properties = handler.resolve_ref_schema(found).get("properties", {})
        for name, description in attribute_docs(cls).items():
            if name in properties:
                properties[name].setdefault("description", description)
        return found

    @model_validator(mode="wrap")
    @classmethod
    def _refuse_unknown_keys(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        known, data = list(cls.model_fields), _frozen(data)
        if not isinstance(data, dict) or all(key in known for key in data):
            return handler(data)
        unknown = {key: _nearest(key, known) for key in data if key not in known}
        errors = [_unknown(key, near, known, cls.elsewhere.get(key)) for key, near in unknown.items()]
        try:
            handler({key: value for key, value in data.items() if key in known})
        except ValidationError as error:
            others = error.errors(include_url=False)
            errors += [_again(other) for other in others if not _is_missing(other, set(unknown.values()))]
        raise ValidationError.from_exception_data(cls.__name__, errors)

    @model_validator(mode="wrap")
    @classmethod
    # The validator that is defined last is called first.
    def _translate_former_words(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(data, dict) or not (cls.former_keys or cls.former_values):
            return handler(data)
        today, former = translated(data, cls.former_keys, cls.former_values)
        try:
            return handler(today)
        except ValidationError as error:
            # A problem is shown where the former key was written.
            found = [_again(each, former) for each in error.errors(include_url=False)]
            raise ValidationError.from_exception_data(cls.__name__, found) from None


def _frozen(data: Any) -> Any:
    """A copy with tuples in place of lists: YAML and JSON only know lists, strict models only take tuples."""
    if isinstance(data, dict):
        return {key: _frozen(value) for key, value in data.items()}
    return tuple(_frozen(value) for value in data) if isinstance(data, list | tuple) else data


def refusal(message: str, *keys: str | int) -> ValidationError:
    """What a validator raises to refuse the value at `keys`, counted from the validated model."""
    error = PydanticCustomError("refused", "{message}", {"message": message})
    return ValidationError.from_exception_data("spec", [InitErrorDetails(type=error, loc=keys, input=None)])


def _nearest(key: object, known: list[str]) -> str | None:
    near = difflib.get_close_matches(str(key), known, n=1, cutoff=0.6)
    return near[0] if near else None


def _unknown(key: object, near: str | None, known: list[str], here: str | None) -> InitErrorDetails:
    hint = f"did you mean '{near}'?" if near else f"known keys: {', '.join(known) or 'none'}"
    if here is not None:
        hint = f"here it is {here}"
    error = PydanticCustomError("unknown_key", "unknown key; {hint}", {"hint": hint})
    return InitErrorDetails(type=error, loc=(str(key),), input=key)


def _is_missing(error: ErrorDetails, suggested: set[str | None]) -> bool:
    """Whether the error only says that a key is missing which a misspelt key already suggests."""
    return error["type"] == "missing" and len(error["loc"]) == 1 and error["loc"][0] in suggested


def _again(error: ErrorDetails, former: Mapping[str, str] | None = None) -> InitErrorDetails:
    loc = error["loc"]
    if former and loc and loc[0] in former:
        loc = (former[str(loc[0])], *loc[1:])
    details = InitErrorDetails(type=error["type"], loc=loc, input=error["input"], ctx=error.get("ctx", {}))
    if error["type"] in ("unknown_key", "refused"):
        details["type"] = PydanticCustomError(error["type"], "{message}", {"message": error["msg"]})
    return details
