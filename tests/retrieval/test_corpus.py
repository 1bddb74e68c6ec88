"""Files of a corpus, and the documents in them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pearl.errors import DataError, UsageError
from pearl.retrieval.corpus import CorpusDocument, New, find_files, read_source
from tests.skips import NO_LARGE


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in (
        "docs/b.txt", "docs/a/z.md", "docs/a.html", "docs/rows.jsonl", "docs/settings.json", "docs/x.exe",
        "docs/.hidden.txt", "docs/.pearl-index/c.txt", "more/b.txt",
        "others/x.exe",
    ):  # fmt: skip
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("text")
    (tmp_path / "docs" / "loop").symlink_to(tmp_path / "docs")
    (tmp_path / "empty").mkdir()
    return tmp_path


def labels(*named: str) -> list[tuple[str, bool]]:
    return [(file.label, file.has_rows) for file in find_files(named).files]


@pytest.mark.usefixtures("folder")
def test_files_of_a_folder_are_labelled_by_their_paths_in_it() -> None:
    found = find_files(["docs"])
    assert [(f.label, f.has_rows) for f in found.files] == [
        ("a/z.md", False),
        ("a.html", False),
        ("b.txt", False),
        ("rows.jsonl", True),
    ]
    assert found.n_other == 2
    assert not any(file.is_alone for file in found.files)


@pytest.mark.usefixtures("folder")
def test_several_paths_are_labelled_as_written() -> None:
    assert labels("more", "docs/b.txt") == [("more/b.txt", False), ("docs/b.txt", False)]
    assert labels("docs/*.txt") == [("docs/b.txt", False)]
    assert labels("docs/b.txt", "docs/b.txt", "docs/[ab].*") == [
        ("docs/b.txt", False),
        ("docs/a.html", False),
    ]
    assert labels("docs/settings.json") == [("settings.json", True)]
    assert labels("docs/x.exe") == [("x.exe", False)]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("named", "error", "told"),
    [
        ([], UsageError, "missing corpus"),
        (["https://example.org/a"], UsageError, "is an address"),
        (["git+ssh://example.org/a"], UsageError, "is an address"),
        (["nowhere"], DataError, "no such file or folder"),
        (["a\0b"], DataError, "no such file or folder"),
        (["*.pdf"], DataError, "no file matches"),
        (["empty"], DataError, "it is empty"),
        (["others"], DataError, "it has 1 file of other kinds"),
        (["docs/.pearl-index/../../empty"], DataError, "the folder has no documents"),
    ],
)
def test_invalid_corpora_are_refused(named: list[str], error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        find_files(named)


def test_a_file_name_that_is_not_utf_8_is_escaped(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/caf\xe9.txt"
    try:
        Path(os.fsdecode(path)).write_text("x")
    except OSError:  # macOS has no such names
        return
    (file,) = find_files([tmp_path]).files
    assert file.label == "caf\\xe9.txt"
    assert Path(file.path).read_text() == "x"


def test_links_that_lead_out_of_a_folder_are_left_out(folder: Path) -> None:
    (folder / "docs" / "secret.txt").symlink_to(folder / "more" / "b.txt")
    (folder / "docs" / "again.txt").symlink_to("b.txt")
    found = find_files(["docs"])
    assert len(found.notes) == 1
    assert "again.txt" in {file.label for file in found.files}
    assert "secret.txt" not in {file.label for file in found.files}
    assert find_files(["docs/secret.txt"]).notes == ()
    (folder / "empty" / "b.txt").symlink_to(folder / "more" / "b.txt")
    with pytest.raises(DataError, match="it has 1 file outside of it, reached by links"):
        find_files(["empty"])


def test_a_folder_in_it_that_is_gone_is_left_out_with_its_reason(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = os.scandir

    def gone(path: str) -> object:
        if path.endswith("docs/a"):
            raise FileNotFoundError(2, "No such file or directory", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", gone)
    assert [file.label for file in find_files(["docs"]).files] == ["a", "a.html", "b.txt", "rows.jsonl"]  # fmt: skip
    with pytest.raises(DataError, match="the folder cannot be read"):
        find_files([str(folder / "docs" / "a")])


@pytest.mark.usefixtures("folder")
def test_pictures_are_documents_of_a_folder_without_others() -> None:
    Path("scans").mkdir()
    Path("scans/a.png").touch()
    Path("scans/names.csv").touch()
    assert labels("scans") == [("a.png", False), ("names.csv", True)]
    Path("scans/b.pdf").touch()
    assert labels("scans") == [("b.pdf", False), ("names.csv", True)]
    assert len(find_files(["scans"]).notes) == 1
    assert labels("scans/*.png") == [("scans/a.png", False)]


def entries(path: Path, known: dict[bytes, int] | None = None) -> list[Any]:
    (file,) = find_files([path]).files
    return list(read_source(file, known or {}))


def documents(path: Path) -> list[CorpusDocument]:
    return [entry.document for entry in entries(path) if isinstance(entry, New)]


def jsonl(path: Path, *every: Any) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in every), "utf-8")
    return path


def test_columns_have_their_usual_names(tmp_path: Path) -> None:
    path = jsonl(
        tmp_path / "a.jsonl",
        {"id": 7, "text": "Salt.", "year": 2005, "ok": True, "share": 0.5, "none": None, "l": [1]},
        {"_id": "x", "contents": "Lake.", "title": "Water"},
        {"document": "Iron rusts.", "title": "Iron"},
        {"id": " ", "_id": "y", "text": "", "document": "Sea."},
    )
    assert [(d.name, d.text, d.metadata) for d in documents(path)] == [
        ("7", "Salt.", {"year": "2005", "ok": "true", "share": "0.5"}),
        ("x", "Water\n\nLake.", {"title": "Water"}),
        ("3", "Iron rusts.", {"title": "Iron"}),
        ("y", "Sea.", {}),
    ]
    assert all(document.is_row for document in documents(path))
    assert (
        documents(tmp_path)[0].name == "a.jsonl#7"
    )  # with the file, of which there may be several


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".parquet"])
def test_other_files_of_rows(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    match suffix:
        case ".json":
            path.write_text(json.dumps([{"id": "a", "text": "Salt", "n": "1"}, {"text": "Sea"}]))
        case ".parquet":
            pa = pytest.importorskip("pyarrow", reason=NO_LARGE)
            from pyarrow import parquet

            table = pa.table({"id": ["a", None], "text": ["Salt", "Sea"], "n": ["1", None]})
            parquet.write_table(table, path)
        case _:
            mark = "," if suffix == ".csv" else "\t"
            lines = [["id", "text", "n"], ["a", "Salt", "1"], ["", "Sea", ""]]
            path.write_text("\n".join(mark.join(line) for line in lines))
    first, second = documents(path)
    assert (first.name, first.text, first.metadata) == ("a", "Salt", {"n": "1"})
    assert (second.text, second.metadata) == ("Sea", {})
    assert second.name == ("3" if suffix in (".csv", ".tsv") else "1" if suffix == ".json" else "2")


def test_a_table_without_a_text_is_read_cell_by_cell(tmp_path: Path) -> None:
    path = tmp_path / "sales.csv"
    path.write_text("year,city,sales\n2005,Oslo,7\n2006,,9\n,,\n")
    found = documents(path)
    assert [(d.name, d.text) for d in found] == [
        ("2", "year: 2005\ncity: Oslo\nsales: 7"),
        ("3", "year: 2006\nsales: 9"),
    ]
    assert found[0].metadata == {"year": "2005", "city": "Oslo", "sales": "7"}


def test_invalid_rows_are_left_out_with_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"text": "Salt"}\n{"id": "b"}\n{"text": 3}\nno\n{"id": [], "text": "x"}\n\n[1]\n'
    )
    found = entries(path)
    assert [type(entry) for entry in found] == [New] + [DataError] * 5
    lines = [entry.line for entry in found[1:]]
    assert lines == [2, 3, 4, 5, 7]
    assert "the row has no text" in str(found[1])


def test_a_file_is_a_document_with_its_pages(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One.\fTwo.")
    (found,) = documents(tmp_path / "a.txt")
    assert found == CorpusDocument("a.txt", "One.\nTwo.", {}, (("1", 0), ("2", 5)))
    (entry,) = entries(tmp_path / "a.txt")
    assert entries(tmp_path / "a.txt", {entry.digest: 3}) == [3]


@pytest.mark.parametrize(
    ("name", "data", "told"), [("a.txt", b" \n", r"a\.txt"), ("a.jsonl", b"\n", "no rows")]
)
def test_a_file_without_text_is_an_error(tmp_path: Path, name: str, data: bytes, told: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=told):
        entries(tmp_path / name)
