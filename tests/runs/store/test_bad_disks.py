"""Stores that are damaged or of another version; disks that are full, read-only or removed."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from pearl.errors import StoreError
from pearl.plugins.persistence import connect
from pearl.runs.store import FILE, Store
from pearl.runs.store.database import create_database
from tests.runs.store.filling import SPEC, child, reply_of
from tests.runs.store.filling import key as key_of
from tests.skips import BOUND

N_REPLIES = 40


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a store with replies and results."""
    folder = tmp_path_factory.mktemp("store")

    async def fill(store: Store) -> None:
        run = store.begin(SPEC)
        for i in range(N_REPLIES):
            await store.keep(key_of(i), reply_of(i))
            await run.record(key_of(i), i, str(i), {"status": "answered", "i": i}, None)

    with Store.open(folder) as store:
        asyncio.run(fill(store))
    return (folder / FILE).read_bytes()


def use(folder: Path, *, is_exact: bool = True) -> str | None:
    """All operations of a store; returns the error, if any."""

    async def work(store: Store) -> None:
        for i in range(N_REPLIES):
            reply = await store.reply(key_of(i))
            assert not is_exact or reply in (None, reply_of(i))
        run = store.begin(SPEC)
        for i in range(N_REPLIES):
            outcome = run.outcome(key_of(i))
            assert not is_exact or outcome in (None, {"status": "answered", "i": i})
        assert len(list(store.rows(run.id))) <= N_REPLIES
        await store.keep(key_of(1), reply_of(1))
        await run.record(key_of(1), 1, "1", {"status": "answered", "i": 1}, None)
        run.finish("done")
        for info in store.runs():
            info.to_dict()
        store.prune([info.id for info in store.runs()], replies=True)

    try:
        with Store.open(folder) as store:
            asyncio.run(work(store))
    except StoreError as error:
        said = str(error)
    else:
        return None
    assert len(said.splitlines()) <= 3
    return said


@pytest.mark.parametrize("n_bytes", [50, 100, 4_096, 8_192, 20_000])
def test_truncated_store(tmp_path: Path, filled: bytes, n_bytes: int) -> None:
    (tmp_path / FILE).write_bytes(filled[:n_bytes])
    said = use(tmp_path)
    assert said is not None
    assert str(tmp_path / FILE) in said
    assert "move the file away" in said


def test_file_that_is_not_a_store(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("Dear diary,\n" * 100)
    assert "not a store of pearl" in str(use(tmp_path))
    (tmp_path / FILE).unlink()
    with sqlite3.connect(tmp_path / FILE) as connection:
        connection.execute("CREATE TABLE mine (a)")
    connection.close()
    before = (tmp_path / FILE).read_bytes()
    assert "not a store of pearl" in str(use(tmp_path))
    assert (tmp_path / FILE).read_bytes() == before


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / FILE).touch()
    with pytest.raises(StoreError, match="empty"):
        Store.open(tmp_path, read_only=True)
    assert use(tmp_path) is None


def test_rows_that_the_index_of_their_order_lacks_are_missed(tmp_path: Path, filled: bytes) -> None:
    (tmp_path / FILE).write_bytes(filled)
    connection = sqlite3.connect(tmp_path / FILE)
    ((page,),) = connection.execute(
        "SELECT rootpage FROM sqlite_master WHERE name = 'results_by_seq'"
    )
    connection.close()
    data = bytearray(filled)
    at = (page - 1) * 4_096 + 3  # two bytes: how many entries the page has
    assert int.from_bytes(data[at : at + 2]) > 2
    data[at : at + 2] = (2).to_bytes(2)
    (tmp_path / FILE).write_bytes(data)
    with Store.open(tmp_path) as store:
        run = store.begin(SPEC)
        assert run.has(key_of(2))
        with pytest.raises(StoreError, match=r"rows of run .* are not found in their order"):
            list(store.rows(run.id))


def test_store_path_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    assert "cannot be used" in str(use(tmp_path / "f"))
    assert "cannot be used" in str(use(tmp_path / "f" / "g"))


def without_override(code: str, *args: str) -> tuple[str, str]:
    """Run as a user whom the rights of files bind: root is bound, too, without this capability."""
    drop = (
        "import ctypes, os, sys\n"
        "if os.geteuid() == 0 and ctypes.CDLL(None).prctl(24, 1, 0, 0, 0):\n    sys.exit(99)\n"
        "os.execv(sys.executable, [sys.executable, '-c', *sys.argv[1:]])\n"
    )
    process = child("-c", drop, code, *args)
    out, err = process.communicate()
    if process.returncode == 99:
        pytest.skip(BOUND)
    return out, err


def test_a_store_in_a_folder_that_cannot_be_written_is_read(tmp_path: Path, filled: bytes) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    (folder / FILE).write_bytes(filled)
    folder.chmod(0o500)
    try:
        code = (
            "import sys\nfrom pathlib import Path\nfrom pearl.runs.store import Store\n"
            "with Store.open(Path(sys.argv[1]), read_only=True) as store:\n"
            "    print(len(list(store.rows(store.runs()[0].id))))\n"
        )
        out, err = without_override(code, str(folder))
        assert (out, err) == (f"{N_REPLIES}\n", "")
    finally:
        folder.chmod(0o700)


def test_a_disk_without_shared_memory(tmp_path: Path) -> None:
    """SQLite then cannot write ahead: it says so, and keeps what it is given all the same."""
    path = tmp_path / FILE
    connection, (warning,) = create_database(path, vfs="unix-dotfile")
    assert "local disk" in warning
    for kept, value in (("synchronous", 2), ("secure_delete", 1)):  # power may fail
        assert connection.execute(f"PRAGMA {kept}").fetchone() == (value,)
    connection.execute("INSERT INTO replies VALUES (x'00', '{}', 0)")
    connection.close()
    reader = connect(path, "ro", vfs="unix-dotfile")
    assert reader.execute("SELECT count(*) FROM replies").fetchone() == (1,)
    reader.close()
