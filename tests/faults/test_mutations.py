"""Damaged and swapped caches: what is read is what was written, or is computed anew; nothing is executed."""

from __future__ import annotations

import asyncio
import os
import pickle
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest

from pearl.cli.settings import is_trusted, trust
from pearl.errors import StoreError
from pearl.llm.embedders import EmbeddingCache
from pearl.retrieval.index import Index
from pearl.runs.store import FILE, Store
from tests.faults import fuzzing
from tests.retrieval.index.corpora import assert_same
from tests.runs.store.filling import SPEC, reply_of
from tests.runs.store.filling import key as key_of
from tests.suite import Trial

EXECUTED: list[str] = []


class Bomb:
    """What would run where a pickle of it is loaded."""

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return EXECUTED.append, ("a pickle",)


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Flipped bits, other bytes, an end or a page lost, or a program in place of the file."""
    at = chance.randrange(len(data))
    match chance.randrange(7):
        case 0:
            return data[:at]
        case 1:
            return data[: at & -512] + bytes(512) + data[(at & -512) + 512 :]
        case 2:
            return data[:at] + chance.randbytes(8) + data[at + 8 :]
        case 3 if chance.random() < 0.1:
            return pickle.dumps(Bomb())
        case _:
            flipped = bytearray(data)
            for _ in range(chance.choice((1, 1, 1, 2, 20))):
                flipped[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            return bytes(flipped)


def overwrite(path: Path, data: bytes) -> None:
    """Write other content and restore the time of change."""
    found = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def swap(path: Path, table: str, column: str, chance: random.Random) -> None:
    """Swap the values of two keys, or change characters of one, which stays valid."""
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = connection.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
        (one, value), (_, other) = chance.sample(rows, 2)
        if isinstance(value, str) and chance.random() < 0.5:
            other = value.replace(
                chance.choice(("reply ", "answered", ":", "1", "{")), chance.choice("29"), 1
            )
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (other, one))


def row(i: int) -> dict[str, object]:
    return {"status": "answered", "i": i}


@pytest.mark.row("R28", "mutations of the store of replies and rows")
def test_a_store_gives_what_was_stored_or_nothing(trial: Trial, tmp_path: Path) -> None:
    n, counts = (
        trial.n(ci=250, nightly=4_000, release=40_000),
        dict.fromkeys(("refused", "wrong", "lost"), 0),
    )
    whole = fuzzing.store_file()
    for _ in range(n):
        for path in tmp_path.iterdir():
            path.unlink()
        (tmp_path / FILE).write_bytes(whole)
        if trial.random.random() < 0.3:
            swap(
                tmp_path / FILE,
                *trial.random.choice((("replies", "body"), ("results", "row"))),
                trial.random,
            )
        else:
            (tmp_path / FILE).write_bytes(damaged(whole, trial.random))
        try:
            with Store.open(tmp_path) as store:
                read = [asyncio.run(store.reply(key_of(i))) for i in range(5)]
                counts["wrong"] += sum(
                    each not in (None, reply_of(i)) for i, each in enumerate(read)
                )
                run = store.begin(SPEC)
                outcomes = [run.outcome(key_of(i)) for i in range(5)]
                counts["wrong"] += sum(
                    each not in (None, row(i)) for i, each in enumerate(outcomes)
                )
                rows = list(store.rows(run.id))
                counts["wrong"] += sum(each not in [row(i) for i in range(5)] for each in rows)
                counts["lost"] += sum(run.has(key_of(i)) and row(i) not in rows for i in range(5))
        except StoreError:
            counts["refused"] += 1
    trial.figure("mutations", n)
    trial.figure("refused with a reason", counts["refused"])
    trial.figure("wrong replies or rows", counts["wrong"], at_most=0)
    trial.figure("rows of finished tasks lost in silence", counts["lost"], at_most=0)
    trial.figure("executed", len(EXECUTED), at_most=0)


@pytest.mark.row("R28", "mutations of the cache of embeddings")
def test_a_cache_gives_the_vector_of_its_key_or_none(trial: Trial, tmp_path: Path) -> None:
    n, n_wrong = trial.n(ci=250, nightly=4_000, release=40_000), 0
    whole, path = fuzzing.vectors_file(), tmp_path / "embeddings.sqlite"
    for _ in range(n):
        path.write_bytes(whole)
        if trial.random.random() < 0.3:
            swap(path, "vectors", "vector", trial.random)
        else:
            path.write_bytes(damaged(whole, trial.random))
        vectors = EmbeddingCache(path)
        with suppress(StoreError):
            for key, vector in vectors.read([key_of(i) for i in range(20)]).items():
                n_wrong += vector.tolist() != np.eye(32)[int.from_bytes(key, "big")].tolist()
        vectors.close()
    trial.figure("mutations", n)
    trial.figure("wrong vectors", n_wrong, at_most=0)
    trial.figure("executed", len(EXECUTED), at_most=0)


@pytest.mark.row("R28", "mutations of index files that keep their size and time of change")
def test_an_index_finds_what_a_new_one_finds(trial: Trial, tmp_path: Path) -> None:
    n, n_wrong = trial.n(ci=100, nightly=2_000, release=20_000), 0
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for i in range(20):
        (corpus / f"{i}.txt").write_text(f"salt lake {i}\n\niron sea {'salt ' * (i % 5)}")

    def opened(at: str) -> Index:
        return Index.open(corpus, at=tmp_path / at)

    fresh = opened("fresh")
    vectors = np.eye(len(fresh.passages), dtype=np.float32)
    other = Index.open(fuzzing.corpus()[0].parents[1].parent / "corpus", at=tmp_path / "other")
    for _ in range(n):
        index = opened("at")
        assert index.opened is not None
        index.opened.folder.write_vectors("small", index.contents, vectors)
        path = trial.random.choice([*index.opened.folder.path.glob("*.bin")])
        swapped = other.opened and (other.opened.folder.path / "index.bin").read_bytes()
        is_swap = trial.random.random() < 0.1
        overwrite(
            path, swapped if is_swap and swapped else damaged(path.read_bytes(), trial.random)
        )
        again = opened("at")
        stored = again.opened.folder.read_vectors("small", again.contents)
        n_wrong += stored is not None and not np.array_equal(stored, vectors)
        try:
            assert_same(again, fresh)
        except AssertionError:
            n_wrong += 1
    trial.figure("mutations", n)
    trial.figure("wrong hits or vectors", n_wrong, at_most=0)
    trial.figure("executed", len(EXECUTED), at_most=0)


@pytest.mark.row("R28", "mutations of a trusted settings file")
def test_trust_is_in_the_content_that_was_read(trial: Trial, tmp_path: Path) -> None:
    n, n_wrong, path = trial.n(ci=500, nightly=10_000, release=100_000), 0, tmp_path / "pearl.toml"
    content = b'model = "openai:gpt-4o"\nbase_url = "https://api.example"\n'
    trust(path, content)
    assert is_trusted(path, content)
    for _ in range(n):
        other = damaged(content, trial.random)
        n_wrong += other != content and is_trusted(path, other)
    trial.figure("mutations", n)
    trial.figure("trusted", n_wrong, at_most=0)
