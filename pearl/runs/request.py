"""What a run of `pearl execute` was asked for, as data that a store keeps; checked when it is read.

A store is a file that anybody may have made: of what stands in it nothing is run as a command, and
the request is read field by field.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from time import time_ns
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PlainValidator,
    PositiveFloat,
    PositiveInt,
    ValidationError,
)

from pearl import plugins
from pearl.data.journal import Frozen, reason
from pearl.documents.digest import file_sha256
from pearl.errors import StoreError, UsageError
from pearl.errors.addresses import LEFT_OUT, redacted
from pearl.llm.backends import ModelSettings, address_of
from pearl.llm.prices import Price
from pearl.plugins.files import not_alone
from pearl.retrieval import DEFAULT_RANKER
from pearl.runs.store import FILE, RunInfo, RunSpec

__all__ = ["RunRequest", "refuse_others", "request_of"]


def _text(value: object) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError("no text")
    return value


Text = Annotated[str, PlainValidator(_text)]
"""A text that may be the name of any file: pydantic's own takes none that is not Unicode."""


def _executor(value: object) -> str:
    if not isinstance(value, str) or not plugins.is_there("pearl.runs.executors", value):
        raise ValueError("no executor")
    return value


ExecutorName = Annotated[str, PlainValidator(_executor)]

Tokens = Annotated[int, Field(ge=256)]


class RunRequest(Frozen):
    """The options of one `pearl execute --out`, under their names there."""

    plan_and_documents: tuple[Text, ...] = ()
    tasks: Text | None = None
    data: Text | None = None
    split: Text | None = None
    columns: tuple[Text, ...] = ()
    subset: Text | None = None
    limit: PositiveInt | None = None
    longest: PositiveInt | None = None
    out: Text
    trace: Text | None = None
    verbose: bool = False
    as_json: bool = False
    model: Text
    base_url: Text | None = None
    """Where the server was, be it named or not, without a password; None for OpenAI's own or for none."""
    domain: Text
    library: Text | None = None
    examples: Text | None = None
    nearest: PositiveInt | None = None
    context: Text
    ranker: Text = DEFAULT_RANKER
    window: Tokens | None = None
    max_output_tokens: PositiveInt | None = None
    max_repairs: NonNegativeInt
    max_steps: PositiveInt
    fallback: Literal["direct"] | None = None
    concurrency: PositiveInt
    timeout_s: Annotated[float, Field(ge=0.1)]
    constrain: Literal["auto", "grammar", "json", "off"]
    server: Text | None = None
    prefix: Literal["auto", "off"]
    requests_per_minute: PositiveFloat | None = None
    tokens_per_minute: PositiveFloat | None = None
    max_cost: NonNegativeFloat | None = None
    max_tokens: NonNegativeInt | None = None
    max_time: PositiveFloat | None = None
    max_calls: NonNegativeInt | None = None
    price: Price | None = None
    prices: Text | None = None
    seconds_per_call: PositiveFloat | None = None
    executor: ExecutorName
    max_errors: NonNegativeInt | None = None
    shard: Text | None = None

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> RunRequest:
        """The work of a command line.

        Args:
            params: Of the context of `pearl execute`.

        Raises:
            UsageError: A value makes no sense, as a limit that is no number.
        """
        known = {name: params[name] for name in cls.model_fields if name in params}
        settings = ModelSettings(known["base_url"])
        try:
            address = redacted(address_of(known["model"], settings) or "", LEFT_OUT)
            return cls(**{**known, "base_url": address or None})
        except ValidationError as error:
            raise UsageError(f"--{reason(error).replace('_', '-')}") from None

    def spec(self, command: Iterable[str]) -> RunSpec:
        """What the run is, but for what of its `Pearl` decides the results: `Session` adds that.

        Args:
            command: The arguments of `pearl`, to be shown.
        """
        inputs = {"arguments": "\n".join(self.plan_and_documents)}
        if self.tasks:
            inputs["tasks"] = _content(self.tasks)
        if self.data:
            asked = self.model_dump(include={"split", "columns", "subset", "limit", "longest"})
            inputs |= {"data": _content(self.data), "asked": json.dumps(asked)}
        shown = tuple(redacted(word, LEFT_OUT) for word in command)
        return RunSpec(shown, {"command": "execute"}, inputs, work=self.model_dump())

    @property
    def inputs(self) -> Iterator[str]:
        """Every file that is read, as it was named; of a model its file."""
        yield from self.plan_and_documents
        named = [self.tasks, self.data, self.library, self.examples, self.prices]
        if address_of(self.model) is None:
            named.append(self.model.partition(":")[2])
        yield from (
            name for name in named if name and (name in (self.tasks, self.data) or _is(name))
        )

    @property
    def outputs(self) -> Iterator[str]:
        """Every file that is written, as it was named."""
        yield from (name for name in (self.out, self.trace) if name)


def request_of(info: RunInfo) -> RunRequest:
    """What a run of a store was asked for, every field checked.

    Raises:
        StoreError: It is not there, or makes no sense.
    """
    again = f"give its command itself, as pearl runs show {info.id} has it"
    if info.settings.get("command") == "session":
        raise StoreError(
            f"run {info.id} was begun in Python",
            help=f"go on with it there: pearl.Session(...).resume('{info.id}')",
        )
    if not info.work:
        raise StoreError(f"of run {info.id} no work is kept that can be resumed", help=again)
    try:
        return RunRequest.model_validate(info.work)
    except ValidationError as error:
        raise StoreError(
            f"the work of run {info.id} cannot be read: {reason(error)}", help=again
        ) from None


def refuse_others(folder: Path) -> None:
    """Make sure that a store is the user's alone.

    Raises:
        StoreError: Another user may have written what is in it.
    """
    for path in (folder, *(folder / f"{FILE}{end}" for end in ("", "-wal", "-shm"))):
        why = not_alone(path) if path.exists() else ""
        if why:
            raise StoreError(
                f"a run of this store is not resumed: {why}",
                path=path,
                help="take over what you trust into a store of yours: pearl runs merge",
            )


def _content(path: str) -> str:
    """What tells a file from others: its SHA-256; of a folder, or what is none of these, the path.

    What can be read but once is never the same again.
    """
    if Path(path).is_fifo():
        return f"{path} {time_ns()}"
    if not Path(path).is_file():  # a device may have no end
        return path
    try:
        return file_sha256(Path(path))
    except OSError:
        return path


def _is(name: str) -> bool:
    """Whether it is a file or folder, not the name of something that comes with pearl."""
    return Path(name).exists()
