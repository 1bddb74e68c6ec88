"""Does looking again find a figure under a synonym, a lower rank or a neighbouring year?

Each case is a corpus of reports, made here, in which one figure is asked for by `FIND_FIGURE`, over the corpus or over
the passages of a `RETRIEVE`:

- `rank`: paragraphs that only mention the figure match the query better than the one that states it,
- `synonym`: it is stated under another name, by which nothing asks for it,
- `comparison`: the report of its year leaves it out, the one of the next year has it beside its own,
- `neighbour`: it is stated for the year before or after only: to be found, and told as such.

The reader is honest: it knows which names stand for one thing, and answers only what it is shown of the company and
the year. Run it with `python experiments/retrieval/looking.py`.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from dataclasses import dataclass

from pearl import Pearl
from pearl.actions.library import read_library
from pearl.documents.dates import years_in
from pearl.documents.tokens import Counter
from pearl.interpreter.answer import Answer
from pearl.llm import ActionTask, Request
from pearl.llm.backends.scripted import Scripted
from pearl.retrieval.corpus import CorpusDocument
from pearl.retrieval.index import Index, IndexedDocument

NAMES = {
    "net sales": ("turnover", "revenue from customers"),
    "net income": ("profit for the year", "surplus after tax"),
    "long-term debt": ("non-current borrowings", "bonds and notes due later"),
    "capital expenditure": ("additions to plant and equipment", "outlays for fixed assets"),
    "research costs": ("development spending", "laboratory expenses"),
}
COMPANIES = ("Acme", "Borel", "Cintra", "Dorset", "Elmwood")
KINDS = ("rank", "synonym", "comparison", "neighbour")
WINDOW, REPLY_TOKENS = 2_400, 200


@dataclass(frozen=True)
class Case:
    """A corpus, a plan that asks for a figure, and what is right."""

    kind: str
    company: str
    name: str
    year: int
    plan: str
    document: IndexedDocument
    values: dict[int, str]

    @property
    def is_other_year(self) -> bool:
        """Whether it is stated for other years only."""
        return self.year not in self.values


def cases(n: int = 40) -> list[Case]:
    return [_case(number) for number in range(n)]


def _case(number: int) -> Case:
    draw = random.Random(number)
    kind, company = KINDS[number % len(KINDS)], draw.choice(COMPANIES)
    name = draw.choice(list(NAMES))
    year = draw.randint(2010, 2018)
    other = draw.choice(NAMES[name])
    stated = name if kind == "rank" else other
    amounts = {
        y: f"{draw.randint(100, 999)}.{draw.randint(1, 9)}" for y in (year - 1, year, year + 1)
    }
    documents = []
    values = {year: amounts[year]}
    if kind == "neighbour":
        near = draw.choice((year - 1, year + 1))
        values = {near: amounts[near]}
    for firm in COMPANIES:
        for at in (year - 1, year, year + 1):
            paragraphs = [
                _mention(draw, firm, at, name) for _ in range(40 if kind == "rank" else 24)
            ]
            paragraphs += [_filler(draw, firm, at) for _ in range(12)]
            if firm == company and kind != "comparison" and at in values:
                paragraphs.append(
                    f"In {at}, {stated} of {firm} came to {values[at]} million dollars."
                )
            if firm == company and kind == "comparison" and at == year + 1:
                paragraphs.append(_table(firm, stated, year, amounts))
                values = {year: amounts[year], year + 1: amounts[year + 1]}
            draw.shuffle(paragraphs)
            text = "\n\n".join([f"Report of {firm} for {at}.", *paragraphs])
            documents.append(CorpusDocument(f"{firm.lower()}-{at}.txt", text))
    read = "CTX"
    steps = []
    if number % 8 >= 4:
        read = "passages"
        steps = [f'passages = RETRIEVE(CTX, "{name} of {company} {year}", 4) : Find the passages']
    steps.append(f'ans = FIND_FIGURE({read}, "{name} of {company}", "{year}") : Look the figure up')
    plan = "\n".join(f"{i}. {step}" for i, step in enumerate(steps, start=1))
    return Case(kind, company, name, year, plan, Index.build(documents).document("reports"), values)


def _table(company: str, name: str, year: int, amounts: dict[int, str]) -> str:
    return (
        f"| million dollars | {year + 1} | {year} |\n|---|---|---|\n"
        f"| {name} of {company} | {amounts[year + 1]} | {amounts[year]} |"
    )


def _mention(draw: random.Random, company: str, year: int, name: str) -> str:
    """A paragraph that has the words of the query and no figure."""
    who = draw.choice(("the auditors", "the board", "the owners", "the bank", "the works council"))
    what = draw.choice(
        ("was discussed with", "was explained to", "was a matter for", "was no concern of")
    )
    more = " ".join(_filler(draw, company, year) for _ in range(2))
    return f"How {name} of {company} is counted in {year} {what} {who} of {company}. {more}"


def _filler(draw: random.Random, company: str, year: int) -> str:
    place = draw.choice(("Oslo", "Porto", "Lyon", "Graz", "Turku", "Gdansk"))
    thing = draw.choice(
        ("a warehouse", "a bakery", "two ferries", "the old mill", "a weighbridge", "a pump")
    )
    return f"{company} kept {thing} near {place} through {year}, and hired {draw.randint(2, 60)} people there."


def reader(*, is_careless: bool = False) -> Callable[[Request], str]:
    """An honest reader, who knows which names stand for one thing; a careless one takes any year's figure."""

    def reply(request: Request) -> str:
        task = request.task
        assert isinstance(task, ActionTask)
        given = dict(task.arguments)
        if task.action.name == "OTHER_WORDS":
            known = [other for name in NAMES for other in NAMES[name] if name in given["QUERY"]]
            company = next((each for each in COMPANIES if each in given["QUERY"]), "")
            return json.dumps({"entries": [f"{other} {company}" for other in known]})
        name, _, company = given["X"].partition(" of ")
        years = years_in(given["PERIOD"])
        names = (name, *NAMES[name])
        header: tuple[int, ...] = ()
        for line in (task.document or "").splitlines():
            if line.startswith("| million dollars"):
                header = tuple(int(cell) for cell in line.split("|")[2:4])
            if company not in line or not any(each in line for each in names):
                continue
            if line.startswith("| "):
                cells = dict(
                    zip(header, (cell.strip() for cell in line.split("|")[2:4]), strict=False)
                )
            elif " came to " in line:
                cells = {years_in(line)[0]: line.split(" came to ")[1].split(" ")[0]}
            else:
                continue
            for year, amount in cells.items():
                if year in years or is_careless:
                    return json.dumps({"answer": f"{amount} million dollars", "quote": line})
        return json.dumps({"answer": None, "quote": None})

    return reply


class Reading(Scripted):
    """Its prompts decide what it replies."""

    reads_prompts = True


@dataclass(frozen=True)
class Outcome:
    """What became of a case: found as asked, or found and told to be of another year."""

    case: Case
    answer: Answer
    is_found: bool
    is_silent: bool
    """Whether the figure of another year is given as if it were that of the year asked for."""
    n_tokens: int
    """Of all prompts."""


FIGURES = read_library(
    "FIND_FIGURE(CTX, X, PERIOD) : Find the one figure that CTX gives for X in the period PERIOD, as it is written there",
    "figures",
)


def run(case: Case, *, looks: int, is_careless: bool = False) -> Outcome:
    model = Reading(reader(is_careless=is_careless))

    async def work() -> Answer:
        async with Pearl(
            model,
            library=FIGURES,
            looks=looks,
            check="off",
            window=WINDOW,
            max_output_tokens=REPLY_TOKENS,
        ) as pearl:
            return await pearl.execute(case.plan, case.document)

    answer = asyncio.run(work())
    text = answer.text
    right, wrong = (
        [v for y, v in case.values.items() if (y == case.year) == is_right]
        for is_right in (True, False)
    )
    is_told = answer.status == "degraded" and f"asked for {case.year}, found under" in answer.why
    has_right, has_wrong = (any(value in text for value in each) for each in (right, wrong))
    is_found = has_wrong and is_told if case.is_other_year else has_right
    is_silent = has_wrong and not (is_told or answer.status == "undecided")
    n_tokens = sum(Counter().count(request.prompt) for request in model.requests)
    return Outcome(case, answer, is_found, is_silent, n_tokens)


def main() -> None:
    print("| case | looks | found | wrong year unsaid | calls a case | input tokens a case |")
    print("|---|---|---|---|---|---|")
    every = cases()
    for looks in (0, 1, 2, 3):
        outcomes = [run(case, looks=looks) for case in every]
        for kind in (*KINDS, "all"):
            of = [each for each in outcomes if kind in (each.case.kind, "all")]
            n = len(of)
            found, silent = sum(each.is_found for each in of), sum(each.is_silent for each in of)
            calls = sum(each.answer.trace.n_calls for each in of) / n
            tokens = sum(each.n_tokens for each in of) / n
            print(f"| {kind} | {looks} | {found} of {n} | {silent} | {calls:.1f} | {tokens:,.0f} |")


if __name__ == "__main__":
    main()
