"""Words of a question → the values, columns and phrases of cells of a table that they name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

from pearl.documents.passages import terms
from pearl.errors.patterns import lazy_pattern
from pearl.retrieval.queries import read_groups
from pearl.tables.columns import fold, word_form
from pearl.tables.query_table import QueryTable
from pearl.tables.terms import Synonyms, Thesaurus, column_terms

COLUMN_WORDS = Path(__file__).with_name("column_words.txt")  # groups of words for what columns hold

How = Literal["value", "column", "synonym", "short", "alike", "column word", "phrase", "negated"]
"""How words match, from first to last: a whole value; the name of a column; a synonym of a value; words
of only one value; nearly the spelling of a value; a word of a column's name; a phrase of cells; a phrase
that some cells negate."""

_MAX_WORDS = 40
_MAX_SPAN = 6  # maximum words of a question, and of a mention
_MAX_DIFFERENT = 2_000  # maximum distinct terms of a column that parts of terms may name
_ALIKE = 0.8  # minimum similarity of words with similar spelling
_MIN_LETTERS = 4  # minimum letters of such words
_NOT = lazy_pattern(r"\b(?:no|not|never|without|nor|neither|except|excepted)\b", re.I)


class Mention(NamedTuple):
    """Words of a question that name something of a table."""

    start: int
    end: int
    column: str
    text: str
    how: How
    is_entry: bool = False


def question_words(question: str) -> list[re.Match[str]]:
    """The words of a question, with their places."""
    return list(re.finditer(r"[^\W_]+(?:['’ʼ][^\W_]+)*", question))[:_MAX_WORDS]


def _stems(text: str) -> tuple[str, ...]:
    return tuple(terms(word_form(fold(text))))


class Mentions:
    """Finds what questions mention of a table.

    Example:
        >>> from pearl.documents.rows import Row, Rows
        >>> cells = [("Tel Aviv-Yafo", "Ophthalmology"), ("Haifa", "Cardiology")]
        >>> table = QueryTable(Rows(tuple(Row("", {"City": a, "Service": b}) for a, b in cells)))
        >>> found = Mentions(table, Thesaurus(table)).of("Which city has an oculist?")
        >>> [(one.column, one.how, one.text) for one in found]
        [('City', 'column', ''), ('Service', 'synonym', 'Ophthalmology')]
    """

    def __init__(self, table: QueryTable, thesaurus: Thesaurus) -> None:
        self._table = table
        self._synonyms = thesaurus.synonyms or Synonyms()
        self._columns = {column.name: _stems(column.name) for column in table.columns}

    def of(self, question: str) -> list[Mention]:
        """Every mention, including overlapping ones, in the order of the words."""
        words = question_words(question)
        stems = [_stems(word[0]) for word in words]
        bare = [bool(terms(fold(word[0]), drop_stop_words=True)) for word in words]
        spans = [
            (start, end, question[words[start].start() : words[end - 1].end()])
            for start in range(len(words))
            for end in range(start + 1, min(start + _MAX_SPAN, len(words)) + 1)
            if bare[start] and bare[end - 1]
        ]
        found: list[Mention] = []
        for start, end, phrase in spans:
            stems_of_span = tuple(chain.from_iterable(stems[start:end]))
            found += [Mention(start, end, *name) for name in self._of_span(phrase, stems_of_span)]
        named = {at for one in found for at in range(one.start, one.end)}
        for start, end, phrase in spans:
            if not named.issuperset(range(start, end)):
                found += [Mention(start, end, *name) for name in self._alike(phrase)]
        return sorted(dict.fromkeys(found), key=lambda one: (one.start, one.end))

    def _of_span(self, said: str, stems: tuple[str, ...]) -> Iterator[tuple[str, str, How, bool]]:
        """The names that consecutive words match."""
        values = self._values.get(stems, ())
        for column, text, is_entry in values:
            yield column, text, "value", is_entry
        valued = {column for column, _, _ in values}
        for phrase in self._synonyms.same(said):
            for column, text, is_entry in self._values.get(_stems(phrase), ()):
                if column not in valued:
                    yield column, text, "synonym", is_entry
        for column, text, is_entry in self._short(stems):
            if column not in valued:
                yield column, text, "short", is_entry
        for column, name in self._columns.items():
            if stems == name:
                yield column, "", "column", False
            elif _has(name, stems) or set(name) & self._column_words.get(stems, frozenset()):
                yield column, "", "column word", False
        form = word_form(fold(said))
        if not any(map(str.isalpha, form)):  # many cells contain a `4`
            return
        for column, text in self._texts.items():
            if form in text and column not in valued:
                yield column, said, "negated" if self._is_negated(column, form) else "phrase", False

    @cached_property
    def _values(self) -> dict[tuple[str, ...], list[tuple[str, str, bool]]]:
        """Stems → terms with these stems: column, term, whether it is an entry of a list."""
        found: dict[tuple[str, ...], list[tuple[str, str, bool]]] = {}
        for column, texts, entries in self._terms:
            for text in texts:
                found.setdefault(_stems(text), []).append((column, text, text in entries))
        found.pop((), None)
        return found

    @cached_property
    def lists(self) -> frozenset[str]:
        """The columns whose cells list several terms."""
        return frozenset(column for column, _, entries in self._terms if entries)

    @cached_property
    def _terms(self) -> list[tuple[str, list[str], frozenset[str]]]:
        """The terms of each column, and those that are entries of lists in cells."""
        found = []
        for column in self._table.columns:
            texts = () if _is_prose(column.values) else column_terms(column)
            is_list = len(texts) and set(texts) != set(column.values)
            found.append((column.name, list(texts), frozenset(texts if is_list else ())))
        return found

    def _short(self, stems: tuple[str, ...]) -> Iterator[tuple[str, str, bool]]:
        """The term of a column that contains these words, if only one does."""
        numbers = [self._with_stem.get(stem) for stem in stems]
        if not stems or None in numbers:
            return
        common = set.intersection(*(each for each in numbers if each is not None))
        by_column: dict[str, list[tuple[str, bool]]] = {}
        for number in common:
            column, text, is_entry, own = self._few[number]
            if _has(own, stems):
                by_column.setdefault(column, []).append((text, is_entry))
        for column, those in by_column.items():
            if len(those) == 1:
                yield column, *those[0]

    @cached_property
    def _few(self) -> list[tuple[str, str, bool, tuple[str, ...]]]:
        """The terms of columns with few different values, with their stems."""
        return [
            (column, text, text in entries, _stems(text))
            for column, texts, entries in self._terms
            if len(texts) <= min(_MAX_DIFFERENT, max(50, len(self._table) / 10))
            for text in texts
        ]

    @cached_property
    def _with_stem(self) -> dict[str, set[int]]:
        found: dict[str, set[int]] = {}
        for number, (_, _, _, stems) in enumerate(self._few):
            for stem in stems:
                found.setdefault(stem, set()).add(number)
        return found

    def _alike(self, said: str) -> Iterator[tuple[str, str, How, bool]]:
        """The term of a column with similar spelling, if only one has it."""
        words = word_form(fold(said)).split()
        if sum(map(len, words)) < _MIN_LETTERS:
            return
        by_column: dict[str, list[tuple[str, bool]]] = {}
        for column, text, is_entry, _ in self._few:
            own = word_form(fold(text)).split()
            if len(own) == len(words) and all(map(_is_alike, words, own)):
                by_column.setdefault(column, []).append((text, is_entry))
        for column, those in by_column.items():
            if len(those) == 1:
                text, is_entry = those[0]
                yield column, text, "alike", is_entry

    @cached_property
    def _texts(self) -> dict[str, str]:
        """All words of each text column."""
        return {
            column.name: "\n".join(word_form(fold(value)) for value in column.values)
            for column in self._table.columns
            if column.kind == "text"
        }

    def _is_negated(self, column: str, form: str) -> bool:
        """Whether some cell has a phrase in the same sentence as a negation."""
        found = self._table.known(column)
        return any(
            form in word_form(fold(sentence)) and _NOT.search(sentence)
            for value in found.values
            if _NOT.search(value)
            for sentence in re.split(r"(?<=[.;!?])\s+", value)
        )

    @cached_property
    def _column_words(self) -> dict[tuple[str, ...], frozenset[str]]:
        """Stems of a phrase for what a column holds → stems of the usual names of such columns."""
        found: dict[tuple[str, ...], frozenset[str]] = {}
        for group in read_groups(COLUMN_WORDS):
            stems = [_stems(phrase) for phrase in group]
            single = frozenset(each[0] for each in stems if len(each) == 1)
            for each in stems:
                found[each] = found.get(each, frozenset()) | single
        return found


def _is_prose(values: Sequence[str]) -> bool:
    """Whether most cells are sentences: a question names only parts of these."""
    return 2 * sum(value.rstrip().endswith((".", "!", "?")) for value in values) > len(values)


def _has(whole: tuple[str, ...], part: tuple[str, ...]) -> bool:
    """Whether `part` occurs in `whole` without gaps."""
    n = len(part)
    return bool(n) and any(whole[i : i + n] == part for i in range(len(whole) - n + 1))


def _is_alike(one: str, other: str) -> bool:
    if one == other:
        return True
    if min(len(one), len(other)) < _MIN_LETTERS - 1 or one.isdigit() or other.isdigit():
        return False
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    least = _ALIKE if len(one) > _MIN_LETTERS else 0.75
    return matcher.real_quick_ratio() >= least and matcher.ratio() >= least
