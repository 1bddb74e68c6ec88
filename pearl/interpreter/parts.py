"""The parts of an answer: one result each, with its label and its evidence; as text and as Markdown."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

from msgspec import Struct

from pearl.actions.values import Scalar, as_text, marks, rows_text
from pearl.documents.document import Document
from pearl.documents.evidence import Evidence, normalise, placed, quoted_line
from pearl.documents.evidence.normal import has_name, normal_text
from pearl.documents.lexicon import words_in
from pearl.documents.numbers import plain
from pearl.documents.passages import without_list_mark
from pearl.documents.rows import Rows, Stated, shortened, table_cell
from pearl.dsl.graph import PlanGraph
from pearl.dsl.nodes import Step, String, items_of
from pearl.dsl.signatures import ValueType
from pearl.errors.callers import ShownInPart
from pearl.errors.patterns import lazy_pattern
from pearl.interpreter.naming import named_rows
from pearl.interpreter.results import StepResult
from pearl.interpreter.row import ListEntry, PartData
from pearl.replies.step_replies import State, read_reply

PartValue = (
    str | int | float | bool | Decimal | Sequence["PartValue"] | Mapping[str, "PartValue"] | None
)
"""A value as plain data: texts, numbers, truth values, and lists and dictionaries of these."""


class Tally(Struct, frozen=True):
    """The base of a count or share: rows that state the answer, rows that do not, undecided rows. `called` names the rows; `said` is the text of another result."""

    stated: Stated
    undecided: int
    called: str
    said: str | None
    is_share: bool = False

    @property
    def of(self) -> str:
        """The base of the number in words, such as "of the 10 rows that state it; 2 do not"."""
        n, of, left, field = self.stated
        rows = f"{self.called} " * bool(self.called)
        it, do = f"their {field}" if field else "it", "does" if left == 1 else "do"
        if self.is_share:  # Of all decided rows
            return f"{n:,} of {of + left:,} {self.called or 'rows'}; {left:,} of them {do} not state {it}"
        return f"of the {of:,} {rows}that state {it}; {left:,} {do} not"

    @property
    def text(self) -> str:
        """The number with its base, and its bounds if rows are undecided."""
        n, more = self.stated.value, self.undecided
        if self.said is None:
            return f"({self.of} state it)"
        bounds = f" ({more:,} undecided: {n:,} to {n + more:,})" if more else ""
        told = self.of if self.is_share else f"{n:,} {self.of} state it"
        return f"{self.said}{': ' * bool(self.said)}{told}{bounds}"


Piece = tuple[str, tuple[int, ...]]
"""A piece of a text, and the numbers of the evidence that it quotes or cites."""

MIN_WORDS = 4  # Minimum words of a passage that is recognised without quotation marks

MAX_MARKS = 8  # Maximum evidence numbers after a text without quotes

MAX_LABEL = 160  # Maximum characters of a label, and of a part on the line of its label
_CLOSING = "\"'”’»«」』"
_OPENING = "\"'“‘„‚«»「『"


class AnswerPart(ShownInPart, Struct, frozen=True):
    """A result that the answer consists of.

    Attributes:
        output: The step.
        label: What the step does, by its explanation in the plan.
        value: A text, a number, a truth value, a list, or rows (a list of values, or of objects if they
            have columns); None if it is undecided, refused or not stated.
        text: The value as text.
        state: The state of the step.
        why: Why it is undecided or refused.
        evidence: Numbers of its passages in `Answer.evidence`, from 1.
        entries: The entries of a list, each with its own passages.
        reply: What the model replied, with its quotes.
        n_undecided: How many of its rows are undecided.
        tally: For a number of rows, its base: the rows it was selected from.
        cells: The pieces of a table with cells that passages decided.
    """

    unshown = frozenset({"reply", "cells"})

    output: str
    label: str
    value: PartValue
    text: str
    state: State
    why: str = ""
    evidence: tuple[int, ...] = ()
    entries: tuple[ListEntry, ...] = ()
    reply: str = ""
    n_undecided: int = 0
    tally: Tally | None = None
    cells: tuple[Piece, ...] = ()

    @property
    def is_decided(self) -> bool:
        """Whether it has a value."""
        return self.state not in ("undecided", "refused", "nothing") or self.value is not None

    @property
    def told(self) -> str:
        """The text of its value, or the reason why it has none."""
        if self.is_decided or self.state == "nothing":
            return self.text
        word = "refused by the model" if self.state == "refused" else "undecided"
        return f"{word}{f', because {self.why}' if self.why else ''}"

    @property
    def line(self) -> str:
        """The part with its label."""
        return f"{self.label}: {self.told}"

    @property
    def row(self) -> PartData:
        """The part in a row of results."""
        counts: dict[str, Any] = {}
        if self.tally is not None:
            stated = self.tally.stated
            counts = {
                "of": stated.of,
                "not_stated": stated.not_stated,
                "undecided": self.tally.undecided,
            }
        return PartData(
            output=self.output, label=self.label, text=self.text, state=self.state, why=self.why,
            value=str(self.value) if isinstance(self.value, Decimal) else self.value,
            evidence=[*self.evidence], entries=[*self.entries], **counts,
        )  # fmt: skip

    @classmethod
    def of(cls, data: PartData) -> AnswerPart:
        """Make the part from its data in a row, where the texts of the tally are in the text of the part."""
        n = data.value if isinstance(data.value, int) else 0  # A share has its number in the text
        n_undecided = data.undecided or 0
        tally = None
        if data.of is not None:
            tally = Tally(Stated(n, data.of, data.not_stated or 0), n_undecided, "", None)
        return cls(
            data.output, data.label, data.value, data.text, data.state, data.why, tuple(data.evidence),
            tuple(data.entries), n_undecided=n_undecided, tally=tally,
        )  # fmt: skip


def answer_parts(
    graph: PlanGraph,
    results: Mapping[str, StepResult],
    names: Iterable[str],
    evidence: Sequence[Evidence],
    document: Document,
) -> tuple[AnswerPart, ...]:
    """The results of some steps as parts; a computed part has the evidence of its inputs."""
    steps = {step.output: step for step in graph.steps}
    places = {(e.span, e.omitted): n for n, e in enumerate(evidence, start=1)}
    parts = []

    def marks_of(passages: Iterable[Evidence]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(places[each.span, each.omitted] for each in passages))

    for name, label in _labels(names, steps).items():
        result = results[name]
        value = None if result.is_void else _plain(result)
        sources = sources_of_part(name, steps, results)
        quoted = {
            number: passage for number, passage in enumerate(evidence, start=1)
            if not sources.isdisjoint(passage.steps)
        }  # fmt: skip
        replies = "\n".join(results[source].reply for source in steps if source in sources)
        entries: tuple[ListEntry, ...] = ()
        if isinstance(value, list) and not isinstance(result.value, Rows):
            entries = _entries(value, read_reply(replies, ValueType.LIST).plain, quoted)
        if result.record is not None:
            entries = tuple(ListEntry(line, marks_of(e)) for line, e in result.record.lines)
        text, n_undecided, tally = result.text, 0, _tally(name, steps, results)
        cells: tuple[Piece, ...] = ()
        if isinstance(rows := result.value, Rows):
            n_undecided = len(rows.undecided)
            if rows.columns:
                cells = _cells(rows, results, places)
            elif len(rows):
                named = named_rows(rows, document, deciding_of(results, sources), is_brief=True)
                text = rows_text(rows, [each.line for each in named])
                value = [
                    each.name or row.value if row.value == row.text else row.value
                    for row, each in zip(rows, named, strict=True)
                ]
                if any(each.passages for each in named):
                    entries = tuple(
                        ListEntry(each.line.removeprefix("- "), marks_of(each.passages))
                        for each in named
                    )
        if tally is not None and tally.stated.not_stated:
            text = f"{text}\n{tally.text}" if tally.said is None else tally.text
        parts.append(AnswerPart(
            name, label, value, text, result.state, result.why, tuple(quoted), entries, replies, n_undecided, tally, cells,
        ))  # fmt: skip
    return tuple(parts)


def _cells(
    rows: Rows, results: Mapping[str, StepResult], places: Mapping[tuple[Any, ...], int]
) -> tuple[Piece, ...]:
    """The table of rows, with an evidence number after each cell that a passage decided; () without such passages."""
    deciding = {name: results[name].deciding for name in rows.columns if name in results}
    if not any(deciding.values()):
        return ()
    head = "\n".join(rows.lines(0)[:2])
    pieces: list[Piece] = [(head, ())]
    for row in rows:
        start = "\n| "
        for name in rows.columns:
            passage = deciding.get(name, {}).get(row.key)
            numbers = (places[passage.span, passage.omitted],) if passage else ()
            pieces.append((f"{start}{table_cell(row.fields.get(name, ''))}", numbers))
            start = " | "
        pieces.append((" |", ()))
    pieces += [(f"\n\n{mark}", ()) for mark in marks(rows)]
    return tuple(pieces)


def _tally(name: str, steps: Mapping[str, Step], results: Mapping[str, StepResult]) -> Tally | None:
    """The tally of a count, share or groups, if a condition or a value selected the rows."""
    said: str | None
    is_share = False
    match results[name].value:
        case Scalar(value=value, rows=rows, low=low, high=high, stated=Stated() as stated):
            is_share = isinstance(value, float)
            said = "" if value == stated.value and not is_share else as_text(value)
            n_undecided = len(rows.undecided)
            if not said and low is not None and high is not None:
                n_undecided = int(high - low) - rows.n_unread
        case Rows(shows_possible=True, stated=Stated() as stated) as rows:
            said, n_undecided = None, len(rows.undecided)
        case _:
            return None
    n, called = stated.of + stated.not_stated + n_undecided, ""
    # The rows are named by the first step with the same number of rows.
    while inputs := [each.name for each in steps[name].references() if not each.is_context]:
        name = inputs[0]
        of = results[name].value
        if isinstance(of, Rows) and len(of) + len(of.doubtful) == n and len(name) > 1:
            called = name.replace("_", " ")
    return Tally(stated, n_undecided, called, said, is_share)


def deciding_of(
    results: Mapping[str, StepResult], outputs: Collection[str]
) -> dict[object, list[Evidence]]:
    """The passages that decided rows of some steps, by `Row.key`."""
    found: dict[object, list[Evidence]] = defaultdict(list)
    for output in outputs:
        for key, passage in results[output].deciding.items():
            found[key].append(passage)
    return found


def _labels(names: Iterable[str], steps: Mapping[str, Step]) -> dict[str, str]:
    """What steps do, by their explanations; the texts in their arguments tell apart those with the same one."""
    labels = {}
    for name in names:
        told = steps[name].explanation or name.replace("_", " ")
        words = " ".join(told.split()).rstrip(".:; ")
        words = words if len(words) <= MAX_LABEL else f"{words[: MAX_LABEL - 1]}…"
        labels[name] = words[:1].upper() + words[1:]
    n_same = Counter(labels.values())
    for name, label in labels.items():
        if n_same[label] > 1:
            items = [item for argument in steps[name].arguments for item in items_of(argument)]
            texts = "; ".join(item.value for item in items if isinstance(item, String))
            labels[name] = f"{label} ({shortened(texts, MAX_LABEL) or name})"
    return labels


def sources_of_part(
    name: str, steps: Mapping[str, Step], results: Mapping[str, StepResult]
) -> frozenset[str]:
    """The step itself or, for a computed step, the model steps that it derives from."""
    if not results[name].is_native:
        return frozenset([name])
    every = (each.name for each in steps[name].references() if not each.is_context)
    inputs = results[name].took or every
    return frozenset([name]).union(*(sources_of_part(each, steps, results) for each in inputs))


def _plain(result: StepResult) -> PartValue:
    """The value as Python data."""
    if result.record is not None:
        return {name: field.plain for name, field in result.record.fields.items()}
    match result.value:
        case Rows() as rows if rows.columns:
            return [{name: row.fields.get(name, "") for name in rows.columns} for row in rows]
        case Rows() as rows:
            return [row.value for row in rows]
        case Scalar(exact=exact) if exact is not None:
            return exact.amount
        case Scalar(value=value):
            return value
        case str() if result.state == "nothing":
            return None
        case str() as text if entries := _listed(text):
            return entries
        case value:
            return value


def _listed(text: str) -> list[str]:
    """The entries of a text that is a list; [] for other texts."""
    reply = read_reply(text, ValueType.LIST)
    if reply.is_formed or reply.state != "found" or not isinstance(reply.value, list):
        return []
    return reply.value


def _entries(
    entries: Sequence[str], reply: str, passages: Mapping[int, Evidence]
) -> tuple[ListEntry, ...]:
    """Assign passages to entries: those quoted below an entry, inside it, or containing its name."""
    if not passages:
        return tuple(ListEntry(entry, ()) for entry in entries)
    by_form: dict[str, set[int]] = defaultdict(set)
    by_word: dict[str, set[int]] = defaultdict(set)
    by_first: dict[str, set[int]] = defaultdict(set)
    forms = {number: normalise(passage.text) for number, passage in passages.items()}
    for number, form in forms.items():
        by_form[form].add(number)
        words = words_in(form)
        for word in words[:1]:
            by_first[word].add(number)
        for word in words:
            by_word[word].add(number)

    def quoted_in(form: str) -> set[int]:
        near = by_form.get(form) or set().union(*(by_word[w] for w in words_in(form)[:1]))
        return {n for n in near if form in forms[n] or forms[n] in form}

    index = {normalise(entry): i for i, entry in enumerate(entries)}
    below: list[set[int]] = [set() for _ in entries]
    at: int | None = None
    is_below = False
    for line, quotes in _quotes_below(reply):
        bare = normalise(plain(without_list_mark(line)).rstrip(";, "))
        at = index.get(bare, None if without_list_mark(line) != line or not line.strip() else at)
        for form in map(normalise, quotes):
            if at is not None and form:
                below[at] |= quoted_in(form)
                is_below = True
        if quotes and not is_below:  # Quotes stand before their entries, or elsewhere
            break
    if sum(map(bool, below)) < min(2, len(entries)):  # All quotes stand at the end
        below = [set() for _ in entries]
    for i, entry in enumerate(entries):
        form = normalise(entry)
        begin = set().union(*(by_first[word] for word in words_in(form)))
        below[i] |= {n for n in begin if forms[n] in form}
        # `Aspirin: 5 mg`, `Aspirin (5 mg)`, `Aspirin - daily`
        ends = [at for mark in (":", "(", "–", "—", " - ") if (at := entry.find(mark)) >= 0]
        name = normalise(entry[: min(ends, default=None)])
        if name and not below[i]:
            near = set().union(*(by_word[word] for word in words_in(name)[:1]))
            below[i] = {n for n in near if has_name(forms[n], name)}
    return tuple(
        ListEntry(entry, tuple(sorted(numbers)))
        for entry, numbers in zip(entries, below, strict=True)
    )


def _quotes_below(reply: str) -> list[tuple[str, list[str]]]:
    """The lines of a reply, each with the quotes that stand below it."""
    lines: list[tuple[str, list[str]]] = [("", [])]
    for line in reply.splitlines():
        if (quote := quoted_line(line)) is None:
            lines.append((line, []))
        else:
            lines[-1][1].append(quote)
    return lines


def labelled_text(parts: Sequence[AnswerPart]) -> str:
    """The parts of an answer as text, each with its label if there are several."""
    if len(parts) == 1:
        return parts[0].text
    return "\n\n".join(_labelled(part, part.text.strip(), "{}") for part in parts)


def labelled_markdown(parts: Sequence[AnswerPart], evidence: Sequence[Evidence]) -> str:
    """The parts of an answer as Markdown with evidence numbers."""
    if len(parts) == 1:
        return marked(_cited(parts[0], evidence))
    return "\n\n".join(_labelled(p, marked(_cited(p, evidence)).strip(), "**{}**") for p in parts)


def _labelled(part: AnswerPart, text: str, form: str) -> str:
    if not part.is_decided:
        text = part.told
    has_entries = isinstance(part.value, list) and part.value
    is_line = "\n" not in text and len(text) <= MAX_LABEL and not has_entries
    return f"{form.format(part.label + ':')}{' ' if is_line else chr(10) * 2}{text}"


def _cited(part: AnswerPart, evidence: Sequence[Evidence]) -> list[Piece]:
    """The text of a part, with the numbers of its evidence."""
    if part.cells:
        return list(part.cells)
    if part.entries:
        return [piece for e in part.entries for piece in ((f"- {e.text}", e.evidence), ("\n", ()))]
    numbers = {number: evidence[number - 1] for number in part.evidence}
    pieces = cited(part.text, numbers)
    if numbers and not any(marks for _, marks in pieces):
        pieces = _above_quotes(part.text, part.reply, numbers) or pieces
    is_marked = any(marks for _, marks in pieces)
    if numbers and not is_marked and len(numbers) <= MAX_MARKS and part.is_decided:
        # After the last of several lines, they would seem to belong to that line only.
        pieces.append(("\n\n" if "\n" in part.text.strip() else "", tuple(numbers)))
    return pieces


def _above_quotes(text: str, reply: str, evidence: Mapping[int, Evidence]) -> list[Piece]:
    """Cut a text after each line that has quotes below it in the reply; [] if all quotes are below one line."""
    forms = {number: normalise(passage.text) for number, passage in evidence.items()}
    ends: dict[int, list[int]] = {}
    at = 0
    for line, quotes in _quotes_below(reply):
        if line.strip() and (start := text.find(line.strip(), at)) >= 0:
            at = start + len(line.strip())
        if form := normalise(" ".join(quotes)):
            ends.setdefault(at, []).extend(n for n in forms if form == forms[n])
    ends = {end: numbers for end, numbers in ends.items() if numbers and end}
    if len(ends) < 2:
        return []
    cuts = [0, *ends, len(text)]
    placed = {number for numbers in ends.values() for number in numbers}
    rest = tuple(number for number in evidence if number not in placed)
    last = (f"{text[cuts[-2] :]}\n\n" if rest else text[cuts[-2] :], rest)
    return [*((text[i:j], tuple(ends[j])) for i, j in pairwise(cuts[:-1])), last]


CITED = lazy_pattern(r"\[\^(\d{1,6})\]")
"""An evidence number in the Markdown of an answer: `[^3]`."""
MARK = lazy_pattern(rf" ?{CITED.pattern}")
"""The same with the blank before it, if there is one."""


def marked(pieces: Iterable[Piece]) -> str:
    """Pieces as Markdown; evidence numbers become footnotes `[^1]`, which other texts cannot contain."""
    return "".join(
        text.replace("[^", "[") + "".join(f"[^{number}]" for number in numbers)
        for text, numbers in pieces
    )


def cited(text: str, evidence: Mapping[int, Evidence]) -> list[Piece]:
    """Cut a text after each passage that it quotes."""
    numbers = {id(passage): number for number, passage in evidence.items()}
    blocks, others = placed(text, list(evidence.values()))
    pieces: list[Piece] = []
    for at, (block, passage) in enumerate(blocks):
        last = "" if at == len(blocks) - 1 else "\n"
        if passage is not None:
            pieces += [(block, (numbers[id(passage)],)), (last, ())]
        else:
            pieces += _within(block + last, others, numbers)
    return [piece for piece in pieces if piece[0] or piece[1]]


def _within(text: str, evidence: Sequence[Evidence], numbers: Mapping[int, int]) -> Iterator[Piece]:
    """Cut a text after each passage, even within a sentence."""
    ends: dict[int, list[int]] = {}
    whole = normal_text(text)
    for passage in evidence:
        form = normal_text(passage.text)
        span = whole.find(form) if not passage.omitted else None
        if span is None or span[0] == span[1]:
            continue
        start, end = whole.original(*span).start, whole.original(*span).end
        is_quoted = text[max(0, start - 1) : start] in _OPENING and text[end : end + 1] in _CLOSING
        is_quoted &= 0 < start < end < len(text)
        if is_quoted or len(normalise(passage.text).split()) >= MIN_WORDS:
            ends.setdefault(end + is_quoted, []).append(numbers[id(passage)])
    at = 0
    for end in sorted(ends):
        yield text[at:end], tuple(ends[end])
        at = end
    yield text[at:], ()
