"""Logs: written, read, torn, scored anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pearl.errors import DataError
from pearl.evals.log import EvalLog, read_log
from pearl.evals.runner import rescored, score
from pearl.runs.identity import prompt_digests
from tests.evals import evallogs
from tests.evals.evallogs import header, record
from tests.root import ROOT

DEEP = "[" * 10_000 + "]" * 10_000


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            '"v":1',
            '"v":2',
            "log.jsonl:1: not a file of this kind: it is a 'pearl-eval-log' of another version",
        ),
        (
            "pearl-eval-log",
            "pearl-mined",
            "log.jsonl:1: not a file of this kind: it is a 'pearl-mined'",
        ),
        ('"status":"answered"', '"status":"odd"', "log.jsonl:2: not a row: status:"),
        ('"score":1.0', '"score":1.01', "log.jsonl:2: not a row: score:"),
        ('"score":1.0', '"score":-0.01', "log.jsonl:2: not a row: score:"),
        ('"v":1', f'"v":1,"more":{DEEP}', "log.jsonl:1: not a file of this kind"),
        ('"score":1.0', f'"score":1.0,"more":{DEEP}', "log.jsonl:2: not a row: nested too deeply"),
        ('"score":1.0', '"score":NaN', "log.jsonl:2: not a row: JSON is malformed"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = evallogs.write(EvalLog(header(), (record(),)), tmp_path / "log.jsonl")
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(DataError) as refused:
        read_log(path)
    assert said in str(refused.value)
    path.write_text("", encoding="utf-8")
    with pytest.raises(DataError, match="empty"):
        read_log(path)


def test_prices_in_logs_have_the_names_of_the_fields(tmp_path: Path) -> None:
    price = {
        "input_usd": 3.0, "cached_usd": 0.3, "write_usd": None, "output_usd": 15.0, "batch": None,
        "long": {"above": 200_000, "input_usd": 6.0, "output_usd": 22.5},
    }  # fmt: skip
    path = evallogs.write(EvalLog(header(price=None), ()), tmp_path / "log.jsonl")
    first = {**json.loads(path.read_text(encoding="utf-8")), "price": price}
    path.write_text(f"{json.dumps(first)}\n", encoding="utf-8")
    said = "input=3,cached=0.3,output=15,long.above=200000,long.input=6,long.output=22.5"
    log = read_log(path)
    assert str(log.header.price) == said
    assert read_log(evallogs.write(log, path)) == log
    assert '"output_usd":15' in path.read_text(encoding="utf-8")


def test_the_latest_record_of_a_key_counts(tmp_path: Path) -> None:
    failed = record("q1", status="failed", choice=None, score=0.0, error="gone")
    made = EvalLog(header(), (failed, record("q2"), record("q1"), record("q1", seed=1)))
    read = read_log(evallogs.write(made, tmp_path / "log.jsonl"))
    assert read.records == made.records[1:]


def test_a_wrong_score_is_mended() -> None:
    bad = (
        record("q1", reply="A", choice=2, score=0.0),
        record("q2", reply="none", choice=0, score=1.0),
        record("q3", options=(), gold=None, reference="The hull", answer="hull!", score=0.0),
        record("q4", status="failed", reply="A", choice=None, score=1.0),
    )
    found = rescored(EvalLog(header(), bad)).records
    assert [(r.choice, r.score) for r in found] == [(0, 1.0), (None, 0.0), (0, 1.0), (None, 0.0)]
    assert [score(r) for r in found] == [r.score for r in found]


def test_the_header_has_the_digest_of_every_module_that_writes_prompts() -> None:
    modules = {
        str(path.relative_to(ROOT)).removesuffix(".py").replace("/", ".")
        for path in (ROOT / "pearl").rglob("*.py")
        if 'Message("system"' in path.read_text("utf-8")
    }
    mining = {
        name for name in modules if name.startswith("pearl.mining.")
    }  # no part of an evaluation
    assert modules - mining <= prompt_digests().keys()
