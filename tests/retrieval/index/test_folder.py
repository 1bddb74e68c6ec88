"""What lies in the folder of an index is untrusted: damaged, foreign or hostile, it gives no wrong ranks."""

from __future__ import annotations

import json
import os
import random
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pearl.errors import DataError, StoreError
from pearl.plugins import version
from pearl.retrieval.corpus import Cutting
from pearl.retrieval.index import Index, opening
from pearl.retrieval.index.arrays_file import DamagedError, read_arrays, stamp_of, write_arrays
from pearl.retrieval.index.folder import _checksum
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


def files_of(corpus: Path) -> dict[str, Path]:
    place = opening._place([corpus], Cutting("record"), "english", None)
    assert place is not None
    folder = place.path
    return {path.name.partition("-")[0]: path for path in folder.iterdir() if path.name != "lock"}


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
        case "link":
            path.rename(path.with_suffix(".else"))
            path.symlink_to(path.with_suffix(".else"))
        case "noise":
            path.write_bytes(random.Random(1).randbytes(len(data)))
        case "pipe":
            path.unlink()
            os.mkfifo(path)


@pytest.mark.parametrize("kind", ["manifest.json", "segment", "catalogue"])
@pytest.mark.parametrize(
    "how", ["empty", "cut", "last byte", "gone", "folder", "link", "noise", "pipe"]
)
def test_a_damaged_index_is_made_anew(corpus: Path, kind: str, how: str) -> None:
    damage(files_of(corpus)[kind], how)
    if (kind, how) == ("manifest.json", "folder"):
        with pytest.raises(StoreError, match="cannot be written"):
            reopened(corpus)
        return
    index = reopened(corpus)
    assert_same(index, fresh(corpus))
    if how not in ("last byte", "gone"):
        assert len(index.notes) == 1
    assert reopened(corpus).notes == ()


def test_every_byte_that_is_changed_is_noticed_or_means_nothing(corpus: Path) -> None:
    expected = fresh(corpus)
    chance = random.Random(3)
    for _ in range(60):
        path = files_of(corpus)[chance.choice(["manifest.json", "segment", "catalogue"])]
        data = bytearray(path.read_bytes())
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        assert_same(reopened(corpus), expected)


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"key": {}},
        {"segments": [["../../secret.bin", [1, 2, 3]]]},
        {"segments": "x"},
        {"segments": [["segment-0123456789abcdef.bin", [1, 2, 3]]]},
        {"segments": []},
        {"catalogue": ["a", "b"]},
        {"catalogue": None},
    ],
)
def test_a_manifest_that_says_something_else(corpus: Path, change: dict[str, Any]) -> None:
    path = files_of(corpus)["manifest.json"]
    manifest = json.loads(path.read_text()) | change
    path.write_text(json.dumps(manifest | {"checksum": _checksum(manifest)}))
    index = reopened(corpus)
    assert_same(index, fresh(corpus))
    assert len(index.notes) == 1


def test_a_manifest_that_was_changed_keeps_no_checksum(corpus: Path) -> None:
    path = files_of(corpus)["manifest.json"]
    path.write_text(json.dumps(json.loads(path.read_text()) | {"extra": 1}))
    (note,) = reopened(corpus).notes
    assert "wrong checksum" in note


def rewrite(corpus: Path, kind: str, changes: dict[str, Any]) -> None:
    """Replace arrays of a file, with right checksums everywhere."""
    path = files_of(corpus)[kind]
    file = read_arrays(path, None)
    arrays = {name: np.array(array) for name, array in file.arrays.items()}
    for name, change in changes.items():
        if change is None:
            del arrays[name]
        else:
            arrays[name] = change(arrays[name])
    path.unlink()
    stamp = write_arrays(path, file.about, arrays)
    manifest_path = files_of(corpus)["manifest.json"]
    manifest = json.loads(manifest_path.read_text())
    if kind == "segment":
        manifest["segments"][0][1] = list(stamp)
    else:
        manifest["catalogue"][1] = list(stamp)
    manifest_path.write_text(json.dumps(manifest | {"checksum": _checksum(manifest)}))


@pytest.mark.parametrize(
    ("kind", "name", "change"),
    [
        ("segment", "spans", lambda a: a + 1_000_000),
        ("segment", "spans", lambda a: a - 5),
        ("segment", "spans", lambda a: a[:, ::-1]),
        ("segment", "byte_spans", lambda a: a + 100),
        ("segment", "byte_spans", lambda a: a[:-1]),
        ("segment", "documents", lambda a: a + 7),
        ("segment", "documents", lambda a: a[::-1]),
        ("segment", "documents", lambda a: a.astype(np.int64)),
        ("segment", "texts.starts", lambda a: a + 9),
        ("segment", "texts.starts", lambda a: a[::-1]),
        ("segment", "names.starts", lambda a: a * 3),
        ("segment", "fields.starts", lambda a: a[:-1]),
        ("segment", "digests", lambda a: a[:, :8]),
        ("segment", "texts.data", None),
        ("segment", "postings.starts", lambda a: a + 1),
        ("segment", "postings.lengths", lambda a: a[:-1]),
        ("segment", "postings.letters", None),
        ("catalogue", "slots", lambda a: a + 5),
        ("catalogue", "slots", lambda a: a - 1),
        ("catalogue", "slots", lambda a: np.zeros_like(a)),
        ("catalogue", "counts", lambda a: a + 1),
        ("catalogue", "counts", lambda a: np.add(a, [0, 1, 0])),
        ("catalogue", "stamps", lambda a: a[:1]),
        ("catalogue", "labels.starts", lambda a: a + 1),
    ],
)
def test_a_hostile_index_leads_nowhere(corpus: Path, kind: str, name: str, change: Any) -> None:
    rewrite(corpus, kind, {name: change})
    index = reopened(corpus)
    assert len(index.notes) == 1
    assert_same(index, fresh(corpus))


def test_postings_that_name_passages_there_are_not_are_an_error(corpus: Path) -> None:
    rewrite(corpus, "segment", {"postings.passages": lambda a: a + 100})
    with pytest.raises(DataError) as caught:
        reopened(corpus).terms.postings("salt")
    assert str(caught.value).count("\n") <= 2


@pytest.mark.parametrize("text", ["[1]", '{"metadata": [1]}', "{", '{"pages": [[1]]}'])
def test_metadata_that_is_none_is_an_error(corpus: Path, text: str) -> None:
    data = np.frombuffer(text.encode(), np.uint8)
    changes = {
        "metadata.data": lambda _: np.tile(data, 3),
        "metadata.starts": lambda _: np.arange(4) * len(data),
    }
    rewrite(corpus, "segment", changes)
    with pytest.raises(DataError, match="metadata of the index is damaged"):
        list(reopened(corpus).documents)


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
    assert len(files) == 4
    assert set(files.values()) == {0o600}


def test_another_version_or_way_is_another_index(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "__version__", f"{version.__version__}.1")
    index = reopened(corpus)
    assert "made by another version" in index.notes[0]
    monkeypatch.setattr(opening, "analyzer", lambda _: str.split)
    assert "made by another version" in reopened(corpus).notes[0]
    index = Index.open(corpus, stem="none")
    assert index.notes == ()
    assert index.terms.postings("iron")[0].tolist() == [1]


def test_files_of_others_stay(corpus: Path) -> None:
    folder = files_of(corpus)["segment"].parent
    (folder / "notes.txt").write_text("mine")
    (folder / "segment-0123456789abcdef.bin").write_text("left behind")
    (corpus / "a.txt").write_text("lake")
    reopened(corpus)
    assert (folder / "notes.txt").exists()
    assert not (folder / "segment-0123456789abcdef.bin").exists()


def test_what_was_opened_is_read_on_after_it_was_replaced(corpus: Path) -> None:
    index = reopened(corpus)
    texts = [p.text for p in index.passages]
    write(corpus, {"c.txt": "sea"})
    assert [p.text for p in Index.open(corpus, is_fresh=True).passages] == ["sea"]
    assert [p.text for p in index.passages] == texts


def test_where_nothing_can_be_written_it_is_made_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "corpus", FILES)
    monkeypatch.setattr(opening, "cache_file", lambda _: None)
    index = Index.open(tmp_path / "corpus")
    assert index.notes == ("there is no folder for the index: it is made anew each time",)
    assert_same(index, Index.open(tmp_path / "corpus", at=tmp_path / "at"))
    index.store_vectors("small", 0, np.ones((len(index.passages), 2), np.float32))
    assert index.vectors_for("small") is not None


def test_vectors_that_are_none_are_made_anew(corpus: Path) -> None:
    index = reopened(corpus)
    n = len(index.passages)
    index.store_vectors("small", 0, np.ones((n, 2), np.float32))
    path = files_of(corpus)["vectors"]
    good = read_arrays(path, None)
    for about, vectors in (
        ({"embedder": "other"}, np.ones((n, 2), np.float32)),
        (good.about, np.ones((n + 1, 2), np.float32)),
        (good.about, np.ones(n, np.float32)),
        (good.about, np.ones((n, 2), np.int32)),
        (good.about, np.full((n, 2), np.nan, np.float32)),
    ):
        path.unlink()
        write_arrays(path, about, {"vectors": vectors})
        assert reopened(corpus).without_vectors("small") == (0,)
    path.write_bytes(b"torn")
    assert reopened(corpus).without_vectors("small") == (0,)


def test_an_array_file_says_what_it_may_not_say(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    write_arrays(path, {"a": 1}, {"x": np.arange(3, dtype=np.int32)})
    data = path.read_bytes()
    length = int.from_bytes(data[8:12], "little")
    header = json.loads(data[16 : 16 + length])
    body = data[-64:]
    for change in (
        {"type": "|O"},
        {"shape": [3_000_000_000]},
        {"shape": [-1]},
        {"shape": [True, "x"]},
        {"shape": [1, 1, 3]},
        {"offset": -64},
        {"offset": 1},
        {"offset": 1 << 60},
        {"crc": 0},
        {"name": None, "shape": None},
    ):
        changed = {"about": {}, "arrays": [header["arrays"][0] | change]}
        text = json.dumps(changed).encode()
        start = (
            b"PEARLIX1" + len(text).to_bytes(4, "little") + zlib.crc32(text).to_bytes(4, "little")
        )
        whole = start + text
        path.write_bytes(whole.ljust(-(-len(whole) // 64) * 64) + body)
        with pytest.raises(DamagedError):
            read_arrays(path, None)
    path.write_bytes(data)
    assert read_arrays(path, stamp_of(path)).arrays["x"].tolist() == [0, 1, 2]
