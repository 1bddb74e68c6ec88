"""Documents: files and strings, kinds, parts, rows, digests."""

from __future__ import annotations

import hashlib
import io
import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.documents import document as reading
from pearl.documents.digest import digest, file_sha256, text_sha256
from pearl.documents.document import (
    AT_ONCE,
    Document,
    DocumentKind,
    from_text,
    join,
    kind_by_name,
    limit_bytes,
    load,
    load_at_once,
    part_spans,
)
from pearl.documents.rows import Row, Rows
from pearl.errors import DataError, Span, UsageError
from pearl.retrieval.corpus import CorpusDocument
from pearl.retrieval.index import Index
from tests.skips import NO_LARGE, needs_pipes


def write(folder: Path, data: bytes | str, name: str = "a.txt") -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def pipe(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


def failure(path: Path | str) -> str:
    """The text of the DataError; two lines at most, which name the path and a mend."""
    with pytest.raises(DataError) as caught:
        load(path)
    text = str(caught.value)
    assert len(text.splitlines()) <= 2
    assert text.startswith("<stdin>: " if path == "-" else f"{path}: ")
    assert "help: " in text
    return text


@pytest.mark.parametrize(
    "data", ["It rained.", "Die Straße ist naß.".encode("latin-1"), b"a\x00b\r\nc"]
)
def test_a_small_plain_text_is_read_at_once(data: bytes | str, tmp_path: Path) -> None:
    path = write(tmp_path, data)
    assert load_at_once(path) == load(path)
    assert load_at_once(path, name="b") == load(path, name="b")


@needs_pipes
def test_slow_files_are_not_read_at_once(tmp_path: Path) -> None:
    page = write(tmp_path, "<!DOCTYPE html><html><body>It rained.</body></html>", "a.html")
    long = write(tmp_path, "x" * (AT_ONCE + 1), "long.txt")
    os.mkfifo(tmp_path / "pipe")  # whoever opened it would wait for ever
    for path in (page, long, tmp_path / "pipe", tmp_path, tmp_path / "none", "a\0b", "-"):
        assert load_at_once(path) is None, path


def test_errors_of_a_small_file_are_raised_at_once(tmp_path: Path) -> None:
    for data in ("", " \n", b"\x00\x01\x02\x03"):
        path = write(tmp_path, data)
        with pytest.raises(DataError) as caught:
            load_at_once(path)
        assert str(caught.value) == failure(path)


def test_a_file_is_a_document_named_by_its_path(tmp_path: Path) -> None:
    path = write(tmp_path, "One.\nTwo.\n")
    assert load(path) == Document("One.\nTwo.\n", str(path))
    assert load(str(path), name="story") == Document("One.\nTwo.\n", "story")


@pytest.mark.parametrize("name", ["a.MARKDOWN", "a.log", "a.tar.gz", ".hidden"])
def test_text_is_kept_as_written(tmp_path: Path, name: str) -> None:
    text = "# Title\n\n*  one*\t<b>two</b>  \n\n\n\u00a0\u2028three\u200b\x7f\x85 e\u0301 ﬁ 10²"
    assert load(write(tmp_path, text, name)).text == text


def test_line_breaks_and_controls() -> None:
    text = from_text("a\r\nb\rc\fd\x00e\x0bf\x1fg\th\n").text
    assert text == "a\nb\nc\nd e f g\th\n"


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_nothing_else_is_altered(text: str) -> None:
    if text.strip():
        assert from_text(text).text == text
        assert Document(text).digest == Document(text).digest


def test_standard_input_is_sniffed(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, b"caf\xc3\xa9\r\n")
    assert load("-") == Document("café\n", "<stdin>")
    pipe(monkeypatch, b"<!doctype html><title>T</title><p>One <b>two</b>")
    assert load("-", name="page").text == "One two"
    pipe(monkeypatch, b"%PDF-1.7 and no more")
    assert "damaged or not a PDF" in failure("-")
    pipe(monkeypatch, b"")
    assert "empty" in failure("-")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b" \n\t\r\n\0\f", "no text"),
        (b"\xef\xbb\xbf", "no text"),
        (b"\x89PNG\r\n\x1a\n" + bytes(20), "the picture cannot be read"),
        (b"PK\3\4\x14\0\0\0\x08\0 some.bin \xff\xfe", "binary"),
        (b"\0\1\2\3\4\5", "binary"),
        ("unmarked".encode("utf-16-le"), "binary"),
        (b"\xef\xbb\xbfabc\xff", "offset 6 is not UTF-8"),
        ("日本語の文章".encode() + b"\xe6", "offset 18 is not UTF-8"),
        ("né à Paris".encode() + b"\xff", "offset 12 is not UTF-8"),
        ("Zoë é\n".encode() + b"caf\xc3", "offset 11 is not UTF-8"),  # no mixture with cp1252
        ("é\né ".encode() + b"caf\xe9 x", "offset 9 is not UTF-8"),
        ("é ".encode() + b"caf\xe9 x", "offset 6 is not UTF-8"),  # as much is whole as is broken
        (b"caf\xe9 au lait, and so on and on\0", "binary"),
        (b"\xff\xfea\0b", "offset 4 is not UTF-16-LE"),
        (b"\xff\xfe\x00\xd8a\0", "offset 2 is not UTF-16-LE"),
        (b"abc \xed\xa0\x80 def", "offset 4 is not UTF-8"),
        (bytes(range(128, 256)) * 3, "encoding of the text cannot be detected"),
    ],
)
def test_bytes_that_are_not_text_are_refused(tmp_path: Path, data: bytes, words: str) -> None:
    assert words in failure(write(tmp_path, data))


def test_strings_that_are_no_document() -> None:
    with pytest.raises(DataError, match=r"^row 3: character 2 is a lone surrogate \(U\+D800\)"):
        from_text("ab\ud800", "row 3")
    for text in ("", " \n", "\0"):
        with pytest.raises(DataError, match="no text"):
            from_text(text)


def test_of_readers_whose_files_begin_alike_the_name_decides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begins = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # Outlook's messages begin so, too
    drawing = SimpleNamespace(
        SUFFIXES=(".vsd",), BEGINS=(begins,), IS_BOUNDED=True, read=lambda data, path: "a drawing"
    )
    readers = {**reading._readers(), "visio": drawing}
    monkeypatch.setattr(reading, "_readers", lambda: readers)
    for name in ("_readers_by_suffix", "_recognisers"):
        monkeypatch.setattr(reading, name, getattr(reading, name).__wrapped__)
    assert reading.from_bytes(begins, "a.vsd").text == "a drawing"
    with pytest.raises(DataError, match="program whose files cannot be read"):
        reading.from_bytes(begins, "a.pub")


def test_paths_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no such file" in failure(tmp_path / "missing.txt")
    assert "folder" in failure(tmp_path)
    assert "cannot be read" in failure(write(tmp_path, "text") / "below.txt")
    assert "cannot be read" in failure("x" * 5000)
    with pytest.raises(DataError, match=r"^'a\\x00b': no such file"):
        load("a\0b")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pearl.documents.document.open", refuse, raising=False)
    assert "may not be read" in failure("a.txt")


def test_the_limit_holds_before_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert limit_bytes() == 64_000_000
    monkeypatch.setenv("PEARL_MAX_DOCUMENT_MB", "0.00001")
    assert load(write(tmp_path, "0123456789")).text == "0123456789"
    path = write(tmp_path, "0123456789+")
    assert "larger than the limit of 1e-05 MB" in failure(path)
    pipe(monkeypatch, b"0123456789+")
    assert "PEARL_MAX_DOCUMENT_MB" in failure("-")


@needs_pipes
def test_the_limit_holds_for_a_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEARL_MAX_DOCUMENT_MB", "0.001")
    path = tmp_path / "pipe"
    os.mkfifo(path)
    for n_bytes in (1000, 1001):
        writer = threading.Thread(target=path.write_bytes, args=(b"a" * n_bytes,))
        writer.start()
        if n_bytes == 1000:
            assert load(path).text == "a" * 1000
        else:
            assert "larger than the limit" in failure(path)
        writer.join()


@pytest.mark.parametrize(
    ("name", "value", "unit"),
    [
        *(
            ("PEARL_MAX_DOCUMENT_MB", value, "megabytes")
            for value in ("many", "0", "-1", "nan", "inf")
        ),
        ("PEARL_MAX_READER_MB", "0", "megabytes"),
        ("PEARL_MAX_READER_SECONDS", "0", "seconds"),
    ],
)
def test_an_invalid_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, unit: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=rf"^{name}={value}: not a number of {unit}\n"):
        load(write(tmp_path, "<html>text"))


def test_plain_text_starts_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("subprocess.Popen")
    for data in (b"text", "caf\xe9".encode("cp1252")):
        assert load(write(tmp_path, data)).text


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.txt"
    with path.open("wb") as file:
        file.truncate(10**12)  # sparse
    assert "larger than the limit of 64 MB" in failure(path)


def test_a_name_of_several_lines_is_one_heading() -> None:
    joined = join([Document("one", "a\n\n# b"), Document("two", "b")])
    assert joined.text == "# a # b\n\none\n\n# b\n\ntwo"
    spans = [span for _, span in part_spans(joined.text, joined.parts)]
    assert [joined.text[span.start : span.end] for span in spans] == ["one", "two"]


def test_join_puts_documents_under_headings_and_finds_them_again() -> None:
    one, two = from_text("Alpha.\n", "a.txt"), from_text("Beta.", "b.txt")
    both = join([one, two], "both")
    assert both.text == "# a.txt\n\nAlpha.\n\n\n# b.txt\n\nBeta."
    assert both.locate(both.text.index("Beta") + 2) == ("b.txt", 2)
    nested = join([from_text("Zero.", "z"), both], "all")
    for name, document in (("a.txt", one), ("b.txt", two)):
        assert nested.locate(nested.text.index(document.text) + 1) == (name, 1)
    with pytest.raises(DataError, match="no document to join"):
        join([])
    assert one.locate(3) == ("a.txt", 3)


CSV = "City,Fee\nHaifa,120\nEilat,90\n"


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("fees.csv", CSV, "table"),
        ("fees.TSV", CSV.replace(",", "\t"), "table"),
        ("fees.jsonl", '{"City": "Haifa"}\n{"City": "Eilat"}\n', "table"),
        ("fees.json", '[{"City": "Haifa"},\n {"City": "Eilat"}]', "table"),
        ("settings.json", '{"City": "Haifa", "Fee": 3}', "document"),
        ("story.csv", "It rained all day. Ada slept.\n\nThen she sold the boat.\n", "document"),
        ("report.md", "# Fees\n\n| City | Fee |\n|---|---|\n| Haifa | 120 |\n", "document"),
        ("page.html", "<table><tr><th>City</th></tr><tr><td>Haifa</td></tr></table>", "document"),
        ("notes.txt", CSV, "document"),
        ("long.csv", "City,Note\n" + 'Haifa,"a, b"\n' * 5_000, "table"),
    ],
)
def test_a_file_of_records_is_a_table_but_a_text_with_a_table_is_not(
    tmp_path: Path, name: str, text: str, kind: DocumentKind
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert load(path).kind == load(path, name="row 7").kind == kind


def test_workbooks_and_parquet_are_tables_whatever_they_are_called(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason=NO_LARGE)
    parquet = pytest.importorskip("pyarrow.parquet", reason=NO_LARGE)
    path = tmp_path / "fees.txt"
    parquet.write_table(pyarrow.table({"City": ["Haifa", "Eilat"]}), path)
    assert load(path).kind == "table"
    assert kind_by_name("fees.xlsx") == kind_by_name("fees.parquet") == "table"


def test_the_kind_of_joined_documents_and_of_an_index() -> None:
    table, text = from_text(CSV, "a.csv"), from_text("It rained.", "b.txt")
    assert join([table, from_text(CSV, "c.csv")]).kind == "table"
    assert join([table, text]).kind == "document"
    assert Index.build([CorpusDocument("a", "one")]).document().kind == "corpus"


PARTS = st.lists(st.text(st.characters(codec=None), max_size=4) | st.binary(max_size=4), max_size=4)


def test_texts_and_files_have_the_sha256_of_their_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("é\n".encode())
    assert text_sha256("é\n") == file_sha256(path) == hashlib.sha256(b"\xc3\xa9\n").hexdigest()
    assert len(text_sha256("\ud800")) == 64


@given(PARTS, PARTS)
def test_other_parts_have_another_digest(one: list[str | bytes], other: list[str | bytes]) -> None:
    def data(parts: list[str | bytes]) -> list[bytes]:
        return [
            part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
            for part in parts
        ]

    assert (digest(one) == digest(other)) == (data(one) == data(other))


def test_the_repr_of_many_rows_is_short() -> None:
    """`asyncio.run` makes the text of what the main task returns: seconds for 10,000 rows in full."""
    rows = Rows(tuple(Row(str(i)) for i in range(10_000)), column="kind")
    assert repr(rows) == "Rows(10,000 rows, column='kind')"


def test_rows_in_another_order_than_the_documents_have_gaps_between_them() -> None:
    text = "One.\nTwo."
    one, two = (Row(t, {}, (Span(i, i + 4),), t) for i, t in ((0, "One."), (5, "Two.")))
    assert Rows((one, two)).as_context() == text
    assert Rows((two, one)).as_context() == "Two.\n[...]\nOne."
