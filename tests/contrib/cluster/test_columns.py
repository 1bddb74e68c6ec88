"""`PlanColumn`: a batch of every kind comes back with its rows and one column more, whatever is in a row."""

from __future__ import annotations

import asyncio
import json
import math
import multiprocessing
import os
import pickle
import re
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy
import pytest
from pydantic import BaseModel, Field

from pearl.contrib.cluster.columns import PlanColumn, answer_type
from pearl.errors import ModelError, PearlError, UsageError
from tests.models import verdicts
from tests.server import Seen, Server
from tests.skips import NO_ENGINES, NO_LARGE, needs_pipes, needs_proc

pa = pytest.importorskip("pyarrow", reason=NO_LARGE)

PLAN = '1. why = FIND_REASON(CTX, "it") : Find why'
TEXTS = ["Ada left as the boat leaked.", None, "Ines sat as the lamp failed.", " "]
QUOTES = ["the boat leaked", None, "the lamp failed", None]
EXTRACT = '1. r = EXTRACT(CTX, "id: int, n: int, home.city: str?") : Extract'


@pytest.fixture
def server(openai_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A model that quotes the last three words of a text; of a text in JSON, every value."""
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.url)

    def leaf(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: leaf(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [leaf(inner) for inner in value]
        return {"value": value, "quote": json.dumps(value)}

    def reply(seen: Seen) -> str:
        if claims := re.findall(r"<claim (\d+)>", seen.prompt):
            return verdicts(*["supported"] * len(set(claims)))
        text = re.findall(r"<text>\n(.*)\n</text>", seen.prompt, re.DOTALL)[0]
        if text.startswith("{"):
            return json.dumps({n: None for n in ("age", "n") if n in seen.prompt} | leaf(json.loads(text)))  # fmt: skip
        return f"Because.\n> {' '.join(text.rstrip('.').split()[-3:])}"

    openai_server.on("", reply)
    return openai_server


def quotes(answers: Any) -> list[str | None]:
    """The first quote of every answer."""
    return [row["evidence"][0]["quote"] if row["evidence"] else None for row in answers.to_pylist()]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(TEXTS), pa.array(TEXTS, pa.large_string()), pa.array(TEXTS, pa.string_view()),
        pa.array(TEXTS).dictionary_encode(), pa.chunked_array([TEXTS[:1], [], TEXTS[1:]]),
        pa.array(["no", *TEXTS, "no"]).slice(1, 4),
    ],
    ids=["string", "large_string", "string_view", "dictionary", "chunked", "sliced"],
)  # fmt: skip
def test_text_of_every_arrow_type(column: Any, server: Server) -> None:
    table = pa.table({"n": [3, 1, 2, 0], "text": column})
    why = PlanColumn(PLAN, model="openai:m")
    read = why(table)
    assert read.drop_columns("answer") == table
    assert read["answer"].type == why.type == answer_type()
    assert quotes(read["answer"]) == QUOTES
    rows = read["answer"].to_pylist()
    assert [row["status"] for row in rows] == ["answered", "failed"] * 2
    assert (rows[0]["error"], rows[1]["error"]["message"]) == (None, "the cell is null")


def test_parameters_are_columns_or_given(server: Server) -> None:
    plan = "Parameters:\n- x : a\n- y : b\n\n1. why = FIND_REASON(CTX, [x, y]) : Find why"
    why = pickle.loads(pickle.dumps(PlanColumn(plan, model="openai:m", parameters={"x": "left"})))
    rows = why({"text": TEXTS[:1] * 2, "y": ["now", None]})["answer"].to_pylist()
    assert [row["status"] for row in rows] == ["answered", "failed"]
    assert "parameter 'y' is empty" in rows[1]["error"]["message"]
    assert "- left\n- now\n" in server.requests[0].prompt
    with pytest.raises(UsageError, match="no column 'y'"):
        why({"text": TEXTS[:1]})
    with pytest.raises(UsageError, match="no parameter 'z'"):
        PlanColumn(plan, model="openai:m", parameters={"z": "left"})


def test_batch_of_every_kind_comes_back_as_that_kind(server: Server) -> None:
    why = PlanColumn(PLAN, model="openai:m", column="t", answer="why")
    batch = why(pa.record_batch({"t": TEXTS}))
    assert (type(batch), quotes(batch["why"])) == (pa.RecordBatch, QUOTES)
    texts = numpy.array([math.nan if text is None else text for text in TEXTS], dtype=object)
    read = why({"t": texts, "n": [1, 2, 3, 4]})
    assert (list(read), quotes(read["why"])) == (["t", "n", "why"], QUOTES)
    empty = why(pa.table({"t": []}))
    assert (len(empty), empty.schema.field("why").type) == (0, why.type)
    pandas = pytest.importorskip("pandas", reason=NO_LARGE)
    frame = pandas.DataFrame({"t": TEXTS}, index=[7, 7, 5, 3])
    read = why(frame)
    assert read.drop(columns="why").equals(frame)
    assert (read["why"].dtype.pyarrow_dtype, quotes(pa.array(read["why"]))) == (why.type, QUOTES)
    polars = pytest.importorskip("polars", reason=NO_ENGINES)
    frame = polars.DataFrame({"t": TEXTS}, schema={"t": polars.Categorical})
    assert why(frame).drop("why").equals(frame)
    assert quotes(why(frame)["why"].to_arrow()) == QUOTES
    assert why(frame.clear()).schema == why(frame).schema


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


@pytest.mark.parametrize(
    "arguments",
    [
        {"plan": None}, {"plan": "1. why = FIND_RAISIN(CTX)"}, {"plan": "no_such.plan"}, {"schema": "name"},
        {"plan": None, "schema": {"$ref": "#/none"}}, {"model": "openia:m"}, {"modell": "openai:m"},
        {"concurrency": 0}, {"holds": "pdf"}, {"holds": "path"}, {"folder": "/data"}, {"holds": "bytes"},
        {"model": "openai:unknown", "max_cost_usd": 1}, {"version": "pearl 9"},
    ],
)  # fmt: skip
def test_wrong_argument_is_refused_at_once(arguments: dict[str, Any]) -> None:
    with pytest.raises(PearlError):
        PlanColumn(**{"plan": PLAN, **arguments})


def test_failures_and_limits_are_rows(server: Server) -> None:
    server.next("400", "surrogate")
    limits: dict[str, Any] = {"max_calls": 3, "price": "input=10,output=10"}
    why = PlanColumn(PLAN, model="openai:m", concurrency=1, **limits)
    first = why({"text": ["a b c", "d e f", "g h i", "j k l"]})["answer"].to_pylist()
    later = why({"text": ["m n o"]})["answer"].to_pylist()
    assert [(row["status"], row["value"] is None, row["error"] is None) for row in first + later] == [
        ("failed", True, False), ("degraded", False, True), ("answered", False, True),
        *[("unfinished", True, False)] * 2,
    ]  # fmt: skip
    assert len(server.requests) == 3
    assert first[2]["usage"] == {
        "calls": 1, "input_tokens": 100, "output_tokens": 5, "cached_tokens": 64, "written_tokens": 0,
        "cost_usd": pytest.approx(105 * 10 / 1e6),
    }  # fmt: skip
    mixed = PlanColumn(PLAN, model="openai:m", rows_model="openai:n", **limits)({"text": ["a b c"]})
    assert mixed["answer"].to_pylist()[0]["usage"]["cost_usd"] is None  # not that of one of them


def test_copies_without_the_files_of_the_driver_share_a_store(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "why.plan").write_text(PLAN, encoding="utf-8")
    why = PlanColumn(tmp_path / "why.plan", model="openai:m", store=tmp_path / "kept")
    assert quotes(why({"text": TEXTS})["answer"]) == QUOTES
    (tmp_path / "why.plan").unlink()
    for copy in (pickle.loads(pickle.dumps(why)), PlanColumn(**why.arguments)):
        again = copy({"text": TEXTS})["answer"]
        assert quotes(again) == QUOTES
        assert {row["usage"]["calls"] for row in again.to_pylist()} == {0}
    assert len(server.requests) == 2
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):  # a worker needs a key, and no driver
        monkeypatch.delenv(name)
    copy = pickle.loads(pickle.dumps(why))
    with pytest.raises(ModelError, match="key"):
        copy({"text": TEXTS})


def test_calls_of_a_batch_are_concurrent_under_a_running_loop(server: Server) -> None:
    server.n_together, server.delay_s = 3, 60.0
    texts = ["a b c", "d e f", "g h i"]

    async def main() -> Any:
        return PlanColumn(PLAN, model="openai:m", concurrency=3)({"text": texts})

    assert quotes(asyncio.run(main())["answer"]) == texts
    assert server.n_at_once == 3


@needs_pipes
def test_paths_stay_in_their_folder(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.html").write_text("<p>Ada left as the <b>boat</b> leaked.</p>", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("The key is under the mat.", encoding="utf-8")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    os.mkfifo(folder / "pipe.txt")
    names = ["../secret.txt", "link.txt", str(tmp_path / "secret.txt"), "\0", "pipe.txt", "b.txt", "a.html"]  # fmt: skip
    why = PlanColumn(PLAN, model="openai:m", column="path", holds="path", folder=folder)
    *failed, read = why({"path": names})["answer"].to_pylist()
    whys = [row["error"]["message"].partition(": ")[2][:7] for row in failed]
    assert whys == ["outside"] * 4 + ["not a f", "no such"]
    assert {(e["quote"], e["document"]) for e in read["evidence"]} == {("the boat leaked", "a.html")}  # fmt: skip
    assert len(server.requests) == 1


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
def test_suffix_of_a_name_decides_how_bytes_are_read(kind: Any, server: Server) -> None:
    pages = b"It rained.\fAda left as the boat leaked."
    data = [b"<p>Ines sat as the <b>lamp</b> failed.</p>", pages, b"%PDF-1.7 damaged", None, pages]
    names = ["a.html", "b.txt", "c.pdf", "d.txt", None]
    why = PlanColumn(PLAN, model="openai:m", column="data", holds="bytes", name_column="name")
    answers = why(pa.table({"data": pa.array(data, kind), "name": names}))["answer"]
    assert quotes(answers) == ["the lamp failed", "the boat leaked", None, None, None]
    assert answers[1]["evidence"][0]["page"].as_py() == 2


def test_plan_reads_other_columns_as_fields() -> None:
    plan = """1. letters = SPLIT(CTX, "document") : One row
2. late = WHERE(letters, "year", "at least", "2024") : Those of the year
3. n = COUNT(late) : How many"""
    answers = PlanColumn(plan, fields=["year"])({"text": ["a", "b"], "year": [2024, 2023]})
    assert [row["value"] for row in answers["answer"].to_pylist()] == ["1", "0"]


class Grade(IntEnum):
    LOW = 1
    HIGH = 2


class Drug(BaseModel):
    name: str
    dose_mg: float | None = None


class Letter(BaseModel):
    age: int = Field(lt=120)
    grade: Grade | None = None
    drugs: list[Drug]


def test_schema_gives_typed_values_that_its_model_accepts(server: Server) -> None:
    read = PlanColumn(schema=Letter, model="openai:m")
    drug = pa.struct({"name": pa.string(), "dose_mg": pa.float64()})
    value = {"age": pa.int64(), "grade": pa.string(), "drugs": pa.list_(drug)}
    assert read.type.field("value").type == pa.struct(value)
    rest = {"grade": "2", "drugs": [{"name": "a", "dose_mg": 5}]}
    texts = [json.dumps(letter) for letter in ({"age": 54} | rest, {"age": 154} | rest, rest)]
    good, old, unknown = read({"text": texts})["answer"].to_pylist()
    assert (good["value"], good["reasons"]) == ({"age": 54} | rest, [])
    assert "age" in {path for passage in good["evidence"] for path in passage["fields"]}
    assert (old["value"], unknown["value"]) == (None, None)
    assert any("exclusiveMaximum" in why for why in old["reasons"])
    assert unknown["reasons"] == ["age: not stated"]
    assert [row["status"] for row in (good, old, unknown)] == ["answered", "undecided", "undecided"]


def test_plan_of_fields_keeps_the_values_that_there_are(server: Server) -> None:
    read = PlanColumn(EXTRACT, model="openai:m")
    assert read.type == answer_type("id: int, n: int, home.city: str?")
    texts = [json.dumps({"home.city": "Bern", "id": 7} | n) for n in ({"n": 10**30}, {})]
    large, missing = read({"text": texts})["answer"].to_pylist()
    assert large["value"] == missing["value"] == {"id": 7, "n": None, "home": {"city": "Bern"}}
    assert large["reasons"] == ["n: the number is too large for int64"]
    assert missing["reasons"] == ["n: not stated"]
    assert missing["status"] == "degraded"


@needs_proc
@pytest.mark.filterwarnings("ignore:.*fork")
def test_fork_of_a_process_with_a_used_instance_answers(server: Server) -> None:
    why, context = PlanColumn(PLAN, model="openai:m"), multiprocessing.get_context("fork")
    assert quotes(why({"text": TEXTS})["answer"]) == QUOTES
    queue = context.SimpleQueue()
    context.Process(target=lambda: queue.put(quotes(why({"text": TEXTS})["answer"]))).start()
    assert queue.get() == QUOTES


def test_lists_in_lists_have_types_of_their_own() -> None:
    value = answer_type("grid: [[int]], orders: [{items: [{price: decimal}]}]").field("value").type
    assert value.field("grid").type == pa.list_(pa.list_(pa.int64()))
    items = value.field("orders").type.value_type.field("items").type
    assert items == pa.list_(pa.struct({"price": pa.string()}))
