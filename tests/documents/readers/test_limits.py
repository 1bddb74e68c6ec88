"""Small files that take much: within the limits, and never cut in silence."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import docx
import pytest

from pearl.documents import confinement
from pearl.documents.document import load, read_as
from pearl.errors import DataError
from tests.documents.readers.test_pdf import make_pdf

WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'

limited = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the limit of memory is not enforced here"
)


def make_docx(body: str, before: str = "") -> bytes:
    """A Word file with this XML in its body; `before` stands before the root."""
    empty, made = io.BytesIO(), io.BytesIO()
    docx.Document().save(empty)
    with zipfile.ZipFile(empty) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            xml = f"{before}<w:document {WORD}><w:body>{body}</w:body></w:document>"
            new.writestr(name, xml if name == "word/document.xml" else old.read(name))
    return made.getvalue()


def sharing_pdf(n_pages: int) -> bytes:
    """A PDF whose pages all show the stream of the first."""
    data = make_pdf([["word " * 20] * 50] + [[]] * (n_pages - 1))
    for page in range(1, n_pages):  # as long as what it replaces, so that offsets stay
        number = b"%d" % (5 + 2 * page)
        data = data.replace(
            b"/Contents %s 0 R" % number, b"/Contents 5 0 R".ljust(14 + len(number))
        )
    return data


def bombs() -> dict[str, bytes]:
    """Files by their names, each small and large when it is unpacked or laid out."""
    return {
        # A column is as wide as its widest cell in every row.
        "wide.html": b"<table><tr><td>" + b"x" * 60_000 + b"<td>y" + b"<tr><td>a<td>b" * 5_000,
        # Each line is indented by as many blanks as it is deep.
        "indented.html": b"<div>" * 2_000 + b"<p>a" * 60_000,
        "elements.docx": make_docx("<w:p/>" * 1_500_000),
        "table.docx": make_docx(f"<w:tbl>{'<w:tr><w:tc/></w:tr>' * 300_000}</w:tbl>"),
    }


SCRIPT = """
import json, re, resource, sys
from pathlib import Path
from pearl.errors import DataError
from pearl.documents.document import load
told = {}
for path in sys.argv[1:]:
    try:
        told[path] = "read: %d" % len(load(path).text)
    except DataError as error:
        told[path] = str(error)
children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
own = int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])
print(json.dumps([told, children // 1000, own // 1000]))
"""


@pytest.mark.slow
@limited
def test_files_that_take_much_memory_are_refused_by_their_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = bombs()
    for name, data in given.items():
        (tmp_path / name).write_bytes(data)
        assert len(data) < 1_000_000
    monkeypatch.setenv("PEARL_MAX_READER_MB", "120")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *(str(tmp_path / name) for name in given)],
        capture_output=True,
        text=True,
        check=True,
    )
    told, children_mb, own_mb = json.loads(done.stdout)
    for name in given:
        assert "exceeds the limit of 120 MB of memory" in told[str(tmp_path / name)]
    assert children_mb <= 125
    assert own_mb <= 125


@pytest.mark.parametrize("depth", [260, 1_000, 2_000])
def test_text_after_deep_nesting_is_read(depth: int) -> None:
    page = "<div>" * depth + "inside" + "</div>" * depth + "<p>rest"
    assert read_as("html", page.encode(), "a.html").split() == ["inside", "rest"]


def test_a_page_that_the_parser_abandons_is_refused() -> None:
    page = b"<p>begin" + b"<div>" * 2_100 + b"inside" + b"</div>" * 2_100 + b"<p>rest"
    with pytest.raises(DataError, match=r"cannot be read to its end: Excessive depth .* 2048\n"):
        read_as("html", page, "a.html")


@pytest.mark.slow
def test_a_long_run_of_text_is_whole() -> None:
    page = (
        b"<p>" + b"x" * 10_500_000 + b"<p>rest"
    )  # libxml2 stops at 10,000,000 if not told otherwise
    assert read_as("html", page, "a.html").endswith("x\n\nrest")


@pytest.mark.skipif(confinement.resource is None, reason="no module resource")
@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("blanks.html", b"<pre>a" + b" " * 300_000 + b"b</pre>", None),
        ("declared.html", b"<html><p>a" + b"<?xml " * 100_000, None),
        ("cell.docx", make_docx(
            '<w:tbl><w:tr><w:tc><w:p><w:r><w:t xml:space="preserve">a'
            + " " * 300_000 + "b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
        ), None),
        ("names.html", b"<p " + b"".join(b"a%d " % i for i in range(200_000)) + b">a", "10,000 attributes"),
        ("values.html", b"<p " + b"".join(b"a%d='>'" % i for i in range(200_000)) + b">a", "10,000 attributes"),
        ("slashes.html", b"<p" + b"".join(b"/a%d" % i for i in range(200_000)) + b">a", "10,000 attributes"),
        ("quotes.html", b"<p \" " + b"".join(b"a%d " % i for i in range(200_000)) + b">a", "10,000 attributes"),
    ],
)  # fmt: skip
def test_no_small_file_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, data: bytes, told: str | None
) -> None:
    monkeypatch.setenv("PEARL_MAX_READER_SECONDS", "10")
    path = tmp_path / name
    path.write_bytes(data)
    if told is None:
        assert load(path).text
    else:
        with pytest.raises(DataError, match=told):
            load(path)


@pytest.mark.parametrize("length", ["100000em", "99999999px", f"{'9' * 400}em", "-100000em"])
def test_lengths_of_a_page_are_bounded(length: str) -> None:
    style = f"padding-left:{length};margin-top:{length};margin-bottom:{length}"
    page = f"<p>one<div style='{style}'>" + "<p>two" * 100 + "</div><p>three"
    text = read_as("html", page.encode(), "a.html")
    assert text.split() == ["one", *["two"] * 100, "three"]
    assert len(text) < 10_000


def test_an_indent_that_a_page_asks_for_is_kept() -> None:
    text = read_as("html", b"<p>a<p style='padding-left: 4em'>b", "a.html")
    assert text == "a\n\n    b"


@pytest.mark.parametrize("n_pages", [2, 30])
def test_pages_may_share_a_stream(n_pages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEARL_MAX_DOCUMENT_MB", "0.05")
    data = sharing_pdf(n_pages)
    if n_pages == 2:
        first, second = read_as("pdf", data, "a.pdf").split("\n\f")
        assert first == second
        assert first.startswith("word word")
        return
    with pytest.raises(DataError, match=r"text is longer than the limit of 0\.05 MB"):
        read_as("pdf", data, "a.pdf")


ENTITIES = (
    '<!DOCTYPE w:document [<!ENTITY a "aaaaaaaaaa">'
    + "".join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    + "]>"
)


@pytest.mark.parametrize("before", ['<!DOCTYPE w:document [<!ENTITY i "lost">]>', ENTITIES])
def test_entities_of_a_word_file_are_refused(before: str) -> None:
    data = make_docx("<w:p><w:r><w:t>before &i; after</w:t></w:r></w:p>", before)
    with pytest.raises(DataError, match="declares XML entities"):
        read_as("word", data, "a.docx")


def test_entities_of_a_page_stay_as_written() -> None:
    text = read_as("html", f"{ENTITIES}<p>before &i; after".encode(), "a.html")
    assert "before &i; after" in text
    assert len(text) < 2_000


@pytest.mark.slow
@pytest.mark.skipif(confinement.resource is None, reason="no module resource")
def test_the_limit_of_time_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEARL_MAX_READER_SECONDS", "1")
    path = tmp_path / "a.html"
    path.write_bytes(b"<p><i>a</i> b</p>" * 1_000_000)
    with pytest.raises(DataError, match=r"a\.html: reading it exceeds the limit of 1 s\n"):
        load(path)
