"""The base of everything that a user writes: frozen, strict, unknown keys refused with a suggestion."""

from __future__ import annotations

import difflib
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError


class Spec(BaseModel):
    """A frozen model. Docstrings under the fields become their descriptions in the JSON schema."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        use_attribute_docstrings=True,
        allow_inf_nan=False,
        ser_json_inf_nan="strings",
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        known = list(cls.model_fields)
        unknown = [key for key in data if key not in cls.model_fields]
        if unknown:
            raise ValidationError.from_exception_data(cls.__name__, [_unknown(key, known) for key in unknown])
        return data


def _unknown(key: object, known: list[str]) -> InitErrorDetails:
    near = difflib.get_close_matches(str(key), known, n=1, cutoff=0.6)
    hint = f"did you mean '{near[0]}'?" if near else f"known keys: {', '.join(known) or 'none'}"
    error = PydanticCustomError("unknown_key", "unknown key; {hint}", {"hint": hint})
    return InitErrorDetails(type=error, loc=(str(key),), input=key)
