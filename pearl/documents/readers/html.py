"""Web pages: the text as a browser lays it out, without markup, scripts and styles."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import TYPE_CHECKING

from pearl.documents.marks import list_number, lowered, raised
from pearl.documents.readers import OPTIONS, ReaderText, not_read
from pearl.documents.readers.text import decode
from pearl.errors import DataError
from pearl.errors.patterns import lazy_pattern

if TYPE_CHECKING:
    from inscriptis.model.html_document_state import HtmlDocumentState
    from inscriptis.model.html_element import HtmlElement as InscriptisElement
    from lxml.html import HtmlElement

SUFFIXES = (".html", ".htm", ".xhtml")

_DECLARED_ENCODING = lazy_pattern(rb"""(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.I)
_DECLARATION_BYTES = 1024
"""Bytes within which a page must declare its encoding (HTML Living Standard, 13.2.3.2)."""

_OF_NO_TEXT = frozenset({"hidden", "password", "submit", "button", "reset", "image", "file"})
_CONTROLS = dict.fromkeys([*range(9), 0x0B, *range(0x0E, 0x20)], " ")
# class="a", value=5, disabled; possessive, because a page may have megabytes of them
_ATTRIBUTE = r"""(?:[\s/]*+(?:=[^\s/=>]*+|[^\s/=>]++)(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+)?+)?+)"""
_ELEMENT = lazy_pattern(rf"<[A-Za-z][^\s/>]*+{_ATTRIBUTE}*+")
_MOST_ATTRIBUTES = 10_000
"""Maximum attributes of an element: libxml2 compares each with all earlier ones."""

_STRUCK = ("del", "s", "strike")
_LONGEST_MARK = 200  # characters; longer raised text is a style, no mark or exponent

_MAX_SPAN = 100  # maximum columns or rows of a merged cell
_MAX_SPREAD = 100_000  # maximum cells added to a page
_MAX_LENGTH = 40  # maximum indent in characters, and margin in lines, of a `style`


def recognises(data: bytes) -> bool:
    """Whether the bytes begin as a web page does: `<?xml version="1.0"?> <!DOCTYPE html>`."""
    begin = data.removeprefix(b"\xef\xbb\xbf").lstrip()[:_DECLARATION_BYTES].lower()
    if begin.startswith(b"<?xml"):
        begin = begin.partition(b">")[2]
    words = begin.replace(b">", b" > ").split(maxsplit=2)
    return words[:1] == [b"<html"] or words[:2] == [b"<!doctype", b"html"]


def read(data: bytes, path: str) -> ReaderText:
    """The text of a page."""
    from inscriptis.html_engine import Inscriptis
    from inscriptis.model.config import ParserConfig
    from inscriptis.model.tag import CustomHtmlTagHandlerMapping

    declared = _DECLARED_ENCODING.search(data, 0, _DECLARATION_BYTES)
    page = decode(data, path, declared=declared[1].decode() if declared else None)
    # The parser stops at a NUL and would silently drop the rest.
    tree = _tree(page.translate(_CONTROLS).strip(), path)
    if tree is None:
        return ReaderText("", notes=page.notes)
    left_out = _drop_unshown(tree)
    _write_forms(tree)
    _write_marks(tree)
    _spread_merged_cells(tree)
    _number_lists(tree)
    lists = CustomHtmlTagHandlerMapping({"li": _begin_entry}, {})
    config = ParserConfig(table_cell_separator="\t", custom_html_tag_handler_mapping=lists)
    attributes = config.attribute_handler
    attributes.attribute_mapping = {**attributes.attribute_mapping, "style": _apply_style}
    text: str = Inscriptis(tree, config).get_text()
    # Cells are padded to the column width, even in the last column.
    lines = ("\t".join(cell.rstrip(" ") for cell in line.split("\t")) for line in text.split("\n"))
    text = "\n".join(lines).strip("\n")
    return ReaderText(text, notes=(*page.notes, *not_read(left_out)))


def _tree(page: str, path: str) -> HtmlElement | None:
    """The page as a tree, or None if it is blank. A partly parsed page is an error."""
    from lxml.etree import LxmlError, ParserError
    from lxml.html import HTMLParser, document_fromstring

    declaration, end, rest = page.partition("?>")
    if end and declaration.startswith("<?xml ") and ">" not in declaration:
        page = rest  # the declared encoding no longer applies
    if not page:
        return None
    for element in _ELEMENT.finditer(page):
        is_long = element.end() - element.start() > 2 * _MOST_ATTRIBUTES  # ` a`: at least 2 each
        if is_long and len(re.findall(_ATTRIBUTE, element[0])) > _MOST_ATTRIBUTES:
            raise DataError(
                f"an element has more than {_MOST_ATTRIBUTES:,} attributes",
                path=path,
                help="convert it to plain text",
            )
    parser = HTMLParser(huge_tree=True)  # otherwise libxml2 stops at a nesting depth of 256
    try:
        tree = document_fromstring(page, parser=parser)
    except ParserError:  # the page has only comments
        return None
    except LxmlError:
        tree = None
    # libxml2 repairs most errors; after a fatal one it stops and returns a partial tree.
    fatal = next((entry for entry in parser.error_log if entry.level_name == "FATAL"), None)
    if fatal is not None and fatal.type_name == "ERR_NO_MEMORY":
        raise MemoryError
    if fatal is not None or tree is None:
        reason = fatal.message.partition(",")[0].strip() if fatal else "no reason given"
        raise DataError(
            f"the page cannot be read to its end: {reason}",
            path=path,
            help="simplify it, or convert it to plain text",
        )
    return tree


def _has_style(element: HtmlElement, name: str, value: str) -> bool:
    """Whether the `style` of an element has a value for a property."""
    style = element.get("style", "").lower()
    return name in style and any(
        key.strip() == name and value in values.split()
        for key, _, values in (each.partition(":") for each in style.split(";"))
    )


def _drop_unshown(tree: HtmlElement) -> dict[str, int]:
    """Remove struck and hidden text; count such passages. `hidden` in the options shows what is hidden."""
    struck = [
        element
        for element in tree.xpath("//del | //s | //strike | //*[@style]")
        if element.tag in _STRUCK
        or _has_style(element, "text-decoration", "line-through")
        or _has_style(element, "text-decoration-line", "line-through")
    ]
    left_out = {"struck text": _drop(struck)}
    _drop(list(tree.iter("template", "datalist", "rt", "rp")))  # rt and rp: how a word is read
    hidden = [
        element
        for element in tree.xpath("//*[@hidden or @style]")
        if "hidden" in element.attrib
        or _has_style(element, "display", "none")
        or _has_style(element, "visibility", "hidden")
    ]
    if not OPTIONS.get().hidden:
        left_out["hidden text"] = _drop(hidden)
        return left_out
    for element in hidden:
        for name in ("hidden", "style"):
            element.attrib.pop(name, None)
    return left_out


def _drop(elements: Sequence[HtmlElement]) -> int:
    """Remove elements; return the number of those with text."""
    n_shown = sum(any(map(str.strip, element.itertext())) for element in elements)
    for element in elements:
        if element.getparent() is not None:
            element.drop_tree()
    return n_shown


def _write_forms(tree: HtmlElement) -> None:
    """Write the values of a form as text: entered, chosen and ticked ones."""
    for field in list(tree.iter("input", "select")):
        kind = field.get("type", "text").lower()
        if field.tag == "select":
            options = list(field.iter("option"))
            chosen = [option for option in options if "selected" in option.attrib]
            if not chosen and "multiple" not in field.attrib:
                chosen = options[:1]  # as browsers do
            for option in set(options) - set(chosen):
                option.drop_tree()
        elif kind in {"checkbox", "radio"}:
            field.tail = f"{'[x]' if 'checked' in field.attrib else '[ ]'} {field.tail or ''}"
        elif kind not in _OF_NO_TEXT and field.get("value", "").strip():
            field.tail = f" {field.get('value')} {field.tail or ''}"


def _write_marks(tree: HtmlElement) -> None:
    """Write exponents, indices and fractions as text."""
    for element in list(tree.iter("sup", "sub", "span", "msup", "msub", "msubsup", "mfrac")):
        tag, inner = str(element.tag), list(element)
        if tag == "mfrac" and len(inner) == 2:  # a half is not twelve
            inner[0].tail = "/"
        # After the base, `msup` has an exponent, `msub` an index, `msubsup` an index and an exponent.
        for child in inner[1:] if tag in {"msup", "msub", "msubsup"} else ():
            _move(child, is_up=child is not inner[1] or tag == "msup")
        if tag == "sup" or _has_style(element, "vertical-align", "super"):
            _move(element, is_up=True)
        elif tag == "sub" or _has_style(element, "vertical-align", "sub"):
            _move(element, is_up=False)
    for element in tree.xpath("//annotation | //annotation-xml"):  # MathML repeats the formula
        element.drop_tree()


def _move(element: HtmlElement, *, is_up: bool) -> None:
    """Write the text of an element as raised or lowered text."""
    whole = ""
    for piece in element.itertext(with_tail=False):
        whole += str(piece)
        if len(whole) > _LONGEST_MARK:
            return
    text = (raised if is_up else lowered)(whole)
    if text != whole:
        for child in list(element):
            child.drop_tree()
        element.text = text


def _number_lists(tree: HtmlElement) -> None:
    """Number the entries of lists, which have starts and styles that inscriptis ignores."""
    for entry in tree.iter("li"):
        entry.attrib.pop("data-number", None)  # of the page
    for listed in tree.iter("ol"):
        entries = [entry for entry in listed if entry.tag == "li"]
        step = -1 if "reversed" in listed.attrib else 1
        at = _integer(listed.get("start"), len(entries) if step < 0 else 1)
        for entry in entries:
            at = _integer(entry.get("value"), at)
            entry.set("data-number", list_number(at, listed.get("type", "1")) or str(at))
            at += step


def _integer(given: str | None, otherwise: int) -> int:
    given = (given or "").strip()
    return int(given) if given.removeprefix("-").isdecimal() and len(given) < 10 else otherwise


def _begin_entry(state: HtmlDocumentState, attributes: Mapping[str, str]) -> None:
    from inscriptis.model.tag.list_tag import li_start_handler

    li_start_handler(state, {})
    if number := attributes.get("data-number"):
        state.tags[-1].list_bullet = f"{number}. "


def _spread_merged_cells(tree: HtmlElement) -> None:
    """Replace merged cells by cells for each row and column: a value is repeated in rows, a heading also in columns."""
    n_left = _MAX_SPREAD
    for table in tree.iter("table"):
        # Column → the rows below that a merged cell still covers, and the cell
        open_below: dict[int, tuple[int, HtmlElement]] = {}
        rows = [row for row in table.iter("tr") if next(row.iterancestors("table")) is table]
        for row in rows:
            at = 0
            cells = [cell for cell in row if cell.tag in ("td", "th")]
            for cell in [*cells, None]:  # None: what stands after the last cell
                while at in open_below and n_left:
                    n_more, above = open_below.pop(at)
                    copy = deepcopy(above)
                    row.append(copy) if cell is None else cell.addprevious(copy)
                    if n_more > 1:
                        open_below[at] = (n_more - 1, above)
                    at, n_left = at + 1, n_left - 1
                if cell is None:
                    continue
                n_columns, n_rows = _span(cell, "colspan"), _span(cell, "rowspan")
                blank = cell.makeelement(cell.tag)
                for i in range(n_columns):
                    if n_rows > 1:
                        open_below[at + i] = (n_rows - 1, deepcopy(cell if i == 0 else blank))
                    if i and n_left:
                        copy = deepcopy(cell) if cell.tag == "th" else deepcopy(blank)
                        copy.tail = None
                        cell.addnext(copy)
                        n_left -= 1
                at += n_columns


def _span(cell: HtmlElement, name: str) -> int:
    """The number of columns or rows of a cell; 1 if its attribute is not a number."""
    given = (cell.attrib.pop(name, "") or "").strip()
    return max(1, min(int(given), _MAX_SPAN)) if given.isascii() and given.isdigit() else 1


def _apply_style(style: str, element: InscriptisElement) -> None:
    """Apply a `style` with bounded lengths, because every line is indented by that many blanks."""
    from inscriptis.model.css import CssParse

    with suppress(OverflowError):  # of a length of 400 digits
        CssParse.attr_style(style, element)
    for name in ("padding_inline", "margin_before", "margin_after"):
        length = getattr(element, name)
        setattr(element, name, max(-_MAX_LENGTH, min(length, _MAX_LENGTH)))
