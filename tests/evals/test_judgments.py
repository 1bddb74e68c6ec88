"""Files of topics and judgments, in the forms that people have them in."""

from __future__ import annotations

from pathlib import Path

import pytest

from pearl.errors import DataError
from pearl.evals.retrieval import Judgments, Topic, read_judgments, read_topics


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.jsonl", '{"id": "1", "text": "salt and iron"}\n{"id": 2, "text": "who?"}\n'),
        ("q.jsonl", '{"_id": "1", "text": "salt and iron"}\n\n{"_id": "2", "text": "who?"}'),
        ("q.csv", "id,text\n1,salt and iron\n2,who?\n"),
        ("q.tsv", "1\tsalt and iron\n2\twho?\n"),
        ("q.tsv", "\ufeffid\ttext\r\n1\tsalt and iron\r\n2\twho?\r\n"),
        ("topics.txt", "text\tqid\nsalt and iron\t1\nwho?\t2\n"),
    ],
)
def test_topics(tmp_path: Path, name: str, text: str) -> None:
    found = read_topics(written(tmp_path / name, text))
    assert found == (Topic("1", "salt and iron"), Topic("2", "who?"))


def test_a_topic_may_have_a_history_filters_and_a_group(tmp_path: Path) -> None:
    path = written(
        tmp_path / "q.jsonl",
        '{"id": "a", "text": "and then?", "history": ["Who?"], "filters": ["year=2008"], "group": 3}\n',
    )
    assert read_topics(path) == (Topic("a", "and then?", ("Who?",), ("year=2008",), "3"),)


def test_text_with_tabs_stays_whole(tmp_path: Path) -> None:
    assert read_topics(written(tmp_path / "q.tsv", "1\ta\tb"))[0].text == "a\tb"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("qrels", "1 0 a 2\n1 0 b 0\n2 Q0 a 1\n"),
        ("qrels.txt", "1\t0\ta\t2\n1\t0\tb\t0\n2\t0\ta\t1\n"),
        ("qrels", "1 a 2 \n1 b 0\n\n2 a 1"),
        ("qrels.tsv", "query-id\tcorpus-id\tscore\n1\ta\t2\n1\tb\t0\n2\ta\t1.0\n"),
        ("qrels.csv", "query_id,doc_id,relevance\n1,a,2\n1,b,0\n2,a,1\n"),
        (
            "qrels.jsonl",
            '{"query_id": 1, "doc_id": "a", "relevance": 2}\n'
            '{"query_id": "1", "doc_id": "b", "relevance": 0}\n'
            '{"query_id": "2", "doc_id": "a", "relevance": 1.0}\n',
        ),
    ],
)
def test_judgments(tmp_path: Path, name: str, text: str) -> None:
    found = read_judgments(written(tmp_path / name, text))
    assert found == Judgments({"1": {"a": 2, "b": 0}, "2": {"a": 1}})


def test_names_of_documents_may_have_blanks_between_tabs(tmp_path: Path) -> None:
    found = read_judgments(written(tmp_path / "qrels", "1\t0\tmy file.txt\t1\n"))
    assert found.grades == {"1": {"my file.txt": 1}}


def test_repeated_judgments_are_counted_and_the_highest_is_used(tmp_path: Path) -> None:
    lines = "1 0 a 1\n1 0 a 1\n1 0 a 3\n1 0 a 2\n1 0 b -1\n"
    found = read_judgments(written(tmp_path / "qrels", lines))
    assert found == Judgments({"1": {"a": 3, "b": -1}}, n_repeated=1, n_conflicting=2)


@pytest.mark.parametrize(
    ("name", "text", "line", "message"),
    [
        ("qrels", "1 0 a 1\n1 0\n", 2, "2 columns, not 3"),
        ("qrels", "1 0 a 1\n1 0 b\n", 2, "relevance 'b' is not a whole number"),
        ("qrels", "1 0 a 1\n1 0 b much\n", 2, "relevance 'much' is not a whole number"),
        ("qrels", "1 0 a 0.5\n", 1, "relevance '0.5' is not a whole number"),
        ("qrels.jsonl", '{"query_id": "1", "doc_id": "a"}\n', 1, "relevance None"),
        (
            "qrels.jsonl",
            '{"query_id": "1", "doc_id": "a", "relevance": true}\n',
            1,
            "relevance True",
        ),
        ("qrels.jsonl", '{"query_id": "1", "relevance": 1}\n', 1, "missing 'doc_id'"),
        (
            "qrels.jsonl",
            '{"query_id": "1", "doc_id": "a", "relevance": 1}\n{"qu',
            2,
            "invalid JSON",
        ),
    ],
)
def test_a_bad_judgment_is_an_error_with_its_line(
    tmp_path: Path, name: str, text: str, line: int, message: str
) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read_judgments(written(tmp_path / name, text))
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("q.jsonl", '{"id": "1", "text": "a"}\n{"id": 1, "text": "b"}\n', "duplicate topic '1'"),
        ("q.jsonl", '{"id": "1"}\n', "missing 'text'"),
        ("q.jsonl", '{"text": "a"}\n', "missing 'id'"),
        ("q.jsonl", '{"id": "1", "text": "a", "history": "b"}\n', "'history' is text, not a list"),
        ("q.jsonl", '{"id": "1", "text": "a", "filters": [1]}\n', "not a list of texts"),
        ("q.tsv", "1\n", "1 columns, not 2"),
        ("q.tsv", "\n\n", "no rows"),
        ("q.jsonl", "", "no rows"),
    ],
)
def test_a_bad_topic_is_an_error(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_topics(written(tmp_path / name, text))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for read in (read_topics, read_judgments):
        with pytest.raises(DataError, match=r"cannot be read|no such file"):
            read(tmp_path / "none.txt")
        with pytest.raises(DataError, match="cannot be read"):
            read(tmp_path)
