"""Logs: written, read, torn, scored anew; and records made from the results of `execute`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pearl import Document, Pearl
from pearl.data.samples import Sample
from pearl.errors import DataError, ModelError
from pearl.evals.log import EvalLog, EvalRecord, read_log
from pearl.evals.results import EXECUTED, result_units
from pearl.evals.runner import Evaluation, evaluate, rescored, score
from pearl.llm import Usage
from pearl.llm.prices import Price
from pearl.runs.executors import local
from pearl.runs.identity import prompt_digests
from tests.evals import evallogs
from tests.evals.asking import OPTIONS, acting, sample
from tests.evals.evallogs import header, record
from tests.models import Acting
from tests.root import ROOT

DEEP = "[" * 10_000 + "]" * 10_000


def test_a_written_log_is_read_back(tmp_path: Path) -> None:
    made = evallogs.log(20, seeds=(0, 1), methods=("direct", "pearl", "map-reduce"))
    assert read_log(evallogs.write(made, tmp_path / "log.jsonl")) == made


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


def test_the_latest_record_of_a_key_counts(tmp_path: Path) -> None:
    failed = record("q1", status="failed", choice=None, score=0.0, error="gone")
    made = EvalLog(header(), (failed, record("q2"), record("q1"), record("q1", seed=1)))
    read = read_log(evallogs.write(made, tmp_path / "log.jsonl"))
    assert read.records == made.records[1:]


def test_logs_of_real_runs_stay_as_they_are_when_scored_anew() -> None:
    replies = iter(["A", "(B)", "none", "He was tired.", "Answer: C", "It had sunk"] * 20)
    samples = [sample(f"q{i}", gold=i % 4) for i in range(4)]

    async def main() -> tuple[EvalRecord, ...]:
        pearl = Pearl(acting(choose=lambda task: next(replies)), concurrency=1)
        methods = ("pearl", "direct", "mcq", "cot")
        return tuple([r async for r in evaluate(pearl, samples, Evaluation(methods))])

    log = EvalLog(header(), asyncio.run(main()))
    assert len({record.choice for record in log.records}) > 3
    assert rescored(log) == log


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


# --- results of `execute` ---------------------------------------------------------------------


def row(id: str = "q1", **fields: Any) -> Sample:
    known = {
        "status": "answered", "answer": "Because it was rotten.", "plan": "1. a = FIND(CTX) : f",
        "steps": [{"calls": 2}, {"calls": 0}], "coverage": 0.5, "duration_s": 1.0,
        "usage": {"input_tokens": 100, "output_tokens": 10, "cached_tokens": 5},
    }  # fmt: skip
    return sample(id, document=Document("story.txt", id), extra={**known, **fields})


def scored(model: Acting, *rows: Sample, **settings: Any) -> list[EvalRecord]:
    async def main() -> list[EvalRecord]:
        units = result_units(rows, Evaluation((EXECUTED,), **settings))
        return [outcome.result async for outcome in local.run(Pearl(model), units)]

    return sorted(asyncio.run(main()), key=lambda record: record.sample)


def test_results_are_mapped_and_scored() -> None:
    price = Price(input_usd=1_000_000, output_usd=0)
    found = scored(model := acting(), row("q1"), row("q2", answer="x"), price=price)
    first = found[0]
    assert (first.method, first.status, first.choice, first.score) == (
        "executed",
        "answered",
        0,
        1.0,
    )
    assert (first.document, first.coverage, first.n_calls) == ("story.txt", 0.5, 3)
    assert (first.usage, first.cost_usd) == (Usage(110, 11, 5), 110.0)
    assert len(model.requests) == 2
    assert all(OPTIONS[0] in request.prompt for request in model.requests)


def test_failed_and_malformed_results_are_failures() -> None:
    told = {"type": "ExecutionError", "message": "step 'a' failed\n  help: no"}
    found = scored(
        model := acting(),
        row("a", status="failed", answer=None, error=told),
        row("b", status="failed", error=None),
        row("c", steps="three"),
        row("d", usage={"input_tokens": "many"}),
    )
    assert [record.status for record in found] == ["failed"] * 4
    assert [record.score for record in found] == [0.0] * 4
    assert found[0].error == "ExecutionError: step 'a' failed"
    assert found[1].error == "the row has no answer"
    assert (found[2].error or "").startswith("not a row of results: steps ")
    assert "usage: input_tokens" in (found[3].error or "")
    assert model.requests == []


def test_an_answer_that_cannot_be_mapped_is_a_failure() -> None:
    def choose(task: object) -> str:
        raise ModelError("the server is gone", kind="bad_request")

    (found,) = scored(acting(choose=choose), row())
    assert (found.status, found.score) == ("failed", 0.0)
    assert found.error == "ModelError: the server is gone"
    assert found.usage == Usage(100, 10, 5)


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
