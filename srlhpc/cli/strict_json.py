"""JSON that every reader takes."""

from __future__ import annotations

import json
import math
from typing import Any


def strict_json(value: Any) -> str:
    """The value as text; NaN and infinities, which JSON does not have, are null."""
    return json.dumps(_finite(value), indent=1)


def _finite(value: Any) -> Any:
    match value:
        case dict():
            return {key: _finite(inner) for key, inner in value.items()}
        case list():
            return [_finite(inner) for inner in value]
        case float() if not math.isfinite(value):
            return None
    return value
