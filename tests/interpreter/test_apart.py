"""Steps that are shown the tables of their document apart from its text."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pearl import Document, Pearl
from pearl.errors import ExecutionError
from pearl.interpreter.answer import Answer
from pearl.llm import ActionTask, Message, Request
from pearl.llm.backends.scripted import Scripted
from pearl.retrieval.corpus import CorpusDocument
from pearl.retrieval.index import Index, IndexedDocument

PROSE = "\n\n".join(f"In {1900 + i} the weather of the valley was as in other years." for i in range(60))  # fmt: skip
ROWS = "\n".join(f"{1900 + i},{40 + i},{3 + i}" for i in range(60))
TABLE = f"Honey, in thousands:\n\nyear,jars,price\n{ROWS}"
REPORT = f"{PROSE}\n\nAda began in 1950.\n\n{TABLE}\n\n{PROSE}\n\nBees are well.\n"
SHORT = "Ada keeps bees.\n\nyear,jars\n1950,90\n1951,95\n\nShe sells honey.\n"
PLAN = """\
1. a = FIND_EVENT(CTX, "jars of 1950") : How many jars in 1950
2. b = FIND_EVENT(CTX, "bees of 1950") : How many bees in 1950"""
HEAD = "| year | jars | price |\n| --- | --- | --- |\n"


def run(
    document: Document, model: Any | None = None, plan: str = PLAN, **settings: Any
) -> tuple[Answer, list[Request]]:
    model = model or Scripted(lambda request: "x")

    async def execute() -> Answer:
        async with Pearl(model, **settings) as pearl:
            return await pearl.execute(plan, document)

    return asyncio.run(execute()), model.requests


def shown(requests: list[Request], output: str = "a") -> list[str]:
    tasks = [r.task for r in requests if isinstance(r.task, ActionTask)]
    return [task.document or "" for task in tasks if task.output == output and task.parts is None]


def messages(requests: list[Request]) -> list[tuple[Message, ...]]:
    return [request.messages for request in requests]


def test_all_steps_are_shown_the_same_two_parts() -> None:
    _, requests = run(Document(SHORT), apart=True)
    (a,), (b,) = shown(requests), shown(requests, "b")
    assert a == b == (
        "[tables]\n\n[table 1]\n\n| year | jars |\n| --- | --- |\n| 1950 | 90 |\n| 1951 | 95 |\n\n"
        "[text]\n\nAda keeps bees.\n\n[table 1]\n\nShe sells honey.\n"
    )  # fmt: skip


@pytest.mark.parametrize("context", ["auto", "map-reduce", "retrieve"])
def test_a_document_without_tables_is_shown_as_ever(context: str) -> None:
    settings = {"context": context, "window": 2_000, "max_output_tokens": 100}
    _, plain = run(Document(PROSE), **settings)
    _, apart = run(Document(PROSE), **settings, apart=True)
    assert messages(apart) == messages(plain)


def test_every_part_has_the_header_of_its_rows_and_each_row_is_in_one() -> None:
    answer, requests = run(Document(REPORT), window=1_200, max_output_tokens=100, apart=True)
    parts = shown(requests)
    assert len(parts) > 2
    assert answer.steps[0].context == "map-reduce"
    assert parts == shown(requests, "b"), "both steps hit the same cached prefixes"
    for i in range(60):
        row = f"| {1900 + i} | {40 + i} | {3 + i} |"
        (part,) = [part for part in parts if row in part]
        assert HEAD in part
        assert "Honey, in thousands:" in part


def test_passages_that_match_are_rows_below_their_header() -> None:
    settings = {"context": "retrieve", "window": 1_200, "max_output_tokens": 100, "apart": True}
    answer, requests = run(Document(REPORT), **settings)
    (a,), (b,) = shown(requests), shown(requests, "b")
    assert f"[table 1]\n\nHoney, in thousands:\n\n{HEAD}" in a
    assert "| 1950 | 90 | 53 |" in a
    assert "Ada began in 1950." in b
    assert all(0 < (step.coverage or 0) < 1 for step in answer.steps)


def test_rows_of_a_corpus_are_shown_below_their_header() -> None:
    documents = (CorpusDocument(name, text) for name, text in (("a.csv", TABLE), ("b.txt", PROSE)))
    corpus: IndexedDocument = Index.build(documents).document("both")
    settings = {"window": 1_500, "max_output_tokens": 100}
    plan = '1. a = FIND_EVENT(CTX, "honey jars of 1950, weather of the valley") : Find'
    answer, requests = run(corpus, plan=plan, **settings, apart=True)
    (a,) = shown(requests)
    assert answer.steps[0].context == "retrieve"
    tables, _, text = a.partition("\n\n[text]\n\n")
    assert tables.startswith("[tables]\n\n[table 1 of a.csv]\n\nHoney, in thousands:\n\n| year |")
    assert "# b.txt\n\n" in text
    assert "weather" in text
    for request in requests:
        assert Pearl().limits.counter.count(request.prompt) <= 1_400


def test_a_row_that_a_model_quotes_is_evidence() -> None:
    def quote(request: Request) -> str:
        return "90\n> | year | jars |\n> | --- | --- |\n> | 1950 | 90 |"

    answer, _ = run(Document(SHORT), Scripted(quote), apart=True)
    assert not answer.unverified
    assert [each.text for each in answer.evidence] == ["year,jars", "1950,90"]


def test_a_header_that_does_not_fit_is_told() -> None:
    names = " | ".join(f"a long name of column {i}" for i in range(60))
    cells = " | ".join(str(i) for i in range(60))
    text = f"| {names} |\n|{'---|' * 60}\n" + f"| {cells} |\n" * 20
    with pytest.raises(ExecutionError) as error:
        run(Document(text), window=700, max_output_tokens=50, apart=True)
    assert "or show tables in the text (--no-apart)" in (error.value.help or "")
