"""Compare forms of reply for the values of fields: how much they take to write, and what a small model makes of them.

    python -m experiments.reader.forms ask --model llamacpp:FILE --out RESULTS.jsonl [--variants a,b] [--every N]
    python -m experiments.reader.forms score RESULTS.jsonl

Forty short documents with six fields each: twelve written by hand (cases_forms.jsonl), 28 made here, so that what
they state, and where, is known. Several values are stated in other words: dates, numbers, labels, yes and no.
The request is PEARL's own with another form in it. A reply is read into the form `quoted`, and decided by PEARL.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import click

from experiments.reader.prompts import ask_all
from experiments.reader.questions import FOLDER
from experiments.reader.rules import normal
from pearl import Document, Pearl
from pearl.documents.evidence.agreeing import DisagreementError, agreed
from pearl.documents.passages import sentences
from pearl.documents.record import FieldResult
from pearl.dsl.decoding.constraint import closed_object
from pearl.dsl.fields import Field, parse_fields
from pearl.llm import Request
from pearl.llm.backends.scripted import Scripted
from pearl.replies.extracted import extraction_constraint, form_of

MAX_TOKENS = 600
PLAN = '1. record = EXTRACT(CTX, "{}") : Take the fields'

Case = Mapping[str, Any]

# ---------------------------------------------------------------------------------------------
# The documents

_PEOPLE = [
    "Maria Keller",
    "Tom Ashby",
    "Ruth Calder",
    "Owen Pryce",
    "Ada Finch",
    "Karl Lund",
    "Ines Marchal",
]
_FIRMS = [
    "Halden Glass",
    "Northbrook Timber",
    "Castoria Foods",
    "Brandis & Co",
    "Varga Tools",
    "Lumeris Light",
    "Pelikan Paper",
]
_TOWNS = ["Ashford", "Lindau", "Vernon", "Marrow", "Celle", "Dole", "Hexham"]
_DRUGS = [
    "lisinopril",
    "metformin",
    "ramipril",
    "bisoprolol",
    "torasemide",
    "apixaban",
    "pantoprazole",
]
_ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
_FILLERS = [
    "The weather was mild that week, and the road over the hill was open again.",
    "Somebody had left the window of the back room open, and the papers had to be put in order first.",
    "We are sorry that the matter has taken so long; the post was late twice.",
    "Please keep this letter with your other papers, since copies are not made.",
    "The clock in the hall was slow, so that we began after the others had gone.",
    "A copy goes to the office in the market square, where it can be read in the mornings.",
]  # fmt: skip

_KINDS: Mapping[str, tuple[str, Sequence[Sequence[tuple[str, str, Any, str]]]]] = {
    "invoice": (
        "supplier: str (who sends the invoice), issued: date (date of the invoice), total: number (sum with tax in euros), boxes: int (how many boxes were sent), paid: bool (whether the invoice has been paid), carriage: free|charged (whether the carriage is charged)",
        [
            [("supplier", "{firm} sends you this invoice", "{firm}", ""), ("supplier", "Invoice of {firm}", "{firm}", "")],
            [("issued", "Date: {day}", "{iso}", ""), ("issued", "It was made out on {day}", "{iso}", "")],
            [("total", "The sum with tax is {money} euros, of which {part} are tax", "{number}", ""), ("total", "Total with tax: EUR {money} (net {part})", "{number}", "")],
            [("boxes", "{Few} boxes left our store on the cart of {other}", "{few}", ""), ("boxes", "We sent {many} boxes with {other}", "{many}", "")],
            [("paid", "Your payment has reached us in full", True, ""), ("paid", "To this day we have had no money from you", False, ""), ("paid", "The sum is still open", False, "")],
            [("carriage", "Nothing is asked for the carriage", "free", ""), ("carriage", "The carriage of {few} euros is in the sum", "charged", ""), ("carriage", "Carriage: free", "free", "")],
        ],
    ),
    "letter": (
        "patient: str (name of the patient), admitted: date (day of admission), weight_kg: number, drug: str (drug that is given), smoker: bool (whether the patient smokes), course: mild|moderate|severe (severity of the illness)",
        [
            [("patient", "We report on {person}, whom we saw with {second}, the sister", "{person}", ""), ("patient", "Patient: {person}", "{person}", "")],
            [("admitted", "The admission was on {day}, the discharge {few} days later", "{iso}", ""), ("admitted", "Admitted on {day}", "{iso}", "")],
            [("weight_kg", "The scales showed {kilos} kg, {few} kg less than at home", "{kilos}", ""), ("weight_kg", "Weight: {kilos} kg", "{kilos}", "")],
            [("drug", "We gave {drug} and stopped {drug2}, which had been taken before", "{drug}", ""), ("drug", "Treatment: {drug}, {many} mg a day", "{drug}", "")],
            [("smoker", "A pack of cigarettes is smoked every day", True, ""), ("smoker", "The patient gave up smoking years ago", False, ""), ("smoker", "Tobacco was never used", False, "")],
            [("course", "The course was life-threatening at times", "severe", ""), ("course", "It was a mild course", "mild", ""), ("course", "The illness was hardly noticed", "mild", "")],
        ],
    ),
    "report": (
        "inspector: str (who made the inspection), inspected: date (day of the inspection), place: str (town of the building), cracks: int (how many cracks were found), height_m: number (height of the wall in metres), usable: bool (whether the building may be used)",
        [
            [("inspector", "The inspection was made by {person}; {second} held the ladder", "{person}", ""), ("inspector", "Inspector: {person}", "{person}", "")],
            [("inspected", "It took place on {day}", "{iso}", ""), ("inspected", "Day of the inspection: {day}", "{iso}", "")],
            [("place", "The building stands in {town}, on the road to {town2}", "{town}", ""), ("place", "Place: {town}", "{town}", "")],
            [("cracks", "In the plaster {few} cracks were found", "{few}", ""), ("cracks", "Cracks: {many}", "{many}", "")],
            [("height_m", "The wall is {metres} m high and {part} m long", "{metres}", ""), ("height_m", "Height of the wall: {metres} m", "{metres}", "")],
            [("usable", "People may go in and out as before", True, ""), ("usable", "Nobody is to enter it before the repair", False, ""), ("usable", "The building may be used", True, "")],
        ],
    ),
    "lease": (
        "tenant: str (name of the tenant), begins: date (first day of the lease), rent: number (rent in euros a month), rooms: int, pets: allowed|forbidden, deposit_paid: bool (whether the deposit has been paid)",
        [
            [("tenant", "The flat is let to {person}; {second} signs for the owner", "{person}", ""), ("tenant", "Tenant: {person}", "{person}", "")],
            [("begins", "The lease begins on {day} and has no end", "{iso}", ""), ("begins", "First day of the lease: {day}", "{iso}", "")],
            [("rent", "The rent is {money} euros a month, {part} euros of it for heating", "{number}", ""), ("rent", "Rent: {money} euros", "{number}", "")],
            [("rooms", "There are {few} rooms and a kitchen on floor {low}", "{few}", ""), ("rooms", "Rooms: {few_digits}", "{few}", "")],
            [("pets", "No animals may be kept", "forbidden", ""), ("pets", "The tenant may keep a dog or a cat", "allowed", ""), ("pets", "Pets: forbidden", "forbidden", "")],
            [("deposit_paid", "The deposit was handed over in cash", True, ""), ("deposit_paid", "We still wait for the deposit", False, ""), ("deposit_paid", "The deposit is due next week", False, "")],
        ],
    ),
}  # fmt: skip
"""Of each kind of document: its fields, and of each field wordings with the value that they state."""
ABSENT = 0.08
"""Share of fields that a document does not state."""


def _written(day: date, draw: random.Random) -> str:
    month = f"{day:%B}"
    return draw.choice(
        [f"{day.day} {month} {day.year}", f"{month} {day.day}, {day.year}", f"{day.day}.{day.month}.{day.year}"]
        if day.day > 12 else [f"{day.day} {month} {day.year}", f"{month} {day.day}, {day.year}"]
    )  # fmt: skip


def made(kind: str, seed: int) -> Case:
    """A document of a kind, with what it states and where."""
    draw = random.Random(f"{kind} {seed}")
    fields, wordings = _KINDS[kind]
    day = date(draw.randint(2015, 2024), draw.randint(1, 12), draw.randint(1, 28))
    number = draw.randint(210_00, 4_900_00) / 100
    few, low = draw.sample(range(2, 12), 2)
    slots: dict[str, Any] = {
        "day": _written(day, draw), "iso": day.isoformat(), "money": f"{number:,.2f}", "number": number,
        "part": draw.randint(21, 199), "few": few, "low": low, "many": draw.randint(13, 90),
        "kilos": draw.randint(480, 990) / 10, "metres": draw.randint(21, 79) / 10, "few_digits": few,
    }  # fmt: skip
    for names, pool in (("person second other", _PEOPLE), ("firm", _FIRMS), ("town town2", _TOWNS), ("drug drug2", _DRUGS)):  # fmt: skip
        slots |= zip(names.split(), draw.sample(pool, len(names.split())), strict=True)
    shown = {**slots, "few": _ONES[few], "Few": _ONES[few].capitalize(), "low": _ONES[low]}
    gold: dict[str, Any] = {}
    where: dict[str, list[str]] = {}
    said: list[str] = []
    for choices in wordings:
        name, words, value, _ = draw.choice(choices)
        gold[name] = None
        if draw.random() >= ABSENT:
            key = value.strip("{}") if isinstance(value, str) else ""
            gold[name] = slots.get(key, value)
            where[name] = [words.format(**shown)]
            said += where[name]
    first, *rest = said
    draw.shuffle(rest)
    said = [first, *rest]
    for filler in draw.sample(_FILLERS, 3):
        said.insert(draw.randint(1, len(said)), filler.removesuffix("."))
    half = len(said) // 2
    text = "\n\n".join(" ".join(f"{each}." for each in part) for part in (said[:half], said[half:]))
    id = f"{kind}-{seed}"
    return {"id": id, "document": text, "fields": fields, "gold": gold, "where": where}


@cache
def cases() -> Sequence[Case]:
    """The forty documents, the kinds mixed."""
    lines = (FOLDER / "cases_forms.jsonl").read_text("utf-8").splitlines()
    own = [made(kind, seed) for seed in range(7) for kind in _KINDS]
    by_hand = [json.loads(line) for line in lines]
    return [
        case for i, one in enumerate(own) for case in (one, *by_hand[i * 3 // 7 : (i + 1) * 3 // 7])
    ]


# ---------------------------------------------------------------------------------------------
# The forms

_NEVER = "Never guess: null for what the text does not state. An array where the text says different things of one field."
_DATES = " Dates as YYYY-MM-DD."
_QUOTE = "the shortest passage of the text that states the value, copied word for word"
_NULL = {"type": "null"}
_TEXT = {"type": "string", "maxLength": 240}
QUOTED_TYPES = ("bool", "label", "text")
"""Types of fields whose values are not copied from the text."""


class Variant(NamedTuple):
    """A form of reply: its words, its schema, and how a value of it becomes one with a quote."""

    words: Callable[[Sequence[Field]], str]
    schema: Callable[[Sequence[Field]], Any]
    read: Callable[[Field, Any, Mapping[str, Any], Case], Any]
    is_numbered: bool = False


def _value(field: Field) -> Any:
    of = {
        "int": {"type": "integer"}, "number": {"type": "number"}, "bool": {"type": "boolean"},
        "label": {"type": "string", "enum": list(field.labels)},
    }  # fmt: skip
    return of.get(field.type, _TEXT)


def _pair(field: Field) -> Any:
    return closed_object({"value": _value(field), "quote": _TEXT})


def _object(fields: Sequence[Field], of: Callable[[Field], Sequence[Any]], **more: Any) -> Any:
    """A schema; a field is null, one of some forms of its value, or an array of these."""

    def one(field: Field) -> Any:
        forms = list(of(field))
        items = forms[0] if len(forms) == 1 else {"anyOf": forms}
        return {"anyOf": [_NULL, *forms, {"type": "array", "items": items}]}

    return closed_object({**{field.name: one(field) for field in fields}, **more})


def _quoted_names(fields: Sequence[Field]) -> str:
    return ", ".join(field.name for field in fields if field.type in QUOTED_TYPES)


def _by_type(fields: Sequence[Field]) -> str:
    names = _quoted_names(fields)
    said = "Reply with one JSON object: the value of each field alone"
    if names:
        said += f', but {{"value": ..., "quote": ...}} for {names}, where quote is {_QUOTE}'
    return f"{said}. {_NEVER}{_DATES}"


def _by_name(fields: Sequence[Field]) -> str:
    names = _quoted_names(fields)
    said = "Reply with one JSON object: the value of each field alone"
    if names:
        said += f', and last "quotes": an object with, for {names}, {_QUOTE}'
    return f"{said}. {_NEVER}{_DATES}"


def _with_quotes(fields: Sequence[Field]) -> Any:
    quoted = {f.name: {"anyOf": [_NULL, _TEXT]} for f in fields if f.type in QUOTED_TYPES}
    more = {"quotes": closed_object(quoted)} if quoted else {}
    return _object(fields, lambda field: [_value(field)], **more)


def _sentences(text: str) -> list[str]:
    return [text[span.start : span.end].strip() for span in sentences(text)]


def _stands(field: Field, value: Any, passage: str) -> bool:
    """Whether a passage states a value by itself: in digits, as a date, or word for word."""
    try:
        stated = agreed(field, _decimal(value), [passage])
    except DisagreementError:
        return False
    return stated[1] != "judged"


def _decimal(value: Any) -> Any:
    from decimal import Decimal

    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return Decimal(str(value)) if is_number else value


def _each(read: Callable[[Field, Any, Mapping[str, Any], Case], Any]) -> Any:
    """Of an array, every value."""

    def of(field: Field, said: Any, whole: Mapping[str, Any], case: Case) -> Any:
        if isinstance(said, list):
            return [read(field, each, whole, case) for each in said]
        return None if said is None else read(field, said, whole, case)

    return of


def _same(field: Field, said: Any, whole: Mapping[str, Any], case: Case) -> Any:
    return said


def _from_list(field: Field, said: Any, whole: Mapping[str, Any], case: Case) -> Any:
    """With the quote that states it; a value that is not copied has the quote at its place in the list."""
    quotes = [quote for quote in whole.get("quotes") or () if isinstance(quote, str)]
    certain = [quote for quote in quotes if _stands(field, said, quote)]
    stated = [name for name, value in whole.items() if name != "quotes" and value is not None]
    if not certain and field.type in QUOTED_TYPES and len(stated) == len(quotes):
        certain = [quotes[stated.index(field.name)]]
    return {"value": said, "quote": certain[0] if certain else ""}


def _from_object(field: Field, said: Any, whole: Mapping[str, Any], case: Case) -> Any:
    """With the quote that has its name, else with the sentence in which it stands."""
    quotes = whole.get("quotes")
    quote = quotes.get(field.name) if isinstance(quotes, dict) else None
    return {"value": said, "quote": quote} if quote else _looked_up(field, said, whole, case)


def _by_number(field: Field, said: Any, whole: Mapping[str, Any], case: Case) -> Any:
    cut = _sentences(case["document"])
    if not isinstance(said, list):
        return {"value": said, "quote": ""}
    if said and isinstance(said[0], list):
        return [_by_number(field, each, whole, case) for each in said]
    value, n = said
    return {"value": value, "quote": cut[n - 1] if 0 < n <= len(cut) else ""}


def _looked_up(field: Field, said: Any, whole: Mapping[str, Any], case: Case) -> Any:
    """With the sentence in which it stands, if there is one and no other."""
    if isinstance(said, dict):
        return said
    places = [each for each in _sentences(case["document"]) if _stands(field, said, each)]
    return {"value": said, "quote": places[0] if len(places) == 1 else ""}


def _kept(fields: Sequence[Field]) -> Any:
    form = extraction_constraint(tuple(fields), 240).json_form
    assert form is not None
    return form.schema


VARIANTS: Mapping[str, Variant] = {
    "kept": Variant(form_of, _kept, _same),
    "quoted": Variant(
        lambda fields: form_of(fields, is_quoted=True),
        lambda fields: _object(fields, lambda field: [_pair(field)]), _same,
    ),
    "quotes by name": Variant(_by_name, _with_quotes, _each(_from_object)),
    "list of quotes": Variant(
        lambda fields: f'Reply with one JSON object: the value of each field alone, and last "quotes": the shortest '
        f"passages of the text that state these values, one for each, copied word for word. {_NEVER}{_DATES}",
        lambda fields: _object(
            fields, lambda field: [_value(field)], quotes={"type": "array", "items": _TEXT, "maxItems": 8}
        ),
        _each(_from_list),
    ),
    "numbers of sentences": Variant(
        lambda fields: "Reply with one JSON object: for each field [value, n], where n is the number of the sentence that "
        f"states the value. {_NEVER}{_DATES}",
        lambda fields: closed_object({field.name: {"anyOf": [_NULL, {"type": "array", "prefixItems": [_value(field), {"type": "integer"}], "items": False, "minItems": 2}]} for field in fields}),
        _by_number, is_numbered=True,
    ),
    "alone if copied": Variant(
        lambda fields: "Reply with one JSON object: the value of each field alone if it stands in the text just so, and only "
        f'once; otherwise {{"value": ..., "quote": ...}}, where quote is {_QUOTE}. {_NEVER}{_DATES}',
        lambda fields: _object(fields, lambda field: [_value(field), _pair(field)]),
        _each(_looked_up),
    ),
    "by type": Variant(
        _by_type,
        lambda fields: _object(fields, lambda field: [_pair(field) if field.type in QUOTED_TYPES else _value(field)]),
        _each(_looked_up),
    ),
}  # fmt: skip


def request(name: str, case: Case) -> dict[str, Any]:
    """The request of PEARL for the fields of a case, with another form in it."""
    variant, fields = VARIANTS[name], parse_fields(case["fields"])
    sent: list[Request] = []
    pearl = Pearl(Scripted(lambda each: sent.append(each) or "{}"))
    asyncio.run(pearl.execute(PLAN.format(case["fields"]), Document(case["document"], "case.txt")))
    messages = [{"role": each.role, "content": each.content} for each in sent[0].messages]
    content = messages[-1]["content"]
    assert form_of(fields) in content
    content = content.replace(form_of(fields), variant.words(fields))
    if variant.is_numbered:
        numbered = [f"[{i}] {each}" for i, each in enumerate(_sentences(case["document"]), start=1)]
        content = content.replace(case["document"], "\n".join(numbered))
    messages[-1]["content"] = content
    return {
        "id": f"{name}/{case['id']}", "group": name, "messages": messages,
        "schema": variant.schema(fields), "max_tokens": MAX_TOKENS,
    }  # fmt: skip


# ---------------------------------------------------------------------------------------------
# What became of the fields


def _is_right(value: Any, gold: Any) -> bool:
    if isinstance(gold, str) and isinstance(value, str):
        one, other = normal(value), normal(gold)
        return bool(one) and (one in other or other in one)
    return bool(value == gold) and isinstance(value, bool) == isinstance(gold, bool)


def verdict(result: FieldResult, name: str, case: Case) -> str:
    """What became of a field; a right value at another place is told apart."""
    gold = case["gold"][name]
    if result.state != "found":
        if result.state == "not_stated" and gold is None:
            return "right"
        said = result.state.replace("_", " ")
        is_known = any(_is_right(each.value, gold) for each in result.candidates)
        return f"{said}, value right" if is_known else said
    if gold is None or not _is_right(result.value, gold):
        return "wrong"
    spans = [(case["document"].find(each), len(each)) for each in case["where"][name]]
    is_there = any(
        at < e.span.end and e.span.start < at + length for e in result.passages for at, length in spans
    )  # fmt: skip
    return "right" if is_there else "right, other place"


def again(case: Case, reply: str) -> dict[str, Any] | None:
    """The request of PEARL for what a reply in the form that is kept does not prove; None for nothing."""
    sent: list[Request] = []
    pearl = Pearl(Scripted(lambda each: sent.append(each) or reply))
    asyncio.run(pearl.execute(PLAN.format(case["fields"]), Document(case["document"], "case.txt")))
    if len(sent) < 2:
        return None
    fields = parse_fields(dict(sent[1].task.arguments)["FIELDS"])  # type: ignore[union-attr]
    form = extraction_constraint(tuple(fields), 240, is_quoted=True).json_form
    assert form is not None
    messages = [{"role": each.role, "content": each.content} for each in sent[1].messages]
    return {
        "id": f"{AGAIN}/{case['id']}", "group": AGAIN, "messages": messages,
        "schema": form.schema, "max_tokens": MAX_TOKENS,
    }  # fmt: skip


AGAIN = "asked again"


def decided(name: str, case: Case, reply: str, second: str = "{}") -> Mapping[str, FieldResult]:
    """The fields of a reply as PEARL decides them, without a checker; `second` is that to its second request."""
    start, end = reply.find("{"), reply.rfind("}") + 1
    try:
        said = json.loads(reply[start:end], strict=False)
    except json.JSONDecodeError:
        said = None
    if isinstance(said, dict) and VARIANTS[name].read is not _same:
        fields = parse_fields(case["fields"])
        reply = json.dumps({
            field.name: VARIANTS[name].read(field, said.get(field.name), said, case) for field in fields
        })  # fmt: skip
    replies = iter([reply, second])
    pearl = Pearl(Scripted(lambda _: next(replies)))
    document = Document(case["document"], "case.txt")
    answer = asyncio.run(pearl.execute(PLAN.format(case["fields"]), document))
    assert answer.record is not None
    return answer.record.fields


COLUMNS = (
    "right",
    "right, other place",
    "undecided, value right",
    "undecided",
    "not stated",
    "wrong",
)


def report(results: Iterable[Mapping[str, Any]], is_long: bool = False) -> list[str]:
    """The figures of each form."""
    by_id = {case["id"]: case for case in cases()}
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    used: dict[str, list[tuple[int, int]]] = defaultdict(list)
    told = []
    every = {each["id"]: each for each in results}
    for each in every.values():
        name, _, id = each["id"].partition("/")
        if name == AGAIN:
            continue
        second = every.get(f"{AGAIN}/{id}") if name == "kept" else None
        both = [each, *([second] if second else [])]
        used[name].append(
            (sum(e["n_input_tokens"] for e in both), sum(e["n_output_tokens"] for e in both))
        )
        texts = [e["text"] for e in both]
        for field, result in decided(name, by_id[id], *texts).items():
            what = verdict(result, field, by_id[id])
            counts[name][what] += 1
            if what != "right":
                told.append(
                    f"{name}/{id} {field}: {what}: {result.value!r}, {result.why} (gold {by_id[id]['gold'][field]!r})"
                )
    lines = [
        f"{'form':24}{'documents':>10}{'in':>6}{'out':>6}"
        + "".join(f"{each:>24}" for each in COLUMNS)
    ]
    for name, count in counts.items():
        n = len(used[name])
        n_in, n_out = (sum(each) / n for each in zip(*used[name], strict=True))
        lines.append(
            f"{name:24}{n:10}{n_in:6.0f}{n_out:6.0f}"
            + "".join(f"{count[each]:24}" for each in COLUMNS)
        )
    return [*told * is_long, *lines]


@click.group()
def main() -> None:
    """Compare forms of reply for the values of fields."""


@main.command()
@click.option("--model", required=True, help="llamacpp:FILE")
@click.option(
    "--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="To be continued."
)
@click.option("--variants", default=",".join(VARIANTS), show_default=True)
@click.option("--every", type=click.IntRange(min=1), default=1, help="Every N-th document only.")
def ask(model: str, out: Path, variants: str, every: int) -> None:
    """Send the requests that are not in the file of replies yet, and print the figures."""
    lines = out.read_text("utf-8").splitlines() if out.exists() else []
    done = {json.loads(line)["id"] for line in lines}
    names = variants.split(",")
    wanted = [request(name, case) for case in cases()[::every] for name in names]
    asyncio.run(ask_all(model, [each for each in wanted if each["id"] not in done], out))
    by_id = {case["id"]: case for case in cases()}
    replies = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    more = [
        again(by_id[id], each["text"])
        for each in replies
        if (id := each["id"].removeprefix("kept/")) in by_id
    ]
    asyncio.run(ask_all(model, [each for each in more if each and each["id"] not in done], out))
    click.echo("\n".join(report(map(json.loads, out.read_text("utf-8").splitlines()))))


@main.command()
@click.argument("results", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--long", "is_long", is_flag=True, help="Every field that is not right, too.")
def score(results: Path, is_long: bool) -> None:
    """Print the figures of replies."""
    click.echo("\n".join(report(map(json.loads, results.read_text("utf-8").splitlines()), is_long)))


if __name__ == "__main__":
    main()
