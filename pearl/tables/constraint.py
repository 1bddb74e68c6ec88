"""The form of a query of one table as a constraint: a grammar, and the same as JSON Schema.

Columns can only be those of the table. What a value has to be is not of the form: `checking` says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pearl.dsl.decoding.constraint import (
    Constraint,
    JsonForm,
    closed_object,
    either_rule,
    list_rule,
    literal_rule,
    object_rule,
    ordered_json,
    require,
)
from pearl.tables.specification import OPERATORS, Function

FIELDS = ("select", "where", "group", "aggregate", "sort", "limit")
"""Of a query, in the order in which they are written."""

_TEXT = r"[^\u0000-\u001f\u007f]{0,200}"
_MAX_LISTED = 20

_HINT = (
    'A query of the table: "select" lists columns to show, "where" is a condition {"column", "op", '
    '"value"}, {"all": [...]}, {"any": [...]}, {"no": ...} or null, "group" lists columns, "aggregate" '
    'lists {"function", "column"}, "sort" lists {"by", "descending"}, "limit" is a number or null.'
)


def query_constraint(columns: Sequence[str]) -> Constraint:
    """The constraint for a table with these columns.

    Example:
        >>> constraint = query_constraint(["City"])
        >>> query = {"select": ["City"], "where": None, "group": [], "aggregate": [], "sort": [], "limit": 3}
        >>> constraint.json_form.text_of(query)
        '{"select": ["City"], "where": null, "group": [], "aggregate": [], "sort": [], "limit": 3}'
    """
    schema = _schema(columns)

    def text_of(value: Any) -> str:
        require(value, schema)
        return ordered_json(value, _ORDER)

    return Constraint("query", _grammar(columns), JsonForm(schema, text_of, _HINT))


_ORDER = (*FIELDS, "function", "column", "op", "value", "all", "any", "no", "by", "descending")


def _schema(columns: Sequence[str]) -> dict[str, Any]:
    column = {"enum": list(columns)}
    text = {"type": "string", "pattern": f"^{_TEXT}$"}

    def several(items: Mapping[str, Any], least: int = 0) -> dict[str, Any]:
        return {"type": "array", "items": items, "minItems": least, "maxItems": _MAX_LISTED}

    def closed(**properties: Any) -> dict[str, Any]:
        return closed_object(properties)

    where = {"$ref": "#/$defs/where"}
    nothing = {"type": "null"}
    return {
        **closed(
            select=several(column),
            where={"anyOf": [where, nothing]},
            group=several(column),
            aggregate=several(
                closed(
                    function={"enum": list(get_args(Function))},
                    column={"anyOf": [column, nothing]},
                )
            ),
            sort=several(closed(by=text, descending={"enum": [True, False]})),
            limit={"anyOf": [{"enum": _limits()}, nothing]},
        ),
        "$defs": {
            "where": {
                "anyOf": [
                    closed(column=column, op={"enum": list(OPERATORS)}, value=several(text)),
                    closed(all=several(where, 1)),
                    closed(any=several(where, 1)),
                    closed(no=where),
                ]
            }
        },
    }


def _limits() -> list[int]:
    """Whole numbers that a limit may be: decoders have no keyword in common for them."""
    return [*range(1, 21), 25, 30, 40, 50, 100, 200, 500, 1_000]


def _grammar(columns: Sequence[str]) -> str:
    rules = {
        "start": object_rule(select="columns", where="where_or_null", group="columns",
                         aggregate="figures", sort="orders", limit="limit"),
        "where_or_null": f"where | {literal_rule('null')}",
        "where": "condition | all | any | not",
        "condition": object_rule(column="COLUMN", op="OP", value="texts"),
        "all": object_rule(all="wheres"),
        "any": object_rule(any="wheres"),
        "not": object_rule(no="where"),
        "wheres": list_rule("where", least=1),
        "columns": list_rule("COLUMN"),
        "texts": list_rule("TEXT"),
        "figures": list_rule("figure"),
        "figure": object_rule(function="FUNCTION", column="column_or_null"),
        "column_or_null": f"COLUMN | {literal_rule('null')}",
        "orders": list_rule("order"),
        "order": object_rule(by="TEXT", descending="BOOL"),
        "limit": f"LIMIT | {literal_rule('null')}",
        "COLUMN": either_rule(columns),
        "OP": either_rule(OPERATORS),
        "FUNCTION": either_rule(get_args(Function)),
        "BOOL": f"{literal_rule('true')} | {literal_rule('false')}",
        "LIMIT": " | ".join(literal_rule(str(n)) for n in _limits()),
        "TEXT": r'/"(?:[^"\\\u0000-\u001f\u007f]|\\["\\]){0,200}"/',
    }  # fmt: skip
    return "".join(f"{name}: {body}\n" for name, body in rules.items())
