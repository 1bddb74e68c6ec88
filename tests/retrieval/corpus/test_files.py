"""Which files a corpus has, in which order, and what they are called."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pearl.errors import DataError, UsageError
from pearl.retrieval.corpus.sources import find_files


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
def test_rows_have_short_names_where_they_are_the_corpus() -> None:
    (alone,) = find_files(["docs/rows.jsonl"]).files
    assert alone.is_alone
    assert not any(file.is_alone for file in find_files(["docs/rows.jsonl", "more"]).files)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("named", "error", "told"),
    [
        ([], UsageError, "missing corpus"),
        (["https://example.org/a"], UsageError, "is an address"),
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
    with pytest.raises(DataError, match="it has 1 file outside of it, behind links"):
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
