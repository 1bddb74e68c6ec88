"""Domains: samples of reports, stories, transcripts, and files of any kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pearl.data.domains import Source, read_samples
from pearl.data.domains.medical import NOTE_TASK
from pearl.data.samples import Sample
from pearl.documents.document import Document
from pearl.errors import DataError, UsageError

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


def test_there_may_be_an_option_for_each_letter(tmp_path: Path) -> None:
    found = read_row(tmp_path, options=[f"option {n}" for n in range(26)], gold="Z")
    assert isinstance(found, Sample)
    assert found.gold == 25


@pytest.mark.parametrize("name", ["document", "document_path"])
def test_rows_of_another_domain_that_name_a_document_are_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "note.txt").write_text("note.txt")
    notes = {"transcription": "A note.", "medical_specialty": "Surgery"}
    found = read_row(tmp_path, **notes, **{name: "note.txt"})
    assert isinstance(found, Sample)
    assert found.load().text == "note.txt"
    with pytest.raises(UsageError, match="rows with medical_specialty"):
        read_row(tmp_path, **notes)


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
        *(
            ({"options": OPTIONS, "gold": gold}, "gold")
            for gold in ("E", 0, 5, -1, "five", 1.5, True, [1], "0")
        ),
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


def test_renamed_column_id_is_not_the_id(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("id\nWho?\n")
    (sample,) = read(tmp_path / "q.csv", question="id")
    assert sample == Sample("2", "Who?")


HEADER = "description,medical_specialty,sample_name,transcription,keywords\n"


def read_medical(path: Path, text: str | None = None) -> list[Sample | DataError]:
    if text is not None:
        path.write_text(text)
    return list(read_samples("medical", Source(str(path))))


def test_reports(tmp_path: Path) -> None:
    rows = 'x, Surgery, Knee ,"One,\ntwo.",k\nx, Surgery, Knee ,Three.,k\nx,,,Four.,\nx,y,z,,k\n'
    *samples, bad = read_medical(tmp_path / "r.csv", HEADER + rows)
    surgery = frozenset({"Surgery"})
    assert samples == [
        Sample("Knee/2", "", Document("One,\ntwo.", "Knee/2"), subsets=surgery),
        Sample("Knee/4", "", Document("Three.", "Knee/4"), subsets=surgery),
        Sample("report/5", "", Document("Four.", "report/5")),
    ]
    assert str(bad) == f"{tmp_path}/r.csv:6: 'transcription' contains no text"


def test_consultations(tmp_path: Path) -> None:
    data = [
        {"src": "[doctor] hi", "tgt": "NOTE", "file": "D1"},
        {"src": "[doctor] hi", "tgt": None},
    ]
    data += [{"src": "[doctor] ho", "tgt": "NOTE", "file": "D1"}]
    first, second, bad = read_medical(tmp_path / "r.json", json.dumps({"data": data}, indent=1))
    assert first == Sample("D1", NOTE_TASK, Document("[doctor] hi", "D1"), reference="NOTE")
    assert isinstance(second, Sample)
    assert second.id == "dialogue/8"
    assert second.reference is None
    assert str(bad).startswith(f"{tmp_path}/r.json:12: duplicate id 'D1', first used in line 3")


ARTICLE = "<html><body><p>Nils sold\nthe boat.</p><p>It was 1 &lt; 2.</p></body></html>"
FOUR = ["a", "b", "c", "d"]


def question(text: str = "Why?", **fields: Any) -> dict[str, Any]:
    return {"question": text, "options": FOUR, "gold_label": 2, **fields}


def row(*questions: Any, **fields: Any) -> dict[str, Any]:
    return {"article_id": "1", "set_unique_id": "1_X", "article": ARTICLE, "questions": list(questions), **fields}  # fmt: skip


def read_quality(path: Path, *rows: Any, **columns: str) -> list[Sample | DataError]:
    if rows:
        path.write_text("\n".join(map(json.dumps, rows)))
    return list(read_samples("quality", Source(str(path), columns=columns)))


def samples_quality(path: Path, *rows: Any, **columns: str) -> list[Sample]:
    found = read_quality(path, *rows, **columns)
    assert not [one for one in found if isinstance(one, DataError)]
    return [one for one in found if isinstance(one, Sample)]


def needed(*values: Any) -> list[dict[str, Any]]:
    return [{"untimed_annotator_id": "x", "untimed_eval2_context": value} for value in values]


def test_official_rows(tmp_path: Path) -> None:
    first, second, third = samples_quality(
        tmp_path / "dev",
        row(question(question_unique_id="1_X_7", difficult=1), question("How\n so?", difficult=0)),
        row({"question": "Why?", "options": FOUR}, set_unique_id="1_Y"),
    )
    assert first.document == Document("Nils sold the boat.\n\nIt was 1 < 2.", "1")
    assert first.document is second.document is third.document
    assert [s.id for s in (first, second, third)] == ["1_X_7", "1_X_2", "1_Y_1"]
    assert second.question == "How so?"
    assert (first.options, first.gold) == (tuple(FOUR), 1)
    assert third.gold is None  # as in the split for tests
    assert (first.subsets, second.subsets) == ({"hard"}, frozenset())


def test_an_article_without_tags_of_a_page_is_read_as_one(tmp_path: Path) -> None:
    article = '<h2 class="part">The boat</h2>Nils sold it.'
    (sample,) = samples_quality(tmp_path / "dev", row(question(), article=article))
    assert sample.load().text == "The boat\n\nNils sold it."


@pytest.mark.parametrize(
    ("validation", "subsets"),
    [
        (needed(3, 3, 3), {"long"}),
        (needed(4, 4, 1), {"long"}),
        (needed(4, 3, 1), {"short"}),
        (needed(1, None), {"short"}),
        (needed(None), set()),
        ([], set()),
        (None, set()),
    ],
)
def test_long_questions_need_a_third_of_the_passage(
    tmp_path: Path, validation: Any, subsets: set[str]
) -> None:
    (sample,) = samples_quality(tmp_path / "dev", row(question(validation=validation)))
    assert sample.subsets == subsets


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (question(options=FOUR[:3]), "3 options, not 4"),
        (question(options=["a", "b", "c", 4]), "'options': item 4 is not text"),
        (question(options=["a", "b", "c", " "]), "'options': item 4 is not text"),
        (question(options=None), "0 options, not 4"),
        (question(gold_label=0), "'gold_label' is 0, not 1 to 4"),
        (question(gold_label=5), "'gold_label' is 5, not 1 to 4"),
        (question(gold_label="B"), "'gold_label' is 'B'"),
        (question(gold_label=True), "'gold_label' is True"),
        (question(gold_label=None, gold="E"), "gold: 'E' is not one of the 4 options"),
        (question(subsets=5), "'subsets' is a number"),
        (question(hard="maybe"), "'hard' is 'maybe', not true or false"),
        (question(difficult=2), "'difficult' is 2, not true or false"),
        (question(" "), "the question is blank"),
        (question(["Why?"]), "an array, not text"),
        ("Why?", "text, not an object"),
        (question(question_unique_id="1_X_1"), "duplicate id '1_X_1', first used in line 1"),
    ],
)
def test_bad_question_is_an_error_and_others_are_read(tmp_path: Path, bad: Any, said: str) -> None:
    first, wrong, last = read_quality(tmp_path / "dev", row(question(), bad, question()))
    assert isinstance(first, Sample)
    assert isinstance(last, Sample)
    assert str(wrong).startswith(f"{tmp_path}/dev:1: question 2: ")
    assert said in str(wrong)
    assert str(wrong).count(str(tmp_path)) == 1


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (row(question(), article=None), "'article' contains no text"),
        (row(question(), article="<p> </p>"), "'article' contains no text"),
        (row(question(), article=5), "a number, not text"),
        (row(questions={"question": ["Why?"]}), "an object, not an array"),
    ],
)
def test_bad_article_gives_one_error(tmp_path: Path, bad: Any, said: str) -> None:
    wrong, good = read_quality(tmp_path / "dev", bad, row(question()))
    assert str(wrong).startswith(f"{tmp_path}/dev:1: ")
    assert said in str(wrong)
    assert isinstance(good, Sample)


def test_the_flat_layout_of_hubs(tmp_path: Path) -> None:
    flat = [
        {"article": "Nils left.", "question": "Who?", "options": FOUR, "answer": 0, "hard": True},
        {"article": "Nils left.", "question": "When?", "options": FOUR, "answer": 3, "hard": False},
        {"article": "Ada left.", "question": "Who?", "options": FOUR, "answer": 4, "hard": False},
    ]
    first, second, bad = read_quality(tmp_path / "train.jsonl", *flat)
    assert isinstance(first, Sample)
    assert isinstance(second, Sample)
    assert first.document is second.document
    assert first.document_name == "article 1"
    assert (first.gold, second.gold) == (0, 3)
    assert (first.subsets, second.subsets) == ({"hard"}, frozenset())
    assert "'answer' is 4, not 0 to 3" in str(bad)


def test_articles_of_one_id_are_told_apart(tmp_path: Path) -> None:
    first, second = samples_quality(
        tmp_path / "dev", row(question()), row(question(), article="Else.", set_unique_id="1_Y")
    )
    assert (first.document_name, second.document_name) == ("1", "1, line 2")


@pytest.mark.parametrize("field", ["hard", "difficult"])
@pytest.mark.parametrize(
    ("value", "is_hard"),
    [(True, True), ("True", True), ("1", True), (1, True), (1.0, True), (" yes ", True),
     (False, False), ("false", False), ("0", False), (0, False), (None, False)],
)  # fmt: skip
def test_spellings_of_hard(tmp_path: Path, field: str, value: Any, is_hard: bool) -> None:
    (sample,) = samples_quality(tmp_path / "dev", row(question(**{field: value})))
    assert sample.subsets == ({"hard"} if is_hard else frozenset())


def test_columns_of_every_sample_hold_for_articles_too(tmp_path: Path) -> None:
    flat = {"article": "Nils left.", "question": "Who?", "options": FOUR, "key": "C", "answer": 0, "said": "Nils",
            "part": "old", "hard": True}  # fmt: skip
    (sample,) = samples_quality(
        tmp_path / "q.jsonl", flat, gold="key", reference="said", subsets="part"
    )
    assert (sample.gold, sample.reference, sample.subsets) == (2, "Nils", {"old", "hard"})


def test_a_csv_of_the_flat_layout(tmp_path: Path) -> None:
    cells = '"[""a"", ""b"", ""c"", ""d""]"'
    (tmp_path / "q.csv").write_text(
        f"article,question,options,gold_label,hard\nNils left.,Who?,{cells},2,True\n"
        f"Nils left.,Who?,{cells},5,False\n"
    )
    sample, bad = read_quality(tmp_path / "q.csv")
    assert isinstance(sample, Sample)
    assert (sample.options, sample.gold, sample.subsets) == (tuple(FOUR), 1, {"hard"})
    assert "'gold_label' is '5', not 1 to 4" in str(bad)
