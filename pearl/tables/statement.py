"""A SQL statement as tokens: where it does not fit the columns' types, and which rows it leaves undecided.

The engines parse statements, but compare words with numbers without an error and drop NULL without a
note. This module reads as much of a statement as is needed to report both. A statement that it does not
understand is assumed to depend on every cell of the columns that it names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from pearl.errors.patterns import lazy_pattern
from pearl.tables.columns import TypedColumn
from pearl.tables.specification import QueryError

_TOKEN = lazy_pattern(
    r"""(?P<comment>--[^\n]*+|/\*.*?(?:\*/|\Z)) | (?P<string>'(?:[^']|'')*+')
    | (?P<quoted>"(?:[^"]|"")*+"|`[^`]*+`|\[[^\[\]]*+\]) | (?P<number>\d[\w.]*+|\.\d\w*+) | (?P<word>[^\W\d]\w*+)
    | <>|!=|<=|>=|==|\|\||::|\S""",
    re.S | re.X,
)
_COMPARED = frozenset(["=", "==", "<>", "!=", "<", ">", "<=", ">="])
_ARITHMETIC = frozenset("+-*/%")
_OF_NUMBERS = frozenset(["avg", "max", "min", "sum", "total"])
_GIVES_NUMBERS = frozenset(["abs", "avg", "count", "length", "round", "sum", "total"])
_NUMERIC_TYPE = lazy_pattern(r"(?:big|huge|small|tiny)?int|real|num|dec|float|double", re.I)
_CLAUSES = frozenset(["from", "where", "group", "having", "window", "order", "limit", "offset"])
_NESTED = frozenset(["except", "fetch", "intersect", "join", "qualify", "union", "values", "with"])
_ENDS_OF_ORDER = frozenset(["limit", "offset", "rows", "range", "groups", "union", ";"])
_OF_ORDER = frozenset(["asc", "by", "desc", "first", "last", "nulls"])
_THREE_VALUED = frozenset(
    """and or not in between like ilike true false lower upper trim fold abs round length substr substring replace
    instr year month strftime""".split()  # noqa: SIM905 - one a line is twenty lines
)
"""Words of conditions whose result is NULL wherever a NULL operand may change it."""


_NO_CALLS = frozenset(
    """all and as between by case distinct else end exists from group having in is like limit not offset on or
    over select then when where filter""".split()  # noqa: SIM905 - one a line is twenty lines
)
"""Words that may precede parentheses or `*` but are not functions."""


class Token(NamedTuple):
    """A token of a statement."""

    text: str
    start: int
    depth: int
    kind: str
    name: str

    @property
    def word(self) -> str:
        """A word or a symbol, in lower case; "" for quoted names and values."""
        return self.name if self.kind == "word" else "" if self.kind else self.text

    @property
    def value(self) -> str:
        """The content of a string."""
        return self.text[1:-1].replace("''", "'")


_NOTHING = Token("", 0, 0, "", "")


def tokens(sql: str) -> list[Token]:
    """The tokens of a statement without its comments."""
    statement = []
    depth = 0
    for match in _TOKEN.finditer(sql):
        kind, text = match.lastgroup or "", match[0]
        depth -= text == ")"
        if kind != "comment":
            name = text[1:-1].replace('""', '"') if kind == "quoted" else text
            name = name.casefold() if kind in ("quoted", "word") else ""
            statement.append(Token(text, match.start(), depth, kind, name))
        depth += text == "("
    return statement


Columns = Mapping[str, TypedColumn]  # columns by lower-case name


def with_typed_values(sql: str, columns: Columns) -> str:
    """The statement with quoted numbers unquoted where it compares them with columns of numbers."""
    statement = tokens(sql)
    numbers: dict[int, str] = {}
    for i, token in enumerate(statement):
        _check_types(statement, i, columns)
        if token.text in _COMPARED:
            pairs = [(i - 1, i + 1), (i + 1, i - 1)]
        elif token.word in ("in", "between"):
            named = i - 2 if _at(statement, i - 1).word == "not" else i - 1
            pairs = [(named, j) for j in _values_after(statement, i)]
        else:
            continue
        for operand, value in pairs:
            column = columns.get(_operand(statement, operand).name)
            literal = _literal(statement, value)
            if column is not None:
                _check_value(column, literal)
            is_number = (
                column.kind == "number" if column else _gives_number(statement, operand, columns)
            )
            if is_number and literal.kind == "string" and _is_number(literal.value):
                numbers[literal.start] = literal.value
    return _replaced(sql, statement, {start: (text, "") for start, text in numbers.items()})


def _at(statement: Sequence[Token], i: int) -> Token:
    return statement[i] if 0 <= i < len(statement) else _NOTHING


def _operand(statement: Sequence[Token], i: int) -> Token:
    """The token at a place; for `table.column`, the token of the column."""
    return _at(statement, i + 2 if _at(statement, i + 1).text == "." else i)


def _literal(statement: Sequence[Token], i: int) -> Token:
    token = _at(statement, i + 1 if _at(statement, i).text in ("-", "+") else i)
    return token if token.kind in ("string", "number") else _NOTHING


def _values_after(statement: Sequence[Token], i: int) -> Iterator[int]:
    """The places of the values of `IN` and of `BETWEEN`."""
    if statement[i].word == "between":
        yield i + 1
        end = next(
            (j for j in range(i, min(i + 5, len(statement))) if statement[j].word == "and"), None
        )
        if end is not None:
            yield end + 1
        return
    for j in range(i + 2, len(statement)):
        if statement[j].depth <= statement[i].depth:
            return
        yield j


def _gives_number(statement: Sequence[Token], i: int, columns: Columns) -> bool:
    """Whether the expression that begins or ends at a token is a number, such as `sum(Fee)`."""
    token = _at(statement, i)
    if token.text == ")":
        places = range(i - 1, -1, -1)
    elif token.kind == "word" and _at(statement, i + 1).text == "(":
        places = range(i + 2, len(statement))
    else:
        return token.kind == "number"
    other = next((j for j in places if statement[j].depth == token.depth), i)
    first, last = sorted((i, other))
    call = statement[max(first - 1, 0) : last]
    kinds = {columns[part.name].kind for part in call if part.name in columns}
    return kinds == {"number"} or bool(_GIVES_NUMBERS & {part.word for part in call[:2]})


def _is_number(text: str) -> bool:
    return (
        re.fullmatch(r"\s*[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,3})?\s*", text) is not None
    )


def _check_value(column: TypedColumn, literal: Token) -> None:
    if column.kind == "number":
        fits = literal.kind != "string" or _is_number(literal.value)
        kind = "numbers"
    elif column.kind == "date":
        fits = literal.kind == "" or (literal.kind == "string" and _is_day(literal.value))
        kind = "days, written as '2020-01-31'"
    else:
        fits = literal.kind != "number"
        kind = "texts, written in single quotes"
    if not fits:
        raise QueryError(f"{column.name} is a column of {kind}; {literal.text[:60]} is not one")


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _check_types(statement: Sequence[Token], i: int, columns: Columns) -> None:
    token, before = statement[i], _at(statement, i - 1)
    if token.kind == "string" and token.value.casefold() in columns:
        is_value = before.text in _COMPARED or before.word in ("as", "like", "ilike", "in", "and")
        if not is_value and not (before.text in ("(", ",") and _is_in_list(statement, i)):
            raise QueryError(f'{token.text} is a text; write the column as "{token.value}"')
    if token.word in _OF_NUMBERS and _at(statement, i + 1).text == "(":
        first = i + 3 if _at(statement, i + 2).word in ("distinct", "all") else i + 2
        column = columns.get(_operand(statement, first).name)
        end = first + (3 if _at(statement, first + 1).text == "." else 1)
        is_whole = _at(statement, end).text == ")"
        if token.word in ("max", "min") and _at(statement, first).word == "replace":
            raise QueryError("replace(...) gives texts: write CAST(replace(...) AS REAL)")
    elif token.word in ("cast", "try_cast"):
        column = columns.get(_operand(statement, i + 2).name)
        end = i + 5 if _at(statement, i + 3).text == "." else i + 3
        is_whole = _NUMERIC_TYPE.match(_at(statement, end + 1).word) is not None
    else:
        column = columns.get(token.name)
        first = i - 2 if before.text == "." else i
        is_whole = bool({_at(statement, first - 1).text, _at(statement, i + 1).text} & _ARITHMETIC)
    if column is not None and is_whole and column.kind in ("text", "hours"):
        some = ", ".join(repr(value[:40]) for value in column.values[:3])
        raise QueryError(f"{column.name} is not a column of numbers; it has {some}")


def _is_in_list(statement: Sequence[Token], i: int) -> bool:
    opened = next((j for j in range(i, -1, -1) if statement[j].depth < statement[i].depth), 0)
    return _at(statement, opened - 1).word == "in"


def _replaced(sql: str, statement: Sequence[Token], changes: Mapping[int, tuple[str, str]]) -> str:
    """The statement with some tokens replaced, and texts inserted after them."""
    parts, at = [], 0
    for token in statement:
        if token.start in changes:
            parts += [sql[at : token.start], *changes[token.start]]
            at = token.start + len(token.text)
    return "".join([*parts, sql[at:]])


_NUMBER, _END_OF_NUMBER = "as_number(", "/**/)"


def in_sql(name: str) -> str:
    """The name of a result column as the original statement writes it, before `sqlite_dialect`."""
    return name.replace("*1.0/", "/").replace(_NUMBER, "").replace(_END_OF_NUMBER, "")


def sqlite_dialect(sql: str) -> str:
    """The statement rewritten so that SQLite answers it as DuckDB would.

    A name in double quotes is never a text, a text never a number; division is not integer division;
    texts are compared without case; NULL is sorted last.

    Example:
        >>> sqlite_dialect('SELECT "Fee" / 2 FROM rows ORDER BY "Fee" LIMIT 1')
        'SELECT as_number(`Fee`/**/) *1.0/ 2 FROM rows ORDER BY `Fee` NULLS LAST LIMIT 1'
    """
    statement = tokens(sql)
    before = [""] * len(statement)
    texts = [token.text for token in statement]
    behind = [""] * len(statement)
    for first, last in _numeric_terms(statement):
        before[first] += _NUMBER
        behind[last] += _END_OF_NUMBER
    for i, token in enumerate(statement):
        # SQLite takes a name in double quotes for a text where no column has it.
        if token.text[0] == '"' and len(token.text) > 1:
            texts[i] = "`" + token.text[1:-1].replace('""', '"').replace("`", "``") + "`"
        elif token.text == "/":
            texts[i] = "*1.0/"
        elif token.kind == "string" and _at(statement, i - 1).text in _COMPARED:
            behind[i] += " COLLATE NOCASE"  # results of functions have no collation
    places = {token.start: i for i, token in enumerate(statement)}
    for end in _ends_of_terms(statement):
        behind[places[end.start]] += " NULLS LAST"
    return _replaced(
        sql,
        statement,
        {
            token.start: (before[i] + texts[i], behind[i])
            for i, token in enumerate(statement)
            if before[i] or behind[i] or texts[i] != token.text
        },
    )


def _numeric_terms(statement: Sequence[Token]) -> set[tuple[int, int]]:
    """The first and last tokens of the terms that a statement adds, converts to or compares with a number."""
    terms: set[tuple[int, int]] = set()
    for i, token in enumerate(statement):
        opened = _at(statement, i + 1).text == "("
        if token.word in ("sum", "avg", "total") and opened:
            first = i + 3 if _at(statement, i + 2).word in ("distinct", "all") else i + 2
            terms.add((first, _end_of(statement, i + 1) - 1))
        elif token.word == "cast" and opened:
            end = _end_of(statement, i + 1)
            at = [
                j
                for j in range(i, end)
                if statement[j].word == "as" and statement[j].depth == token.depth + 1
            ]
            if at and _NUMERIC_TYPE.match(_at(statement, at[-1] + 1).word):
                terms.add((i + 2, at[-1] - 1))
        elif token.text in _ARITHMETIC or token.text in _COMPARED:
            sides = [_side(statement, i, -1), _side(statement, i, 1)]
            is_compared = token.text in _COMPARED
            if is_compared and not any(s and statement[s[1]].kind == "number" for s in sides):
                continue
            terms |= {s for s in sides if s and statement[s[1]].kind not in ("number", "string")}
    return {(first, last) for first, last in terms if first <= last < len(statement)}


def _end_of(statement: Sequence[Token], i: int) -> int:
    """The place of the parenthesis that closes the one at a place."""
    depth = statement[i].depth
    return next(
        (j for j in range(i + 1, len(statement)) if statement[j].depth == depth), len(statement)
    )


def _side(statement: Sequence[Token], i: int, step: int) -> tuple[int, int] | None:
    """The operand before (-1) or after (1) an operator: a name, number, call or parenthesised expression."""
    first = last = i + step
    if step == -1 and _at(statement, first).text == ")":
        depth = statement[first].depth
        first = next((j for j in range(first - 1, -1, -1) if statement[j].depth == depth), 0)
        before = _at(statement, first - 1)
        if before.word in ("exists", "filter", "in", "over"):
            return None
        first -= before.kind == "word" and before.word not in _NO_CALLS
    elif step == -1:
        while _at(statement, first - 1).text == ".":
            first -= 2
    elif _at(statement, last).text == "(":
        last = _end_of(statement, last)
    else:
        while _at(statement, last + 1).text == ".":
            last += 2
        if _at(statement, last).kind == "word" and _at(statement, last + 1).text == "(":
            last = _end_of(statement, last + 1)
    if _at(statement, last + 1).word in ("filter", "over"):
        return None
    if last >= len(statement):
        return None
    whole = _at(statement, first).text == "(" and first < last
    is_name = _at(statement, first).kind != "" and _at(statement, first).word not in _NO_CALLS
    return (first, last) if whole or is_name else None


def _ends_of_terms(statement: Sequence[Token]) -> Iterator[Token]:
    """The last token of each term of `ORDER BY` without `NULLS FIRST` or `NULLS LAST`."""
    for i, token in enumerate(statement):
        if token.word != "by" or _at(statement, i - 1).word != "order":
            continue
        term: list[Token] = []
        for j, following in enumerate([*statement[i + 1 :], _NOTHING], start=i + 1):
            # `rows` begins a frame, unless it is the name of the table.
            is_word = following.word in _ENDS_OF_ORDER and _at(statement, j + 1).text != "."
            is_end = following.depth < token.depth or not following.text
            is_end |= is_word and following.depth == token.depth
            if is_end or (following.text == "," and following.depth == token.depth):
                if term and all(part.word != "nulls" for part in term):
                    yield term[-1]
                term = []
            else:
                term.append(following)
            if is_end:
                break


@dataclass(frozen=True, slots=True)
class Dependence:
    """The cells on which the result of a statement may depend."""

    compared: frozenset[str]
    used: frozenset[str]
    condition: str
    is_of_all: bool


def dependence(
    sql: str, columns: Columns, table: str, row: str, unread: Collection[str]
) -> Dependence:
    """Find the cells on which the result of a statement may depend."""
    statement = tokens(sql)
    while statement and statement[-1].text == ";":
        statement.pop()
    everything = Dependence(frozenset(), _named(statement, columns), "", is_of_all=True)
    words = [token.word for token in statement]
    if words[:1] != ["select"] or words.count("select") > 1 or _NESTED & set(words):
        return everything
    clauses = _clauses(statement)
    source = clauses.get("from", [])
    named = [
        token.name for token in source if token.word != "as"
    ]  # the table, and its alias if any
    if not all(named) or len(named) > 2 or named[:1] != [table.casefold()]:
        return everything
    selected = clauses["select"]
    shown, used = _shown(selected, columns, row)
    is_of_all = any(
        token.text in _COMPARED or (token.word == "count" and _at(selected, i + 2).text != "*")
        for i, token in enumerate(selected)
    )
    if shown is None or {"group", "having"} & clauses.keys():
        used = _named(selected, columns)
        shown = frozenset()
    for name in ("group", "having", "window"):
        used |= _named(clauses.get(name, []), columns)
    names = {table.casefold(), source[-1].name, row}
    order = clauses.get("order", []) if {"limit", "offset"} & clauses.keys() else []
    used |= _named(order, columns)
    if any(token.kind and token.name not in {*columns, *names, *_OF_ORDER} for token in order):
        used |= shown  # ordered by the number or the alias of a column
    where = clauses.get("where", [])
    compared = _named(where, columns)
    if not where:
        return Dependence(frozenset(), used, "", is_of_all)
    if not all(_is_three_valued(where, i, columns, names, unread) for i in range(len(where))):
        return Dependence(frozenset(), used | compared, "", is_of_all=True)
    text = sql[where[0].start : where[-1].start + len(where[-1].text)]
    rows = sql[source[0].start : source[-1].start + len(source[-1].text)]
    condition = (
        f"SELECT {row} AS {row}, ({text}) IS NULL AS x FROM {rows} WHERE ({text}) IS NOT FALSE"
    )
    return Dependence(compared, used, condition, is_of_all)


def _named(statement: Sequence[Token], columns: Columns) -> frozenset[str]:
    """The columns that tokens name, all of them for `*`."""
    names = {token.name for token in statement if token.name in columns}
    for i, token in enumerate(statement):
        if token.text == "*" and _is_star(statement, i):
            return frozenset(columns)
        if token.text[0] == "[":  # a name for SQLite, a list for DuckDB
            names |= {name for name in columns if name in token.name}
    return frozenset(names)


def _is_star(statement: Sequence[Token], i: int) -> bool:
    before = _at(statement, i - 1)
    return before.text in ("", ".", ",") or before.word in ("select", "distinct", "all")


def _clauses(statement: Sequence[Token]) -> dict[str, list[Token]]:
    """The tokens of each clause of a statement without a nested one."""
    clauses: dict[str, list[Token]] = {}
    name = "select"
    for token in statement[1:]:
        if token.depth == 0 and token.word in _CLAUSES:
            name = token.word
            clauses[name] = []
        else:
            clauses.setdefault(name, []).append(token)
    return clauses


def _shown(
    statement: Sequence[Token], columns: Columns, row: str
) -> tuple[frozenset[str] | None, frozenset[str]]:
    """The columns that a statement only shows (None if it does not select the row number), and all others used."""
    items: list[list[Token]] = [[]]
    for token in statement:
        if token.text == "," and token.depth == 0:
            items.append([])
        else:
            items[-1].append(token)
    shown: set[str] = set()
    used: frozenset[str] = frozenset()
    has_row = False
    for item in items:
        plain = item[2:] if _at(item, 1).text == "." else item
        is_star = len(plain) == 1 and plain[0].text == "*"
        is_name = len(plain) == 1 and plain[0].name in {*columns, row}
        has_row |= is_star or (is_name and plain[0].name == row)
        if is_star or is_name:
            shown |= columns.keys() if is_star else {plain[0].name} - {row}
        else:
            used |= _named(item, columns)
    return (frozenset(shown) if has_row else None), used


def _is_three_valued(
    where: Sequence[Token],
    i: int,
    columns: Columns,
    names: Collection[str],
    unread: Collection[str],
) -> bool:
    """Whether a token of a condition follows SQL's logic of three values, where NULL is undecided."""
    token = where[i]
    if token.word in ("is", "null"):
        at = next((j for j in range(i - 1, -1, -1) if where[j].word not in ("is", "not")), i)
        is_alone = _at(where, at - 1).text not in {*_COMPARED, *_ARITHMETIC}
        return is_alone and where[at].name in columns and where[at].name not in unread
    if token.kind in ("quoted", "word"):
        is_word = token.kind == "word" and token.name in _THREE_VALUED
        return is_word or token.name in columns or token.name in names
    return (
        bool(token.kind)
        or token.text in _COMPARED
        or token.text in {*_ARITHMETIC, "(", ")", ",", ".", "||"}
    )
