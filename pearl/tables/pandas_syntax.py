"""Python text → its syntax tree, and the constants and arguments in it. Nothing is evaluated."""

from __future__ import annotations

import ast
import re
import warnings
from typing import Any

__all__ = [
    "arguments", "constant", "constants", "parsed", "plain_call", "refused", "shown", "text", "texts",
    "whole",
]  # fmt: skip

_ASSIGNED = re.compile(r"[A-Za-z_]\w*\s*=(?!=)\s*")
_MAX_LENGTH = 10_000
_MAX_DEPTH = 100
"""Levels of the syntax tree: what walks it may recurse."""


def parsed(source: str, what: str) -> ast.expr:
    """A text of one expression → its tree, of bounded length and depth.

    Raises:
        ValueError: It is none.
    """
    if len(source) > _MAX_LENGTH:
        raise ValueError(f"{what} is longer than {_MAX_LENGTH:,} characters")
    source = source.strip()
    if assigned := _ASSIGNED.match(source):
        source = source[assigned.end() :]
    try:
        with warnings.catch_warnings():  # of escapes that are none
            warnings.simplefilter("ignore")
            # Of a statement that is wrong, Python would look for its line in a file `<unknown>`.
            found = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"{what} cannot be parsed: {error}") from None
    level: list[ast.AST] = [found]
    for _ in range(_MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    if level:
        raise ValueError(f"{what} is nested more than {_MAX_DEPTH} levels deep")
    return found


def arguments(call: ast.Call, order: list[str], allowed: set[str]) -> dict[str, ast.expr]:
    """Arguments by name."""
    if len(call.args) > len(order) or any(isinstance(one, ast.Starred) for one in call.args):
        raise refused("so many arguments")
    said = dict(zip(order, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg is None or keyword.arg not in allowed or keyword.arg in said:
            raise refused(f"the argument '{keyword.arg or '**'}'")
        if keyword.arg not in (*order, "ascending") and not isinstance(keyword.value, ast.Constant):
            raise refused(f"this value of '{keyword.arg}'")
        said[keyword.arg] = keyword.value
    return said


def plain_call(
    call: ast.Call, name: str, n: int = 0, allowed: set[str] | frozenset[str] = frozenset()
) -> None:
    """Check that a call has so many positional arguments, and known keywords with constants."""
    is_plain = all(
        one.arg in allowed and isinstance(one.value, ast.Constant) for one in call.keywords
    )
    if len(call.args) != n or not is_plain:
        raise refused(f"these arguments of '{name}'")


def constant(node: ast.expr) -> Any:
    """A text or a number."""
    match node:
        case ast.Constant(value=str() | int() | float() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
    raise ValueError(f"{shown(node)} is no text or number")


def constants(node: ast.expr) -> list[Any]:
    """One or several texts or numbers."""
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [constant(one) for one in node.elts]
    return [constant(node)]


def text(node: ast.expr | None) -> str:
    """A text."""
    value = None if node is None else constant(node)
    if not isinstance(value, str):
        raise refused("a name that is no text")
    return value


def texts(node: ast.expr) -> list[str]:
    """One or several texts."""
    elements = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
    return [text(one) for one in elements]


def whole(node: ast.expr) -> int:
    """A whole number from 0."""
    value = constant(node)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise refused("a number of rows that is none")
    return value


def shown(node: ast.AST) -> str:
    """An expression for an error message."""
    return f"'{ast.unparse(node)[:80]}'"


def refused(what: str) -> ValueError:
    """What is said of an expression that no query can say."""
    return ValueError(f"{what} has no place in a query")
