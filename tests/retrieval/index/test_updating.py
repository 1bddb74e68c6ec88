"""An index that is brought up to date finds what a fresh one finds, and reads only what changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pearl.errors import DataError
from pearl.retrieval.corpus import Cutting, sources
from pearl.retrieval.index import Index, updating
from pearl.retrieval.index.updating import Changes
from tests.retrieval.index.corpora import assert_same, rows, write

TEXTS = st.lists(
    st.sampled_from(["salt", "lake", "iron\n\nsea", "é\n\nsalt salt", "東京"]),
    min_size=1,
    max_size=4,
).map(" ".join)
ROWS = st.dictionaries(st.integers(1, 9), TEXTS, max_size=6).map(lambda d: rows(*d.items()))
UNNAMED = st.lists(TEXTS, min_size=1, max_size=4).map(lambda t: rows(*((None, x) for x in t)))
FOLDERS = st.dictionaries(
    st.sampled_from(["a.txt", "b.md", "c/d.txt", "c/e.txt", "z.txt"]), TEXTS, min_size=1
).flatmap(
    lambda files: st.fixed_dictionaries(
        {name: st.just(text) for name, text in files.items()},
        optional={"m.jsonl": ROWS, "n.jsonl": UNNAMED},
    )
)


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    """Parts are spilled to the disk soon, and every file that is written gets another stamp."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(updating, "MAX_BYTES", 20)
        patch.setattr(updating, "SURE_NS", -(10**18))
        yield


@pytest.mark.slow
@given(st.lists(FOLDERS, min_size=2, max_size=6), st.sampled_from(["", "window", "sentence"]))
@example(  # the last document becomes the first of the corpus
    [
        {"a.txt": "salt", "b.md": "iron salt", "z.txt": "sea lake"},
        {"a.txt": "lake", "b.md": "iron salt", "z.txt": "sea lake"},
        {"a.txt": "lake", "z.txt": "sea lake"},
    ],
    "",
)
def test_any_history_finds_what_a_fresh_index_finds(
    tmp_path_factory: pytest.TempPathFactory, states: list[dict[str, str]], unit: str
) -> None:
    home = tmp_path_factory.mktemp("corpus")
    corpus, other = home / "corpus", home / "fresh"
    for files in states:
        write(corpus, files)
        index = Index.open(corpus, cutting=Cutting(unit), stem="none")
        fresh = Index.open(corpus, cutting=Cutting(unit), stem="none", at=other, is_fresh=True)
        assert_same(index, fresh)
        again = Index.open(corpus, cutting=Cutting(unit), stem="none")
        assert again.opened is not None
        assert again.opened.changes == Changes()
        assert_same(again, fresh)


def changes(index: Index) -> Changes:
    assert index.opened is not None
    return index.opened.changes


def test_only_what_changed_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = tmp_path / "corpus"
    read: list[str] = []

    def noted(path: str, label: str) -> bytes:
        read.append(label)
        return Path(path).read_bytes()

    monkeypatch.setattr(sources, "read_bytes", noted)
    write(corpus, {"a.txt": "salt", "b.txt": "iron", "c.txt": "sea"})
    assert changes(Index.open(corpus)) == Changes(n_new=3)
    assert read == ["a.txt", "b.txt", "c.txt"]
    read.clear()
    write(corpus, {"a.txt": "salt", "b.txt": "lake", "d.txt": "sea"})
    assert changes(Index.open(corpus)) == Changes(n_new=1, n_changed=1, n_removed=1)
    assert read == ["b.txt", "d.txt"]
    read.clear()
    assert changes(Index.open(corpus)) == Changes()
    (corpus / "a.txt").touch()  # another stamp, but nothing else
    assert changes(Index.open(corpus)) == Changes()
    assert read == ["a.txt"]


def test_a_known_row_is_not_parsed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(rows(("a", "salt"), ("b", "iron"), (None, "sea")))
    Index.open(path)
    made: list[str] = []
    parsed = sources.parse_line

    def noted(path: Path, number: int, line: bytes) -> object:
        made.append(line.decode())
        return parsed(path, number, line)

    monkeypatch.setattr("pearl.retrieval.corpus.sources.parse_line", noted)
    path.write_text(rows(("a", "salt"), ("c", "lake"), (None, "sea"), ("b", "iron")))
    index = Index.open(path)
    assert [p.document for p in index.passages] == ["a", "c", "3", "b"]
    assert made == [rows(("c", "lake"))]


def test_a_file_that_may_change_without_another_stamp_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(updating, "SURE_NS", 10**19)
    path = tmp_path / "a.txt"
    path.write_text("salt")
    monkeypatch.setattr(updating, "stamp_of", lambda _: (4, 1, 1))
    Index.open(path)
    path.write_text("iron")
    assert Index.open(path).passages[0].text == "iron"


def test_an_index_that_is_not_updated_says_so(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    write(corpus, {"a.txt": "salt"})
    Index.open(corpus)
    write(corpus, {"a.txt": "iron", "b.txt": "sea"})
    index = Index.open(corpus, with_update=False)
    assert [p.text for p in index.passages] == ["salt"]
    assert index.notes == ("2 files may have changed since",)
    assert Index.open(corpus).notes == ()


@pytest.mark.parametrize("n", [1, 3])
def test_unreadable_files_are_left_out_and_reported(tmp_path: Path, n: int) -> None:
    corpus = tmp_path / "corpus"
    write(corpus, {"good.txt": "salt"})
    for number in range(n):
        (corpus / f"bad{number}.txt").write_bytes(bytes(range(256)))
    index = Index.open(corpus)
    assert [p.document for p in index.passages] == ["good.txt"]
    assert len(index.notes) == 1
    assert index.notes[0].startswith("1 document is" if n == 1 else "3 documents are")
    assert "bad0.txt" in index.notes[0]
    assert Index.open(corpus).notes == index.notes  # remembered, not read again


def test_an_unreadable_corpus_is_one_error(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    write(corpus, {"a.txt": "salt"})
    Index.open(corpus)
    for number in range(300):
        (corpus / f"{number}.txt").write_bytes(bytes(range(256)))
    (corpus / "a.txt").unlink()
    with pytest.raises(DataError, match="none of the 300 documents can be read") as caught:
        Index.open(corpus)
    assert str(caught.value).count("\n") <= 2


def test_two_documents_of_one_id_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(rows(("a", "salt"), ("b", "iron")))
    Index.open(path)
    for text in (
        rows(("a", "salt"), ("b", "iron"), ("a", "lake")),  # one is known
        rows(("a", "salt"), ("b", "iron"), ("a", "salt")),  # both are
        rows(("c", "salt"), ("b", "iron"), ("c", "lake")),  # none is
    ):
        path.write_text(text)
        with pytest.raises(DataError, match=r"same id '[ac]': .*document 1\) and .*document 3\)"):
            Index.open(path)
    path.write_text(rows(("a", "salt"), ("b", "iron")))
    assert len(Index.open(path).passages) == 2
