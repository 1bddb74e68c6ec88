"""Which file is read for a record: only what lies where it may, and surely the right one if it is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from pearl import Document
from pearl.trace import RunStarted
from pearl.view.sources import ResultRecord, with_document

TEXT = "Nils sold the boat."


def record(name: object, text: str | None = None) -> ResultRecord:
    started = () if text is None else (RunStarted(
        question="Why?", plan="", method="plan", document=str(name), model="m", window=None,
        document_sha256=Document(text).digest, n_characters=len(text), n_document_tokens=None,
        token_count="estimate",
    ),)  # fmt: skip
    return ResultRecord("a", {"document": name}, started)


@pytest.mark.parametrize("name", ["story.txt", "deep/story.txt", "/elsewhere/of/them/story.txt"])
def test_it_is_found_by_its_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "deep").mkdir()
    for path in ("story.txt", "deep/story.txt"):
        (tmp_path / path).write_text(TEXT)
    found = with_document(record(name, TEXT), [tmp_path]).document
    assert found is not None
    assert (found.text, found.name) == (TEXT, name)


def test_nothing_outside_of_the_folders_is_read(tmp_path: Path) -> None:
    inside = tmp_path / "results"
    inside.mkdir()
    (tmp_path / "secret.txt").write_text(TEXT)
    (inside / "link.txt").symlink_to(tmp_path / "secret.txt")
    for name in ("../secret.txt", str(tmp_path / "secret.txt"), "link.txt", ".", "", 3, None, "\0"):
        assert with_document(record(name), [inside]).document is None, name


def test_the_one_that_was_read_is_preferred_and_another_is_better_than_none(tmp_path: Path) -> None:
    now, then = tmp_path / "now", tmp_path / "then"
    for folder, text in ((now, "changed"), (then, TEXT)):
        folder.mkdir()
        (folder / "story.txt").write_text(text)
    both = with_document(record("story.txt", TEXT), [now, then]).document
    one = with_document(record("story.txt", TEXT), [now]).document
    assert both is not None
    assert both.text == TEXT
    assert one is not None
    assert one.text == "changed"


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "story.txt").write_text("  ")
    found = with_document(record("story.txt"), [tmp_path])
    assert found.document is None
    assert "The document cannot be read" in found.problems[0]
