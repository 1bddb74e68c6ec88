"""`LookupTask` → a query, if the words that the table knows account for every word of the question; else why none.

A word that is left over may be a condition, so a query without it would be wrong and look right.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
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
    r"newer\s+than|over|above|exceeding|after",
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
"""Words that turn conditions round, join them otherwise than by `and`, or compare."""
VAGUE = lazy_pattern(
    r"\b(?:now|today|tonight|tomorrow|yesterday|currently|at\s+the\s+moment|near(?:by|est)?|close(?:st)?\s+to|"
    r"near\s+me|soon|recently|this\s+(?:week|month|year)|last\s+(?:week|month|year)|change[ds]?|difference|"
    r"compared?|ratio|percent(?:age)?|share|why|if)\b",
    re.I,
)
"""What no column says, or no query computes."""
FRAME = frozenset((
    "list", "show", "name", "give", "tell", "find", "there", "which", "what", "who", "where",
    "when", "many", "number", "row", "entry", "record", "item", "one", "thing", "place", "see",
    "get", "visit", "go", "have", "has", "had", "do", "does", "did", "is", "are", "was", "were",
    "be", "can", "could", "will", "would", "should", "offer", "provide", "available", "exist",
    "located", "situated", "please", "me", "all", "any", "some", "their", "its", "detail",
    "information", "know", "need", "want", "look", "work", "looking", "search", "with", "that",
    "those", "these", "of", "table", "data", "file", "long", "much",
))  # fmt: skip
"""Words that say nothing of rows."""
GENERIC = ("row", "record", "entry", "item", "line", "one", "place", "result")
"""Nouns for whatever a row is of."""


@dataclass(frozen=True, slots=True)
class Cue:
    """Words with a meaning of their own."""

    start: int
    end: int
    name: str
    value: str = ""
    high: str = ""


def find(question: str) -> Iterator[Cue]:
    """What is counted, averaged or ordered.

    Example:
        >>> [cue.name for cue in find("How many per city, and which has the most recent?")]
        ['count', 'each', 'last']
    """
    for match in _CUE.finditer(question):
        yield Cue(match.start(), match.end(), match.lastgroup or "")


def comparisons(question: str) -> Iterator[Cue]:
    """Comparisons with a number, a year, a month or a date.

    Example:
        >>> [(cue.name, cue.value) for cue in comparisons("under $5,000 and after 2015")]
        [('before', '$5,000'), ('after', '2015')]
    """
    for match in _COMPARISON.finditer(question):
        if match["low"]:
            yield Cue(match.start(), match.end(), "between", match["low"], match["high"])
        else:
            name = next(op for i, op in enumerate(_OPERATORS) if match[f"o{i}"])
            value = match["value"].rstrip(",")
            if match["month"]:
                value = f"{match['year']}-{month_number(match['month']):02}"
            yield Cue(match.start(), match.end(), name, value)


def moments(question: str) -> Iterator[tuple[Cue, ...]]:
    """Times at which something is to be open, or not: what it says, and which words are of it.

    A part of a day is of no certain hours, and its cue has no value.

    Example:
        >>> [[(cue.name, cue.value) for cue in each] for each in moments("Who is open on Friday at 11:30?")]
        [[('open', 'Friday 11:30'), ('day', '')]]
    """
    for match in _MOMENT.finditer(question):
        value = match["day"]
        if match["from"]:
            value += f" {match['from'].strip()}"
        if match["to"]:
            value += f"-{match['to'].strip()}"
        is_open = match["how"].lower().startswith("open") != bool(match["not"])
        name = "open" if is_open else "no open"
        opened = Cue(match.start(), match.end("how"), name, "" if match["part"] else value)
        yield opened, Cue(match.end("between"), match.end(), "day")


# Which mentions a question means ---------------------------------------------------------------

VALUES = ("value", "synonym", "short", "alike")
COLUMNS = ("column", "column word")
_PHRASES = ("phrase", "negated")
_RANK = {how: rank for rank, how in enumerate(("value", "column", *VALUES[1:], "column word", *_PHRASES))}  # fmt: skip


class UnsureError(Exception):
    """A question says something that the table, or the rules, do not account for."""


class Words:
    """The words of a question."""

    def __init__(self, question: str) -> None:
        self.question = question
        self.places = [word.span() for word in question_words(question)]
        self.texts = [question[start:end] for start, end in self.places]

    def at(self, start: int, end: int) -> set[int]:
        """The words between two characters."""
        return {i for i, (at, to) in enumerate(self.places) if at < end and to > start}

    def span(self, mention: Mention) -> tuple[int, int]:
        """Where a mention is, in characters."""
        return self.places[mention.start][0], self.places[mention.end - 1][1]

    def said(self, mention: Mention) -> str:
        """A mention as it is written."""
        start, end = self.span(mention)
        return self.question[start:end]

    def counts(self, number: int) -> bool:
        """Whether a word says something of rows."""
        stems = terms(self.texts[number], drop_stop_words=True)
        return bool(stems) and not FRAME & {self.texts[number].lower(), *stems}

    def content(self, mention: Mention) -> set[int]:
        """The words of a mention that say something of rows."""
        return {at for at in range(mention.start, mention.end) if self.counts(at)}

    def between(self, candidates: Iterable[Mention]) -> UnsureError:
        """That it is open which of several is meant."""
        candidates = list(candidates)
        meant = dict.fromkeys(
            f"{other.column}: {other.text}" if other.text else other.column for other in candidates
        )
        return UnsureError(f"'{self.said(candidates[0])}' may mean {' or '.join(list(meant)[:4])}")


def choose(
    words: Words, mentions: Sequence[Mention], taken: Collection[int], about: bool
) -> list[Mention]:
    """Mentions that do not overlap, in order: the longest first, and of those the surest."""
    free = [
        mention
        for mention in mentions
        if not set(taken).intersection(range(mention.start, mention.end))
    ]
    sure = [mention for mention in free if mention.how not in _PHRASES]
    named = {at for mention in sure for at in range(mention.start, mention.end)}
    # What is named otherwise is no phrase, wherever it stands.
    free = [
        mention
        for mention in free
        if mention.how not in _PHRASES or not words.content(mention) <= named
    ]
    spans: dict[tuple[int, int], list[Mention]] = {}
    for mention in free:
        spans.setdefault((mention.start, mention.end), []).append(mention)
    order = sorted(
        spans.values(),
        key=lambda candidates: (
            -len(words.content(candidates[0])),
            min(_RANK[mention.how] for mention in candidates),
        ),
    )
    chosen: list[Mention] = []
    used: set[int] = set()
    for candidates in order:
        span = range(candidates[0].start, candidates[0].end)
        if not used.intersection(span):
            used.update(span)
            chosen += _best(words, candidates, free, about)
    return sorted(chosen, key=lambda mention: mention.start)


def _best(
    words: Words, candidates: list[Mention], free: Sequence[Mention], about: bool
) -> list[Mention]:
    """What some words mean: one value, or columns."""
    best = min(_RANK[mention.how] for mention in candidates)
    if best == _RANK["value"]:
        candidates = [mention for mention in candidates if mention.how == "value"]
        if len(candidates) == 1:
            _check_name(words, candidates[0], free)
    elif best != _RANK["synonym"] and any(mention.how in COLUMNS for mention in candidates):
        exact = _literal(words, [mention for mention in candidates if mention.how == "column"])
        values = [mention for mention in candidates if mention.how in VALUES]
        if values and not exact:
            raise words.between([mention for mention in candidates if mention.how not in _PHRASES])
        # Of several columns the kind tells which is compared.
        return [*exact, *(mention for mention in candidates if mention.how == "column word")]
    elif best <= _RANK["alike"]:
        candidates = [mention for mention in candidates if mention.how in VALUES]
    different = list({(mention.column, mention.text): mention for mention in candidates}.values())
    if len(different) > 1 and not about:
        raise words.between(different)
    return different


def _literal(words: Words, columns: list[Mention]) -> list[Mention]:
    """Of `Order` and `Ordered` the one that is written."""
    said = [mention for mention in columns if words.said(mention).lower().rstrip("s") == mention.column.lower().rstrip("s")]  # fmt: skip
    return said or columns


def _check_name(words: Words, mention: Mention, free: Sequence[Mention]) -> None:
    """`Haifa pharmacy` may be a pharmacy in Haifa, `Haifa Pharmacy` is a name."""
    inner = [
        other
        for other in free
        if other.how in VALUES and other.column != mention.column
        and mention.start <= other.start and other.end <= mention.end
    ]  # fmt: skip
    covered = {at for other in inner for at in range(other.start, other.end)}
    if (
        mention.end - mention.start > 1
        and words.content(mention) <= covered
        and words.said(mention) != mention.text
    ):
        raise words.between([mention, *inner])


# Queries --------------------------------------------------------------------------------------

_NO = lazy_pattern(
    r"\b(?:not|no|non|without|except(?:\s+for)?|excluding|other\s+than|lack(?:s|ing)?|(?:is|are|do|does)n['’]t)"
    r"(?:[\s-]+(?:a|an|the|any|in|at|have|speak|offer|located|of))*[\s-]*\Z",
    re.I,
)
"""What turns the next condition round."""
_JOINT = lazy_pattern(r"[\s,]*(?:(?P<word>and|or|and/or|nor)\b)?\s*(?:(?:also\s+)?(?:in|at|a|an|the|of|for|speaks?)\s+)*", re.I)  # fmt: skip
_HAS = lazy_pattern(r"\b(?:have|has|having|with)\s+(?:a|an|any)\s+\Z", re.I)
_BY_PLACE = lazy_pattern(r"\b(?:in|at|on|from|of|near)\s+(?:the\s+)?\Z", re.I)
_AS_CONDITION = lazy_pattern(
    r"\b(?:(?:is|are|was|were|be|been)(?:\s+(?:still|now|already|\w+ly))?(?:\s+(?:at|in|on|out\s+of|to|under))?"
    r"|at|in|on|out\s+of|under)\s+\Z", re.I
)  # fmt: skip
"""What a column stands behind that rows have to meet: `which books are on loan`."""
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
"""Columns of which a row is of several things."""
_PART = lazy_pattern(r"\s*(year|quarter|month|weekday)s?\b", re.I)


def write_query(task: LookupTask) -> str:
    """The query of a question, by what it names of the table; `Undecided: why` for none.

    Example:
        >>> from pearl.actions.operators import LOOKUP
        >>> from pearl.llm import TableColumn
        >>> from pearl.tables.mentions import Mention
        >>> words = (Mention(2, 3, "Kind", "Pharmacy", "value"), Mention(5, 7, "City", "Tel Aviv-Yafo", "short"))
        >>> columns = tuple(TableColumn(name, "text") for name in ("Name", "Kind", "City"))
        >>> def asked(question): return write_query(LookupTask("a", LOOKUP, question, columns, words))
        >>> asked("How many pharmacies are in Tel Aviv?")
        '{"where": [{"column": "Kind", "op": "is", "value": "Pharmacy"}, {"column": "City", "op": "is", \
"value": "Tel Aviv-Yafo"}], "aggregate": {"function": "count"}}'
        >>> asked("How many pharmacies are in Tel Aviv tonight?")
        "Undecided: 'tonight' matches no column and no cell"
    """
    try:
        return json.dumps(_Reader(task).query(), ensure_ascii=False)
    except UnsureError as error:
        return f"Undecided: {error}"


class _Reader:
    """A question, and which of its words are accounted for."""

    def __init__(self, task: LookupTask) -> None:
        self.question = task.question
        self.kinds = {column.name: column.kind for column in task.columns}
        self.lists = {column.name for column in task.columns if column.is_list}
        self.first = task.columns[0].name if task.columns else ""
        self.words = Words(task.question)
        self.left = {i for i in range(len(self.words.texts)) if self.words.counts(i)}
        self.logical = {match.start() for match in LOGICAL.finditer(self.question)}
        subject = {*terms(task.table), *terms(" ".join(GENERIC))}
        self.nouns = {i for i, w in enumerate(self.words.texts) if subject & {w.lower(), *terms(w)}}
        self.where: list[Any] = []
        self.open = ""  # a column that is a condition, it is open which
        self.used: set[str] = set()  # columns that something is compared in
        self.taken: set[int] = set()  # words of what is chosen
        exact = [mention for mention in task.mentions if mention.how == "value"]
        self.exact = {at for mention in exact for at in range(mention.start, mention.end)}
        self.mentions = task.mentions

    def _use(self, start: int, end: int) -> None:
        """Account for some characters."""
        self.left -= self.words.at(start, end)
        self.taken |= self.words.at(start, end)
        self.logical -= {at for at in self.logical if start <= at < end}

    def _before(self, mention: Mention) -> str:
        """The text before a mention, from the last mention on."""
        ends = [
            self.words.places[other.end - 1][1]
            for other in self.chosen
            if other.end <= mention.start
        ]
        return self.question[max(ends, default=0) : self.words.places[mention.start][0]]

    def query(self) -> dict[str, Any]:
        """The query."""
        if every := _LIST_ALL.match(self.question):
            self._use(*every.span())
        self._moments()
        compared = [cue for cue in comparisons(self.question) if not self._is_taken(cue)]
        columns_of_numbers = {
            at
            for mention in self.mentions
            if mention.how == "column"
            for at in range(mention.start, mention.end)
        }
        compared = [
            cue for cue in compared if not self.words.at(cue.end - 1, cue.end) & columns_of_numbers
        ]
        for cue in compared:
            self._use(cue.start, cue.end)
        self.which = _WHICH.match(self.question)
        if self.which and self.which["n"]:
            self._use(*self.which.span("n"))
        cues = [cue for cue in find(self.question) if not self._is_taken(cue)]
        for cue in cues:
            self._use(cue.start, cue.end)
        self.cues = {cue.name: cue for cue in cues}
        names = [
            other for other in self.mentions if other.column == self.first and other.how == "value"
        ]
        is_about = bool(names) and bool(_IS_ASKED.match(self.question))
        self.chosen = choose(self.words, self.mentions, self.taken, is_about)
        for mention in self.chosen:
            self._use(*self.words.span(mention))
        self.columns = [mention for mention in self.chosen if mention.how in COLUMNS]
        for mention in self.columns:
            self._is_noun(mention)
        for cue in compared:
            self.where.append(self._comparison(cue))
        self._numbered()
        shown = self._conditions()
        self.left -= self.nouns
        vague = VAGUE.search(self.question)
        if vague and not self.words.at(*vague.span()) & self.taken:
            raise UnsureError(f"'{vague[0]}' matches no column and no cell")
        try:
            query = self._form(shown)
        finally:
            self._check()  # what is left over is told first
        return query

    def _is_taken(self, cue: Cue) -> bool:
        """Whether the words of a cue are those of a value, or of another cue."""
        return bool(self.words.at(cue.start, cue.end) & (self.exact | self.taken))

    def _moments(self) -> None:
        hours = [name for name, kind in self.kinds.items() if kind == "hours"]
        for cue, day in moments(self.question):
            if len(hours) != 1:
                raise UnsureError("the question asks for opening hours, and the table does not have exactly one column of them")  # fmt: skip
            if not cue.value:
                said = self.question[day.start : day.end]
                raise UnsureError(f"'{said}' does not say which hours")
            condition: dict[str, Any] = {"column": hours[0], "op": "open", "value": cue.value}
            self.where.append(condition if cue.name == "open" else {"no": condition})
            for each in (cue, day):
                self._use(each.start, each.end)

    def _column_of(self, kinds: tuple[str, ...], near: int) -> str | None:
        """The column of a kind that is mentioned, the nearest to a character where several are."""
        distance = {
            mention: min(abs(place - near) for place in self.words.span(mention))
            for mention in self.columns
            # A number that says which row it is is not compared.
            if self.kinds.get(mention.column) in kinds
            and (mention.column, self.kinds[mention.column]) != (self.first, "number")
        }
        if not distance:
            return None
        nearest = min(distance.values())
        candidates = [mention for mention in distance if distance[mention] == nearest]
        if len({mention.column for mention in candidates}) > 1:
            raise self.words.between(candidates)
        self.used.add(candidates[0].column)
        return candidates[0].column

    def _of_years(self) -> str | None:
        """The only column that is called so."""
        candidates = [name for name in self.kinds if "year" in terms(name)]
        if len(candidates) != 1 or self.kinds[candidates[0]] not in ("number", "date"):
            return None
        self.used.add(candidates[0])
        return candidates[0]

    def _comparison(self, cue: Cue) -> dict[str, Any]:
        """A condition on a number or a date; on which column, a word beside it says."""
        said = self.question[cue.start : cue.end]
        column = None
        if _YEAR.fullmatch(cue.value):
            column = self._column_of(("date",), cue.end) or self._of_years()
        is_figure = cue.name != "is" or not re.match(r"(?:in|on|during)\b", said, re.I)
        if column is None and is_figure:
            column = self._column_of(("number",), cue.end)
        if column is None:
            raise UnsureError(f"'{said}' refers to no column in the question")
        ends = [cue.value.replace(",", ""), cue.high.replace(",", "")]
        if cue.name == "between":
            both = zip(("at least", "at most"), ends, strict=True)
            return {"all": [{"column": column, "op": op, "value": value} for op, value in both]}
        return {"column": column, "op": cue.name, "value": ends[0]}

    def _numbered(self) -> None:
        """Add a condition for each number behind a column: `order 1003`."""
        for mention in self.columns:
            match = _ROW_NUMBER.match(self.question, self.words.span(mention)[1])
            if match and self.kinds[mention.column] == "number":
                self.where.append({"column": mention.column, "op": "is", "value": match[1]})
                self.used.add(mention.column)
                self._use(*match.span())

    def _conditions(self) -> list[str]:
        """Add a condition for each value; the columns that are only asked about are returned."""
        shown: list[str] = []
        names = [
            mention
            for mention in self.chosen
            if mention.column == self.first and mention.how == "value"
        ]
        is_asked = bool(names) and bool(_IS_ASKED.match(self.question))
        groups: list[list[tuple[Mention, dict[str, Any]]]] = []
        for mention in self.chosen:
            before = self._before(mention)
            negation = _NO.search(before)
            if mention.how in COLUMNS:
                if negation or _HAS.search(before):
                    if len([other for other in self.columns if other.start == mention.start]) > 1:
                        raise self.words.between(
                            [other for other in self.columns if other.start == mention.start]
                        )
                    op = "is empty" if negation else "is not empty"
                    if not negation and mention.column in self.used:
                        continue
                    if not negation and mention.start in self.nouns:
                        continue
                    self.where.append({"column": mention.column, "op": op})
                    self._use_negation(mention, negation)
                elif not self._is_noun(mention):
                    others = [
                        other
                        for other in self.columns
                        if other.column == mention.column and other.start != mention.start
                    ]
                    if _AS_CONDITION.search(before) and not (
                        names or others or mention.column in self.used
                    ):
                        self.open = mention.column
                    shown.append(mention.column)
                continue
            is_about = is_asked and mention.start >= names[-1].end and not _BY_PLACE.search(before)
            if is_about:
                shown.append(mention.column)
                continue
            if (
                mention.how == "phrase"
                and mention.end - mention.start == 1
                and not self.words.said(mention)[0].isupper()
            ):
                raise UnsureError(
                    f"some cells of {mention.column} contain '{self.words.said(mention)}', which may mean more"
                )
            if mention.how == "negated":
                raise UnsureError(
                    f"some cells of {mention.column} negate '{self.words.said(mention)}'"
                )
            is_part = mention.how == "phrase" or mention.is_entry
            condition: dict[str, Any] = {
                "column": mention.column, "op": "contains" if is_part else "is", "value": mention.text
            }  # fmt: skip
            if negation:
                self._use_negation(mention, negation)
                condition = {"no": condition}
            joint = groups and not negation and groups[-1][-1][0].column == mention.column
            if joint and "no" not in groups[-1][-1][1]:
                groups[-1].append((mention, condition))
            else:
                groups.append([(mention, condition)])
        for group in groups:
            self.where.append(self._joined(group))
        if is_asked and shown:  # what is asked about is shown, and its other words select nothing
            self.left -= {at for at in self.left if at >= names[-1].end}
        return shown

    def _use_negation(self, mention: Mention, negation: re.Match[str] | None) -> None:
        if negation is not None:
            end = self.words.places[mention.start][0]
            self._use(end - len(negation[0]), end)

    def _is_noun(self, mention: Mention) -> bool:
        """Whether it only says what a row is: `clinics`, where the first column is `Clinic name`."""
        of_first = any(
            other.column == self.first for other in self.columns if other.start == mention.start
        )
        alone = mention.end - mention.start == 1 and mention.how == "column word"
        if of_first and (alone or mention.column == self.first):
            self.nouns.add(mention.start)
            return True
        return False

    def _joined(self, group: list[tuple[Mention, dict[str, Any]]]) -> dict[str, Any]:
        """Conditions on one column that follow each other: `in Haifa or Lod`, `Arabic and Hebrew`."""
        if len(group) == 1:
            return group[0][1]
        words = set()
        for (mention, _), (other, _) in pairwise(group):
            start, end = self.words.places[mention.end - 1][1], self.words.places[other.start][0]
            match = _JOINT.fullmatch(self.question[start:end])
            if match is None:
                raise self.words.between([mention, other])
            words |= {(match["word"] or "").lower()} - {""}
            self._use(start, end)
        if len(words) != 1:
            raise self.words.between([mention for mention, _ in group])
        conditions = [condition for _, condition in group]
        is_list = all(mention.is_entry or mention.how == "phrase" for mention, _ in group)
        return {"all" if words == {"and"} and is_list else "any": conditions}

    def _form(self, shown: list[str]) -> dict[str, Any]:
        """What is counted, ordered or shown of the rows."""
        query: dict[str, Any] = {"where": self.where} if self.where else {}
        conditioned = self.used
        numbers = [name for name in dict.fromkeys(shown) if self.kinds[name] in ("number", "date")]
        group = self._each()
        if self.open and self.open not in {*group, *self.used}:
            raise UnsureError(f"the question does not say which value {self.open} must have")
        asked = [name for name in dict.fromkeys(shown) if name not in {*group}]
        which = self.which
        head = next(
            (
                other
                for other in self.columns
                if which and self.words.places[other.start][0] == which.end()
            ),
            None,
        )
        limit = int(which["n"]) if which and which["n"] else None
        if top := _TOP.search(self.question):
            limit = int(top[1])
            self._use(*top.span())
        function = self._function(numbers, conditioned)
        order = next((n for n in ("most", "last", "least", "first") if n in self.cues), None)
        is_down = order in ("most", "last")
        if (
            head is not None
            and head.start not in self.nouns
            and not group
            and self.kinds[head.column] == "text"
        ):
            is_named = any(
                other.column == self.first and other.how in VALUES for other in self.chosen
            )
            if order or not is_named:
                group, asked = [head.column], [name for name in asked if name != head.column]
        if listed := [name for name in group if name in self.lists]:
            raise UnsureError(
                f"cells of {listed[0]} list several values, so rows cannot be grouped by it"
            )
        if group and order:
            function = function or {"function": "count"}
            if function["function"] == "count" and [n for n in numbers if n not in conditioned]:
                raise UnsureError(f"each group has several values of {numbers[0]}")
        if "count" in self.cues and not group:
            function = self._counted(asked, conditioned)
        if group:
            query |= {"group": group, "aggregate": function} if function else {"group": group}
            if order and function:
                by = function["function"] + (
                    f" of {function['column']}" if "column" in function else ""
                )
                query |= {"sort": {"by": by, "descending": is_down}, "limit": limit or 1}
            return query
        if function and order:
            raise UnsureError(
                "the question asks for the highest or lowest figure, but not of which groups"
            )
        if function:
            return {**query, "aggregate": function}
        if order:
            of = [name for name in numbers if name not in conditioned] or numbers
            if len(of) != 1:
                raise UnsureError("the question does not say by which column to order the rows")
            is_head = head is not None and head.start not in self.nouns
            if is_head or re.match(r"\s*what\s+(?:is|was|are)\b", self.question, re.I):
                return {
                    **query,
                    "aggregate": {"function": "max" if is_down else "min", "column": of[0]},
                }
            query |= {"sort": {"by": of[0], "descending": is_down}, "limit": limit or 1}
        elif limit is not None:
            raise UnsureError("the question does not say which rows come first")
        elif not self.where and not asked:
            raise UnsureError("the question names no column and no value")
        # A number says nothing of who or what a row is of.
        names = [self.first] if self.kinds[self.first] != "number" else list(self.kinds)
        return {"select": list(dict.fromkeys([*names, *asked])), **query}

    def _each(self) -> list[str]:
        """The columns that rows are grouped by."""
        cue = self.cues.get("each")
        if cue is None:
            return []
        if not {"count", "mean", "sum"} & self.cues.keys():
            raise UnsureError(
                f"the question does not say what '{self.question[cue.start : cue.end]}' refers to"
            )
        match = _PART.match(self.question, cue.end)
        if match and (column := self._column_of(("date",), cue.start)) is not None:
            self._use(*match.span(1))
            return [f"{column} by {match[1].lower()}"]
        after = [
            other for other in self.columns if 0 <= self.words.places[other.start][0] - cue.end <= 5
        ]
        if len(after) != 1:
            raise UnsureError(
                f"'{self.question[cue.start : cue.end]}' refers to no column in the question"
            )
        return [after[0].column]

    def _function(self, numbers: list[str], conditioned: set[str]) -> dict[str, Any] | None:
        name = next((n for n in ("mean", "sum") if n in self.cues), None)
        if name == "sum" and "count" in self.cues:
            return None
        if name is None:
            return {"function": "count"} if "count" in self.cues else None
        of = [n for n in numbers if self.kinds[n] == "number"]
        of = [n for n in of if n not in conditioned] or of
        if len(of) != 1:
            raise UnsureError("the question does not say which column of numbers it means")
        return {"function": name, "column": of[0]}

    def _counted(self, asked: list[str], conditioned: set[str]) -> dict[str, Any]:
        """Rows, or different values: `how many cities`."""
        cue = self.cues["count"]
        behind = re.compile(r"\s+(?:different\s+|distinct\s+)?").match(self.question, cue.end)
        at = behind.end() if behind else cue.end
        self.left -= self.words.at(cue.end, at)
        next_ = next(
            (other for other in self.chosen if self.words.places[other.start][0] == at), None
        )
        if next_ is not None and next_.how in COLUMNS and next_.start not in self.nouns:
            if self.kinds[next_.column] != "text":
                raise UnsureError(f"{next_.column} is a number and cannot be counted")
            return {"function": "count different", "column": next_.column}
        if others := [name for name in asked if name not in conditioned]:
            raise UnsureError(f"the question does not say which value {others[0]} must have")
        amounts = [name for name, kind in self.kinds.items() if kind == "number" and _AMOUNTS & set(terms(name))]  # fmt: skip
        if amounts and next_ is not None and next_.start not in self.nouns:
            raise UnsureError(f"'how many' may mean rows or their {amounts[0]}")
        return {"function": "count"}

    def _check(self) -> None:
        """Refuse where a word is left over."""
        if self.left:
            said = ", ".join(f"'{self.words.texts[at]}'" for at in sorted(self.left))
            near = [
                other
                for other in self.mentions
                if self.left.intersection(range(other.start, other.end))
            ]
            meant = dict.fromkeys(
                f"{other.column}: {other.text}" if other.text else other.column for other in near
            )
            hint = f"; near it: {', '.join(list(meant)[:4])}" if meant else ""
            raise UnsureError(f"{said} matches no column and no cell{hint}")
        if self.logical:
            (word,) = re.findall(r"\w+(?:['’]t)?", self.question[min(self.logical) :])[:1]
            raise UnsureError(f"the question does not say what '{word}' refers to")
