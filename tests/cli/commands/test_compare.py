"""`pearl compare`: two logs, side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.evals import evallogs
from tests.evals.evallogs import header, record


def test_logs_are_compared(pearl: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pearl.evals.stats.N_RESAMPLES", 400)
    for name, skill in (("one", 0.0), ("two", 0.2)):
        made = evallogs.log(30, skill=skill, model=name)
        evallogs.write(made, Path(name))
    table = pearl("compare", "one", "two")
    assert "model: one | two" in table
    found = json.loads(pearl("compare", "one", "two", "--json", "--by-document"))
    assert {c["first"] for c in found} == {"direct", "pearl"}
    assert {c["subset"] for c in found} == {"all", "easy", "hard"}
    assert found[0]["n"] == 30
    assert "different data" not in pearl.talk


def test_logs_of_different_data_are_compared_where_both_have_it(pearl: Terminal) -> None:
    from pearl.evals.log import EvalLog

    one = EvalLog(header(), (record("q1"), record("q2")))
    two = EvalLog(header(data_sha256="2" * 64), (record("q2"), record("q3")))
    evallogs.write(one, Path("one"))
    evallogs.write(two, Path("two"))
    shown = pearl("compare", "one", "two")
    assert "compared on the 1 samples that both logs have" in pearl.talk
    assert "first: one: pearl 100.0 %" in shown
    evallogs.write(EvalLog(header(), (record("q9"),)), Path("two"))
    pearl("compare", "one", "two", code=2)
    assert "share no sample" in pearl.talk
    evallogs.write(EvalLog(header(), (record("q1", question="Who?"),)), Path("two"))
    pearl("compare", "one", "two", code=2)
    assert "'q1' has a different question" in pearl.talk
    pearl("compare", "one", "absent", code=3)
