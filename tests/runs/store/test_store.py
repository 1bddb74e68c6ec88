"""The store: replies, runs, rows, pruning and merging."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pearl.documents.digest import sealed
from pearl.errors import StoreError
from pearl.llm import Completion, Usage
from pearl.runs.store import FILE, RunSpec, Store, chosen, default_folder
from tests.runs.store.filling import KEY, REPLY, SPEC, change, keep, key, record, row


def reply(folder: Path) -> tuple[Completion | None, int]:
    with Store.open(folder, read_only=True) as store:
        return asyncio.run(store.reply(KEY)), store.n_bad_replies


def test_many_replies_are_found_at_once(tmp_path: Path) -> None:
    keys = [key(i) for i in range(1_200)]
    with Store.open(tmp_path) as store:
        asyncio.run(store.keep_all(dict.fromkeys(keys[::2], REPLY)))
        change(tmp_path, "UPDATE replies SET body = 'x' WHERE key = ?", keys[4])
        found = asyncio.run(store.among(keys))
        assert found == {each: REPLY for each in keys[::2] if each != keys[4]}
        assert store.n_bad_replies == 1
        assert asyncio.run(store.fresh().among(keys)) == {}
        assert asyncio.run(store.among([])) == {}


def test_files_are_private(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "store"
    Store.open(folder).close()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in folder.iterdir()) == ["store.db", "write.lock"]
    (folder / FILE).chmod(0o644)
    Store.open(folder).close()
    assert (folder / FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "body",
    [
        "", "null", "[]", "{", '{"text": "x"}', '{"text": " ", "model": "m", "usage": {}}',
        '{"text": 1, "model": "m", "usage": {}}', "cos\nsystem\n(S'true'\ntR.", "[" * 100_000,
    ],
)  # fmt: skip
def test_a_damaged_reply_is_not_used(tmp_path: Path, body: str) -> None:
    keep(tmp_path)
    change(tmp_path, "UPDATE replies SET body = CAST(? AS TEXT)", sealed(KEY, body.encode()))
    assert reply(tmp_path) == (None, 1)
    keep(tmp_path)
    assert reply(tmp_path) == (REPLY, 0)


def test_run_is_resumed(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        run = store.begin(SPEC)
        record(run, 2, 0)
        assert run.has(key(0))
        assert not run.has(key(1))
        assert store.runs()[0].state == "running"
    with Store.open(tmp_path) as store:
        assert store.runs()[0].state == "stopped"
        again = store.begin(SPEC)
        assert again.id == run.id
        record(again, 1, 2)
        assert list(store.rows(again.id)) == [row(0), row(1), row(2)]
        assert list(store.traces(again.id)) == ["t0\n", "t1\n", "t2\n"]
        again.finish("done", {"n": 3})
        other = store.begin(RunSpec(SPEC.command, {"model": "n"}, SPEC.inputs))
        fresh = store.begin(SPEC, fresh=True)
        assert len({again.id, other.id, fresh.id}) == 3
        fresh.finish("paused")
        named = store.begin(SPEC, id=run.id)
        assert list(store.rows(named.id)) == [row(0), row(1), row(2)]
        with pytest.raises(StoreError, match="started with other settings"):
            store.begin(SPEC, id=other.id)
        with pytest.raises(StoreError, match="no run"):
            store.begin(SPEC, id="nope")


def test_last_row_wins_and_failures_are_retried(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        run = store.begin(SPEC)
        record(run, 1, status="failed")
        assert not run.has(key(1))
        assert run.outcome(key(1)) == row(1, status="failed")
        record(run, 1)
        assert run.has(key(1))
        assert list(store.rows(run.id)) == [row(1)]
        assert store.tally(run.id) == {"answered": 1}


def test_a_damaged_row_is_left_out_and_its_task_run_again(tmp_path: Path) -> None:
    """A whole row of another task, too."""
    with Store.open(tmp_path) as store:
        record(store.begin(SPEC), 0, 1, 2)
    change(
        tmp_path, "UPDATE results SET row = (SELECT row FROM results WHERE seq = 0) WHERE seq = 1"
    )
    change(tmp_path, "UPDATE results SET row = '\"failed\" {' WHERE seq = 2")
    with Store.open(tmp_path) as store:
        run = store.begin(SPEC)
        assert (list(store.rows(run.id)), store.n_bad_rows) == ([row(0)], 2)
        assert [run.has(key(i)) for i in range(3)] == [True, False, False]


@pytest.mark.parametrize("status", ["answered", "nothing_found", "undecided"])
def test_row_that_is_not_a_failure_is_done(tmp_path: Path, status: str) -> None:
    with Store.open(tmp_path) as store:
        run = store.begin(SPEC)
        record(run, 1, status=status, steps=["failed"])
        assert run.has(key(1))


def test_a_task_whose_document_changed_has_one_row(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        run = store.begin(SPEC)
        record(run, 0, 1)
        asyncio.run(run.record(b"new", 1, "1", row(1, answer="new"), None))
        assert [each["answer"] for each in store.rows(run.id)] == ["a0", "new"]


def test_any_text_is_stored(tmp_path: Path) -> None:
    odd = "\ud800 \x00 \u2028 \U0001f511"
    spec = RunSpec(("execute", odd), {"s": odd}, {"i": odd}, folder="/a\udcff")
    with Store.open(tmp_path) as store:
        run = store.begin(spec)
        asyncio.run(run.record(KEY, 0, odd, {"id": odd, "status": "answered"}, odd))
        assert list(store.rows(run.id)) == [{"id": odd, "status": "answered"}]
        info = store.run(run.id)
        assert (info.command, info.settings, info.inputs) == (
            ("execute", odd),
            {"s": odd},
            {"i": odd},
        )
        assert info.spec_key == spec.key


@pytest.mark.parametrize(
    ("n", "total"), [(7, 12), (-6, 0), (-5, 0), (2**62, 2**62), (2**63, 0), (1e300, 0), ("x", 5)]
)
def test_invalid_token_counts_are_zero(tmp_path: Path, n: object, total: int) -> None:
    with Store.open(tmp_path) as store:
        run = store.begin(SPEC)
        record(run, 0, usage={"input_tokens": 5, "output_tokens": 3, "cached_tokens": 1})
        record(run, 1, usage={"input_tokens": n, "output_tokens": 4, "cached_tokens": 2})
        record(run, 2)
        assert store.usage(run.id) == Usage(total, 7, 3)


def test_runs_are_found_by_prefix(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        first, second = (store.begin(SPEC, fresh=True).id for _ in range(2))
        assert [info.id for info in store.runs()] == [second, first]
        assert store.run(first[:-1] if first[:-1] != second[:-1] else first).id == first
        assert store.run(first.partition("-")[2]).id == first
        with pytest.raises(StoreError, match="2 runs begin"):
            store.run(first[:8])
        with pytest.raises(StoreError, match="no run 'x'"):
            store.run("x")


def test_prune(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        for _ in range(4):
            run = store.begin(SPEC, fresh=True)
            record(run, *range(300), text="x" * 1_000)
            run.finish("done")
        asyncio.run(store.keep(KEY, REPLY))
        held = store.begin(SPEC)
        assert not chosen(store.runs(), older_than_s=3_600, keep=None)
        gone = store.prune([run.id for run in chosen(store.runs(), older_than_s=0, keep=2)])
        assert (gone.n_runs, gone.n_results, gone.n_replies) == (2, 600, 0)
        assert gone.n_bytes > 600_000
        gone = store.prune(
            [run.id for run in chosen(store.runs(), older_than_s=None, keep=0)], replies=True
        )
        assert (gone.n_runs, gone.n_replies) == (1, 1)
        assert [info.id for info in store.runs()] == [held.id]
        with pytest.raises(StoreError, match=f"{held.id} is in use by process"):
            store.prune([held.id])
        assert len(list(store.rows(held.id))) == 300


def test_id_that_is_a_path_is_not_used_as_one(tmp_path: Path) -> None:
    with Store.open(tmp_path / "b") as store:
        record(store.begin(SPEC), 0)
    change(tmp_path / "b", "UPDATE runs SET id = '../../x'")
    with (
        Store.open(tmp_path / "b") as store,
        pytest.raises(StoreError, match="not the id of a run"),
    ):
        store.begin(SPEC)


def test_default_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME")
    assert default_folder() == tmp_path / ".local/share/pearl"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert default_folder() == tmp_path / ".local/share/pearl"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert default_folder() == tmp_path / "data/pearl"
    monkeypatch.setenv("PEARL_STORE", "here")
    assert default_folder() == Path("here")


def test_read_only_store_does_not_write(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no store here"):
        Store.open(tmp_path / "none", read_only=True)
    assert not (tmp_path / "none").exists()
    Store.open(tmp_path).close()
    with (
        Store.open(tmp_path, read_only=True) as store,
        pytest.raises(StoreError, match="opened read-only"),
    ):
        store.begin(SPEC)


def test_writing_to_a_closed_store_fails(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    run = store.begin(SPEC)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        record(run, 1)


def test_cancelled_writes_do_no_harm(tmp_path: Path) -> None:
    async def main() -> None:
        with Store.open(tmp_path) as store:
            tasks = [asyncio.ensure_future(store.keep(key(i), REPLY)) for i in range(20)]
            await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert [await store.reply(key(i)) for i in range(20)] == [REPLY] * 20

    asyncio.run(main())
