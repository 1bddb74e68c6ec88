"""The form of a query of one table as a constraint: a grammar, and the same as JSON Schema.

Columns can only be those of the table. What a value has to be is not of the form: `checking` says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from pearl.dsl.decoding.constraint import Constraint, JsonForm
from pearl.dsl.decoding.schema import require
from pearl.tables.specification import OPERATORS, Function

__all__ = ["FIELDS", "query_constraint"]

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
        return _text(value)

    return Constraint("query", _grammar(columns), JsonForm(schema, text_of, _HINT))


_ORDER = (*FIELDS, "function", "column", "op", "value", "all", "any", "no", "by", "descending")


def _text(value: Any) -> str:
    """JSON with the fields of every object in their order, as the grammar has it."""
    if isinstance(value, Mapping):
        fields = sorted(value.items(), key=lambda pair: _ORDER.index(pair[0]))
        return f"{{{', '.join(f'{json.dumps(key)}: {_text(one)}' for key, one in fields)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _schema(columns: Sequence[str]) -> dict[str, Any]:
    column = {"enum": list(columns)}
    text = {"type": "string", "pattern": f"^{_TEXT}$"}

    def several(items: Mapping[str, Any], least: int = 0) -> dict[str, Any]:
        return {"type": "array", "items": items, "minItems": least, "maxItems": _MAX_LISTED}

    def closed(**properties: Any) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

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
        "start": _object(select="columns", where="where_or_null", group="columns",
                         aggregate="figures", sort="orders", limit="limit"),
        "where_or_null": f"where | {_literal('null')}",
        "where": "condition | all | any | not",
        "condition": _object(column="COLUMN", op="OP", value="texts"),
        "all": _object(all="wheres"),
        "any": _object(any="wheres"),
        "not": _object(no="where"),
        "wheres": _listed("where", least=1),
        "columns": _listed("COLUMN"),
        "texts": _listed("TEXT"),
        "figures": _listed("figure"),
        "figure": _object(function="FUNCTION", column="column_or_null"),
        "column_or_null": f"COLUMN | {_literal('null')}",
        "orders": _listed("order"),
        "order": _object(by="TEXT", descending="BOOL"),
        "limit": f"LIMIT | {_literal('null')}",
        "COLUMN": _either(columns),
        "OP": _either(OPERATORS),
        "FUNCTION": _either(get_args(Function)),
        "BOOL": f"{_literal('true')} | {_literal('false')}",
        "LIMIT": " | ".join(_literal(str(n)) for n in _limits()),
        "TEXT": r'/"(?:[^"\\\u0000-\u001f\u007f]|\\["\\]){0,200}"/',
    }  # fmt: skip
    return "".join(f"{name}: {body}\n" for name, body in rules.items())


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _either(texts: Iterable[str]) -> str:
    return " | ".join(_literal(json.dumps(text, ensure_ascii=False)) for text in texts)


def _object(**rules: str) -> str:
    parts: list[str] = []
    for i, (name, rule) in enumerate(rules.items()):
        parts += [_literal(f'{"{" if i == 0 else ", "}"{name}": '), rule]
    return " ".join([*parts, _literal("}")])


def _listed(rule: str, least: int = 0) -> str:
    inner = f"{rule} ({_literal(', ')} {rule})*"
    return f"{_literal('[')} {inner if least else f'[{inner}]'} {_literal(']')}"
