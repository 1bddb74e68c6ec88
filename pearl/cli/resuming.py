"""What a run of `pearl execute` was asked for, kept as data; checked and shown before it goes on.

A store is a file that anybody may have made. Of what stands in it nothing is run as a command: the
work is read field by field, and neither its server nor what it reads and writes counts as named by the
user before the user has seen it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click
from click.core import ParameterSource
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
from pearl.cli.escaping import visible
from pearl.cli.options import FOUND, warn_ignored_settings
from pearl.data.journal import Frozen, reason
from pearl.errors import DataError, ModelError, StoreError, UsageError
from pearl.errors.addresses import LEFT_OUT, redacted
from pearl.llm.backends import (
    ModelSettings,
    address_of,
    create_model,
    default_key_variable,
)
from pearl.llm.prices import Price
from pearl.retrieval import DEFAULT_RANKER

if TYPE_CHECKING:
    from pearl.runs.store import RunInfo

__all__ = ["ExecuteWork", "agreed", "params_of", "work_of"]


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

ALLOWED = ("force", "allow_outside")
"""Options of `pearl execute` that no store says for the user."""

FIXED = (
    "plan_and_documents", "tasks", "data", "split", "columns", "subset", "limit", "longest", "shard",
    "fresh", "run",
)  # fmt: skip
"""Options of `pearl execute` that would make it another run."""

N_SHOWN = 8
"""Files that are named one by one, where they are in the folder of the run."""

MAX_LINE = 100_000_000
"""Bytes of a row that are read to see what it is."""


class ExecuteWork(Frozen):
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
    def of(cls, params: Mapping[str, Any]) -> ExecuteWork:
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


def work_of(info: RunInfo) -> ExecuteWork:
    """What a run of a store was asked for, every field checked.

    Raises:
        StoreError: It is not there, or makes no sense.
    """
    again = f"give its command itself, as pearl runs show {info.id} has it"
    if not info.work:
        raise StoreError(f"of run {info.id} no work is kept that can be resumed", help=again)
    try:
        return ExecuteWork.model_validate(info.work)
    except ValidationError as error:
        raise StoreError(
            f"the work of run {info.id} cannot be read: {reason(error)}", help=again
        ) from None


def params_of(
    ctx: click.Context, work: ExecuteWork, options: tuple[str, ...], out: str | None
) -> tuple[dict[str, Any], set[str]]:
    """What `pearl execute` is called with: the work, and what the user says now in its place.

    Args:
        ctx: Of `pearl runs resume`.
        work: As the store has it.
        options: Of `pearl execute`, as the user gives them now.
        out: Where the user wants the rows; None for where they were.

    Returns:
        The parameters, and the names of those that the user says now.

    Raises:
        UsageError: An option would make it another run, or the user's settings and the store name
            different servers.
    """
    from pearl.cli.commands.execute import command as execute

    own = (ctx.find_root().default_map or {}).get("execute") or {}
    of_user = {
        name: own[name]
        for name in ("base_url", "api_key_env")
        if name in own and name not in ctx.meta.get(FOUND, ())
    }
    words = ["--model", work.model, *options]  # of an option that is there twice the last counts
    said = execute.make_context("execute", words, parent=ctx, default_map=of_user)

    flags = {
        name
        for name in said.params
        if said.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    if fixed := [name for name in FIXED if name in flags and said.params[name]]:
        raise UsageError(
            f"{fixed[0].replace('_', ' ')}: that would be another run",
            help="give the command itself; 'pearl runs resume' takes limits, rates and places",
        )
    params = {**dict(work), **{name: said.params[name] for name in flags}}
    if out is not None:
        params["out"] = str(Path(out).absolute())
        flags.add("out")
    address = _server(params["model"], work.base_url, said, is_flag="base_url" in flags)
    is_named = address == address_of(params["model"], ModelSettings(said.params["base_url"]))
    params["base_url"] = address or None
    params["api_key_env"] = _key(params, said.params["api_key_env"], is_named=is_named)
    not_kept = {name: said.params[name] for name in ("dry_run", *ALLOWED)}
    return {**params, **not_kept}, flags


def _server(model: str, kept: str | None, said: click.Context, *, is_flag: bool) -> str | None:
    """Where the run goes on: where the user says, or else where it was.

    Raises:
        UsageError: The user's settings say another place than the store.
    """
    mine = address_of(model, ModelSettings(said.params["base_url"]))
    if is_flag or mine is None or redacted(mine, LEFT_OUT) == (kept or ""):
        return mine
    if mine:
        raise UsageError(
            f"the run was sent to {_place(model, kept)}, and your settings say {_place(model, mine)}",
            help="name the one you want: --base-url URL",
        )
    return kept


def _place(model: str, url: str | None) -> str:
    """A server as messages show it."""
    from pearl.llm.backends.openai.endpoint import Endpoint

    return Endpoint(url, model, "").shown if url else f"the usual server of {model}"


def _key(params: Mapping[str, Any], said: str | None, *, is_named: bool) -> str | None:
    """Which variable's key is sent to a server that is named by the user, or only by the store."""
    if said is not None or is_named or not params["base_url"]:
        return said
    return default_key_variable(params["model"], params["base_url"])


def agreed(info: RunInfo, params: Mapping[str, Any], said: Container[str], *, is_yes: bool) -> bool:
    """Show on stderr what a run will do, in the folder it is resumed in, and have it confirmed.

    Args:
        info: The run.
        params: What `pearl execute` will be called with.
        said: Names of those parameters that the user says now.
        is_yes: Whether the user has confirmed it beforehand.

    Raises:
        UsageError: Nobody is there to confirm it.
        DataError: It would write over a file that no run has written.
    """
    work = ExecuteWork.of(params)
    click.echo(f"pearl: run {info.id} goes on in {visible(str(Path.cwd()))}", err=True)
    click.echo(f"  model   {visible(_model(params))}", err=True)
    warn_ignored_settings(params)
    click.echo(f"  reads   {_listed(list(work.inputs))}", err=True)
    click.echo(f"  writes  {_listed(list(work.outputs))}", err=True)
    for option, name in (("out", work.out), ("trace", work.trace)):
        if name and option not in said:
            _keep_others(name)
    if is_yes:
        return True
    if not sys.stdin.isatty():
        raise UsageError(
            "what a store says is done once you confirm it, and there is no terminal to ask",
            help="read what it will do, above; --yes confirms it",
        )
    return click.confirm("go on?", err=True)


def _model(params: Mapping[str, Any]) -> str:
    model = str(params["model"])
    names = ("base_url", "timeout_s", "window", "server", "api_key_env")
    settings = ModelSettings(**{name: params[name] for name in names})
    if address_of(model, settings) is None:
        return model
    try:
        return create_model(model, settings).notice
    except ModelError as error:  # which the run itself will end with
        return error.message


def _keep_others(name: str) -> None:
    """Make sure that a file which a store names is none, or one that a run has written.

    Raises:
        DataError: It is another.
    """
    path = Path(name)
    if path.exists() and not (path.is_file() and _is_of_a_run(path)):
        raise DataError(
            "is there, and no results of a run: it is not written over because a store says so",
            path=visible(name),
            help="name a file yourself: -o rows.jsonl, --trace FILE",
        )


def _is_of_a_run(path: Path) -> bool:
    """Whether a file is empty, or begins as rows or traces do."""
    with path.open("rb") as file:
        first = file.readline(MAX_LINE)
    try:
        row = json.loads(first or b'{"event": ""}')
    except ValueError:
        return False
    return isinstance(row, dict) and ({"id", "status"} <= row.keys() or "event" in row)


def _is(name: str) -> bool:
    """Whether it is a file or folder, not the name of something that comes with pearl."""
    return Path(name).exists()


def _listed(names: list[str]) -> str:
    """Paths as people can judge them: those outside of this folder first and in full."""
    here = Path.cwd().resolve()
    whole = {name: Path(name).resolve() for name in dict.fromkeys(names)}
    outside = [str(path) for path in whole.values() if not path.is_relative_to(here)]
    inside = [name for name, path in whole.items() if path.is_relative_to(here)]
    shown = [*outside, *inside[: max(0, N_SHOWN - len(outside))]]
    more = len(whole) - len(shown)
    text = ", ".join(map(visible, shown)) or "nothing"
    return f"{text} and {more:,} more in this folder" if more else text
