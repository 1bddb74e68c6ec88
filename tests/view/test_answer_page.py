"""Pages of answers: marks, drawings."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl import Pearl
from pearl.documents.document import Document, join, load
from pearl.errors import Span
from pearl.interpreter.answer import Answer
from pearl.llm.backends.scripted import Scripted
from pearl.plugins.extras import install_hint
from pearl.view.answer_page import answer_page, result_page
from pearl.view.panel import AROUND, Gap, Piece, highlighted
from pearl.view.sources import ResultRecord
from tests.models import item_lines

STORY = (
    "Nils left the harbour at dawn.\n\nHe sold the boat because the hull was rotten. "
    "Ada bought the boat from Nils. Nobody asked."
)
HOSTILE = "</style><script>alert(1)</script><img src=x onerror=alert(2)>\" onload='x' &amp; \x1b[31m \u202e"


class Page(HTMLParser):
    """What a page has."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.marked: list[str] = []
        self._within: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "mark":
            self.marked.append("")
        if tag not in ("meta", "path", "rect", "col", "img", "input", "br", "hr"):
            self._within.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("path", "rect", "br", "hr") and (not self._within or self._within[-1] != tag):
            return
        assert self._within.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        if {"style", "script"} & {*self._within}:
            return
        self.text += data
        if "mark" in self._within and "a" not in self._within[-1:]:
            self.marked[-1] += data

    def all(self, name: str) -> list[str]:
        """Every value of an attribute."""
        return [
            value for _, attrs in self.tags for key, value in attrs.items() if key == name and value
        ]


def asked(question: str, document: Document, **settings: object) -> tuple[Answer, str]:
    async def ask() -> Answer:
        async with Pearl(**settings) as pearl:  # type: ignore[arg-type]
            return await pearl.ask(question, document)

    answer = asyncio.run(ask())
    return answer, answer_page(answer, document)


def looked_up(query: dict[str, object], table: Document) -> tuple[Answer, str]:
    model = Scripted(lambda request: json.dumps(query))
    plan = '1. found = LOOKUP(CTX, "What does the table say?") : Ask the table'
    answer = asyncio.run(Pearl(model).execute(plan, table))
    return answer, answer_page(answer, table)


@pytest.mark.parametrize("odd", ["שלום עולם. ", "\U0001f6a2\u200d\U0001f680 ", "e\u0301 ﬁ İ. ", "船。", "<b>&amp;</b> ", "\u00a0\u2003 "])  # fmt: skip
def test_what_is_lit_is_what_is_quoted_whatever_the_text_is_written_in(odd: str) -> None:
    document = Document(odd + STORY.replace("Nils", f"{odd.strip()}Nils"), "story.txt")
    answer, page = asked("Why did Nils sell the boat, and who bought it?", document)
    evidence = sorted(answer.evidence, key=lambda each: each.span.start)
    assert Page(page).marked == [each.text for each in evidence] != []
    assert document.text in Page(re.sub(r'<a class="n".*?</a>', "", page)).text


def test_answer_and_document_lead_to_each_other() -> None:
    document = Document(STORY, "story.txt")
    answer, text = asked("Why did Nils sell the boat, and who bought it?", document)
    page = Page(text)
    assert answer.evidence
    assert page.marked == [
        each.text for each in sorted(answer.evidence, key=lambda e: e.span.start)
    ]
    ids, links = page.all("id"), [link for link in page.all("href") if link != "#document"]
    assert len(ids) == len(set(ids))
    assert {link.removeprefix("#") for link in links} <= set(ids)  # none leads nowhere
    for n in range(1, len(answer.evidence) + 1):
        assert {f"d{n}", f"e{n}"} <= set(ids)
        assert {f"#d{n}", f"#e{n}"} <= set(links)
    for shown in (
        answer.question,
        answer.model,
        "Nobody asked.",
        *(s.action for s in answer.steps),
    ):
        assert shown in page.text


def test_it_loads_nothing_and_its_policy_names_its_style_and_its_script() -> None:
    _, text = asked("Why did Nils sell the boat?", Document(STORY))
    page = Page(text)
    assert not {tag for tag, _ in page.tags} & {"link", "img", "iframe", "object", "form", "base"}
    assert not page.all("src")
    assert not page.all("style")  # its policy would refuse them
    assert all(link.startswith("#") for link in page.all("href"))
    (policy,) = [attrs["content"] or "" for tag, attrs in page.tags if attrs.get("http-equiv")]
    digests = []
    for tag in ("style", "script"):
        (code,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.S)
        digests.append(base64.b64encode(hashlib.sha256(code.encode()).digest()).decode())
    style, script = digests
    assert policy.split("; ")[:3] == [
        "default-src 'none'", f"style-src 'sha256-{style}'", f"script-src 'sha256-{script}'"
    ]  # fmt: skip


def test_nothing_that_others_say_becomes_markup() -> None:
    reply = f"> He sold the boat because the hull was rotten.\n\nIt is {HOSTILE}.\n\n> {HOSTILE} quoted here"
    plan = f'1. ans = FIND(CTX, "{HOSTILE.translate(str.maketrans({chr(34): "", chr(27): "", chr(0x202E): ""}))}") : why'
    model = Scripted(
        lambda request: plan if request.task.__class__.__name__ == "PlanTask" else reply
    )
    document = Document(f"{STORY} {HOSTILE}", HOSTILE)
    _, text = asked(f"Why {HOSTILE[:60]}?", document, model=model, library="seed")
    page = Page(text)
    assert [tag for tag, _ in page.tags if tag in ("script", "img")] == ["script"]
    assert not {key for _, attrs in page.tags for key in attrs if key.startswith("on")}
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert text.count("</style>") == 1
    assert "onerror=alert(2)" in page.text  # shown as what it is


def page_of_row(document: Document | None = None, /, **fields: object) -> str:
    row = {"status": "answered", "question": "Why?", "document": "story.txt", **fields}
    return result_page(ResultRecord("a", row, document=document))


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("It is **rotten**", "<strong>rotten</strong>"),
        ("# Why", "<h3>Why</h3>"),
        ("- one\n- two", "<li>one</li>\n<li>two</li>"),
        ("| a |\n| --- |\n| **b** |", "<td><strong>b</strong></td>"),
        ("```js\na < b\n```", "<code>a &lt; b\n</code>"),
        ("2*3*4 is 24", "2*3*4 is 24"),
        ("> " * 30 + "deep", f"{'&gt; ' * 30}deep"),
        ("| a |\n| - |\n| 1 | 42 |", "| 1 | 42 |"),
        ("```It is 42\nx\n```", "```It is 42"),
        ("1986. A year", "1986. A year"),
        ("1. a\n2. b", "<li>a</li>"),
        ("3) No\n7) x", "3) No\n7) x"),
        ("> 65\n< 12", "&gt; 65\n&lt; 12"),
        ("It is __init__.py", "__init__.py"),
        ("C:\\*.txt", "C:\\*.txt"),
        ("<b>x</b> &amp; y", "&lt;b&gt;x&lt;/b&gt; &amp;amp; y"),
        (
            "[x](https://evil.example) ![y](https://evil.example/x)",
            "[x](https://evil.example) ![y]",
        ),
        ("<https://evil.example>\n[a]: https://evil.example", "&lt;https://evil.example&gt;"),
    ],
)
def test_markdown_of_an_answer_is_shown_without_html_links_or_pictures(
    text: str, html: str
) -> None:
    page = page_of_row(answer=text)
    assert html in page
    assert not [link for link in Page(page).all("href") if "evil" in link]


def test_a_quote_within_an_entry_is_a_quote_of_that_entry() -> None:
    said = ["He left", 'He sold it: "because the hull was rotten"', 'Ada paid, "Ada bought the boat from Nils"']  # fmt: skip
    reply = json.dumps({"entries": said, "quotes": []})
    plan = '1. what = LIST_ALL(CTX, "what happened") : List what happened'
    answer = asyncio.run(Pearl(Scripted(lambda request: reply)).execute(plan, Document(STORY)))
    (part,) = answer.parts
    assert [entry.evidence for entry in part.entries] == [(), (1,), (2,)]
    entries = re.findall(
        r"<li>(?!<p>).*?</li>|<li><p>.*?</li>", answer_page(answer, Document(STORY)), re.S
    )
    assert ["no quote" in entry for entry in entries[:3]] == [True, False, False]


def test_numbers_in_a_composed_answer_are_those_of_its_evidence_and_of_nothing_else() -> None:
    sold = "He sold the boat because the hull was rotten."
    at = STORY.index(sold)
    quote = {"text": sold, "start": at, "end": at + len(sold), "source": "story.txt", "steps": []}
    fields: dict[str, object] = {"answer": "Rotten, he said [1].", "evidence": [quote]}
    composed = page_of_row(Document(STORY, "story.txt"), markdown="Rotten[^1], not[^2].", **fields)
    assert re.search(r'Rotten<a class="n" href="#d1"[^>]*>1</a>, not\[2\]', composed)
    assert Page(composed).marked == [sold]
    # A number in brackets that a model wrote is no number of evidence.
    fields["answer"] = "Rotten, he said [^1]."
    assert fields["answer"] in page_of_row(Document(STORY, "story.txt"), **fields)


def test_a_page_says_who_checked_which_sentence() -> None:
    said = [
        {"text": "It <i>leaked</i>.", "verdict": "supported"},
        {"text": "Bob rowed.", "verdict": "not stated"},
    ]
    step = {
        "output": "a",
        "action": "ANSWER",
        "value": "It leaked.",
        "checks": {"by": "openai:x", "sentences": said},
    }
    page = page_of_row(Document(STORY, "story.txt"), answer="It leaked.", steps=[step])
    assert "checked by openai:x: 1 supported, 1 not stated" in page
    assert "It &lt;i&gt;leaked&lt;/i&gt;. <span" in page
    assert "not stated: left out" in page
    step["checks"] = {
        "why": "the server is down",
        "sentences": [{"text": "It leaked.", "verdict": "not checked"}],
    }
    page = page_of_row(Document(STORY, "story.txt"), answer="It leaked.", steps=[step])
    assert "meaning was not checked: 1 not checked" in page
    assert '<p class="flag">the server is down</p>' in page


def test_of_a_row_in_a_text_the_cited_cells_are_lit_and_not_the_row() -> None:
    def place(text: str) -> dict[str, object]:
        return {"text": text, "start": STORY.index(text), "end": STORY.index(text) + len(text)}

    cells = [{"column": name, **place(name)} for name in ("the boat", "rotten")]
    row = {"match": "row", "source": "story.txt", "fields": {}, "cells": cells, "page": 4}
    row |= place("He sold the boat because the hull was rotten.")
    page = Page(page_of_row(Document(STORY, "story.txt"), answer="1", evidence=[row]))
    assert page.marked == ["the boat", "rotten"]
    assert page.all("id").count("d1") == 1


def test_rows_are_a_table_whose_cited_cells_are_marked_and_ten_stand_at_first() -> None:
    text = "Boat,Owner,Length\n" + "".join(f"Boat {n},Ada,{n}\n" for n in range(300))
    table = Document(text, "boats.csv", kind="table")
    query = {"group": ["Owner"], "aggregate": [{"function": "sum", "column": "Length"}]}
    answer, page = looked_up(query, table)
    assert len(answer.row_evidence) == 300
    first, _, rest = page.partition('<details class="more">')
    assert first.count('<tr id="e') == 10
    assert "Show all 300 rows" in rest
    # Beside the answer and in the document, which is a table, too.
    marked = Page(page).marked
    assert marked.count("Ada") == marked.count("Ada") == 600
    assert marked.count("299") == 2
    assert len(re.findall(r'<tr id="d\d+" class="cited">', page)) == 300
    assert "Boat 7,Ada,7" not in page


def test_a_count_leads_to_its_rows_and_undecided_ones_come_after_them() -> None:
    notes = [f"{n},Ward {n},{'x ' * 100}she is {n},{n % 3},{n * 7}" for n in range(6)]
    document = Document("\n".join(["no,ward,notes,floor,cost", *notes]), "a.csv", kind="table")
    plan = '1. rows = SPLIT(CTX, "record") : Rows\n2. old = FILTER(rows, "she is old") : Those\n3. n = COUNT(old) : How many'
    replies = ("no", "yes", "maybe", "yes", "yes or no", "yes")
    model = Scripted(
        lambda request: item_lines(
            request, lambda item: replies[int(item.partition("she is ")[2][0])]
        )
    )
    answer = asyncio.run(Pearl(model).execute(plan, document))
    page = answer_page(answer, document)
    assert re.search(r'<p><a href="#rows">3</a> \(2 undecided\)', page)
    behind = page[page.index('id="rows"') : page.index('id="document"')]
    assert re.findall(r"Ward (\d)", behind) == ["1", "3", "5", "2", "4"]
    assert behind.count("? undecided") == 2
    # The notes that the rows were judged by stand in sight; columns of which the plan says nothing are folded.
    assert re.findall(r'<th scope="col">(.*?)</th>', behind)[:4] == ["no.", "no", "notes", "others"]
    assert "floor: 2\ncost: 35" in behind


def test_quotes_that_are_not_in_the_document_are_flagged() -> None:
    reply = "He was poor.\n\n> He sold the boat because he needed the money badly."
    plan = '1. ans = FIND(CTX, "the sale of the boat") : why'
    model = Scripted(
        lambda request: plan if request.task.__class__.__name__ == "PlanTask" else reply
    )
    answer, text = asked("Why was it sold?", Document(STORY), model=model, library="seed")
    page = Page(text)
    assert answer.unverified
    assert "Quotes that could not be verified" in page.text
    assert answer.unverified[0].why in page.text
    assert not page.marked


def test_marks_of_joined_files_and_of_cells_are_where_they_are(tmp_path: Path) -> None:
    for name, text in (
        ("a.txt", STORY),
        ("b.txt", "Ines painted the mill. Nils sold the mill to Runa."),
    ):
        (tmp_path / name).write_text(text, "utf-8")
    both = join([load(tmp_path / "a.txt"), load(tmp_path / "b.txt")], "both")
    answer, text = asked("Who painted the mill?", both)
    assert "Ines painted the mill." in Page(text).marked
    (tmp_path / "boats.csv").write_text("Boat,Owner,Length\nAda,Nils,9\nRuna,Ines,12\n", "utf-8")
    table = load(tmp_path / "boats.csv")
    where = {"column": "Boat", "op": "is", "value": ["Runa"]}
    answer, text = looked_up({"select": ["Owner"], "where": where}, table)
    assert answer.row_evidence
    marked = Page(text).marked
    assert marked
    assert "Ines" in "".join(marked)
    answer, text = asked("Who is the owner of the boat Runa?", table)
    assert any(
        "Owner" in each.text for each in answer.evidence
    )  # the header, which leads to the first row
    assert {f'href="#d{n}"' in text and f'id="d{n}"' in text for n in (1, 2)} == {True}


def test_a_pdf_that_is_another_one_now_is_shown_as_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reportlab.pdfgen.canvas import Canvas

    def written(*lines: str) -> None:
        canvas = Canvas(str(tmp_path / "a.pdf"))
        for line in lines:
            canvas.drawString(90, 700, line)
            canvas.showPage()
        canvas.save()

    sold = "He sold the boat because the hull was rotten."
    written("Nils left.", sold, "Nobody asked.")
    document = load(tmp_path / "a.pdf")
    answer, text = asked("Why did Nils sell the boat?", document)
    assert [src[:16] for src in Page(text).all("src")] == ["data:image/webp;"]
    assert "; img-src data:;" in text
    assert f"{sold} <" in text
    assert "a.pdf, page 2" in text
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "PIL", None)
        page = Page(answer_page(answer, document))
    assert page.marked == [sold]
    assert not page.all("src")
    assert "a picture of a page needs PIL, which is not installed" in page.text
    assert install_hint("pictures") in page.text
    written("Nils left.", "He kept it.", "Nobody asked.")
    changed = answer_page(answer, document)
    assert not Page(changed).all("src")
    assert Page(changed).marked == [sold]


@st.composite
def marked_texts(draw: st.DrawFn) -> tuple[str, list[tuple[int, Span]]]:
    text = draw(st.text("ab \n", min_size=1, max_size=60))
    at = st.integers(0, len(text))
    spans = draw(st.lists(st.tuples(at, at).filter(lambda pair: pair[0] != pair[1]), max_size=6))
    return text, [(n, Span(min(pair), max(pair))) for n, pair in enumerate(spans, start=1)]


@given(marked_texts())
def test_the_pieces_are_the_text_and_each_mark_is_its_span(
    given: tuple[str, list[tuple[int, Span]]],
) -> None:
    text, marks = given
    pieces = highlighted(text, marks)
    assert all(isinstance(piece, Piece) for piece in pieces)
    whole = [piece for piece in pieces if isinstance(piece, Piece)]
    assert "".join(piece.text for piece in whole) == text
    for number, span in marks:
        covered = [piece for piece in whole if number in piece.marks]
        assert "".join(piece.text for piece in covered) == text[span.start : span.end]
        assert [number in piece.begins for piece in covered] == [
            True,
            *[False] * (len(covered) - 1),
        ]


def test_browsers_lay_out_a_long_text_in_blocks_of_whole_lines() -> None:
    document = Document(("word " * 19 + "end.\n") * 990)
    quote = {"text": "word", "start": 19_000, "end": 19_004, "source": "", "match": "exact", "steps": []}  # fmt: skip
    page = page_of_row(document, evidence=[quote])
    assert page.count('<div class="block">') == page.count("end.\n</div>") == 5


@given(marked_texts(), st.sampled_from([1, 100, 500]))
def test_of_a_long_text_what_is_around_the_marks_is_shown(
    given: tuple[str, list[tuple[int, Span]]], scale: int
) -> None:
    text = given[0] * 500
    marks = [(number, Span(span.start * scale, span.end * scale)) for number, span in given[1]]
    pieces = highlighted(text, marks, most=len(text) - 1)
    at, shown_at = 0, set()
    for piece in pieces:
        n = piece.n if isinstance(piece, Gap) else len(piece.text)
        if isinstance(piece, Piece):
            assert piece.text == text[at : at + n]
            shown_at.update(range(at, at + n))
        at += n
    assert at == len(text)
    around = [range(span.start - AROUND, span.end + AROUND) for _, span in marks]
    wanted = set().union(*around) if marks else set(range(AROUND))
    assert shown_at == wanted & set(range(len(text)))
    for number, span in marks:
        shown = [p.text for p in pieces if isinstance(p, Piece) and number in p.marks]
        assert "".join(shown) == text[span.start : span.end]
