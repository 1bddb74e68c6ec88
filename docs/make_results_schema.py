"""Write `docs/results.schema.json`: the JSON Schema of a row of results, from its declaration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from pearl.interpreter.row import FailedRow, ResultRow

FILE = Path(__file__).with_name("results.schema.json")

ABOUT = (
    "One line of --out of pearl ask and execute, and of pearl runs export --format jsonl. "
    "Fields of the input that are not named here are passed on as they are."
)


class _Schema(GenerateJsonSchema):
    """Without titles, and without the defaults that readers of incomplete rows use."""

    def default_schema(self, schema: Any) -> dict[str, Any]:
        return self.generate_inner(schema["schema"])

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _without_null(value: Any) -> Any:
    """A schema whose optional fields are absent where they have no value, never null."""
    if isinstance(value, list):
        return [_without_null(each) for each in value]
    if not isinstance(value, dict):
        return value
    value = {name: _without_null(each) for name, each in value.items()}
    for name, field in value.get("properties", {}).items():
        if name not in value.get("required", ()) and {"type": "null"} in field.get("anyOf", ()):
            field["anyOf"] = [each for each in field["anyOf"] if each != {"type": "null"}]
            if len(field["anyOf"]) == 1:
                value["properties"][name] = {**field.pop("anyOf")[0], **field}
    return value


def schema() -> str:
    """The text of the file."""
    rows: TypeAdapter[Any] = TypeAdapter(ResultRow | FailedRow)
    made = rows.json_schema(mode="serialization", schema_generator=_Schema)
    head = {"$schema": _Schema.schema_dialect, "title": "A row of results", "description": ABOUT}
    return json.dumps(head | _without_null(made), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(schema(), encoding="utf-8")
