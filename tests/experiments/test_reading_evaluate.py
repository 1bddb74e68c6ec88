from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import numpy as np
import pytest

from experiments.reading.evaluate import evaluate, shown
from experiments.reading.questions import Question, read_questions
from experiments.reading.rankings import methods, outcome, rank_all, right_of
from pearl import Pearl
from pearl.documents.document import Document

OPEN = read_questions("open")  # tests never run the frozen half
STATED = [question for question in OPEN if question.sentences]

TEXT = "Ada sold the boat because it leaked. It rained on Monday. Then she slept."


class Pointing:
    """An embedder for which only a right sentence and its own question are alike."""

    name, notice = "pointing", ""

    def __init__(self, asked: list[Question]) -> None:
        self.numbers = {q.text.rstrip("?"): n for n, q in enumerate(asked)} | {
            q.sentences[0]: n for n, q in enumerate(asked)
        }

    async def embed(self, texts: list[str], kind: str) -> np.ndarray:
        vectors = np.zeros((len(texts), len(self.numbers) + 1), np.float32)
        for row, text in enumerate(texts):
            vectors[row, self.numbers.get(text.rstrip("?"), -1)] = 1
        return vectors

    async def aclose(self) -> None: ...


def ask(question: str, right: set[int]) -> str:
    answer = asyncio.run(Pearl().ask(question, Document(TEXT)))
    return outcome(answer, TEXT, right)


def test_an_answer_is_right_by_what_it_quotes_and_may_say_that_nothing_is_there() -> None:
    assert ask("Why did Ada sell the boat?", {0}) == "right"
    assert ask("Why did Ada sell the boat?", {1, 2}) == "wrong"
    assert ask("Why did Ada sell the boat?", set()) == "wrong"
    assert ask("Which pilgrims invaded Portugal?", set()) == "not stated"


@pytest.mark.parametrize("name", ["bm25", "words"])
def test_a_sentence_that_is_asked_for_in_its_own_words_is_at_its_place(name: str) -> None:
    asked = [replace(q, text=q.sentences[0]) for q in STATED[::10]]
    ranked = asyncio.run(rank_all(asked, methods(None)[name]))
    right = right_of(asked)
    assert sum(ranked[q.id].has(right[q.id], 1) for q in asked) >= len(asked) - 2


@pytest.mark.parametrize("name", ["vectors", "words+vectors"])
def test_vectors_take_part_where_there_is_an_embedder(name: str) -> None:
    of_document = [q for q in STATED if q.document == "cello"]
    right = right_of(of_document)
    ranked = asyncio.run(rank_all(of_document, methods(Pointing(of_document))[name]))
    assert all(ranked[q.id].has(right[q.id], 3) for q in of_document)


def test_figures_of_the_open_half_are_whole_and_the_ranking_by_words_does_not_fall() -> None:
    result = asyncio.run(evaluate(OPEN, None, is_asked=False))
    assert result["questions"] == 102
    tops = [result["top"][k]["words"][0] for k in (1, 3, 5)]
    assert tops == sorted(tops)
    assert tops[1] >= 0.15
    groups = result["by document"]
    assert (
        sum(groups[sort]["words"][1] for sort in ("story", "consultation", "contract", "report"))
        == 102
    )
    assert groups["shipped"]["words"][0] + groups["the ten others"]["words"][0] == round(
        tops[1] * 102
    )
    lines = "\n".join(shown("open", result))
    assert re.search(r"top 5: words beside bm25 +\d+ +\d+ +<0\.001 ", lines)
    assert "not stated, refused   0 of 18" in lines
