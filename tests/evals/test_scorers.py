"""Answers in words against what is right: what counts, and what does not."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pearl import plugins
from pearl.cli import run
from pearl.documents.words import words
from pearl.errors import UsageError
from pearl.errors.escaping import json_bytes
from pearl.evals.log import EvalLog, EvalRecord
from pearl.evals.report import chance, compare, is_below, score_of, scores
from pearl.evals.runner import rescored
from pearl.evals.runner import score as score_record
from pearl.evals.scorers import load_scorer
from tests.evals.evallogs import header, record

DIFFERENT = [
    ("-5.2%", "5.2%"), ("-5.2", "5.2"), ("< 5 mg", "> 5 mg"), ("≤ 5", "≥ 5"), ("$5", "5%"), ("$5", "€5"),
    ("AB+", "AB−"), ("AB+", "AB-"), ("AB-", "AB"), ("A+", "A"), ("C++", "C"), ("C#", "C"),
    ("कि", "की"), ("काल", "कल"), ("10-20 mg", "10, 20 mg"), ("10²", "102"), ("½", "1/2 of 2"), (".5", "5"),
    ("1.250", "1250"), ("1/2", "12"), ("±5", "5"), ("5′", "5″"), ("5 °C", "5 C"), ("x^2", "x2"),
    ("vitamin A", "vitamin"), ("no", "not"), ("?", "!"), ("5", "५५"),
]  # fmt: skip

SAME = [
    ("The boat.", "boat"), ("−5.2 %", "-5.2%"), ("10–20", "10 - 20"), ("1,250,000", "1250000"),
    ("５", "5"), ("५", "5"), ("ﬁne", "fine"), (".5 mg", "0.5mg"), ("well-known", "well known"),
    ("“Nils”", "'nils'"), ("Café", "Cafe\u0301"), ("a mill", "the mill"), ("co\u00adop", "coop"),
    ("**bold**", "bold"), ("yes!", "Yes"), ("a,  b", "a b"), ("STRASSE", "straße"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_every_change_of_a_value_counts(one: str, other: str) -> None:
    assert load_scorer("exact").score(one, other) == 0.0


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_form_of_a_value_does_not_count(one: str, other: str) -> None:
    assert load_scorer("exact").score(one, other) == 1.0


@given(st.text())
def test_every_text_has_words_and_is_like_itself(text: str) -> None:
    assert words(text)
    assert words(text.swapcase().swapcase()) == words(text) or not text.isascii()
    for name in plugins.names("pearl.evals.scorers"):
        assert load_scorer(name).score(text, text) == 1.0


@given(st.text(), st.text())
def test_scores_are_shares_and_exact_is_the_strictest(one: str, other: str) -> None:
    exact, f1, rouge = (load_scorer(name).score(one, other) for name in ("exact", "f1", "rouge-l"))
    assert 0 <= exact <= rouge <= f1 + 1e-12 <= 1 + 1e-12
    assert load_scorer("f1").score(other, one) == f1


def test_scorers_agree_with_figures_worked_by_hand() -> None:
    said, right = "police killed the gunman", "the gunman kill police"
    # without `the`: police killed gunman / gunman kill police
    assert load_scorer("f1").score(said, right) == pytest.approx(2 * 2 / 6)
    assert load_scorer("rouge-l").score(said, right) == pytest.approx(2 * 1 / 6)
    assert load_scorer("rouge-l").score("東京駅", "東京") == pytest.approx(2 * 2 / 5)


def noted(n: int = 24) -> EvalLog:
    """Notes of which each answer has half of the words."""
    rows = [
        record(f"s{i}", method, status="answered", options=(), gold=None, choice=None,
               reference="pain of the left knee since May", answer=answer)
        for i in range(n)
        for method, answer in (("direct", "pain of the knee"), ("pearl", "fever"))
    ]  # fmt: skip
    return EvalLog(header(methods=("direct", "pearl")), tuple(rows))


def test_a_log_is_scored_anew_by_another_scorer() -> None:
    log = rescored(noted())
    assert [score.accuracy.estimate for score in scores(log)] == [0.0, 0.0]
    again = rescored(log, "f1")
    assert again.header.scorer == "f1"
    direct, pearl = scores(again)
    assert direct.accuracy.estimate == pytest.approx(2 * 3 / 9)
    assert (direct.n_correct, pearl.accuracy.estimate) == (0, 0.0)
    assert rescored(again).records == again.records  # by the scorer that the log names
    pair = compare(again.of("direct"), again.of("pearl"), ("direct", "pearl"))
    assert pair is not None
    assert pair.difference.estimate == pytest.approx(2 * 3 / 9)
    assert pair.mcnemar is None  # is of right and wrong
    assert pair.bootstrap_p is not None


def test_a_score_below_chance_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tuple(
        record(f"s{i}", "pearl", options=("a", "b", "c", "d"), choice=1, reply="B", score=0.0)
        for i in range(40)
    )
    log = EvalLog(header(methods=("pearl",)), rows)
    (score,) = scores(log)
    assert is_below(score, chance(rows))
    assert not is_below(score, None)
    some = [replace(row, score=float(i < 7)) for i, row in enumerate(rows)]
    by_luck = score_of("pearl", "all", some)
    assert by_luck.accuracy.low < 0.25 < by_luck.accuracy.high
    assert not is_below(by_luck, chance(some)), "that may be bad luck"
    path = tmp_path / "log.jsonl"
    path.write_text("".join(f"{json_bytes(row).decode()}\n" for row in (log.header, *log.records)))
    assert run(["eval", "--rescore", str(path)]) == 0
    assert "pearl is below chance on all" in capsys.readouterr().out
    assert run(["eval", "--rescore", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["is_below_chance"] is True


def test_a_scorer_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def score(answer: str, reference: str) -> float:
        raise ValueError("boom")

    broken = SimpleNamespace(DESCRIPTION="broken", score=score)
    monkeypatch.setattr(plugins, "load", lambda *_: broken)
    failing = EvalRecord(
        sample="1", method="mcq", status="answered", question="Who?", reference="x", answer="x"
    )
    with pytest.raises(UsageError, match="the scorer 'exact' failed: ValueError: boom"):
        score_record(failing)
