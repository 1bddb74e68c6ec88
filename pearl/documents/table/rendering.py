"""Tables → Markdown for models, rows → texts that stand for themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from pearl.documents.table import Table, scale_word


def as_markdown(table: Table, max_rows: int | None = None) -> str:
    r"""A table in Markdown, with its caption, and the cells as they are written.

    Example:
        >>> from pearl.documents.rows import Row
        >>> from pearl.documents.table import make_table
        >>> print(as_markdown(make_table([Row("", {"item": "a | b", "2008": "$5"})], caption="In millions")))
        In millions
        <BLANKLINE>
        | item | 2008 |
        | --- | --- |
        | a \| b | $5 |
    """
    names = [column.name for column in table.columns]
    rows = table.rows if max_rows is None else table.rows[:max_rows]
    shown = markdown(names, ([row.fields.get(name) or "" for name in names] for row in rows))
    left = len(table.rows) - len(rows)
    return "\n".join([
        *([table.caption, ""] if table.caption else []),
        shown,
        *([f"... and {left:,} more rows"] if left else []),
    ])  # fmt: skip


def markdown(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""Cells as a Markdown table, which the unit `record` reads back.

    Example:
        >>> print(markdown(["a", "b"], [["1", "x\ny"]]))
        | a | b |
        | --- | --- |
        | 1 | x y |
    """
    return "\n".join(map(_line, chain([names, ["---"] * len(names)], rows)))


def chunks(table: Table) -> Iterator[str]:
    """Each row with its header, caption and unit, so that it is understood and found alone.

    Example:
        >>> from pearl.documents.rows import Row
        >>> from pearl.documents.table import make_table
        >>> table = make_table([Row("", {"item": "sales", "2008": "$5", "2007": ""})], caption="In millions")
        >>> list(chunks(table))
        ['In millions; item: sales; 2008: $5']
    """
    scale = scale_word(table.scale)
    is_said = not scale or scale in table.caption.casefold()
    heads = [each for each in (table.caption, "" if is_said else f"in {scale}") if each]
    for row in table.rows:
        named = (f"{name}: {' '.join(text.split())}" for name, text in row.fields.items() if text)
        yield "; ".join([*heads, *named])


def _line(cells: Sequence[str]) -> str:
    shown = (" ".join(cell.split()).replace("|", r"\|") for cell in cells)
    return f"| {' | '.join(shown)} |"
