"""Docstrings under the attributes of a class, which Python does not keep."""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise


def attribute_docs(cls: type) -> dict[str, str]:
    """Attribute to docstring, of a class and those that it inherits from; empty where there is no source."""
    found: dict[str, str] = {}
    for owner in reversed(cls.__mro__):
        try:
            (body,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
        except (OSError, TypeError, SyntaxError):
            # It has none: a class of C, or one that was made while the program ran; or its lines are no class alone.
            continue
        assert isinstance(body, ast.ClassDef)
        for statement, following in pairwise(body.body):
            match statement, following:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = inspect.cleandoc(text)
    return found
