"""The options of a run as kept by the store. They are untrusted: each one is validated, and none is executed as a command."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from time import time_ns
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    AfterValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PlainValidator,
    PositiveFloat,
    PositiveInt,
    ValidationError,
)

from pearl import plugins
from pearl.data.log_files import Frozen, reason
from pearl.data.schemas import Schema, stored_schema
from pearl.data.storage import is_address
from pearl.documents.digest import file_sha256
from pearl.errors import DataError, PlanError, StoreError, UsageError
from pearl.errors.escaping import LEFT_OUT, redacted
from pearl.llm.backends import ModelSettings, address_of
from pearl.llm.prices import Price
from pearl.runs.extraction import table_files
from pearl.runs.store import RunInfo, RunSpec, Store
from pearl.settings import ROLES, Settings, Text, resumed


def _executor(value: object) -> str:
    if not isinstance(value, str) or not plugins.exists("pearl.runs.executors", value):
        raise ValueError("no executor")
    return value


def _schema(value: str) -> str:
    try:
        stored_schema(value)
    except PlanError as error:
        raise ValueError(error.diagnostics[0].message) from None
    except DataError as error:
        raise ValueError(str(error)) from None
    return value


def _local(value: str) -> str:
    if is_address(value):
        raise ValueError("an address")
    return value


ExecutorName = Annotated[str, PlainValidator(_executor)]

Tokens = Annotated[int, Field(ge=256)]


class RunRequest(Frozen, Settings):
    """The options of a command that stores rows."""

    COMMAND: ClassVar[str]
    READS: ClassVar[tuple[str, ...]] = ("data",)  # Options that name input files
    ARGUMENTS: ClassVar[str] = ""  # The parameter with several input files, if any
    WRITES: ClassVar[tuple[str, ...]] = ("out", "trace")  # Options that name output files
    MAY_READ: ClassVar[tuple[str, ...]] = ("library", "examples", "prices")
    """Options that name a file, or a shipped library, bank or table."""

    # `base_url` is the address of the server, without a password; None for OpenAI's server or none.
    data: Text | None = None
    split: Text | None = None
    columns: tuple[Text, ...] = ()
    subset: Text | None = None
    limit: PositiveInt | None = None
    out: Text | None = None
    as_json: bool = False
    max_cost: NonNegativeFloat | None = None
    max_tokens: NonNegativeInt | None = None
    max_time: PositiveFloat | None = None
    max_calls: NonNegativeInt | None = None
    price: Price | None = None
    prices: Text | None = None
    executor: ExecutorName
    batch_threshold: NonNegativeInt | None = None
    max_errors: NonNegativeInt | None = None
    shard: Text | None = None
    written: tuple[Text, ...] = ()
    """Files written by earlier commands of the run, which a later command may replace."""

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Self:
        """Create the request of a command line."""
        known = resumed({name: params[name] for name in cls.model_fields if name in params})
        settings = ModelSettings(known["base_url"])
        try:
            address = redacted(address_of(known["model"], settings) or "", LEFT_OUT)
            return cls(**{**known, "base_url": address or None})
        except ValidationError as error:
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
            shown, named, inputs, work={**resumed(self.model_dump()), "written": [*written]}
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


class ExecuteRequest(RunRequest):
    """`pearl execute --out`."""

    COMMAND = "execute"
    READS = ("tasks", "data")
    ARGUMENTS = "plan_and_documents"
    WRITES = ("out", "trace", "rows_out")

    plan_and_documents: tuple[Text, ...] = ()
    together: bool = False
    sources: tuple[Text, ...] = ()
    tasks: Text | None = None
    set: tuple[Text, ...] = ()
    # Runs to an address are not in a store: an untrusted store must not decide where rows are sent.
    out: Annotated[Text, AfterValidator(_local)]
    trace: Text | None = None
    rows_out: Text | None = None
    verbose: bool = False

    @property
    def worked_on(self) -> dict[str, str]:
        """Identity of the input: names of the plan and documents, digests of tasks and data."""
        inputs = {"arguments": "\n".join(self.plan_and_documents)}
        if self.set:
            inputs["set"] = "\n".join(self.set)
        if self.tasks:
            inputs["tasks"] = _content(self.tasks)
        if self.data:
            asked = self.model_dump(include={"split", "columns", "subset", "limit"})
            inputs |= {"data": _content(self.data), "asked": json.dumps(asked)}
        return inputs


class ExtractRequest(RunRequest):
    """`pearl extract --out`."""

    COMMAND = "extract"
    READS = ()
    ARGUMENTS = "documents"

    # Stored as JSON Schema or short form, so that the run can be resumed without the code or file
    # of its schema.
    fields: Annotated[Text, AfterValidator(_schema)]
    documents: tuple[Text, ...] = ()
    out: Text
    trace: Text | None = None

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


class EvalRequest(RunRequest):
    """`pearl eval`."""

    COMMAND = "eval"
    READS = ("data", "results")

    methods: Text
    results: Text | None = None
    scorer: Text | None = None
    seeds: PositiveInt
    temperature: NonNegativeFloat | None = None
    token_budget: Tokens | None = None
    part_tokens: Tokens
    by_document: bool = False
    trace: Text | None = None


class MineRequest(RunRequest):
    """`pearl mine`."""

    COMMAND = "mine"
    MAY_READ = (*RunRequest.MAY_READ, "seed_library")
    WRITES = ("out",)

    seed_library: Text
    again: bool = False


class FewshotRequest(RunRequest):
    """`pearl refine fewshot`."""

    COMMAND = "fewshot"
    READS = ("data", "held_out")

    out: Text
    retries: NonNegativeInt
    max_examples: PositiveInt
    held_out: Text | None = None
    trace: Text | None = None

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
            help=f"resume it there: pearl.Session(...).resume('{info.id}')",
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
        return kind.model_validate(work)
    except ValidationError as error:
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
