"""Indexes in memory and in folders: passages, updates, damage, several processes, postings."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from pearl.documents.document import Document, join
from pearl.documents.passages import terms
from pearl.documents.rows import document_rows
from pearl.errors import DataError, StoreError, UsageError
from pearl.plugins import version
from pearl.retrieval import corpus as sources
from pearl.retrieval import postings
from pearl.retrieval.corpus import CorpusDocument, Cutting
from pearl.retrieval.index import Index, updating
from pearl.retrieval.index.updating import Changes
from pearl.retrieval.postings import Postings, flat, merge
from tests.retrieval.index.corpora import assert_same, postings_of, rows, write

TEXTS = st.text(st.sampled_from("aé東 .\n\tx😀"), min_size=1).filter(lambda text: text.strip())

TWO = [
    CorpusDocument("a.txt", "Iron é ü.\n\nSalt, and more salt.", {"year": "2001"}),
    CorpusDocument("b.txt", "Salt.\n\nLake.", {"year": "2002", "kind": "note"}),
]


@given(st.lists(TEXTS, max_size=5), st.sampled_from(["", "line", "window", "sentence"]))
def test_passages_read_what_stands_in_their_documents(texts: list[str], unit: str) -> None:
    documents = [CorpusDocument(f"{n}", text) for n, text in enumerate(texts)]
    index = Index.build(documents, Cutting(unit), "none")
    assert [document.text for document in index.documents] == texts
    if not texts:
        return
    joined = index.document()
    assert joined.text == join([Document(d.text, d.name) for d in documents]).text
    for number, passage in enumerate(index.passages):
        assert passage.number == number
        text = texts[int(passage.document)]
        assert passage.text == text[passage.span.start : passage.span.end]
        place = joined.place(passage)
        assert joined.text[place.start : place.end] == passage.text
        assert joined.locate(place.start) == (passage.document, passage.span.start)


def test_rows_are_whole_and_files_are_cut_into_paragraphs() -> None:
    row = CorpusDocument("1", "One.\n\nTwo.", is_row=True)
    assert [p.text for p in Index.build([row]).passages] == ["One.\n\nTwo."]
    file = replace(row, is_row=False)
    assert [p.text for p in Index.build([file]).passages] == ["One.", "Two."]
    windows = Index.build([file], Cutting("window", 7, 3)).passages
    assert [p.text for p in windows] == ["One.", "Two."]


def test_fields_of_units_are_fields_of_passages() -> None:
    table = CorpusDocument("t", "|year|sales|\n|-|-|\n|2001|5|\n|2002|7|", {"by": "Ann"})
    index = Index.build([table], Cutting("record"))
    assert [p.fields for p in index.passages] == [
        {"by": "Ann", "unit": "record", "year": "2001", "sales": "5"},
        {"by": "Ann", "unit": "record", "year": "2002", "sales": "7"},
    ]
    assert index.contents.field_names == ("unit", "year", "sales", "by")
    values, places = index.columns(("sales", "document"))
    assert [values[place] for place in places] == [("5", "t"), ("7", "t")]


def test_pages_are_those_of_the_document() -> None:
    two = CorpusDocument("p", "One.\nTwo.", pages=(("i", 0), ("ii", 5)))
    passages = Index.build([two], Cutting("page")).passages
    assert [(p.text, p.fields) for p in passages] == [
        ("One.", {"Page": "i"}),
        ("Two.", {"Page": "ii"}),
    ]
    assert Index.build([two]).document().pages == (("i", 5), ("ii", 10))


def test_an_empty_corpus_has_no_document() -> None:
    with pytest.raises(DataError, match="no document"):
        Index.build([]).document()


@pytest.mark.parametrize(
    ("unit", "size", "overlap"), [("window", 5, 5), ("line", 5, 1), ("lnie", 1_100, 300)]
)
def test_invalid_cuttings_are_refused(unit: str, size: int, overlap: int) -> None:
    with pytest.raises(UsageError):
        Cutting(unit, size, overlap)


def test_the_documents_of_a_corpus_are_rows_with_their_metadata() -> None:
    """So that they can be counted exactly by it, which the best passages cannot."""
    documents = [
        CorpusDocument("a", "salt", {"year": "2008", "Document": "x"}),
        CorpusDocument("b", "iron", {"year": "2009"}),
    ]
    rows = document_rows(Index.build(documents).document())
    assert [dict(row.fields) for row in rows] == [
        {"Document": "a", "year": "2008", "Document (2)": "x"},
        {"Document": "b", "year": "2009"},
    ]


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


@pytest.mark.parametrize("how", ["empty", "cut", "noise", "bit", "unsealed"])
def test_a_damaged_index_is_built_again(corpus: Path, how: str) -> None:
    path = index_file(corpus)
    data = path.read_bytes()
    at = len(data) // 2
    flipped = data[:at] + bytes([data[at] ^ 8]) + data[at + 1 :]
    noise = random.Random(1).randbytes(len(data))
    path.write_bytes({"empty": b"", "cut": data[:at], "noise": noise}.get(how, flipped))
    if how == "unsealed":
        path.with_suffix(".seal").unlink()
    index = reopened(corpus)
    assert_same(index, fresh(corpus))
    assert len(index.notes) == 1
    assert reopened(corpus).notes == ()


def test_an_index_that_is_gone_is_built_again_and_what_cannot_be_written_is_an_error(
    corpus: Path,
) -> None:
    path = index_file(corpus)
    path.unlink()
    assert_same(reopened(corpus), fresh(corpus))
    path.unlink()
    path.mkdir()
    with pytest.raises(StoreError, match="cannot be written"):
        reopened(corpus)


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
    (folder / "notes.txt").chmod(0o600)
    files = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert files.keys() == {"index.bin", "index.seal", "lock", "notes.txt"}
    assert set(files.values()) == {0o600}  # the user's own


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


def test_damaged_vectors_and_those_of_other_texts_are_not_used(corpus: Path) -> None:
    index = reopened(corpus)
    assert index.opened is not None
    folder, vectors = index.opened.folder, np.ones((len(index.passages), 2), np.float32)
    folder.write_vectors("small", index.contents, vectors)
    assert folder.read_vectors("small", reopened(corpus).contents) is not None
    other = Index.build([replace(each, text=each.text.swapcase()) for each in index.documents])
    assert folder.read_vectors("small", other.contents) is None
    (path,) = folder.path.glob("vectors-*.bin")
    path.write_bytes(path.read_bytes()[:-1])
    assert folder.read_vectors("small", index.contents) is None


UPDATING_TEXTS = st.lists(
    st.sampled_from(["salt", "lake", "iron\n\nsea", "é\n\nsalt salt", "東京"]),
    min_size=1,
    max_size=4,
).map(" ".join)
ROWS = st.dictionaries(st.integers(1, 9), UPDATING_TEXTS, max_size=6).map(
    lambda d: rows(*d.items())
)
UNNAMED = st.lists(UPDATING_TEXTS, min_size=1, max_size=4).map(
    lambda t: rows(*((None, x) for x in t))
)
FOLDERS = st.dictionaries(
    st.sampled_from(["a.txt", "b.md", "c/d.txt", "c/e.txt", "z.txt"]), UPDATING_TEXTS, min_size=1
).flatmap(
    lambda files: st.fixed_dictionaries(
        {name: st.just(text) for name, text in files.items()},
        optional={"m.jsonl": ROWS, "n.jsonl": UNNAMED},
    )
)


@pytest.fixture
def _small() -> Iterator[None]:
    """Parts are spilled to the disk soon, and every file that is written gets another stamp."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(updating, "MAX_BYTES", 20)
        patch.setattr(updating, "SURE_NS", -(10**18))
        yield


@pytest.mark.usefixtures("_small")
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


@pytest.mark.usefixtures("_small")
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


@pytest.mark.usefixtures("_small")
def test_a_known_row_is_not_parsed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(rows(("a", "salt"), ("b", "iron"), (None, "sea")))
    Index.open(path)
    made: list[str] = []
    parsed = sources.parse_line

    def noted(path: Path, number: int, line: bytes) -> object:
        made.append(line.decode())
        return parsed(path, number, line)

    monkeypatch.setattr("pearl.retrieval.corpus.parse_line", noted)
    path.write_text(rows(("a", "salt"), ("c", "lake"), (None, "sea"), ("b", "iron")))
    index = Index.open(path)
    assert [p.document for p in index.passages] == ["a", "c", "3", "b"]
    assert made == [rows(("c", "lake"))]


@pytest.mark.usefixtures("_small")
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


@pytest.mark.usefixtures("_small")
def test_an_index_that_is_not_updated_says_so(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    write(corpus, {"a.txt": "salt"})
    Index.open(corpus)
    write(corpus, {"a.txt": "iron", "b.txt": "sea"})
    index = Index.open(corpus, with_update=False)
    assert [p.text for p in index.passages] == ["salt"]
    assert index.notes == ("2 files may have changed since",)
    assert Index.open(corpus).notes == ()


@pytest.mark.usefixtures("_small")
def test_unreadable_files_are_left_out_and_reported(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    write(corpus, {"good.txt": "salt"})
    for number in range(3):
        (corpus / f"bad{number}.txt").write_bytes(bytes(range(256)))
    index = Index.open(corpus)
    assert [p.document for p in index.passages] == ["good.txt"]
    (note,) = index.notes
    assert note.startswith("3 documents are left out")
    assert "bad0.txt" in note
    assert Index.open(corpus).notes == index.notes  # remembered, not read again


@pytest.mark.usefixtures("_small")
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


@pytest.mark.usefixtures("_small")
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


WORDS = [
    "key", "Keys", "lamp's", "the", "well-known", "1,200", "café", "東京都へ", "...", "kept,", "x",
    "Ada\u00a0Lovelace's", "notes\u2028of", "1,843.5—ﬁrst", "İstanbul", "ß's", "ﷺ", "tide-東京x", "''''",
]  # fmt: skip

texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), max_size=12)


def rows_postings(index: Postings, term: str) -> list[tuple[int, int]]:
    passages, counts = index.postings(term)
    return list(zip(passages.tolist(), counts.tolist(), strict=True))


def names(index: Postings) -> list[str]:
    return [name.decode() for name in index.names.every()]


def equal(one: Postings, two: Postings) -> bool:
    pairs = zip(flat(one).items(), flat(two).items(), strict=True)
    return all(a == b and x.dtype == y.dtype and np.array_equal(x, y) for (a, x), (b, y) in pairs)


@given(texts, st.sampled_from(("english", "porter", "none")), st.sampled_from((1, 3, 1 << 20)))
def test_postings_are_the_counts_of_the_terms(texts: list[str], stem: Any, batch: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings, "BATCH", batch)
        patch.setattr(postings, "MAX_TOKENS", batch)
        index = postings_of(texts, stem)
    found = [Counter(terms(text, stem=stem)) for text in texts]
    assert index.lengths.tolist() == [sum(counts.values()) for counts in found]
    known = sorted({term for counts in found for term in counts}, key=str.encode)
    assert names(index) == known
    for term in known:
        expected = [(i, counts[term]) for i, counts in enumerate(found) if counts[term]]
        assert rows_postings(index, term) == expected
    assert not any(rows_postings(index, term) for term in ("zebra", "", "\ud800"))


@pytest.mark.parametrize(("n", "kind"), [(255, "uint8"), (256, "uint16"), (65_536, "uint32")])
def test_counts_take_the_smallest_type_that_holds_them(n: int, kind: str) -> None:
    index = postings_of([["key"], ["key"] * n, ["lamp"]])
    assert index.counts.dtype == kind
    assert rows_postings(index, "key") == [(0, 1), (1, n)]
    again = merge([index, postings_of([["oar"]])], [np.array([0, -1, 1]), np.array([2])])
    assert again.counts.dtype == "uint8"


@given(st.lists(texts, max_size=4), st.data())
def test_merged_parts_in_any_order_equal_a_fresh_index(
    parts: list[list[str]], data: st.DataObject
) -> None:
    every = [text for part in parts for text in part]
    order = data.draw(st.permutations(range(len(every))))
    order = order[: data.draw(st.integers(0, len(every)))]
    numbers = np.full(len(every), -1, np.int64)
    numbers[order] = np.arange(len(order))
    split = np.split(numbers, np.cumsum([len(part) for part in parts])[:-1])
    merged = merge([postings_of(part) for part in parts], split[: len(parts)])
    fresh = postings_of([every[i] for i in order])
    assert equal(merged, fresh)
    assert merged.mean_length == fresh.mean_length
