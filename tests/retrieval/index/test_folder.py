"""An index in a folder: damage is detected, and the index is built again."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from pearl.errors import StoreError
from pearl.plugins import version
from pearl.retrieval.corpus import Cutting
from pearl.retrieval.index import Index, updating
from tests.retrieval.index.corpora import assert_same, write

FILES = {"a.txt": "salt lake\n\niron", "b.txt": "salt é", "t.md": "|x|y|\n|-|-|\n|1|2|\n|3|4|"}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    write(tmp_path / "corpus", FILES)
    index = Index.open(tmp_path / "corpus", cutting=Cutting("record"))
    assert index.opened is not None
    assert not index.opened.folder.path.is_relative_to(tmp_path / "corpus")
    return tmp_path / "corpus"


def reopened(corpus: Path) -> Index:
    return Index.open(corpus, cutting=Cutting("record"))


def fresh(corpus: Path) -> Index:
    return Index.open(corpus, cutting=Cutting("record"), at=corpus.parent / "fresh", is_fresh=True)


def index_file(corpus: Path) -> Path:
    index = Index.open(corpus, cutting=Cutting("record"), with_update=False)
    assert index.opened is not None
    return index.opened.folder.path / "index.bin"


def damage(path: Path, how: str) -> None:
    data = path.read_bytes()
    match how:
        case "empty":
            path.write_bytes(b"")
        case "cut":
            path.write_bytes(data[: len(data) // 2])
        case "last byte":
            path.write_bytes(data[:-1])
        case "gone":
            path.unlink()
        case "folder":
            path.unlink()
            path.mkdir()
        case "noise":
            path.write_bytes(random.Random(1).randbytes(len(data)))


@pytest.mark.parametrize("how", ["empty", "cut", "last byte", "gone", "folder", "noise"])
def test_a_damaged_index_is_built_again(corpus: Path, how: str) -> None:
    damage(index_file(corpus), how)
    if how == "folder":
        with pytest.raises(StoreError, match="cannot be written"):
            reopened(corpus)
        return
    index = reopened(corpus)
    assert_same(index, fresh(corpus))
    assert len(index.notes) == (how != "gone")
    assert reopened(corpus).notes == ()


def test_every_changed_byte_is_detected(corpus: Path) -> None:
    expected = fresh(corpus)
    chance = random.Random(3)
    for _ in range(20):
        path = index_file(corpus)
        data = bytearray(path.read_bytes())
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        index = reopened(corpus)
        assert len(index.notes) == 1
        assert_same(index, expected)


def test_a_copied_index_is_used(corpus: Path) -> None:
    path = index_file(corpus)
    path.write_bytes(path.read_bytes())  # another time of change, the same digest
    assert reopened(corpus).notes == ()


def test_an_index_that_comes_with_a_corpus_is_not_read(corpus: Path, tmp_path: Path) -> None:
    write(tmp_path / "other", {"a.txt": "gold"})
    Index.open(tmp_path / "other", at=corpus / ".pearl-index")
    index = Index.open(corpus)
    assert "gold" not in [passage.text for passage in index.passages]
    assert len(index.documents) == len(FILES)


def test_the_files_are_the_users_own(corpus: Path, tmp_path: Path) -> None:
    Index.open(corpus, at=tmp_path / "at")
    (folder,) = (tmp_path / "at").iterdir()
    files = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert files.keys() == {"index.bin", "index.seal", "lock"}
    assert set(files.values()) == {0o600}


def test_another_version_or_setting_builds_another_index(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(updating, "__version__", f"{version.__version__}.1")
    index = reopened(corpus)
    assert "built by another version" in index.notes[0]
    monkeypatch.setattr(updating, "analyzer", lambda _: str.split)
    assert "built by another version" in reopened(corpus).notes[0]
    index = Index.open(corpus, stem="none")
    assert index.notes == ()
    assert index.terms.postings("iron")[0].tolist() == [1]


def test_other_files_in_the_folder_stay(corpus: Path) -> None:
    folder = index_file(corpus).parent
    (folder / "notes.txt").write_text("mine")
    (folder / "left.new").write_text("of a writer that was killed")
    (corpus / "a.txt").write_text("lake")
    reopened(corpus)
    assert {path.name for path in folder.iterdir()} == {
        "index.bin",
        "index.seal",
        "lock",
        "notes.txt",
    }


def test_an_opened_index_stays_readable_after_it_is_replaced(corpus: Path) -> None:
    index = reopened(corpus)
    texts = [p.text for p in index.passages]
    write(corpus, {"c.txt": "sea"})
    assert [p.text for p in Index.open(corpus, is_fresh=True).passages] == ["sea"]
    assert [p.text for p in index.passages] == texts


def test_without_a_folder_the_index_is_built_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "corpus", FILES)
    monkeypatch.setattr(updating, "content_cache", lambda _: None)
    index = Index.open(tmp_path / "corpus")
    assert index.notes == ("the index has no folder: it is built again each time",)
    assert_same(index, Index.open(tmp_path / "corpus", at=tmp_path / "at"))
    index.store_vectors("small", np.ones((len(index.passages), 2), np.float32))
    assert index.stored_vectors("small") is None


def test_damaged_vectors_are_not_used(corpus: Path) -> None:
    index = reopened(corpus)
    index.store_vectors("small", np.ones((len(index.passages), 2), np.float32))
    assert reopened(corpus).stored_vectors("small") is not None
    (path,) = index_file(corpus).parent.glob("vectors-*.bin")
    path.write_bytes(path.read_bytes()[:-1])
    assert reopened(corpus).stored_vectors("small") is None
