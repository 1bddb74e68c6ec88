"""Settings: each one changes the requests of the commands that have it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import click
import pytest

from pearl.cli import group, run
from pearl.cli.options import SETTINGS
from pearl.documents.readers import ReaderOptions
from tests.models import item_keys, written
from tests.server import Canned, Seen, Server, completion


def commands(found: click.Command = group, *path: str) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by what is typed."""
    if not isinstance(found, click.Group):
        yield " ".join(path), found
        return
    for name in found.list_commands(click.Context(found)):
        command = found.get_command(click.Context(found), name)
        assert command is not None
        yield from commands(command, *path, name)


COMMANDS = dict(commands())

DOCUMENT = "The boat lay in the harbour. Nils sold it because the hull was rotten. " * 1_000
DOCUMENT += "\n\n| boat | 2022 | 2023 |\n|---|---|---|\n| hull | 3 | 4 |\n| sail | 5 | 6 |\n"
PLAN = """\
New actions:
- LOOK(CTX, X) : Look for X

1. a = LOOK(CTX, "hull") : f
2. b = LOOK(CTX, "boat") : g
3. rows = SPLIT(CTX, "sentence") : h
4. some = LIMIT(rows, 8) : i
5. kept = FILTER(some, [a, b]) : j
6. said = MAP(kept, "the colour") : k
7. sail = LOOK(said, "sail") : l
8. both = CONCAT(said, sail) : m"""

ROWS = ["--data", "rows.jsonl"]
USED = {
    "ask": ["ask", "Why was it sold last year?", "story.txt"],
    "eval": ["eval", *ROWS, "--limit", "1", "--methods", "pearl"],
    "execute": ["execute", "--tasks", "tasks.jsonl"],
    "extract": ["extract", ", ".join(f"f{i}: [str]" for i in range(10)), "story.txt"],
    "mine": ["mine", *ROWS, "-o", "mined.jsonl"],
    "plan": ["plan", *ROWS],
    "refine actions": [
        "refine",
        "actions",
        "mined.actions",
        "--max-actions",
        "1",
        "--shard-size",
        "2",
    ],
    "refine fewshot": ["refine", "fewshot", *ROWS, "--limit", "1", "-o", "bank"],
}

FAST = ("refine actions",)

SMALL = ["--window", "12000"]
AS_OF = ["--as-of", "2024-11-05"]
QUALITY = ["--examples", "quality", "--library", "quality"]
OTHERS: dict[str, tuple[list[str], list[str]]] = {
    "model": ([], ["--model", "openai:other"]),
    "planner_model": ([], ["--planner-model", "openai:other"]),
    "rows_model": ([], ["--rows-model", "openai:other"]),
    "escalate_model": ([], ["--escalate-model", "openai:other"]),
    "mapper_model": ([], ["--mapper-model", "openai:other"]),
    "base_url": ([], ["--base-url", "{url}/other"]),
    "api_key_env": ([], ["--api-key-env", "OTHER_KEY"]),
    "domain": ([], ["--domain", "medical"]),
    "library": (QUALITY, [*QUALITY, "--library", "medical"]),
    "examples": ([], ["--examples", "medical"]),
    "nearest": ([], ["--nearest", "1"]),
    "context": (SMALL, [*SMALL, "--context", "retrieve"]),
    "window": ([], ["--window", "256"]),
    "max_output_tokens": ([], ["--max-output-tokens", "77"]),
    "top_p": ([], ["--top-p", "0.5"]),
    "max_repairs": (["--model", "openai:bad"], ["--model", "openai:bad", "--max-repairs", "0"]),
    "max_steps": ([], ["--max-steps", "1"]),
    "fallback": (["--model", "openai:bad"], ["--model", "openai:bad", "--fallback", "none"]),
    "constrain": ([], ["--constrain", "off"]),
    "server": ([], ["--server", "ollama"]),
    "prefix": ([], ["--prefix", "off"]),
    "items_per_call": ([], ["--items-per-call", "1"]),
    "strict": (["--model", "openai:cut"], ["--model", "openai:cut", "--strict"]),
    "as_of": ([], ["--as-of", "2024-11-05"]),
    "fiscal_year_end": (AS_OF, [*AS_OF, "--fiscal-year-end", "09-30"]),
    "compose": ([], ["--compose", "off"]),
    "concurrency": (["--prefix", "off"], ["--prefix", "off", "--concurrency", "1"]),
}
"""Setting → what a command is given beside its own arguments, and what makes a difference to it."""

AT_ONCE = ("concurrency", "prefix")
"""They show in how many calls are open together."""

OF_EVERY_CALL = {"timeout_s", "requests_per_minute", "tokens_per_minute"}
"""Settings of every model that is called; that they hold is shown where models are tested."""


OF_SEARCH = {"ranker", "embeddings"}
"""`tests/plugins/test_foreign.py` and `tests/cli/test_corpora.py` show what they do."""

ASKING_FOR_NO_REPLY = {"mcp", "doctor"}

OF_DATA = {"check", "checker_model", "looks", "passes", "row_quotes"}
"""`tests/interpreter/test_checking.py`, `test_asked_again.py`, `test_looking.py`, `test_row_quotes.py` show what they do."""

OF_READERS = set(ReaderOptions.__struct_fields__)
"""`tests/cli/test_readers.py` and `tests/documents/readers/test_pdf_tables.py` show what they do."""


def last_item_only(prompt: str) -> str:
    return written(prompt, [*[None] * (len(item_keys(prompt)) - 1), "yes"])


def answer(seen: Seen) -> Canned:
    plan = "no plan at all" if seen.body["model"] == "bad" else PLAN
    said = (
        last_item_only(seen.prompt) if item_keys(seen.prompt) and "FILTER" in seen.prompt else "B"
    )  # no reply to MAP
    is_plan = "Question:" in seen.prompt
    is_cut = seen.body["model"] == "cut" and not is_plan
    if is_cut:
        said = "B is it. And"
    reply = completion(plan if is_plan else said, finish_reason="length" if is_cut else "stop")
    reply["usage"]["prompt_tokens"] = len(seen.prompt) // 4  # by which documents are long enough
    return Canned(reply)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OTHER_KEY", "other")
    monkeypatch.setenv("OPENAI_API_KEY", "mine")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def observed(args: list[str], server: Server, folder: Path, capsys: Any) -> list[Any]:
    """What the server is asked, in a folder where nothing is known yet, and the exit code."""
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("XDG_DATA_HOME", str(folder / "data"))
        patch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"Why was it sold last year?\n")))
        Path("story.txt").write_text(DOCUMENT)
        sample = {"document_path": "story.txt", "options": ["a", "b"], "gold": 2}
        asked = ["Why was it sold last year?", "Who sold it?"]
        rows = [{"id": f"q{i}", "question": text, **sample} for i, text in enumerate(asked)]
        Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
        task = {name: rows[0][name] for name in ("id", "question", "document_path")}
        Path("tasks.jsonl").write_text(json.dumps(task))
        drafts = ("Find the hull", "Say who sold it", "Name the harbour", "List the boats")
        Path("mined.actions").write_text(
            "\n".join(f"ACT_{i}(CTX) : {text} of the text" for i, text in enumerate(drafts))
        )
        server.forget()
        server.n_at_once = 0
        code = run(args)
    told = capsys.readouterr().err
    assert server.requests or "rule" in args, told  # rules ask nobody
    asked_for = [
        [seen.path, seen.headers.get("authorization"), json.dumps(seen.body, sort_keys=True)]
        for seen in server.requests
    ]
    is_at_once = server.n_at_once > 1 if server.delay_s else None
    return [code, is_at_once, sorted(asked_for)]


@pytest.mark.parametrize(
    "name", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in USED]
)
def test_every_setting_makes_a_difference(
    name: str, openai_server: Server, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    openai_server.answer, openai_server.n_together = answer, 2
    openai_server.takes_constraints = True
    offered = {option.name for option in COMMANDS[name].params} & set(SETTINGS)
    assert offered >= OF_EVERY_CALL
    flags = {flag for option in COMMANDS[name].params for flag in option.opts}
    base = [*USED[name], "--model", "openai:test", "--base-url", openai_server.url]
    base += ["--server", "vllm"] if "server" in offered else []
    known: dict[tuple[Any, ...], list[Any]] = {}
    useless = set()
    for setting in sorted(offered - OF_EVERY_CALL - OF_SEARCH - OF_DATA - OF_READERS):
        before, after = OTHERS[setting]
        openai_server.delay_s = 0.3 if setting in AT_ONCE else 0.0
        if not {word for word in before if word.startswith("--")} <= flags:
            before, after = [], after[len(before) :]
        key = (*before, openai_server.delay_s)
        if key not in known:
            place = folder / f"{setting}-without"
            known[key] = observed([*base, *before], openai_server, place, capsys)
        args = [*base, *(word.format(url=openai_server.url) for word in after)]
        if observed(args, openai_server, folder / setting, capsys) == known[key]:
            useless.add(setting)
    assert not useless


def test_all_settings_are_tested() -> None:
    assert OTHERS.keys() | OF_EVERY_CALL | OF_SEARCH | OF_DATA | OF_READERS == set(SETTINGS)
    asking = {name for name, c in COMMANDS.items() if any(p.name == "model" for p in c.params)}
    assert asking - ASKING_FOR_NO_REPLY == USED.keys()
