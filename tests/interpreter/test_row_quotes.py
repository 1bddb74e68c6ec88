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
from pearl.llm import CheckTask, ItemsTask, Request
from pearl.runs.export import write_evidence
from pearl.view.answer_page import answer_page
from tests.interpreter.test_row_estimate import run as foreseen
from tests.models import MemoryReplies, Reading, item_keys, verdicts, written

MUCH = "Nothing of this paragraph matters to anyone who reads it. " * 5
LAWS = {"a.txt": "the law of Bavaria", "b.txt": "the laws of Ohio", "c.txt": "the law of Peru"}
DECIDING = "This contract is governed by {}, unless agreed."


def contract(name: str, law: str) -> Document:
    return Document(f"File {name}. {MUCH}\n\n{DECIDING.format(law)}\n\n{MUCH}", name)


FILES = join([contract(*each) for each in LAWS.items()])
SPLIT = '1. files = SPLIT(CTX, "document") : Split\n'
FORMS = {
    "filter": ('FILTER(files, "it is governed by a law of Europe or America")', "yes"),
    "classify": ('CLASSIFY(files, ["north", "south"], "where")', "north"),
    "map": ('MAP(files, "the law")', "a law"),
    "rate": ('CLASSIFY(files, ["1", "7"], "how far away")', "7"),
}


def model(
    value: object, quote: str = "governed by {}", told: str = "b.txt", verdict: str = "supported"
) -> Reading:
    def reply(request: Request) -> str:
        task = request.task
        if isinstance(task, CheckTask):
            found = (verdict if told in claim else "supported" for claim, _ in task.claims)
            return verdicts(*found)
        assert isinstance(task, ItemsTask)
        said = written(task, [value] * len(task.items))  # type: ignore[list-item]
        if not task.is_quoted:
            return said
        quotes = {}
        for key, item in zip(item_keys(request.prompt), task.items, strict=True):
            law = next(law for law in LAWS.values() if law in item)
            quotes[f"q{key.split()[0]}"] = quote.format(law)
        return json.dumps(json.loads(said) | quotes)

    return Reading(reply)


def asked_of_rows(reader: Reading) -> list[Request]:
    return [request for request in reader.requests if isinstance(request.task, ItemsTask)]


def claims_of(reader: Reading) -> list[tuple[str, str]]:
    return [c for r in reader.requests if isinstance(r.task, CheckTask) for c in r.task.claims]


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
    assert (answer.status, len(asked_of_rows(reader))) == ("answered", 1)
    file = io.StringIO()
    write_evidence(lambda: [answer.to_dict()], file)
    assert DECIDING.format("the laws of Ohio") in file.getvalue()
    shown = io.StringIO()
    print_answer(answer, shown)
    assert "Nothing of this paragraph" not in shown.getvalue()
    lit = rf"<mark[^>]*>{DECIDING.format('the laws of Ohio')}"
    assert re.search(lit, answer_page(answer, FILES))


def test_twenty_rows_with_their_passages_fit_a_composed_answer() -> None:
    """From about 15 rows on, the answer was composed of cut passages, and degraded."""
    laws = [f"the law of the {i}th province of the northern kingdom" for i in range(20)]
    files = join([contract(f"{i}.txt", law) for i, law in enumerate(laws)])
    prompts: list[str] = []

    def reply(request: Request) -> str:
        task = request.task
        if isinstance(task, ItemsTask):
            said = json.loads(written(task, ["yes"] * len(task.items)))
            quotes = {
                f"q{key.split()[0]}": re.search("governed by .* kingdom", item)[0]
                for key, item in zip(item_keys(request.prompt), task.items, strict=True)
            }  # type: ignore[index]
            return json.dumps(said | quotes)
        if isinstance(task, CheckTask):
            return verdicts(*["supported"] * len(task.claims))
        prompts.append(request.prompt)
        return "There are {n} [21]."

    plan = f'{SPLIT}2. kept = FILTER(files, "it is of a kingdom") : Kept\n3. n = COUNT(kept) : Count\n4. a = ANSWER("Which?", kept, n) : Answer'
    answer = asyncio.run(Pearl(Reading(reply)).execute(plan, files))
    assert all(DECIDING.format(law) in prompts[0] for law in laws)
    assert (answer.status, answer.notes) == ("answered", ())


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
    reader = model("7")
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


@pytest.mark.parametrize(
    ("kind", "check", "n_claims"),
    [("filter", "auto", 3), ("filter", "off", 0), ("classify", "auto", 0), ("classify", "all", 3), ("map", "all", 3), ("rate", "all", 3)],
)  # fmt: skip
def test_the_checker_is_asked_whether_passages_say_what_they_decided(
    kind: str, check: str, n_claims: int
) -> None:
    step, value = FORMS[kind]
    reader = model(value)
    answer = ask(reader, step, check=check)
    claims = claims_of(reader)
    assert len(claims) == n_claims
    assert answer.status == "answered"
    assert ("meaning was not checked" in answer.notes) == (check == "off")
    for (said, passage), (name, law) in zip(claims, LAWS.items(), strict=False):
        assert name in said
        assert "Europe" in said or str(value) in said
        assert f"This contract is [[{DECIDING.format(law)[17:]}]]" in passage or DECIDING.format(law) in passage  # fmt: skip
        assert not any(other in passage for other in LAWS.values() if other != law)


@pytest.mark.parametrize("verdict", ["not stated", "contradicted"])
def test_a_row_is_undecided_whose_passage_does_not_say_it(verdict: str) -> None:
    reader = model("yes", verdict=verdict)
    answer = ask(reader, FORMS["filter"][0])
    assert (answer.status, answer.value) == ("undecided", ["a.txt", "c.txt"])
    assert answer.text.endswith("(1 undecided)")
    assert any("the checker: the passage" in note for note in answer.notes)
    n = asyncio.run(Pearl(model("yes", verdict=verdict)).execute(
        f"{SPLIT}2. kept = {FORMS['filter'][0]} : Kept\n3. n = COUNT(kept) : How many", FILES
    ))  # fmt: skip
    assert (n.text, n.steps[-1].n_calls) == ("2 (1 undecided)", 0)


@pytest.mark.parametrize("row_quotes", [200, 1])
def test_the_best_rows_have_their_passages(row_quotes: int) -> None:
    def reply(request: Request) -> str:
        task = request.task
        assert isinstance(task, ItemsTask)
        order = sorted(range(len(task.items)), key=lambda i: "Ohio" not in task.items[i])
        picked = order[: task.n_picks]
        laws = [next(law for law in LAWS.values() if law in task.items[i]) for i in picked]
        said: dict[str, object] = {"items": [i + 1 for i in picked]}
        if task.is_quoted:
            said["quotes"] = [f"governed by {law}" for law in laws]
        return json.dumps(said)

    reader = Reading(reply)
    step = 'TOP(files, "how far away", 2)'
    answer = ask(reader, step, row_quotes=row_quotes, items_per_call=2)
    assert answer.status == "answered"
    assert [row.source for row in answer.row_evidence] == ["a.txt", "b.txt"]
    evidence = [DECIDING.format(LAWS[name]) for name in ("b.txt", "a.txt")]
    assert sorted(each.text for each in answer.evidence) == sorted(evidence * (row_quotes > 1))
    n_quoted = sum('"quotes":[' in request.prompt for request in reader.requests)
    assert n_quoted == (row_quotes > 1)  # only the last group has the best of all
    if row_quotes > 1:
        assert answer.text.startswith(f'- b.txt: "{evidence[0]}"')


@pytest.mark.parametrize(("check", "n_requests"), [("auto", 0), ("all", 3)])
def test_a_check_of_rows_has_a_small_share_of_their_text(check: str, n_requests: int) -> None:
    reader = model("yes")
    files = join([contract(f"{i}.txt", LAWS["a.txt"]) for i in range(90)])
    answer = ask(reader, FORMS["filter"][0], files, check=check)
    assert sum(isinstance(r.task, CheckTask) for r in reader.requests) == n_requests
    assert ("kept: 90 rows not checked; check='all' checks them" in answer.notes) == (n_requests == 0)  # fmt: skip


def test_the_forecast_has_the_check_of_rows() -> None:
    reader = model("yes")
    step = FORMS["filter"][0].replace("law", f"{'law or ' * 6_000}law")
    found = foreseen(f"{SPLIT}2. kept = {step} : Kept", FILES, reader, check="all")
    assert len(claims_of(reader)) == 3
    (check,) = [step for step in found.steps if step.name == "kept = FILTER, checked"]
    assert check.calls.upper == 2
