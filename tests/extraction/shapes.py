"""Shapes of records: their JSON Schemas, and the values that a document states of them.

A shape draws a gold record: dicts, lists and `Keyed` maps, whose leaves are `Told`. Where a document states a
leaf, tests/extraction/documents.py says.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any


@dataclass(eq=False)
class Told:
    """A leaf of a gold record.

    Attributes:
        kind: Its kind, a key of `KINDS`.
        value: As the schema has it.
        said: As an honest model replies it.
        shown: As the document writes it.
        name: Its name in words.
        places: Where the document states it: the places of its quotes.
    """

    kind: str
    value: Any
    said: Any
    shown: str
    name: str = ""
    places: list[tuple[int, int]] = field(default_factory=list)


Gold = Any
"""`Told`, None, a dict, list or tuple of these, or `Keyed`."""


@dataclass(eq=False)
class Keyed:
    """The entries of a map with their keys."""

    entries: list[tuple[Told, Gold]]


class Shape:
    """A part of a schema."""

    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""
        raise NotImplementedError

    def draw(self, draw: random.Random, name: str) -> Gold:
        """A gold value; `name` is that of the field."""
        raise NotImplementedError


def words_of(name: str) -> str:
    """The name of a field in words."""
    return name.replace("_", " ")


# ---------------------------------------------------------------------------------------------
# Leaves


def _listed(words: str) -> list[str]:
    return words.split()


FIRST = _listed(
    "Anna Bruno Clara David Elena Farid Greta Henrik Ines Jonas Karin Luc Maria Ngozi Olaf Petra Quentin Rosa "
    "Samir Tilda Ulrich Vera Wanda Yusuf Zoe"
)
LAST = _listed(
    "Albers Brandt Castell Duarte Engel Faber Grote Hollister Iversen Jansen Keller Lindqvist Moreau Nowak Okafor "
    "Petersen Quist Rossi Sandoval Thorne Ullman Vance Weber Ybarra Zeller"
)
CITIES = _listed(
    "Aarhus Bergen Cork Dresden Evora Fulda Gdansk Hexham Innsbruck Jena Kassel Leeds Malmo Nantes Oulu Porto Rouen "
    "Segovia Tampere Utrecht Varna Windau Yverdon Zagreb"
)
FIRMS = _listed(
    "Northbrook Calder Pinewood Sterling Halcyon Meridian Redstone Kestrel Juniper Larkspur Oakhurst Brightwater"
)
THINGS = _listed(
    "bolt bracket crank damper flange gasket gauge girder hinge hopper impeller jack lever manifold nozzle pinion "
    "piston pulley ratchet rotor shaft sleeve spindle sprocket stator strut toggle tripod turbine valve washer winch"
)
ADJECTIVES = _listed(
    "amber brass copper dark early forged grey hollow iron jade keyed lower matte narrow outer plain quick rigid "
    "slim tall upper vented wide"
)
LABELS = ("draft", "approved", "rejected", "on_hold")
GRADES = (1, 2, 3)
MONTHS = _listed(
    "January February March April May June July August September October November December"
)
SMALL = _listed("two three four five six seven eight nine ten eleven twelve")

Drawn = tuple[Any, Any, str]
"""A value, what a model says of it, and what the document shows."""


def _same(text: str) -> Drawn:
    return text, text, text


def _count(draw: random.Random) -> Drawn:
    if draw.random() < 0.1:
        n = draw.randrange(len(SMALL))
        return n + 2, n + 2, SMALL[n]
    return _figure(draw)


def _figure(draw: random.Random) -> Drawn:
    n = draw.randint(13, 99_999)
    return n, n, draw.choice((f"{n}", f"{n:,}"))


def amount_shown(number: float, draw: random.Random) -> str:
    """A number of two decimals in one of the notations of texts."""
    plain = f"{number:.2f}"
    forms = [plain, f"{number:,.2f}", f"EUR {number:,.2f}", f"${number:,.2f}", f"{number:,.2f} EUR"]
    if number >= 1_000:
        forms.append(f"{number:,.2f}".translate(str.maketrans(",.", ".,")))
    return draw.choice(forms)


def _amount(draw: random.Random) -> Drawn:
    if draw.random() < 0.1:
        tenths = draw.randint(11, 99)
        return tenths * 100_000, tenths * 100_000, f"{tenths / 10} million"
    number = draw.randint(1_001, 9_999_999) / 100
    return number, number, amount_shown(number, draw)


def _share(draw: random.Random) -> Drawn:
    number = draw.randint(11, 999) / 10
    return number, number, draw.choice((f"{number}%", f"{number} %", f"{number} percent"))


def _weight(draw: random.Random) -> Drawn:
    grams = 10 * draw.randint(15, 999)  # three decimals could be thousands
    shown = draw.choice((f"{grams} g", f"{grams / 1_000:g} kg"))
    return grams / 1_000, grams / 1_000, shown


def date_shown(day: date, draw: random.Random) -> str:
    """A day in one of the notations of texts; none in which day and month could be swapped."""
    month = MONTHS[day.month - 1]
    forms = [
        day.isoformat(), f"{day.day} {month} {day.year}", f"{month} {day.day}, {day.year}",
        f"{day.day} {month[:3]} {day.year}",
    ]  # fmt: skip
    if day.day > 12:
        forms += [f"{day:%d/%m/%Y}", f"{day:%d.%m.%Y}"]
    return draw.choice(forms)


def _day(draw: random.Random) -> Drawn:
    day = date(draw.randint(1991, 2025), draw.randint(1, 12), draw.randint(1, 28))
    return day.isoformat(), day.isoformat(), date_shown(day, draw)


def _label(draw: random.Random) -> Drawn:
    value = draw.choice(LABELS)
    return value, value, draw.choice((value.replace("_", " "), value.replace("_", " ").title()))


def _either(draw: random.Random) -> Drawn:
    """A number or a text."""
    if draw.random() < 0.5:
        return _same(draw.choice(("upon request", "see annex", "not before spring", "variable")))
    if draw.random() < 0.5:
        number: float = draw.randint(13, 9_999)
        return number, number, f"{number}"
    number = draw.randint(1_001, 99_999) / 100
    return number, number, f"{number:g}"


def _thing(draw: random.Random) -> Drawn:
    return _same(
        f"{draw.choice(ADJECTIVES)} {draw.choice(THINGS)} {draw.choice('KLMNPRST')}{draw.randint(2, 99)}"
    )


def _code(draw: random.Random) -> Drawn:
    letters = "".join(draw.sample("ABCDEFGHJKLMNPRSTUVWXYZ", 3))
    return _same(f"{letters}-{draw.randint(1_000, 9_999)}")


KINDS: Mapping[str, tuple[dict[str, Any], Callable[[random.Random], Drawn]]] = {
    "person": ({"type": "string"}, lambda draw: _same(f"{draw.choice(FIRST)} {draw.choice(LAST)}")),
    "city": ({"type": "string", "maxLength": 60}, lambda draw: _same(draw.choice(CITIES))),
    "firm": ({"type": "string", "minLength": 2}, lambda draw: _same(
        f"{draw.choice(FIRMS)} {draw.choice(LAST)} {draw.choice(('Ltd', 'GmbH', 'Inc'))}"
    )),
    "thing": ({"type": "string"}, _thing),
    "code": ({"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"}, _code),
    "mail": ({"type": "string", "format": "email"}, lambda draw: _same(
        f"{draw.choice(FIRST)}.{draw.choice(LAST)}@{draw.choice(FIRMS)}.example".lower()
    )),
    "count": ({"type": "integer", "minimum": 0}, _count),
    "figure": ({"type": "integer"}, _figure),
    "amount": ({"type": "number", "exclusiveMinimum": 0}, _amount),
    "share": ({"type": "number", "minimum": 0, "maximum": 100}, _share),
    "weight": ({"type": "number"}, _weight),
    "day": ({"type": "string", "format": "date"}, _day),
    "flag": ({"type": "boolean"}, lambda draw: draw.choice(((True, True, "yes"), (False, False, "no")))),
    "label": ({"type": "string", "enum": list(LABELS)}, _label),
    "grade": ({"enum": list(GRADES)}, lambda draw: (n := draw.choice(GRADES), str(n), str(n))),
    "either": ({"type": ["number", "string"]}, _either),
}  # fmt: skip


@dataclass(frozen=True)
class Leaf(Shape):
    """A single value of a kind, which may be missing if it is nullable."""

    kind: str
    is_nullable: bool = False
    stated: float = 0.75
    """How often a nullable one is stated."""

    def schema(self) -> dict[str, Any]:
        schema = dict(KINDS[self.kind][0])
        if not self.is_nullable:
            return schema
        kind = schema.get("type")
        if "enum" in schema or isinstance(kind, list):
            return {"anyOf": [schema, {"type": "null"}]}
        return {**schema, "type": [kind, "null"]}

    def draw(self, draw: random.Random, name: str) -> Gold:
        if self.is_nullable and draw.random() >= self.stated:
            return None
        return Told(self.kind, *KINDS[self.kind][1](draw), name=words_of(name))


# ---------------------------------------------------------------------------------------------
# Composed shapes


@dataclass(frozen=True)
class Object(Shape):
    """Named fields; those that may be None or empty are not required."""

    fields: Mapping[str, Shape]
    extra: Mapping[str, Any] = field(default_factory=dict)
    """More keywords, such as annotations that nobody knows."""

    def schema(self) -> dict[str, Any]:
        required = [name for name, each in self.fields.items() if not _may_miss(each)]
        return {
            "type": "object", "properties": {name: each.schema() for name, each in self.fields.items()},
            "required": required, "additionalProperties": False, **self.extra,
        }  # fmt: skip

    def draw(self, draw: random.Random, name: str) -> Gold:
        return {key: each.draw(draw, key) for key, each in self.fields.items()}


def _may_miss(shape: Shape) -> bool:
    return isinstance(shape, Maybe) or (isinstance(shape, Leaf) and shape.is_nullable)


@dataclass(frozen=True)
class Maybe(Shape):
    """An object that may be missing."""

    of: Shape

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [self.of.schema(), {"type": "null"}]}

    def draw(self, draw: random.Random, name: str) -> Gold:
        return None if draw.random() < 0.3 else self.of.draw(draw, name)


@dataclass(frozen=True)
class Listed(Shape):
    """A list; one entry in ten is told twice."""

    of: Shape
    low: int = 0
    high: int = 6
    has_repeats: bool = True

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": self.of.schema()}

    def draw(self, draw: random.Random, name: str) -> Gold:
        entries: list[Gold] = []
        for _ in range(draw.randint(self.low, self.high)):
            if entries and self.has_repeats and draw.random() < 0.1:
                entries.append(copied(entries[-1]))
            else:
                entries.append(self.of.draw(draw, name))
        return entries


def copied(gold: Gold) -> Gold:
    """The same once more, with places of its own."""
    if isinstance(gold, Told):
        return Told(gold.kind, gold.value, gold.said, gold.shown, gold.name)
    if isinstance(gold, Keyed):
        return Keyed([(copied(key), copied(each)) for key, each in gold.entries])
    if isinstance(gold, dict):
        return {name: copied(each) for name, each in gold.items()}
    return type(gold)(map(copied, gold)) if isinstance(gold, list | tuple) else gold


@dataclass(frozen=True)
class Tuple(Shape):
    """A fixed number of values, known by their places."""

    of: Sequence[Shape]

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "prefixItems": [each.schema() for each in self.of], "items": False}

    def draw(self, draw: random.Random, name: str) -> Gold:
        return tuple(each.draw(draw, f"{name} {i}") for i, each in enumerate(self.of, start=1))


@dataclass(frozen=True)
class Map(Shape):
    """An object whose keys the document says."""

    of: Shape
    low: int = 0
    high: int = 6
    pattern: str = ""

    def schema(self) -> dict[str, Any]:
        if self.pattern:
            return {"type": "object", "patternProperties": {self.pattern: self.of.schema()}}
        return {"type": "object", "additionalProperties": self.of.schema()}

    def draw(self, draw: random.Random, name: str) -> Gold:
        keys = draw.sample(THINGS, draw.randint(self.low, self.high))
        return Keyed(
            [(Told("key", key, key, key, "key"), self.of.draw(draw, name)) for key in keys]
        )


@dataclass(frozen=True)
class Tagged(Shape):
    """One of several objects, told apart by a literal."""

    tag: str
    variants: Mapping[str, Object]
    keyword: str = "oneOf"

    def schema(self) -> dict[str, Any]:
        return {self.keyword: [
            {**each, "properties": {self.tag: {"const": name}, **each["properties"]}, "required": [self.tag, *each["required"]]}
            for name, each in ((name, of.schema()) for name, of in self.variants.items())
        ]}  # fmt: skip

    def draw(self, draw: random.Random, name: str) -> Gold:
        tag = draw.choice(list(self.variants))
        told = Told("tag", tag, tag, tag, words_of(self.tag))
        return {self.tag: told, **self.variants[tag].draw(draw, name)}


@dataclass(frozen=True)
class TextOr(Shape):
    """A text or an object."""

    text: Leaf
    of: Object
    keyword: str = "anyOf"

    def schema(self) -> dict[str, Any]:
        return {self.keyword: [self.text.schema(), self.of.schema()]}

    def draw(self, draw: random.Random, name: str) -> Gold:
        return draw.choice((self.text, self.of)).draw(draw, name)


@dataclass(frozen=True)
class Referred(Shape):
    """Another shape, in `$defs` under its name."""

    name: str
    of: Shape

    def schema(self) -> dict[str, Any]:
        return {"$ref": f"#/$defs/{self.name}", "_defs": {self.name: self.of.schema()}}

    def draw(self, draw: random.Random, name: str) -> Gold:
        return self.of.draw(draw, name)


@dataclass(frozen=True)
class AllOf(Shape):
    """An object whose fields stand in several schemas."""

    parts: Sequence[Object]

    def schema(self) -> dict[str, Any]:
        return {"allOf": [
            {k: v for k, v in part.schema().items() if k != "additionalProperties"}
            for part in self.parts
        ]}  # fmt: skip

    def draw(self, draw: random.Random, name: str) -> Gold:
        return {k: v for part in self.parts for k, v in part.draw(draw, name).items()}


def schema_of(shape: Shape) -> dict[str, Any]:
    """The whole JSON Schema of a shape."""
    defs: dict[str, Any] = {}

    def gathered(node: Any) -> Any:
        if isinstance(node, list):
            return [gathered(each) for each in node]
        if not isinstance(node, dict):
            return node
        for name, each in node.get("_defs", {}).items():
            defs[name] = gathered(each)
        return {key: gathered(each) for key, each in node.items() if key != "_defs"}

    whole = gathered(shape.schema())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **whole,
        **({"$defs": defs} if defs else {}),
    }


# ---------------------------------------------------------------------------------------------
# The shapes of the tests

_SIDES = _listed(
    "opening closing average domestic foreign deferred gross net former current segment interim annual pledged "
    "adjusted reported disputed insured leased consolidated secured"
)
_NOUNS = {
    "balance": "amount", "revenue": "amount", "cost": "amount", "reserve": "amount", "headcount": "count",
    "units": "count", "auditor": "firm", "bank": "firm", "manager": "person", "seat": "city",
    "filing_date": "day", "expiry_date": "day", "rating": "label", "listed": "flag", "share": "share",
    "reference": "code", "tier": "grade", "note": "either",
}  # fmt: skip


def _flat() -> Object:
    names = [(f"{side}_{noun}", kind) for noun, kind in _NOUNS.items() for side in _SIDES]
    return Object({name: Leaf(kind, is_nullable=True) for name, kind in names[:369]})


_ADDRESS = Object(
    {"street": Leaf("thing"), "city": Leaf("city"), "postcode": Leaf("code", is_nullable=True)}
)

SHAPES: Mapping[str, Shape] = {
    "letter": Object({
        "patient": Leaf("person"), "born_on": Leaf("day"), "seen_on": Leaf("day"), "weight_kg": Leaf("weight"),
        "smoker": Leaf("flag", is_nullable=True), "state": Leaf("label"), "clinic": Leaf("firm"),
        "visits": Leaf("count"), "fee": Leaf("amount", is_nullable=True), "mail": Leaf("mail"),
        "address": _ADDRESS,
        "drugs": Listed(Object({"name": Leaf("thing"), "daily_tablets": Leaf("count", is_nullable=True), "since": Leaf("day")})),
        "allergies": Listed(Leaf("thing")),
    }),
    "flat": _flat(),
    "lists in lists": Object({
        "title": Leaf("thing"),
        "grid": Listed(Listed(Leaf("amount"), 1, 5), 1, 5, has_repeats=False),
        "chapters": Listed(Object({
            "heading": Leaf("thing"), "pages": Leaf("count"), "authors": Listed(Leaf("person"), 0, 3),
            "sections": Listed(Object({
                "name": Leaf("code"), "editor": Leaf("person", is_nullable=True),
                "readings": Listed(Listed(Leaf("figure"), 1, 4), 0, 3, has_repeats=False),
            }), 0, 3, has_repeats=False),
        }), 1, 4, has_repeats=False),
    }),
    "number or string": Object({
        "supplier": Leaf("firm"), "price": Leaf("either"), "deposit": Leaf("either", is_nullable=True),
        "rates": Listed(Leaf("either"), 0, 5),
        "terms": Listed(Object({"article": Leaf("thing"), "limit": Leaf("either"), "fee": Leaf("either", is_nullable=True)})),
    }),
    "texts or objects": Object({
        "journal": Leaf("firm"),
        "references": Listed(TextOr(Leaf("thing"), Object({"author": Leaf("person"), "year": Leaf("count"), "place": Leaf("city", is_nullable=True)})), 1, 8, has_repeats=False),
    }),
    "wrapped": Object({"result": Object({
        "report": Referred("Report", AllOf([
            Object({"number": Leaf("code"), "issued_on": Leaf("day")}),
            Object({"author": Leaf("person"), "office": Maybe(Referred("Address", _ADDRESS))}),
        ])),
        "home": Referred("Address", _ADDRESS),
        "amounts": Object({"net": Leaf("amount"), "tax": Leaf("amount", is_nullable=True)}, extra={"x-order": 3, "evaluation": {"metric": "exact"}}),
    })}, extra={"evaluation_config": "string_fuzzy", "widget": "form"}),
    "order": Object({
        "number": Leaf("code"), "ordered_on": Leaf("day"), "paid": Leaf("flag"),
        "customer": Object({"name": Leaf("person"), "address": _ADDRESS}),
        "lines": Listed(Object({
            "article": Leaf("thing"), "quantity": Leaf("count"), "price": Leaf("amount"), "state": Leaf("label", is_nullable=True),
            "deliveries": Listed(Object({"day": Leaf("day"), "pieces": Leaf("count"), "carrier": Leaf("firm", is_nullable=True)}), 0, 3),
        }), 1, 6),
        "total": Leaf("amount"),
    }),
    "maps": Object({
        "depot": Leaf("city"),
        "stock": Map(Leaf("count"), 1, 6),
        "contacts": Map(Object({"name": Leaf("person"), "since": Leaf("day", is_nullable=True)}), 0, 5),
        "cities": Map(Listed(Leaf("city"), 1, 3, has_repeats=False), 0, 3, pattern="^[a-z]+$"),
    }),
    "tuples": Object({
        "station": Leaf("thing"), "position": Tuple((Leaf("amount"), Leaf("amount"), Leaf("city"))),
        "samples": Listed(Tuple((Leaf("day"), Leaf("count"))), 0, 5, has_repeats=False),
    }),
    "unions": Object({
        "invoice": Leaf("code"),
        "owner": Tagged("type", {
            "private": Object({"name": Leaf("person"), "born_on": Leaf("day")}),
            "company": Object({"name": Leaf("firm"), "employees": Leaf("count", is_nullable=True)}),
        }),
        "payments": Listed(Tagged("method", {
            "card": Object({"card_number": Leaf("code"), "amount": Leaf("amount")}),
            "transfer": Object({"bank": Leaf("firm"), "amount": Leaf("amount"), "paid_on": Leaf("day")}),
            "cash": Object({"cashier": Leaf("person")}),
        }, keyword="anyOf"), 1, 6),
    }),
    "names": Object({
        "document": Leaf("code"), "value": Leaf("amount"), "quote": Leaf("thing"), "status": Leaf("label"),
        "اسم المريض": Leaf("person"), "undecided": Leaf("count"), "rows": Listed(Leaf("city"), 0, 3),
        "key": Map(Object({"key": Leaf("code"), "value": Leaf("amount")}), 0, 3),
        "entries": Listed(Object({"value": Leaf("amount"), "quote": Leaf("thing"), "document": Leaf("code"), "status": Leaf("flag")}), 0, 4),
        "x" * 120: Leaf("person"),
    }),
}  # fmt: skip
