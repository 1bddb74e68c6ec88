"""What a server says, through the command: into rows, traces, the store and its tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.commands.test_runs import ANSWERED, SCHEMA, fill, pearl
from tests.cli.terminal import Terminal
from tests.server import Canned, Server, completion
from tests.skips import NO_LARGE

__all__ = ["pearl"]

PASSWORD = "pass-word-123"
QUERY = "api-key=hidden-456"


def execute(url: str, *more: str) -> list[str]:
    model = ["--model", "openai:m", "--base-url", url]
    return ["execute", "why.plan", "story.txt", *model, "--out", "rows.jsonl", *more]


@pytest.mark.parametrize("value", [-5, 2**70])
def test_nonsense_usage_is_flagged_in_rows_and_breaks_no_table(
    value: Any, pearl: Terminal, openai_server: Server
) -> None:
    body = completion("It rained.\n> Nils left the harbour at dawn.")
    body["usage"] = {"prompt_tokens": value, "completion_tokens": 3}
    openai_server.answer = lambda seen: Canned(body)
    pearl(*execute(openai_server.url, "--trace", "trace.jsonl", "--max-tokens", "100000"))
    (row,) = map(json.loads, Path("rows.jsonl").read_text().splitlines())
    jsonschema.validate(row, SCHEMA)
    n = len(openai_server.requests)
    assert n > 0
    usage = row["usage"]
    assert (usage["cached_tokens"], usage["implausible_calls"]) == (0, n)
    assert 100 < usage["input_tokens"] < 1_000, "counted here instead"
    assert '"n_implausible_calls":1' in Path("trace.jsonl").read_text().replace(" ", "")
    assert "-" not in pearl.talk.partition("spent")[2].splitlines()[0], "nothing below 0 is shown"
    id = json.loads(pearl("runs", "list", "--json"))[0]["id"]
    parquet = pytest.importorskip("pyarrow.parquet", reason=NO_LARGE)
    pearl("runs", "export", id, "-o", "rows.parquet")
    (cells,) = parquet.read_table("rows.parquet").to_pylist()
    assert cells["input_tokens"] == usage["input_tokens"]
    assert json.loads(pearl("runs", "show", id, "--json"))["usage"]["n_implausible_calls"] == n


@pytest.mark.parametrize("value", [2**63, -(2**70), 1e300, float("nan"), True])
def test_rows_of_elsewhere_with_numbers_no_table_has_room_for(value: Any, pearl: Terminal) -> None:
    usage = {"input_tokens": value, "output_tokens": 6, "cached_tokens": 0}
    id = fill({**ANSWERED, "usage": usage, "duration_s": value})
    parquet = pytest.importorskip("pyarrow.parquet", reason=NO_LARGE)
    for name in ("rows.parquet", "rows.csv", "rows.jsonl"):
        pearl("runs", "export", id, "-o", name)
    (cells,) = parquet.read_table("rows.parquet").to_pylist()
    assert cells["input_tokens"] is None
    assert cells["output_tokens"] == 6
    shown = json.loads(pearl("runs", "show", id, "--json"))["usage"]
    assert 0 <= shown["n_input_tokens"] < 2**63


def test_no_password_of_an_address_is_kept_or_shown(
    pearl: Terminal, openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = openai_server.url.replace("//", f"//me:{PASSWORD}@") + f"?{QUERY}"
    openai_server.answer = lambda seen: Canned({"error": {"message": f"who is {url}?"}}, 403)
    pearl(*execute(url, "--trace", "trace.jsonl"), code=5)
    assert openai_server.requests[-1].path == f"/v1/chat/completions?{QUERY}", "it is sent"
    assert openai_server.requests[-1].headers["authorization"].startswith("Basic ")
    assert "403" in pearl.talk
    secrets = (PASSWORD, "hidden-456")
    assert not any(secret in pearl.talk for secret in secrets)
    files = [each for each in pearl.folder.rglob("*") if each.is_file()]
    assert {"store.db", "trace.jsonl"} <= {each.name for each in files}
    for file in files:
        data = file.read_bytes()
        assert not any(secret.encode() in data for secret in secrets), file
    id = json.loads(pearl("runs", "list", "--json"))[0]["id"]
    pearl("runs", "resume", id, "--yes", code=2)
    assert "the store omitted the password" in pearl.talk
    openai_server.answer = lambda seen: Canned(
        completion("It rained.\n> Nils left the harbour at dawn.")
    )
    pearl("runs", "resume", id, "--yes", "--base-url", url)
    assert '"answered"' in Path("rows.jsonl").read_text()
