"""The examples of docs/scale.md, each with its engine: Polars, Ray Data, Daft."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pearl.contrib.cluster.columns import answer_type
from tests.docs.blocks import Block, all_blocks
from tests.root import ROOT
from tests.server import Server
from tests.skips import NO_ENGINES

BLOCKS = {re.findall(r"import (\w+)", block.text)[0]: block for block in all_blocks("python columns")}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["polars", "ray", "daft"])
def test_example_answers_every_row_once(engine: str, openai_server: Server, tmp_path: Path) -> None:
    pytest.importorskip(engine, reason=NO_ENGINES)
    import pyarrow as pa
    from pyarrow import parquet

    block: Block = BLOCKS[engine]
    (tmp_path / "why.plan").write_text('1. why = FIND_REASON(CTX, "it") : Find why', encoding="utf-8")  # fmt: skip
    texts = [f"It rained on day {i}." if i % 7 else None for i in range(40)]
    reviews = pa.table({"id": range(40), "review": texts})
    parquet.write_table(reviews, tmp_path / "reviews.parquet")
    openai_server.on("", lambda seen: f"> {re.findall(r'It rained on day [0-9]+', seen.prompt)[0]}")
    (tmp_path / "example.py").write_text(block.text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={
            **os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "x", "OPENAI_BASE_URL": openai_server.url,
            "RAY_USAGE_STATS_ENABLED": "0", "DAFT_ANALYTICS_ENABLED": "0", "DO_NOT_TRACK": "true",
        },
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3_000:]
    path = next(tmp_path.glob("answers*"))
    table = parquet.read_table(path).sort_by("id")
    assert table["id"].to_pylist() == reviews["id"].to_pylist()
    answers = table["answer"].cast(answer_type()).to_pylist()  # Daft has long offsets
    assert [row["evidence"][0]["quote"] if row["evidence"] else None for row in answers] == [
        text and text.removesuffix(".") for text in texts
    ]
    assert {row["status"] for row, text in zip(answers, texts, strict=True) if text is None} == {"failed"}  # fmt: skip
    assert len(openai_server.requests) == len(texts) - texts.count(None)
