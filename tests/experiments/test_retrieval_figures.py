"""The experiments on Cranfield and ConvFinQA: how they read the data, and the bars they hold."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path
from typing import Any

import pytest

from pearl.retrieval.corpus import CorpusDocument, Cutting
from pearl.retrieval.index import Index
from pearl.retrieval.search import Searcher
from tests.experiments.scripts import experiment
from tests.shared import shared
from tests.skips import NO_LARGE, needs_contrib


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
    assert judgments == {"1": {"1": 4, "3": 1}, "2": {"3": 0}}


def dialogues(tmp_path: Path) -> list[Any]:
    table = {
        "2009": {"net sales": 206588.0, "costs": -27.0},
        "2008": {"net sales": 181001.0, "costs": 9.0},
    }
    turns = ["206588", "subtract(206588, 181001)", "divide(#0, const_100)", "multiply(27%, 3)"]
    row = {
        "id": "Single_JKHY/2009/page_28.pdf-3",
        "doc": {"pre_text": "Of sales.", "post_text": "", "table": table},
        "dialogue": {
            "conv_questions": ["a sales?", "b?", "c?", "d costs?"],
            "turn_program": turns,
            "executed_answers": [206588.0, 25587.0, 1.0, 0.81],
            "conv_answers": ["206588", "25587", "1", "0.81"],
        },
    }
    path = tmp_path / "dev.jsonl"
    path.write_text(json.dumps(row))
    return list(experiment("convfinqa_retrieval").read_dialogues(path))


@needs_contrib  # its programs are those of finance
def test_rows_that_hold_an_operand_are_right(tmp_path: Path) -> None:
    module = experiment("convfinqa_retrieval")
    found = module.RowTopics(dialogues(tmp_path))
    assert list(found.pages) == ["JKHY/2009/page_28.pdf"]
    assert [topic.history for topic in found.topics] == [
        (), ("a sales?",), ("a sales?", "b?", "c?"),
    ]  # fmt: skip
    sales, costs = ({f"JKHY/2009/page_28.pdf#{row}": 1} for row in ("net sales", "costs"))
    assert list(found.judgments.values()) == [sales, sales, costs]
    (first, _) = module.passages(found.pages, with_page=True)
    assert first.text == "JKHY 2009 net sales: 2009 206,588; 2008 181,001"


@pytest.mark.slow
def test_rows_of_convfinqa_are_found() -> None:
    module = experiment("convfinqa_retrieval")
    path = shared("convfinqa/dev.jsonl")
    topics = module.RowTopics(list(experiment("convfinqa_retrieval").read_dialogues(path)))
    scores = asyncio.run(module.evaluate_rows(topics))
    assert module.below_bars(scores) == []
    assert len(module.BARS) == 3
    assert module.below_bars({"history, bm25": scores["turn, bm25"]}) != []
    assert (
        scores["page, bm25"].mean("R@60").estimate >= scores["filtered, bm25"].mean("R@60").estimate
    )


def test_measures_equal_values_worked_out_by_hand() -> None:
    """Relevant are a (2), c (1) and e (1); a is third, c fourth, e not found."""
    pytest.importorskip("ir_measures", reason=NO_LARGE)
    grades = {"a": 2, "c": 1, "e": 1, "x": 0, "y": -1}
    ranking = {"q": ["x", "y", "a", "c", "z"]}
    names = ("P@3", "R@4", "RR", "AP", "nDCG@10")
    found = experiment("measures").measure_rankings(ranking, {"q": grades}, names)
    best = 2 + 1 / math.log2(3) + 1 / math.log2(4)
    assert [found[name]["q"] for name in names] == pytest.approx([
        1 / 3, 2 / 3, 1 / 3, (1 / 3 + 2 / 4) / 3, (2 / math.log2(4) + 1 / math.log2(5)) / best,
    ])  # fmt: skip
    for order in (["a", "b"], ["b", "a"]):  # trec_eval orders equal scores by name
        ranked = experiment("measures").measure_rankings({"q": order}, {"q": {order[1]: 1}}, ["RR"])
        assert ranked["RR"] == {"q": 0.5}


def test_a_document_is_judged_by_its_best_passage() -> None:
    pytest.importorskip("ir_measures", reason=NO_LARGE)
    module = experiment("measures")
    texts = {"boat": "Nils sold the boat.\n\nThe boat was rotten.", "oars": "The oars."}
    index = Index.build([CorpusDocument(*one) for one in texts.items()], Cutting("paragraph"))
    topics = [module.Topic("sale", "Who sold the boat?"), module.Topic("none", "the boat")]
    judged = {"sale": {"boat": 1}, "none": {"oars": 0}}
    (scores,) = asyncio.run(
        module.evaluate_retrieval(index, topics, judged, {"bm25": Searcher()}, ["P@2"])
    )
    assert scores.values == {"P@2": {"sale": 0.5}}
