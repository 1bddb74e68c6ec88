"""Lists and comparisons of results: what they count, what they show, and that nothing in rows is markup."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pearl.view.comparison_page import aligned, comparison_page, differences
from pearl.view.listing import index_page
from pearl.view.sources import ResultsFile

HOSTILE = "</script></style><script>alert(1)</script><img src=x onerror=alert(2)>"


def kept(path: Path, *rows: dict[str, Any]) -> ResultsFile:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return ResultsFile(path)


def row(id: str, answer: str = "Ada", **fields: Any) -> dict[str, Any]:
    usage = {"input_tokens": 1_000_000, "output_tokens": 0, "cached_tokens": 0}
    return {
        "id": id,
        "status": "answered",
        "question": f"Who {id}?",
        "document": "story.txt",
        "answer": answer,
        "model": "openai:gpt-4o-mini",
        "usage": usage,
        "duration_s": 1.5,
        **fields,
    }


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="records">(.*?)</script>', page, re.S)
    assert found
    read: dict[str, Any] = json.loads(found[1])
    return read


def test_every_row_is_listed_with_its_numbers_and_unknown_cost_is_not_zero(tmp_path: Path) -> None:
    failed = {"id": "c", "status": "failed", "error": {"type": "DataError", "message": "no file"}}
    doubted = {
        "unverified_quotes": [{"step": "s", "text": "a quote", "reason": "missing"}] * 3,
        "why": "a quote is missing",
    }
    usage = {"input_tokens": 1_000_000, "output_tokens": 0, "written_tokens": 1_000_000}
    priced = row("a", model="openai:claude-opus-5", usage=usage)
    page = index_page(
        kept(tmp_path / "r.jsonl", priced, row("b", model="vllm:own", **doubted), failed)
    )
    data = data_of(page)
    lines = [dict(zip(data["columns"], cells, strict=True)) for cells in data["lines"]]
    assert [line["cost"] for line in lines] == [6.25, None, None]
    assert [line["error"] for line in lines] == ["", "", "DataError"]
    assert [each["error"] for each in data["details"]] == ["", "", "no file"]
    assert [each["why"] for each in data["details"]] == ["", "a quote is missing", ""]
    assert "$6.2500; 2 rows unknown" in page
    assert "2,000,000, 0" in page
    free = row("f", model="own:x", usage={"input_tokens": 0, "output_tokens": 0})
    assert "<dd>$0.0000</dd>" in index_page(kept(tmp_path / "free.jsonl", free))
    none = index_page(kept(tmp_path / "none.jsonl", row("b", model="vllm:own"), failed))
    assert re.search(r"<dt>cost[^<]*</dt><dd>unknown</dd>", none)
    assert "<dt>unverified quotes</dt><dd>3</dd>" in page


@pytest.mark.parametrize(
    "odd", [HOSTILE, [], {}, True, -1, float("nan"), 10**400, None, [[HOSTILE]]]
)
def test_rows_of_any_content_are_shown_and_are_no_markup(tmp_path: Path, odd: Any) -> None:
    names = (*row("a"), "evidence", "unverified_quotes", "steps", "plan", "error", "notes", "score")
    rows = [row("a") | {name: odd} for name in names]
    first = kept(tmp_path / "a.jsonl", *rows)
    second = kept(tmp_path / "b.jsonl", *(row("a") for _ in rows))
    for page in (index_page(first), comparison_page(first, second)):
        assert "<img" not in page
        assert "alert(1)</script>" not in page
        assert page.count("</style>") == 1


def test_rows_belong_together_by_id_and_else_by_what_is_asked() -> None:
    a, b = [row("1"), row("2"), row("3")], [row("2"), row("x", question="Who 1?"), row("4")]
    pairs = [(p.first and p.first["id"], p.second and p.second["id"]) for p in aligned(a, b)]
    assert pairs == [("1", "x"), ("2", "2"), ("3", None), (None, "4")]


def test_what_changed_is_counted_and_marked(tmp_path: Path) -> None:
    before, after = (
        [{"output": "a", "action": "FIND", "value": f"{who} sold"}, {"output": who, "action": "IS"}]
        for who in ("Nils", "Ada")
    )
    first = kept(tmp_path / "a.jsonl", row("1"), row("2", "Nils sold it", steps=before), row("3"))
    second = kept(tmp_path / "b.jsonl", row("1"), row("2", "Ada sold it", steps=after))
    page = comparison_page(first, second)
    assert "2 rows changed; the same in status, answer, plan, steps and evidence: 1 row." in page
    assert "<del>Nils</del><ins>Ada</ins> sold it" in page
    assert "only in one (1)" in page
    assert "1 row changed;" in comparison_page(
        first, kept(tmp_path / "c.jsonl", row("1"), row("2", "Nils sold it", steps=before))
    )
    assert "a = FIND: changed" in page
    assert "Nils = IS: gone" in page
    assert "Ada = IS: new" in page


@pytest.mark.parametrize("text", ["a b " * 4_000, "x\n" * 4_000, "", "é\u0301 \n\n z"])
def test_both_texts_can_be_had_from_their_differences(text: str) -> None:
    other = text.replace("b", "c") + "end"
    found = differences(text[:9_000], other[:9_000])
    assert "".join(c.text for c in found if c.kind != "new") == text[:9_000]
    assert "".join(c.text for c in found if c.kind != "gone") == other[:9_000]
