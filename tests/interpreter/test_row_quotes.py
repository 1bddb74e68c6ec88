"""The words that decide rows: asked for, verified, kept and shown."""

from __future__ import annotations

import asyncio
import io
import json
import re

import pytest

from pearl import Answer, Document, Pearl
from pearl.cli.output import print_answer
from pearl.documents.document import join
from pearl.documents.tokens import estimate
from pearl.llm import ItemsTask, Request
from pearl.runs.export import write_evidence
from pearl.view.answer_page import answer_page
from tests.models import MemoryReplies, Reading, written

MUCH = "Nothing of this paragraph matters to anyone who reads it. " * 5
LAWS = {"a.txt": "the law of Bavaria", "b.txt": "the laws of Ohio", "c.txt": "the law of Peru"}
DECIDING = "This contract is governed by {}, unless agreed."
FILES = join(
    [
        Document(f"File {name}. {MUCH}\n\n{DECIDING.format(law)}\n\n{MUCH}", name)
        for name, law in LAWS.items()
    ]
)
SPLIT = '1. files = SPLIT(CTX, "document") : Split\n'
FORMS = {
    "filter": ('FILTER(files, "it is governed by a law of Europe or America")', "yes"),
    "classify": ('CLASSIFY(files, ["north", "south"], "where")', "north"),
    "map": ('MAP(files, "the law")', "a law"),
    "rate": ('RATE(files, "how far away", 0, 9)', 7),
}


def model(value: object, quote: str = "governed by {}") -> Reading:
    def reply(request: Request) -> str:
        task = request.task
        assert isinstance(task, ItemsTask)
        said = json.loads(written(task.items, [value] * len(task.items), is_echoed=task.is_echoed))  # type: ignore[list-item]
        for i, item in enumerate(task.items, start=1):
            law = next(law for law in LAWS.values() if law in item)
            if task.is_quoted:
                said[f"q{i}"] = quote.format(law)
        return json.dumps(said)

    return Reading(reply)


def ask(reader: Reading, step: str, document: Document = FILES, **settings: object) -> Answer:
    pearl = Pearl(reader, **settings)  # type: ignore[arg-type]
    return asyncio.run(pearl.execute(f"{SPLIT}2. kept = {step} : Kept", document))


@pytest.mark.parametrize("kind", FORMS)
def test_each_row_has_the_sentence_that_decided_it(kind: str) -> None:
    step, value = FORMS[kind]
    reader = model(value)
    answer = ask(reader, step)
    assert [each.text for each in answer.evidence] == [DECIDING.format(n) for n in LAWS.values()]
    assert [part.evidence for part in answer.parts[0].entries] == [(1,), (2,), (3,)]
    assert (answer.status, len(reader.requests)) == ("answered", 1)
    file = io.StringIO()
    write_evidence(lambda: [answer.to_dict()], file)
    assert DECIDING.format("the laws of Ohio") in file.getvalue()
    shown = io.StringIO()
    print_answer(answer, shown)
    assert "Nothing of this paragraph" not in shown.getvalue()
    lit = rf"<mark[^>]*>{DECIDING.format('the laws of Ohio')}"
    assert re.search(lit, answer_page(answer, FILES))


def test_a_row_costs_a_few_tokens_more_and_no_call() -> None:
    texts = []
    for n in (200, 0):
        reader = model("yes")
        asyncio.run(Pearl(reader, row_quotes=n).execute(f"{SPLIT}2. kept = {FORMS['filter'][0]} : Kept", FILES))  # fmt: skip
        (request,) = reader.requests
        texts.append(estimate(reader._reply(request)))
    assert texts[0] - texts[1] <= 14 * len(LAWS)


@pytest.mark.parametrize(
    ("quote", "status"),
    [
        ("governed by the law of Bavaria", "degraded"),  # of another row
        ("governed by the law of the sea", "degraded"),
        ("", "answered"),
        ("“governed by  {} .”", "answered"),
    ],
)
def test_words_that_do_not_stand_in_their_row_are_told(quote: str, status: str) -> None:
    answer = ask(model("yes", quote), FORMS["filter"][0])
    assert answer.status == status
    assert ("not in the document" in answer.why) == (status == "degraded")


def test_kept_replies_have_their_quotes() -> None:
    replies = MemoryReplies()
    for _ in range(2):
        reader = model("yes")
        pearl = Pearl(reader, replies=replies)
        answer = asyncio.run(pearl.execute(f"{SPLIT}2. kept = {FORMS['filter'][0]} : Kept", FILES))
        assert len(answer.evidence) == 3
    assert not reader.requests


@pytest.mark.parametrize(
    ("document", "settings"),
    [
        (FILES, {"row_quotes": 2}),
        (join([Document(f"governed by {law}", name) for name, law in LAWS.items()]), {}),
    ],
)
def test_many_rows_and_short_ones_have_no_quotes(
    document: Document, settings: dict[str, object]
) -> None:
    reader = model("yes")
    answer = ask(reader, FORMS["filter"][0], document, **settings)
    assert '"q1"' not in reader.requests[0].prompt
    assert (answer.status, answer.evidence) == ("answered", ())


def test_a_comparison_of_files_names_them_and_has_a_quote_for_each_cell() -> None:
    plan = f"""{SPLIT}2. law = {FORMS["map"][0]} : Law
3. far = {FORMS["rate"][0]} : Distance
4. table = SHOW(files, law, far) : Side by side"""
    reader = model(7)
    answer = asyncio.run(Pearl(reader).execute(plan, FILES))
    assert answer.markdown.splitlines()[0] == "| Document | law | far |"
    assert answer.markdown.splitlines()[2:] == [
        "| a.txt | 7[^1] | 7[^1] |",
        "| b.txt | 7[^2] | 7[^2] |",
        "| c.txt | 7[^3] | 7[^3] |",
    ]
    assert answer.text.splitlines()[2] == "| a.txt | 7 | 7 |"
    shown = io.StringIO()
    print_answer(answer, shown)
    assert "| a.txt | 7 [1] | 7 [1] |" in shown.getvalue()
