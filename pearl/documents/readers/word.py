"""Word files: paragraphs and tables in document order.

Blocks are separated by a blank line; a row of a table is one line, its cells separated by tabs; the
text of merged cells is repeated in their rows. Footnotes, endnotes, comments, charts and SmartArt
stand below the block that refers to them, headers at the beginning and footers at the end, each text
once. Lists have their numbers. Insertions of tracked changes, links, content controls and text boxes
count as text; deleted, struck and hidden text and embedded files do not, and a note counts them.
"""

from __future__ import annotations

from collections import Counter
from io import BytesIO
from typing import TYPE_CHECKING

from pearl.documents.marks import END, LOWER, RAISE, list_number, raised, written
from pearl.documents.office import drawing_texts, has_part, office_parts, part_xml
from pearl.documents.readers import OPTIONS, ReaderText, not_read

if TYPE_CHECKING:
    from docx.opc.part import Part
    from lxml.etree import _Element

SUFFIXES = (".docx", ".docm", ".dotx")
BEGINS = (b"PK",)

_CHARACTERS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "softHyphen": "\xad"}
_SKIPPED = frozenset({"pPr", "rPr", "tcPr", "trPr", "tblPr", "rt", "Fallback", "footnoteRef", "endnoteRef", "annotationRef"})  # fmt: skip
"""Skipped elements: properties, ruby annotations, the fallback copy of a text box, and the marks that
notes repeat."""

_DELETED = frozenset({"del", "moveFrom"})
_MOVED = {"superscript": RAISE, "subscript": LOWER, "sup": RAISE, "sub": LOWER}
_PAGE_NUMBERS = (["PAGE"], ["NUMPAGES"])  # fields, whose stored value is that of any page
_NOT_SHOWN = {"vanish": "hidden text", "strike": "struck text", "dstrike": "struck text"}
_OFF = frozenset({"0", "false", "off", "none"})
_MATHEMATICS = "http://schemas.openxmlformats.org/officeDocument/2006/math"

_NO_MEMORY = 2  # XML_ERR_NO_MEMORY of libxml2


def recognises(data: bytes) -> bool:
    """Whether the bytes are an archive with the main part of a Word file in it."""
    return has_part(data, "word/document.xml")


def read(data: bytes, path: str) -> ReaderText:
    """The text of a Word file."""
    from docx.package import Package

    try:
        package = Package.open(BytesIO(office_parts(data, path, ".docx")))
        text = _WordFile(package.main_document_part)
        return ReaderText(text.whole(), notes=not_read(text.left_out))
    except SyntaxError as error:  # of lxml
        if getattr(error, "code", None) == _NO_MEMORY:
            raise MemoryError from error
        raise


def _kind(element: _Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _child(element: _Element | None, *names: str) -> _Element | None:
    """The element at the end of a path of local names, or None."""
    for name in names:
        if element is None:
            return None
        element = next(element.iterchildren(f"{{*}}{name}"), None)
    return element


def _attribute(element: _Element | None, name: str = "val") -> str | None:
    """An attribute of an element of Word by its local name."""
    if element is None:
        return None
    return next((str(v) for k, v in element.attrib.items() if str(k).rpartition("}")[2] == name), None)  # fmt: skip


def _is_on(properties: _Element | None, name: str) -> bool:
    found = _child(properties, name)
    return found is not None and _attribute(found) not in _OFF


class _WordFile:
    """The text of a main part and of the parts that it refers to."""

    def __init__(self, main: Part) -> None:
        self._main = main
        self._part = main
        self.left_out: Counter[str] = Counter()
        self._related: dict[str, _Element] = {}
        for relation in main.rels.values():
            kind = relation.reltype.rpartition("/")[2]
            if relation.is_external:
                continue
            if kind in {"footnotes", "endnotes", "comments", "numbering", "styles"}:
                self._related[kind] = part_xml(relation.target_part)
            elif kind in {"package", "oleObject", "aFChunk", "subDocument"}:
                self.left_out["embedded file"] += 1
        styles = self._related.get("styles")
        self._styles = {
            _attribute(style, "styleId"): style
            for style in (() if styles is None else styles.iterchildren("*"))
            if _kind(style) == "style"
        }
        self._lists = _Lists(self._related.get("numbering"))
        self._marks: dict[str, int] = {}
        self._below: list[str] = []
        self._is_page_number = False

    def whole(self) -> str:
        """Headers, the body with its notes, and footers."""
        root = part_xml(self._main)
        body = _child(root, "body")
        blocks = (
            [] if body is None else [self._with_notes(block) for block in body.iterchildren("*")]
        )
        headers, footers = (
            self._margins(root, f"{kind}Reference") for kind in ("header", "footer")
        )
        return "".join([*headers, *blocks, *footers]).strip()

    def _margins(self, root: _Element, kind: str) -> list[str]:
        """The different texts of the headers or footers that are shown."""
        settings = next((part_xml(r.target_part) for r in self._main.rels.values() if r.reltype.endswith("/settings")), None)  # fmt: skip
        shown = dict[str, None]()
        for reference in root.iter("{*}" + kind):
            of = _attribute(reference, "type")
            section = reference.getparent()
            switch = {"first": (section, "titlePg"), "even": (settings, "evenAndOddHeaders")}.get(
                of or ""
            )
            if switch and not _is_on(*switch):
                continue
            self._part = self._main.related_parts[_attribute(reference, "id") or ""]
            if text := self._with_notes(part_xml(self._part)).strip():
                shown[f"{kind.removesuffix('Reference').title()}: {text}\n\n"] = None
        self._part = self._main
        return list(shown)

    def _with_notes(self, block: _Element) -> str:
        self._below = []
        text = written(self._text(block))
        below = [f"{each}\n\n" for each in self._below if each]
        gap = "\n" if below and text and not text.endswith("\n\n") else ""
        return text + gap + "".join(below)

    def _text(self, element: _Element) -> str:
        """The text of an element at any depth; `paragraph.text` omits insertions, content controls and text boxes."""
        kind = _kind(element)
        if kind in _SKIPPED:
            return ""
        if kind in _DELETED:
            self.left_out["deleted text"] += any(map(str.strip, element.itertext()))
            return ""
        if kind == "t":
            return "" if self._is_page_number else element.text or ""
        match kind:
            case "instrText" | "fldSimple":
                code = element.text if kind == "instrText" else _attribute(element, "instr")
                is_page_number = (code or "").split()[:1] in _PAGE_NUMBERS
                if kind == "instrText":
                    self._is_page_number |= is_page_number
                return "" if is_page_number else self._inner(element)
            case "fldChar":
                self._is_page_number &= _attribute(element, "fldCharType") != "end"
                self.left_out["form value"] += _child(element, "ffData", "ddList") is not None
                return ""
            case "tbl":
                return self._table(element)
            case "r" if element.tag != f"{{{_MATHEMATICS}}}r":
                return self._run(element)
            case "footnoteReference" | "endnoteReference" | "commentReference":
                return self._note(element, kind.removesuffix("Reference"))
            case "drawing":
                self._below += drawing_texts(element, self._part, self.left_out)
                return self._inner(element)
            case "f" if element.tag == f"{{{_MATHEMATICS}}}f":
                parts = (self._text(part) for name in ("num", "den") if (part := _child(element, name)) is not None)  # fmt: skip
                return "/".join(part if part.isalnum() else f"({part})" for part in parts)
            case "d" if element.tag == f"{{{_MATHEMATICS}}}d":
                return f"({self._inner(element)})"
            case "rad":
                return f"√({self._inner(element)})"
            case "sup" | "sub":
                return f"{_MOVED[kind]}{self._inner(element)}{END}"
            case "p":
                inner = self._inner(element)
                return f"{self._number(element)}{inner}\n\n" if inner.strip() else ""
        return _CHARACTERS.get(kind) or self._inner(element)

    def _inner(self, element: _Element) -> str:
        return "".join(map(self._text, element.iterchildren("*")))

    def _run(self, run: _Element) -> str:
        own = _child(run, "rPr")
        if own is None:
            return self._inner(run)
        given = {_kind(each): each for each in own.iterchildren("*")}
        if (style := self._styles.get(_attribute(given.get("rStyle")))) is not None:
            of_style = _child(style, "rPr")
            given = {_kind(each): each for each in (() if of_style is None else of_style)} | given
        for name, what in _NOT_SHOWN.items():
            is_read = name == "vanish" and OPTIONS.get().hidden
            if name in given and _attribute(given[name]) not in _OFF and not is_read:
                self.left_out[what] += any(map(str.strip, run.itertext()))
                return ""
        inner = self._inner(run)
        begin = _MOVED.get(_attribute(given.get("vertAlign")) or "")
        is_marked = END in inner or _child(run, "footnoteReference") is not None
        return f"{begin}{inner}{END}" if begin and inner.strip() and not is_marked else inner

    def _note(self, reference: _Element, kind: str) -> str:
        """Return the mark of a note and put its text below the block; comments have no mark."""
        notes = self._related.get(f"{kind}s")
        wanted = _attribute(reference, "id")
        note = next((each for each in (() if notes is None else notes) if _attribute(each, "id") == wanted), None)  # fmt: skip
        mark = ""
        if kind != "comment" and _attribute(reference, "customMarkFollows") in {None, *_OFF}:
            self._marks[kind] = self._marks.get(kind, 0) + 1
            n = self._marks[kind]
            mark = raised(str(n)) if kind == "footnote" else f"^({list_number(n, 'i') or n})"
        if note is None:
            self.left_out[kind] += 1
            return mark
        before, self._below = self._below, []  # a note has no notes
        text = " ".join(written(self._inner(note)).split())
        self._below = before
        if kind == "comment":
            author = _attribute(note, "author")
            text = f"Comment{f' ({author})' if author else ''}: {text}"
        self._below.append(f"{mark} {text}".strip())
        return mark

    def _number(self, paragraph: _Element) -> str:
        """The automatic number of a paragraph, followed by a blank; "" without one."""
        properties = _child(paragraph, "pPr")
        style = self._styles.get(_attribute(_child(properties, "pStyle")))
        given, level = _child(properties, "numPr"), None
        for _ in range(len(self._styles)):  # a style may be based on itself
            if given is not None or style is None:
                break
            given = _child(style, "pPr", "numPr")
            level = self._lists.level_of_style.get(_attribute(style, "styleId"))
            style = self._styles.get(_attribute(_child(style, "basedOn")))
        number = _attribute(_child(given, "numId")) or "0"
        shown = self._lists.next(number, int(_attribute(_child(given, "ilvl")) or level or 0))
        if shown is None:
            self.left_out["list number"] += 1
        return f"{shown} " if shown else ""

    def _table(self, table: _Element) -> str:
        """The rows of a table; the text of merged cells is repeated in each row, headings in each column."""
        above: dict[int, str] = {}
        lines = list[str]()
        for row in table.iterdescendants("{*}tr"):
            is_own = next(row.iterancestors("{*}tbl")) is table
            if not is_own or _child(row, "trPr", "del") is not None:
                continue
            given = [cell for cell in row.iterdescendants("{*}tc") if next(cell.iterancestors("{*}tr")) is row]  # fmt: skip
            cells = [""] * _integer(_child(row, "trPr", "gridBefore"))
            for cell in given:
                properties = _child(cell, "tcPr")
                merge = _child(properties, "vMerge")
                n = max(1, min(_integer(_child(properties, "gridSpan")), _MAX_SPAN))
                text = " ".join(" ".join(map(self._text, cell.iterchildren("*"))).split())
                if merge is not None and _attribute(merge) in {None, "continue"}:
                    text = above.get(len(cells), "") or text
                if merge is None:
                    above.pop(len(cells), None)
                else:
                    above[len(cells)] = text
                is_heading = not lines and len(given) > 1
                cells += (
                    [text] * n if is_heading else [text, *[""] * (n - 1 if len(given) > 1 else 0)]
                )
            lines.append("\t".join(cells).rstrip("\t") if len(given) == 1 else "\t".join(cells))
        return "\n".join([*lines, "", ""]) if lines else ""


_MAX_SPAN = 100  # maximum columns of a merged cell


def _integer(element: _Element | None) -> int:
    given = _attribute(element) or ""
    return int(given) if given.isdecimal() and len(given) < 6 else 0


def _level(element: _Element) -> int:
    return int(_attribute(element, "ilvl") or 0)


class _Lists:
    """The automatic numbers of lists, counted in the order of the text."""

    def __init__(self, numbering: _Element | None) -> None:
        children = [] if numbering is None else list(numbering.iterchildren("*"))
        self._abstract = {_attribute(c, "abstractNumId"): c for c in children if _kind(c) == "abstractNum"}  # fmt: skip
        self._numbers = {_attribute(c, "numId"): c for c in children if _kind(c) == "num"}
        self._counted: dict[str | None, dict[int, int]] = {}
        self._begun: set[str] = set()
        self._known: dict[str, tuple[dict[int, _Element], dict[int, int], list[int]]] = {}
        self.level_of_style = {
            _attribute(_child(level, "pStyle")): _attribute(level, "ilvl")
            for abstract in self._abstract.values()
            for level in abstract.iterchildren("{*}lvl")
        }
        self.level_of_style.pop(None, None)  # levels without a style

    def _abstract_of(self, number: str) -> str | None:
        return _attribute(_child(self._numbers.get(number), "abstractNumId"))

    def _levels(self, number: str) -> tuple[dict[int, _Element], dict[int, int], list[int]]:
        """Return the levels of a list, their first numbers, and the levels that restart with the list."""
        if number in self._known:
            return self._known[number]
        abstract = self._abstract.get(self._abstract_of(number))
        levels = {} if abstract is None else {_level(e): e for e in abstract.iterchildren("{*}lvl")}
        restarts = dict[int, int]()
        listed = self._numbers.get(number)
        for override in () if listed is None else listed.iterchildren("{*}lvlOverride"):
            if (given := _child(override, "lvl")) is not None:
                levels[_level(override)] = given
            if (start := _child(override, "startOverride")) is not None:
                restarts[_level(override)] = _integer(start)
        starts = {
            i: _integer(given)
            for i, level in levels.items()
            if (given := _child(level, "start")) is not None
        }
        self._known[number] = levels, starts | restarts, list(restarts)
        return self._known[number]

    def next(self, number: str, at: int) -> str | None:
        """The number of the next entry of a list; "" if it has none, None if its style is not known."""
        levels, starts, restarted = self._levels(number)
        counted = self._counted.setdefault(self._abstract_of(number), {})
        for i in restarted if number not in self._begun else ():
            counted.pop(i, None)
        self._begun.add(number)
        if (level := levels.get(at)) is None:
            return ""
        for i in range(at + 1):
            counted.setdefault(i, starts.get(i, 1) - (i == at))
        counted[at] += 1
        for i in [i for i in counted if i > at]:
            del counted[i]
        style = _attribute(_child(level, "numFmt")) or "decimal"
        shape = _attribute(_child(level, "lvlText")) or ""
        if style in {"bullet", "none"} or not shape.strip():
            return ""
        is_legal = _is_on(level, "isLgl")
        for i in range(9):  # %1.%2: numbers of two levels
            if (mark := f"%{i + 1}") in shape:
                own = None if is_legal else _attribute(_child(levels.get(i), "numFmt"))
                shown = list_number(counted.get(i, 1), own or "decimal")
                if shown is None:
                    return None
                shape = shape.replace(mark, shown)
        return shape
