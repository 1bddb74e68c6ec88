"""A plan as a column: add an answer to each row of a batch, in every engine that passes Arrow data."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import os
import platform
import sys
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, aclosing
from functools import partial
from pathlib import Path
from threading import Lock, Thread, current_thread
from typing import Any, Literal, TypeVar, get_args

from msgspec.structs import replace

from pearl.data.schemas import load_schema
from pearl.documents.document import Document, from_bytes, from_text, load
from pearl.dsl.binding import bind
from pearl.dsl.checker import CheckedPlan
from pearl.dsl.fields import ENTRY, Field
from pearl.errors import DataError, UsageError
from pearl.interpreter.answer import Answer
from pearl.llm.prices import Price
from pearl.pipeline import Pearl, is_name
from pearl.plugins.extras import require_extra
from pearl.plugins.files import is_inside
from pearl.runs import identity
from pearl.runs.executors import Outcome, Task
from pearl.runs.executors.local import run as run_here
from pearl.runs.export import arrow_type
from pearl.runs.extraction import COLUMN_TYPES, fields_of_plan
from pearl.runs.session import Session, opened_store
from pearl.trace import spent

Holds = Literal["text", "path", "bytes"]

Batch = TypeVar("Batch")

_Equipped = tuple[Pearl, Price | None]

_LIMITS = frozenset(("max_cost_usd", "max_tokens", "max_calls", "max_minutes", "price"))
"""Settings of `Session`; all others are those of `Pearl`."""


def answer_type(schema: Any = None) -> Any:
    """The Arrow type of a column of answers, a struct that only a new major version changes.

    - `value`: the text of the answer; with a schema, a struct of its fields, in which those that are undecided
      or not stated are null. Null without an answer, or if a pydantic model refuses the answer.
    - `status`: the answer's status, `failed`, or `unfinished` (a limit, or an unreachable server).
    - `reasons`: why the answer is undecided, degraded or refused, and why fields have no value.
    - `evidence`: passages, with their places in the `document`, the `steps` that use them, and the `fields` that
      they support; rows that form the answer (`match` is `row`), each `found` or `undecided`.
    - `usage`: `calls` without cached replies, tokens, and `cost_usd`, null if the price is unknown or roles have
      models of their own.
    - `error`: null unless the row failed or is unfinished.

    Args:
        schema: The same as for `pearl.extract`; None for plans whose answer is a text.
    """
    require_extra("data", "a plan as a column", "pyarrow")
    import pyarrow as pa

    text, number, texts = pa.string(), pa.int64(), pa.list_(pa.string())
    evidence = {
        "quote": text, "document": text, "page": number, "start": number, "end": number,
        "match": text, "state": text, "steps": texts, "fields": texts,
    }  # fmt: skip
    counts = ("calls", "input_tokens", "output_tokens", "cached_tokens", "written_tokens")
    return pa.struct({
        "value": text if schema is None else _struct(load_schema(schema).fields),
        "status": text,
        "reasons": texts,
        "evidence": pa.list_(pa.struct(evidence)),
        "usage": pa.struct({**dict.fromkeys(counts, number), "cost_usd": pa.float64()}),
        "error": pa.struct(dict.fromkeys(("type", "message", "help"), text)),
    })  # fmt: skip


def _struct(fields: Iterable[Field]) -> Any:
    """The type of an object with these fields; dots in their names separate nested objects."""
    import pyarrow as pa

    members: dict[str, Any] = {}
    for field in fields:
        name, _, inner = field.name.partition(".")
        if inner:
            members.setdefault(name, []).append(replace(field, name=inner))
            continue
        members[name] = _type(field)
    return pa.struct({n: _struct(m) if isinstance(m, list) else m for n, m in members.items()})


def _type(field: Field) -> Any:
    """The type of the values of a field."""
    import pyarrow as pa

    plain = arrow_type(COLUMN_TYPES.get(field.type, str))
    if not field.is_list:
        return plain
    if field.fields and field.fields[0].name == ENTRY:
        return pa.list_(_type(field.fields[0]))
    return pa.list_(_struct(field.fields) if field.fields else plain)


class PlanColumn:
    """Runs one plan over the document of each row, and adds the answers as a column.

    Call it with a table of pyarrow, pandas or Polars, a record batch, or a dictionary of arrays: it returns the
    same kind with the same rows in the same order and one more column, of `type`. In pandas and in a dictionary
    this column is an Arrow array, too. Errors of rows are in the column; only a wrong argument is raised.

    Arguments are checked at once, without a call. An instance can be pickled; its copy in a worker has a client,
    connections and limits of its own.

    Args:
        plan: A checked plan, the text of one, or its file.
        schema: In place of a plan, the fields to extract, as for `pearl.extract`.
        column: The column with the documents.
        holds: What its cells are: `text`, `path` or `bytes`.
        folder: For paths: they are relative to it, and may not lead out of it.
        name_column: A column with the names of the documents; for bytes, whose suffixes say how they are read.
        fields: Columns that the plan reads as fields of its rows, as by `WHERE`.
        answer: The name of the new column.
        store: A folder for replies, so that none is paid for twice. Workers of one machine share it; it must not
            be on a network drive.
        parameters: Texts for parameters of the plan; the others are read from columns of the same names.
        version: Part of `arguments`: a worker with another version of pearl refuses to start.
        settings: Those of `Pearl`, such as `model`, `base_url` and `concurrency`, and the limits of `Session`:
            `max_cost_usd`, `max_tokens`, `max_calls`, `max_minutes`, `price`. They hold **for each worker**: n
            workers may spend n times as much.

    Attributes:
        type: The Arrow type of the column: `answer_type`, with the fields of a schema or of a plan of `EXTRACT`.
        arguments: All arguments, with the text of the plan in place of its file, for an engine that makes the
            instances itself.

    Raises:
        UsageError: An argument is wrong.
        PlanError: The plan is invalid.
        DataError: The plan or the schema cannot be read.
    """

    def __init__(
        self,
        plan: str | Path | CheckedPlan | None = None,
        *,
        schema: Any = None,
        column: str = "text",
        holds: Holds = "text",
        folder: str | Path | None = None,
        name_column: str | None = None,
        fields: Sequence[str] = (),
        answer: str = "answer",
        store: str | Path | None = None,
        parameters: Mapping[str, str] | None = None,
        version: str | None = None,
        **settings: Any,
    ) -> None:
        own = identity.version()
        # fmt: off
        for is_right, what, help in (
            (version in (None, own), f"the node {platform.node()} runs {own}, the driver {version}",
             "install the same versions on every node of the cluster"),
            ((plan is None) != (schema is None), "expected a plan or a schema",
             'PlanColumn("why.plan"), or PlanColumn(schema="patient: str")'),
            (holds in get_args(Holds), f"a column cannot hold '{holds}'", f"choose from {', '.join(get_args(Holds))}"),
            ((holds == "path") == (folder is not None), "paths, and only they, need a folder that they do not leave",
             "holds='path', folder='/data'; folder='/' allows every file"),
            (holds != "bytes" or name_column, "bytes need names, whose suffixes say how they are read",
             "name_column='path' for a column with names such as letter.html"),
        ):
            if not is_right:
                raise UsageError(what, help=help)
        # fmt: on
        limits = {name: value for name, value in settings.items() if name in _LIMITS}
        of_pearl: Any = {name: value for name, value in settings.items() if name not in _LIMITS}
        asker = Pearl(**{**of_pearl, "is_asked": False})  # the driver needs no key
        Session(asker, **limits)
        if plan is None:
            schema = load_schema(schema)
            checked = asker.plan_extraction(schema.fields)
        else:
            plan = Path(plan) if isinstance(plan, str) and is_name(plan) else plan
            plan = checked = asker.checked(plan)
            actions = map(checked.action, checked.plan.steps)
            if all(each.extracts and not each.extracts_all for each in actions):
                schema = load_schema(fields_of_plan(str(checked)))
        self._plan, self._schema = str(checked), schema
        given = {**(parameters or {})}
        self._by_row = [e.name for e in checked.plan.parameters if e.name not in given]
        bind(checked, dict.fromkeys(self._by_row, "-") | given)
        self.type = answer_type(schema)
        self.arguments: Mapping[str, Any] = {
            "plan": plan and self._plan, "schema": schema if plan is None else None, "column": column,
            "holds": holds, "folder": folder, "name_column": name_column, "fields": tuple(fields),
            "answer": answer, "store": store, "parameters": given, "version": own, **settings,
        }  # fmt: skip
        self._equip = partial(_equipped, of_pearl, limits, store)
        self._lock = Lock()
        self._worker: _Worker | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(PlanColumn, **self.arguments), ()

    def __call__(self, batch: Batch) -> Batch:
        """Return the batch with the column of answers."""
        import pyarrow as pa

        given, own = _Batch(batch), self.arguments
        if own["answer"] in given.names:
            advice = "name the column of answers: PlanColumn(..., answer='why')"
            raise UsageError(f"the batch has a column '{own['answer']}' already", help=advice)
        cells = given.cells(own["column"], _BYTES if own["holds"] == "bytes" else _TEXTS)
        names = cells if own["holds"] == "path" else [own["column"]] * len(cells)
        if own["name_column"]:
            names = given.cells(own["name_column"], _TEXTS)
        fields = [[(name, cell) for cell in given.cells(name)] for name in own["fields"]]
        columns = {name: given.cells(name) for name in self._by_row}
        tasks = [
            Task(
                str(i),
                partial(_document, own["holds"], own["folder"], *row),
                plan=self._plan,
                parameters=own["parameters"] | {name: each[i] for name, each in columns.items()},
            )
            for i, row in enumerate(zip(cells, names, *fields, strict=True))
        ]
        worker = self._started() if tasks else None
        answers = worker.wait(self._answers(worker, tasks)) if worker else []
        added: Batch = given.with_column(own["answer"], pa.array(answers, self.type))
        return added

    def _started(self) -> _Worker:
        with self._lock:
            # A forked process does not have the threads of its parent.
            if self._worker is None or self._worker.process != os.getpid():
                self._worker = _Worker(self._equip)
                weakref.finalize(self, self._worker.end)
            return self._worker

    async def _answers(self, worker: _Worker, tasks: Sequence[Task]) -> list[dict[str, Any]]:
        async with aclosing(run_here(worker.pearl, tasks)) as outcomes:
            return [self._row(outcome, worker.price) async for outcome in outcomes]

    def _row(self, outcome: Outcome[Task], price: Price | None) -> dict[str, Any]:
        """An answer as Python data of `type`."""
        n_calls, n_cached, _, usage = spent(outcome.trace)
        row: dict[str, Any] = {"reasons": [], "evidence": []}
        row["usage"] = {
            **usage.to_dict(),
            "calls": n_calls - n_cached,
            "written_tokens": usage.n_written_tokens,
            "cost_usd": None if price is None else price.cost_usd(usage),
        }
        answer: Answer | None = outcome.result
        if answer is None:
            row |= {name: outcome.to_dict()[name] for name in ("status", "error")}
        else:
            row |= {"status": answer.status, "evidence": _evidence(answer)}
            row["reasons"] += [answer.why] if answer.why else []
            if self._schema is None:
                row["value"] = answer.text if answer.has_answer else None
            elif answer.record is not None:
                reading = self._schema.read(answer.record)
                reasons = reading.reasons
                if self._schema.model is None or reading.value is not None:
                    # The column has the form of the fields, which is flatter than a union or a map.
                    row["value"] = load_schema(self._schema.fields).read(answer.record).data
                row["reasons"] += reasons
                if reasons and answer.status in ("answered", "degraded"):
                    row["status"] = "undecided" if row.get("value") is None else "degraded"
        fitted: dict[str, Any] = _fitted(row, self.type, "", row["reasons"])
        return fitted


async def _equipped(
    settings: Mapping[str, Any], limits: Mapping[str, Any], store: str | Path | None, stack: AsyncExitStack,
) -> _Equipped:  # fmt: skip
    """The `Pearl` of a worker, and the price of its model; None for several models."""
    asker = await stack.enter_async_context(Pearl(**settings))
    warn = logging.getLogger(__name__).warning
    opened = None if store is None else stack.enter_context(opened_store(Path(store), warn))
    session = Session(asker, store=opened, keeps_rows=False, **limits)
    models = {client.name for client in asker.clients.values()}
    return session.equipped(), session.price if len(models) == 1 else None


class _Worker:
    """A `Pearl` in an event loop of its own, in a thread, because the process may have a running loop."""

    def __init__(self, equip: Callable[[AsyncExitStack], Awaitable[_Equipped]]) -> None:
        self.process = os.getpid()
        self._equip = equip
        ready: Future[_Equipped] = Future()
        self._thread = Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self._thread.start()
        self.pearl, self.price = ready.result()

    async def _serve(self, ready: Future[_Equipped]) -> None:
        self._loop, self._is_over = asyncio.get_running_loop(), asyncio.Event()
        async with AsyncExitStack() as stack:
            try:
                ready.set_result(await self._equip(stack))
            except Exception as error:  # noqa: BLE001 - raised where the worker is made
                ready.set_exception(error)
                return
            await self._is_over.wait()

    def wait(self, work: Coroutine[Any, Any, list[dict[str, Any]]]) -> list[dict[str, Any]]:
        """Run work in the loop and return its result; Ctrl-C cancels it."""
        done = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return done.result()
        except BaseException:
            done.cancel()
            raise

    def end(self) -> None:
        """Close the connections and end the thread."""
        if self.process == os.getpid() and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._is_over.set)
            if current_thread() is not self._thread:  # the garbage collector runs in every thread
                self._thread.join()


def _document(
    holds: Holds, folder: str | Path, cell: Any, name: str | None, *fields: tuple[str, str | None]
) -> Document:
    """The document of a row."""
    if cell is None or name is None:
        what = "cell" if cell is None else "name of the document"
        raise DataError(f"the {what} is null", help="leave the row out, or fill the cell")
    if holds == "path":
        path = Path(folder, cell)
        if "\0" in cell or not is_inside(path, folder):
            advice = "name the folder of all files: PlanColumn(..., folder='/data')"
            raise DataError(f"outside the folder {folder}", path=repr(cell), help=advice)
        if path.exists() and not path.is_file():  # a pipe would never end
            raise DataError("not a file", path=cell, help="name the files of a folder one by one")
        document = load(path, name=name)
    else:
        document = from_text(cell, name) if holds == "text" else from_bytes(cell, name)
    metadata = {name: text or "" for name, text in fields}
    return dataclasses.replace(document, metadata=(metadata,)) if metadata else document


def _evidence(answer: Answer) -> list[dict[str, Any]]:
    fields: dict[Any, list[str]] = {}
    for path, result in answer.fields.items():
        for passage in result.passages:
            fields.setdefault((passage.span, passage.omitted), []).append(path)
    borne_out = [fields.get((each.span, each.omitted), []) for each in answer.evidence]
    borne_out += [[] for _ in answer.row_evidence]
    return [
        {**data, "quote": data["text"], "document": data["source"], "fields": paths}
        for data, paths in zip(answer.to_dict()["evidence"], borne_out, strict=True)
    ]


def _fitted(value: Any, kind: Any, path: str, reasons: list[str]) -> Any:
    """A value as Python data of an Arrow type; a number too large for it becomes null, and is added to `reasons`."""
    from pyarrow import types

    if value is None:
        return None
    if types.is_struct(kind):
        # In the order of the type: the reasons come after the value.
        return {m.name: _fitted(value.get(m.name), m.type, f"{path}.{m.name}", reasons) for m in kind}  # fmt: skip
    if types.is_list(kind):
        return [_fitted(v, kind.value_type, f"{path}[{i}]", reasons) for i, v in enumerate(value)]
    if types.is_string(kind):
        text = value if isinstance(value, str) else json.dumps(value)
        return text.encode("utf-8", "replace").decode()  # lone surrogates are no text of Arrow
    if isinstance(value, int) and abs(value) >= 2 ** (53 if types.is_floating(kind) else 63):
        reasons.append(f"{path.removeprefix('.value.')}: the number is too large for {kind}")
        return None
    return value


_KINDS = (
    ("pyarrow", "Table"), ("pyarrow", "RecordBatch"), ("pandas", "DataFrame"), ("polars", "DataFrame"),
    ("builtins", "dict"),
)  # fmt: skip
_TEXTS = ("string", "large_string", "string_view", "null")
_BYTES = ("binary", "large_binary", "binary_view", "fixed_size_binary", "null")


class _Batch:
    """A batch of any kind, read through Arrow."""

    def __init__(self, batch: Any) -> None:
        # A package that nobody has imported has no instances.
        loaded = [(name, getattr(sys.modules.get(name), kind, ())) for name, kind in _KINDS]
        self._batch, self._kind = batch, next((n for n, kind in loaded if isinstance(batch, kind)), "")  # fmt: skip
        if not self._kind:
            advice = "pass a table of pyarrow, pandas or Polars, or a dictionary of arrays"
            raise UsageError(f"a {type(batch).__name__} is not a batch", help=advice)
        columns = batch.schema.names if self._kind == "pyarrow" else batch
        self.names = list(columns.columns if self._kind in ("pandas", "polars") else columns)

    def cells(self, name: str, types: Sequence[str] = ()) -> list[Any]:
        """The cells of a column, which must have one of these types; without types, as texts."""
        import pyarrow as pa

        if (n := self.names.count(name)) != 1:
            what = f"{n or 'no'} column{'s' * (n > 1)} '{name}'"
            advice = "give them different names" if n else "name another: PlanColumn(..., column='NAME')"  # fmt: skip
            columns = ", ".join(map(str, self.names))
            raise UsageError(f"the batch has {what}; columns: {columns}", help=advice)
        is_arrow = self._kind == "pyarrow"
        raw = self._batch.column(self.names.index(name)) if is_arrow else self._batch[name]
        raw = raw.to_arrow() if hasattr(raw, "to_arrow") else raw  # a series of Polars or Daft
        try:
            is_array = isinstance(raw, pa.Array | pa.ChunkedArray)
            array = raw if is_array else pa.array(raw, from_pandas=True)
            array = array if types else array.cast(pa.string())
        except (pa.ArrowException, TypeError, ValueError) as error:
            why = str(error).partition("\n")[0]
            raise UsageError(f"column '{name}' cannot be read: {why}", help="convert it") from None
        kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
        if types and not any(getattr(pa.types, f"is_{each}")(kind) for each in types):
            advice = f"expected {' or '.join(types[:2])}; holds= says what the cells are"
            raise UsageError(f"column '{name}' has the type {array.type}", help=advice)
        cells: list[Any] = array.to_pylist()
        return cells

    def with_column(self, name: str, array: Any) -> Any:
        """Return a batch of the same kind with one more column."""
        batch, package = self._batch, sys.modules[self._kind]
        match self._kind:
            case "pyarrow":
                return batch.append_column(package.field(name, array.type), array)
            case "pandas":
                return batch.assign(**{name: package.arrays.ArrowExtensionArray(array)})
            case "polars":
                return batch.with_columns(package.from_arrow(array).alias(name))
        return {**batch, name: array}
