"""`ResultRecord` → one HTML file: the answer beside the document, with its evidence highlighted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from markupsafe import Markup
from msgspec.structs import replace

from pearl.documents.document import Document
from pearl.documents.evidence.wording import short_place
from pearl.documents.rows import DOCUMENT, TEXT_COLUMN
from pearl.dsl.nodes import Argument, ListLiteral, Number, Plan, Reference, Step, String, items_of
from pearl.dsl.parser import parse
from pearl.errors import PlanError, Span
from pearl.interpreter.answer import Answer
from pearl.interpreter.row import StepData
from pearl.llm import Usage
from pearl.llm.prices import read_prices
from pearl.trace import RunFinished, Spent, spent
from pearl.view import panel
from pearl.view.markdown import rendered
from pearl.view.page import draw_plan, render_page
from pearl.view.panel import sheets_of
from pearl.view.result import Place, Result, ShownStep, origin, read_result
from pearl.view.sources import ResultRecord, record_of_answer

MAX_ROWS = 10_000  # Maximum rows behind an answer on the page; `--rows FILE` writes all

FIRST_ROWS = 10  # Rows shown at first

MAX_TEXTS = 3_000_000
"""Maximum characters of full cell texts shown with shortened ones; further ones are only in the document."""

MAX_SHORT = 60  # Maximum characters of a quote whose other occurrences are counted


def answer_page(answer: Answer, document: Document) -> str:
    """The page of an answer.

    Args:
        answer: With its trace.
        document: The document of the question.

    Example:
        >>> import asyncio
        >>> from pearl import Pearl
        >>> document = Document("Ada sold the boat because it leaked. <b>Then</b> she slept.")
        >>> answer = asyncio.run(Pearl().ask("Why did Ada sell the boat?", document))
        >>> page = answer_page(answer, document)
        >>> "&lt;b&gt;Then&lt;/b&gt;" in page
        True
    """
    return result_page(record_of_answer(answer, document))


def result_page(record: ResultRecord) -> str:
    """The page of a result, which may be a failure. Texts are escaped, and a policy allows only the page's own style and script, by hash."""
    result = read_result(record, max_rows=MAX_ROWS)
    problems = list(result.problems)
    marks = _marks(result, record.document, problems)
    plan = _parsed(result.plan, problems)
    steps = {step.data.output: step for step in result.steps}
    has_end = result.error[0] or any(isinstance(event, RunFinished) for event in record.events)
    if record.events and not has_end:
        problems.insert(0, "Its trace has no end: the run was killed, failed, or is still running.")
    files = panel.files_of(record.document, list(marks.values())) if record.document else []
    sheets = sheets_of(record.document, record.files, [*marks.values()], problems)
    boxed = {number for pages in sheets.values() for sheet in pages for number in sheet.begins}
    first = min((file.numbers[0] for file in files if file.numbers), default=0)
    prices = read_prices()
    price = prices.of(result.model)
    calls_made = spent(record.events)
    usage = _usage(result, calls_made)
    rows = [place for place in result.places if place.is_row]
    text = record.document.text if record.document else ""
    quotes = {each.number: _told_often(each, text) for each in result.places if not each.is_row}

    # The text of an answer that is not composed is its parts, without the quotes of list entries.
    is_all = all(part.text in result.row.answer for part in result.row.parts)
    has_entries = any(part.entries for part in result.row.parts)

    def link(number: int) -> str:
        if number not in quotes:
            return f"[{number}]"
        is_marked = number in marks
        what = f"quote {number}{' in the document' if is_marked else ''}"
        at = "d" if is_marked else "e"
        return f'<a class="n" href="#{at}{number}" aria-label="{what}">{number}</a>'

    shown = (
        rendered(result.row.markdown, link) if result.row.markdown else rendered(result.row.answer)
    )
    if rows:  # A number at the beginning of the answer leads to the rows behind it
        counted = re.sub(r"\A<p>(\d[\d,.]*)", r'<p><a href="#rows">\1</a>', str(shown))
        shown = Markup(counted)
    return render_page(
        "answer",
        result.question or result.row.document or "A result",
        result=result,
        problems=problems,
        document=record.document,
        answer=shown,
        rendered=rendered,
        origin=origin,
        place_of=lambda hit: short_place(
            hit.document, Span(hit.start, hit.end), None, is_by_ocr=False
        ),
        is_said_by_parts=is_all and has_entries,
        has_parts=has_entries or not is_all,
        is_table=_is_table(result, rows),
        quotes=quotes,
        n_in_document=len(quotes.keys() & marks.keys()),
        rows=_first_and_rest(rows, plan),
        n_rows=len(rows),
        n_undecided=sum(row.note == "undecided" for row in rows),
        linked=marks,
        drawing=draw_plan(plan) if plan else None,
        steps=list(_with_arguments(plan, steps)),
        usage=usage,
        prices_of=prices.as_of.isoformat(),
        cost_usd=None if price is None or usage is None else price.cost_usd(usage),
        spent=calls_made,
        files=files,
        first=first,
        sheets=sheets,
        boxed=boxed,
        resume=record.resume,
        open_file=next((f.name for f in files if f.numbers and f.numbers[0] == first), ""),
    )


def _marks(result: Result, document: Document | None, problems: list[str]) -> dict[int, panel.Mark]:
    """The marks of the evidence that is surely in the document, by number."""
    if document is None:
        if result.row.document:
            problems.append(
                f"The document, {result.row.document}, was not found, so the evidence is not shown in it."
            )
        return {}
    is_same = result.started is not None and result.started.document_sha256 == document.digest
    if result.started is not None and not is_same:
        problems.append(
            "The document has changed since the run; marks that no longer fit are not shown."
        )
    starts = dict(reversed(document.parts))  # If a name occurs twice, its first part counts
    marks: dict[int, panel.Mark] = {}
    n_lost = 0
    for place in result.places:
        if (own := place.data.span) is None:
            continue
        at = starts.get(place.data.source, 0)
        span = own.moved(at)
        if span.end <= len(document.text) and (
            is_same or document.text[span.start : span.end] == place.text
        ):
            cells = tuple(c.span.moved(at) for c in place.cells if c.span)
            marks[place.number] = panel.Mark(place.number, span, cells, place.is_row)
        else:
            n_lost += 1
    if n_lost and result.started is None:
        problems.append(f"Places missing from the document: {n_lost:,}. It may have changed since.")
    return marks


def _told_often(quote: Place, text: str) -> Place:
    """Note how often a short quote occurs in the document, because a reply may mean any of these places."""
    n = text.count(quote.text) if 0 < len(quote.text) <= MAX_SHORT else 0
    return replace(quote, where=f"{quote.where}; stands at {n:,} places") if n > 1 else quote


def _is_table(result: Result, rows: Sequence[Place]) -> bool:
    """Whether the answer is a table of its rows, so that the table of rows, with more columns and full cells, replaces it."""
    lines = result.row.answer.strip().split("\n")
    if lines[-1].startswith("("):  # The number of undecided rows
        lines.pop()
    names = {name.strip() for name in "".join(lines[:1]).strip("|").split("|")}
    return (
        all(line.startswith("|") for line in lines)
        and len(lines) - 2 == len(rows) > 0
        and names <= {*rows[0].fields, TEXT_COLUMN}
    )


def _first_and_rest(rows: Sequence[Place], plan: Plan | None) -> list[panel.Table]:
    """The rows behind an answer as tables: the first rows, and the others."""
    if not rows:
        return []
    names = list(dict.fromkeys(name for row in rows for name in row.fields))
    n_written = sum(
        len(name) + len(value)
        for name, value in rows[0].fields.items()
        if value in rows[0].text and name != DOCUMENT
    )
    has_quotes = all("quote" in row.fields for row in rows)
    if 2 * n_written < len(rows[0].text) and not has_quotes:
        names.append(TEXT_COLUMN)  # The other columns do not contain the row's text
    sources = {row.data.source for row in rows}
    has_files = len(sources) > 1 and DOCUMENT not in names
    has_pages = any(row.data.page for row in rows)
    used = _used(rows[0], names, plan)
    folded = [name for name in names if name not in used]
    names = [*used, *folded] if len(folded) < 2 else used
    n_left = MAX_TEXTS
    lines = []
    for row in sorted(rows, key=lambda row: row.note == "undecided"):
        cited = {cell.column for cell in row.cells}
        cells = [panel.shown_cell(row.data.source)] if has_files else []
        cells += [panel.shown_cell(str(row.data.page or ""))] if has_pages else []
        for name in names:
            text = row.text if name == TEXT_COLUMN else row.fields.get(name, "")
            is_lit = name in cited and 0 < len(text) <= panel.MAX_CELL
            lit = [(row.number, Span(0, len(text)))] if is_lit else ()
            cell = panel.shown_cell(text, lit)
            n_left -= len(cell.whole)
            cells.append(cell if n_left > 0 else replace(cell, whole=""))
        if len(folded) > 1:
            others = "\n".join(f"{name}: {row.fields[name]}" for name in folded if row.fields.get(name))  # fmt: skip
            n_left -= len(others)
            cells.append(panel.Cell([panel.Piece(f"{len(folded)}")], others if n_left > 0 else ""))
        lines.append(panel.Line((row.number,), cells, row.note))
    before = [*(["file"] if has_files else []), *(["page"] if has_pages else [])]
    shown = [*before, *names, *(["others"] if len(folded) > 1 else [])]
    whole = panel.make_table(shown, lines)
    return [
        replace(whole, chunks=[lines[:FIRST_ROWS]]),
        replace(whole, chunks=panel.chunked(lines[FIRST_ROWS:])),
    ]


def _used(row: Place, names: Sequence[str], plan: Plan | None) -> list[str]:
    """The columns that distinguish rows and those that the plan uses; all columns if there are few."""
    if len(names) < 4:
        return list(names)
    arguments = [each for step in (plan.steps if plan else ()) for each in step.arguments]
    items = [item for argument in arguments for item in items_of(argument)]
    told = " ".join(item.value for item in items if isinstance(item, String)).lower()
    cited = {cell.column for cell in row.cells}
    used = [
        name
        for name in names[1:]
        if name in cited or name.lower() in told or row.fields.get(name, "") not in row.text
    ]
    long = [name for name in names if len(row.fields.get(name, "")) > panel.MAX_CELL]
    used += long[:1]  # The text by which the rows were judged
    return list(dict.fromkeys([names[0], *used]))


def _parsed(text: str, problems: list[str]) -> Plan | None:
    if not text.strip():
        return None
    try:
        return parse(text)
    except PlanError as error:
        problems.append(f"Its plan cannot be read: {error.message.splitlines()[0]}.")
        return None


def _with_arguments(
    plan: Plan | None, results: dict[str, ShownStep]
) -> Iterable[tuple[ShownStep, Step | None, list[list[tuple[str, str]]]]]:
    """The steps of the plan with their results, then steps that are not in the plan."""
    named = set()
    for step in plan.steps if plan else ():
        named.add(step.output)
        known = results.get(step.output)
        shown = known or ShownStep(StepData(output=step.output, action=step.action), "not begun")
        yield shown, step, [list(_argument_texts(each)) for each in step.arguments]
    for output, each in results.items():
        if output not in named:
            yield each, None, []


def _usage(result: Result, calls_made: Spent) -> Usage | None:
    """The tokens reported in the row, else those of all calls in the trace; None if unknown."""
    usage = result.row.known_usage or (calls_made.usage if result.events else None)
    if usage is None:
        return None
    is_sent = calls_made.n_calls > calls_made.n_cached and result.model != "extractive"
    return None if is_sent and not usage.n_tokens else usage


def _argument_texts(argument: Argument) -> Iterable[tuple[str, str]]:
    """An argument as texts, each with the output that it refers to, or ""."""
    match argument:
        case Reference():
            yield argument.name, "" if argument.is_context else argument.name
        case String():
            yield f'"{argument.value}"', ""
        case Number():
            yield str(argument.value), ""
        case ListLiteral():
            yield "[", ""
            for i, item in enumerate(argument.items):
                if i:
                    yield ", ", ""
                yield from _argument_texts(item)
            yield "]", ""
