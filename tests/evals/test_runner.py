"""Samples × methods × seeds → records: one each, whatever goes wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from pearl import Document, Pearl, plugins
from pearl.errors import DataError, ModelError, UsageError
from pearl.evals.runner import samples_digest, scorable
from pearl.llm import ActionTask, ChooseTask, PlanTask, Usage
from pearl.llm.prices import Price
from tests.evals.asking import METHODS, OPTIONS, PLAN, STORY, acting, run, sample

PROSE = ("pearl", "direct", "map-reduce", "retrieve")
BROKEN = "1. ans = NO_SUCH(CTX) : Fail"


def gone(request: object) -> str:
    raise ModelError("the server is gone", kind="bad_request")


def test_every_sample_has_one_record_per_method_and_seed() -> None:
    samples = [sample(f"q{i}", gold=i % 4) for i in range(5)]
    records = run(Pearl(acting()), samples, *METHODS, seeds=(0, 1))
    assert set(records) == {
        (f"q{i}", name, seed) for i in range(5) for name in METHODS for seed in (0, 1)
    }
    for (id, _, _), record in records.items():
        assert record.status == "answered"
        assert record.choice == 0
        assert record.score == float(id in ("q0", "q4"))
        assert record.error is None
        assert record.document == "story.txt"
        assert record.options == OPTIONS


def test_an_error_of_one_sample_is_recorded_and_counted(tmp_path: Path) -> None:
    samples = [
        sample("good"),
        sample("absent", document=tmp_path / "absent.txt"),
        sample("broken", question="What is broken?"),
        sample("gone", question="What is gone?"),
    ]

    def plan(task: PlanTask) -> str:
        return BROKEN if "broken" in task.question else PLAN

    def step(request: Any) -> str:
        return gone(request) if "gone" in request.task.question else "It was rotten."

    model = acting(plan=plan, step=step)
    records = run(Pearl(model, max_repairs=1, fallback="none"), samples, "pearl", "direct", "mcq")
    assert len(records) == 12
    reasons = {key[:2]: record.error for key, record in records.items() if record.error}
    assert set(reasons) == {
        ("absent", "pearl"), ("absent", "direct"), ("absent", "mcq"), ("broken", "pearl"),
        ("gone", "pearl"), ("gone", "direct"),
    }  # fmt: skip
    assert "absent.txt: no such file" in reasons["absent", "mcq"]
    assert reasons["broken", "pearl"].startswith("PlanningError: no valid plan after 2 calls")
    assert "the server is gone" in reasons["gone", "direct"]
    for key, record in records.items():
        assert (record.status == "failed") == (key[:2] in reasons)
        assert record.score == float(key[:2] not in reasons)
    spent = records["broken", "pearl", 0]
    assert (spent.n_calls, spent.planning_usage) == (2, Usage(20, 2))


def test_a_fallback_is_told_from_an_answer() -> None:
    model = acting(plan=BROKEN)
    pearl = Pearl(model, max_repairs=0)
    record = run(pearl, [sample()], "pearl")["q1", "pearl", 0]
    assert (record.status, record.score, record.plan, record.shape) == (
        "fell_back",
        1.0,
        None,
        None,
    )
    assert record.n_calls == len(model.requests) == 3  # plan, answer, choice
    assert record.planning_usage == Usage(10, 1)


@pytest.fixture
def buggy(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A method in place of `mcq`, without `predict`."""
    method = SimpleNamespace(DESCRIPTION="buggy", NEEDS_OPTIONS=False)
    load = plugins.load
    monkeypatch.setattr(
        plugins,
        "load",
        lambda package, name, *kind: method if name == "mcq" else load(package, name, *kind),
    )
    return method


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ZeroDivisionError("by zero\nand more"), "ZeroDivisionError: by zero"),
        (ValueError("half \ud800"), "ValueError: half \\ud800"),
    ],
)
def test_a_bug_in_a_method_is_a_failure_of_its_samples(
    buggy: SimpleNamespace, error: Exception, said: str
) -> None:
    async def predict(*arguments: object) -> None:
        raise error

    buggy.predict = predict
    records = run(Pearl(acting()), [sample("q1"), sample("q2")], "mcq", "direct")
    for id in ("q1", "q2"):
        failed = records[id, "mcq", 0]
        assert (failed.status, failed.score, failed.error) == ("failed", 0.0, said)
        assert msgspec.json.encode(failed)
        assert records[id, "direct", 0].status == "answered"


@pytest.mark.parametrize(
    "asked",
    ["Why did Nils leave?", "why did NILS  leave", "“Why did Nils leave?!”", "ｗhy did Nils leave"],
)
def test_a_question_of_the_bank_is_refused_and_named(tmp_path: Path, asked: str) -> None:
    bank = tmp_path / "bank"
    bank.mkdir()
    (bank / "1.plan").write_text(f"Question: Why did Nils leave?\n\n{PLAN}", encoding="utf-8")
    pearl = Pearl(model := acting(), examples=bank)
    with pytest.raises(DataError) as refused:
        run(pearl, [sample("q1"), sample("q2", question=asked)], "direct")
    assert any(repr(name) in str(refused.value) for name in (asked, "Why did Nils leave?"))
    assert model.requests == []
    assert run(pearl, [sample(question="Why did Nils ever leave?")], "direct")


@pytest.mark.parametrize("name", ["mcq", "cot"])
def test_methods_that_show_options_need_them(name: str) -> None:
    samples = [sample("q1"), sample("q2", options=(), gold=None, reference="rotten")]
    with pytest.raises(UsageError, match=f"method '{name}' shows options, but sample 'q2' has"):
        run(Pearl(model := acting()), samples, "direct", name)
    assert model.requests == []


@pytest.mark.parametrize(("name", "n"), [("mcq", 2), *((name, 26) for name in METHODS)])
def test_any_number_of_options(name: str, n: int) -> None:
    options = tuple(f"It was reason {i:02d}" for i in range(n))
    last = chr(ord("A") + n - 1)
    model = acting(choose=last)
    record = run(Pearl(model), [sample(options=options, gold=n - 1)], name)["q1", name, 0]
    assert (record.choice, record.score) == (n - 1, 1.0)
    shown = [r.prompt for r in model.requests if isinstance(r.task, ChooseTask)]
    assert f"\n{last}. It was reason {n - 1:02d}" in shown[-1]
    beyond = acting(choose="Z" if n < 26 else "None of them.")
    unmapped = run(Pearl(beyond), [sample(options=options)], name)["q1", name, 0]
    assert (unmapped.status, unmapped.choice, unmapped.score) == ("answered", None, 0.0)


@pytest.mark.parametrize("name", PROSE)
def test_answers_in_words_are_compared_with_the_reference(name: str) -> None:
    about: dict[str, Any] = {"options": (), "gold": None}
    samples = [
        sample("right", reference="It was ROTTEN", **about),
        sample("wrong", reference="it sank", **about),
    ]
    model = acting(plan='1. ans = FIND(CTX, "it") : Find it')
    records = run(Pearl(model), samples, name)
    assert records["right", name, 0].score == 1.0
    assert records["wrong", name, 0].score == 0.0
    assert not any(isinstance(request.task, ChooseTask) for request in model.requests)


def test_calls_and_tokens_are_those_of_the_requests() -> None:
    samples = [sample(f"q{i}") for i in range(3)]
    price = Price(input_usd=1_000_000, output_usd=2_000_000)
    for name in METHODS:
        model = acting()
        records = run(Pearl(model), samples, name, price=price).values()
        assert sum(record.n_calls for record in records) == len(model.requests)
        n_planned = sum(isinstance(request.task, PlanTask) for request in model.requests)
        for record in records:
            assert record.usage == Usage(10 * record.n_calls, record.n_calls)
            assert record.cost_usd == pytest.approx(12 * record.n_calls)
        planned = sum((record.planning_usage for record in records), Usage())
        assert planned == Usage(10 * n_planned, n_planned)
        n_drafts = len(Pearl().material.examples) if name == "unrefined" else 0
        assert n_planned == n_drafts + (3 if name in ("pearl", "unexecuted", "unrefined") else 0)
    assert run(Pearl(acting()), samples, "mcq")["q0", "mcq", 0].cost_usd is None


def test_a_question_of_many_documents_is_planned_once() -> None:
    samples = [
        sample(f"q{i}", question="Why was it sold?", document=Document(f"It sank {i}. Ada left."))
        for i in range(6)
    ]
    model = acting()
    records = run(Pearl(model, concurrency=3), samples, "pearl")
    kinds = Counter(type(request.task) for request in model.requests)
    assert kinds == {PlanTask: 1, ActionTask: 12, ChooseTask: 6}
    assert sum(record.planning_usage.n_input_tokens for record in records.values()) == 10
    assert sum(record.n_calls for record in records.values()) == 19


def test_seeds_reach_every_request_and_plan_for_themselves() -> None:
    model = acting()
    run(Pearl(model), [sample("q1"), sample("q2")], "pearl", seeds=(0, 1, 2), temperature=0.7)
    for seed in (0, 1, 2):
        mine = Counter(type(r.task) for r in model.requests if r.seed == seed)
        assert mine == {PlanTask: 2, ActionTask: 4, ChooseTask: 2}
    assert {request.temperature for request in model.requests} == {0.7}
    assert len(model.requests) == 24


def test_scorable_says_what_is_missing() -> None:
    fit, unfit = scorable([
        sample("good"), sample("mute", question=""), sample("bare", document=None),
        sample("open", gold=None), sample("words", gold=None, options=(), reference="x"),
    ])  # fmt: skip
    assert [one.id for one in fit] == ["good", "words"]
    assert [str(error) for error in unfit] == [
        "sample 'mute' has no question", "sample 'bare' has no document",
        "sample 'open' has no gold option and no reference",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("reference", "options", "gold"),
    [
        ("he was TIRED.", OPTIONS, 1),
        ("He was very tired", OPTIONS, None),
        ("twice", ("Twice", "twice.", "once"), None),
        ("A", ("X", "A", "Y"), 1),
    ],
)
def test_a_reference_says_which_option_is_right(
    reference: str, options: tuple[str, ...], gold: int | None
) -> None:
    fit, unfit = scorable([sample(gold=None, reference=reference, options=options)])
    if gold is None:
        assert [str(error) for error in unfit] == [
            "sample 'q1' has a reference that does not equal exactly one option"
        ]
    else:
        model = acting(choose="ABCD"[gold], step="None of it.")
        scores = {r.score for r in run(Pearl(model), fit, "direct", "mcq").values()}
        assert scores == {1.0}


def test_the_digest_is_of_all_that_matters() -> None:
    first = samples_digest([sample()])
    assert first == samples_digest([sample()])
    for change in (
        {"question": "Who?"}, {"gold": 1}, {"options": OPTIONS[:3]}, {"gold_passages": ()},
        {"document": Document(STORY.text + "!", STORY.name)}, {"reference": "x"},
        {"document": Document(STORY.text, "other.txt")}, {"subsets": frozenset({"hard"})},
    ):  # fmt: skip
        assert samples_digest([sample(**change)]) != first
    both, swapped = ("easy", "hard"), ("hard", "easy")
    assert samples_digest([sample(subsets=frozenset(both))]) == samples_digest(
        [sample(subsets=frozenset(swapped))]
    )
