"""140 questions about a directory, with gold queries, and gold answers that no query computes.

The answers are computed from the records as objects, before they are written as cells: a fault of the
query code, or of how cells are read, shows as a difference.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any

from experiments.directory.records import CITIES, LANGUAGES, SERVICES, Record

PER_KIND = 10

Found = list[tuple[int, Record]]


@dataclass(frozen=True)
class Question:
    """A question with its gold."""

    kind: str
    text: str
    query: dict[str, Any]
    rows: tuple[int, ...] = ()
    figures: tuple[tuple[str, ...], ...] = ()


def questions(found: Sequence[Record], seed: int = 1) -> list[Question]:
    """Ten questions of each kind."""
    rng = random.Random(seed)
    every = list(enumerate(found))
    made = []
    for kind in KINDS:
        texts: set[str] = set()
        while len(texts) < PER_KIND:
            question = kind(rng, every)
            if question.text not in texts and (question.rows or question.figures):
                texts.add(question.text)
                made.append(question)
    return made


def _is(column: str, value: str) -> dict[str, Any]:
    return {"column": column, "op": "is", "value": value}


def _has(column: str, value: str) -> dict[str, Any]:
    return {"column": column, "op": "contains", "value": value}


def _all(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"all": list(parts)}


def _rows(found: Found, test: Callable[[Record], bool]) -> tuple[int, ...]:
    return tuple(i for i, record in found if test(record))


def _city(rng: random.Random) -> tuple[str, str]:
    return rng.choice(list(CITIES.items()))


def _service(rng: random.Random) -> tuple[str, str]:
    return rng.choice(list(SERVICES.items()))


def service_in_city(rng: random.Random, found: Found) -> Question:
    """Neither the city nor the service is called as in the table."""
    (city, said), (service, asked) = _city(rng), _service(rng)
    return Question(
        "service in city",
        f"Where can I see a {asked} in {said}?",
        {
            "select": ["Clinic name", "Address", "Phone"],
            "where": _all(_is("City", city), _has("Services", service)),
        },
        _rows(found, lambda r: r.city == city and service in r.services),
    )


def how_many(rng: random.Random, found: Found) -> Question:
    """A count."""
    city, said = _city(rng)
    kind = rng.choice(("Pharmacy", "Laboratory", "Hospital clinic"))
    rows = _rows(found, lambda r: r.city == city and r.kind == kind)
    plural = {
        "Pharmacy": "pharmacies",
        "Laboratory": "laboratories",
        "Hospital clinic": "hospital clinics",
    }[kind]
    return Question(
        "count",
        f"How many {plural} are there in {said}?",
        {
            "where": _all(_is("City", city), _is("Clinic type", kind)),
            "aggregate": {"function": "count"},
        },
        rows,
        ((str(len(rows)),),),
    )


def asked_about(rng: random.Random, found: Found) -> Question:
    """The column asked about is shown, not filtered on."""
    _, record = rng.choice(found)
    rows = _rows(found, lambda r: r.name == record.name and r.city == record.city)
    return Question(
        "shown, not filtered on",
        f"Does the {record.name} in {CITIES[record.city]} allow service animals?",
        {
            "select": ["Accessibility"],
            "where": _all(_is("Clinic name", record.name), _is("City", record.city)),
        },
        rows,
    )


def named_after(rng: random.Random, found: Found) -> Question:
    """A clinic that bears the name of another city."""
    named = [
        (i, r) for i, r in found if any(r.name.startswith(f"{c} ") for c in CITIES if c != r.city)
    ]
    _, record = rng.choice(named)
    return Question(
        "named after another city",
        f"What is the phone number of the {record.name} in {CITIES[record.city]}?",
        {
            "select": ["Phone"],
            "where": _all(_is("Clinic name", record.name), _is("City", record.city)),
        },
        _rows(found, lambda r: r.name == record.name and r.city == record.city),
    )


def by_street(rng: random.Random, found: Found) -> Question:
    """A city that is the name of a street."""
    city, said = _city(rng)
    street = rng.choice([one for one in CITIES if one != city])
    return Question(
        "street of another city",
        f"Which clinics in {said} are on {street} Road?",
        {
            "select": ["Clinic name"],
            "where": _all(_is("City", city), _has("Address", f"{street} Road")),
        },
        _rows(found, lambda r: r.city == city and r.address.startswith(f"{street} Road")),
    )


def most_in_city(rng: random.Random, found: Found) -> Question:
    """Groups, the largest first; ties stand as in the table."""
    service, asked = _service(rng)
    n = rng.randrange(2, 6)
    matching = [(i, r) for i, r in found if service in r.services]
    counts = Counter(r.city for _, r in matching)  # in the order in which cities occur
    best = sorted(counts.items(), key=lambda pair: -pair[1])[:n]
    cities = {city for city, _ in best}
    return Question(
        "groups",
        f"Which {n} cities have most clinics with a {asked}?",
        {
            "where": _has("Services", service), "group": ["City"], "aggregate": {"function": "count"},
            "sort": {"by": "count", "descending": True}, "limit": n,
        },
        tuple(i for i, r in matching if r.city in cities),
        tuple((city, str(count)) for city, count in best),
    )  # fmt: skip


def mean_wait(rng: random.Random, found: Found) -> Question:
    """A mean over cells of which some are empty."""
    (city, said), (service, asked) = _city(rng), _service(rng)
    matching = [(i, r) for i, r in found if r.city == city and service in r.services]
    days = [r.waiting_days for _, r in matching if r.waiting_days is not None]
    mean = Fraction(sum(days), len(days)) if days else None
    figure = "" if mean is None else str(int(mean)) if mean.denominator == 1 else repr(float(mean))
    return Question(
        "mean",
        f"How long does one wait on average for a {asked} in {said}?",
        {
            "where": _all(_is("City", city), _has("Services", service)),
            "aggregate": {"function": "mean", "column": "Waiting days"},
        },
        tuple(i for i, _ in matching),
        ((figure,),) if days else (),
    )


def shortest_wait(rng: random.Random, found: Found) -> Question:
    """An order with a limit."""
    (city, said), (service, asked) = _city(rng), _service(rng)
    matching = [
        (r.waiting_days, i)
        for i, r in found
        if r.city == city and service in r.services and r.waiting_days is not None
    ]
    return Question(
        "order",
        f"Which clinic in {said} has the shortest waiting time for a {asked}?",
        {
            "select": ["Clinic name", "Waiting days"], "where": _all(_is("City", city), _has("Services", service)),
            "sort": {"by": "Waiting days"}, "limit": 1,
        },
        (min(matching)[1],) if matching else (),
    )  # fmt: skip


def opened_since(rng: random.Random, found: Found) -> Question:
    """A date."""
    city, said = _city(rng)
    year = rng.randrange(2015, 2023)
    return Question(
        "date",
        f"Which hospital clinics in {said} opened after {year}?",
        {
            "select": ["Clinic name", "Opened"],
            "where": _all(_is("City", city), _is("Clinic type", "Hospital clinic"), {"column": "Opened", "op": "after", "value": str(year)}),
        },
        _rows(found, lambda r: r.city == city and r.kind == "Hospital clinic" and r.opened > date(year, 12, 31)),
    )  # fmt: skip


def either(rng: random.Random, found: Found) -> Question:
    """One of two."""
    (one, said), (other, also) = rng.sample(list(CITIES.items()), 2)
    service, asked = _service(rng)
    return Question(
        "either of two",
        f"Is there a {asked} in {said} or {also}?",
        {
            "select": ["Clinic name", "Phone"],
            "where": _all(
                {"any": [_is("City", one), _is("City", other)]}, _has("Services", service)
            ),
        },
        _rows(found, lambda r: r.city in (one, other) and service in r.services),
    )


def without_website(rng: random.Random, found: Found) -> Question:
    """An empty cell."""
    city, said = _city(rng)
    return Question(
        "empty cells",
        f"Which laboratories in {said} have no website?",
        {
            "select": ["Clinic name", "Phone"],
            "where": _all(_is("City", city), _is("Clinic type", "Laboratory"), {"column": "Website", "op": "is empty"}),
        },
        _rows(found, lambda r: r.city == city and r.kind == "Laboratory" and not r.website),
    )  # fmt: skip


def with_remark(rng: random.Random, found: Found) -> Question:
    """Prose, which says `No parking` as well."""
    city, said = _city(rng)
    return Question(
        "prose",
        f"Which imaging centres in {said} have free parking?",
        {
            "select": ["Clinic name", "Address"],
            "where": _all(_is("City", city), _is("Clinic type", "Imaging centre"), _has("Remarks", "free parking")),
        },
        _rows(found, lambda r: r.city == city and r.kind == "Imaging centre" and "Free parking" in r.remarks),
    )  # fmt: skip


def how_many_cities(rng: random.Random, found: Found) -> Question:
    """Different values."""
    service, asked = _service(rng)
    days = rng.randrange(1, 8)
    rows = _rows(
        found,
        lambda r: service in r.services and r.waiting_days is not None and r.waiting_days < days,
    )
    cities = {found[i][1].city for i in rows}
    return Question(
        "different values",
        f"In how many cities can one see a {asked} in less than {days} days?",
        {
            "where": _all(
                _has("Services", service),
                {"column": "Waiting days", "op": "before", "value": str(days)},
            ),
            "aggregate": {"function": "count different", "column": "City"},
        },
        rows,
        ((str(len(cities)),),),
    )


def speaks(rng: random.Random, found: Found) -> Question:
    """A list in a cell, and what is not."""
    (city, said), (service, asked) = _city(rng), _service(rng)
    language = rng.choice(LANGUAGES)
    return Question(
        "list and negation",
        f"Which clinics in {said} with a {asked} speak {language} and are not private clinics?",
        {
            "select": ["Clinic name", "Languages"],
            "where": _all(
                _is("City", city), _has("Services", service), _has("Languages", language),
                {"no": _is("Clinic type", "Private clinic")},
            ),
        },
        _rows(found, lambda r: r.city == city and service in r.services and language in r.languages and r.kind != "Private clinic"),
    )  # fmt: skip


KINDS: tuple[Callable[[random.Random, Found], Question], ...] = (
    service_in_city, how_many, asked_about, named_after, by_street, most_in_city, mean_wait,
    shortest_wait, opened_since, either, without_website, with_remark, how_many_cities, speaks,
)  # fmt: skip
