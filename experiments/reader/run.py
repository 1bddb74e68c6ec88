"""How well a model answers the 200 questions: a bare prompt, a given plan, or `pearl ask` whole.

    python -m experiments.reader.run bare|execute|ask --model MODEL [--half dev] [--out FILE]
        [--limit N] [--questions ID,ID]
    python -m experiments.reader.run plan --model MODEL [--nearest N] [--constrain json] [--out PLANS]
    python -m experiments.reader.run ask --model MODEL --plans PLANS [--out FILE]
    python -m experiments.reader.run cases --kind rows --model MODEL [--out FILE] [--limit N]
    python -m experiments.reader.run compare FIRST SECOND

`cases` are forty each of what else a model is asked: to choose and label rows, to query a table, to take
fields, and to compose an answer from given results (the steps before are answered by the case itself).

`plan` writes the plans of `ask` alone, one after the other, so that a local model reads their long prompt once.

A file of results is continued: questions in it are not asked again. Intervals are Wilson's, of 95 %; the
test of two files is McNemar's exact one, over the questions in both.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import click

from experiments.reader.questions import (
    CASES,
    HALVES,
    KINDS,
    Question,
    read_cases,
    read_questions,
    shared_questions,
    text_of,
)
from experiments.reader.rules import has, normal, outcome
from pearl import Answer, Document, Pearl, PearlError
from pearl.dsl.signatures import NOTHING
from pearl.errors import PlanningError
from pearl.evals.stats import mcnemar
from pearl.llm import ChooseTask, Completion, Message, Model, Request
from pearl.llm.client import Client, ClientSettings
from pearl.llm.middleware.wrappers import Wrapper
from pearl.runs.reviewing import wilson
from pearl.trace import PlanAttempted, Trace

OUTCOMES = ("right", "wrong", "not found", "undecided", "failed")

Result = dict[str, Any]
Mode = Callable[[Client, Question], Awaitable[Result]]
Constrain = Literal["auto", "json", "off"]


async def bare(client: Client, question: Question) -> Result:
    """The text, the question, and one sentence, without anything of PEARL's."""
    parts = [text_of(question["text"]), question["question"]]
    parts.append("Answer in a few words, from the text above only.")
    task = ChooseTask(question["question"], ())
    done = await client.complete(Request((Message("user", "\n\n".join(parts)),), task))
    return {"answer": done.text, **_tokens(done.usage)}


async def execute(client: Client, question: Question) -> Result:
    """The given plan."""
    pearl = Pearl(client, domain=question["domain"])
    return _told(await pearl.execute(question["plan"], _document(question)))


async def ask(client: Client, question: Question) -> Result:
    """A plan of the model, and its answer."""
    pearl, document = Pearl(client, domain=question["domain"]), _document(question)
    if "written" not in question:
        return _told(await pearl.ask(question["question"], document))
    if question["written"] is None:
        return _told(await pearl.answer(question["question"], document))
    return _told(await pearl.execute(question["written"], document))


async def plan(client: Client, question: Question) -> Result:
    """A plan of the model alone."""
    pearl, trace = Pearl(client, domain=question["domain"], nearest=question["nearest"]), Trace()
    try:
        written = str(await pearl.plan(question["question"], trace=trace))
    except PlanningError:
        written = None
    rounds = [each for each in trace if isinstance(each, PlanAttempted)]
    return {
        "plan": written,
        "answer": written,
        "replies": [each.reply for each in rounds],
        "diagnostics": [each.diagnostics for each in rounds],
        **_tokens(trace.usage),
    }


MODES: dict[str, Mode] = {"bare": bare, "execute": execute, "ask": ask, "plan": plan}


async def case(client: Client, question: Question) -> Result:
    """The plan of a case, with what its rows and fields became."""
    answer = await Pearl(client).execute(question["plan"], _document(question))
    rows = {row.text: row.fields.get("label") for row in answer.row_evidence if row.is_decided}
    fields = {name: [each.state, each.value] for name, each in answer.fields.items()}
    told = {**_told(answer), "rows": rows, "fields": fields}
    if question["kind"] == "composition" and not answer.composed:
        told["status"] = "undecided"  # the results are shown one below the other
    return told


class Given(Wrapper):
    """A model for which the results of the steps of a case are given; the rest it is asked."""

    results: Sequence[Mapping[str, Any]] = ()

    async def complete(self, request: Request) -> Completion:
        """Reply with the result of the step that is asked for, or ask the model."""
        name, _, number = str(getattr(request.task, "output", "")).partition("_")
        if name != "part" or not self.results:
            return await self._model.complete(request)
        result = self.results[int(number) - 1]
        if result["reply"] is None:
            return Completion(NOTHING, self.name)
        return Completion(f"{result['reply']}\n> {result['quote']}", self.name)


def _document(question: Question) -> Document:
    name = question.get("text", "case")
    is_table = question["kind"] == "tables"
    text = question["document"] if "document" in question else text_of(name)
    return Document(text, f"{name}.{'md' if is_table else 'txt'}")


def _told(answer: Answer) -> Result:
    return {
        "answer": None if answer.status == "nothing_found" else answer.unlabelled,
        "status": answer.status,
        "quotes": len(answer.evidence) + len(answer.row_evidence),
        "untrue": [each.text for each in answer.unverified],
        "plan": answer.plan,
        **_tokens(answer.usage),
    }


def _tokens(usage: Any) -> Result:
    return {"n_input_tokens": usage.n_input_tokens, "n_output_tokens": usage.n_output_tokens}


def processor_seconds() -> float:
    """Of this process and of its children, in one of which a local model runs; on Linux."""
    ended = os.times()
    total, waiting = sum(ended[:4]), [os.getpid()]
    while waiting:
        process = Path(f"/proc/{waiting.pop()}")
        with suppress(OSError):
            if process.name != str(os.getpid()):
                fields = (process / "stat").read_text().rpartition(")")[2].split()
                total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            for task in (process / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
    return total


async def ask_all(
    mode: str,
    model: str | Model,
    asked: Sequence[Question],
    out: Path | None = None,
    constrain: Constrain = "auto",
) -> list[Result]:
    """The results of the questions; they are appended to the file."""
    done = []
    settings = ClientSettings(model, constrain=constrain)
    given = Given(settings.create_model())
    client = Client(settings, model=given)
    for question in asked:
        given.results = question.get("results", ())
        began, began_cpu = time.perf_counter(), processor_seconds()
        try:
            result = await (MODES.get(mode) or case)(client, question)
        except PearlError as error:
            result = {"answer": None, "error": str(error)}
        result |= {
            "id": question["id"],
            "kind": question["kind"],
            "seconds": round(time.perf_counter() - began, 3),
            "cpu_seconds": round(processor_seconds() - began_cpu, 3),
        }
        done.append(result)
        if out is not None:
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result, ensure_ascii=False) + "\n")
    await client.aclose()
    return done


def read_results(path: Path) -> list[Result]:
    """The results in a file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def judged(result: Result, question: Question) -> str:
    """The outcome of a result."""
    if "error" in result:
        return "failed"
    if "diagnostics" in result:  # a plan alone
        return "right" if result["plan"] is not None else "wrong"
    if result.get("status") in ("undecided", "refused"):
        return "undecided"
    if has_parts(question):
        right, n = parts_right(result, question)
        return "right" if right == n else "wrong"
    return outcome(result["answer"], question)


def has_parts(question: Question) -> bool:
    """Whether rows or fields are judged one by one."""
    return bool(question["rule"].keys() & {"chosen", "labels", "fields"})


def parts_right(result: Result, question: Question) -> tuple[int, int]:
    """How many rows or fields of a case are right, and how many there are."""
    rule = question["rule"]
    if "fields" in rule:
        wanted = rule["fields"]
        found = result.get("fields", {})
        return sum(_is_field(found.get(name), words) for name, words in wanted.items()), len(wanted)
    items, rows = question["document"].splitlines(), result.get("rows", {})
    if "labels" in rule:
        return sum(rows.get(item) == label for item, label in rule["labels"].items()), len(items)
    if "error" in result or result.get("status") == "undecided":
        return 0, len(items)
    return sum((item in rows) == (item in rule["chosen"]) for item in items), len(items)


def _is_field(found: Sequence[Any] | None, words: Sequence[str] | None) -> bool:
    state, value = found or ("", None)
    if words is None:
        return state == "not_stated"
    return state == "found" and any(has(normal(str(value)), word) for word in words)


def report(results: Sequence[Result], asked: Sequence[Question]) -> list[str]:
    """The figures, of each kind and of all."""
    by_id = {question["id"]: question for question in asked}
    rows = [(each, judged(each, by_id[each["id"]])) for each in results if each["id"] in by_id]
    names = ("right", "", "wrong", "not found", "undecided", "failed", "quotes true")
    lines = [f"{'':12}{'n':>4}" + "".join(f"{name:>12}" for name in names)]
    for kind in (*KINDS, *(kind for kind in CASES if kind not in KINDS), "all"):
        own = [(each, found) for each, found in rows if kind in (each["kind"], "all")]
        if not own:
            continue
        k = [sum(found == name for _, found in own) for name in OUTCOMES]
        low, high = wilson(k[0], len(own))
        answers = [each for each, found in own if found in ("right", "wrong") and "quotes" in each]
        answers = [each for each in answers if each["answer"] is not None]
        true = sum(each["quotes"] > 0 and not each["untrue"] for each in answers)
        cells = (k[0], f"{low:.0%}-{high:.0%}", *k[1:], f"{true}/{len(answers)}")
        lines.append(f"{kind:12}{len(own):4}" + "".join(f"{cell:>12}" for cell in cells))
        asked_for = [(each, by_id[each["id"]]) for each, _ in own]
        if parts := [parts_right(*pair) for pair in asked_for if has_parts(pair[1])]:
            right, n = (sum(each) for each in zip(*parts, strict=True))
            lines[-1] += f"   {right} of {n} parts right"
    means = (
        sum(each.get(key, 0) for each, _ in rows) / max(len(rows), 1)
        for key in ("n_input_tokens", "n_output_tokens", "seconds", "cpu_seconds")
    )
    told = "a question: {:.0f} tokens in, {:.0f} out, {:.1f} s, {:.1f} s of the processor"
    lines.append(told.format(*means))
    return lines


@click.group()
def main() -> None:
    """Ask the 200 questions."""


RESULTS = click.Path(exists=True, dir_okay=False, path_type=Path)
MODEL = click.option(
    "--model", required=True, help="As of `pearl ask`: llamacpp:FILE, openai:NAME, ..."
)
OUT = click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="To be continued."
)
LIMIT = click.option("--limit", type=click.IntRange(min=1), help="The first N questions only.")


def _run(
    mode: str,
    model: str,
    asked: Sequence[Question],
    out: Path | None,
    constrain: Constrain = "auto",
) -> None:
    done = read_results(out) if out is not None and out.exists() else []
    known = {each["id"] for each in done}
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
    try:
        new = [question for question in asked if question["id"] not in known]
        done += asyncio.run(ask_all(mode, model, new, out, constrain))
    except PearlError as error:
        raise click.ClickException(str(error)) from error
    click.echo("\n".join(report(done, asked)))


def _mode(name: str) -> None:
    @main.command(name, help=MODES[name].__doc__)
    @MODEL
    @click.option("--half", type=click.Choice([*HALVES, "both"]), default="dev", show_default=True)
    @OUT
    @LIMIT
    @click.option("--questions", help="Their ids, with commas.")
    @click.option("--shared", is_flag=True, help="The questions about shared data instead.")
    @click.option("--nearest", type=int, help="Of `plan`: as of `pearl plan`.")
    @click.option("--constrain", type=click.Choice(["auto", "json", "off"]), default="auto")
    @click.option("--plans", type=RESULTS, help="Of `ask`: what `plan` wrote.")
    def command(
        model: str,
        half: str,
        out: Path | None,
        limit: int | None,
        questions: str | None,
        shared: bool,
        nearest: int | None,
        constrain: Constrain,
        plans: Path | None,
    ) -> None:
        of_half = None if half == "both" else half
        asked, n_missing = shared_questions(of_half) if shared else (read_questions(of_half), 0)
        if n_missing:
            click.echo(
                f"{n_missing} questions are left out: their shared data is not here", err=True
            )
        wanted = questions.split(",") if questions else [each["id"] for each in asked]
        chosen = [each for each in asked if each["id"] in wanted][:limit]
        if name == "plan":
            chosen = [{**each, "nearest": nearest} for each in chosen]
            chosen.sort(key=lambda each: each["domain"])  # they share their prompt
        if plans is not None:
            written = {each["id"]: each["plan"] for each in read_results(plans)}
            chosen = [{**each, "written": written[each["id"]]} for each in chosen]
        _run(name, model, chosen, out, constrain)


for _name in MODES:
    _mode(_name)


@main.command()
@click.option("--kind", type=click.Choice(CASES), required=True)
@MODEL
@OUT
@LIMIT
def cases(kind: str, model: str, out: Path | None, limit: int | None) -> None:
    """Forty cases of one other kind of request."""
    _run("case", model, read_cases(kind)[:limit], out)


@main.command()
@click.argument("first", type=RESULTS)
@click.argument("second", type=RESULTS)
def compare(first: Path, second: Path) -> None:
    """Compare two files of results, question by question."""
    by_id = {question["id"]: question for question in read_questions() + shared_questions()[0]}
    right = [
        {each["id"]: judged(each, by_id[each["id"]]) == "right" for each in read_results(path)}
        for path in (first, second)
    ]
    both = [id for id in right[0] if id in right[1]]
    test = mcnemar([right[0][id] for id in both], [right[1][id] for id in both])
    click.echo(
        f"{len(both)} questions in both: {first.name} {sum(right[0][id] for id in both)} right, "
        f"{second.name} {sum(right[1][id] for id in both)}; only the first {test.n_first_only}, "
        f"only the second {test.n_second_only}; p = {test.p_value:.4f}"
    )
    for id in both:
        if right[0][id] != right[1][id]:
            click.echo(f"only {(first if right[0][id] else second).name}: {id}")


if __name__ == "__main__":
    main()
