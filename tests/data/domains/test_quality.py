"""QuALITY: the official rows, and the flat layout of hubs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pearl.data.domains import Source, read_samples
from pearl.data.samples import Sample
from pearl.documents.document import Document
from pearl.errors import DataError
from tests.shared import shared
from tests.skips import needs

ARTICLE = "<html><body><p>Nils sold\nthe boat.</p><p>It was 1 &lt; 2.</p></body></html>"
FOUR = ["a", "b", "c", "d"]


def question(text: str = "Why?", **fields: Any) -> dict[str, Any]:
    return {"question": text, "options": FOUR, "gold_label": 2, **fields}


def row(*questions: Any, **fields: Any) -> dict[str, Any]:
    return {"article_id": "1", "set_unique_id": "1_X", "article": ARTICLE, "questions": list(questions), **fields}  # fmt: skip


def read(path: Path, *rows: Any, **columns: str) -> list[Sample | DataError]:
    if rows:
        path.write_text("\n".join(map(json.dumps, rows)))
    return list(read_samples("quality", Source(str(path), columns=columns)))


def samples(path: Path, *rows: Any, **columns: str) -> list[Sample]:
    found = read(path, *rows, **columns)
    assert not [one for one in found if isinstance(one, DataError)]
    return [one for one in found if isinstance(one, Sample)]


def needed(*values: Any) -> list[dict[str, Any]]:
    return [{"untimed_annotator_id": "x", "untimed_eval2_context": value} for value in values]


def test_official_rows(tmp_path: Path) -> None:
    first, second, third = samples(
        tmp_path / "dev",
        row(question(question_unique_id="1_X_7", difficult=1), question("How\n so?", difficult=0)),
        row(question(), set_unique_id="1_Y"),
    )
    assert first.document == Document("Nils sold the boat.\n\nIt was 1 < 2.", "1")
    assert first.document is second.document is third.document
    assert [s.id for s in (first, second, third)] == ["1_X_7", "1_X_2", "1_Y_1"]
    assert second.question == "How so?"
    assert (first.options, first.gold) == (tuple(FOUR), 1)
    assert (first.subsets, second.subsets) == ({"hard"}, frozenset())


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
    (sample,) = samples(tmp_path / "dev", row(question(validation=validation)))
    assert sample.subsets == subsets


def test_the_test_split_has_no_gold(tmp_path: Path) -> None:
    (sample,) = read(tmp_path / "test", row({"question": "Why?", "options": FOUR}))
    assert isinstance(sample, Sample)
    assert sample.gold is None


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
    first, wrong, last = read(tmp_path / "dev", row(question(), bad, question()))
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
    wrong, good = read(tmp_path / "dev", bad, row(question()))
    assert str(wrong).startswith(f"{tmp_path}/dev:1: ")
    assert said in str(wrong)
    assert isinstance(good, Sample)


@needs("datasets")
def test_the_flat_layout_of_hubs(tmp_path: Path) -> None:
    import datasets

    flat = [
        {"article": "Nils left.", "question": "Who?", "options": FOUR, "answer": 0, "hard": True},
        {"article": "Nils left.", "question": "When?", "options": FOUR, "answer": 3, "hard": False},
        {"article": "Ada left.", "question": "Who?", "options": FOUR, "answer": 4, "hard": False},
    ]
    datasets.Dataset.from_list(flat).save_to_disk(tmp_path / "saved")
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain/train.jsonl").write_text("\n".join(map(json.dumps, flat)))
    for folder in (tmp_path / "saved", tmp_path / "plain"):
        first, second, bad = read(folder)
        assert isinstance(first, Sample)
        assert isinstance(second, Sample)
        assert first.document is second.document
        assert first.document_name == "article 1"
        assert (first.gold, second.gold) == (0, 3)
        assert (first.subsets, second.subsets) == ({"hard"}, frozenset())
        assert "'answer' is 4, not 0 to 3" in str(bad)


@needs("datasets")
def test_official_rows_of_a_dataset(tmp_path: Path) -> None:
    import datasets

    rows = [row(question(difficult=1, validation=needed(3, 4)), question("When?"))]
    datasets.Dataset.from_list(rows).save_to_disk(tmp_path / "saved")
    first, second = samples(tmp_path / "saved")
    assert first.subsets == {"hard", "long"}
    assert second.question == "When?"


def test_articles_of_one_id_are_told_apart(tmp_path: Path) -> None:
    first, second = samples(
        tmp_path / "dev", row(question()), row(question(), article="Else.", set_unique_id="1_Y")
    )
    assert (first.document_name, second.document_name) == ("1", "1, line 2")


def test_columns_may_have_other_names(tmp_path: Path) -> None:
    flat = {"context": "Nils left.", "question": "Who?", "choices": FOUR, "label": 0}
    (sample,) = samples(
        tmp_path / "q.jsonl", flat, article="context", options="choices", answer="label"
    )
    assert sample.gold == 0


@pytest.mark.parametrize("field", ["hard", "difficult"])
@pytest.mark.parametrize(
    ("value", "is_hard"),
    [(True, True), ("True", True), ("1", True), (1, True), (1.0, True), (" yes ", True),
     (False, False), ("false", False), ("0", False), (0, False), (None, False)],
)  # fmt: skip
def test_spellings_of_hard(tmp_path: Path, field: str, value: Any, is_hard: bool) -> None:
    (sample,) = samples(tmp_path / "dev", row(question(**{field: value})))
    assert sample.subsets == ({"hard"} if is_hard else frozenset())


def test_columns_of_every_sample_hold_for_articles_too(tmp_path: Path) -> None:
    flat = {"article": "Nils left.", "question": "Who?", "options": FOUR, "key": "C", "answer": 0, "said": "Nils",
            "part": "old", "hard": True}  # fmt: skip
    (sample,) = samples(tmp_path / "q.jsonl", flat, gold="key", reference="said", subsets="part")
    assert (sample.gold, sample.reference, sample.subsets) == (2, "Nils", {"old", "hard"})


def test_a_csv_of_the_flat_layout(tmp_path: Path) -> None:
    cells = '"[""a"", ""b"", ""c"", ""d""]"'
    (tmp_path / "q.csv").write_text(
        f"article,question,options,gold_label,hard\nNils left.,Who?,{cells},2,True\n"
        f"Nils left.,Who?,{cells},5,False\n"
    )
    sample, bad = read(tmp_path / "q.csv")
    assert isinstance(sample, Sample)
    assert (sample.options, sample.gold, sample.subsets) == (tuple(FOUR), 1, {"hard"})
    assert "'gold_label' is '5', not 1 to 4" in str(bad)


def test_the_real_data() -> None:
    found = read(shared("quality/QuALITY.subset.dev"))
    samples = [sample for sample in found if isinstance(sample, Sample)]
    assert len(samples) == len(found) == len({sample.id for sample in samples}) == 119
    assert len({id(sample.document) for sample in samples}) == 10
    assert {sample.gold for sample in samples} == {0, 1, 2, 3}
    assert {len(sample.options) for sample in samples} == {4}
