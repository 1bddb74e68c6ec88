"""Join named documents into one document; the names of their files start with the name of the source."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from pearl.documents.document import Document, DocumentKind, Source, heading, join
from pearl.dsl.literals import MAX_NAME, terminal
from pearl.dsl.signatures import CTX
from pearl.errors import UsageError


def check_names(names: Iterable[str]) -> None:
    """Refuse names of sources that plans cannot use."""
    seen = {CTX: "is the document, and cannot be a source"}
    for name in names:
        why = seen.setdefault(name, "")
        if not (len(name) <= MAX_NAME and terminal("NAME").fullmatch(name)):
            why = "is not a name that a plan can use"
        if why:
            advice = "name each source by letters, digits and _, a letter first: rules=rules/"
            raise UsageError(f"'{name[:MAX_NAME]}' {why}", help=advice)
        seen[name] = "is given twice"


def with_sources(document: Document | None, sources: Iterable[Source]) -> Document:
    """Join the document `CTX`, if any, and the named sources."""
    given = list(document.sources) or [Source(CTX, document)] if document else []
    named = list(sources)
    check_names(each.name for each in (*given, *named) if each.name != CTX or each in named)
    texts: dict[str, str] = {}
    for name, document_of, *_ in (*given, *named):
        if (twice := texts.setdefault(document_of.text, name)) != name:
            raise UsageError(f"'{twice}' and '{name}' have the same text", help="give it once")
    given += [each._replace(document=_renamed(each.document, each.name)) for each in named]
    names = [each.document.name if each.name == CTX else each.name for each in given]
    joined = join((each.document for each in given), ", ".join(names), is_flat=True)
    at, placed = 0, list[Source]()
    for each in given:
        own = each.document.parts or (("", 0),)
        placed.append(each._replace(start=joined.parts[at][1] - own[0][1]))
        at += len(own)
    kinds: set[DocumentKind] = {each.document.kind for each in given}
    kind = kinds.pop() if len(kinds) == 1 else "corpus" if "corpus" in kinds else "document"
    return replace(joined, kind=kind, sources=tuple(placed))


def _renamed(document: Document, source: str) -> Document:
    """Prefix the document's name, and the names of its files, with the name of its source."""
    prefix = f"{source}: "
    # The headings of files show these names, so the models that read them also see the source.
    places = [start - len(heading(name)) + len("\n\n# ") for name, start in document.parts]
    cuts = [0, *places, len(document.text)]
    text = prefix.join(document.text[start:end] for start, end in pairwise(cuts))
    starts = [start for _, start in document.parts]

    def moved(at: int) -> int:
        return at + len(prefix) * bisect_right(starts, at)

    return replace(
        document, text=text, name=f"{prefix}{document.name}",
        parts=tuple((f"{prefix}{name}", moved(start)) for name, start in document.parts),
        pages=tuple((page, moved(start)) for page, start in document.pages),
        ocr=tuple((moved(start), moved(end), mean) for start, end, mean in document.ocr),
    )  # fmt: skip
