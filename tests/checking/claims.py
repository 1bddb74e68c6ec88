"""Documents with true claims and lies about them; what is true is known from how they are made.

A sentence of a document is drawn from `sentences.toml`, `fields.toml` or `lists.toml` with the claims that follow from
it and those that do not. `HARD` lies disagree with their quote in a number, unit, scale, sign, date,
quotation or cut token, which needs no understanding; the others say something else in the same words.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

from pearl.dsl.fields import Field, parse_fields

HARD = frozenset({"number", "unit", "scale", "sign", "date", "quote", "cut"})
LANGUAGES = ("en", "de", "fr", "zh")


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text("utf-8"))


LISTS: Mapping[str, Mapping[str, str]] = _table("lists")
SENTENCES: Mapping[str, Sequence[Mapping[str, Any]]] = {
    language: [{"text": text, **row} for text, row in rows.items()]
    for language, rows in _table("sentences").items()
}
FIELDS: Mapping[str, Mapping[str, Any]] = _table("fields")


def _rows(language: str, about: str) -> list[Mapping[str, Any]]:
    """The fields of persons or companies, each with sentences that decide it."""
    return [
        {"field": field, "text": texts.split(" | "), **row}
        for field, rows in FIELDS[language][about].items()
        for texts, row in rows.items()
    ]


# ---------------------------------------------------------------------------------------------
# Slots

_LATIN = {
    "PQ": ["Maria Keller", "Tom Ashby", "Ruth Calder", "Owen Pryce", "Ada Finch", "Karl Lund", "Ines Marchal", "Paul Voss"],
    "CB": ["Northbrook", "Halden", "Castoria", "Brandis", "Varga", "Lumeris", "Ostrava Glass", "Pelikan"],
    "TU": ["Ashford", "Lindau", "Vernon", "Marrow", "Celle", "Dole", "Hexham"],
    "RS": ["lisinopril", "metformin", "ramipril", "bisoprolol", "torasemid"],
}  # fmt: skip
_CHINESE = {
    "PQ": ["王晓梅", "李建国", "陈思远", "赵文静", "周立新", "吴海燕"],
    "CB": ["北溪公司", "海丰公司", "松岭公司", "金河公司", "远航公司"],
    "TU": ["青岛", "无锡", "桂林", "大连", "苏州"],
    "RS": ["阿司匹林", "布洛芬", "雷米普利", "氯沙坦"],
}
_MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
}
_FILLERS = {
    "en": ["The weather was mild that week.", "Somebody had left the window open.", "The minutes were kept by hand.", "A cart stood in the yard.", "The clock in the hall was slow."],
    "de": ["Das Wetter war in jener Woche mild.", "Jemand hatte das Fenster offen gelassen.", "Das Protokoll wurde von Hand geführt.", "Ein Karren stand im Hof.", "Die Uhr in der Halle ging nach."],
    "fr": ["Le temps était doux cette semaine-là.", "Quelqu'un avait laissé la fenêtre ouverte.", "Le registre était tenu à la main.", "Une charrette attendait dans la cour.", "L'horloge du hall retardait."],
    "zh": ["那个星期天气温和。", "有人没有关窗。", "记录是手写的。", "院子里停着马车。", "大厅的钟走得慢。"],
}  # fmt: skip
N_FILLERS = 2
"""Sentences between two that matter, so that the one does not stand around a quote of the other."""


class _Date(NamedTuple):
    day: date
    language: str

    def __format__(self, spec: str) -> str:
        if self.language == "zh":
            return f"{self.day.year}年{self.day.month}月{self.day.day}日"
        month = _MONTHS[self.language].split()[self.day.month - 1]
        return f"{self.day.day}{'.' * (self.language == 'de')} {month} {self.day.year}"

    @property
    def iso(self) -> str:
        return self.day.isoformat()

    @property
    def written(self) -> str:
        """The date in another form."""
        form = {"en": "%B %d, %Y", "de": "%d.%m.%Y", "fr": "%d.%m.%Y", "zh": "%Y-%m-%d"}
        return self.day.strftime(form[self.language])

    @property
    def moved(self) -> _Date:
        """The same day of another month, which no other date of a document has."""
        return _Date(self.day.replace(month=(self.day.month + 5) % 12 + 1), self.language)


class _Large(NamedTuple):
    number: int
    language: str

    def __format__(self, spec: str) -> str:
        comma = {"en": ",", "de": ".", "fr": " ", "zh": ""}[self.language]
        return f"{self.number:,}".replace(",", comma)

    @property
    def end(self) -> int:
        return self.number % 1_000_000

    @property
    def tail(self) -> _Large:
        return _Large(self.end, self.language)


def slots(language: str, draw: random.Random) -> dict[str, Any]:
    """Values for the slots of the sentences of one document."""
    names = _CHINESE if language == "zh" else _LATIN
    filled: dict[str, Any] = {}
    for pair, pool in names.items():
        filled |= zip(pair, draw.sample(pool, 2), strict=True)
    filled |= zip("nm", draw.sample(range(31, 90), 2), strict=True)
    filled |= zip("YZ", draw.sample(range(1991, 2025), 2), strict=True)
    days, months = draw.sample(range(2, 29), 3), draw.sample(range(1, 7), 3)
    year = draw.randint(1950, 1979)  # D is before E, which is before F
    for i, name in enumerate("DEF"):
        filled[name] = _Date(date(year + i, months[i], days[i]), language)
    number = (draw.randint(1, 29) * 1_000 + draw.randint(101, 999)) * 1_000 + draw.randint(101, 999)
    filled["K"] = _Large(number, language)
    return filled


def fill(value: Any, filled: Mapping[str, Any]) -> Any:
    """A template with its slots filled."""
    if isinstance(value, str):
        return value.format(**filled)
    if isinstance(value, list):
        return [fill(each, filled) for each in value]
    if isinstance(value, dict):
        return {name: fill(each, filled) for name, each in value.items()}
    return value


def _document(sentences: Sequence[str], language: str, draw: random.Random) -> str:
    blank = "" if language == "zh" else " "
    fillers = cycle(draw.sample(_FILLERS[language], len(_FILLERS[language])))
    paragraphs = [
        blank.join([*(next(fillers) for _ in range(N_FILLERS)), sentence]) for sentence in sentences
    ]
    return "\n\n".join([*paragraphs, next(fillers)])


# ---------------------------------------------------------------------------------------------
# Sentences of composed answers


class Sentence(NamedTuple):
    """A sentence that a composer writes; `kind` is that of a lie, "" for a true one."""

    text: str
    kind: str
    cites: int
    source: str
    """The sentence of the document that decides it, which a wrong citation does not cite."""


@dataclass(frozen=True)
class Composition:
    """A document, the sentences of it that steps quote, and an answer composed of these."""

    language: str
    document: str
    facts: tuple[str, ...]
    sentences: tuple[Sentence, ...]

    @property
    def is_hard(self) -> bool:
        """Whether one of them has a number, date or quotation that the document does not have."""
        return any(each.kind in HARD for each in self.sentences)


def lies(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The kinds and templates of the lies of a row."""
    for kind, values in row.items():
        if kind not in ("text", "field", "true"):
            yield from ((kind, value) for value in values)


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def compositions(n_lies: int, seed: int = 1) -> Iterator[Composition]:
    """Composed answers with this number of lies in all; every template of a lie has its turn."""
    draw = random.Random(seed)
    turns = {
        (language, is_hard): [
            (i, kind, text)
            for i, row in enumerate(SENTENCES[language])
            for kind, text in lies(row)
            if (kind in HARD) == is_hard
        ]
        for is_hard in (False, True) for language in LANGUAGES
    }  # fmt: skip
    for turn in turns.values():
        draw.shuffle(turn)
    left = {key: iter(cycle(turn)) for key, turn in turns.items()}
    # A hard lie stands alone, as one of them is enough to give up the answer.
    order = [*((language, False) for language in LANGUAGES * 3), *((la, True) for la in LANGUAGES)]
    for language, is_hard in cycle(order):
        if n_lies <= 0:
            return
        turn = left[language, is_hard]
        wanted = [next(turn) for _ in range(1 if is_hard or draw.random() < 0.2 else MAX_LIES)]
        made = _composition(language, wanted, draw)
        n_lies -= sum(bool(each.kind) for each in made.sentences)
        yield made


MAX_LIES, MAX_SENTENCES, MAX_VALUES = 2, 7, 5
"""Of an answer or record; most of it is true, as an answer of which more than half falls is given up."""


def _composition(
    language: str, wanted: Sequence[tuple[int, str, str]], draw: random.Random
) -> Composition:
    rows, filled = SENTENCES[language], slots(language, draw)
    lie_of = {i: (kind, lie) for i, kind, lie in wanted}
    rest = [i for i in range(len(rows)) if i not in lie_of]
    order = [*lie_of, *draw.sample(rest, MAX_SENTENCES - len(lie_of))]
    draw.shuffle(order)
    facts = [fill(rows[i]["text"], filled) for i in order]
    sentences = []
    for at, i in enumerate(order):
        kind, text = lie_of.get(i) or ("", draw.choice(rows[i]["true"]))
        sentences.append(Sentence(fill(text, filled), kind, at, facts[at]))
    plain = [i for i, each in enumerate(sentences) if not each.kind and not _has_digit(each.text)]
    if plain and len(lie_of) == 1 and not HARD & {each.kind for each in sentences}:
        at = draw.choice(plain)  # a true sentence that cites another one, far from its own
        elsewhere = draw.choice([i for i in range(len(facts)) if abs(i - at) > 1])
        sentences[at] = sentences[at]._replace(kind="citation", cites=elsewhere)
    draw.shuffle(sentences)
    return Composition(language, _document(facts, language, draw), tuple(facts), tuple(sentences))


# ---------------------------------------------------------------------------------------------
# Fields of records


class Value(NamedTuple):
    """What a reader replies for a field; `kind` is that of a lie, "" for a true value."""

    field: Field
    value: Any
    quote: str
    kind: str
    source: str
    """The sentence of the document that decides it."""


@dataclass(frozen=True)
class Extraction:
    """A document about a person or company, and what a reader takes from it."""

    language: str
    document: str
    schema: str
    subject: Value
    values: tuple[Value, ...]


def extractions(n_lies: int, seed: int = 1) -> Iterator[Extraction]:
    """Records with this number of lies in all; every template of a lie has its turn."""
    draw = random.Random(seed)
    turns = {
        (language, about): [
            (i, kind, value)
            for i, row in enumerate(_rows(language, about))
            for kind, value in lies(row)
        ]
        for language in LANGUAGES for about in ("persons", "companies")
    }  # fmt: skip
    for turn in turns.values():
        draw.shuffle(turn)
    left = {key: iter(cycle(turn)) for key, turn in turns.items()}
    for language, about in cycle(turns):
        if n_lies <= 0:
            return
        made = _extraction(language, about, left[language, about], draw)
        n_lies -= sum(bool(each.kind) for each in made.values)
        yield made


def _extraction(
    language: str, about: str, turn: Iterator[tuple[int, str, Any]], draw: random.Random
) -> Extraction:
    rows, filled = _rows(language, about), slots(language, draw)
    chosen: dict[str, tuple[Mapping[str, Any], str, Any]] = {}
    for _ in range(MAX_LIES):
        i, kind, value = next(turn)
        chosen.setdefault(rows[i]["field"], (rows[i], kind, value))
    for row in draw.sample(rows, len(rows)):
        if "true" in row and len(chosen) < MAX_VALUES:
            chosen.setdefault(row["field"], (row, "", draw.choice(row["true"])))
    values, sentences = [], []
    for row, kind, value in chosen.values():
        texts = fill(row["text"], filled)
        told, quote = (*fill(value, filled), 0)[:2]
        (field,) = parse_fields(row["field"])
        shown = texts[quote] if isinstance(quote, int) else quote
        values.append(Value(field, _typed(field, told), shown, kind, texts[0]))
        sentences += texts
    kind_of_subject = FIELDS[language]["person" if about == "persons" else "company"]
    title = fill(kind_of_subject["text"], filled)
    (field,) = parse_fields(kind_of_subject["field"])
    subject = Value(field, filled["P" if about == "persons" else "C"], title, "", title)
    draw.shuffle(sentences)
    judged = [
        i for i, each in enumerate(values) if not each.kind and each.field.type in ("bool", "label")
    ]
    if judged and draw.random() < 0.3:  # a true value with the quote of another one
        at = draw.choice(judged)
        other = draw.choice([each for i, each in enumerate(values) if i != at])
        values[at] = values[at]._replace(kind="citation", quote=other.source)
    schema = ", ".join([kind_of_subject["field"], *chosen])
    document = _document([title, *sentences], language, draw)
    return Extraction(language, document, schema, subject, tuple(values))


def _typed(field: Field, value: Any) -> Any:
    """A value as JSON has it."""
    if field.fields:
        inner = {each.name: each for each in field.fields}
        return [
            {name: _typed(inner[name], each) for name, each in entry.items()} for entry in value
        ]
    return int(value) if field.type in ("int", "number") else value


# ---------------------------------------------------------------------------------------------
# Entries of lists


class Entry(NamedTuple):
    """A row that a reader replies: its name, number and truth, each with its quote."""

    cells: tuple[tuple[str, Any, str], ...]
    kind: str
    sources: tuple[str, ...]
    """The sentences that decide it."""


@dataclass(frozen=True)
class Listing:
    """A document about several people, and the rows that a reader takes from it."""

    language: str
    document: str
    schema: str
    entries: tuple[Entry, ...]


N_ENTRIES = 5
LIST_KINDS = ("swapped", "other", "negation", "number", "quote")


def listings(n_lies: int, seed: int = 1) -> Iterator[Listing]:
    """Lists with this number of false rows in all, two in each."""
    draw = random.Random(seed)
    for i in range((n_lies + 1) // MAX_LIES):
        language = LANGUAGES[i % len(LANGUAGES)]
        yield _listing(language, LIST_KINDS[i // len(LANGUAGES) % len(LIST_KINDS)], draw)


def _listing(language: str, kind: str, draw: random.Random) -> Listing:
    texts = LISTS[language]
    names = draw.sample((_CHINESE if language == "zh" else _LATIN)["PQ"], N_ENTRIES)
    numbers = draw.sample(range(31, 90), N_ENTRIES + 1)
    truths = [True, False, *draw.choices((True, False), k=N_ENTRIES - 2)]
    draw.shuffle(truths)
    counts = [texts["tablets"].format(P=name, n=n) for name, n in zip(names, numbers, strict=False)]
    habits = [
        texts["yes" if truth else "no"].format(P=name)
        for name, truth in zip(names, truths, strict=True)
    ]
    false = draw.sample(range(N_ENTRIES), MAX_LIES)
    entries = []
    for i, name in enumerate(names):
        number, count, truth, habit = numbers[i], counts[i], truths[i], habits[i]
        if i in false:
            other = next(j for j, each in enumerate(truths) if each != truth)
            if kind == "swapped":
                number, count = numbers[other], counts[other]
            elif kind == "other":
                truth, habit = truths[other], habits[other]
            elif kind == "negation":
                truth = not truth
            else:
                number = numbers[-1]
                if kind == "quote":
                    count = texts["tablets"].format(P=name, n=number)
        keys = [field.name for field in parse_fields(texts["schema"])]
        cells = zip(keys, (name, number, truth), (counts[i], count, habit), strict=True)
        entries.append(Entry(tuple(cells), kind if i in false else "", (counts[i], habits[i])))
    sentences = [*draw.sample(counts, N_ENTRIES), *draw.sample(habits, N_ENTRIES)]
    return Listing(language, _document(sentences, language, draw), texts["schema"], tuple(entries))
