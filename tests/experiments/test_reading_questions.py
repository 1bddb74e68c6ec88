from __future__ import annotations

import json
from collections import Counter

import pytest

from experiments.reading.questions import (
    DOCUMENTS,
    HALVES,
    KINDS,
    SORTS,
    halves,
    read_document,
    read_questions,
    right_places,
)
from pearl.documents.passages import sentences
from tests.root import ROOT

QUESTIONS = read_questions()
STATED = [question for question in QUESTIONS if question.sentences]


def test_there_are_twenty_questions_of_each_of_twelve_documents_of_four_sorts() -> None:
    assert Counter(q.document for q in QUESTIONS) == dict.fromkeys(DOCUMENTS, 20)
    assert Counter(q.sort for q in QUESTIONS) == dict.fromkeys(SORTS, 60)
    assert {q.kind for q in QUESTIONS} == set(KINDS)
    assert len(QUESTIONS) - len(STATED) == 36


@pytest.mark.parametrize("name", DOCUMENTS)
def test_right_sentences_stand_in_the_document_once_and_whole(name: str) -> None:
    document = read_document(name)
    cut = sentences(document)
    whole = {document[span.start : span.end] for span in cut}
    for question in (q for q in STATED if q.document == name):
        assert [document.count(text) for text in question.sentences] == [1] * len(
            question.sentences
        )
        halved = [text for text in question.sentences if text not in whole]
        assert all(" Ms. " in text or " Messrs. " in text for text in halved)  # cut at the title
        n_places = len(question.sentences) + len(halved)
        assert len(right_places(question, document, cut)) == n_places


def test_halves_are_by_the_hash_of_the_id_and_alike() -> None:
    assert halves((q.id, bool(q.sentences)) for q in QUESTIONS) == {q.id: q.half for q in QUESTIONS}
    assert Counter((q.document, q.half) for q in QUESTIONS) == {
        (name, half): 10 for name in DOCUMENTS for half in HALVES
    }
    assert Counter(q.half for q in STATED) == {"open": 102, "frozen": 102}
    assert [q.id for q in read_questions("frozen")] == [
        q.id for q in QUESTIONS if q.half == "frozen"
    ]


def test_no_question_is_asked_twice_or_was_asked_before() -> None:
    facts = ROOT / "tests" / "embedded" / "document_facts.jsonl"
    before = [json.loads(line)["question"] for line in facts.read_text("utf-8").splitlines()]
    assert len({q.id for q in QUESTIONS}) == len(QUESTIONS)
    assert len({text.casefold() for text in [*before, *(q.text for q in QUESTIONS)]}) == 240 + len(
        before
    )
