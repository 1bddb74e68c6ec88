"""The generator: what it calls true and what it calls a lie is so by construction."""

from __future__ import annotations

import random
import re

import pytest

from tests.checking.claims import (
    FIELDS,
    HARD,
    LANGUAGES,
    SENTENCES,
    fill,
    lies,
    slots,
)


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
