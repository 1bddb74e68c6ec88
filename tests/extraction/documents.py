"""A gold record → a document that states it, with the places of each value."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date

from tests.extraction.shapes import Gold, Keyed, Shape, Told, amount_shown, date_shown, words_of

LAYOUTS = ("labelled", "sentences", "table", "numbered")
FILLERS = (
    "The weather was mild that week.", "Somebody had left the window open.", "The minutes were kept by hand.",
    "A cart stood in the yard.", "The clock in the hall was slow.", "Nothing else was said before noon.",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A schema's record in a document."""

    name: str
    shape: Shape
    gold: Gold
    text: str


@dataclass
class Page:
    """A text that grows."""

    draw: random.Random
    is_long: bool = False
    text: str = ""
    _again: list[tuple[str, Told]] = field(default_factory=list)

    def add(self, text: str) -> tuple[int, int]:
        """The place of what is added."""
        start = len(self.text)
        self.text += text
        return start, len(self.text)

    def filler(self) -> None:
        """Sentences that state nothing; many in a long document."""
        n = self.draw.randint(8, 30) if self.is_long else self.draw.randint(0, 2)
        for _ in range(n):
            self.add(self.draw.choice(FILLERS) + " ")
        self.add("\n\n" if n else "\n")

    # -- single values

    def object(self, gold: dict[str, Gold], title: str = "") -> None:
        """The fields of an object: its own values first, then what is nested, under headings."""
        if title:
            self.add(f"{title.capitalize()}\n\n")
        layout = self.draw.choice(LAYOUTS)
        own = [(name, each) for name, each in gold.items() if isinstance(each, Told)]
        for i, (name, told) in enumerate(own, start=1):
            self._leaf(words_of(name), told, layout, i)
            if not title and self.draw.random() < 0.05:
                self._again.append((words_of(name).capitalize(), told))
            if self.is_long and self.draw.random() < 0.1:
                self.add("\n")
                self.filler()
        self.add("\n" if own else "")
        for name, each in gold.items():
            if each is not None and not isinstance(each, Told):
                self.filler()
                self.part(words_of(name), each)

    def _leaf(self, label: str, told: Told, layout: str, i: int) -> None:
        label = label[:1].upper() + label[1:]
        if layout == "sentences":
            self.add("The ")
            told.places.append(self.add(f"{label[:1].lower()}{label[1:]} is {told.shown}"))
            self.add(". ")
        elif layout == "table":
            self.add("| ")
            told.places.append(self.add(f"{label} | {told.shown}"))
            self.add(" |\n")
        else:
            mark, between = ("", ": ") if layout == "labelled" else (f"{i}. ", " - ")
            self.add(mark)
            told.places.append(self.add(f"{label}{between}{told.shown}"))
            self.add("\n")

    def part(self, title: str, gold: Gold) -> None:
        """What is nested."""
        if isinstance(gold, dict):
            self.object(gold, title)
        elif isinstance(gold, Keyed):
            self._map(title, gold)
        elif isinstance(gold, list | tuple):
            self._list(title, gold)

    # -- lists

    def _list(self, title: str, entries: Sequence[Gold]) -> None:
        title = title.capitalize()
        if not entries:
            return
        if all(isinstance(each, Told) for each in entries):
            self._values(title, entries)
        elif all(isinstance(each, list | tuple) for each in entries):
            self._grid(title, entries)
        elif (
            all(isinstance(each, dict) and _is_flat(each) for each in entries)
            and len({tuple(each) for each in entries}) == 1
        ):
            self._rows(title, entries)
        else:
            self._blocks(title, [(f"{title} {i}", each) for i, each in enumerate(entries, start=1)])

    def _values(self, title: str, entries: Sequence[Told]) -> None:
        """On a line each, or on one line for texts."""
        if self.draw.random() < 0.5 and all(
            each.kind in ("person", "city", "thing", "firm") for each in entries
        ):
            self.add(f"{title}: ")
            for i, each in enumerate(entries):
                self.add(", " if i else "")
                each.places.append(self.add(each.shown))
            self.add("\n")
            return
        self.add(f"{title}:\n")
        for each in entries:
            self.add("- ")
            each.places.append(self.add(each.shown))
            self.add("\n")

    def _grid(self, title: str, rows: Sequence[Sequence[Gold]]) -> None:
        """A row on each line; each value is quoted by its row."""
        mark = self.draw.choice((" | ", "; ", " / "))
        self.add(f"{title}:\n")
        for i, row in enumerate(rows, start=1):
            start, _ = self.add(f"{title} row {i}: " if self.draw.random() < 0.5 else "")
            leaves = [each for each in row if isinstance(each, Told)]
            self.add(mark.join(each.shown for each in leaves))
            for each in leaves:
                each.places.append((start, len(self.text)))
            self.add("\n")

    def _rows(self, title: str, entries: Sequence[dict[str, Told | None]]) -> None:
        names = list(entries[0])
        layout = self.draw.choice(("table", "lines", "sentences"))
        self.add(f"{title}\n\n")
        if layout == "table":
            self.add(
                f"| {' | '.join(words_of(name) for name in names)} |\n|{'---|' * len(names)}\n"
            )
        for entry in entries:
            stated = [(words_of(name), entry[name]) for name in names if entry[name] is not None]
            if layout == "table":
                self.add("| ")
                start = len(self.text)
                self.add(
                    " | ".join("" if entry[name] is None else entry[name].shown for name in names)
                )  # type: ignore[union-attr]
                end = len(self.text.rstrip())
                for _, told in stated:
                    told.places.append((start, end))  # type: ignore[union-attr]
                self.add(" |\n")
                continue
            start, _ = self.add("- " if layout == "lines" else "One has ")
            start = len(self.text)
            for j, (label, told) in enumerate(stated):
                assert told is not None
                self.add("; " if j and layout == "lines" else ", " if j else "")
                self.add(f"{label} {told.shown}")
            for _, told in stated:
                told.places.append((start, len(self.text)))  # type: ignore[union-attr]
            self.add("\n" if layout == "lines" else ".\n")

    def _blocks(self, title: str, entries: Sequence[tuple[str, Gold]]) -> None:
        self.add(f"{title}\n\n")
        for i, (name, entry) in enumerate(entries, start=1):
            if isinstance(entry, Told):
                self.add(f"{i}. ")
                entry.places.append(self.add(entry.shown))
                self.add("\n\n")
            elif isinstance(entry, dict):
                self.object(entry, name)
                self.add("\n")
            else:
                self.part(name, entry)

    def _map(self, title: str, gold: Keyed) -> None:
        self.add(f"{title.capitalize()}\n\n")
        for key, each in gold.entries:
            start = len(self.text)
            if isinstance(each, Told):
                self.add(f"{key.shown}: {each.shown}")
                each.places.append((start, len(self.text)))
            elif isinstance(each, list):
                self.add(f"{key.shown}: {', '.join(told.shown for told in each)}")
                for told in each:
                    told.places.append((start, len(self.text)))
            else:
                stated = [(words_of(n), told) for n, told in each.items() if told is not None]
                self.add(
                    f"{key.shown}: {', '.join(f'{label} {told.shown}' for label, told in stated)}"
                )
                for _, told in stated:
                    told.places.append((start, len(self.text)))
            key.places.append((start, len(self.text)))
            self.add("\n")

    def again(self) -> None:
        """Some values once more, in another notation."""
        for label, told in self._again:
            shown = told.shown
            if told.kind == "amount" and "million" not in shown:
                shown = amount_shown(told.value, self.draw)
            elif told.kind == "day":
                shown = date_shown(date.fromisoformat(told.value), self.draw)
            told.places.append(self.add(f"{label}: {shown}"))
            self.add("\n")


def _is_flat(entry: dict[str, Gold]) -> bool:
    return all(each is None or isinstance(each, Told) for each in entry.values())


def case(name: str, shape: Shape, seed: int, *, is_long: bool = False) -> Case:
    """A document of a shape."""
    draw = random.Random(f"{name} {seed}")
    gold = shape.draw(draw, "")
    page = Page(draw, is_long)
    page.add(f"File {draw.randint(100_000, 999_999)}\n\n")
    page.filler()
    page.object(gold)
    page.filler()
    page.again()
    return Case(name, shape, gold, page.text)


def leaves(gold: Gold, path: str = "") -> Iterator[tuple[str, Told]]:
    """The leaves of a gold record by their paths in the user's schema."""
    if isinstance(gold, Told):
        yield path, gold
    elif isinstance(gold, dict):
        for name, each in gold.items():
            yield from leaves(each, f"{path}.{name}" if path else name)
    elif isinstance(gold, Keyed):
        for key, each in gold.entries:
            yield from leaves(each, f"{path}.{key.value}")
    elif isinstance(gold, list | tuple):
        for i, each in enumerate(gold):
            yield from leaves(each, f"{path}[{i}]")


def plain(gold: Gold, of: Callable[[Told], object] = lambda told: told.value) -> object:
    """A gold record as data."""
    if isinstance(gold, Told):
        return of(gold)
    if isinstance(gold, dict):
        return {name: plain(each, of) for name, each in gold.items()}
    if isinstance(gold, Keyed):
        return {key.value: plain(each, of) for key, each in gold.entries}
    return type(gold)(plain(each, of) for each in gold) if isinstance(gold, list | tuple) else gold
