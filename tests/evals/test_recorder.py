"""Logs that grow: what is kept, what is tried again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from pathlib import Path

from pearl.evals.log import EvalRecord, Key, read_log
from pearl.evals.recorder import record
from tests.evals.evallogs import header
from tests.evals.evallogs import record as made


async def of(*records: EvalRecord) -> AsyncIterator[EvalRecord]:
    for one in records:
        yield one


def test_what_failed_stays_a_failure_until_it_is_tried_again(tmp_path: Path) -> None:
    out = tmp_path / "log.jsonl"
    failed = made("b", status="failed", score=0.0, choice=None)
    asked: list[Collection[Key]] = []
    told: list[str] = []

    def run(*records: EvalRecord) -> list[EvalRecord]:
        def start(done: Collection[Key]) -> AsyncIterator[EvalRecord]:
            asked.append(done)
            return of(*records)

        log = asyncio.run(
            record(header(), start, out, on_record=lambda one: told.append(one.sample))
        )
        assert set(log.records) == set(read_log(out).records)
        return sorted(log.records, key=lambda one: one.sample)

    assert [one.status for one in run(made("a"), failed)] == ["answered", "failed"]
    assert [one.status for one in run()] == ["answered", "failed"]
    assert [one.status for one in run(made("b"))] == ["answered", "answered"]
    assert [{key[0] for key in keys} for keys in asked] == [set(), {"a"}, {"a"}]
    assert told == ["a", "b", "a", "a", "b"]


def test_a_log_need_not_be_kept() -> None:
    log = asyncio.run(record(header(), lambda done: of(made("a"))))
    assert [one.sample for one in log.records] == ["a"]
