"""Ten questions over 2,000 film reviews, as plans, with a model that knows the answer for every review.

    python -m experiments.reviews [--reviews 2000] [--seed 0]

The questions are those of the scenario Movie of SemBench, in our words; the reviews are generated, with its
columns. An answer counts if it is exactly the one computed from the hidden scores. Prints for each question the
steps of its plan, the calls and the input tokens (estimated); exit code 1 if an answer is wrong.
No figure says how well a language model labels.
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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from pearl import Document, Pearl
from pearl.actions.values import Scalar
from pearl.documents.rows import Rows
from pearl.documents.tokens import Counter
from pearl.interpreter.answer import Answer
from pearl.llm import ItemsTask, Request
from pearl.llm.backends.scripted import Scripted
from pearl.replies.items import echoes

FILMS = ("taken_3", "ant_man_and_the_wasp_quantumania", "the_lantern", "salt_road", "nine_bells")
ONE, TWO = FILMS[:2]
WORDS = {1: "a dull, careless", 2: "a weak", 4: "a warm", 5: "a brilliant, moving"}


@dataclass(frozen=True)
class Review:
    """A review with its hidden score."""

    film: str
    number: str
    text: str
    score: int

    @property
    def mood(self) -> str:
        """Its label."""
        return "positive" if self.score > 3 else "negative"


def reviews(n: int, seed: int) -> list[Review]:
    """Reviews in any order; one in fifty has the text of an earlier one."""
    draw = random.Random(seed)
    made: list[Review] = []
    for i in range(n):
        score = draw.choice((1, 2, 2, 4, 4, 5))
        text = f'Critic {i} saw {WORDS[score]} film, "{draw.choice(("loud", "quiet"))}" in part {draw.randint(1, 9)}.'
        if made and draw.random() < 0.02:
            earlier = draw.choice(made)
            text, score = earlier.text, earlier.score
        made.append(Review(draw.choice([*FILMS, *FILMS[2:] * 6]), str(80_000 + i * 7), text, score))
    return made


def document(made: Sequence[Review]) -> Document:
    """The reviews as CSV, without their scores."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["id", "reviewId", "creationDate", "criticName", "isTopCritic", "reviewText"])
    for i, one in enumerate(made):
        date = f"2023-{1 + i % 12:02}-{1 + i % 28:02}"
        table.writerow([one.film, one.number, date, f"Critic {i % 300}", i % 4 == 0, one.text])
    return Document(out.getvalue(), "reviews.csv")


class Oracle:
    """A model that answers each item by the reviews whose texts are in it."""

    def __init__(self, made: Sequence[Review]) -> None:
        self._by_text = {one.text: one for one in made}
        self._count = Counter().count
        self.n_calls = self.n_tokens = 0

    def __call__(self, request: Request) -> str:
        """The reply."""
        task = request.task
        assert isinstance(task, ItemsTask)
        self.n_calls += 1
        self.n_tokens += self._count(request.prompt)
        words = echoes(task.items).words if task.is_echoed else [""] * len(task.items)
        said = enumerate(zip(words, task.items, strict=True), start=1)
        return json.dumps({f"{i} {w}".strip(): self._value(task, item) for i, (w, item) in said})

    def _value(self, task: ItemsTask, item: str) -> str:
        pair = re.fullmatch(r"A: (.*)\nB: (.*)", item)
        first, *others = (self._by_text[text] for text in (pair.groups() if pair else [item]))
        if task.kind == "yes_no":
            is_same = first.mood == (others[0].mood if others else "positive")
            return "no" if is_same == ("opposite" in dict(task.arguments)["X"]) else "yes"
        return str(first.score) if "5" in task.labels else first.mood


def _plan(film: str, *steps: str) -> str:
    own = [f'rows = WHERE(every, "id", "is", "{film}") : Those of the film'] if film else []
    begin = ['every = SPLIT(CTX, "record") : One row a review', *own,
             f'texts = FIELD({"rows" if film else "every"}, "reviewText") : What they say']  # fmt: skip
    return "\n".join(f"{i}. {step}" for i, step in enumerate([*begin, *steps], 1))


# fmt: off
_POSITIVE = 'good = FILTER(texts, "the review is clearly positive") : The positive ones'
_FIVE = ("five = LIMIT(good, 5) : Five of them", 'ans = FIELD(five, "reviewId") : Which')
_MOOD = 'mood = CLASSIFY(texts, ["positive", "negative"], "the sentiment of the review") : Label each'
_SCORE = 'score = CLASSIFY(texts, ["1", "2", "3", "4", "5"], "how much the reviewer liked the film, 5 the most") : From 1 to 5'
_BOTH = ('a = FIELD(pairs, "reviewId") : The first of each pair', 'b = FIELD(pairs, "reviewId (2)") : The second',
         "ans = SHOW(a, b) : Both")


def _ten_pairs(what: str) -> tuple[str, ...]:
    return ('any = JOIN(texts, texts, "id") : Every two reviews',
            f'alike = FILTER(any, "A and B express {what} sentiment") : The pairs asked for',
            "pairs = LIMIT(alike, 10) : Ten of them", *_BOTH)


Gold = Callable[[Sequence[Review]], object]


def _of(made: Sequence[Review], film: str, mood: str = "") -> list[Review]:
    return [one for one in made if film in ("", one.film) and mood in ("", one.mood)]


def _pairs(made: Sequence[Review], *, same: bool) -> list[tuple[str, str]]:
    return [(a.number, b.number) for a, b in combinations(_of(made, TWO), 2) if (a.mood == b.mood) is same]


def _means(made: Sequence[Review]) -> list[tuple[str, str]]:
    scores = {film: [one.score for one in _of(made, film)] for film in dict.fromkeys(one.film for one in made)}
    means = {film: Fraction(sum(each), len(each)) for film, each in scores.items()}
    return [(film, f"{float(means[film]):.15g}") for film in sorted(means, key=lambda film: -means[film])]


QUESTIONS: tuple[tuple[str, str, Gold], ...] = (
    ("Five clearly positive reviews of any film", _plan("", _POSITIVE, *_FIVE),
     lambda made: [one.number for one in _of(made, "", "positive")[:5]]),
    ("Five positive reviews of one film", _plan(ONE, _POSITIVE, *_FIVE),
     lambda made: [one.number for one in _of(made, ONE, "positive")[:5]]),
    ("How many positive reviews has the film?", _plan(ONE, _POSITIVE, "ans = COUNT(good) : How many"),
     lambda made: len(_of(made, ONE, "positive"))),
    ("Which share of its reviews is positive?",
     _plan(ONE, _MOOD, 'good = WHERE(mood, "mood", "is", "positive") : The positive ones',
           "ans = SHARE(good, mood) : The share"),
     lambda made: len(_of(made, ONE, "positive")) / len(_of(made, ONE))),
    ("Ten pairs of reviews of a film with the same sentiment", _plan(TWO, *_ten_pairs("the same")),
     lambda made: _pairs(made, same=True)[:10]),
    ("Ten pairs of reviews of a film with opposite sentiments", _plan(TWO, *_ten_pairs("opposite")),
     lambda made: _pairs(made, same=False)[:10]),
    ("All pairs of reviews of a film with opposite sentiments",
     _plan(TWO, _MOOD, 'good = WHERE(mood, "mood", "is", "positive") : The positive ones',
           'bad = WHERE(mood, "mood", "is", "negative") : The negative ones',
           'pairs = JOIN(good, bad, "id") : Every two of them', *_BOTH),
     lambda made: {frozenset(pair) for pair in _pairs(made, same=False)}),
    ("How many reviews of the film are positive, how many negative?",
     _plan(ONE, _MOOD, 'ans = GROUP(mood, "mood") : How many of each'),
     lambda made: {mood: str(len(_of(made, ONE, mood))) for mood in ("positive", "negative")}),
    ("How much did each reviewer like the film, from 1 to 5?",
     _plan(TWO, _SCORE, 'which = FIELD(score, "reviewId") : Which review', "ans = SHOW(which, score) : Both"),
     lambda made: [(one.number, str(one.score)) for one in _of(made, TWO)]),
    ("Rank the films by the mean score of their reviews",
     _plan("", _SCORE, 'means = AGGREGATE(score, "id", "mean", "score") : The mean of each film',
           'ans = SORT(means, "mean", "descending") : The best first'),
     _means),
)
# fmt: on


def _value(answer: Answer, gold: object) -> object:
    """The answer in the form of the gold answer."""
    value = answer.steps[-1].value
    if not isinstance(value, Rows):
        return value.value if isinstance(value, Scalar) else value
    if isinstance(gold, dict):
        return {row.value: row.fields["count"] for row in value}
    cells = [tuple(row.fields.get(name, "") for name in value.columns) for row in value]
    return (
        set(map(frozenset, cells))
        if isinstance(gold, set)
        else cells
        if value.columns
        else value.values
    )


async def ask_all(n: int, seed: int) -> list[tuple[str, Answer, Oracle, bool]]:
    """Run every plan over the same reviews: the question, its answer, the model, and whether it is right."""
    made = reviews(n, seed)
    outcomes = []
    for question, plan, gold_of in QUESTIONS:
        oracle, gold = Oracle(made), gold_of(made)
        answer = await Pearl(Scripted(oracle)).execute(plan, document(made))
        outcomes.append((question, answer, oracle, _value(answer, gold) == gold))
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--reviews", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    said = parser.parse_args()
    outcomes = asyncio.run(ask_all(said.reviews, said.seed))
    print(f"{'question':62}{'steps':>6}{'calls':>7}{'tokens':>8}  answer")
    for question, answer, oracle, is_right in outcomes:
        numbers = f"{len(answer.steps):6}{oracle.n_calls:7,}{oracle.n_tokens:8,}"
        print(f"{question:62}{numbers}  {'right' if is_right else 'WRONG'}")
    return int(not all(is_right for *_, is_right in outcomes))


if __name__ == "__main__":
    sys.exit(main())
