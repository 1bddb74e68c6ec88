"""Runs whose values and sentences a model checks, over a server on this machine: killed and resumed, with a checker that is down."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal, rows_of
from tests.models import verdicts
from tests.server import Seen, Server

NAMES = "Keller", "Brandt", "Okafor"
FIELDS = "patient: str, age: int"
COMPOSED = """1. why = FIND_REASON(CTX, "the visit") : Find why
2. when = FIND_EVENT(CTX, "visit") : Find when
3. answer = ANSWER("Who came when?", why, when) : Answer"""
COMMANDS = {  # and the calls about a document
    "a record": (("extract", FIELDS), 2),
    "a composed answer": (("execute", "visit.plan"), 4),
}


def quoted(value: object, quote: str) -> dict[str, object]:
    return {"value": value, "quote": quote}


def is_check(seen: Seen) -> bool:
    return "<claim 1>" in seen.prompt


def reading(seen: Seen) -> str:
    """Reads a letter, composes an answer about it, and agrees with every claim."""
    if is_check(seen):
        return verdicts(*["supported"] * len(re.findall(r"<claim \d+>", seen.prompt)))
    name = next(name for name in NAMES if name in seen.prompt)
    if "End every sentence" in seen.prompt:
        return f"The patient {name} came [1]. It was in May [2]."
    quote = f"{name} is 54 and came in May."
    if "FIELDS" in seen.prompt or '"value"' in seen.prompt:
        return json.dumps({"patient": quoted(name, quote), "age": quoted(54, quote)})
    return json.dumps({"answer": f"{name} came.", "quotes": [quote]})


@pytest.fixture
def arguments(pearl: Terminal, openai_server: Server) -> tuple[str, ...]:
    """What commands about three letters end with."""
    openai_server.on("", reading)
    Path("visit.plan").write_text(COMPOSED)
    for name in NAMES:
        Path(f"{name}.txt").write_text(f"A letter. {name} is 54 and came in May. It rained.")
    letters = [f"{name}.txt" for name in NAMES]
    return (*letters, "--model", "openai:m", "--base-url", openai_server.url, "-o", "out.jsonl")


@pytest.mark.usefixtures("_no_waits")
@pytest.mark.parametrize("kind", COMMANDS)
def test_a_checker_of_another_vendor_that_is_down_leaves_all_unchecked(
    pearl: Terminal,
    openai_server: Server,
    arguments: tuple[str, ...],
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    (command, n_calls) = COMMANDS[kind]
    pearl(*command, *arguments, "--checker-model", "ollama:small", code=1)
    assert len(openai_server.requests) == (n_calls - 1) * len(NAMES)
    for row in rows_of("out.jsonl"):
        assert row["status"] == "degraded"
        assert "meaning was not checked" in row["why"]
        if kind == "a record":
            assert {field["basis"] for field in row["record"].values()} == {"judged"}
            assert "judged, not checked: 2 values" in row["notes"]
        else:
            said = [each["verdict"] for each in row["steps"][-1]["checks"]["sentences"]]
            assert said == ["not checked"] * 2
