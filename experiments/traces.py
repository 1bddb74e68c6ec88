"""Published traces → rows. Whatever is wrong with a row is said with its file and line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, cast

import click
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from pearl.errors import DataError

Command = TypeVar("Command", bound=Callable[..., Any])


def trace_files(command: Command) -> Command:
    """Options of a command: `--traces FILE...` gives it the files as `traces`."""

    @wraps(command)
    def given(*, traces: tuple[Path, ...], more_traces: tuple[Path, ...], **options: Any) -> Any:
        return command(traces=(*traces, *more_traces), **options)

    # click has no option of any number of values: those after the first are arguments.
    file = click.Path(path_type=Path, exists=True, dir_okay=False)
    named = click.option("--traces", multiple=True, type=file, help="Published plans and answers.")
    return cast("Command", named(click.argument("more_traces", nargs=-1, type=file)(given)))


class Record(NamedTuple):
    """One line of a trace file, numbered from 1."""

    path: Path
    line: int
    data: dict[str, Any]

    def error(self, message: str) -> DataError:
        """What to raise about this line."""
        return DataError(
            message,
            path=self.path,
            line=self.line,
            help="a row is a plan (run, split, qid, plan, step_outputs, open_answer, map_answer, "
            "gold) or a baseline's answer (method, split, qid, answer, gold)",
        )


class PlanRow(BaseModel):
    """What the replay needs of a row."""

    plan: str
    step_outputs: dict[str, str] | None = None
    open_answer: str | None = None
    qid: str | int | None = None


class AnswerRow(BaseModel):
    """What the table needs of a row, be it a plan's or a baseline's."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    method: str = Field(validation_alias=AliasChoices("method", "run"))
    split: str
    qid: str
    answer: str | None = Field(validation_alias=AliasChoices("answer", "map_answer"))
    gold: Literal["A", "B", "C", "D"]


Row = TypeVar("Row", bound=BaseModel)


def records(paths: Iterable[Path]) -> Iterator[Record]:
    """Every record of the files, blank lines aside."""
    for path in paths:
        try:
            lines = path.read_bytes().split(b"\n")
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}", path=path) from None
        for number, line in enumerate(lines, start=1):
            if line.strip():
                try:
                    data = json.loads(line)
                except ValueError as error:
                    raise Record(path, number, {}).error(f"no JSON: {error}") from None
                record = Record(path, number, data)
                if not isinstance(data, dict):
                    raise record.error("no JSON object")
                yield record


def typed(row: type[Row], record: Record) -> Row:
    """The record as a row."""
    try:
        return row.model_validate(record.data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise record.error(f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}") from None
