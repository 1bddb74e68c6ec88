"""What notebooks show of answers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import cache

from hypothesis import given

from pearl import Answer, Document, Pearl
from pearl.documents.evidence import Unverified
from pearl.errors import Span
from tests.notebooks import parsed, texts

DOCUMENT = Document("Ada sold the boat because it leaked. Ada slept. The boat was blue.", "a.txt")


@cache
def answer() -> Answer:
    async def main() -> Answer:
        async with Pearl() as pearl:
            return await pearl.ask("Why did Ada sell the boat?", DOCUMENT)

    return asyncio.run(main())


def test_numbered_marks_lead_from_the_answer_to_its_evidence() -> None:
    tree = parsed(answer()._repr_html_())
    marks = [each.text for each in tree.findall("./p/sup")]
    assert marks == [f" [{n}]" for n in range(1, len(marks) + 1)]
    quotes = tree.findall("./ol/li")
    assert marks[0] == " [1]"
    assert [each.findtext("span") for each in quotes] == [each.text for each in answer().evidence]
    assert "characters 0-36" in quotes[0].findtext("small")
    assert tree.find("./div/span").text == "answered"
    assert "1. " in tree.findtext("./details/pre")


def test_what_cannot_be_relied_on_is_said() -> None:
    doubtful = replace(
        answer(),
        unverified=(Unverified("a", "no such words", "missing"),),
        method="direct",
        evidence=(replace(answer().evidence[0], omitted=(Span(4, 8),)),),
    )
    told = "".join(parsed(doubtful._repr_html_()).itertext())
    assert "not in the document: no such words (a)" in told
    assert "answered directly" in told
    assert "[left out: sold]" in told


def test_a_huge_answer_is_small() -> None:
    long = "\x1b" * 10**5
    (one, *_), (step, *_) = answer().evidence, answer().steps
    evidence = [replace(one, text=f"{long}{n}", source=long, steps=(long,)) for n in range(9)]
    huge = replace(
        answer(), question=long, text=long, plan=long, model=long, evidence=(*evidence,) * 11,
        unverified=(Unverified(long, long, "missing"),) * 99,
        steps=(replace(step, output=long, action=long, value=long),) * 99, outputs=(long,),
    )  # fmt: skip
    html = huge._repr_html_()
    assert len(html) < 100_000
    assert "and 93 more" in "".join(parsed(html).itertext())


@given(texts, texts)
def test_no_text_of_an_answer_is_markup(text: str, other: str) -> None:
    one, step = answer().evidence[0], answer().steps[0]
    changed = replace(
        answer(), question=text, text=f"{one.text}\n{other}", plan=other, model=text,
        evidence=(replace(one, source=text, steps=(other,)), replace(one, text=other)),
        unverified=(Unverified(text, other, "missing"),),
        steps=(replace(step, output=text, action=other, value=text),), outputs=(text,),
    )  # fmt: skip
    parsed(changed._repr_html_())
