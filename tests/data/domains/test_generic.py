"""JSON Lines, CSV, Parquet and datasets whose columns are fields of a sample."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pearl.data.domains import Source, read_samples
from pearl.data.samples import Sample, Turn
from pearl.documents.document import Document
from pearl.errors import DataError
from tests.skips import needs

OPTIONS = ["one", "2", "three", "four"]


def read(path: Path, split: str | None = None, **columns: str) -> list[Sample | DataError]:
    return list(read_samples("generic", Source(str(path), split, columns)))


def read_row(folder: Path, **fields: Any) -> Sample | DataError:
    (folder / "rows.jsonl").write_text(json.dumps({"question": "Which?", **fields}))
    (found,) = read(folder / "rows.jsonl")
    return found


@pytest.mark.parametrize(
    ("gold", "index"),
    [("A", 0), ("d", 3), ("three", 2), (1, 0), (4, 3), (3.0, 2), ("3", 2), ("2", 1), (" B ", 1),
     (None, None), ("", None)],
)  # fmt: skip
def test_gold_is_a_letter_a_text_or_a_number_from_1(
    tmp_path: Path, gold: Any, index: int | None
) -> None:
    found = read_row(tmp_path, options=OPTIONS, gold=gold)
    assert isinstance(found, Sample)
    assert found.gold == index


@pytest.mark.parametrize("gold", ["E", 0, 5, -1, "five", 1.5, True, [1], "0"])
def test_gold_that_is_no_option(tmp_path: Path, gold: Any) -> None:
    found = read_row(tmp_path, options=OPTIONS, gold=gold)
    assert str(found).startswith(f"{tmp_path}/rows.jsonl:1: ")
    assert "gold" in str(found)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"options": ["one"]}, "1, not 2 to 26"),
        ({"options": ["x"] * 27}, "27, not 2 to 26"),
        ({"options": ["a", " "]}, "item 2 is not text"),
        ({"options": [1, 2]}, "item 1 is not text"),
        ({"options": {"a": 1}}, "an object, not an array"),
        ({"options": "a or b"}, "not a JSON array"),
        ({"gold": "A"}, "needs 'options'"),
        ({"document": 5}, "a number, not text"),
        ({"document_path": ["a"]}, "an array, not text"),
        ({"document": "\0"}, "no text"),
        ({"reference": False}, "a boolean, not text"),
        ({"subsets": [""]}, "item 1 is not text"),
        ({"gold_passages": "a"}, "not a JSON array"),
        ({"id": True}, "'id' is a boolean"),
    ],
)
def test_fields_of_the_wrong_kind(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    found = read_row(tmp_path, **fields)
    assert isinstance(found, DataError)
    assert str(found).startswith(f"{tmp_path}/rows.jsonl:1: ")
    assert said in str(found)


def test_a_csv_with_options_in_columns(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text('text,A,B,key,part,story\nWhich?,one,"two, too",B,hard,Once upon a time.\n')
    (sample,) = read(
        path, question="text", options="A,B", gold="key", subsets="part", document="story"
    )
    assert sample == Sample(
        "2", "Which?", Document("Once upon a time.", "2"), ("one", "two, too"), 1, None,
        frozenset({"hard"}),
    )  # fmt: skip


def test_a_csv_with_options_in_a_cell(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text('question,options,gold,subsets\nWhich?,"[""a"", ""b""]",2,"[""x"", ""y""]"\n')
    (sample,) = read(path)
    assert isinstance(sample, Sample)
    assert (sample.options, sample.gold, sample.subsets) == (("a", "b"), 1, {"x", "y"})


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "story.txt").write_text("Once.")
    sample = read_row(tmp_path, document_path="story.txt")
    assert isinstance(sample, Sample)
    assert sample.load().text == "Once."


def test_equal_texts_share_a_document_and_names_are_unique(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "document": "Once."},
        {"id": "b", "document": "Once.\r\n", "document_name": "other"},
        {"id": "c", "document": "Once.\n", "document_name": "tale"},
        {"id": "d", "document": "Then.", "document_name": "tale"},
        {"id": "e", "document": "Now.", "document_name": "tale"},
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    first, *others = [sample.document for sample in read(path) if isinstance(sample, Sample)]
    assert first == Document("Once.", "a")
    assert others == [
        Document("Once.\n", "other"), Document("Once.\n", "other"), Document("Then.", "tale"),
        Document("Now.", "tale, line 5"),
    ]  # fmt: skip


@needs("datasets")
def test_parquet_and_datasets(tmp_path: Path) -> None:
    import datasets
    import pyarrow
    from pyarrow import parquet

    rows = [
        {"q": "Which?", "choices": ["a", "b"], "label": 2},
        {"q": "", "choices": [], "label": 0},
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "q.parquet")
    dataset = datasets.DatasetDict(dev=datasets.Dataset.from_list(rows))
    dataset.save_to_disk(tmp_path / "saved")
    for path, split in ((tmp_path / "q.parquet", None), (tmp_path / "saved", "dev")):
        sample, bad = read(path, split, question="q", options="choices", gold="label")
        assert sample == Sample("1", "Which?", None, ("a", "b"), 1)
        assert str(bad).startswith(f"{path}:2: the row has no question, document")


def test_renamed_column_id_is_not_the_id(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("id\nWho?\n")
    (sample,) = read(tmp_path / "q.csv", question="id")
    assert sample == Sample("2", "Who?")


def test_the_turns_before_a_question(tmp_path: Path) -> None:
    turns = [{"question": " Who\nsold? ", "answer": "Ada"}, "And who bought?"]
    rows = [
        {"question": "Why?", "history": turns, "dialogue_id": 7, "n_turns": 4, "program": "1"},
        {"question": "Why?", "history": json.dumps(turns)},
        {"question": "Why?", "history": "Smoked until 1990."},
        {"question": "Why?", "history": [{"answer": "Ada"}]},
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    first, cell, text, bad = read_samples("generic", Source(str(path)))
    assert isinstance(first, Sample)
    assert isinstance(cell, Sample)
    assert isinstance(text, Sample)
    assert first.history == cell.history == (Turn("Who sold?", "Ada"), Turn("And who bought?"))
    assert first.extra == {"dialogue_id": 7, "n_turns": 4, "program": "1"}
    assert (text.history, text.extra) == ((), {"history": "Smoked until 1990."})
    assert "turn 1 is neither" in str(bad)
    again = tmp_path / "again.jsonl"
    again.write_text(json.dumps(first.to_dict()), encoding="utf-8")
    assert list(read_samples("generic", Source(str(again)))) == [first]
