"""`--accuracy`: rows decided by a scorer where samples show that it agrees with the strong model."""

from __future__ import annotations

import asyncio
import json
import random
import re
from typing import Any

import pytest

from experiments.bench import cascade as bench
from pearl import Document, Pearl
from pearl.documents.tokens import Counter
from pearl.errors import UsageError
from pearl.interpreter.answer import Answer
from pearl.llm import Constrains, ItemsTask, Model, Request
from pearl.runs.executors import Task
from pearl.runs.forecast import forecast
from tests.models import MemoryReplies, Reading, item_lines
from tests.skips import needs

KEPT = """\
1. reviews = SPLIT(CTX, "line") : One row a review
2. good = FILTER(reviews, "the review is good") : Those
3. ans = COUNT(good) : How many"""

LABELLED = """\
1. reviews = SPLIT(CTX, "line") : One row a review
2. tone = CLASSIFY(reviews, ["good", "bad"], "the tone") : Of each
3. per = GROUP(tone, "tone") : How many of each"""


def reviews(n: int = 2_000) -> Document:
    words = random.Random(0)
    lines = (
        f"Review {i}: {words.choice(['splendid', 'dreadful'])} {words.choice('abcdefgh')}"
        for i in range(n)
    )
    return Document("\n".join(lines))


def is_good(text: str) -> bool:
    return "splendid" in text


class Reviewer(Reading):
    """Says of each review whether it is good; is wrong about reviews whose number ends in `wrong`."""

    def __init__(self, name: str, wrong: str = "none", undecided: str = "none") -> None:
        super().__init__(self._reply, name=name)
        self._wrong, self._undecided = wrong, undecided

    def _reply(self, request: Request) -> str:
        labels = getattr(request.task, "labels", ()) or ("yes", "no")

        def say(text: str) -> str | None:
            number = re.findall(r"\d+", text)[0]
            if number.endswith(self._undecided):
                return None
            return labels[is_good(text) == number.endswith(self._wrong)]

        return item_lines(request, say) or "I cannot say."

    @property
    def items(self) -> list[str]:
        """The reviews that were asked about, in order."""
        tasks = [request.task for request in self.requests]
        return [text for task in tasks if isinstance(task, ItemsTask) for text in task.items]


def run(model: Model, plan: str, document: Document, **settings: Any) -> Answer:
    return asyncio.run(Pearl(model, **settings).execute(plan, document))


@pytest.mark.parametrize("profile", bench.PROFILES)
def test_the_guarantee_holds(profile: str) -> None:
    figures = bench.simulate(profile, 1_200, 0.9, range(60))
    # 8 of 60: a probability of 1 % at a risk of 5 %
    assert min(figures["held"], figures["bound"]) > 1 - 8 / 60
    if profile in ("well separated", "labels", "all positive"):
        assert figures["strong"] < 0.4
    if profile in ("none positive", "labels, random"):
        assert figures["used"] == 0


def test_a_cascade_says_who_decided_what() -> None:
    strong, cheap = Reviewer("strong"), Reviewer("cheap", wrong="37")
    answer = run(strong, KEPT, reviews(), rows_model=cheap, accuracy=0.95)
    account = answer.to_dict()["steps"][1]["cascade"]
    by_scorer = account["rows"]["scorer"]
    assert sum(account["rows"].values()) == 2_000
    assert len(set(strong.items)) == 2_000 - by_scorer < 1_000
    assert (account["accuracy"], account["scorer"]) == (0.95, "cheap")
    assert all(0.95 <= low <= 1 for low, _ in account["intervals"].values())
    assert account["intervals"].keys() == {"precision", "recall"}
    assert any("relative to strong: precision" in note for note in answer.notes)
    scored = {row.text for row in answer.row_evidence if row.decided_by == ("cheap",)}
    assert scored
    assert scored == {row.text for row in answer.row_evidence} - set(strong.items)
    evidence = answer.to_dict()["evidence"]
    assert scored == {row["text"] for row in evidence if row.get("decided_by") == ["cheap"]}


class Quoting(Reviewer):
    """Copies the words that decide, too."""

    def _reply(self, request: Request) -> str:
        said = json.loads(super()._reply(request))
        if isinstance(request.task, ItemsTask) and request.task.is_quoted:
            quotes = [" ".join(item.split()[2:7]) for item in request.task.items]
            said |= {f"q{i}": quote for i, quote in enumerate(quotes, start=1)}
        return json.dumps(said)


@pytest.mark.slow
def test_rows_that_a_model_for_rows_decides_have_its_passages() -> None:
    lines = [f"{line} {'and so on ' * 20}" for line in reviews(1_000).text.splitlines()]
    answer = run(
        Quoting("strong"), KEPT, Document("\n".join(lines)), rows_model=Quoting("cheap"), accuracy=0.9,
        row_quotes=5_000, check="off",
    )  # fmt: skip
    assert any(row.decided_by for row in answer.row_evidence)
    assert all("splendid" in row.quote for row in answer.row_evidence)


def test_a_resumed_run_has_the_same_samples_and_pays_for_nothing() -> None:
    replies = MemoryReplies()
    first = Reviewer("strong")
    settings: dict[str, Any] = {"accuracy": 0.95, "replies": replies}
    answer = run(first, LABELLED, reviews(), rows_model=Reviewer("cheap"), **settings)
    again, cheap = Reviewer("strong"), Reviewer("cheap")
    same = run(again, LABELLED, reviews(), rows_model=cheap, **settings)
    assert (again.requests, cheap.requests) == ([], [])
    assert same.steps[1].to_dict()["cascade"] == answer.steps[1].to_dict()["cascade"]
    assert (same.text, same.notes) == (answer.text, answer.notes)


@pytest.mark.parametrize("plan", [KEPT, LABELLED])
@pytest.mark.parametrize("how", [{"wrong": ""}, {"undecided": "7"}])
def test_a_scorer_that_is_not_confirmed_decides_no_row(plan: str, how: dict[str, str]) -> None:
    """It is wrong about every row, or the strong model leaves a tenth of the rows undecided."""
    undecided, wrong = how.get("undecided", "none"), how.get("wrong", "none")
    strong = Reviewer("strong", undecided=undecided)
    answer = run(strong, plan, reviews(), rows_model=Reviewer("cheap", wrong), accuracy=0.95)
    assert {*strong.items} == {*reviews().text.split("\n")}
    account = answer.to_dict()["steps"][1]["cascade"]
    assert account["why"]
    assert account["rows"]["scorer"] == 0


def test_rows_of_samples_that_stay_undecided_are_escalated() -> None:
    strong, big = Reviewer("strong", undecided="7"), Reviewer("big")
    answer = run(
        strong, KEPT, reviews(), rows_model=Reviewer("cheap"), accuracy=0.95, escalate_model=big
    )
    undecided = {text for text in strong.items if re.match(r"Review \d*7:", text)}
    assert undecided <= {*big.items} <= {*strong.items}
    assert len(big.items) < 2 * len(undecided)
    assert answer.to_dict()["steps"][1]["cascade"]["rows"]["scorer"] > 1_000
    assert not any("0 undecided" in note for note in answer.notes)


@pytest.mark.parametrize("target", [0.5, 1.0, 98, float("nan")])
def test_a_share_that_no_sample_shows_is_refused(target: float) -> None:
    with pytest.raises(UsageError, match="accuracy must be"):
        Pearl(Reviewer("strong"), accuracy=target)


def test_few_rows_are_asked_about_as_without_a_cascade() -> None:
    requests = []
    for settings in ({}, {"accuracy": 0.98}):
        strong, cheap = Reviewer("strong"), Reviewer("cheap")
        used = {**settings, "rows_model": cheap} if settings else {}
        answer = run(strong, KEPT, reviews(500), **used)
        assert ("cascade" in answer.to_dict()["steps"][1]) == bool(settings)
        assert cheap.requests == []
        requests.append([request.messages for request in strong.requests])
        assert strong.items == reviews(500).text.split("\n")
    assert requests[0] == requests[1]


def test_before_a_limit_the_strong_model_reads_as_many_rows_as_are_needed() -> None:
    plan = f"{KEPT.rpartition(chr(10))[0]}\n3. ans = LIMIT(good, 5) : Five of them"
    strong, cheap = Reviewer("strong"), Reviewer("cheap")
    answer = run(strong, plan, reviews(), rows_model=cheap, accuracy=0.95)
    assert (len(answer.row_evidence), cheap.requests) == (5, [])
    assert len(strong.items) < 100


class Unsteady(Reviewer):
    """Is wrong about some reviews at first, and right when they are asked about again."""

    def _reply(self, request: Request) -> str:
        assert isinstance(request.task, ItemsTask)
        last = int(re.findall(r"\d+", request.task.items[-1])[0])
        if int(re.findall(r"\d+", request.task.items[0])[0]) < last:
            return super()._reply(request)
        return item_lines(request, lambda text: "yes" if is_good(text) else "no")


@pytest.mark.usefixtures("_no_waits")
def test_rows_that_a_model_is_unsure_about_go_to_the_strong_model() -> None:
    strong, cheap, document = Reviewer("strong"), Unsteady("cheap", wrong="7"), reviews()
    answer = run(strong, KEPT, document, rows_model=cheap, accuracy=0.95)
    assert answer.text == run(Reviewer("strong"), KEPT, document).text
    unsure = {text for text in document.text.split("\n") if re.match(r"Review \d*7:", text)}
    assert unsure <= set(strong.items)
    assert len(set(strong.items)) < 1_000


class Held(Reviewer):
    """Is held to the form of its replies, so that no row is asked about again."""

    constrains = Constrains(frozenset({"grammar"}))


@pytest.mark.parametrize("window", [None, 2_048])
@pytest.mark.parametrize(
    ("plan", "kind", "wrong"), [(KEPT, Reviewer, "37"), (LABELLED, Held, "7"), (KEPT, Held, "7")]
)
def test_the_calls_lie_within_their_forecast(
    plan: str, kind: type[Reviewer], wrong: str, window: int | None
) -> None:
    document, cheap = reviews(1_500), kind("cheap", wrong)
    strong = Held("strong") if kind is Held else Reviewer("strong", undecided="77")
    this = Pearl(
        strong, rows_model=cheap, accuracy=0.95, window=window, max_output_tokens=256,
    )  # fmt: skip
    steps = forecast(this, [Task("", lambda: document, plan=plan)]).steps
    asyncio.run(this.execute(plan, document))
    for step, model in zip(steps, (strong, cheap), strict=True):
        n_tokens = sum(Counter().count(request.prompt) for request in model.requests)
        assert step.calls.least <= len(model.requests) <= step.calls.upper
        assert step.input_tokens.least <= n_tokens <= step.input_tokens.upper


@needs("sklearn")
@pytest.mark.parametrize("plan", [KEPT, LABELLED])
def test_without_a_model_for_rows_a_classifier_scores(plan: str) -> None:
    strong = Reviewer("strong")
    answer = run(strong, plan, reviews(), accuracy=0.95)
    assert answer.text == run(Reviewer("strong"), plan, reviews()).text
    assert answer.to_dict()["steps"][1]["cascade"]["scorer"] == "a classifier of words"
    assert len(set(strong.items)) < 1_000
