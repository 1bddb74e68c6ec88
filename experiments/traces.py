"""Published traces → rows, and questions of QuALITY with the plans that were published for them.

Whatever is wrong with a row is said with its file and line.

The traces number the questions of the whole development file and do not repeat them. Of a selection of that
file the numbers are lost, so a question and a plan belong together if their words agree: the right
option has the same letter, neither agrees better with another one, and the harmonic mean of two shares
is at least `LIKE`: that of the question's words found in the plan, and that of the words of the plan's
strings found in the question. A word weighs the more, the fewer plans have it.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, cast

import click
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from pearl.data.domains import Source, read_samples
from pearl.data.samples import Sample
from pearl.documents.passages import terms
from pearl.dsl.nodes import ListLiteral, Plan, Step, String
from pearl.dsl.parser import parse
from pearl.errors import DataError, PlanSyntaxError

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


LIKE = 0.6

LETTERS = "ABCD"


@dataclass(frozen=True, slots=True)
class Planned:
    """A question with plans that were written for it."""

    question: str
    group: str
    plans: tuple[Plan, ...]


def strings(step: Step) -> list[str]:
    """The texts among the arguments of a step, those of lists included."""
    found: list[str] = []
    for argument in step.arguments:
        items = argument.items if isinstance(argument, ListLiteral) else (argument,)
        found += [item.value for item in items if isinstance(item, String)]
    return found


def published(data: Path, records: Iterable[Record]) -> list[Planned]:
    """The questions of a file of QuALITY that have published plans, in its order."""
    samples = [row for row in read_samples("quality", Source(str(data))) if isinstance(row, Sample)]
    plans: dict[str, list[Plan]] = defaultdict(list)
    gold: dict[str, str] = {}
    for record in records:
        if "plan" not in record.data:
            continue  # a baseline, not a plan
        row, name = typed(PlanRow, record), str(record.data.get("qid"))
        gold[name] = str(record.data.get("gold"))
        try:
            plans[name].append(parse(row.plan))
        except PlanSyntaxError:
            continue
    found = _by_number(samples, gold) or _by_words(samples, plans, gold)
    planned = [
        Planned(samples[i].question, samples[i].document_name, tuple(plans[name]))
        for i, name in sorted(found.items())
        if plans[name]
    ]
    if not planned:
        raise DataError(
            "no question has a published plan", path=data, help="give QuALITY's dev file"
        )
    return planned


def _letter(sample: Sample) -> str:
    return "" if sample.gold is None else LETTERS[sample.gold]


def _by_number(samples: list[Sample], gold: dict[str, str]) -> dict[int, str]:
    """Question → number, of the whole file, in which all right letters are those of the traces; else none."""
    numbers = {int(name): name for name in gold if name.isdecimal()}
    is_whole = all(
        i < len(samples) and _letter(samples[i]) == gold[name] for i, name in numbers.items()
    )
    return numbers if is_whole else {}


def _by_words(
    samples: list[Sample], plans: dict[str, list[Plan]], gold: dict[str, str]
) -> dict[int, str]:
    """Question → number of the plans that agree best with it, and with no other question better."""
    own = {name: _words(each, with_explanations=False) for name, each in plans.items()}
    said = {name: _words(each, with_explanations=True) for name, each in plans.items()}
    n_having = Counter(word for words in said.values() for word in words)

    def weight(words: set[str]) -> float:
        return sum(math.log((len(said) + 1) / (n_having[word] + 0.5)) for word in words)

    asked = [set(terms(sample.question, drop_stop_words=True)) for sample in samples]
    best: dict[int, tuple[float, str]] = {}
    best_of: dict[str, tuple[float, int]] = {}
    for i, words in enumerate(asked):
        for name in plans:
            if gold[name] != _letter(samples[i]) or not words or not own[name]:
                continue
            told = weight(words & said[name]) / weight(words)
            meant = weight(words & own[name]) / weight(own[name])
            like = 2 * told * meant / (told + meant) if told and meant else 0.0
            if like >= LIKE:
                best[i] = max(best.get(i, (0.0, "")), (like, name))
                best_of[name] = max(best_of.get(name, (0.0, 0)), (like, i))
    return {i: name for i, (_, name) in best.items() if best_of[name][1] == i}


def _words(plans: list[Plan], *, with_explanations: bool) -> set[str]:
    texts = [
        text
        for plan in plans
        for step in plan.steps
        for text in (*strings(step), step.explanation if with_explanations else "")
    ]
    return set(terms(" ".join(texts), drop_stop_words=True))
