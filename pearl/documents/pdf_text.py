"""Read the text layer of a PDF page, with the place of every character, form values, and without hidden layers.

PDFium divides the text into lines and words. Where pieces of a page meet without a blank, their places tell
whether they are one word: PDFium looks along a line only, and takes some columns and turned lines for words.
"""

from __future__ import annotations

import io
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from ctypes import (
    POINTER,
    addressof,
    byref,
    c_double,
    c_ubyte,
    c_ulong,
    c_ushort,
    cast,
    create_string_buffer,
)
from itertools import groupby, pairwise, product
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import bidirectional, east_asian_width

from pearl.documents.marks import SUPERSCRIPTS
from pearl.documents.readers import OPTIONS
from pearl.errors.patterns import lazy_pattern

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage, PdfTextPage

Marked = list[tuple[str, int]]  # Characters, each with its index in PDFium, or -1

_HYPHEN = "\x02"  # a hyphen at the end of a line, with its line break
_UNMAPPED = "\ufffe"  # in what `FPDFText_GetText` gives, a hyphen or no character
BLANKS = frozenset(c for c in map(chr, range(0x3001)) if c.isspace() or c <= " ")

_SKIPPED = BLANKS | {"\0"}

_SURROGATES = lazy_pattern("[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]")  # a pair or a lone one
_NO_LINE = lazy_pattern(r"(?:^|(?<=\n))[\0 ]*\0[\0 ]*\r\n")  # a line of hidden characters only
_WORD = lazy_pattern(r"[^\s\0\2]{2,}")
_LINE = lazy_pattern(r"[^\r\n\2]+")
_MARK = lazy_pattern(r"\n[-0-9()+*,\u2212]{1,8}(?!\S)")  # a line that may be a superscript: -3, (2)
_SPACED = lazy_pattern(r" [0-9()*,]{1,3}(?!\S)")  # a word that may be one: 3
# a line of a few characters, which may belong to its neighbours
_FEW = lazy_pattern(r"\n\S{1,3}(?=\r\n|$)")

_LEAST_EM = 0.7  # of the height of a font, which is 1.2 ems or so
# All in ems of the larger character.
# between words: a blank has 0.25, a thin one 0.17; kerning moves digits by less than 0.05
_GAP = 0.1
_OVERLAP = 0.3  # of letters or digits of two words; kerning has less
_LINE_STEP = 0.9  # between the lines of a text; a superscript is raised by 0.3 to 0.6
_RAISED = 0.12  # of a smaller character; lines of a scan are uneven by less
_RAISED_ALIKE = 0.25  # of a character as large as the others
_SMALLER = 0.85  # size of a smaller character, relative to the one before
_NEAR = 0.35  # from a word to its superscript
# cosine of the angle between the characters of a word; those of a round stamp turn slowly
_STRAIGHT = 0.9


class PageText(NamedTuple):
    """The text of a page."""

    text: str
    indices: list[int]
    """The index in PDFium of each character; -1 for blanks and characters put in, -2 and less for `boxes`."""
    boxes: list[tuple[float, float, float, float]]
    """The boxes of filled fields on the page; -2 stands for the first."""

    def box(self, layer: PdfTextPage, index: int) -> tuple[float, float, float, float]:
        """The box of a character by its index; an empty box if it has no place."""
        if index >= 0:
            left, bottom, right, top = layer.get_charbox(index)
            return left, bottom, right, top
        return self.boxes[-2 - index] if index < -1 else _NOWHERE


_NOWHERE = (math.nan,) * 4


def page_text(layer: PdfTextPage) -> PageText:
    """The text of a page, with the values of its fields in their places."""
    from pypdfium2 import raw

    characters = _characters(layer)
    # OCR reads the fields of a scanned page.
    is_picture = not characters.strip("\0 \r\n") and raw.FPDFPage_CountObjects(layer.page) > 0
    fields = [] if is_picture else read_annotations(layer.page)[0]
    pieces: list[str] = []
    indices: list[int] = []
    at = 0
    for start, end, marked in [*_edits(layer, characters, fields), (len(characters), 0, [])]:
        pieces += [characters[at:start], *(character for character, _ in marked)]
        indices += [*range(at, start), *(index for _, index in marked)]
        at = end
    text = "".join(pieces)
    if "\r" in text or "\0" in text:
        indices = [i for c, i in zip(text, indices, strict=True) if c not in "\r\0"]
    # A form feed in it would end the page.
    text = text.replace("\r", "").replace("\0", "").replace("\f", " ")
    begin, end = len(text) - len(text.lstrip()), len(text.rstrip())
    places = zip(text[begin:end], indices[begin:end], strict=True)
    boxes = [field.box for field in fields]
    return PageText(text[begin:end], [-1 if c in BLANKS else i for c, i in places], boxes)


def _characters(layer: PdfTextPage) -> str:
    r"""The characters of a page by PDFium's index; "\0" where there is no visible character."""
    from pypdfium2 import raw

    n = layer.count_chars()
    text: str = layer.get_text_range()
    if len(text) != n:  # it leaves characters out, and each beyond U+FFFF has two numbers
        codes = [raw.FPDFText_GetUnicode(layer, i) for i in range(n)]
        text = "".join([chr(code) if code < 0x110000 else "\0" for code in codes])
        text = _SURROGATES.sub(
            lambda found: (
                found[0].encode("utf-16", "surrogatepass").decode("utf-16", "ignore") + "\0"
            ),
            text,
        )
    if _UNMAPPED in text:
        text = "".join([
            (_HYPHEN if raw.FPDFText_IsHyphen(layer, i) == 1 else "\0") if c == _UNMAPPED else c
            for i, c in enumerate(text)
        ])  # fmt: skip
    inside: str = layer.get_text_bounded()
    if len("".join(inside.split())) != len("".join(text.replace("\0", "").split())):
        left, bottom, right, top = layer.page.get_bbox()

        def is_inside(index: int) -> bool:
            """Whether a part of a character is within the crop box."""
            x0, y0, x1, y1 = layer.get_charbox(index)
            return bool(max(x0, left) < min(x1, right) and max(y0, bottom) < min(y1, top))

        text = "".join([c if c in BLANKS or is_inside(i) else "\0" for i, c in enumerate(text)])
    if hidden := hidden_characters(layer):
        text = "".join(["\0" if i in hidden else c for i, c in enumerate(text)])
        text = _NO_LINE.sub(lambda line: "\0" * len(line[0]), text)
    return text


class _Place(NamedTuple):
    """Where a character stands: its origin, its advance, and the direction of its line, a unit vector."""

    x: float
    y: float
    advance: float | None  # None in a slanted line, in which PDFium does not tell it
    ux: float
    uy: float
    em: float
    object: tuple[float, float]  # the origin of the text object that the character is part of

    def to(self, other: _Place) -> tuple[float, float, float]:
        """Return gap and rise to another character in ems, and the cosine of the angle between their lines."""
        dx, dy = other.x - self.x, other.y - self.y
        em = max(self.em, other.em)
        along = dx * self.ux + dy * self.uy
        gap = (along - self.advance) / em if self.advance is not None else 0.0
        return gap, (dy * self.ux - dx * self.uy) / em, self.ux * other.ux + self.uy * other.uy


class _Places:
    """The places of the characters of a page."""

    def __init__(self, layer: PdfTextPage) -> None:
        from pypdfium2 import raw

        self.raw, self.layer = raw, layer
        self._matrix, self._x, self._y = raw.FS_MATRIX(), c_double(), c_double()
        self._known: dict[int, _Place] = {}

    def __getitem__(self, i: int) -> _Place:
        if (known := self._known.get(i)) is not None:
            return known
        m = self._matrix
        self.raw.FPDFText_GetMatrix(self.layer, i, byref(m))
        self.raw.FPDFText_GetCharOrigin(self.layer, i, byref(self._x), byref(self._y))
        size = self.raw.FPDFText_GetFontSize(self.layer, i)
        width = math.hypot(m.a, m.b) or 1.0
        turn = math.copysign(1 / width, size)
        ux, uy = m.a * turn, m.b * turn
        left, bottom, right, top = self.layer.get_charbox(i, loose=True)
        advance = right - left if abs(ux) > 0.99 else top - bottom if abs(uy) > 0.99 else None
        # Fonts drawn by operators may have any nominal size.
        height = 0.0 if advance is None else top - bottom if abs(ux) > 0.99 else right - left
        em = max(abs(size) * math.hypot(m.c, m.d), _LEAST_EM * height, 1e-6)
        place = _Place(self._x.value, self._y.value, advance, ux, uy, em, (m.e, m.f))
        self._known[i] = place
        return place

    def foot(self, i: int) -> float:
        """The height at which the ink of a character begins above its line, in ems."""
        place = self[i]
        x0, y0, x1, y1 = self.layer.get_charbox(i)
        corners = product((x0 - place.x, x1 - place.x), (y0 - place.y, y1 - place.y))
        lowest: float = min(dy * place.ux - dx * place.uy for dx, dy in corners)
        return lowest / place.em

    def n_objects(self, start: int, end: int) -> int:
        """Count the text objects of a range of characters."""
        n_objects: int = self.raw.FPDFText_CountRects(self.layer, start, end - start)
        return n_objects


_Edit = tuple[int, int, Marked]
_Run = tuple[int, int]  # The first and the last of some characters of one text object


def _edits(layer: PdfTextPage, characters: str, fields: Sequence[Field]) -> list[_Edit]:
    """Return replacements in the text: blanks between words, superscripts, removed line breaks, values of fields."""
    places = _Places(layer)
    edits: list[_Edit] = [
        (at, at + 1, [("-", at), ("\n", -1)]) for at, c in enumerate(characters) if c == _HYPHEN
    ]
    # the direction of lines on the page as it is shown
    across, up = {0: (1, 0), 90: (0, 1), 180: (-1, 0), 270: (0, -1)}[layer.page.get_rotation()]
    for line in _LINE.finditer(characters):
        start, end = line.span()
        if places.n_objects(start, end) > 1:
            if places[start].ux * across + places[start].uy * up < -_STRAIGHT:
                edits.append((start, end, _turned(places, characters, start, end)))
                continue
            words = [
                _runs(places, characters, *word.span())
                for word in _WORD.finditer(characters, start, end)
                if places.n_objects(*word.span()) > 1
            ]
            # In a letter-spaced line each character is its own text object.
            gaps = [
                places[one[0]].to(places[other[0]])[0]
                for word in words
                for one, other in pairwise(word)
                if one[0] == one[1] and other[0] == other[1]
            ]
            usual = max(0.0, median(gaps)) if len(gaps) > 2 else 0.0
            for word in words:
                edits += _within(places, characters, word, usual)
            for spaced in _SPACED.finditer(characters, start, end):
                edits += _mark(places, characters, spaced.start() + 1, spaced.end())
    for mark in _MARK.finditer("\n" + characters):
        edits += _mark(places, characters, mark.start(), mark.end() - 1)
    edits += _joints(places, characters)
    edits += _filled(layer, characters, fields) if fields else ()
    apart: list[_Edit] = []
    for edit in sorted(edits, key=lambda edit: edit[:2]):
        if apart and edit[0] == edit[1] == apart[-1][0] == apart[-1][1]:
            apart[-1][2].extend(edit[2])
        elif not apart or (apart[-1][:2] != edit[:2] and apart[-1][1] <= edit[0]):
            apart.append(edit)
    return apart


def _runs(places: _Places, characters: str, start: int, end: int) -> list[_Run]:
    """The visible characters of a line by text object."""
    visible = [
        i for i in range(start, end) if characters[i] not in BLANKS and characters[i] != "\0"
    ]
    groups = (list(group) for _, group in groupby(visible, lambda i: places[i].object))
    return [(group[0], group[-1]) for group in groups]


def _turned(places: _Places, characters: str, start: int, end: int) -> Marked:
    """Rewrite an upside-down line, whose text objects PDFium sorts by the page as it is shown."""
    made: Marked = []
    runs = _runs(places, characters, start, end)
    lines: list[list[_Run]] = []
    for run in runs:
        if not lines or abs(places[lines[-1][-1][0]].to(places[run[0]])[1]) > _LINE_STEP / 2:
            lines.append([])
        lines[-1].append(run)
    for n, line in enumerate(lines):
        made += [("\n", -1)] * (n > 0)
        ux, uy = places[line[0][0]].ux, places[line[0][0]].uy
        line.sort(key=lambda run: places[run[0]].x * ux + places[run[0]].y * uy)
        for k, (first, last) in enumerate(line):
            gap = places[line[k - 1][1]].to(places[first])[0] if k else 0.0
            made += [(" ", -1)] * (gap > _GAP or gap < -_OVERLAP)
            made += [(characters[i], i) for i in range(first, last + 1)]
    return made


def _within(
    places: _Places, characters: str, runs: Sequence[_Run], usual: float
) -> Iterator[_Edit]:
    """Yield blanks and breaks between the text objects of a word, and its superscripts; `usual` is the letter spacing."""
    joints = [places[one[1]].to(places[other[0]]) for one, other in pairwise(runs)]
    words = [list(runs[:1])]
    for (one, other), (gap, rise, cosine) in zip(pairwise(runs), joints, strict=True):
        last, first = characters[one[1]], characters[other[0]]
        far = _NEAR if abs(rise) > _RAISED else _GAP + usual
        is_overlaid = gap < -_OVERLAP and last.isalnum() and first.isalnum()
        n_other = _is_other(last) + _is_other(first)
        if (cosine < _STRAIGHT or abs(rise) > _LINE_STEP) and n_other < 2:
            yield other[0], other[0], [("\n", -1)]
        elif (gap > far or is_overlaid) and not n_other:
            yield other[0], other[0], [(" ", -1)]
        else:
            words[-1].append(other)
            continue
        words.append([other])
    for word in words:
        base = max(word, key=lambda run: places[run[0]].em)
        moves = [_moved(places, characters, base, run) for run in word]
        for move, group in groupby(zip(moves, word, strict=True), lambda pair: pair[0]):
            own = list(group)
            end = own[-1][1][1] + 1
            yield from _raised(characters, own[0][1][0], end, move)
            yield from _rejoined(places, characters, base[0], end) if move else ()


def _is_other(character: str) -> bool:
    """Whether a character belongs to a script that is written without blanks, or from right to left."""
    return east_asian_width(character) in "WF" or bidirectional(character) in {"R", "AL"}


def _moved(places: _Places, characters: str, base: _Run, run: _Run) -> int:
    """1 if the run is a superscript of the base, -1 if a subscript, else 0."""
    one, other = places[base[0]], places[run[0]]
    _, rise, cosine = one.to(other)
    least = _RAISED if other.em < _SMALLER * one.em else _RAISED_ALIKE
    is_near = cosine > _STRAIGHT and other.em < 1.05 * one.em
    if is_near and abs(rise) < _RAISED:  # a font may have own characters for superscripts
        return int(places.foot(run[0]) > _RAISED_ALIKE and characters[run[0]].isdecimal())
    return int(math.copysign(is_near and least < abs(rise) < _LINE_STEP, rise))


def _raised(characters: str, start: int, end: int, move: int) -> Iterator[_Edit]:
    """Replace a superscript with digits, or a subscript after a digit, by characters that are not digits."""
    text = characters[start:end]
    if move < 0 and start and characters[start - 1].isdigit() and text.isdecimal():
        yield start, end, [(chr(0x2080 + int(c)), start + i) for i, c in enumerate(text)]
    elif move > 0 and all(c in SUPERSCRIPTS for c in text):
        yield start, end, [(SUPERSCRIPTS[c], start + i) for i, c in enumerate(text)]
    elif move > 0 and any(map(str.isdecimal, text)):
        own = [(c, start + i) for i, c in enumerate(text)]
        yield start, end, [("^", -1), ("(", -1), *own, (")", -1)]


def _visible_before(characters: str, at: int) -> int:
    while at > 0 and characters[at - 1] in _SKIPPED:
        at -= 1
    return at - 1


def _visible_after(characters: str, at: int) -> int:
    while at < len(characters) and characters[at] in _SKIPPED:
        at += 1
    return at


def _mark(places: _Places, characters: str, start: int, end: int) -> Iterator[_Edit]:
    """Replace a superscript or subscript that PDFium treats as a word or as the start of a line."""
    before, after = _visible_before(characters, start), _visible_after(characters, end)
    for base, one, other in ((before, before, start), (after, end - 1, after)):
        is_near = 0 <= base < len(characters) and abs(places[one].to(places[other])[0]) < _NEAR
        if is_near and (move := _moved(places, characters, (base, base), (start, end - 1))):
            if base == before:
                yield before + 1, start, []
            yield from _raised(characters, start, end, move)
            yield from _rejoined(places, characters, base, end)
            break


def _rejoined(places: _Places, characters: str, base: int, end: int) -> Iterator[_Edit]:
    """Remove the line break after a superscript or subscript if the line continues."""
    after = _visible_after(characters, end)
    if "\n" in characters[end:after] and after < len(characters):
        yield from _continued(places, base, end - 1, after)


def _continued(places: _Places, base: int, one: int, other: int) -> Iterator[_Edit]:
    """Remove what is between two characters if the second continues the line of the base."""
    gap, _, _ = places[one].to(places[other])
    _, rise, cosine = places[base].to(places[other])
    if -_OVERLAP < gap < 1 and abs(rise) < _RAISED and cosine > _STRAIGHT:
        yield one + 1, other, [(" ", -1)] * (gap > _GAP)


def _joints(places: _Places, characters: str) -> Iterator[_Edit]:
    """Remove line breaks around a few characters that continue the line before, or that the next line continues."""
    for found in _FEW.finditer("\n" + characters):
        start, end = found.start(), found.end() - 1
        before, after = _visible_before(characters, start), _visible_after(characters, end)
        for one, other in ((before, start), (end - 1, after)):
            is_known = one >= 0 and other < len(characters)
            if is_known and places[one].advance is not None:
                yield from _continued(places, one, one, other)


_LINE_ROOM = 2.0  # points that a label may stand above or below its field
_TICK_ROOM = 40.0  # points from a box to tick to its label


def _filled(layer: PdfTextPage, characters: str, fields: Sequence[Field]) -> Iterator[_Edit]:
    """Insert values of fields after the text to their left, ticks before the text to their right; others by name at the end."""
    first = _visible_after(characters, 0)
    along = _Places(layer)[first] if first < len(characters) else None
    ax, ay = (round(along.ux), round(along.uy)) if along else (1, 0)

    def shown(box: Sequence[float]) -> tuple[float, float, float, float]:
        """Left, bottom, right and top in the direction of the text, from a corner of the page."""
        xs = sorted((box[0] * ax + box[1] * ay, box[2] * ax + box[3] * ay))
        ys = sorted((box[1] * ax - box[0] * ay, box[3] * ax - box[2] * ay))
        return xs[0], ys[0], xs[1], ys[1]

    boxes = [
        (shown(layer.get_charbox(i)), i) for i, c in enumerate(characters) if c not in _SKIPPED
    ]
    unlabelled: Marked = []
    for n, field in sorted(enumerate(fields), key=lambda pair: shown(pair[1].box)[0]):
        left, bottom, right, top = shown(field.box)
        low, high = bottom - _LINE_ROOM, top + _LINE_ROOM
        beside = [(box, i) for box, i in boxes if low < (box[1] + box[3]) / 2 < high]
        behind = [(box[0], -i) for box, i in beside if right - 2 < box[0] < right + _TICK_ROOM]
        before = [(box[2], i) for box, i in beside if box[2] < left + 2]
        value = [(character, -2 - n) for character in field.value]
        if field.is_tick and behind:
            at = -min(behind)[1]
            yield at, at, [*value, (" ", -1)]
        elif before:
            at = max(before)[1] + 1
            yield at, at, [(" ", -1), *value]
        else:
            unlabelled += [*((c, -1) for c in f"\n{field.name}: "), *value]
    yield len(characters), len(characters), unlabelled


# ---------------------------------------------------------------------------------------------
# Hidden layers, which viewers show only if the user turns them on

HIDDEN: ContextVar[frozenset[bytes]] = ContextVar("HIDDEN", default=frozenset())
"""The names of the hidden layers of the PDF that is read."""

_OBJECT = lazy_pattern(rb"\s(\d+) 0 obj\s")  # 7 0 obj
_NAME = lazy_pattern(  # /Name(A \(draft\)) or /Name<FEFF00DC>
    rb"/Name(?:\(((?:\\.|[^\\)])*)\)|<([0-9A-Fa-f]*)>)", re.DOTALL
)
_ESCAPED = lazy_pattern(rb"\\(.)", re.DOTALL)  # \( in a name


def hidden_layers(document: PdfDocument, data: bytes) -> frozenset[bytes]:
    """The names of the layers that are hidden when the file is opened."""
    if b"/OCProperties" not in data and b"/ObjStm" not in data:  # which may have it, compressed
        return frozenset()
    from pypdfium2 import PdfiumError

    copy = io.BytesIO()
    try:
        document.save(copy)  # PDFium tells no layers, and writes every object but streams as it is
    except PdfiumError:
        return frozenset()
    plain = copy.getvalue()
    if b"/OCProperties" not in plain:
        return frozenset()
    places = {found[1]: found.end() for found in _OBJECT.finditer(plain)}

    def behind(key: bytes, text: bytes) -> bytes:
        """The dictionary after a key, also if it is another object: `/D<<...` or `/D 7 0 R`."""
        found = re.search(rb"/%s(?:<<| (\d+) 0 R)" % key, text)
        if found is None or found[1] is None:
            return text[found.end() :] if found else b""
        start = places.get(found[1], len(plain))
        return plain[start : plain.find(b"endobj", start)]

    def references(key: bytes, text: bytes) -> set[bytes]:
        """The numbers of the objects in a list: `/OFF[6 0 R 7 0 R]`."""
        return set(text.partition(b"/%s[" % key)[2].partition(b"]")[0].split()[::3])

    properties = behind(b"OCProperties", plain)
    default = behind(b"D", properties)
    off = references(b"OFF", default)
    if b"/BaseState/OFF" in default:
        off |= references(b"OCGs", properties) - references(b"ON", default)
    names, escapes = set[bytes](), {b"n": b"\n", b"r": b"\r"}
    for start in (places[number] for number in off if number in places):
        if (name := _NAME.search(plain, start, plain.find(b"endobj", start))) is None:
            continue
        if name[1] is None:
            names.add(bytes.fromhex(name[2].decode()))
        else:
            names.add(_ESCAPED.sub(lambda escaped: escapes.get(escaped[1], escaped[1]), name[1]))
    return frozenset(names)


def hidden_characters(layer: PdfTextPage) -> dict[int, bytes]:
    """The characters of a page that are on hidden layers, each with the name of its layer."""
    from pypdfium2 import raw

    def layers_of(item: object) -> Iterator[bytes]:
        """The names of the layers that an object of the page is on."""
        buffer, n_bytes = (c_ubyte * 1_000)(), c_ulong()
        for i in range(raw.FPDFPageObj_CountMarks(item)):
            mark = raw.FPDFPageObj_GetMark(item, i)
            if raw.FPDFPageObjMark_GetParamBlobValue(
                mark, b"Name", buffer, len(buffer), byref(n_bytes)
            ):
                yield bytes(buffer[: n_bytes.value])

    hidden = HIDDEN.get()
    known: dict[int, bytes] = {}
    found: dict[int, bytes] = {}
    for i in range(layer.count_chars() if hidden else 0):
        if made := raw.FPDFText_GetTextObject(layer, i):
            place = addressof(made.contents)
            if place not in known:
                known[place] = next((name for name in layers_of(made) if name in hidden), b"")
            if known[place]:
                found[i] = known[place]
    return found


# ---------------------------------------------------------------------------------------------
# Form fields and annotations: filled values, and other content outside the text

# flags of an annotation that no reader shows: hidden, and not shown on the screen
_NOT_SHOWN = 0b10_0010
_PASSWORD = 1 << 13  # flag of a text field


class Field(NamedTuple):
    """A field that is filled in: its box on the page, its name, its value, and whether it is a box to tick."""

    box: tuple[float, float, float, float]
    name: str
    value: str
    is_tick: bool


_ANNOTATIONS = {
    "TEXT": "comment", "CARET": "comment", "FREETEXT": "text box", "HIGHLIGHT": "highlight",
    "UNDERLINE": "underlining", "SQUIGGLY": "underlining", "STRIKEOUT": "struck passage", "STAMP": "stamp",
    "INK": "drawing", "FILEATTACHMENT": "attached file", "REDACT": "mark for redaction",
}  # fmt: skip
"""Kinds of annotations in PDFium → their names in notes."""


def read_annotations(page: PdfPage) -> tuple[list[Field], Counter[str]]:
    """The fields of a page with a value, and boxes that are ticked or not; the other annotations, counted by a singular name: `comment`."""
    from pypdfium2 import raw

    names = {getattr(raw, f"FPDF_ANNOT_{kind}"): name for kind, name in _ANNOTATIONS.items()}
    ticks = {raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON}
    choices = {raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX}
    form = page.formenv and page.formenv.raw
    fields: list[Field] = []
    counts: Counter[str] = Counter()
    for annotation in _annotations(page):
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        if kind != raw.FPDF_ANNOT_WIDGET:
            counts[names.get(kind, "")] += 1
            continue
        kind = raw.FPDFAnnot_GetFormFieldType(form, annotation) if form else -1
        if kind in ticks:
            value = "[x]" if raw.FPDFAnnot_IsChecked(form, annotation) == 1 else "[ ]"
        elif kind in choices:
            value = _chosen(form, annotation)
        elif kind == raw.FPDF_FORMFIELD_TEXTFIELD:
            value = _string(raw.FPDFAnnot_GetFormFieldValue, form, annotation)
        else:
            counts["signature"] += kind == raw.FPDF_FORMFIELD_SIGNATURE
            unread = {raw.FPDF_FORMFIELD_SIGNATURE, raw.FPDF_FORMFIELD_PUSHBUTTON}
            counts["form field"] += kind not in unread
            continue
        if not value:
            continue
        flags = raw.FPDFAnnot_GetFormFieldFlags(form, annotation)
        if kind == raw.FPDF_FORMFIELD_TEXTFIELD and flags & _PASSWORD:
            counts["password"] += 1
        elif raw.FPDFAnnot_GetFlags(annotation) & _NOT_SHOWN and not OPTIONS.get().hidden:
            counts["hidden form field"] += 1
        else:
            name = _string(raw.FPDFAnnot_GetFormFieldAlternateName, form, annotation)
            name = name or _string(raw.FPDFAnnot_GetFormFieldName, form, annotation)
            box = raw.FS_RECTF()
            raw.FPDFAnnot_GetRect(annotation, byref(box))
            sides = (box.left, box.bottom, box.right, box.top)
            fields.append(Field(sides, name, value, kind in ticks))
    del counts[""]
    return fields, counts


def _annotations(page: PdfPage) -> Iterator[Any]:
    from pypdfium2 import raw

    for i in range(raw.FPDFPage_GetAnnotCount(page)):
        if annotation := raw.FPDFPage_GetAnnot(page, i):
            try:
                yield annotation
            finally:
                raw.FPDFPage_CloseAnnot(annotation)


def _chosen(form: Any, annotation: Any) -> str:
    """The labels of the chosen options; the value itself if no option has it."""
    from pypdfium2 import raw

    def label(n: int) -> str:
        return _string(lambda *given: raw.FPDFAnnot_GetOptionLabel(form, annotation, n, *given))

    options = range(max(raw.FPDFAnnot_GetOptionCount(form, annotation), 0))
    chosen = [label(n) for n in options if raw.FPDFAnnot_IsOptionSelected(form, annotation, n)]
    return ", ".join(chosen) or _string(raw.FPDFAnnot_GetFormFieldValue, form, annotation)


def _string(function: Callable[..., int], *given: Any) -> str:
    """A text that PDFium writes into a buffer, on one line."""
    n_bytes = function(*given, None, 0)
    buffer = create_string_buffer(max(n_bytes, 2))
    function(*given, cast(buffer, POINTER(c_ushort)), n_bytes)
    return " ".join(buffer.raw[: n_bytes - 2].decode("utf-16-le", "replace").split())
