"""What a page says is what the store has, and what is lit is what is quoted, whatever the file is written in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pearl import Pearl, Session, load, over_files
from pearl.view.answer_page import answer_page
from tests.browser.chromium import needed, put
from tests.browser.pages import awaited

if TYPE_CHECKING:
    from tests.browser.conftest import Show

needed()

PARTS = (
    "The mill at {name} was built in 17{n:02d}.",
    "Runa sold the boat {name} to Ines because its hull was rotten.",
    "Nobody at {name} asked what it had cost, and {n} planks were left.",
)
PLAN = '1. ans = FIND_REASON(CTX, "Runa selling the boat") : Find why she sold it\n'

# What is before, within and between the sentences of a file, and how it is written.
ODD: dict[str, tuple[str, str, str, str]] = {
    "plain": ("", "Ada", "\n\n", "utf-8"),
    "byte order mark": ("", "Ada", "\n\n", "utf-8-sig"),
    "utf-16": ("", "Ada", "\n", "utf-16"),
    "line ends of windows": ("", "Ada", "\r\n\r\n", "utf-8"),
    "old line ends": ("", "Ada", "\r", "utf-8"),
    "right to left": ("שלום עולם. ", "עדה", "\n\n", "utf-8"),
    "arabic": ("مرحبا. ", "سفينة", " ", "utf-8"),
    "astral": ("\U0001f6a2 \U0001d4d0. ", "\U0001f6a2\U0001f9d1\u200d\U0001f680", " ", "utf-8"),
    "combining": ("e\u0301a\u0308. ", "A\u030ada", "\n", "utf-8"),
    "one letter for several": ("ﬁ ß ŉ İ. ", "İda", " ", "utf-8"),
    "wide": ("船。", "船の名", "\u3000", "utf-8"),
    "markup": ("<b>&amp;</b> ", "<Ada>&lt;", "\n\n", "utf-8"),
    "blanks": ("\u00a0\u2003 ", "A\u00a0da", "  \t ", "utf-8"),
    "latin": ("Ænes. ", "Åda", "\n\n", "latin-1"),
}


def write(folder: Path) -> None:
    """Twenty files, each another."""
    for number, (name, (before, inner, between, encoding)) in enumerate(ODD.items()):
        text = before + between.join(part.format(name=inner, n=number) for part in PARTS)
        (folder / f"{name}.txt").write_bytes(text.encode(encoding))
    for number in range(len(ODD), 20):
        text = " ".join(part.format(name=f"Ada {number}", n=number) for part in PARTS * number)
        (folder / f"long {number}.txt").write_text(text, "utf-8")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[dict[str, Any], str]]:
    """Each row of a run as the store has it, with its page."""
    folder = tmp_path_factory.mktemp("run")
    write(folder)
    paths = sorted(folder.glob("*.txt"))

    async def run() -> list[tuple[dict[str, Any], str]]:
        async with Pearl(library="seed") as pearl:
            session = Session(pearl, store=folder / "kept")
            done = await session.run(over_files(paths, plan=PLAN))
            found = []
            for row in session.rows(done.id):
                document = load(row["document"])
                found.append((row, answer_page(await pearl.execute(PLAN, document), document)))
            return found

    return awaited(run())


FACTS = """() => Object.fromEntries([...document.querySelectorAll("dl.facts > div")]
    .map(each => [each.querySelector("dt").textContent, each.querySelector("dd").textContent]))"""

LIT = """() => {
    const lit = {};
    for (const mark of document.querySelectorAll(".text mark")) {
        const plain = mark.cloneNode(true);
        const begun = [...plain.querySelectorAll("a.n")].map(a => a.remove() ?? a.textContent);
        lit[begun[0] ?? "?"] = plain.textContent;
    }
    return lit;
}"""
"""Number of each passage → its letters in the document."""

WHOLE = """() => {
    const text = document.querySelector(".text").cloneNode(true);
    text.querySelectorAll("a.n").forEach(a => a.remove());
    return text.textContent;
}"""


def test_the_page_says_what_the_store_has(
    show: Show, results: list[tuple[dict[str, Any], str]]
) -> None:
    assert len(results) == 20
    page = show(results[0][1])
    for row, text in results:
        put(page, text)
        facts = page.evaluate(FACTS)
        usage = row["usage"]
        assert page.locator(".status").inner_text() == row["status"].replace("_", " ")
        assert facts["model"] == row["model"]
        assert (
            facts["tokens in, cached"] == f"{usage['input_tokens']:,}, {usage['cached_tokens']:,}"
        )
        assert facts["tokens out"] == f"{usage['output_tokens']:,}"
        assert page.locator("ol.evidence > li[id]").count() == len(row["evidence"])
        assert page.locator("section.step").count() == len(row["steps"])


def test_what_is_lit_is_what_is_quoted(
    show: Show, results: list[tuple[dict[str, Any], str]]
) -> None:
    n_lit = 0
    page = show(results[0][1])
    for row, text in results:
        put(page, text)
        document = load(row["document"])
        assert page.evaluate(WHOLE) == document.text, row["document"]
        lit = page.evaluate(LIT)
        assert lit == {
            str(number): document.text[each["start"] : each["end"]]
            for number, each in enumerate(row["evidence"], start=1)
        }
        n_lit += len(lit)
    assert n_lit >= len(ODD)
