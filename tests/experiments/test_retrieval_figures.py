"""The experiments on Cranfield and ConvFinQA: how they read the data, and the bars they hold."""

from __future__ import annotations

import asyncio
import importlib
import json
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from tests.root import ROOT
from tests.shared import shared
from tests.skips import needs_tantivy


@cache
def experiment(name: str) -> ModuleType:
    """The experiment; it imports its neighbours as a script does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "experiments/retrieval")
        return importlib.import_module(name)


def test_cranfield_is_read_as_its_codes_mean(tmp_path: Path) -> None:
    documents = (
        ".I 1\n.T\nwings\n.A\nx\n.B\ny\n.W\nwings and lift .\n.I 2\n.T\n\n.W\n\n.I 3\n.W\nheat .\n"
    )
    (tmp_path / "cran.all.1400").write_text(documents)
    (tmp_path / "cran.qry").write_text(".I 001\n.W\nwhat lifts\na wing .\n.I 004\n.W\nheat ?\n")
    (tmp_path / "cranqrel").write_text("1 1 1 \n1 3 4\n2 3 -1\n")
    found, topics, judgments = experiment("cranfield").collection(tmp_path)
    assert [(one.name, one.text) for one in found] == [("1", "wings and lift ."), ("3", "heat .")]
    assert [(one.id, one.text) for one in topics] == [
        ("1", "what lifts\na wing ."),
        ("2", "heat ?"),
    ]
    assert judgments.grades == {"1": {"1": 4, "3": 1}, "2": {"3": 0}}
    with_sources = experiment("cranfield").collection(tmp_path, sources=True)[2]
    assert with_sources.grades["2"] == {"3": 4}


def test_rows_that_hold_an_operand_are_right(tmp_path: Path) -> None:
    table = {
        "2009": {"net sales": 206588.0, "costs": -27.0},
        "2008": {"net sales": 181001.0, "costs": 9.0},
    }
    turns = ["206588", "subtract(206588, 181001)", "divide(#0, const_100)", "multiply(27%, 3)"]
    dialogue = {
        "id": "Single_JKHY/2009/page_28.pdf-3",
        "doc": {"table": table},
        "dialogue": {"conv_questions": ["a?", "b?", "c?", "d?"], "turn_program": turns},
    }
    path = tmp_path / "dev.jsonl"
    path.write_text(json.dumps(dialogue))
    module = experiment("convfinqa")
    pages, topics, judgments, pages_of, n_turns = module.read(path)
    assert (list(pages), n_turns) == (["JKHY/2009/page_28.pdf"], 4)
    assert [topic.history for topic in topics] == [(), ("a?",), ("a?", "b?", "c?")]
    assert set(pages_of.values()) == set(pages)
    sales, costs = ({f"JKHY/2009/page_28.pdf#{row}": 1} for row in ("net sales", "costs"))
    assert list(judgments.grades.values()) == [sales, sales, costs]
    (first, _) = module.passages(pages, with_page=True)
    assert first.text == "JKHY 2009 net sales: 2009 206588; 2008 181001"
    assert module.operands("subtract(#0, const_1), add(5.5%, -3)") == {5.5, 0.055, 3.0}


@pytest.mark.slow
def test_rows_of_convfinqa_are_found() -> None:
    path, module = shared("convfinqa/dev.jsonl"), experiment("convfinqa")
    scores = {one.method: one for one in asyncio.run(module.evaluate(path, ["bm25+"]))}
    for kind, measure, bar in module.BARS:
        assert scores[f"{kind}, bm25+"].mean(measure).estimate >= bar, kind


@pytest.mark.slow
@needs_tantivy
def test_bm25_is_as_good_as_others_at_equal_settings() -> None:
    module = experiment("cranfield")
    documents, topics, judgments = module.collection(shared("cranfield"))
    found = asyncio.run(module.lexical(documents, topics, judgments))
    scores = {one.method: one for one in found}
    for stem in module.STEMS:
        for peer in ("bm25s", "tantivy"):
            for measure in module.MEASURES:
                ours, theirs = scores[f"bm25 k1=1.2 b=0.75, {stem}"], scores[f"{peer}, {stem}"]
                assert ours.mean(measure).estimate >= theirs.mean(measure).estimate - module.SAME
