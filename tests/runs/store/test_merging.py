"""Merging of shards, whole runs and damaged data."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pearl.runs.store import RunSpec, Status, Store
from pearl.runs.store.merging import merge
from tests.runs.store.filling import KEY, REPLY, SPEC, change, record


def shard_of(folder: Path, part: str | None, status: Status) -> None:
    """A store with one run, of a part of the work or of all of it."""
    settings = {"m": 1} if part is None else {"m": 1, "shard": part}
    with Store.open(folder) as store:
        run = store.begin(RunSpec(("execute",), settings, {}, folder="/"))
        asyncio.run(run.record(f"key {part}".encode(), 0, str(part), {"id": part}, None))
        run.finish(status, {"rows": 1})


def test_run_of_shards_is_done_when_all_are(tmp_path: Path) -> None:
    parts: dict[str, Status] = {"1/3": "done", "2/3": "done", "3/3": "stopped"}
    for part, status in parts.items():
        shard_of(tmp_path / part[0], part, status)
    folders = [tmp_path / part[0] for part in parts]
    with Store.open(tmp_path / "all") as store:

        def state() -> tuple[str, object]:
            (info,) = store.runs()
            return info.status, info.counts.get("shards")

        merge(store, folders)
        assert state() == ("stopped", ["1/3", "2/3"])
        with Store.open(tmp_path / "3") as third:
            third.begin(RunSpec(("execute",), {"m": 1, "shard": "3/3"}, {})).finish("done")
        merge(store, folders)
        assert state() == ("done", ["1/3", "2/3", "3/3"])
        shard_of(tmp_path / "other", "1/4", "stopped")
        merge(store, [tmp_path / "other"])
        merge(store, folders)
        assert state()[0] == "done"


def test_finished_run_stays_finished_after_merging_shards(tmp_path: Path) -> None:
    shard_of(tmp_path / "whole", None, "done")
    shard_of(tmp_path / "part", "1/4", "stopped")
    for order in (["whole", "part", "part"], ["part", "whole", "part"]):
        with Store.open(tmp_path / "-".join(order)) as store:
            for name in order:
                merge(store, [tmp_path / name])
            (info,) = store.runs()
            assert (info.status, info.n_results) == ("done", 2)


def test_merged_shards_outlive_the_end_of_a_run(tmp_path: Path) -> None:
    shard_of(tmp_path / "1", "1/2", "done")
    shard_of(tmp_path / "2", "2/2", "done")
    with Store.open(tmp_path / "all") as store:
        merge(store, [tmp_path / "1"])
        store.begin(RunSpec(("execute",), {"m": 1}, {}, folder="/")).finish("stopped", {"rows": 1})
        merge(store, [tmp_path / "2"])
        (info,) = store.runs()
        assert (info.status, info.counts) == ("done", {"rows": 1, "shards": ["1/2", "2/2"]})


def test_invalid_shard_is_merged_as_a_whole_run(tmp_path: Path) -> None:
    shard_of(tmp_path / "odd", "all", "done")
    with Store.open(tmp_path / "all") as store:
        assert merge(store, [tmp_path / "odd"]).n_runs == 1


def test_merge_skips_damaged_data(tmp_path: Path) -> None:
    with Store.open(tmp_path / "other") as store:
        record(store.begin(SPEC), 0, 1)
        asyncio.run(store.keep(KEY, REPLY))
    change(tmp_path / "other", "UPDATE results SET row = '[]' WHERE seq = 0")
    change(tmp_path / "other", "UPDATE replies SET body = '{'")
    with Store.open(tmp_path / "mine") as store:
        merged = merge(store, [tmp_path / "other"])
        assert (merged.n_results, merged.n_replies, merged.n_bad) == (1, 0, 2)
