"""Dry runs and limits on the command line: what is printed, and that no call is made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pearl.cli import run
from tests.cli.terminal import Terminal
from tests.server import Canned, Server, completion, error
from tests.skips import needs_contrib

STORY = "Nils left the harbour at dawn. He sold the boat because the hull was rotten. " * 200
PLAN = """\
New actions:
- None

1. why = FIND_REASON(CTX, "Nils selling the boat") : Find why he sold it
2. who = FIND_REASON(CTX, why) : Find why that was so
"""


@pytest.fixture
def pearl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "story.txt").write_text(STORY, encoding="utf-8")
    (tmp_path / "other.txt").write_text("other " + STORY, encoding="utf-8")
    (tmp_path / "why.plan").write_text(PLAN, encoding="utf-8")
    return Terminal(tmp_path, capsys)


def on(server: Server) -> list[str]:
    return ["--model", "openai:test-model", "--base-url", server.url]


def test_a_dry_run_asks_nobody_and_needs_no_key(pearl: Terminal) -> None:
    out = pearl(
        "execute", "why.plan", "story.txt", "other.txt", "--dry-run", "--model", "openai:gpt-4o"
    )
    assert "why = FIND_REASON x 2" in out
    assert "US dollars" in out
    assert "2 tasks with openai:gpt-4o; no call was made" in out
    assert "Price: input=2.5,cached=1.25,output=10,batch=0.5 " in out


def test_a_server_that_ignores_forms_costs_no_call_beyond_the_limits(
    pearl: Terminal, openai_server: Server
) -> None:
    openai_server.takes_constraints = True
    openai_server.on("", "rotten hull")
    args = ["ask", "Why was the boat sold?", "story.txt", *on(openai_server)]
    for n in (1, 2, 3):
        pearl(*args, "--max-calls", str(n), "--store", f"store{n}", code=None)
        assert 1 <= len(openai_server.requests) <= n
        openai_server.forget()
    pearl("execute", "why.plan", "story.txt", *on(openai_server))
    openai_server.forget()
    n_listings = openai_server.n_listings
    pearl("execute", "why.plan", "story.txt", *on(openai_server))
    assert (openai_server.requests, openai_server.n_listings) == ([], n_listings)
    dry = json.loads(
        pearl("execute", "why.plan", "other.txt", *on(openai_server), "--dry-run", "--json")
    )
    assert [step["name"] for step in dry["steps"]] == ["why = FIND_REASON", "who = FIND_REASON"]


def test_a_dry_run_is_of_what_is_left(pearl: Terminal, openai_server: Server) -> None:
    openai_server.on("", "rotten hull")
    args = ["execute", "why.plan", "story.txt", "other.txt", "--out", "rows.jsonl"]

    def dry(*more: str) -> tuple[int, int]:
        found = json.loads(pearl(*args, *on(openai_server), *more, "--dry-run", "--json"))
        return found["n_tasks"], found["n_known"]

    assert dry() == (2, 0)
    parts = [dry("--shard", f"{i}/2") for i in (1, 2)]
    assert sorted(parts) in ([(0, 0), (2, 0)], [(1, 0), (1, 0)])
    pearl(*args, *on(openai_server))
    n_asked = len(openai_server.requests)
    assert dry() == (0, 2)
    assert dry("--fresh") == (2, 0)
    Path("other.txt").write_text("Another text.", "utf-8")
    assert dry() == (1, 1)
    assert len(openai_server.requests) == n_asked
    out = pearl(*args, *on(openai_server), "--dry-run")
    assert "Left out, because they have a row already: 1" in out


def test_a_limit_ends_the_run_and_keeps_what_is_done(
    pearl: Terminal, openai_server: Server, tmp_path: Path
) -> None:
    args = [
        "execute",
        "why.plan",
        "story.txt",
        "other.txt",
        "--out",
        "out.jsonl",
        *on(openai_server),
    ]
    pearl(*args, "--max-calls", "2", "--concurrency", "1", code=7)
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["status"] for row in rows] == ["answered", "unfinished"]
    assert rows[1]["error"]["type"] == "BudgetError"
    assert len(openai_server.requests) == 2
    assert "2 rows in out.jsonl, 1 of them unfinished" in pearl.talk
    assert "failed" not in pearl.talk
    assert "the run reached a limit" in pearl.talk
    assert "run the same command again" in pearl.talk
    (run,) = json.loads(pearl("runs", "list", "--json"))
    assert (run["results"], run["failed"]) == (2, 0)
    assert json.loads(pearl("runs", "show", run["id"], "--json"))["rows"] == {
        "answered": 1,
        "unfinished": 1,
    }
    pearl(*args)
    assert len(openai_server.requests) == 4
    assert "2 rows in out.jsonl, 1 of them from earlier runs" in pearl.talk


def test_a_bug_after_a_paid_call_tells_what_was_spent(
    pearl: Terminal,
    openai_server: Server,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(*_: object) -> None:
        raise IndexError("tuple index out of range")

    monkeypatch.setattr("pearl.planner.planner.composing", broken)
    openai_server.on("", PLAN)
    assert run(["ask", "Why was the boat sold?", "story.txt", *on(openai_server)]) == 1
    actual, bug, mend = capsys.readouterr().err.splitlines()[-3:]
    assert actual.startswith(f"spent {len(openai_server.requests)} call")
    assert bug.startswith("pearl: a bug in PEARL at test_costs.py:")
    assert bug.endswith(": IndexError: tuple index out of range")
    assert "PYTHONDEVMODE=1" in mend


@needs_contrib
def test_writes_to_the_cache_are_billed_and_kept(pearl: Terminal, openai_server: Server) -> None:
    reply = completion("rotten hull\n> the hull was rotten")
    reply["usage"]["prompt_tokens_details"]["cache_write_tokens"] = 30
    openai_server.next(Canned(reply), Canned(reply))
    args = ["execute", "why.plan", "story.txt", *on(openai_server), "--out", "out.jsonl"]
    args += ["--price", "input=2,cached=0,write=12,output=0,batch=0.5"]
    pearl(*args)
    assert pearl.talk.splitlines()[-1].endswith(f", ${2 * (6 * 2 + 30 * 12) / 1e6:.4f}")
    assert json.loads(Path("out.jsonl").read_text())["usage"]["written_tokens"] == 60
    args += ["--fresh", "--dry-run", "--json", "--executor"]
    now, later = (json.loads(pearl(*args, way))["total"]["cost_usd"] for way in ("local", "batch"))
    assert later == {"least": now["least"] / 2, "most": now["most"]}, "small rounds go directly"


def test_the_line_of_the_refusal_is_the_one_to_add(pearl: Terminal, openai_server: Server) -> None:
    openai_server.on("", "rotten hull")
    args = ["execute", "why.plan", "story.txt", *on(openai_server), "--max-cost", "9"]
    pearl(*args, code=2)
    assert openai_server.requests == []
    option, price = pearl.talk.split()[-2:]
    pearl(*args, option, price)
    assert pearl.talk.splitlines()[-1].endswith(", $0.0022")


def test_what_a_server_refused_for_its_rate_is_told_once(
    pearl: Terminal, openai_server: Server
) -> None:
    openai_server.on("", "rotten hull")
    openai_server.next(Canned(error("slow down"), 429, {"retry-after-ms": "10"}))
    args = ["execute", "why.plan", "story.txt", *on(openai_server)]
    pearl(*args, "--concurrency", "4")
    told = [line for line in pearl.talk.splitlines() if "(429)" in line]
    assert len(told) == 1
    n_calls = len(openai_server.requests)
    assert f"the server refused 1 of {n_calls} calls because of its rate limit (429)" in told[0]
    assert "the final limit was 9.7 calls per second, 3 at once" in told[0]

    pearl(*args)
    assert "(429)" not in pearl.talk


def test_a_dry_run_tells_what_is_unknown_what_limits_end_and_what_cannot_be_run(
    pearl: Terminal,
) -> None:
    assert "Tasks without a plan: 1" in pearl("ask", "Why?", "story.txt", "--dry-run")
    args = ("execute", "why.plan", "story.txt", "--dry-run", "--max-output-tokens", "10")
    assert "The limits may end the run early: --max-calls" in pearl(*args, "--max-calls", "1")
    assert "The limits may" not in pearl(*args, "--max-calls", "2")
    assert "1 cannot be run" in pearl(*args[:3], "absent.txt", "--dry-run", code=1)


def test_a_parameter_that_the_server_was_not_sent_is_told_once(
    pearl: Terminal, openai_server: Server
) -> None:
    openai_server.next(Canned(error("Unsupported parameter: 'top_p'", param="top_p"), 400))
    pearl("execute", "why.plan", "story.txt", *on(openai_server), "--top-p", "0.5")
    assert pearl.talk.count(" is asked without: top_p\n") == 1
    assert [seen.body.get("top_p") for seen in openai_server.requests][:3] == [0.5, None, None]
