"""Form fields and annotations of a page of a PDF: what is filled in, and what else is not part of its text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from ctypes import POINTER, byref, c_ushort, cast, create_string_buffer
from typing import TYPE_CHECKING, Any, NamedTuple

from pearl.documents.readers import OPTIONS

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

_HIDDEN = (
    0b10_0010  # flags of an annotation that no reader shows: hidden, and not shown on the screen
)
_PASSWORD = 1 << 13  # flag of a text field


class Field(NamedTuple):
    """A field that is filled in: its box on the page, its name, its value, and whether it is a box to tick."""

    box: tuple[float, float, float, float]
    name: str
    value: str
    is_tick: bool


def filled_fields(page: PdfPage) -> list[Field]:
    """The fields of a page with a value, and boxes that are ticked or not; none unless forms are initialised."""
    from pypdfium2 import raw

    if page.formenv is None:
        return []
    form = page.formenv.raw
    found: list[Field] = []
    for annotation in _annotations(page):
        kind = raw.FPDFAnnot_GetFormFieldType(form, annotation)
        is_hidden = _is_hidden(annotation) and not OPTIONS.get().hidden
        if kind not in _kinds() or is_hidden or _is_secret(form, annotation, kind):
            continue
        is_tick = kind in {raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON}
        if is_tick:
            value = "[x]" if raw.FPDFAnnot_IsChecked(form, annotation) == 1 else "[ ]"
        elif kind == raw.FPDF_FORMFIELD_TEXTFIELD:
            value = _string(raw.FPDFAnnot_GetFormFieldValue, form, annotation)
        else:
            value = _chosen(form, annotation)
        if value:
            name = _string(raw.FPDFAnnot_GetFormFieldAlternateName, form, annotation)
            name = name or _string(raw.FPDFAnnot_GetFormFieldName, form, annotation)
            box = raw.FS_RECTF()
            raw.FPDFAnnot_GetRect(annotation, byref(box))
            found.append(Field((box.left, box.bottom, box.right, box.top), name, value, is_tick))
    return found


_ANNOTATIONS = {
    "TEXT": "comment", "CARET": "comment", "FREETEXT": "text box", "HIGHLIGHT": "highlight",
    "UNDERLINE": "underlining", "SQUIGGLY": "underlining", "STRIKEOUT": "struck passage", "STAMP": "stamp",
    "INK": "drawing", "FILEATTACHMENT": "attached file", "REDACT": "mark for redaction",
}  # fmt: skip
"""Kinds of annotations in PDFium → their names in notes."""


def left_out(page: PdfPage) -> Counter[str]:
    """What a page has beside its text and its filled fields, in the singular → how many."""
    from pypdfium2 import raw

    names = {getattr(raw, f"FPDF_ANNOT_{kind}"): name for kind, name in _ANNOTATIONS.items()}
    counts: Counter[str] = Counter()
    form = page.formenv and page.formenv.raw
    for annotation in _annotations(page):
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        if kind != raw.FPDF_ANNOT_WIDGET:
            counts[names.get(kind, "")] += 1
            continue
        field = raw.FPDFAnnot_GetFormFieldType(form, annotation) if form else -1
        if field == raw.FPDF_FORMFIELD_SIGNATURE:
            counts["signature"] += 1
        elif field not in {raw.FPDF_FORMFIELD_PUSHBUTTON, *_kinds()}:
            counts["form field"] += 1
        elif field in _kinds() and _string(raw.FPDFAnnot_GetFormFieldValue, form, annotation):
            is_secret = _is_secret(form, annotation, field)
            counts["password"] += is_secret
            is_hidden = _is_hidden(annotation) and not OPTIONS.get().hidden
            counts["hidden form field"] += is_hidden and not is_secret
    del counts[""]
    return counts


def _kinds() -> set[int]:
    """The kinds of fields whose values are read."""
    from pypdfium2 import raw

    names = ("TEXTFIELD", "COMBOBOX", "LISTBOX", "CHECKBOX", "RADIOBUTTON")
    return {getattr(raw, f"FPDF_FORMFIELD_{name}") for name in names}


def _annotations(page: PdfPage) -> Iterator[Any]:
    from pypdfium2 import raw

    for i in range(raw.FPDFPage_GetAnnotCount(page)):
        if annotation := raw.FPDFPage_GetAnnot(page, i):
            try:
                yield annotation
            finally:
                raw.FPDFPage_CloseAnnot(annotation)


def _is_hidden(annotation: Any) -> bool:
    from pypdfium2 import raw

    return bool(raw.FPDFAnnot_GetFlags(annotation) & _HIDDEN)


def _is_secret(form: Any, annotation: Any, kind: int) -> bool:
    from pypdfium2 import raw

    flags = raw.FPDFAnnot_GetFormFieldFlags(form, annotation)
    return kind == raw.FPDF_FORMFIELD_TEXTFIELD and bool(flags & _PASSWORD)


def _chosen(form: Any, annotation: Any) -> str:
    """The labels of the options that are chosen; the value if it is none of them."""
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
