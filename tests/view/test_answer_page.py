"""The page of an answer: on its own, everything escaped, and both ways between answer and document."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

from pearl import Pearl
from pearl.documents.document import Document, join, load
from pearl.interpreter.answer import Answer
from pearl.llm.backends.scripted import Scripted
from pearl.view.answer_page import answer_page

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
        if tag not in ("meta", "path", "rect"):
            self._within.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("path", "rect") and (not self._within or self._within[-1] != tag):
            return
        assert self._within.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        if "style" in self._within:
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


def test_it_loads_and_runs_nothing_and_its_policy_names_its_style() -> None:
    _, text = asked("Why did Nils sell the boat?", Document(STORY))
    page = Page(text)
    assert not {tag for tag, _ in page.tags} & {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "form",
        "base",
    }
    assert not page.all("src")
    assert not page.all("style")  # its policy would refuse them
    assert all(link.startswith("#") for link in page.all("href"))
    (policy,) = [attrs["content"] or "" for tag, attrs in page.tags if attrs.get("http-equiv")]
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.S)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy.split("; ")[:2] == ["default-src 'none'", f"style-src 'sha256-{digest}'"]


def test_nothing_that_others_say_becomes_markup() -> None:
    reply = f"> He sold the boat because the hull was rotten.\n\nIt is {HOSTILE}.\n\n> {HOSTILE} quoted here"
    plan = f'1. ans = FIND(CTX, "{HOSTILE.translate(str.maketrans({chr(34): "", chr(27): "", chr(0x202E): ""}))}") : why'
    model = Scripted(
        lambda request: plan if request.task.__class__.__name__ == "PlanTask" else reply
    )
    document = Document(f"{STORY} {HOSTILE}", HOSTILE)
    _, text = asked(f"Why {HOSTILE[:60]}?", document, model=model, library="seed")
    page = Page(text)
    assert not {tag for tag, _ in page.tags} & {"script", "img"}
    assert not {key for _, attrs in page.tags for key in attrs if key.startswith("on")}
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert text.count("</style>") == 1
    assert "onerror=alert(2)" in page.text  # shown as what it is


def test_quotes_that_the_document_does_not_bear_out_are_flagged() -> None:
    reply = "He was poor.\n\n> He sold the boat because he needed the money badly."
    plan = '1. ans = FIND(CTX, "the sale of the boat") : why'
    model = Scripted(
        lambda request: plan if request.task.__class__.__name__ == "PlanTask" else reply
    )
    answer, text = asked("Why was it sold?", Document(STORY), model=model, library="seed")
    page = Page(text)
    assert answer.unverified
    assert "Quotes that are not borne out" in page.text
    assert answer.unverified[0].why in page.text
    assert not page.marked


def test_rows_that_do_not_state_it_are_counted_beside_the_step() -> None:
    plan = '1. rows = SPLIT(CTX, "line") : Rows\n2. old = FILTER(rows, "is old") : Those'
    model = Scripted(
        lambda request: plan if request.task.__class__.__name__ == "PlanTask" else
        "1 | Ada is 70: yes\n2 | Nils sails: not stated\n"
    )  # fmt: skip
    _, text = asked("Who is old?", Document("Ada is 70.\nNils sails."), model=model)
    assert "1 yes, 1 not stated" in Page(text).text


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
    answer, text = asked("Who is the owner of the boat Runa?", table)
    assert answer.rows
    marked = Page(text).marked
    assert marked
    assert "Ines" in "".join(marked)


def test_an_answer_that_found_nothing_says_so() -> None:
    answer, text = asked("What is the price of zinc?", Document(STORY))
    page = Page(text)
    assert answer.status == "nothing_found"
    assert "nothing found" in page.text
    assert "Nothing of the document is quoted." in page.text


def test_of_a_weak_model_it_tells_whose_plan_it_is() -> None:
    model = Scripted(lambda request: "> He sold the boat because the hull was rotten.")
    _, text = asked("Why did Nils sell it?", Document(STORY), model=model, profile="small")
    said = Page(text).text
    assert "it is by rules" in said
