"""How people write the fields of a cluster profile: what is expanded, and what is refused with the right spelling."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from typing import Any

from srlhpc.specs.time_text import minutes_in

_UNITS_MB = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2}


def one_text(separator: str) -> Callable[[Any], Any]:
    """Refuses a list, and blanks around commas, where Slurm wants one text: `a,b`.

    Args:
        separator: between the words of that text.
    """

    def check(value: Any) -> Any:
        if isinstance(value, list | tuple):
            words = [str(word) for word in value]
            text = separator.join(words) if len(words) != 1 or "|" not in words[0] else f"[{words[0]}]"
            raise ValueError(f"is a list; write one text: '{text}'")
        if separator == "," and isinstance(value, str) and (tight := re.sub(r"\s*,\s*", ",", value.strip())) != value:
            raise ValueError(f"is {value!r}; write it without blanks: '{tight}'")
        return value

    return check


def megabytes(value: Any) -> Any:
    """Refuses `4G` with the number to write."""
    if isinstance(value, str) and (match := re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)i?B?\s*", value, re.I)):
        wanted = math.ceil(float(match[1]) * _UNITS_MB[match[2].upper() or "M"])
        raise ValueError(f"is {value!r}; write a number of MB: {wanted}")
    return value


def minutes(value: Any) -> Any:
    """Refuses `1-00:00:00` with the number to write."""
    if isinstance(value, str) and (wanted := minutes_in(value.strip())):
        raise ValueError(f"is {value!r}; write a number of minutes: {math.ceil(wanted)}")
    return value


def interpreter(text: str) -> str:
    """The path of a Python interpreter with `~`, `$NAME` and a relative path worked out, by this shell.

    A name without a slash is looked for on the nodes.
    """
    if "`" in text or "$(" in text:
        raise ValueError(f"is {text!r}; commands are not run here: write the path that it prints")
    path = os.path.expandvars(os.path.expanduser(text))
    if "$" in path:
        name = re.sub(r"^\W*|\W.*$", "", path.partition("$")[2])
        raise ValueError(f"is {text!r}, and ${name} is not set in the shell that submits; write the path, or export it")
    if path.startswith("~"):
        raise ValueError(f"is {text!r}, and there is no such user here; write the path")
    path = os.path.join(os.getcwd(), path) if "/" in path else path
    if re.search(r"\s", path) and not os.path.exists(path):
        raise ValueError(
            f"is {text!r}; it must be the path of one program, and with blanks in it one that is there. Options and "
            "wrappers cannot be given here"
        )
    return path


def option_name(name: str) -> str | None:
    """What is wrong with the name of an option of sbatch; None if it looks like a long one."""
    if re.fullmatch(r"[a-z][a-z0-9-]+", name):
        return None
    long = name.strip("-").replace("_", "-").lower()
    if len(long) == 1:
        return f"'{name}' is a short option of sbatch; write its long name, as `sbatch --help` lists it"
    hint = f"; write '{long}'" if re.fullmatch(r"[a-z][a-z0-9-]+", long) else ""
    return (
        f"'{name}' is no long option of sbatch; write it without dashes in front"
        if not hint or name[0] == "-"
        else (f"'{name}' is no long option of sbatch{hint}")
    )


def option_value(value: Any) -> Any:
    """Refuses what is no value of an option, with what to write."""
    if value is None or value == "":
        raise ValueError("has no value; write one, true for an option without value, or leave the option out")
    if isinstance(value, float):
        raise ValueError(f"is {value!r}; quote it: '{value:g}'")
    return one_text(",")(value) if isinstance(value, list | tuple) else value
