"""Rows by servers that are held to a schema, or say so: each row is decided rightly, or not at all."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

import pearl
from pearl import Answer, Document, Pearl
from tests.models import written
from tests.server import Canned, Seen, Server, completion, error

PLAN = """\
1. lines = SPLIT(CTX, "line") : One row for each line
2. even = {} : Those"""
FILTER = 'FILTER(lines, "its number is even")'

Values = dict[str, Any]


def items_of(seen: Seen) -> list[str]:
    return [text for _, text in re.findall(r"<item (\d+)>\n(.*?)\n</item \1>", seen.prompt, re.S)]


def right(text: str) -> str:
    return "yes" if int(text.split()[0]) % 2 == 0 else "no"


def schema_of(seen: Seen) -> Any:
    return seen.body.get("response_format", {}).get("json_schema", {}).get("schema")


def ask(
    server: Server, held: Callable[[Values], str | Canned], n: int = 40, call: str = FILTER, **settings: Any
) -> Answer:  # fmt: skip
    """Run the plan over `n` lines on a server whose constrained replies are made of the right ones by `held`."""

    def answer(seen: Seen) -> Canned:
        texts = items_of(seen)
        values = [right(text) for text in texts]
        said: str | Canned = written(seen.prompt, values)
        if (schema := schema_of(seen)) is not None:
            assert set(schema["properties"]) == {str(i) for i in range(1, len(texts) + 1)}
            said = held({str(i): value for i, value in enumerate(values, 1)})
        return said if isinstance(said, Canned) else Canned(completion(said))

    server.takes_constraints, server.answer = True, answer
    asker = Pearl(
        "openai:test-model", base_url=server.url, api_key_env="", server="ollama", **settings
    )
    document = Document("\n".join(f"{i} is a number" for i in range(n)))
    return pearl.run(asker.execute(PLAN.format(call), document))


def calls(server: Server) -> list[bool]:
    """Whether each call about rows was constrained."""
    return [schema_of(seen) is not None for seen in server.requests if items_of(seen)]


def cut_off(text: str) -> Canned:
    return Canned(completion(text, finish_reason="length"))


def too_large(values: Values) -> str | Canned:
    too_many = error("Invalid schema for response_format: more than 16 properties")
    return Canned(too_many, 400) if len(values) > 16 else json.dumps(values)


HELD: dict[str, tuple[Callable[[Values], str | Canned], list[bool]]] = {
    "conforms": (json.dumps, [True, True]),
    "in another order, with line breaks": (lambda v: json.dumps(dict(sorted(v.items())), indent=1), [True, True]),
    "behind reasoning": (lambda v: f"<think>1: no?</think>{json.dumps(v)}", [True, True]),
    "prose": (lambda v: "Sure, here they are:\n1. yes\n2. no", [True, True, False, False]),
    "lines": (lambda v: "\n".join(f"{i}: no" for i in v), [True, True, False, False]),
    "duplicate keys": (lambda v: json.dumps(v)[:-1] + ', "1": "no"}', [True, True, False, False]),
    "null": (lambda v: json.dumps({**v, "2": None}), [True, True, False, False]),
    "another value": (lambda v: json.dumps({**v, "2": "maybe"}), [True, True, False, False]),
    "a number too few": (lambda v: json.dumps({str(i): v[k] for i, k in enumerate([*v][1:], 1)}), [True, True, False, False]),
    "5,000 entries": (lambda v: json.dumps(dict.fromkeys(map(str, range(1, 5_001)), "no")), [True, True, False, False]),
    "blanks until the limit": (lambda v: cut_off('{"1":' + " \n\t" * 3_000), [True, True, False, False]),
    "blanks, then nothing": (lambda v: cut_off(" " * 5_000), [True, True, False, False]),
    "cut off": (lambda v: cut_off(json.dumps(v)[:30]), [True, True, False, False]),
    "too large a schema": (too_large, [True, True, False, False]),
}  # fmt: skip


@pytest.mark.parametrize("name", HELD)
def test_a_server_that_takes_a_schema_and_does_as_it_likes(
    openai_server: Server, name: str
) -> None:
    held, constrained = HELD[name]
    answer = ask(openai_server, held)
    rows = answer.steps[-1].rows
    assert rows is not None
    assert [row.value for row in rows] == [f"{i} is a number" for i in range(0, 40, 2)]
    assert answer.status == "answered"
    assert sorted(calls(openai_server), reverse=True) == constrained


@pytest.mark.parametrize("name", [name for name in HELD if "order" not in name])
def test_where_a_schema_is_required_what_is_not_of_it_is_an_error_or_undecided(
    openai_server: Server, name: str
) -> None:
    held, constrained = HELD[name]
    try:
        answer = ask(openai_server, held, constrain="json", max_attempts=1)
    except pearl.PearlError as error:
        failed: pearl.PearlError | None = error
    else:
        failed, rows = None, answer.steps[-1].rows
        assert rows is not None
        assert all(right(row.value) == "yes" for row in rows if row.value)
        assert (answer.status == "answered") == all(constrained)
    assert failed is None or len(str(failed).splitlines()) <= 3
    assert all(calls(openai_server))


def test_thousands_of_rows_in_a_call(openai_server: Server) -> None:
    answer = ask(openai_server, json.dumps, n=5_000, items_per_call=5_000)
    assert len(answer.row_evidence) == 2_500
    assert calls(openai_server) == [True, True]  # as its window holds
