"""The generator: what it calls true and what it calls a lie is so by construction."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest

from tests.checking.claims import (
    FIELDS,
    HARD,
    LANGUAGES,
    SENTENCES,
    compositions,
    extractions,
    fill,
    lies,
    slots,
)

KINDS = {
    "sign", "other", "negation", "bound", "plan", "past", "scale", "date", "date kind", "label", "swapped",
    "cut", "reversed", "comparator", "only", "all", "unit", "number", "quote", "condition",
}  # fmt: skip


def figures(text: str) -> set[str]:
    return set(re.findall(r"\d+(?:[., ]\d{3})*", text))


@pytest.mark.parametrize("language", LANGUAGES)
def test_in_one_world_nothing_is_both_true_and_a_lie(language: str) -> None:
    for seed in range(5):
        filled = slots(language, random.Random(seed))
        true: set[str] = set()
        false: list[str] = []
        for row in SENTENCES[language]:
            text = fill(row["text"], filled)
            follows = [fill(each, filled) for each in row["true"]]
            true |= {text, *follows}
            for kind, lie in lies(row):
                told = fill(lie, filled)
                false.append(told)
                if kind not in HARD:  # no number gives it away
                    assert figures(told) <= figures(text), told
                elif kind in ("number", "cut") and figures(told):
                    assert not figures(told) <= figures(text), told
        assert len(set(false)) == len(false)
        assert not true & set(false)
        assert not any(re.search(r"[{}]", each) for each in (*true, *false))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("about", ["persons", "companies"])
def test_a_false_value_is_no_true_value_of_its_sentence(language: str, about: str) -> None:
    filled = slots(language, random.Random(1))
    for row in FIELDS[language][about]:
        true = [fill(value, filled)[0] for value in row.get("true", ())]
        for kind, value in lies(row):
            told = fill(value, filled)
            assert told[0] not in true, (row["text"], kind)
            assert true or kind not in ("number", "date", "quote", "cut"), "the true value is known"


def test_answers_cite_and_lie_as_they_say() -> None:
    made = list(compositions(1_000))
    told = [sentence for each in made for sentence in each.sentences]
    kinds = Counter(sentence.kind for sentence in told)
    n_lies = kinds.total() - kinds[""]
    assert 1_000 <= n_lies <= 1_002
    assert kinds.keys() == KINDS | {"citation", ""}
    assert kinds[""] >= 2 * n_lies
    for each in made:
        assert all(each.document.count(fact) == 1 for fact in each.facts)
        assert all(sentence.source in each.facts for sentence in each.sentences)
        false = [sentence for sentence in each.sentences if not sentence.is_true]
        assert 2 * len(false) < len(each.sentences)
        assert len(false) == 1 or not any(sentence.kind in HARD for sentence in false)
        for sentence in each.sentences:
            own = sentence.source == each.facts[sentence.cites]
            assert own != (sentence.kind == "citation")
    told_in = {(each.language, sentence.kind) for each in made for sentence in each.sentences}
    for language in LANGUAGES:
        assert {kind for row in SENTENCES[language] for kind, _ in lies(row)} == {
            kind for in_language, kind in told_in if in_language == language
        } - {"citation", ""}


def test_records_quote_their_documents() -> None:
    made = list(extractions(1_000))
    told = [value for each in made for value in each.values]
    kinds = Counter(value.kind for value in told)
    assert 1_000 <= kinds.total() - kinds[""] <= 1_001
    assert kinds.keys() == (KINDS - {"sign"}) | {"citation", ""}
    for each in made:
        assert each.subject.quote in each.document
        for value in each.values:
            assert (value.quote in each.document) == (value.kind != "quote"), value
            assert value.source in each.document
        names = [value.field.name for value in (each.subject, *each.values)]
        assert len(set(names)) == len(names)
