"""The options of a run as kept by the store. They are untrusted: each one is validated, and none is executed as a command."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from time import time_ns
from typing import Annotated, Any, ClassVar, Self

from msgspec import Meta, convert, to_builtins

from pearl import plugins
from pearl.data.schemas import Schema, stored_schema
from pearl.data.storage import is_address
from pearl.documents.digest import file_sha256
from pearl.errors import DataError, PlanError, StoreError, UsageError
from pearl.errors.escaping import LEFT_OUT, redacted
from pearl.errors.validation import reason
from pearl.llm.backends import ModelSettings, address_of
from pearl.llm.prices import Price
from pearl.runs.extraction import table_files
from pearl.runs.store import RunInfo, RunSpec, Store
from pearl.settings import ROLES, Settings, resumed

Positive = Annotated[int, Meta(gt=0)]
NotNegative = Annotated[int, Meta(ge=0)]
Tokens = Annotated[int, Meta(ge=256)]
Amount = Annotated[float, Meta(ge=0)]


class RunRequest(Settings, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The options of a command that stores rows."""

    COMMAND: ClassVar[str]
    READS: ClassVar[tuple[str, ...]] = ("data",)  # Options that name input files
    ARGUMENTS: ClassVar[str] = ""  # The parameter with several input files, if any
    WRITES: ClassVar[tuple[str, ...]] = ("out", "trace")  # Options that name output files
    MAY_READ: ClassVar[tuple[str, ...]] = ("library", "examples", "prices")
    """Options that name a file, or a shipped library, bank or table."""

    # `base_url` is the address of the server, without a password; None for OpenAI's server or none.
    data: str | None = None
    split: str | None = None
    columns: tuple[str, ...] = ()
    subset: str | None = None
    limit: Positive | None = None
    out: str | None = None
    as_json: bool = False
    max_cost: Amount | None = None
    max_tokens: NotNegative | None = None
    max_time: Annotated[float, Meta(gt=0)] | None = None
    max_calls: NotNegative | None = None
    price: Price | None = None
    prices: str | None = None
    executor: str
    batch_threshold: NotNegative | None = None
    max_errors: NotNegative | None = None
    shard: str | None = None
    written: tuple[str, ...] = ()
    """Files written by earlier commands of the run, which a later command may replace."""

    def __post_init__(self) -> None:
        try:
            super().__post_init__()
        except UsageError as error:
            raise ValueError(error.message) from None
        for name in self.__struct_fields__:
            value = getattr(self, name)
            texts = value if isinstance(value, tuple) else (value,)
            if any("\0" in text for text in texts if isinstance(text, str)):
                raise ValueError(f"{name}: no text")
        if not plugins.exists("pearl.runs.executors", self.executor):
            raise ValueError("executor: no executor")

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Self:
        """Create the request of a command line."""
        known = resumed({name: params[name] for name in cls.__struct_fields__ if name in params})
        address = address_of(known["model"], ModelSettings(known["base_url"])) or ""
        try:
            return convert({**known, "base_url": redacted(address, LEFT_OUT) or None}, cls)
        except ValueError as error:
            raise UsageError(f"--{reason(error).replace('_', '-')}") from None

    def spec(
        self,
        command: Iterable[str],
        settings: Mapping[str, Any],
        inputs: Mapping[str, str],
        written: Iterable[str] = (),
    ) -> RunSpec:
        """The specification of the run, without the settings of its `Pearl`, which `Session` adds."""
        shown = tuple(redacted(word, LEFT_OUT) for word in command)
        named = {"command": self.COMMAND, **settings}
        return RunSpec(
            shown, named, inputs, work={**resumed(to_builtins(self)), "written": [*written]}
        )

    @property
    def inputs(self) -> Iterator[str]:
        """Every input file, as named by the user, and the file of the model."""
        yield from getattr(self, self.ARGUMENTS) if self.ARGUMENTS else ()
        yield from (name for option in self.READS if (name := getattr(self, option)))
        named = [getattr(self, option) for option in self.MAY_READ]
        models = (self.model, *(getattr(self, role) for role in ROLES))
        named += [m.partition(":")[2] for m in models if m and address_of(m) is None]
        # Names of shipped libraries, banks and tables are not paths.
        yield from (name for name in named if name and Path(name).exists())

    @property
    def outputs(self) -> Iterator[str]:
        """Every output file, as named by the user."""
        yield from (name for option in self.WRITES if (name := getattr(self, option)))


class ExecuteRequest(RunRequest, frozen=True, kw_only=True):
    """`pearl execute --out`."""

    COMMAND = "execute"
    READS = ("tasks", "data")
    ARGUMENTS = "plan_and_documents"
    WRITES = ("out", "trace", "rows_out")

    plan_and_documents: tuple[str, ...] = ()
    together: bool = False
    sources: tuple[str, ...] = ()
    tasks: str | None = None
    set: tuple[str, ...] = ()
    # Runs to an address are not in a store: an untrusted store must not decide where rows are sent.
    out: str
    trace: str | None = None
    rows_out: str | None = None
    verbose: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if is_address(self.out):
            raise ValueError("out: an address")

    @property
    def worked_on(self) -> dict[str, str]:
        """Identity of the input: names of the plan and documents, digests of tasks and data."""
        inputs = {"arguments": "\n".join(self.plan_and_documents)}
        if self.set:
            inputs["set"] = "\n".join(self.set)
        if self.tasks:
            inputs["tasks"] = _content(self.tasks)
        if self.data:
            asked = {name: getattr(self, name) for name in ("split", "columns", "subset", "limit")}
            inputs |= {"data": _content(self.data), "asked": json.dumps(asked)}
        return inputs


class ExtractRequest(RunRequest, frozen=True, kw_only=True):
    """`pearl extract --out`."""

    COMMAND = "extract"
    READS = ()
    ARGUMENTS = "documents"

    # Stored as JSON Schema or short form, so that the run can be resumed without the code or file
    # of its schema.
    fields: str
    documents: tuple[str, ...] = ()
    out: str
    trace: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            stored_schema(self.fields)
        except PlanError as error:
            raise ValueError(f"fields: {error.diagnostics[0].message}") from None
        except DataError as error:
            raise ValueError(f"fields: {error}") from None

    @property
    def outputs(self) -> Iterator[str]:
        """Every output file, including those of lists."""
        yield from super().outputs
        yield from [*table_files(self.out, self.loaded.fields).values()][1:]

    @property
    def loaded(self) -> Schema:
        """The schema as data: without its model class, if it had one."""
        return stored_schema(self.fields)

    @property
    def worked_on(self) -> dict[str, str]:
        """Identity of the input: fields and document names."""
        return {"arguments": "\n".join(self.documents), "fields": self.fields}


class EvalRequest(RunRequest, frozen=True, kw_only=True):
    """`pearl eval`."""

    COMMAND = "eval"
    READS = ("data", "results")

    methods: str
    results: str | None = None
    scorer: str | None = None
    seeds: Positive
    temperature: Amount | None = None
    token_budget: Tokens | None = None
    part_tokens: Tokens
    by_document: bool = False
    trace: str | None = None


class MineRequest(RunRequest, frozen=True, kw_only=True):
    """`pearl mine`."""

    COMMAND = "mine"
    MAY_READ = (*RunRequest.MAY_READ, "seed_library")
    WRITES = ("out",)

    seed_library: str
    again: bool = False


class FewshotRequest(RunRequest, frozen=True, kw_only=True):
    """`pearl refine fewshot`."""

    COMMAND = "fewshot"
    READS = ("data", "held_out")

    out: str
    retries: NotNegative
    max_examples: Positive
    held_out: str | None = None
    trace: str | None = None

    @property
    def outputs(self) -> Iterator[str]:
        """The journal in the folder of the bank."""
        yield str(Path(self.out) / "curation.jsonl")


REQUESTS: Mapping[str, type[RunRequest]] = {
    kind.COMMAND: kind
    for kind in (ExecuteRequest, ExtractRequest, EvalRequest, MineRequest, FewshotRequest)
}
"""Name of a command → its request class."""


def request_of(info: RunInfo) -> RunRequest:
    """The validated request of a stored run."""
    again = f"repeat its command, which pearl runs show {info.id} prints"
    if info.settings.get("command") == "session":
        raise StoreError(
            f"run {info.id} was started in Python",
            help=f"resume it there: pearl.Session(...).resume('{info.id}', tasks)",
        )
    kind = REQUESTS.get(str(info.settings.get("command")))
    if not info.work or kind is None:
        raise StoreError(
            f"run {info.id} cannot be resumed: the store has no request for it", help=again
        )
    work = dict(info.work)
    for name in work.keys() - resumed(work).keys():
        raise StoreError(
            f"the request of run {info.id} is invalid: {name} is never stored", help=again
        )
    # Without --as-of, the day on which the run started.
    work["as_of"] = work.get("as_of") or info.settings.get("as_of")
    try:
        return convert(work, kind)
    except ValueError as error:
        raise StoreError(
            f"the request of run {info.id} is invalid: {reason(error)}", help=again
        ) from None


def written_files(info: RunInfo) -> Iterator[str]:
    """The files written by the commands of a run, including earlier ones; none if it has no request."""
    with suppress(StoreError):
        request = request_of(info)
        yield from request.written
        yield from (str(Path(info.folder) / name) for name in request.outputs)


def run_that_wrote(path: Path, store: Store) -> str:
    """The id of the latest stored run that wrote a file; "" for none."""
    with suppress(StoreError, OSError):
        for run in store.runs():
            if path.resolve() in (Path(file).resolve() for file in written_files(run)):
                return run.id
    return ""


def files_of_runs(folder: Path) -> frozenset[Path]:
    """The files that stored runs wrote: they are not documents, even among documents."""
    with suppress(StoreError, OSError), Store.open(folder, read_only=True) as store:
        return frozenset(
            Path(file).resolve() for run in store.runs() for file in written_files(run)
        )
    return frozenset()


def _content(path: str) -> str:
    """Identity of a file: its SHA-256; for a folder or other path, the path."""
    if Path(path).is_fifo():
        return f"{path} {time_ns()}"
    if not Path(path).is_file():  # A device may be endless
        return path
    try:
        return file_sha256(Path(path))
    except OSError:
        return path
