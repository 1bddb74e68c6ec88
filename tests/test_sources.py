"""Plans over named sources: a directory, a corpus of rules and a folder of reports."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from pearl import Answer, Document, Pearl
from pearl.errors import PearlError, PlanError, UsageError
from pearl.llm import ActionTask, Request
from pearl.llm.backends.scripted import Scripted
from pearl.pipeline import SourceGiven
from tests.service import ABOUT, SUBJECTS, YEARS, read, visits, write_service


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return write_service(tmp_path_factory.mktemp("service"))


def plan(names: str, *steps: str) -> str:
    lines = [f"{i}. {step} : Find it" for i, step in enumerate(steps, 1)]
    declared = [f"- {name} : {ABOUT.get(name, 'more')}" for name in names.split()]
    return "\n".join(["Sources:", *declared, "", "New actions:", "- None", "", *lines])


def execute(
    text: str, sources: Mapping[str, SourceGiven], document: Document | None = None
) -> Answer:
    return asyncio.run(Pearl(Scripted(read)).execute(text, document, sources=sources))


def test_each_step_reads_its_source_and_the_evidence_names_it(paths: dict[str, str]) -> None:
    text = plan(
        "providers rules reports",
        'who = LOOKUP(providers, "Which dentist is in Corley?")',
        'found = RETRIEVE(rules, "interpreter free charge", 2)',
        'rule = FIND(found, "interpreters")',
        'files = SPLIT(reports, "document")',
        'those = FILTER(files, "1,629")',
        "n = COUNT(those)",
        'figure = FIND(reports, "visits in 2017")',
        'ans = ANSWER("Who, which rule, how many?", who, rule, n, figure)',
    )
    answer = execute(text, {**paths})
    assert answer.status == "answered", answer.why
    steps = {step.output: step for step in answer.steps}
    assert steps["n"].text == "1"
    assert {(e.source, e.text) for e in answer.evidence} == {
        ("rules: interpreters.md", SUBJECTS["interpreters"]),
        ("reports: 2017.txt", f"In 2017 the clinics counted {visits(2017):,} visits."),
    }
    (row,) = [row for row in answer.row_evidence if "Dentist" in row.line]
    assert row.source == f"providers: {paths['providers']}"
    named = {e["document"].partition(":")[0] for e in steps["rule"].provenance["sources"]}
    assert named == {"rules"}
    assert steps["rule"].provenance["chosen_from"][0]["documents"] == len(SUBJECTS)
    read_by = {e["document"].partition(":")[0] for e in steps["n"].provenance["sources"]}
    assert read_by == {"reports"}
    assert steps["found"].fetched is not None
    assert {hit.document.partition(":")[0] for hit in steps["found"].fetched.hits} == {"rules"}


def test_every_place_is_that_of_the_text_it_names(paths: dict[str, str]) -> None:
    document = Document("Ask at the desk.\n\nThe desk opens at nine.", "desk.txt")
    text = plan(
        "reports rules",
        'a = SPLIT(reports, "document")',
        'b = SPLIT(rules, "paragraph")',
        'c = SPLIT(CTX, "paragraph")',
        "n = COUNT(a)",
        "m = COUNT(b)",
        "k = COUNT(c)",
        "ans = CONCAT(n, m, k)",
    )
    answer = execute(text, {"reports": paths["reports"], "rules": paths["rules"]}, document)
    rows = {step.output: step.value for step in answer.steps}
    assert len(rows["a"]) == len(YEARS)  # type: ignore[arg-type]
    assert len(rows["c"]) == 2  # type: ignore[arg-type]
    for name in "abc":
        for row in rows[name]:  # type: ignore[union-attr]
            file = row.fields.get("Document") or "desk.txt"
            assert file.startswith({"a": "reports: ", "b": "rules: ", "c": "desk.txt"}[name])
    told = {r.source: r for r in answer.row_evidence}
    for file, row in told.items():
        kind, _, own = file.partition(": ")
        stands = Path(paths[kind], own).read_text() if own else document.text
        assert row.text in stands


def test_a_quote_of_another_source_is_not_verified(paths: dict[str, str]) -> None:
    def quoting(request: Request) -> str:
        assert isinstance(request.task, ActionTask)
        return f"Found.\n> {SUBJECTS['refunds']}"

    text = plan("rules reports", 'a = FIND(reports, "refunds")', 'b = FIND(rules, "refunds")')
    answer = asyncio.run(
        Pearl(Scripted(quoting)).execute(text, sources=paths_of(paths, "rules reports"))
    )
    assert [quote.step for quote in answer.unverified] == ["a"]
    assert [(e.source, e.steps) for e in answer.evidence] == [("rules: refunds.md", ("b",))]
    assert answer.status == "degraded"


def paths_of(paths: dict[str, str], names: str) -> dict[str, SourceGiven]:
    return {name: (paths[name], ABOUT[name]) for name in names.split()}


def test_fields_are_taken_from_their_source_alone(paths: dict[str, str]) -> None:
    def extracting(request: Request) -> str:
        return '{"fee": {"value": "15 euros", "quote": "A medical letter costs 15 euros"}}'

    text = plan(
        "reports rules", 'r = EXTRACT(reports, "fee: str")', 's = EXTRACT(rules, "fee: str")'
    )
    model = Scripted(extracting)
    answer = asyncio.run(
        Pearl(model, check="off").execute(text, sources=paths_of(paths, "reports rules"))
    )
    assert answer.record is not None
    states = {field.step: field.state for field in answer.record.fields.values()}
    assert states == {"r": "undecided", "s": "found"}
    assert [e.source for e in answer.evidence] == ["rules: letters.md"]


@pytest.mark.parametrize(
    ("names", "step", "given", "message"),
    [
        ("rules", 'a = FIND(rules, "x")', {}, "the plan reads source 'rules', which is not given"),
        ("rules", 'a = FIND(rules, "x")', {"rule": "x"}, "the plan has no source 'rule'"),
        ("rules", "a = FIND(rules, CTX)", {"rules": "rules"}, "only sources are given"),
        ("rules", 'a = FIND(rules, "x")', {"rules": "missing"}, "no such file"),
        ("rules", 'a = FIND(rules, "x")', {"rules": "empty.txt"}, "the file is empty"),
        ("rules", 'a = FIND(rules, "x")', {"rules": "empty"}, "no document"),
    ],
)
def test_a_source_that_cannot_be_read_is_an_error_of_at_most_three_lines(
    paths: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    names: str, step: str, given: dict[str, str], message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").touch()
    (tmp_path / "empty").mkdir()
    sources = {name: paths.get(where, where) for name, where in given.items()}
    document = None if sources else Document("A text.")
    with pytest.raises(PearlError, match=message) as caught:
        execute(plan(names, step), sources, document)
    assert len(str(caught.value).splitlines()) <= 3


@pytest.mark.parametrize(
    "name", ["CTX", "the rules", "", "1st", "a" * 200, "rules\n- x", "{{CTX}}"]
)
def test_a_name_that_no_plan_can_use_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        asyncio.run(Pearl().ask("Why?", sources={name: Document("A text.")}))


def test_one_text_under_two_names_is_refused() -> None:
    text = plan("a b", "c = FIND(a, b)")
    with pytest.raises(UsageError, match="'a' and 'b' have the same text"):
        execute(text, {"a": Document("One text.", "x"), "b": Document("One text.", "y")})
    with pytest.raises(PlanError, match="declared twice"):
        execute(plan("a a", 'c = FIND(a, "x")'), {})
