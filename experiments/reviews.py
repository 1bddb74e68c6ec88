"""Ten questions over 2,000 film reviews, as plans, with a model that knows the answer for every review.

    python -m experiments.reviews [--reviews 2000] [--seed 0] [--json]

The questions are those of the scenario Movie of SemBench, in our words; the reviews are generated, with its
columns. An answer counts if it is exactly the one computed from the hidden labels. Prints for each question the
steps of its plan, the calls and the input tokens (estimated); exit code 1 if an answer is wrong. No figure says how well a language model labels.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import io
import json
import random
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, islice

from pearl import Document, Pearl
from pearl.documents.rows import Rows
from pearl.documents.tokens import Counter
from pearl.interpreter.answer import Answer
from pearl.llm import ItemsTask, Request
from pearl.llm.backends.scripted import Scripted
from pearl.replies.items import first_words, n_first_words

FILMS = ("taken_3", "ant_man_and_the_wasp_quantumania", "the_lantern", "salt_road", "nine_bells")
ONE, TWO = FILMS[:2]
WORDS = {1: "a dull, careless", 2: "a weak", 3: "a plain", 4: "a warm", 5: "a brilliant, moving"}


@dataclass(frozen=True)
class Review:
    """A review with its hidden score."""

    film: str
    number: str
    text: str
    score: int

    @property
    def is_positive(self) -> bool:
        """Whether its label is positive."""
        return self.score > 3


def reviews(n: int, seed: int) -> list[Review]:
    """Reviews in any order; one in fifty has the text of an earlier one."""
    draw = random.Random(seed)
    made: list[Review] = []
    for i in range(n):
        film = draw.choice([*FILMS, *FILMS[2:] * 6])
        score = draw.choice((1, 2, 2, 4, 4, 5))
        text = f'Critic {i} saw {WORDS[score]} film, "{draw.choice(("loud", "quiet"))}" in part {draw.randint(1, 9)}.'
        if made and draw.random() < 0.02:
            earlier = draw.choice(made)
            text, score = earlier.text, earlier.score
        made.append(Review(film, str(80_000 + i * 7), text, score))
    return made


def document(made: Sequence[Review]) -> Document:
    """The reviews as CSV, without their scores."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["id", "reviewId", "creationDate", "criticName", "isTopCritic", "reviewText"])
    for i, one in enumerate(made):
        day = f"2023-{1 + i % 12:02}-{1 + i % 28:02}"
        table.writerow([one.film, one.number, day, f"Critic {i % 300}", str(i % 4 == 0), one.text])
    return Document(out.getvalue(), "reviews.csv")


class Oracle:
    """A model that answers each item by the scores of the reviews whose texts are in it."""

    def __init__(self, made: Sequence[Review]) -> None:
        self._scores = {one.text: one.score for one in made}
        self._count = Counter().count
        self.n_calls = self.n_tokens = 0

    def __call__(self, request: Request) -> str:
        """The reply."""
        task = request.task
        assert isinstance(task, ItemsTask)
        self.n_calls += 1
        self.n_tokens += self._count(request.prompt)
        n = n_first_words(task.items)
        values = [self._value(task, item) for item in task.items]
        echoes = [f" | {first_words(item, n)}" if task.is_echoed else "" for item in task.items]
        lines = enumerate(zip(echoes, values, strict=True), 1)
        return "\n".join(f"{i}{echo}: {value}" for i, (echo, value) in lines)

    def _value(self, task: ItemsTask, item: str) -> str:
        pair = re.fullmatch(r"A: (.*)\nB: (.*)", item)
        scores = [self._scores[text] for text in (pair.groups() if pair else [item])]
        if task.kind == "rating":
            return str(scores[0])
        moods = ["positive" if score > 3 else "negative" for score in scores]
        if pair:
            is_same = "the same" in dict(task.arguments)["X"]
            return "yes" if (moods[0] == moods[1]) == is_same else "no"
        if task.kind == "label":
            return moods[0]
        return "yes" if moods[0] == "positive" else "no"


_ROWS = '1. reviews = SPLIT(CTX, "record") : One row a review'
_ALL = f'{_ROWS}\n2. texts = FIELD(reviews, "reviewText") : What they say'


def _of(film: str) -> str:
    return (
        f'{_ROWS}\n2. own = WHERE(reviews, "id", "is", "{film}") : Those of the film\n'
        '3. texts = FIELD(own, "reviewText") : What they say'
    )


_POSITIVE = 'positive = FILTER(texts, "the review is clearly positive") : The positive ones'
_MOOD = (
    'mood = CLASSIFY(texts, ["positive", "negative"], "the sentiment of the review") : Label each'
)
_IDS = (
    'a = FIELD({0}, "reviewId") : The first of each pair',
    'b = FIELD({0}, "reviewId (2)") : The second',
    "ans = SHOW(a, b) : Both",
)


def _pairs(what: str) -> tuple[str, ...]:
    return (
        'pairs = JOIN(texts, texts, "id") : Every two reviews',
        f'alike = FILTER(pairs, "A and B express {what} sentiment") : The pairs asked for',
        "ten = LIMIT(alike, 10) : Ten of them",
        *(step.format("ten") for step in _IDS),
    )


def _plan(begin: str, *steps: str) -> str:
    n = begin.count("\n") + 1
    return "\n".join([begin, *(f"{i}. {step}" for i, step in enumerate(steps, n + 1))])


@dataclass(frozen=True)
class Question:
    """A question, its plan, and its answer computed from the scores."""

    text: str
    plan: str
    gold: Callable[[Sequence[Review]], object]


def _positive(made: Sequence[Review], film: str = "") -> list[Review]:
    return [one for one in made if one.is_positive and film in ("", one.film)]


def _of_film(made: Sequence[Review], film: str) -> list[Review]:
    return [one for one in made if one.film == film]


def _alike(made: Sequence[Review], *, same: bool) -> Iterator[tuple[str, str]]:
    for a, b in combinations(_of_film(made, TWO), 2):
        if (a.is_positive == b.is_positive) is same:
            yield a.number, b.number


def _moods(made: Sequence[Review]) -> dict[str, int]:
    n, n_positive = len(_of_film(made, ONE)), len(_positive(made, ONE))
    return {"positive": n_positive, "negative": n - n_positive}


def _means(made: Sequence[Review]) -> list[tuple[str, float]]:
    scores: dict[str, list[int]] = defaultdict(list)
    for one in made:
        scores[one.film].append(one.score)
    means = {film: Fraction(sum(each), len(each)) for film, each in scores.items()}
    return [
        (film, float(f"{float(means[film]):.15g}"))
        for film in sorted(means, key=lambda film: -means[film])
    ]


_LIKED = '"how much the reviewer liked the film", 1, 5) : From 1 to 5'

QUESTIONS = (
    Question(
        "Five clearly positive reviews of any film",
        _plan(_ALL, _POSITIVE, "five = LIMIT(positive, 5) : Five of them", 'ans = FIELD(five, "reviewId") : Which'),
        lambda made: [one.number for one in _positive(made)[:5]],
    ),
    Question(
        "Five positive reviews of one film",
        _plan(_of(ONE), _POSITIVE, "five = LIMIT(positive, 5) : Five of them", 'ans = FIELD(five, "reviewId") : Which'),
        lambda made: [one.number for one in _positive(made, ONE)[:5]],
    ),
    Question(
        "How many positive reviews has the film?",
        _plan(_of(ONE), _POSITIVE, "ans = COUNT(positive) : How many"),
        lambda made: len(_positive(made, ONE)),
    ),
    Question(
        "Which share of its reviews is positive?",
        _plan(_of(ONE), _MOOD, 'ans = SHARE_OF(mood, "mood", "positive") : The share'),
        lambda made: len(_positive(made, ONE)) / len(_of_film(made, ONE)),
    ),
    Question(
        "Ten pairs of reviews of a film with the same sentiment",
        _plan(_of(TWO), *_pairs("the same")),
        lambda made: list(islice(_alike(made, same=True), 10)),
    ),
    Question(
        "Ten pairs of reviews of a film with opposite sentiments",
        _plan(_of(TWO), *_pairs("an opposite")),
        lambda made: list(islice(_alike(made, same=False), 10)),
    ),
    Question(
        "All pairs of reviews of a film with opposite sentiments",
        _plan(
            _of(TWO), _MOOD,
            'good = WHERE(mood, "mood", "is", "positive") : The positive ones',
            'bad = WHERE(mood, "mood", "is", "negative") : The negative ones',
            'pairs = JOIN(good, bad, "id") : Every two of them',
            *(step.format("pairs") for step in _IDS),
        ),
        lambda made: {frozenset(pair) for pair in _alike(made, same=False)},
    ),
    Question(
        "How many reviews of the film are positive, how many negative?",
        _plan(_of(ONE), _MOOD, 'ans = COUNT_BY(mood, "mood") : How many of each'),
        _moods,
    ),
    Question(
        "How much did each reviewer like the film, from 1 to 5?",
        _plan(
            _of(TWO), f"score = RATE(texts, {_LIKED}",
            'which = FIELD(score, "reviewId") : Which review', "ans = SHOW(which, score) : Both",
        ),
        lambda made: [(one.number, str(one.score)) for one in _of_film(made, TWO)],
    ),
    Question(
        "Rank the films by the mean score of their reviews",
        _plan(
            _ALL, f"score = RATE(texts, {_LIKED}",
            'means = MEAN_BY(score, "id", "score") : The mean of each film',
            'ans = SORT(means, "mean", "descending") : The best first',
        ),
        _means,
    ),
)  # fmt: skip


def _value(answer: Answer, gold: object) -> object:
    """The answer in the form of the gold answer."""
    value = answer.steps[-1].value
    if not isinstance(value, Rows):
        return value.value if hasattr(value, "value") else value
    if not value.columns and not isinstance(gold, dict):
        return value.values
    cells = [tuple(row.fields.get(name, "") for name in value.columns) for row in value]
    match gold:
        case dict():
            return {row.value: int(row.fields["count"] or 0) for row in value}
        case set():
            return {frozenset(each) for each in cells}
        case [(str(), float()), *_]:
            return [(film, float(mean or "nan")) for film, mean in cells]
    return cells


@dataclass(frozen=True)
class Outcome:
    """A question and what its answer took."""

    question: str
    n_steps: int
    n_calls: int
    n_input_tokens: int
    is_right: bool
    answer: Answer


async def ask_all(n: int, seed: int) -> list[Outcome]:
    """Run every plan over the same reviews."""
    made = reviews(n, seed)
    outcomes = []
    for question in QUESTIONS:
        oracle = Oracle(made)
        pearl = Pearl(Scripted(oracle))
        answer = await pearl.execute(question.plan, document(made))
        gold = question.gold(made)
        outcomes.append(
            Outcome(
                question.text, len(answer.steps), oracle.n_calls, oracle.n_tokens,
                _value(answer, gold) == gold, answer,
            )
        )  # fmt: skip
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--reviews", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    said = parser.parse_args()
    outcomes = asyncio.run(ask_all(said.reviews, said.seed))
    shown = [
        {"question": each.question, "steps": each.n_steps, "calls": each.n_calls,
         "input_tokens": each.n_input_tokens, "right": each.is_right}
        for each in outcomes
    ]  # fmt: skip
    if said.json:
        print(json.dumps(shown))
    else:
        print(f"{'question':64}{'steps':>6}{'calls':>7}{'tokens':>10}  answer")
        for i, row in enumerate(shown, 1):
            verdict = "right" if row["right"] else "WRONG"
            print(f"{i:2} {row['question']:61}{row['steps']:6}{row['calls']:7,}{row['input_tokens']:10,}  {verdict}")  # fmt: skip
    return int(not all(each.is_right for each in outcomes))


if __name__ == "__main__":
    sys.exit(main())
