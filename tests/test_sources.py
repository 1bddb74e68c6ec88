"""Plans over named sources: a directory, a corpus of rules and a folder of reports."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pearl import Answer, Document, Pearl
from pearl.documents.document import Source, join, part_spans
from pearl.documents.sources import with_sources
from pearl.errors import PearlError, PlanError, Span, UsageError
from pearl.llm import ActionTask, CheckTask, Request
from pearl.llm.backends.scripted import Scripted
from pearl.pipeline import SourceGiven
from pearl.view.sources import pdf_files
from tests.figures import FIGURES
from tests.models import Reading, verdicts
from tests.service import ABOUT, SUBJECTS, read, visits, write_service


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
    ("names", "step", "named", "message"),
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
    names: str, step: str, named: dict[str, str], message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").touch()
    (tmp_path / "empty").mkdir()
    sources = {name: paths.get(where, where) for name, where in named.items()}
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


@pytest.mark.parametrize("given", [("rules/",), (None, "x"), ("rules/", 5), 7, ("a", "b", "c"), ()])
def test_a_source_of_another_form_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match="source 'rules' must be a document or a path, or"):
        asyncio.run(Pearl().ask("Why?", sources={"rules": given}))


def test_one_text_under_two_names_is_refused() -> None:
    text = plan("a b", "c = FIND(a, b)")
    with pytest.raises(UsageError, match="'a' and 'b' have the same text"):
        execute(text, {"a": Document("One text.", "x"), "b": Document("One text.", "y")})
    with pytest.raises(PlanError, match="declared twice"):
        execute(plan("a a", 'c = FIND(a, "x")'), {})


def test_what_is_retrieved_from_a_long_source_is_placed_in_it() -> None:
    hay = "\n\n".join(f"Paragraph {i} tells of the weather and the hay." for i in range(300))
    needle = "The key lies under the blue stone."
    long, other = Document(f"{hay}\n\n{needle}\n\n{hay[:900]}", "long.txt"), Document(hay[:500])

    def reader(request: Request) -> str:
        assert needle in request.prompt
        return f"Under it.\n> {needle}"

    pearl = Pearl(Scripted(reader), context="retrieve", window=2_000, max_output_tokens=200)
    text = plan("b a", 'x = FIND(a, "the key under the blue stone")', 'y = SPLIT(b, "paragraph")')
    answer = asyncio.run(pearl.execute(text, sources={"b": other, "a": long}))
    (passage,) = answer.evidence
    assert (passage.source, passage.text) == ("a: long.txt", needle)
    assert long.text[passage.source_span.start : passage.source_span.end] == needle
    (read_by,) = answer.steps[0].provenance["sources"]
    assert read_by["document"] == "a: long.txt"
    at = long.text.index(needle)
    assert any(span["start"] <= at < span["end"] for span in read_by["spans"])
    assert read_by["spans"] != [{"start": 0, "end": len(long.text)}]
    assert answer.steps[0].coverage is not None
    assert answer.steps[0].coverage < 0.5


_TEXTS = st.lists(
    st.sampled_from(["a.", "\n\n# x\n\n", "b: c\n\n", "# r: y\n", "\n\n", " "]),
    min_size=1,
    max_size=6,
)
_FILES = st.lists(
    st.tuples(st.sampled_from(["x", "r: y", "a  b", "# x"]), _TEXTS.map("".join), st.booleans()),
    min_size=1, max_size=3,
)  # fmt: skip


@given(st.lists(st.tuples(st.booleans(), _FILES), min_size=1, max_size=3), st.booleans())
def test_the_place_of_each_file_and_page_in_all_sources_is_its_own(
    drawn: list[tuple[bool, list[tuple[str, str, bool]]]], has_ctx: bool
) -> None:
    def one(name: str, text: str, has_page: bool, mark: str) -> Document:
        return Document(f"{mark}{text}", name, pages=(("1", 0),) if has_page else ())

    documents = [
        join([one(*file, f"{i}.{k}") for k, file in enumerate(files)], "all")
        if is_joined
        else one(*files[0], f"{i}.0")
        for i, (is_joined, files) in enumerate(drawn)
    ]
    ctx = documents.pop(0) if has_ctx else None
    assume(ctx is not None or documents)
    sources = [Source(f"s{i}", document) for i, document in enumerate(documents)]
    whole = with_sources(ctx, sources)
    assert [each.name for each in whole.sources] == ["CTX"] * has_ctx + [s.name for s in sources]
    own = [(each.name, each.document) for each in sources]
    expected = [
        (f"{prefix}{name}", text[span.start : span.end])
        for prefix, document in ([("", ctx)] if ctx else []) + [(f"{n}: ", d) for n, d in own]
        for text in [document.text]
        for name, span in part_spans(text, document.parts) or [(document.name, Span(0, len(text)))]
    ]
    found = part_spans(whole.text, whole.parts)
    assert [(name, whole.text[span.start : span.end]) for name, span in found] == expected
    for each in whole.sources:
        assert whole.text.startswith(each.document.text, each.start)
        files = part_spans(each.document.text, each.document.parts)
        for place in [at for _, span in files for at in range(span.start, span.end)]:
            assert whole.page_at(each.start + place) == each.document.page_at(place)


def test_the_pages_of_a_pdf_of_a_source_are_shown_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "report.pdf"
    path.touch()
    whole = with_sources(None, [Source("reports", Document("The text of it.", str(path)))])
    assert pdf_files(whole) == {f"reports: {path}": path}


def test_a_figure_is_checked_by_the_source_that_its_step_reads() -> None:
    line = "Revenue was $5 million in 2023, after a year of rain and of delays."
    claims: list[str] = []

    def reader(request: Request) -> str:
        if isinstance(request.task, CheckTask):
            claims.append(request.prompt)
            return verdicts("supported")
        return f"$5 million\n> {line}"

    text = plan("bolt", 'x = FIND_FIGURE(bolt, "revenue", "2023")')
    sources = {
        name: Document(f"{name.title()} Limited\n\n{line}", f"{name}.txt")
        for name in ("acme", "bolt")
    }
    whole = with_sources(None, [Source(*each) for each in sources.items()])
    answer = asyncio.run(Pearl(Reading(reader), library=FIGURES).execute(text, whole))
    assert [each.source for each in answer.evidence] == ["bolt: bolt.txt"]
    (claim,) = claims
    assert "Bolt Limited" in claim
    assert "Acme" not in claim
