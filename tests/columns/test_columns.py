"""`PlanColumn`: every kind of batch comes back with its rows and one column more, whatever is in a row."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from pearl.columns import PlanColumn, answer_type
from pearl.errors import ModelError, PearlError, UsageError
from tests.server import Seen, Server
from tests.skips import NO_ENGINES, NO_LARGE, needs_pipes

pa = pytest.importorskip("pyarrow", reason=NO_LARGE)

PLAN = '1. why = FIND_REASON(CTX, "it") : Find why'
TEXTS = ["Ada left as the boat leaked.", None, "Ines sat as the lamp failed.", " "]


@pytest.fixture
def server(openai_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A model that quotes the last three words of a text."""
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.url)

    def quoted(seen: Seen) -> str:
        text = seen.prompt.partition("<text>\n")[2].partition("\n</text>")[0]
        words = text.rstrip(".").split()[-3:]
        return f"Because.\n> {' '.join(words)}"

    openai_server.on("", quoted)
    return openai_server


def quotes(answers: Any) -> list[str | None]:
    """The first quote of every answer."""
    rows = answers.to_pylist()
    return [row["evidence"][0]["quote"] if row["evidence"] else None for row in rows]


QUOTES = ["the boat leaked", None, "the lamp failed", None]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(TEXTS),
        pa.array(TEXTS, pa.large_string()),
        pa.array(TEXTS, pa.string_view()),
        pa.array(TEXTS).dictionary_encode(),
        pa.chunked_array([TEXTS[:1], [], TEXTS[1:]]),
        pa.array(["no", *TEXTS, "no"]).slice(1, 4),
    ],
    ids=["string", "large_string", "string_view", "dictionary", "chunked", "sliced"],
)
def test_text_of_every_arrow_type(column: Any, server: Server) -> None:
    table = pa.table({"n": [3, 1, 2, 0], "text": column})
    why = PlanColumn(PLAN, model="openai:m")
    read = why(table)
    assert read.drop_columns("answer") == table
    assert read["answer"].type == why.type == answer_type()
    assert quotes(read["answer"]) == QUOTES
    status, errors = zip(*((a["status"], a["error"]) for a in read["answer"].to_pylist()), strict=True)  # fmt: skip
    assert status == ("answered", "failed", "answered", "failed")
    assert errors[1]["message"] == "the cell is null"
    assert (errors[0], errors[3]["type"]) == (None, "DataError")


def test_batch_of_every_kind_comes_back_as_that_kind(server: Server) -> None:
    why = PlanColumn(PLAN, model="openai:m", column="t", answer="why")
    batch = why(pa.record_batch({"t": TEXTS}))
    assert (type(batch), quotes(batch["why"])) == (pa.RecordBatch, QUOTES)
    given = why({"t": TEXTS, "n": [1, 2, 3, 4]})
    assert (list(given), given["n"], quotes(given["why"])) == (["t", "n", "why"], [1, 2, 3, 4], QUOTES)  # fmt: skip
    for text in ([], pa.array([], pa.null())):
        empty = why(pa.table({"t": text}))
        assert (len(empty), empty.schema.field("why").type) == (0, why.type)


def test_pandas_keeps_its_index_and_the_arrow_type(server: Server) -> None:
    pandas = pytest.importorskip("pandas", reason=NO_LARGE)
    why = PlanColumn(PLAN, model="openai:m")
    frame = pandas.DataFrame({"text": TEXTS}, index=[7, 7, 5, 3])
    read = why(frame)
    assert list(read.index) == [7, 7, 5, 3]
    assert read.drop(columns="answer").equals(frame)
    assert read["answer"].dtype.pyarrow_dtype == why.type
    assert quotes(pa.array(read["answer"])) == QUOTES


def test_polars(server: Server) -> None:
    polars = pytest.importorskip("polars", reason=NO_ENGINES)
    frame = polars.DataFrame({"text": TEXTS})
    why = PlanColumn(PLAN, model="openai:m")
    for given in (frame, frame.cast(polars.Categorical)):
        read = why(given)
        assert read.drop("answer").equals(given)
        assert quotes(read["answer"].to_arrow()) == QUOTES
    assert why(frame.clear()).schema == read.schema | {"text": polars.String}


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ({"id": ["a"], "body": ["b"]}, "no column 'text'; columns: id, body"),
        ({"text": [1]}, "has the type int64"),
        ({"text": ["a", 1]}, "cannot be read"),
        ({"text": ["a"], "answer": ["b"]}, "a column 'answer' already"),
        (pa.Table.from_arrays([pa.array(["a"])] * 2, ["text", "text"]), "2 columns 'text'"),
        ("text", "a str is not a batch"),
    ],
)
def test_wrong_batch_is_refused(batch: Any, message: str, server: Server) -> None:
    with pytest.raises(UsageError, match=message):
        PlanColumn(PLAN, model="openai:m")(batch)
    assert not server.requests


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"plan": "1. why = FIND_RAISIN(CTX)"},
        {"plan": "no_such.plan"},
        {"plan": PLAN, "schema": "name"},
        {"plan": PLAN, "model": "openia:m"},
        {"plan": PLAN, "modell": "openai:m"},
        {"plan": PLAN, "concurrency": 0},
        {"plan": PLAN, "holds": "pdf"},
        {"plan": PLAN, "holds": "path"},
        {"plan": PLAN, "holds": "bytes"},
        {"plan": PLAN, "model": "openai:unknown", "max_cost_usd": 1},
        {"plan": PLAN, "version": "pearl 9"},
        {"schema": {"type": "string"}},
    ],
)
def test_wrong_argument_is_refused_at_once(arguments: dict[str, Any]) -> None:
    with pytest.raises(PearlError):
        PlanColumn(**arguments)


def test_missing_key_is_raised_by_the_worker_and_not_by_the_driver() -> None:
    why = PlanColumn(PLAN, model="openai:m")
    with pytest.raises(ModelError, match="key"):
        why({"text": ["a"]})


def test_failed_call_and_odd_reply_are_rows(server: Server) -> None:
    server.next("400", "surrogate")
    table = PlanColumn(PLAN, model="openai:m", concurrency=1)({"text": ["a b c", *TEXTS[::2]]})
    failed, odd, answered = table["answer"].to_pylist()
    assert odd["value"].startswith("a")
    assert (failed["status"], failed["value"]) == ("failed", None)
    assert failed["error"]["message"]
    assert answered["status"] == "answered"
    assert answered["usage"] | {"calls": 1, "input_tokens": 100, "cached_tokens": 64} == answered["usage"]  # fmt: skip


def test_limit_leaves_rows_unfinished_in_this_batch_and_the_next(server: Server) -> None:
    limits: dict[str, Any] = {"max_calls": 2, "price": "input=10,output=10"}
    why = PlanColumn(PLAN, model="openai:m", concurrency=1, **limits)
    first = why({"text": ["a b c", "d e f", "g h i"]})["answer"].to_pylist()
    again = why({"text": ["j k l"]})["answer"].to_pylist()
    assert [row["status"] for row in first + again] == ["answered"] * 2 + ["unfinished"] * 2
    assert first[0]["usage"]["cost_usd"] == pytest.approx((100 + 5) * 10 / 1e6, rel=0.1)
    assert len(server.requests) == 2


def test_calls_of_a_batch_are_concurrent_under_a_running_loop(server: Server) -> None:
    server.n_together, server.delay_s = 3, 60.0

    async def main() -> Any:
        return PlanColumn(PLAN, model="openai:m", concurrency=3)({"text": ["a b c", "d e f", "g h i"]})  # fmt: skip

    assert quotes(asyncio.run(main())["answer"]) == ["a b c", "d e f", "g h i"]
    assert server.n_at_once == 3


def test_copy_answers_like_the_original_and_pays_for_no_reply_of_the_store(
    server: Server, tmp_path: Path
) -> None:
    (tmp_path / "why.plan").write_text(PLAN, encoding="utf-8")
    why = PlanColumn(tmp_path / "why.plan", model="openai:m", store=tmp_path / "kept")
    batch = pa.table({"text": TEXTS})
    answers = why(batch)["answer"].to_pylist()
    (tmp_path / "why.plan").unlink()  # a worker has no files of its driver
    for copy in (pickle.loads(pickle.dumps(why)), PlanColumn(**why.arguments)):
        again = copy(batch)["answer"].to_pylist()
        assert {row.pop("usage")["calls"] for row in again} == {0}
        assert again == [{k: v for k, v in row.items() if k != "usage"} for row in answers]
    assert len(server.requests) == 2


def test_closed_instance_starts_again(server: Server) -> None:
    why = PlanColumn(PLAN, model="openai:m")
    for text in ("a b c", "d e f"):
        assert quotes(why({"text": [text]})["answer"]) == [text]
        why.close()


@needs_pipes
def test_paths_stay_in_their_folder(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.html").write_text("<p>Ada left as the <b>boat</b> leaked.</p>", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("The key is under the mat.", encoding="utf-8")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    os.mkfifo(folder / "pipe.txt")
    names = ["a.html", "../secret.txt", "link.txt", str(tmp_path / "secret.txt"), "pipe.txt", "b.txt", "\0"]  # fmt: skip
    why = PlanColumn(PLAN, model="openai:m", column="path", holds="path", folder=folder)
    rows = why({"path": names})["answer"].to_pylist()
    assert [row["status"] for row in rows] == ["answered"] + ["failed"] * 6
    assert [row["error"]["message"].partition(": ")[2][:7] for row in rows[1:]] == [
        "outside", "outside", "outside", "not a f", "no such", "outside",
    ]  # fmt: skip
    (evidence,) = rows[0]["evidence"]
    assert (evidence["quote"], evidence["document"]) == ("the boat leaked", "a.html")
    assert len(server.requests) == 1


def test_suffix_of_a_name_decides_how_bytes_are_read(server: Server) -> None:
    pages = b"It rained.\fAda left as the boat leaked."
    html = b"<p>Ines sat as the <b>lamp</b> failed.</p>"
    data = [html, pages, b"%PDF-1.7 damaged", None, pages]
    names = ["a.html", "b.txt", "c.pdf", "d.txt", None]
    why = PlanColumn(PLAN, model="openai:m", column="data", holds="bytes", name_column="name")
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        answers = why(pa.table({"data": pa.array(data, kind), "name": names}))["answer"]
        assert quotes(answers) == ["the lamp failed", "the boat leaked", None, None, None]
        assert answers[1]["evidence"][0]["page"].as_py() == 2
        assert [row["status"] for row in answers.to_pylist()][2:] == ["failed"] * 3


def test_plan_reads_other_columns_as_fields() -> None:
    plan = """1. letters = SPLIT(CTX, "document") : One row
2. late = WHERE(letters, "year", "at least", "2024") : Those of the year
3. n = COUNT(late) : How many"""
    rows = {"text": ["a", "b", "c"], "year": [2024, 2023, None]}
    answers = PlanColumn(plan, fields=["year"])(rows)["answer"].to_pylist()
    assert [row["value"] for row in answers[:2]] == ["1", "0"]


# --- typed values


class Grade(IntEnum):
    LOW = 1
    HIGH = 2


class Home(BaseModel):
    city: str | None = None


class Drug(BaseModel):
    name: str
    dose_mg: float | None = None


class Letter(BaseModel):
    age: int = Field(lt=120)
    grade: Grade | None = None
    home: Home | None = None
    drugs: list[Drug]
    words: list[str]


def reply(seen: Seen) -> str:
    """Values of the text, which is JSON; each is quoted as it stands there."""
    text = json.loads(seen.prompt.partition("<text>\n")[2].partition("\n</text>")[0])

    def leaf(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: leaf(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [leaf(inner) for inner in value]
        return {"value": value, "quote": json.dumps(value)}

    return json.dumps({name: None for name in ("age", "n") if name in seen.prompt} | leaf(text))


def test_schema_gives_typed_values(openai_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    openai_server.on("", reply)
    column = PlanColumn(schema=Letter, model="openai:m", base_url=openai_server.url)
    value = column.type.field("value").type
    drug = pa.struct({"name": pa.string(), "dose_mg": pa.float64()})
    assert value == pa.struct({
        "age": pa.int64(), "grade": pa.string(), "home": pa.struct({"city": pa.string()}),
        "drugs": pa.list_(drug), "words": pa.list_(pa.string()),
    })  # fmt: skip
    whole = {"age": 54, "grade": "2", "home": {"city": "Bern"}, "drugs": [{"name": "a", "dose_mg": 5}], "words": ["b", "c"]}  # fmt: skip
    letters = [whole, whole | {"age": 154}, {k: v for k, v in whole.items() if k != "age"}]
    batch = {"text": [json.dumps(letter) for letter in letters]}
    good, old, unknown = column(batch)["answer"].to_pylist()
    assert (good["value"], good["reasons"]) == (whole, [])
    assert "age" in {path for passage in good["evidence"] for path in passage["fields"]}
    assert (old["value"], unknown["value"]) == (None, None)
    assert "less than 120" in old["reasons"][0]
    assert unknown["reasons"] == ["age: not stated"]


def test_plan_of_fields_keeps_the_values_that_there_are(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    openai_server.on("", reply)
    plan = '1. r = EXTRACT(CTX, "id: int, n: int, home.city: str?") : Extract'
    column = PlanColumn(plan, model="openai:m", base_url=openai_server.url)
    assert column.type == answer_type("id: int, n: int, home.city: str?")
    texts = [json.dumps({"id": 7, "n": 10**30, "home.city": "Bern"}), json.dumps({"id": 8, "home.city": "Bern"})]  # fmt: skip
    large, missing = column({"text": texts})["answer"].to_pylist()
    assert large["value"] == {"id": 7, "n": None, "home": {"city": "Bern"}}
    assert any("too large" in reason for reason in large["reasons"])
    assert missing["value"] == {"id": 8, "n": None, "home": {"city": "Bern"}}
    assert missing["reasons"] == ["n: not stated"]
