"""`LookupTask` → a query, if every word of the question has a meaning in the table; otherwise the reason.

An unexplained word may be a condition. A query without it would look right and be wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from pearl.documents.english import MONTH, WEEKDAY, month_number
from pearl.documents.passages import terms
from pearl.errors.patterns import lazy_pattern
from pearl.llm import LookupTask
from pearl.tables.mentions import Mention, question_words

# Words that compare, order and count ------------------------------------------------------------

_NUMBER = r"[$€£¥₪]?\d[\d,]*(?:\.\d+)?%?"
_TIME = r"\d{1,2}(?:[:.]\d\d)?\s*(?:[ap]\.?m\b\.?)?"

_OPERATORS = {
    "before": r"less\s+than|fewer\s+than|lower\s+than|smaller\s+than|shorter\s+than|cheaper\s+than|"
    r"earlier\s+than|older\s+than|under|below|before",
    "after": r"more\s+than|greater\s+than|higher\s+than|larger\s+than|longer\s+than|later\s+than|"
    r"newer\s+than|younger\s+than|over|above|exceeding|after",
    "at least": r"at\s+least|no\s+less\s+than|not\s+less\s+than|no\s+fewer\s+than|since|from",
    "at most": r"at\s+most|no\s+more\s+than|not\s+more\s+than|up\s+to|until",
    "is": r"exactly|in|during|on|of|equal\s+to",
}
_MONTH = rf"(?P<month>{MONTH})\.?,?\s+(?P<year>(?:1[6-9]|20)\d\d)"
_DATE = r"\d{4}-\d\d(?:-\d\d)?|(?:1[6-9]|20)\d\d"
_COMPARISON = lazy_pattern(
    rf"\b(?:between\s+(?P<low>{_DATE}|{_NUMBER})\s+and\s+(?P<high>{_DATE}|{_NUMBER})|(?:"
    + "|".join(f"(?P<o{i}>{words})" for i, words in enumerate(_OPERATORS.values()))
    + rf")\s+(?:the\s+(?:year\s+)?)?(?P<value>{_MONTH}|{_DATE}|{_NUMBER}))(?![\w:])",
    re.I,
)
_MOMENT = lazy_pattern(
    rf"\b(?P<not>not\s+)?(?P<how>open(?:s|ed)?|closed)\b(?P<between>[^,;?]*?)\b(?:on\s+|every\s+)?(?P<day>{WEEKDAY})s?\b"
    rf"(?P<part>\s+(?:morning|afternoon|evening|night|noon|midday)s?)?"
    rf"(?:\s*,?\s*(?:at\s+|from\s+|between\s+)(?P<from>{_TIME})(?:\s*(?:-|–|to|until|and)\s*(?P<to>{_TIME}))?)?",
    re.I,
)

_OF_AGE = lazy_pattern(r"older|younger", re.I)
"""With a date, `older` is earlier; with an age, it is more."""

_CUES = {
    "count": r"how\s+many|(?:what\s+is\s+)?the\s+number\s+of|count(?:\s+the|\s+of)?",
    "mean": r"on\s+average|average|mean",
    "sum": r"in\s+total|total|sum(?:\s+of)?|altogether|combined",
    "most": r"(?:the\s+)?(?:most|highest|largest|biggest|greatest|longest|maximum|maximal)",
    "least": r"(?:the\s+)?(?:least|fewest|lowest|smallest|shortest|minimum|minimal)",
    "last": r"(?:the\s+)?(?:latest|newest|most\s+recent(?:ly)?)",
    "first": r"(?:the\s+)?(?:earliest|oldest)",
    "each": r"per|(?:in|of|for|by)\s+each|each|by",
}
_CUE = lazy_pattern(
    "|".join(rf"(?P<{name}>\b(?:{words})\b)" for name, words in sorted(_CUES.items(), key=lambda each: each[0] not in ("last", "count"))), re.I
)  # fmt: skip

LOGICAL = lazy_pattern(
    r"\b(?:no|not|non|nor|neither|never|none|without|except|excluding|other|or|either|than|more|most|less|least|"
    r"fewer|fewest|before|after|since|until|between|over|under|above|below|only|both|all|every|same|also|besides)\b"
    r"|n['’]t\b",
    re.I,
)
"""Words that negate conditions, join them by `or`, or compare."""
VAGUE = lazy_pattern(
    r"\b(?:now|today|tonight|tomorrow|yesterday|currently|at\s+the\s+moment|near(?:by|est)?|close(?:st)?\s+to|"
    r"near\s+me|soon|recently|this\s+(?:week|month|year)|last\s+(?:week|month|year)|change[ds]?|difference|"
    r"compared?|ratio|percent(?:age)?|share|why|if)\b",
    re.I,
)
"""Words that columns do not answer or queries cannot compute."""
FRAME = frozenset((
    "list", "show", "name", "give", "tell", "find", "there", "which", "what", "who", "where",
    "when", "many", "number", "row", "entry", "record", "item", "one", "thing", "place", "see",
    "get", "visit", "go", "have", "has", "had", "do", "does", "did", "is", "are", "was", "were",
    "be", "can", "could", "will", "would", "should", "offer", "provide", "available", "exist",
    "located", "situated", "please", "me", "all", "any", "some", "their", "its", "detail",
    "information", "know", "need", "want", "look", "work", "looking", "search", "with", "that",
    "those", "these", "of", "table", "data", "file", "long", "much",
))  # fmt: skip
"""Words of questions that are not conditions on rows."""
GENERIC = ("row", "record", "entry", "item", "line", "one", "place", "result")
"""General nouns for rows."""

VALUES = ("value", "synonym", "short", "alike")
COLUMNS = ("column", "column word")
_PHRASES = ("phrase", "negated")
_RANK = {how: rank for rank, how in enumerate(("value", "column", *VALUES[1:], "column word", *_PHRASES))}  # fmt: skip

_NO = lazy_pattern(
    r"\b(?:not|no|non|without|except(?:\s+for)?|excluding|other\s+than|lack(?:s|ing)?|(?:is|are|do|does)n['’]t)"
    r"(?:[\s-]+(?:a|an|the|any|in|at|have|speak|offer|located|of))*[\s-]*\Z",
    re.I,
)
"""Negates the next condition."""
_JOINT = lazy_pattern(r"[\s,]*(?:(?P<word>and|or|and/or|nor)\b)?\s*(?:(?:also\s+)?(?:in|at|a|an|the|of|for|speaks?)\s+)*", re.I)  # fmt: skip
_HAS = lazy_pattern(r"\b(?:have|has|having|with)\s+(?:a|an|any)\s+\Z", re.I)
_BY_PLACE = lazy_pattern(r"\b(?:in|at|on|from|of|near)\s+(?:the\s+)?\Z", re.I)
_AS_CONDITION = lazy_pattern(
    r"\b(?:(?:is|are|was|were|be|been)(?:\s+(?:still|now|already|\w+ly))?(?:\s+(?:at|in|on|out\s+of|to|under))?"
    r"|at|in|on|out\s+of|under)\s+\Z", re.I
)  # fmt: skip
"""Precedes a column that is a condition: `which books are on loan`."""
_IS_ASKED = lazy_pattern(r"\s*(?:does|do|did|is|are|was|were|has|have|had|can|could|will)\b", re.I)
_WHICH = lazy_pattern(
    r"\s*(?:(?:in|at|of|for|on|from)\s+)?(?:which|what)\s+(?:(?P<n>\d{1,3})\s+)?", re.I
)
_TOP = lazy_pattern(r"\b(?:top|first|best)\s+(\d{1,3})\b", re.I)
_LIST_ALL = lazy_pattern(
    r"\s*(?:please\s+)?(?:list|show|give|find|name)\s+(?:me\s+)?(?:all|every)\b", re.I
)
_YEAR = lazy_pattern(r"(?:1[6-9]|20)\d\d(?:-\d\d)*")
_ROW_NUMBER = lazy_pattern(r"\s+(?:number\s+|no\.?\s*|#\s*)?(\d+(?:\.\d+)?)(?![\w:,])", re.I)
_AMOUNTS = frozenset(terms("quantity amount number count units pieces stock sold"))
"""Terms of columns that count several things in one row."""
_PART = lazy_pattern(r"\s*(year|quarter|month|weekday)s?\b", re.I)


class UnsureError(Exception):
    """A word of a question has no certain meaning in the table."""


def _numbers(mentions: Iterable[Mention]) -> set[int]:
    """The positions of the words of mentions."""
    return {at for mention in mentions for at in range(mention.start, mention.end)}


def _names(mentions: Iterable[Mention], separator: str) -> str:
    """The columns and values of mentions, for messages."""
    names = dict.fromkeys(
        f"{mention.column}: {mention.text}" if mention.text else mention.column
        for mention in mentions
    )
    return separator.join(list(names)[:4])


def write_query(task: LookupTask) -> str:
    """The query of a question, or `Undecided:` with the reason.

    Example:
        >>> from pearl.actions.operators import LOOKUP
        >>> from pearl.llm import TableColumn
        >>> columns = (TableColumn("Name", "text"), TableColumn("Kind", "text"))
        >>> words = (Mention(2, 3, "Kind", "Pharmacy", "value"),)
        >>> write_query(LookupTask("a", LOOKUP, "How many pharmacies are there?", columns, words))
        '{"where": [{"column": "Kind", "op": "is", "value": "Pharmacy"}], "aggregate": {"function": "count"}}'
        >>> write_query(LookupTask("a", LOOKUP, "How many pharmacies tonight?", columns, words))
        "Undecided: 'tonight' matches no column and no cell"
    """
    try:
        return json.dumps(_Reader(task).query(), ensure_ascii=False)
    except UnsureError as error:
        return f"Undecided: {error}"


class _Reader:
    """A question, with the words that are explained."""

    def __init__(self, task: LookupTask) -> None:
        self.question = task.question
        self.mentions = task.mentions
        self.kinds = {column.name: column.kind for column in task.columns}
        self.lists = {column.name for column in task.columns if column.is_list}
        self.first = task.columns[0].name if task.columns else ""
        self.places = [word.span() for word in question_words(task.question)]
        self.words = [task.question[start:end] for start, end in self.places]
        self.content = {
            i for i, word in enumerate(self.words)
            if (stems := terms(word, drop_stop_words=True)) and not FRAME & {word.lower(), *stems}
        }  # fmt: skip
        self.left = set(self.content)
        self.logical = {match.start() for match in LOGICAL.finditer(self.question)}
        subject = {*terms(task.table), *terms(" ".join(GENERIC))}
        # Words that only name the kind of rows.
        self.nouns = {i for i, w in enumerate(self.words) if subject & {w.lower(), *terms(w)}}
        self.where: list[dict[str, Any]] = []
        self.open = ""  # a column that is a condition without a value
        self.used: set[str] = set()  # columns with a condition
        self.taken: set[int] = set()  # words with a meaning

    # Places of words ------------------------------------------------------------------------------

    def at(self, start: int, end: int) -> set[int]:
        """The words between two character offsets."""
        return {i for i, (at, to) in enumerate(self.places) if at < end and to > start}

    def span(self, mention: Mention) -> tuple[int, int]:
        """The character span of a mention."""
        return self.places[mention.start][0], self.places[mention.end - 1][1]

    def text(self, mention: Mention) -> str:
        """The text of a mention."""
        return self.question[slice(*self.span(mention))]

    def _use(self, start: int, end: int) -> None:
        """Mark the words between two character offsets as explained."""
        words = self.at(start, end)
        self.left -= words
        self.taken |= words
        self.logical -= {at for at in self.logical if start <= at < end}

    def _unsure(self, mentions: Sequence[Mention]) -> UnsureError:
        """The error for words that may mean several things."""
        return UnsureError(f"'{self.text(mentions[0])}' may mean {_names(mentions, ' or ')}")

    def query(self) -> dict[str, Any]:
        """The query."""
        if every := _LIST_ALL.match(self.question):
            self._use(*every.span())
        exact = _numbers(mention for mention in self.mentions if mention.how == "value")

        def free(pattern: re.Pattern[str]) -> list[re.Match[str]]:
            """Matches outside of values and of words with a meaning."""
            matches = pattern.finditer(self.question)
            return [m for m in matches if not self.at(*m.span()) & (exact | self.taken)]

        self._moments()
        of_columns = _numbers(mention for mention in self.mentions if mention.how == "column")
        compared = [
            match for match in free(_COMPARISON)
            if not self.at(match.end() - 1, match.end()) & of_columns  # a column called 2012
        ]  # fmt: skip
        for match in compared:
            self._use(*match.span())
        self.which = _WHICH.match(self.question)
        if self.which and self.which["n"]:
            self._use(*self.which.span("n"))
        cues = free(_CUE)
        for match in cues:
            self._use(*match.span())
        self.cues = {match.lastgroup or "": match for match in cues}
        self.chosen = self._choose()
        for mention in self.chosen:
            self._use(*self.span(mention))
        self.columns = [mention for mention in self.chosen if mention.how in COLUMNS]
        for mention in self.columns:
            if self._is_noun(mention):
                self.nouns.add(mention.start)
        for match in compared:
            self.where.append(self._comparison(match))
        for mention in self.columns:  # a number that identifies a row: `order 1003`
            number = _ROW_NUMBER.match(self.question, self.span(mention)[1])
            if number and self.kinds[mention.column] == "number":
                self.where.append({"column": mention.column, "op": "is", "value": number[1]})
                self.used.add(mention.column)
                self._use(*number.span())
        shown = self._conditions()
        self.left -= self.nouns
        vague = VAGUE.search(self.question)
        if vague and not self.at(*vague.span()) & self.taken:
            raise UnsureError(f"'{vague[0]}' matches no column and no cell")
        try:
            query = self._form(shown)
        finally:
            self._check()  # an unexplained word takes precedence as the reason
        return query

    # Which mentions a question means ---------------------------------------------------------------

    def _choose(self) -> list[Mention]:
        """Mentions that do not overlap, in order; longer ones and more certain ones win."""
        free = [m for m in self.mentions if not self.taken & _numbers([m])]
        named = _numbers(m for m in free if m.how not in _PHRASES)
        # Words that name a value or a column are not searched for in other cells.
        free = [m for m in free if m.how not in _PHRASES or not self._content(m) <= named]
        spans: dict[tuple[int, int], list[Mention]] = {}
        for mention in free:
            spans.setdefault((mention.start, mention.end), []).append(mention)
        order = sorted(
            spans.values(),
            key=lambda group: (-len(self._content(group[0])), min(_RANK[m.how] for m in group)),
        )
        chosen: list[Mention] = []
        for group in order:
            if not _numbers(chosen) & _numbers(group):
                chosen += self._best(group, free)
        return sorted(chosen, key=lambda mention: mention.start)

    def _content(self, mention: Mention) -> set[int]:
        return self.content & _numbers([mention])

    def _best(self, group: list[Mention], free: Sequence[Mention]) -> list[Mention]:
        """The meaning of some words: one value, or columns."""
        best = min(_RANK[mention.how] for mention in group)
        values = [mention for mention in group if mention.how in VALUES]
        if best == _RANK["value"]:
            group = [mention for mention in group if mention.how == "value"]
            if len(group) == 1:
                self._check_name(group[0], free)
        elif best != _RANK["synonym"] and any(mention.how in COLUMNS for mention in group):
            columns = [mention for mention in group if mention.how == "column"]
            # Between `Order` and `Ordered`, the spelling decides.
            written = [
                mention for mention in columns
                if self.text(mention).lower().rstrip("s") == mention.column.lower().rstrip("s")
            ] or columns  # fmt: skip
            if values and not written:
                raise self._unsure([mention for mention in group if mention.how not in _PHRASES])
            # `Units` is not `Unit price` as well.
            if any(self.text(m).casefold() == m.column.casefold() for m in written):
                return written
            # If several columns match, their kinds decide later which one is compared.
            return [*written, *(mention for mention in group if mention.how == "column word")]
        elif best <= _RANK["alike"]:
            group = values
        different = list({(mention.column, mention.text): mention for mention in group}.values())
        if len(different) > 1 and not self._asked_rows(self.mentions):
            raise self._unsure(different)
        return different

    def _check_name(self, mention: Mention, free: Sequence[Mention]) -> None:
        """Reject `Haifa pharmacy`, which may be a pharmacy in Haifa; `Haifa Pharmacy` is a name."""
        inner = [
            other for other in free
            if other.how in VALUES and other.column != mention.column
            and mention.start <= other.start and other.end <= mention.end
        ]  # fmt: skip
        if (
            mention.end - mention.start > 1
            and self._content(mention) <= _numbers(inner)
            and self.text(mention) != mention.text
        ):
            raise self._unsure([mention, *inner])

    def _asked_rows(self, mentions: Iterable[Mention]) -> list[Mention]:
        """The names of rows that a yes/no question is about: `Does Eva Moe have a car?`."""
        if not _IS_ASKED.match(self.question):
            return []
        return [m for m in mentions if m.column == self.first and m.how == "value"]

    def _is_noun(self, mention: Mention) -> bool:
        """Whether a mention only names the kind of rows: `clinics`, if the first column is `Clinic name`."""
        is_word = mention.end - mention.start == 1 and mention.how == "column word"
        return (is_word or mention.column == self.first) and any(
            other.column == self.first for other in self._beside(mention)
        )

    def _beside(self, mention: Mention) -> list[Mention]:
        """The other columns that the words of a mention name."""
        return [other for other in self.columns if other.start == mention.start]

    # Conditions -----------------------------------------------------------------------------------

    def _moments(self) -> None:
        """Conditions on opening hours."""
        hours = [name for name, kind in self.kinds.items() if kind == "hours"]
        for match in _MOMENT.finditer(self.question):
            if len(hours) != 1:
                raise UnsureError(
                    "the question asks for opening hours, and the table does not have exactly one column of them"
                )
            day = match.end("between"), match.end()
            if match["part"]:  # "afternoon" has no exact hours
                raise UnsureError(f"'{self.question[slice(*day)]}' does not say which hours")
            value = match["day"]
            if match["from"]:
                value += f" {match['from'].strip()}"
            if match["to"]:
                value += f"-{match['to'].strip()}"
            condition: dict[str, Any] = {"column": hours[0], "op": "open", "value": value}
            is_open = match["how"].lower().startswith("open") != bool(match["not"])
            self.where.append(condition if is_open else {"no": condition})
            self._use(match.start(), match.end("how"))
            self._use(*day)

    def _comparison(self, match: re.Match[str]) -> dict[str, Any]:
        """A condition on a number or a date; a mention nearby names the column."""
        low, high = (match["low"] or match["value"]).rstrip(","), match["high"]
        if match["month"]:
            low = f"{match['year']}-{month_number(match['month']):02}"
        op = next((op for i, op in enumerate(_OPERATORS) if match[f"o{i}"]), "between")
        column = None
        if (of_age := _OF_AGE.match(match[0])) and not (_YEAR.fullmatch(low) or match["month"]):
            op = "after" if of_age[0].lower() == "older" else "before"
            column = self._column_of(("number",), match.end()) or self._only_column("age")
        if _YEAR.fullmatch(low):
            column = self._column_of(("date",), match.end()) or self._only_column("year")
        is_figure = op != "is" or not re.match(r"(?:in|on|during)\b", match[0], re.I)
        if column is None and is_figure:
            column = self._column_of(("number",), match.end())
        if column is None:
            raise UnsureError(f"'{match[0]}' refers to no column in the question")
        if op != "between":
            return {"column": column, "op": op, "value": low.replace(",", "")}
        ends = (("at least", low), ("at most", high))
        return {
            "all": [{"column": column, "op": op, "value": end.replace(",", "")} for op, end in ends]
        }

    def _column_of(self, kinds: tuple[str, ...], near: int) -> str | None:
        """The column of a kind that is mentioned; the nearest to a character if there are several."""
        distance = {
            mention: min(abs(place - near) for place in self.span(mention))
            for mention in self.columns
            if self.kinds.get(mention.column) in kinds
            # A number that identifies the row is not compared.
            and (mention.column, self.kinds[mention.column]) != (self.first, "number")
        }
        nearest = [m for m in distance if distance[m] == min(distance.values())]
        if not nearest:
            return None
        if len({mention.column for mention in nearest}) > 1:
            raise self._unsure(nearest)
        self.used.add(nearest[0].column)
        return nearest[0].column

    def _only_column(self, term: str) -> str | None:
        """The only column with a term in its name, if it has numbers or dates."""
        columns = [name for name in self.kinds if term in terms(name)]
        if len(columns) != 1 or self.kinds[columns[0]] not in ("number", "date"):
            return None
        self.used.add(columns[0])
        return columns[0]

    def _conditions(self) -> list[str]:
        """Add a condition for each value; return the columns whose values the question asks for."""
        shown: list[str] = []
        names = [m for m in self.chosen if m.column == self.first and m.how == "value"]
        asked = self._asked_rows(self.chosen)
        groups: list[list[tuple[Mention, dict[str, Any]]]] = []
        for mention in self.chosen:
            ends = [self.span(m)[1] for m in self.chosen if m.end <= mention.start]
            before = self.question[max(ends, default=0) : self.span(mention)[0]]
            negation = _NO.search(before)
            if mention.how in COLUMNS:
                if negation or _HAS.search(before):
                    self._has(mention, negation)
                elif not self._is_noun(mention):
                    again = [m for m in self.columns if m.column == mention.column and m.start != mention.start]  # fmt: skip
                    if _AS_CONDITION.search(before) and not (
                        names or again or mention.column in self.used
                    ):
                        self.open = mention.column
                    shown.append(mention.column)
                continue
            if asked and mention.start >= asked[-1].end and not _BY_PLACE.search(before):
                shown.append(mention.column)
                continue
            condition = self._value(mention)
            if negation:
                self._use_negation(mention, negation)
                condition = {"no": condition}
            joins = groups and not negation and groups[-1][-1][0].column == mention.column
            if joins and "no" not in groups[-1][-1][1]:
                groups[-1].append((mention, condition))
            else:
                groups.append([(mention, condition)])
        self.where += map(self._joined, groups)
        if asked and shown:  # the requested cells are displayed, so the other words select no rows
            self.left -= {at for at in self.left if at >= asked[-1].end}
        return shown

    def _has(self, mention: Mention, negation: re.Match[str] | None) -> None:
        """Add a condition that a cell is empty or not: `without an email`, `with an email`."""
        if len(self._beside(mention)) > 1:
            raise self._unsure(self._beside(mention))
        if negation:
            self.where.append({"column": mention.column, "op": "is empty"})
            self._use_negation(mention, negation)
        elif mention.column not in self.used and mention.start not in self.nouns:
            self.where.append({"column": mention.column, "op": "is not empty"})

    def _use_negation(self, mention: Mention, negation: re.Match[str]) -> None:
        end = self.span(mention)[0]
        self._use(end - len(negation[0]), end)

    def _value(self, mention: Mention) -> dict[str, Any]:
        """The condition that a cell has the value or the phrase of a mention."""
        text = self.text(mention)
        if mention.how == "phrase" and mention.end - mention.start == 1 and not text[0].isupper():
            raise UnsureError(
                f"some cells of {mention.column} contain '{text}', which may mean more"
            )
        if mention.how == "negated":
            raise UnsureError(f"some cells of {mention.column} negate '{text}'")
        op = "contains" if mention.how == "phrase" or mention.is_entry else "is"
        return {"column": mention.column, "op": op, "value": mention.text}

    def _joined(self, group: list[tuple[Mention, dict[str, Any]]]) -> dict[str, Any]:
        """Adjacent conditions on one column: `in Haifa or Lod`, `Arabic and Hebrew`."""
        mentions, conditions = zip(*group, strict=True)
        if len(group) == 1:
            return group[0][1]
        words = set()
        for mention, other in pairwise(mentions):
            between = self.span(mention)[1], self.span(other)[0]
            match = _JOINT.fullmatch(self.question[slice(*between)])
            if match is None:
                raise self._unsure([mention, other])
            words |= {(match["word"] or "").lower()} - {""}
            self._use(*between)
        if len(words) != 1:
            raise self._unsure(mentions)
        is_list = all(mention.is_entry or mention.how == "phrase" for mention in mentions)
        return {"all" if words == {"and"} and is_list else "any": list(conditions)}

    # What is counted, ordered or shown ------------------------------------------------------------

    def _form(self, columns: list[str]) -> dict[str, Any]:
        """The whole query, from its conditions and the columns that are asked about."""
        query: dict[str, Any] = {"where": self.where} if self.where else {}
        shown = list(dict.fromkeys(columns))
        numbers = [name for name in shown if self.kinds[name] in ("number", "date")]
        group = self._groups()
        free = [name for name in numbers if name not in self.used]
        if self.open and self.open not in {*group, *self.used}:
            raise UnsureError(f"the question does not say which value {self.open} must have")
        which = self.which
        head = next((m for m in self.columns if which and self.span(m)[0] == which.end()), None)
        if head is not None and head.start in self.nouns:
            head = None
        limit = int(which["n"]) if which and which["n"] else None
        if top := _TOP.search(self.question):
            limit = int(top[1])
            self._use(*top.span())
        function = self._function(numbers)
        order = next((name for name in ("most", "last", "least", "first") if name in self.cues), None)  # fmt: skip
        is_down = order in ("most", "last")
        is_named = any(m.column == self.first and m.how in VALUES for m in self.chosen)
        if head and not group and self.kinds[head.column] == "text" and (order or not is_named):
            group = [head.column]
        asked = [name for name in shown if name not in group]
        if listed := [name for name in group if name in self.lists]:
            raise UnsureError(
                f"cells of {listed[0]} list several values, so rows cannot be grouped by it"
            )
        if group and order:
            function = function or {"function": "count"}
            if function["function"] == "count" and free:
                raise UnsureError(f"each group has several values of {numbers[0]}")
        if "count" in self.cues and not group:
            function = self._counted(asked)
        if group:
            query["group"] = group
            if function:
                query["aggregate"] = function
            if function and order:
                of = f" of {function['column']}" if "column" in function else ""
                query["sort"] = {"by": function["function"] + of, "descending": is_down}
                query["limit"] = limit or 1
            return query
        if function and order:
            raise UnsureError(
                "the question asks for the highest or lowest figure, but not of which groups"
            )
        if function:
            return query | {"aggregate": function}
        if order:
            of_one = free or self._compared(numbers)
            if len(of_one) != 1:
                raise UnsureError("the question does not say by which column to order the rows")
            if head or re.match(r"\s*what\s+(?:is|was|are)\b", self.question, re.I):
                extreme = "max" if is_down else "min"
                return query | {"aggregate": {"function": extreme, "column": of_one[0]}}
            query |= {"sort": {"by": of_one[0], "descending": is_down}, "limit": limit or 1}
        elif limit is not None:
            raise UnsureError("the question does not say which rows come first")
        elif not self.where and not asked:
            raise UnsureError("the question names no column and no value")
        # A number does not identify its row to a reader.
        names = [self.first] if self.kinds[self.first] != "number" else list(self.kinds)
        return {"select": list(dict.fromkeys([*names, *asked])), **query}

    def _groups(self) -> list[str]:
        """The columns by which rows are grouped."""
        cue = self.cues.get("each")
        if cue is None:
            return []
        if not {"count", "mean", "sum"} & self.cues.keys():
            raise UnsureError(f"the question does not say what '{cue[0]}' refers to")
        match = _PART.match(self.question, cue.end())
        if match and (column := self._column_of(("date",), cue.start())) is not None:
            self._use(*match.span(1))
            return [f"{column} by {match[1].lower()}"]
        after = [m for m in self.columns if 0 <= self.span(m)[0] - cue.end() <= 5]
        if len(after) != 1:
            raise UnsureError(f"'{cue[0]}' refers to no column in the question")
        return [after[0].column]

    def _compared(self, numbers: list[str]) -> list[str]:
        """The columns of conditions, as in `the highest age over 60`; the question must name no other column of values."""
        grouped = [m.column for m in self.columns if m.start in self.nouns]
        others = {
            m.column for m in self.columns if m.column not in {*self.used, *grouped, self.first}
        }
        each = self._groups()
        if others := others.difference(each):
            raise UnsureError(f"{min(others)} is not a column of numbers")
        return numbers

    def _function(self, numbers: list[str]) -> dict[str, Any] | None:
        name = next((name for name in ("mean", "sum") if name in self.cues), None)
        if name == "sum" and "count" in self.cues:
            return None
        if name is None:
            return {"function": "count"} if "count" in self.cues else None
        of = [column for column in numbers if self.kinds[column] == "number"]
        of = [column for column in of if column not in self.used] or self._compared(of)
        if len(of) != 1:
            raise UnsureError("the question does not say which column of numbers it means")
        return {"function": name, "column": of[0]}

    def _counted(self, asked: list[str]) -> dict[str, Any]:
        """A count of rows, or of different values: `how many cities`."""
        end = self.cues["count"].end()
        behind = re.compile(r"\s+(?:different\s+|distinct\s+)?").match(self.question, end)
        at = behind.end() if behind else end
        self.left -= self.at(end, at)
        counted = next((m for m in self.chosen if self.span(m)[0] == at), None)
        if counted is not None and counted.start in self.nouns:
            counted = None
        if counted is not None and counted.how in COLUMNS:
            if self.kinds[counted.column] != "text":
                raise UnsureError(f"{counted.column} is a number and cannot be counted")
            return {"function": "count different", "column": counted.column}
        if others := [name for name in asked if name not in self.used]:
            raise UnsureError(f"the question does not say which value {others[0]} must have")
        amounts = [name for name, kind in self.kinds.items() if kind == "number" and _AMOUNTS & set(terms(name))]  # fmt: skip
        if amounts and counted is not None:
            raise UnsureError(f"'how many' may mean rows or their {amounts[0]}")
        return {"function": "count"}

    def _check(self) -> None:
        """Raise an error if a word is unexplained."""
        if self.left:
            words = ", ".join(f"'{self.words[at]}'" for at in sorted(self.left))
            near = _names((m for m in self.mentions if self.left & _numbers([m])), ", ")
            hint = f"; near it: {near}" if near else ""
            raise UnsureError(f"{words} matches no column and no cell{hint}")
        if self.logical:
            (word,) = re.findall(r"\w+(?:['’]t)?", self.question[min(self.logical) :])[:1]
            raise UnsureError(f"the question does not say what '{word}' refers to")
