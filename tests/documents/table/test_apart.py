"""Tables apart from text: nothing is lost or said twice, rows have their header, labels are ours."""

from __future__ import annotations

import random
import re
from itertools import count, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.documents.document import Document, join, load
from pearl.documents.table.apart import GAP, TABLES, TEXT, TablesApart
from pearl.errors import Span
from tests.examples import examples
from tests.root import ROOT

WORD = re.compile(r"w\d+")
TABLE = re.compile(r"\[table \d+(?: of [^\]:]*)?(?:: in \w+)?\]")


def n_words(text: str) -> int:
    return len(text.split())


def words_of(text: str) -> list[str]:
    return WORD.findall(text)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Prose, captions and tables of one form; no word occurs twice."""
    numbers = count()

    def word() -> str:
        return f"w{next(numbers)}"

    form = draw(st.sampled_from(["markdown", "csv", "tsv"]))
    blocks: list[str] = []
    for kind in draw(st.lists(st.sampled_from(["prose", "table", "caption"]), max_size=8)):
        if kind == "prose":
            n_lines = draw(st.integers(1, 4))
            lines = [" ".join(word() for _ in range(draw(st.integers(5, 9)))) for _ in range(n_lines)]  # fmt: skip
            blocks.append("\n".join(lines) + ".")
            continue
        n_columns, n_rows = draw(st.integers(2, 4)), draw(st.integers(2, 6))
        rows = [[word() for _ in range(n_columns)] for _ in range(n_rows + 1)]
        if form == "markdown":
            rows.insert(1, ["---"] * n_columns)
        table = "\n".join(
            f"| {' | '.join(row)} |" if form == "markdown" else {"csv": ",", "tsv": "\t"}[form].join(row)
            for row in rows
        )  # fmt: skip
        blocks.append(f"{word()} {word()}, in millions:\n\n{table}" if kind == "caption" else table)
    return "\n\n".join([f"{word()} begins.", *blocks, f"That is all of {word()}.\n"])


@examples(200)
@given(text=documents(), size=st.integers(20, 200))
def test_every_word_is_shown_once_and_in_order(text: str, size: int) -> None:
    apart = TablesApart(Document(text))
    tables = list(apart.tables(Span(0, len(text))))
    whole = apart.whole
    assert sorted(words_of(whole)) == sorted(words_of(text))
    if not tables:
        assert whole == text
        return
    assert whole.startswith(f"{TABLES}\n\n[table 1")
    of_tables, _, of_text = whole.partition(f"\n\n{TEXT}\n\n")
    order = {word: i for i, word in enumerate(words_of(text))}
    for part in (of_tables, of_text):
        places = [order[word] for word in words_of(part)]
        assert places == sorted(places)
    assert [t.mark for t in tables] == [line for line in of_text.split("\n") if TABLE.fullmatch(line)]  # fmt: skip
    heads = {word for table in tables for word in words_of(table.head)}
    parts = apart.parts(size, n_words)
    said = [word for part in parts for word in words_of(part)]
    assert sorted(set(said)) == sorted(words_of(text))
    assert [w for w in sorted(said) if w not in heads] == [w for w in sorted(words_of(text)) if w not in heads]  # fmt: skip
    for part in parts:
        for table in tables:
            assert not any(line in part for line in table.lines) or table.head in part
        is_one_row = sum(line in part for table in tables for line in table.lines) <= 1
        assert n_words(part) <= size or is_one_row


@examples(100)
@given(text=documents(), seed=st.randoms())
def test_passages_show_the_heads_of_their_tables_and_mark_gaps(
    text: str, seed: random.Random
) -> None:
    apart = TablesApart(Document(text))
    atoms = apart.atoms(10, n_words)
    assert [a.span.start for a in atoms[1:]] == [a.span.end for a in atoms[:-1]]
    assert (atoms[0].span.start, atoms[-1].span.end) == (0, len(text))
    said = [atom for atom in atoms if text[atom.span.start : atom.span.end].strip()]
    chosen = sorted(seed.sample(said, seed.randint(1, len(said))))
    shown = apart.show([atom.span for atom in chosen])
    for table in apart.tables(Span(0, len(text))):
        rows = [i for i, (span, _) in enumerate(table.rows) if any(a.span.start <= span.start < a.span.end for a in chosen)]  # fmt: skip
        assert [i for i, line in enumerate(table.lines) if line in shown] == rows
        assert (table.head in shown) == bool(rows)
    numbers = [atoms.index(atom) for atom in chosen]
    has_prose = any(not any(apart.tables(atom.span)) for atom in chosen)
    if has_prose and any(set(said) & set(atoms[i + 1 : j]) for i, j in pairwise(numbers)):
        assert GAP in shown.split("\n")
    if all(j == i + 1 for i, j in pairwise(numbers)):
        assert GAP not in shown


@pytest.mark.parametrize("name", ["story.txt", "consultation.txt"])
def test_a_document_without_tables_is_as_it_was(name: str) -> None:
    document = load(ROOT / "pearl" / "documents" / "demo" / name)
    assert TablesApart(document).whole is document.text


def test_records_with_names_beside_values_are_not_tables() -> None:
    lines = "\n".join(f"Date: Feb {i:02}, 2023 || User: {i} || Text: no | yes" for i in range(1, 9))
    assert TablesApart(Document(lines)).whole == lines


def test_a_line_of_the_document_that_looks_like_a_label_is_escaped() -> None:
    text = (
        "[text]\n\nThe real text.\n\n[ Table 1 ]\n\n[TABLES]\n\n［text］\n\nAs [table 1] shows, [text] is said.\n\n"
        "[table 2]\n\n| a | b |\n|---|---|\n| [text] | 1 |\n"
    )
    whole = TablesApart(Document(text)).whole
    labels = [line for line in whole.split("\n") if re.fullmatch(r"\s*[\[［].*[\]］]\s*", line)]
    assert labels == [TABLES, "[table 1]", TEXT, "[table 1]"]
    assert "\\[ Table 1 ]" in whole
    assert "As [table 1] shows, [text] is said." in whole


def test_a_scale_outside_the_caption_is_in_the_label() -> None:
    rows = "| item | 2008 |\n|---|---|\n| sales | 5 |\n"
    sentence = f"All amounts are in millions.\n\n{rows}"
    assert "[table 1: in millions]\n\n| item | 2008 |" in TablesApart(Document(sentence)).whole
    caption = f"Sales, in millions:\n\n{rows}"
    assert "[table 1]\n\nSales, in millions:\n\n| item |" in TablesApart(Document(caption)).whole


def test_the_last_line_of_a_paragraph_stays_with_it() -> None:
    text = "Sales and costs\nof the last year\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    assert TablesApart(Document(text)).whole.endswith(
        "[text]\n\nSales and costs\nof the last year\n\n[table 1]"
    )


def test_labels_of_joined_files_name_the_file() -> None:
    names = ("a].csv", "b.txt", "c.csv")
    one, two = "id,x\n1,2\n3,4", "Hello.\n\nid,x\n5,6\n7,8"
    both = join([Document(t, n) for n, t in zip(names, (one, "Plain.", two), strict=True)], "all")
    whole = TablesApart(both).whole
    assert "[table 1 of a).csv]\n\n| id | x |" in whole
    assert "[table 1 of c.csv]\n\n| id | x |\n| --- | --- |\n| 5 | 6 |" in whole
    assert whole.index("# a].csv") < whole.index("# b.txt") < whole.index("Hello.")


def test_text_of_a_joined_file_stands_below_its_name() -> None:
    both = join([Document("id,x\n1,2\n3,4\n\nHello.", "a.txt"), Document("Bye.", "b.txt")], "all")
    at = [both.text.index(word) for word in ("1,2", "Hello", "Bye")]
    shown = TablesApart(both).show([Span(i, i + 4) for i in at], is_named=True)
    assert shown.endswith("[text]\n\n[table 1 of a.txt]\n\n# a.txt\n\nHell\n\n# b.txt\n\nBye.")
    assert TablesApart(both).show([Span(at[2], at[2] + 4)], is_named=True) == (
        "[text]\n\n# b.txt\n\nBye."
    )


def test_a_label_divided_by_two_passages_is_escaped() -> None:
    text = "One.\n\n[ text ]\n\nid,x\n1,2\n3,4\n"
    at = text.index("text ]")
    spans = [Span(0, at), Span(at, len(text))]
    assert "\n\\[ text ]\n" in TablesApart(Document(text)).show(spans)


def test_prose_in_cells_stays_in_the_text() -> None:
    letter = "He was seen again and went home with his tablets. " * 50
    text = f"id,letter\n1,{letter}\n2,{letter}\n"
    assert TablesApart(Document(text)).whole == text


def test_a_header_over_a_column_of_signs_is_kept() -> None:
    text = "Item\tCurrency\tAmount\nsales\t$\t5\ncosts\t$\t4\n"
    assert "| Item | Currency | Amount |" in TablesApart(Document(text)).whole
