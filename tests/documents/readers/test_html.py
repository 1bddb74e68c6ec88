"""Web pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from pearl.documents.document import load
from pearl.documents.readers import reading
from pearl.documents.readers.html import read, recognises
from pearl.documents.units import record
from pearl.errors import DataError

PAGE = """<!DOCTYPE html>
<html><head><title>Title</title><style>p { color: red }</style></head><body>
<h1>The heading</h1><script>alert("no")</script>
<p>One &amp; <b>two</b>&nbsp;three,
   four.</p>
<table><tr><td>a</td><td>b</td></tr></table>
<ul><li>item</li></ul>
<p style="display: none">hidden</p><!-- comment -->
</body></html>"""


def test_a_page_is_its_text() -> None:
    text = read(PAGE.encode(), "a.html")
    assert "One & two three, four." in text.replace("\xa0", " ")
    for seen in ("The heading", "a\tb", "* item"):
        assert seen in text
    for unseen in ("alert", "color", "hidden", "comment", "<"):
        assert unseen not in text


@pytest.mark.parametrize(
    "head",
    [
        '<meta charset="shift_jis">',
        "<meta http-equiv=Content-Type content='text/html; charset=Shift_JIS'>",
        '<?xml version="1.0" encoding="shift_jis"?><html>',
    ],
)
def test_a_page_declares_its_encoding(head: str) -> None:
    assert read(f"{head}<p>日本".encode("shift_jis"), "a.html") == "日本"


def test_nothing_is_lost_after_a_nul() -> None:
    assert read(b"<p>one</p>\0<p>two</p>", "a.html").split() == ["one", "two"]


def test_the_rows_of_a_table_are_records() -> None:
    rows = [("Ann", "red lamp"), ("Bob", ""), ("", "lamp"), ("Cleo", "")]
    cells = "".join(f"<tr><td>{user}</td><td>{item}</td></tr>" for user, item in rows)
    page = f"<h1>Orders</h1><table><tr><th>User</th><th>Item</th></tr>{cells}</table>"
    pieces = record.split(read(page.encode(), "a.html"))
    assert [tuple(piece.fields.values()) for piece in pieces] == rows


@pytest.mark.parametrize("name", ["a.html", "a.HTM", "a.xhtml", "a.txt", "a"])
def test_a_page_is_recognised_by_its_suffix_or_its_beginning(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(PAGE, encoding="utf-8")
    assert load(path).text.startswith("The heading")


def test_a_page_without_text(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text("<html><script>x</script></html>")
    with pytest.raises(DataError, match="no text"):
        load(path)


def test_what_begins_as_a_page() -> None:
    assert recognises(b"\xef\xbb\xbf\n<?xml version='1.0'?>\n<HTML lang='en'>")
    assert not recognises(b"# About <html>")
    assert not recognises(b"<htmlx>")


def test_merged_cells_keep_columns_aligned() -> None:
    page = (
        "<table><tr><th rowspan=2>item</th><th colspan=2>2008</th><th>2007</th></tr>"
        "<tr><th>Q1</th><th>Q2</th><th>Q1</th></tr>"
        "<tr><td rowspan=2>north</td><td>1</td><td>2</td><td>3</td></tr>"
        "<tr><td colspan=2>4</td><td>5</td></tr></table>"
    )
    rows = [line.split("\t") for line in read(page.encode(), "a.html").splitlines()]
    assert [[cell.strip() for cell in row] for row in rows if any(row)] == [
        ["item", "2008", "2008", "2007"],
        ["item", "Q1", "Q2", "Q1"],
        ["north", "1", "2", "3"],
        ["north", "4", "", "5"],
    ]


@pytest.mark.parametrize("span", ["0", "-1", "x", "", "99999999999999999999", "2.5"])
def test_a_span_may_be_anything(span: str) -> None:
    page = f"<table><tr><td colspan='{span}' rowspan='{span}'>a</td><td>b</td></tr><tr><td>c</td></tr></table>"
    text = read(page.encode(), "a.html")
    assert [text.count(letter) for letter in "bc"] == [1, 1]
    assert text.count("a") <= 2


STRUCK = ("not read: 1 struck text",)
HIDDEN = ("not read: 2 hidden texts (--hidden reads what is hidden)",)
ODD_LIST = (
    "<ol start=4><li>a<li value=7>b</ol><ol reversed type=I><li>c<li>d</ol><ol start=x><li>e</ol>"
)


@pytest.mark.parametrize(
    ("page", "text", "notes"),
    [
        ("<p>310<sup>2</sup>", "310²", ()),
        ("<p>1,250<sup><a href=#n>12</a></sup> m", "1,250¹² m", ()),
        ("<p>10<sup>-6</sup> of CO<sub>2</sub>", "10⁻⁶ of CO₂", ()),
        ("<p>310<sup>1,2</sup>", "310^(1,2)", ()),
        ("<p>310<sup>a</sup> x<sub>i1</sub>", "310^(a) x_(i1)", ()),
        ("<p>the 5<sup>th</sup>, 310<sup>[2]</sup>, 310<sup>*</sup>", "the 5th, 310[2], 310*", ()),
        ("<p>310<span style='Vertical-Align: super; color: red'>2</span>", "310 ²", ()),
        ("<p>310<span style='vertical-align: top'>2</span>", "310 2", ()),
        ("<p><math><msup><mn>10</mn><mn>5</mn></msup><mo>+</mo><mfrac><mn>1</mn><mn>2</mn></mfrac></math>", "10⁵+1/2", ()),
        ("<p>The fee is <s>100</s> 150 EUR.", "The fee is 150 EUR.", STRUCK),
        ("<p>Pets <del>are <s>not</s></del><ins>were</ins> here", "Pets were here", ("not read: 2 struck texts",)),
        ("<p><span style='text-decoration:line-through red'>9</span> 7", "7", STRUCK),
        ("<p><span style='text-decoration:underline'>9</span><s></s> 7", "9 7", ()),
        ("<p hidden>9</p><p style='visibility:hidden'>8</p><template>7</template><ruby>漢<rt>かん</ruby>", "漢", HIDDEN),
        ("<p hidden></p><p style='color:red'>9</p>", "9", ()),
        ("<p>Name: <input value=Ada> <input type=hidden value=x><select><option>A<option selected>B</select>", "Name: Ada B", ()),
        ("<p><input type=checkbox checked>Yes <input type=radio>No", "[x] Yes [ ] No", ()),
        ("<p><select><option>A<option>B</select><select multiple><option>C</select>", "A", ()),
        (ODD_LIST, "4. a 7. b II. c I. d 1. e", ()),
        ("<ol><li data-number=7>a<ul><li data-number=8>b</ul><li>c</ol>", "1. a + b 2. c", ()),
    ],
)  # fmt: skip
def test_marks_struck_text_and_numbers_of_lists(
    page: str, text: str, notes: tuple[str, ...]
) -> None:
    found = read(f"<html><body>{page}".encode(), "a.html")
    assert (" ".join(found.split()), found.notes) == (text, notes)


def test_hidden_text_is_read_on_request() -> None:
    page = b"<html><p hidden>9</p><p style='display:none'>8</p>"
    with reading({"hidden": True}):
        found = read(page, "a.html")
    assert (found.split(), found.notes) == (["9", "8"], ())
