"""Fuzz targets: a name → a function of bytes that calls a public entry, which may raise documented errors only.

`mutated` breaks a seed of a target. Used by test_fuzz.py and, guided by coverage, by experiments/fuzz.py.
"""

from __future__ import annotations

import asyncio
import atexit
import io
import itertools
import json
import random
import re
import shutil
import tempfile
import tomllib
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

from pearl import plugins
from pearl.actions import library
from pearl.actions.arithmetic import evaluation, program
from pearl.cli.settings import defaults, read_settings
from pearl.data.schemas import load_schema
from pearl.documents import dates, document, units
from pearl.documents.evidence.collecting import StepReply, collect
from pearl.documents.numbers import read_quantity
from pearl.documents.table import table_rows
from pearl.dsl import checker, parser
from pearl.dsl.fields import parse_fields, print_fields
from pearl.dsl.nodes import print_plan
from pearl.dsl.signatures import ValueType
from pearl.errors import DataError, ModelError, PearlError, PlanError, StoreError, UsageError
from pearl.interpreter.chooser import read_choice
from pearl.llm.backends.openai import endpoint
from pearl.llm.backends.openai.chat import read_completion
from pearl.llm.embedders import EmbeddingCache
from pearl.pipeline import Pearl
from pearl.replies import composed, extracted, items, raw, step_replies
from pearl.retrieval.index import Index
from pearl.runs.store import FILE, Store
from pearl.runs.tasks import TaskFile
from pearl.tables import lookup
from pearl.tables.columns import QueryTable
from pearl.trace import Trace, read_trace
from pearl.view.answer_page import result_page
from pearl.view.sources import open_results
from tests.root import ROOT
from tests.runs.store.filling import SPEC, reply_of
from tests.runs.store.filling import key as key_of

Seeds = Sequence[bytes] | Callable[[], Sequence[bytes]]


class Target(NamedTuple):
    """What reads the bytes, what it may raise, its first inputs, and its share of the inputs."""

    run: Callable[[bytes], object]
    errors: tuple[type[Exception], ...]
    seeds: Seeds
    share: int

    def accepts(self, data: bytes) -> bool:
        """Whether the input is read; an error that is not documented is raised."""
        try:
            self.run(data)
        except self.errors as error:
            message = str(error)
            if not message.strip() or (isinstance(error, PearlError) and message.count("\n") > 2):
                raise AssertionError(f"not a message of one to three lines: {message!r}") from error
            return False
        return True

    def first_inputs(self) -> Sequence[bytes]:
        return self.seeds() if callable(self.seeds) else self.seeds

    def inputs(self, n: int, chance: random.Random) -> Iterator[bytes]:
        """`n` broken inputs, always the same for a seed."""
        seeds = self.first_inputs()
        return (mutated(seeds, chance) for _ in range(n))


TARGETS: dict[str, Target] = {}


def target(
    seeds: Seeds, *errors: type[Exception], share: int = 100, name: str = ""
) -> Callable[[Callable[[bytes], object]], Callable[[bytes], object]]:
    def add(run: Callable[[bytes], object]) -> Callable[[bytes], object]:
        TARGETS[name or run.__name__] = Target(run, errors, seeds, share)
        return run

    return add


# ---------------------------------------------------------------------------------------------
# The mutator

TOKENS = tuple(
    token.encode("utf-8", "surrogatepass")
    for token in (
        "\n", "\t", "\r", " ", "\u00a0", "\u2028", "\0", "\x07", "\x85", "\ud800", "\ufeff", '"', "'", "“", "\\",
        "(", ")", "[", "]", "{", "}", ",", ":", ";", "=", "#", "-", "*", "`", ">", "<", "|", ".", "…", "/", "0", "9",
        "é", "ש", "検", "🔑", "\u0301", "\u200b", "CTX", "x", '"x"', "“x”", "-1.5", "12345678901234567890", "1e999",
        "NaN", "null", "true", "...", "\n- ", "\n1. ", "Step 3: ", "**", "```", "```json\n", '\\"', "\\ud83d", "FIND(",
        "X=", " // ", "\n- None", "New actions:", "Question: ", "<think>", "</think>", "[[", '{"', '":', "> quoted\n",
        "\n\n", "|-|-|\n", "yes", "no", "Nothing found.", "Answer: A", "1 | ", "$1,250", "2010", "%", "<|im_end|>",
        "= FIND(CTX, 'x')", "\nans = FIND(CTX, FIND(CTX)) : x", "a" * 300, "9" * 400, "[" * 200, "__proto__", "SELECT ",
    )
)  # fmt: skip
_PIECE = re.compile(rb'"(?:[^"\\\n]|\\.)*"|\w+|\s+|.', re.S)
_EDGES = (b"\0", b"\xff", b"\x80", b"\x7f\xff\xff\xff", b"\xff" * 8)


def mutated(seeds: Sequence[bytes], chance: random.Random) -> bytes:
    """A seed with one to six faults: characters, tokens and lines removed, inserted, moved, repeated or replaced."""
    data = chance.choice(seeds)
    if data.startswith(b"PK\3\4") and chance.random() < 0.8:
        return _zip_with_changed_member(data, chance)
    if data[:1] in (b"{", b"[") and chance.random() < 0.5:
        first, rest = data.split(b"\n", 1) if b"}\n{" in data else (data, b"")
        with suppress(ValueError):
            return (
                json.dumps(_with_changed_value(json.loads(first), chance)).encode() + b"\n" + rest
            )
    for _ in range(chance.choice((1, 1, 2, 3, 6))):
        at, end = sorted(chance.choices(range(len(data) + 1), k=2))
        match chance.randrange(8):
            case 0:
                data = b"".join(_changed(_PIECE.findall(data), TOKENS, chance))
            case 1:
                data = b"\n".join(_changed(data.split(b"\n"), TOKENS, chance))
            case 2 if data:
                at = chance.randrange(len(data))
                data = data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
            case 3:
                data = data[:at] + data[end:] if chance.random() < 0.5 else data[:end]
            case 4:
                other = chance.choice(seeds)
                data = data[:end] + other[chance.randrange(len(other) + 1) :]
            case 5:
                data = data[:at] + data[at:end][:200] * chance.choice((2, 3, 20)) + data[end:]
            case 6:
                data = data[:at] + chance.choice(_EDGES) + data[at + 1 :]
            case _:
                data = data[:at] + chance.choice(TOKENS) + data[at:]
    return data


def _changed(parts: list[bytes], others: Sequence[bytes], chance: random.Random) -> Sequence[bytes]:
    if not parts:
        return [chance.choice(others)]
    at, to = chance.randrange(len(parts)), chance.randrange(len(parts))
    match chance.randrange(5):
        case 0:
            del parts[at]
        case 1:
            parts.insert(at, chance.choice(others))
        case 2:
            parts[at], parts[to] = parts[to], parts[at]
        case 3:
            parts.insert(to, parts[at])
        case _:
            parts[at] = chance.choice(others)
    return parts


VALUES = (None, True, 0, -1, 2, 1e300, 1.5, float("nan"), 10**30, "", " ", "x", "\ud800", "\0", [], {}, [None], {"": {}},
    "a" * 5_000, [[]] * 50, "p1", "2020", ["p1", "p1"], "Fee")  # fmt: skip


def _with_changed_value(data: Any, chance: random.Random) -> Any:
    """JSON data with one value replaced, removed, repeated or of another name."""
    places = (
        [*(data.items() if isinstance(data, dict) else enumerate(data))]
        if data and isinstance(data, dict | list)
        else []
    )
    if not places or chance.random() < 0.15:
        return chance.choice(VALUES)
    key, value = chance.choice(places)
    if chance.random() < 0.7:
        data[key] = _with_changed_value(value, chance)
    elif isinstance(data, list):
        data.append(value)
    else:
        data[chance.choice(places)[0]] = data.pop(key)
    return data


def _zip_with_changed_member(data: bytes, chance: random.Random) -> bytes:
    """A flipped bit of an archive mostly breaks a checksum only."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w") as new:
        names = old.namelist()
        changed = chance.choice(names)
        for name in names:
            member = old.read(name)
            new.writestr(name, mutated([member], chance) if name == changed else member)
    return file.getvalue()


def text(data: bytes) -> str:
    """Hostile text, with lone surrogates where the bytes are no UTF-8."""
    return data.decode("utf-8", "surrogateescape")


def reply(data: bytes) -> str:
    """A reply as readers get it, without lone surrogates."""
    return data.decode("utf-8", "replace")


@cache
def folder() -> Path:
    """A folder for the files of this process."""
    made = tempfile.mkdtemp(prefix="fuzz")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


def file(data: bytes, name: str) -> Path:
    path = folder() / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path


# ---------------------------------------------------------------------------------------------
# Plans, libraries, fields, settings


@cache
def plan_texts() -> Sequence[bytes]:
    """The shipped plans; short ones, which are read faster, several times."""
    shipped = sorted((path.read_bytes() for path in ROOT.glob("fewshot/*/*.plan")), key=len)
    return [*shipped, *8 * shipped[: len(shipped) // 4]]


@cache
def libraries() -> Sequence[Any]:
    return [library.load_library(name) for name in ("seed", "quality", "medical")]


def read_plan(plan: str, *, tolerant: bool, library_number: int = 0) -> None:
    try:
        plan = parser.read(plan, tolerant=True).text if tolerant else plan
        checked = checker.compile_plan(plan, libraries()[library_number])
    except PlanError as error:
        if not re.match(r"plan:[1-9]\d*:[1-9]\d*: \S", str(error)):
            raise AssertionError(f"no place: {error}") from error
        error.render()
        raise
    printed = print_plan(checked.plan)
    assert parser.parse(printed) == checked.plan
    assert print_plan(parser.parse(printed)) == printed


@target(plan_texts, PlanError, share=300)
def plans(data: bytes) -> None:
    read_plan(text(data), tolerant=len(data) % 2 == 1, library_number=len(data) % 3)


@target(plan_texts, PlanError)
def mended_plans(data: bytes) -> None:
    reading = parser.read(text(data), tolerant=True)
    mended, _ = checker.mend_plan(reading.text if len(data) % 2 else text(data), libraries()[0])
    if reading.plan is not None and not reading.errors:
        layout = parser.formatted(reading)
        assert parser.formatted(parser.read(layout, tolerant=True)) == layout
    checker.compile_plan(parser.read(mended, tolerant=True).text, libraries()[0])


@target(
    lambda: [path.read_bytes() for path in sorted(ROOT.glob("actions/*.actions"))],
    DataError,
    share=20,
)
def action_files(data: bytes) -> None:
    library.format_library(text(data))
    actions = library.read_library(text(data), "fuzz")
    assert library.read_library(library.library_text(actions), "fuzz") == actions


@target(
    [b"patient, drugs: [{name: str, dose_mg: number?}]", b"a: int (the age), b: x | y, c: date"],
    PlanError,
)
def fields(data: bytes) -> None:
    wanted = parse_fields(text(data))
    assert parse_fields(print_fields(wanted)) == wanted


SCHEMAS = [
    b'{"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": ["integer", "null"]}}}',
    b'{"type": "object", "required": ["r"], "$defs": {"d": {"enum": ["x", "y"]}}, "properties": {"r": {"type": "array",'
    b' "items": {"properties": {"k": {"$ref": "#/$defs/d"}, "n": {"anyOf": [{"type": "number"}, {"type": "null"}]}}}}}}',
]


@target(SCHEMAS, DataError, PlanError, UsageError)
def schemas(data: bytes) -> None:
    load_schema(file(data, "schema.json"))


@target(
    [b'model = "openai:gpt-4o"\nconcurrency = 8\nmax-steps = 9\nocr = "off"\n', b"[model]\na = 1"],
    DataError,
)
def settings_files(data: bytes) -> None:
    defaults(read_settings(str(file(data, "pearl.toml"))))


# ---------------------------------------------------------------------------------------------
# Documents, units, values

TABLE = (
    b"Clinic,City,Fee,Since\nH&C,Haifa,$120,2020-01-01\nDan,Eilat,$90,2021-03-01\nLod,Lod,n/a,\n"
)
TEXTS = {
    "txt": "Ada: Who?\nOtto: The dog, 12 mg.\n\n1.2 SECTION\n\n> é\n\f\nPage 2".encode(),
    "md": b"# Title\n\n|a|b|\n|-|-|\n|1|2 %|\n|3|$4|\n\n- one\n- two\n",
    "csv": TABLE,
    "json": b'[{"id": 1, "text": "a", "n": [1, {"b": null}]}, {"id": 2, "text": "b"}]',
    "jsonl": b'{"id": 1, "text": "a"}\n{"id": 2, "text": "b\\u00e9"}\n',
    "html": b"<html><head><title>t</title><meta charset=utf-8></head><body><h1>A</h1><table><tr><th>x<th colspan=2>y"
    b"<tr><td rowspan=2>1<td>2<td>3</table><p>&eacute;<script>1</script></body></html>",
    "eml": b"From: a@b.example\nSubject: =?utf-8?q?caf=C3=A9?=\nMIME-Version: 1.0\nContent-Type: multipart/mixed; "
    b'boundary="B"\n\n--B\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\n'
    b"SGVsbG8=\n--B\nContent-Type: text/html\n\n<p>Hello</p>\n--B--\n",
}


@cache
def office(suffix: str) -> Sequence[bytes]:
    """A small file of a program."""
    from docx import Document as Word
    from openpyxl import Workbook
    from pptx import Presentation
    from reportlab.pdfgen.canvas import Canvas

    made = io.BytesIO()
    match suffix:
        case "xlsx":
            book = Workbook()
            for row in (["name", "fee"], ["a", 1.5], ["b", "=1+1"]):
                book.active.append(row)
            book.active.merge_cells("A3:B3")
            book.save(made)
        case "docx":
            word = Word()
            word.add_heading("Title")
            word.add_table(2, 2).cell(0, 0).text = "x"
            word.save(made)
        case "pptx":
            slides = Presentation()
            slides.slides.add_slide(slides.slide_layouts[0]).shapes.title.text = "Title"
            slides.save(made)
        case _:
            canvas = Canvas(made, pageCompression=0)
            canvas.drawString(50, 700, "Ada sold the boat.")
            canvas.save()
    return [made.getvalue()]


def add_documents(suffix: str, seeds: Seeds, share: int) -> None:
    @target(seeds, DataError, share=share, name=f"{suffix}_documents")
    def read(data: bytes) -> None:
        made = document.from_bytes(data, f"fuzz.{suffix}")
        assert made.text.strip()
        assert all(0 <= start <= len(made.text) for _, start in made.pages)
        made.text.encode()
        list(table_rows(made))


for name, seed in TEXTS.items():
    add_documents(name, [seed], 4 if name in ("html", "eml") else 40)
for name in ("xlsx", "docx", "pptx", "pdf"):
    add_documents(name, lambda suffix=name: office(suffix), 3)


@target(list(TEXTS.values()), DataError, share=30)
def units_of_text(data: bytes) -> None:
    made = document.from_text(text(data))
    for unit in units.UNITS:
        try:
            pieces = plugins.load("pearl.documents.units", unit).split(made.text, made.pages)
        except ValueError:
            continue
        for piece in pieces:
            assert 0 <= piece.start < piece.end <= len(made.text)
            assert made.text[piece.start : piece.end].strip()
        units.left_out(made.text, pieces)


@target(
    [b"$138.0 million", b"(1,315)", b"<20 mg", b"12-15 %", b"Q3 2010", b"3 May 2020", b"2020-01-01"]
)
def quantities_and_dates(data: bytes) -> None:
    read_quantity(text(data))
    dates.read_period(text(data))
    dates.find_dates(text(data))


@target(
    [b"subtract(5829, 5735), divide(#0, 5735)", b"table_sum(Fee, none)", b"exp(2, 3)"],
    program.ProgramError,
)
def programs(data: bytes) -> None:
    evaluation.evaluate(program.parse(text(data)), None, {})


SOURCE = document.Document(
    "Ada sold the boat because it leaked. The dose is 12 mg.\n\nOtto slept, or so he said.", "a"
)


@target([b"Ada sold the boat.\n\n> Ada sold the boat because it leaked.\n> The dose is 12 mg."])
def quotes(data: bytes) -> None:
    for passage in collect([StepReply("s", reply(data))], SOURCE)[0]:
        assert SOURCE.text[passage.span.start : passage.span.end] == passage.text


# ---------------------------------------------------------------------------------------------
# Tables and queries


@cache
def table() -> QueryTable:
    (only,) = lookup.tables_of_document(document.from_bytes(TABLE, "clinics.csv"))
    return QueryTable(only.rows)


QUERIES = [
    b'{"select": ["Clinic"], "where": {"all": [{"column": "City", "op": "is", "value": "Haifa"}, {"column": "Fee", "op":'
    b' "less than", "value": 200}]}, "sort": [{"by": "Fee", "descending": true}], "limit": 2}',
    b'{"group": ["City"], "aggregate": [{"function": "sum", "column": "Fee"}], "where": {"no": {"column": "City", "op":'
    b' "contains", "value": "a"}}}',
    b'{"aggregate": {"function": "sum", "column": {"divide": ["Fee", {"add": ["Fee", 1.5]}]}}, "cannot": null}',
    b'```json\n{"select": ["Since by year"], "where": {"column": "Since", "op": "at least", "value": "2020"}}\n```',
]


@target(QUERIES, ValueError)
def queries(data: bytes) -> None:
    asked = lookup.Lookup(table())
    answer = asked.answer(reply(data))
    asked.why_empty(answer)


# ---------------------------------------------------------------------------------------------
# Replies of models


@cache
def replies() -> Sequence[bytes]:
    """The shapes of replies of row R38."""
    shapes: dict[str, None] = {}
    for name in ("numbers", "lists", "verdicts", "labels", "texts", "no_replies", "rows"):
        groups = tomllib.loads((ROOT / f"tests/replies/{name}.toml").read_text("utf-8")).values()
        shapes |= dict.fromkeys(itertools.chain.from_iterable(groups))
    return [shape.encode() for shape in shapes]


@target(replies, share=200)
def typed_replies(data: bytes) -> None:
    split = raw.without_reasoning(reply(data))
    for wanted in ValueType:
        result = step_replies.read_reply(split.text, wanted, source=SOURCE.text)
        assert (result.state == "undecided") == bool(result.why)


@target(replies, share=200)
def replies_about_items(data: bytes) -> None:
    said = ("The dog barks.", "A cat, 3 kg", "12:30 the hen")
    for kind in get_args(items.ItemKind):
        n_picks = 2 * (kind == "pick")
        names = items.item_names(said, kind) if len(data) % 2 and not n_picks else None
        items.read_items(reply(data), 3, kind, ("yes", "dog"), n_picks, items=said, names=names)


@target(lambda: [*replies(), b"Answer: A", b"(B)", b"The mill is not it; a boat"], share=200)
def choices(data: bytes) -> None:
    assert read_choice(reply(data), ["a boat", "a mill", "Two dogs"]) in (None, 0, 1, 2)


RECORDS = [
    b'{"name": {"value": "Ada", "quote": "Ada sold"}, "age": {"value": 54}, "drugs": [{"name": "x", "dose": 1}]}',
    b'```json\n{"name": null, "age": {"value": "54", "quote": ["a", "b"]}, "drugs": []}\n```',
]


@target(RECORDS)
def extracted_records(data: bytes) -> None:
    wanted = parse_fields("name, age: int, drugs: [{name: str, dose: number?}]")
    assert set(extracted.read_extracted(reply(data), wanted).fields) == {"name", "age", "drugs"}


@target(
    [b"Ada sold {n} boats [2]. They leaked [1], all 9 of them [1].", b"- Two [1, 2]\n- **x** [1]"]
)
def composed_answers(data: bytes) -> None:
    answer = composed.read_composed(
        reply(data), ["It leaked.", "n = 3"], {"n": (1, "3")}, "How many?"
    )
    assert bool(answer.why) != bool(answer.sentences)


SERVER = endpoint.Endpoint("http://localhost/v1", "m", "sk-secret-0123456789")
BODIES = [
    b'{"choices": [{"message": {"content": "It leaked.", "refusal": null, "tool_calls": [{"custom": {"input": "x"}}]}, '
    b'"finish_reason": "stop"}], "usage": {"prompt_tokens": 10, "completion_tokens": 2}, "model": "m"}',
    b'{"error": {"message": "no", "code": 429}}', b'{"choices": []}', b"", b"<html>502</html>",
]  # fmt: skip


@target(BODIES, ModelError, share=200)
def response_bodies(data: bytes) -> None:
    completion = read_completion(data, SERVER)
    assert completion.text.strip()
    completion.text.encode()


# ---------------------------------------------------------------------------------------------
# Files of PEARL


@cache
def result() -> tuple[bytes, bytes]:
    """A row of results, and its trace."""
    trace = Trace("q1")
    answer = asyncio.run(Pearl().ask("Why did Ada sell the boat?", SOURCE, trace=trace))
    return json.dumps({"id": "q1", **answer.to_dict()}).encode(), trace.to_jsonl().encode()


@target(lambda: result()[:1], DataError, share=5)
def results_files(data: bytes) -> None:
    results = open_results(file(data, "results.jsonl"))
    for key, _ in itertools.islice(results.rows() if results else (), 3):
        result_page(results.record(key))


@target(lambda: result()[1:], DataError, share=10)
def trace_files(data: bytes) -> None:
    results_files(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        read_trace(folder() / "results.jsonl")


@target(
    [
        b'{"id": "a", "question": "Why?", "document": "It leaked."}\n{"id": 2, "plan": "1. a = FIND(CTX) : x"}\n'
    ],
    DataError,
)
def task_files(data: bytes) -> None:
    for task in TaskFile(file(data, "tasks.jsonl")):
        assert task.problem is None or isinstance(task.problem, DataError)


@target(
    [b'{"server": "s", "model": "m", "file_id": "f", "keys": ["00ff"], "batch_id": "b"}'],
    StoreError,
)
def pending_batches(data: bytes) -> None:
    from pearl.contrib.batches.batching import PendingBatches

    PendingBatches(file(data, "batches/a.json").parents[1], "s", "m").take([b"\0\xff"])


@cache
def store_file() -> bytes:
    """A store with a run of five rows and five replies."""
    path = Path(tempfile.mkdtemp(dir=folder()))

    async def fill(store: Store) -> None:
        run = store.begin(SPEC)
        for i in range(5):
            await store.keep(key_of(i), reply_of(i))
            await run.record(key_of(i), i, str(i), {"status": "answered", "i": i}, "{}\n")

    with Store.open(path) as store:
        asyncio.run(fill(store))
    return (path / FILE).read_bytes()


@target(lambda: [store_file()], StoreError, share=4)
def stores(data: bytes) -> None:
    shutil.rmtree(folder() / "store", ignore_errors=True)
    file(data, f"store/{FILE}")
    with Store.open(folder() / "store") as store:
        run = store.begin(SPEC)
        for i in range(5):
            asyncio.run(store.reply(key_of(i)))
            run.outcome(key_of(i))
        list(store.rows(run.id))
        list(store.traces(run.id))
        for info in store.runs():
            info.to_dict()


@cache
def vectors_file() -> bytes:
    """A cache of 20 vectors."""
    vectors = EmbeddingCache(folder() / "vectors.sqlite")
    vectors.keep({key_of(i): np.eye(32, dtype=np.float32)[i] for i in range(20)})
    vectors.close()
    return vectors.path.read_bytes()


@target(lambda: [vectors_file()], StoreError, share=10)
def embedding_caches(data: bytes) -> None:
    vectors = EmbeddingCache(file(data, "fuzz.sqlite"))
    try:
        vectors.read([key_of(i) for i in range(20)])
    finally:
        vectors.close()


@cache
def corpus() -> tuple[Path, bytes]:
    """The file of an index of two files, and its bytes."""
    file(b"salt lake\n\niron", "corpus/a.txt")
    file(TABLE, "corpus/t.csv")
    index = Index.open(folder() / "corpus", at=folder() / "index")
    assert index.opened is not None
    path = index.opened.folder.path / "index.bin"
    return path, path.read_bytes()


@target(lambda: [corpus()[1]], StoreError, share=4)
def index_files(data: bytes) -> None:
    corpus()[0].write_bytes(data)
    texts = [
        passage.text for passage in Index.open(folder() / "corpus", at=folder() / "index").passages
    ]
    assert texts[:2] == ["salt lake", "iron"], texts
