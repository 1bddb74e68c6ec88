"""Write `docs/results.schema.json`: the JSON Schema of a row of results, from its declaration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from pearl.interpreter import row
from pearl.interpreter.row import DocumentRow, FailedRow, Passage, ResultRow, TaskRow

FILE = Path(__file__).with_name("results.schema.json")

REF = "#/$defs/{name}"

ABOUT = (
    "One line of --out of pearl ask and execute, and of pearl runs export --format jsonl. "
    "Fields of the input that are not named here are passed on as they are."
)


def _evidence(kind: type) -> dict[str, Any]:
    """The schema of a piece of evidence, whose classes msgspec cannot tell apart itself."""
    return {"oneOf": [{"$ref": REF.format(name=each.__name__)} for each in (Passage, DocumentRow)]}


def _as_written(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object as it is written: without the defaults for readers; a field that may be absent is never null."""
    kind = getattr(row, name)
    for field in msgspec.structs.fields(kind):
        told = schema["properties"][field.name]
        told.pop("default", None)
        if field.default_factory in (msgspec.NODEFAULT, list, dict):  # It may be absent
            if {"type": "null"} in told.get("anyOf", ()):
                told["anyOf"].remove({"type": "null"})
                if len(told["anyOf"]) == 1:
                    told |= told.pop("anyOf")[0]
        else:
            schema["required"].append(field.name)
    return schema | ({"additionalProperties": True} if issubclass(kind, TaskRow) else {})


def schema() -> str:
    """The text of the file."""
    rows, found = msgspec.json.schema_components(
        [ResultRow, FailedRow, Passage, DocumentRow], schema_hook=_evidence, ref_template=REF
    )
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A row of results"}
    made = {name: _as_written(name, each) for name, each in found.items()}
    whole = head | {"description": ABOUT, "$defs": made, "anyOf": [*rows[:2]]}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(schema(), encoding="utf-8")
