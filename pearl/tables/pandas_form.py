"""A pandas expression → a query. It is parsed, and never evaluated.

Read is what has a word in the specification, over one frame `df`: masks (`&`, `|`, `~`, comparisons,
`isin`, `between`, `isna`, `str.contains`, ...), `query("...")`, columns, `sort_values`, `nlargest`,
`head`, `groupby`, `value_counts`, and `len`, `count`, `nunique`, `sum`, `mean`, `min`, `max`. All else
is refused: a name or a method that is not listed here has no meaning, and there is nothing to escape to.
Texts are compared as in any query, without case.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

from pearl.tables.pandas_syntax import (
    arguments,
    constant,
    constants,
    parsed,
    plain_call,
    refused,
    shown,
    text,
    texts,
    whole,
)
from pearl.tables.specification import Query, read_query

__all__ = ["read_pandas"]

_FUNCTIONS = {
    "count": "count", "size": "count", "nunique": "count different", "sum": "sum", "mean": "mean",
    "min": "min", "max": "max",
}  # fmt: skip
_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Eq: "is", ast.NotEq: "is not", ast.Lt: "before", ast.LtE: "at most", ast.Gt: "after",
    ast.GtE: "at least",
}  # fmt: skip
_MIRRORED = {"before": "after", "after": "before", "at most": "at least", "at least": "at most"}
_SPECIAL = re.compile(r"[\\.^$*+?{}\[\]()]")

_Spec = dict[str, Any]


def read_pandas(text: str, frame: str = "df") -> Query:
    """Parse an expression.

    Args:
        text: One expression, or `result = ...`.
        frame: The name of the table in it.

    Raises:
        ValueError: It is no expression, or says what a query cannot.

    Example:
        >>> query = read_pandas('df[df["City"] == "Haifa"][["Name"]].head(3)')
        >>> query.select, query.where.value, query.limit
        (('Name',), ('Haifa',), 3)
        >>> read_pandas("df.pipe(print)")
        Traceback (most recent call last):
            ...
        ValueError: 'pipe' has no place in a query
    """
    return read_query(_Reader(frame).spec(parsed(text, "the expression")))


class _Reader:
    """Reads one expression from the outside in."""

    def __init__(self, frame: str) -> None:
        self.frame = frame

    def spec(self, node: ast.expr) -> _Spec:
        """The query that an expression of a frame, a column or a figure is."""
        match node:
            case ast.Name(id=self.frame):
                return {}
            case ast.Subscript(
                value=ast.Attribute(value=inner, attr="shape"), slice=ast.Constant(value=0)
            ):
                return self.figure(self.spec(inner), "size")
            case ast.Subscript(value=ast.Attribute(value=inner, attr="loc"), slice=index):
                return self.located(self.spec(inner), index)
            case ast.Subscript(value=inner, slice=index):
                return self.indexed(self.spec(inner), index)
            case ast.Attribute(value=inner, attr="shape" | "size" | "index" | "iloc" | "T" as name):
                raise refused(name)
            case ast.Attribute(value=inner, attr=name):
                return self.selected(self.spec(inner), [name])
            case ast.Call(func=ast.Name(id="len"), args=[inner], keywords=[]):
                return self.figure(self.spec(inner), "size")
            case ast.Call(
                func=ast.Attribute(value=ast.Compare() | ast.BinOp() as inner, attr="sum"),
                args=[],
                keywords=[],
            ):  # a mask: how many are true
                return self.figure({"where": self.mask(inner)}, "size")
            case ast.Call(func=ast.Attribute(value=inner, attr=name)):
                return self.called(inner, name, node)
        raise ValueError(f"{shown(node)} has no place in a query of {self.frame}")

    def indexed(self, spec: _Spec, index: ast.expr) -> _Spec:
        """`frame["a"]`, `frame[["a", "b"]]`, `frame[mask]`, `frame[:5]`."""
        match index:
            case ast.Constant(value=str(name)):
                return self.selected(spec, [name])
            case ast.List():
                return self.selected(spec, texts(index))
            case ast.Slice(lower=None, upper=upper, step=None) if upper:
                return self.limited(spec, whole(upper))
        return self.filtered(spec, self.mask(index))

    def located(self, spec: _Spec, index: ast.expr) -> _Spec:
        """`frame.loc[mask]`, `frame.loc[mask, columns]`."""
        if not isinstance(index, ast.Tuple):
            return self.filtered(spec, self.mask(index))
        if len(index.elts) != 2:
            raise refused("loc with more than two parts")
        rows, columns = index.elts
        if not (isinstance(rows, ast.Slice) and not (rows.lower or rows.upper or rows.step)):
            spec = self.filtered(spec, self.mask(rows))
        if isinstance(columns, ast.Slice):
            if columns.lower or columns.upper or columns.step:
                raise refused("a range of columns")
            return spec
        return self.selected(spec, texts(columns))

    def filtered(self, spec: _Spec, condition: _Spec) -> _Spec:
        if {"group", "aggregate", "limit"} & spec.keys():
            raise refused("a filter of groups, figures or the first rows")
        both = [spec["where"], condition] if "where" in spec else None
        return {**spec, "where": {"all": both} if both else condition}

    def selected(self, spec: _Spec, names: list[str]) -> _Spec:
        if "aggregate" in spec:
            raise refused("a column of figures")
        if "select" in spec and not set(names) <= set(spec["select"]):
            raise refused(f"'{names[0][:60]}' of a column")
        return {**spec, "select": names}

    def limited(self, spec: _Spec, n: int) -> _Spec:
        if "limit" in spec:
            n = min(n, spec["limit"])
        return {**spec, "limit": n}

    def figure(self, spec: _Spec, name: str) -> _Spec:
        if "aggregate" in spec or "limit" in spec:
            raise refused(f"{name} of figures or of the first rows")
        function = _FUNCTIONS[name]
        if name == "size":
            return {**_without(spec, "select", "sort"), "aggregate": [{"function": "count"}]}
        columns = spec.get("select")
        if not columns:
            raise ValueError(f"'{name}' needs a column")
        figures = [{"function": function, "column": column} for column in columns]
        return {**_without(spec, "select", "sort"), "aggregate": figures}

    def called(self, inner: ast.expr, name: str, call: ast.Call) -> _Spec:
        if name not in _METHODS and name not in _FUNCTIONS:
            raise refused(f"'{name[:60]}'")
        spec = self.spec(inner)
        if name in _METHODS:
            return _METHODS[name](self, spec, call)
        plain_call(call, name, allowed={"numeric_only", "skipna", "dropna"})
        return self.figure(spec, name)

    # What a mask is made of

    def mask(self, node: ast.expr) -> _Spec:
        """A condition."""
        match node:
            case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
                return {"all": [self.mask(left), self.mask(right)]}
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return {"any": [self.mask(left), self.mask(right)]}
            case ast.BoolOp(op=op, values=values):  # of `query`
                word = "all" if isinstance(op, ast.And) else "any"
                return {word: [self.mask(value) for value in values]}
            case ast.UnaryOp(op=ast.Invert() | ast.Not(), operand=inner):
                return {"no": self.mask(inner)}
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self.compared(left, op, right)
            case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _TESTS:
                return _TESTS[name](self, inner, node)
        raise ValueError(f"{shown(node)} is no condition of a query")

    def compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> _Spec:
        if isinstance(op, ast.In | ast.NotIn):  # of `query`
            word = "in" if isinstance(op, ast.In) else "not in"
            if isinstance(left, ast.Constant):  # "x" in column
                raise refused("a value in a column; write column.str.contains(value)")
            return _condition(self.named(left), word, constants(right))
        name = _OPERATORS.get(type(op))
        if name is None:
            raise refused(type(op).__name__)
        if isinstance(left, ast.Constant):
            left, right = right, left
            name = _MIRRORED.get(name, name)
        return _condition(self.named(left), name, [constant(right)])

    def named(self, node: ast.expr) -> str:
        """The column that `df["a"]`, `df.a`, and in `query` `a` are; text methods do not change it."""
        match node:
            case ast.Subscript(value=ast.Name(id=self.frame), slice=ast.Constant(value=str(name))):
                return name
            case ast.Attribute(value=ast.Name(id=self.frame), attr=name):
                return name
            case ast.Name(id=name) if name != self.frame:
                return _unticked(name)
            case ast.Call(
                func=ast.Attribute(
                    value=ast.Attribute(value=inner, attr="str"),
                    attr="lower" | "upper" | "strip" | "casefold" | "title",
                ),
                args=[],
                keywords=[],
            ):
                return self.named(inner)
            case ast.Call(
                func=ast.Attribute(value=inner, attr="astype"),
                args=[
                    ast.Name(id="str" | "int" | "float")
                    | ast.Constant(value="str" | "int" | "float")
                ],
                keywords=[],
            ):
                return self.named(inner)
        raise ValueError(f"{shown(node)} is no column of {self.frame}")


_TICK = "pearl_column_"


def _ticked(text: str) -> str:
    """`a b` in back ticks, as `query` has it → a name that Python can parse."""
    return re.sub(r"`([^`]*)`", lambda m: _TICK + m[1].encode().hex(), text)


def _unticked(name: str) -> str:
    return bytes.fromhex(name.removeprefix(_TICK)).decode() if name.startswith(_TICK) else name


def _query(reader: _Reader, spec: _Spec, call: ast.Call) -> _Spec:
    """`query("...")`: its text is parsed, too; `@name` has nothing to stand for."""
    plain_call(call, "query", n=1, allowed={"engine"})
    text = constant(call.args[0])
    if not isinstance(text, str):
        raise refused("query without a text")
    return reader.filtered(spec, reader.mask(parsed(_ticked(text), "the text of 'query'")))


def _sort_values(reader: _Reader, spec: _Spec, call: ast.Call) -> _Spec:
    said = arguments(call, ["by"], {"by", "ascending", "na_position", "ignore_index"})
    ascending = constants(said["ascending"]) if "ascending" in said else [True]
    if "limit" in spec:
        raise refused("sorting the first rows")
    if "by" in said:
        by = texts(said["by"])
    elif len(spec.get("aggregate", ())) == 1:  # a series of figures
        (figure,) = spec["aggregate"]
        by = [f"{figure['function']} of {figure['column']}" if "column" in figure else "count"]
    else:
        by = spec.get("select") or []
    if not by or not all(isinstance(one, bool) for one in ascending):
        raise refused("sort_values without a column or with another order than True or False")
    orders = ascending * len(by) if len(ascending) == 1 else ascending
    if len(orders) != len(by):
        raise refused("sort_values with more or fewer orders than columns")
    keys = [{"by": one, "descending": not up} for one, up in zip(by, orders, strict=True)]
    return {**spec, "sort": keys}


def _head(reader: _Reader, spec: _Spec, call: ast.Call) -> _Spec:
    said = arguments(call, ["n"], {"n"})
    return reader.limited(spec, whole(said["n"]) if "n" in said else 5)


def _extreme(descending: bool) -> Callable[[_Reader, _Spec, ast.Call], _Spec]:
    def read(reader: _Reader, spec: _Spec, call: ast.Call) -> _Spec:
        said = arguments(call, ["n", "columns"], {"n", "columns", "keep"})
        if "limit" in spec or "n" not in said:
            raise refused("the largest of the first rows, or without a number")
        by = texts(said["columns"]) if "columns" in said else spec.get("select")
        if not by or "aggregate" in spec:
            raise refused("nlargest and nsmallest without a column")
        keys = [{"by": one, "descending": descending} for one in by]
        return {**spec, "sort": keys, "limit": whole(said["n"])}

    return read


def _groupby(reader: _Reader, spec: _Spec, call: ast.Call) -> _Spec:
    said = arguments(call, ["by"], {"by", "as_index", "sort", "dropna", "observed"})
    if {"group", "aggregate", "limit"} & spec.keys() or "by" not in said:
        raise refused("groupby of groups, of the first rows or without columns")
    return {**_without(spec, "sort", "select"), "group": texts(said["by"])}


def _agg(reader: _Reader, spec: _Spec, call: ast.Call) -> _Spec:
    said = arguments(call, ["func"], {"func"})
    func = said.get("func")
    if func is None or {"aggregate", "limit"} & spec.keys():
        raise refused("agg of figures, of the first rows or without functions")
    if isinstance(func, ast.Dict):
        pairs = [
            (text(key), name)
            for key, value in zip(func.keys, func.values, strict=True)
            for name in texts(value)
        ]
    else:
        pairs = [(column, name) for column in spec.get("select") or [] for name in texts(func)]
    if not pairs or any(name not in _FUNCTIONS for _, name in pairs):
        raise refused(f"agg with other functions than {', '.join(_FUNCTIONS)}")
    figures = [{"function": _FUNCTIONS[name], "column": column} for column, name in pairs]
    return {**_without(spec, "select", "sort"), "aggregate": figures}


def _value_counts(reader: _Reader, spec: _Spec, call: ast.Call) -> _Spec:
    plain_call(call, "value_counts", allowed={"dropna", "ascending"})
    said = arguments(call, [], {"dropna", "ascending"})
    columns = spec.get("select")
    if not columns or {"group", "aggregate", "limit"} & spec.keys():
        raise refused("value_counts without a column")
    up = "ascending" in said and constant(said["ascending"]) is True
    return {
        **_without(spec, "select", "sort"),
        "group": columns,
        "aggregate": [{"function": "count"}],
        "sort": [{"by": "count", "descending": not up}],
    }


def _different(reader: _Reader, spec: _Spec, call: ast.Call) -> _Spec:
    """`unique()` and `drop_duplicates()`: one line for each different value."""
    plain_call(call, "unique")
    columns = spec.get("select")
    if not columns or {"group", "aggregate", "limit"} & spec.keys():
        raise refused("unique without a column")
    return {**_without(spec, "select", "sort"), "group": columns}


def _same(reader: _Reader, spec: _Spec, call: ast.Call) -> _Spec:
    """Methods that change how a frame is kept, and not what it says."""
    allowed = {"drop", "name", "index", "by"}
    plain_call(call, "it", allowed=allowed)
    return spec


_METHODS: dict[str, Callable[[_Reader, _Spec, ast.Call], _Spec]] = {
    "query": _query, "sort_values": _sort_values, "head": _head, "nlargest": _extreme(True),
    "nsmallest": _extreme(False), "groupby": _groupby, "agg": _agg, "aggregate": _agg,
    "value_counts": _value_counts, "unique": _different, "drop_duplicates": _different,
    "reset_index": _same, "copy": _same, "tolist": _same, "to_list": _same,
}  # fmt: skip


def _isin(reader: _Reader, inner: ast.expr, call: ast.Call) -> _Spec:
    plain_call(call, "isin", n=1)
    return _condition(reader.named(inner), "in", constants(call.args[0]))


def _between(reader: _Reader, inner: ast.expr, call: ast.Call) -> _Spec:
    plain_call(call, "between", n=2)
    name = reader.named(inner)
    low, high = (constant(one) for one in call.args)
    return {"all": [_condition(name, "at least", [low]), _condition(name, "at most", [high])]}


def _emptiness(word: str) -> Callable[[_Reader, ast.expr, ast.Call], _Spec]:
    def read(reader: _Reader, inner: ast.expr, call: ast.Call) -> _Spec:
        plain_call(call, "isna")
        return {"column": reader.named(inner), "op": word}

    return read


def _contains(reader: _Reader, inner: ast.expr, call: ast.Call) -> _Spec:
    """`str.contains`: a text, or texts with `|` between; other regular expressions are refused."""
    if not (isinstance(inner, ast.Attribute) and inner.attr == "str"):
        raise refused("contains without .str")
    said = arguments(call, ["pat"], {"pat", "case", "na", "regex"})
    pattern = constant(said["pat"]) if "pat" in said else None
    if not isinstance(pattern, str):
        raise refused("contains without a text")
    name = reader.named(inner.value)
    is_regex = not ("regex" in said and constant(said["regex"]) is False)
    if not is_regex:
        return _condition(name, "contains", [pattern])
    plain = re.sub(r"\\([^\w\s])", lambda m: f"\0{ord(m[1]):x}\0", pattern)
    if _SPECIAL.search(plain):
        raise ValueError(
            f"'{pattern[:60]}' is a regular expression; write the texts themselves, with | between"
        )
    texts = [
        re.sub("\0([0-9a-f]+)\0", lambda m: chr(int(m[1], 16)), one) for one in plain.split("|")
    ]
    found = [_condition(name, "contains", [one]) for one in texts]
    return found[0] if len(found) == 1 else {"any": found}


_TESTS: dict[str, Callable[[_Reader, ast.expr, ast.Call], _Spec]] = {
    "isin": _isin, "between": _between, "isna": _emptiness("is empty"),
    "isnull": _emptiness("is empty"), "notna": _emptiness("is not empty"),
    "notnull": _emptiness("is not empty"), "contains": _contains,
}  # fmt: skip


def _condition(column: str, op: str, values: list[Any]) -> _Spec:
    return {"column": column, "op": op, "value": [str(one) for one in values]}


def _without(spec: _Spec, *keys: str) -> _Spec:
    return {key: value for key, value in spec.items() if key not in keys}
