"""What a model replies about a document whose record is known, honestly or not, and what a checker says of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pearl.documents.record import FieldResult
from pearl.dsl.fields import ENTRY, Field, parse_fields
from pearl.llm import ActionTask, Request
from tests.extraction.documents import Case
from tests.extraction.shapes import Gold, Keyed, Told
from tests.models import Reading

_BLOCK = re.compile(r"<(claim|passage) (\d+)>(.*?)</\1 \2>", re.S)


_IF = re.compile(r"\bif (\w+) is (.+)")
_SECOND = re.compile(r"_\d+\Z")


def told_by(gold: Gold, about: Field) -> Gold:
    """What a record has for a field, which may be one of some variants of an object, as its description says."""
    outer, _, name = about.name.rpartition(".")
    owner = found(gold, outer) if outer else gold
    condition = _IF.search(about.description)
    if condition and isinstance(owner, dict) and isinstance(tag := owner.get(condition[1]), Told):
        if tag.value not in condition[2].replace(",", " ").split():
            return None
        if name not in owner:
            name = _SECOND.sub("", name)
    return found(owner, name)


def found(gold: Gold, name: str) -> Gold:
    """What a record has for the name of a field: those of objects in it have dots, those of tuples are numbers."""
    if isinstance(gold, dict) and name in gold:
        return gold[name]
    head, _, rest = name.partition(".")
    if isinstance(gold, dict):
        inner = gold.get(head)
    elif isinstance(gold, tuple) and head.isdigit() and int(head) <= len(gold):
        inner = gold[int(head) - 1]
    else:
        return None
    return found(inner, rest) if rest else inner


def entries_of(gold: Gold) -> list[Gold]:
    """The entries of a list; those of a map are (key, value)."""
    if isinstance(gold, Keyed):
        return list(gold.entries)
    return gold if isinstance(gold, list) else []


def of_entry(fields: Sequence[Field], entry: Gold) -> Iterator[tuple[Field, Gold]]:
    """The fields of an entry of a list with what a record has for them."""
    names = {each.name.partition(".")[0] for each in fields}
    for each in fields:
        if isinstance(entry, tuple):  # of a map: the key is the one that its object does not have
            key, value = entry
            known = set(value) if isinstance(value, dict) else names - {fields[0].name}
            if each.name.partition(".")[0] not in known:
                yield each, key
            else:
                yield each, told_by(value, each) if isinstance(value, dict) else value
        elif isinstance(entry, Told):  # a text beside objects, or a plain value
            yield each, entry if each.name == _text_field(fields) else None
        elif isinstance(entry, list) and each.name == "value":  # a list in a list
            yield each, entry
        else:
            yield each, told_by(entry, each)


def _text_field(fields: Sequence[Field]) -> str:
    """The field that a list of texts or objects has for the text."""
    return next((each.name for each in fields if each.name in ("value", "text")), fields[0].name)


@dataclass
class Teller:
    """Composes replies about a text of a document: leaves that are stated in it, as they are or as changed."""

    case: Case
    changed: Mapping[Told, tuple[Any, str]] = field(default_factory=dict)
    """Other values and quotes."""
    lists: Mapping[int, Sequence[Gold]] = field(default_factory=dict)
    """Other entries of a list, by the identity of the gold list."""

    def reply(self, fields: Sequence[Field], start: int, end: int) -> dict[str, Any]:
        """The reply about a part of the document."""
        return {
            each.name: self._said(each, told_by(self.case.gold, each), start, end)
            for each in fields
        }

    def _said(self, about: Field, gold: Gold, start: int, end: int) -> Any:
        if about.is_list:
            return self._list(about, gold, start, end)
        return self._leaf(gold, start, end) if isinstance(gold, Told) else None

    def _leaf(self, told: Told, start: int, end: int) -> Any:
        here = [place for place in told.places if start <= place[0] and place[1] <= end]
        if not here:
            return None
        a, b = here[0]
        value, quote = self.changed.get(told, (told.said, self.case.text[a:b]))
        return {"value": value, "quote": quote}

    def _list(self, about: Field, gold: Gold, start: int, end: int) -> list[Any]:
        if about.fields and about.fields[0].name == ENTRY:
            rows = [self._list(about.fields[0], each, start, end) for each in entries_of(gold)]
            return [row for row in rows if row]
        told = []
        for entry in self.lists.get(id(gold), entries_of(gold)):
            if not about.fields:
                one = self._leaf(entry, start, end)
                told += [one] if one else []
            else:
                one = {
                    each.name: self._said(each, inner, start, end)
                    for each, inner in of_entry(about.fields, entry)
                }
                told += [one] if any(one.values()) else []
        return told


def model_of(teller: Teller, checker: Checker | None, *, window: int | None = None) -> Reading:
    """A reader of the case, and its checker."""

    def reply(request: Request) -> str:
        if "<claim 1>" in request.prompt:
            assert checker is not None
            return checker.reply(request)
        task = request.task
        assert isinstance(task, ActionTask)
        text = task.document or ""
        start = teller.case.text.find(text)
        assert start >= 0, "a part of the document"
        fields = parse_fields(dict(task.arguments)["FIELDS"])
        return json.dumps(teller.reply(fields, start, start + len(text)), ensure_ascii=False)

    return Reading(reply, window=window)


# ---------------------------------------------------------------------------------------------
# Results by their leaves


def pairs(
    fields: Sequence[Field], results: Mapping[str, FieldResult], gold: Gold
) -> Iterator[tuple[Field, Told, FieldResult | None]]:
    """The leaves of a gold record, each with its field and what became of it."""
    for about in fields:
        yield from _pairs(about, results.get(about.name), told_by(gold, about))


def _pairs(
    about: Field, result: FieldResult | None, gold: Gold
) -> Iterator[tuple[Field, Told, FieldResult | None]]:
    if not about.is_list:
        if isinstance(gold, Told):
            yield about, gold, result
        return
    entries = result.entries if result else ()
    for i, entry in enumerate(entries_of(gold)):
        inner = entries[i] if i < len(entries) else {}
        for each, told in of_entry(about.inner, entry):
            yield from _pairs(each, inner.get(each.name), told)


# ---------------------------------------------------------------------------------------------
# The checker


def squeezed(text: str) -> str:
    """The letters and digits of a text."""
    return "".join(filter(str.isalnum, text.casefold()))


@dataclass(eq=False)
class Scope:
    """An object of a record: the values of its fields, and the object around it."""

    around: Scope | None
    facts: dict[str, Told] = field(default_factory=dict)

    def fact(self, name: str) -> Told | None:
        """The value of a name here, or around."""
        return self.facts.get(name) or (self.around.fact(name) if self.around else None)


_NAME = re.compile(r"`([^`]*)`(?: \((?:[^()]|\([^()]*\))*\))?")


def told_as(value: Any) -> str:
    """A value as a claim says it."""
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


_OF_LIST = re.compile(
    r"(?:\[\d+\])?\s*(?:of [^`]*?)?(?:has|is one|is stated)?\s*[.,]?\s*(?:of)?\s*"
)
_LEAD = re.compile(r"\s*(?:of [^`]*? (?:is|has)\b|is\b|has\b)?\s*")
_END = re.compile(r"\s*(?:$|[,.;]|of\b|has\b|is\b|in\b|and\b)")


def _says(segment: str, told: Told) -> bool:
    """Whether what stands behind a name in a claim is this value."""
    segment = segment[_LEAD.match(segment).end() :]  # type: ignore[union-attr]
    for value in (told.value, told.said):
        text = " ".join(told_as(value).split())
        if segment.startswith(text) and _END.match(segment, len(text)):
            return True
        if isinstance(value, float | int) and not isinstance(value, bool):
            number = re.match(r"-?[\d.]*\d", segment)
            if number and number[0].count(".") < 2 and float(number[0]) == float(value):
                return True
    return False


class Checker:
    """Knows a record, and what the document says where."""

    def __init__(self, case: Case, fields: Sequence[Field]) -> None:
        self.case = case
        self.requests: list[Request] = []
        self.refused: list[tuple[str, str]] = []
        """Claims that it does not support, with their passages."""
        self.n_claims = 0
        self._lists: set[str] = set()
        self._scopes: list[Scope] = []
        top = Scope(None)
        self._scopes.append(top)
        self._gather(fields, case.gold, top)
        self._of: dict[str, list[Scope]] = {}
        for scope in self._scopes:
            for name in scope.facts:
                self._of.setdefault(name, []).append(scope)

    def _gather(
        self, fields: Sequence[Field], gold: Gold, scope: Scope, entry: bool = False
    ) -> None:
        for each, inner in (
            of_entry(fields, gold) if entry else ((f, told_by(gold, f)) for f in fields)
        ):
            if not each.is_list:
                if isinstance(inner, Told):
                    scope.facts[each.name] = inner
                continue
            self._lists.add(each.name)
            for one in entries_of(inner):
                below = Scope(scope)
                self._scopes.append(below)
                self._gather(each.inner, one, below, entry=True)

    def reply(self, request: Request) -> str:
        """The verdicts on the claims of a request."""
        self.requests.append(request)
        blocks = {(name, int(n)): text for name, n, text in _BLOCK.findall(request.prompt)}
        verdicts = []
        for (kind, n), text in blocks.items():
            if kind == "claim":
                self.n_claims += 1
                is_true = self.is_true(" ".join(text.split()), blocks["passage", n])
                if not is_true:
                    self.refused.append((text, blocks["passage", n]))
                verdicts.append({"id": n, "verdict": "supported" if is_true else "contradicted"})
        return json.dumps({"verdicts": verdicts})

    def is_true(self, claim: str, passage: str) -> bool:
        """Whether one object of the record has all that a claim says, and the passage shows it."""
        names = list(_NAME.finditer(claim))
        ends = [each.start() for each in names[1:]] + [len(claim)]
        said: list[tuple[str, str]] = []
        first = claim[: names[0].start()] if names else claim
        if first.strip():
            said.append(("value", first))
        for name, end in zip(names, ends, strict=True):
            segment = claim[name.end() : end]
            if name[1] not in self._lists or not _OF_LIST.fullmatch(segment):
                said.append((name[1], segment))
        shown = squeezed(passage)

        def is_shown(told: Told) -> bool:
            texts = [told.shown, *(self.case.text[a:b] for a, b in told.places)]
            return any(squeezed(text) in shown for text in texts)

        for name, segment in said:
            for scope in self._of.get(name, ()):
                if _says(segment, scope.facts[name]):
                    of = [(scope.fact(each), text) for each, text in said]
                    if all(told and _says(text, told) and is_shown(told) for told, text in of):
                        return True
        return not said
