"""Merge different names of one thing: by spelling, and by a model's verdicts on the most similar pairs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import log, sqrt

from msgspec.structs import replace

from pearl.actions.columns import read_column
from pearl.actions.values import MAY_CHANGE
from pearl.documents.comparisons import is_no_key, key_of, spelling_of
from pearl.documents.numbers import listed
from pearl.documents.passages import WORD, terms
from pearl.documents.rows import Row, Rows, shortened
from pearl.errors.escaping import counted

SAME, DIFFERENT = "same", "different"
VERDICTS = SAME, DIFFERENT, "cannot tell"

Pair = tuple[str, str]

MAX_PARTNERS = 5  # Maximum pairs that a model is asked about one name
MAX_PAIRS = 50_000  # Maximum pairs that a model is asked about
MAX_OWNERS = 20
"""A word in more names than this proposes no pairs: that names share it says little, and there would be too many."""
MAX_LETTERS = 200  # Maximum characters of a name; a longer value is a text
MAX_TOLD = 10  # Maximum names, and maximum pairs, in a note
_MAX_INITIALS = 8  # maximum letters of a name that may be an abbreviation: `IBM`
_REACH = 3  # neighbours on either side in alphabetical order that are compared
_MIN_LIKENESS = 0.5  # minimum share of the shorter name's trigrams that a neighbour has

_QUOTED = ('""', "''", "“”", "‘’", "«»", "„“")


def same_key(name: str) -> str:
    """The key of a spelling; names with equal keys certainly mean the same thing."""
    key = key_of(name).rstrip(" .,;:")
    while len(key) > 2 and key[0] + key[-1] in _QUOTED:
        key = key[1:-1].strip().rstrip(" .,;:")
    return key or key_of(name)


class Resolution:
    """The names in a field of rows, and the pairs of them that a model is asked about."""

    def __init__(self, rows: Rows, field: str) -> None:
        self._rows = rows
        self._column = read_column(rows, field)
        self._keys = [
            None if value is None or is_no_key(value) else same_key(value)
            for value in self._column.values
        ]
        self._spelled: dict[str, Counter[str]] = defaultdict(Counter)
        for key, value in zip(self._keys, self._column.values, strict=True):
            if key is not None:
                self._spelled[key][spelling_of(value or "")] += 1
        likely = _likely({key: self._best(key) for key in self._spelled if len(key) <= MAX_LETTERS})
        self._n_likely, self._pairs = len(likely), likely[:MAX_PAIRS]
        pairs = (f"A: {self._best(a)}\nB: {self._best(b)}" for a, b in self._pairs)
        self.pairs = Rows(tuple(Row(pair) for pair in pairs))

    def _best(self, key: str) -> str:
        """The most frequent spelling of a key, whatever the order of the rows."""
        return min(self._spelled[key].items(), key=lambda item: (-item[1], item[0]))[0]

    def collect(self, rows: Rows, replies: Sequence[str | None], column: str) -> Rows:
        """Give rows one name per cluster of names judged the same; a contradicting verdict dissolves the cluster."""
        said = dict(zip(self._pairs, replies, strict=False))
        clusters = {key: [key] for key in self._spelled}
        for (a, b), verdict in said.items():
            if verdict == SAME and clusters[a] is not clusters[b]:
                small, large = sorted((clusters[a], clusters[b]), key=len)
                large += small
                clusters |= dict.fromkeys(small, large)
        torn = [
            pair for pair, verdict in said.items()
            if verdict == DIFFERENT and clusters[pair[0]] is clusters[pair[1]]
        ]  # fmt: skip
        for a, _ in torn:
            clusters |= {key: [key] for key in clusters[a]}
        spelled: dict[str, Counter[str]] = defaultdict(Counter)
        for key, own in self._spelled.items():
            spelled[clusters[key][0]].update(own)
        best = {first: max(each, key=each.__getitem__) for first, each in spelled.items()}
        names = {key: best[clusters[key][0]] for key in self._spelled}
        why: dict[str, str] = {}
        for (a, b), verdict in said.items():
            if verdict == SAME and clusters[a] is clusters[b]:
                told = f"a model says that {_both(self._best(a), self._best(b))} are the same"
                why = {a: told, b: told} | why
        unsure = [pair for pair, verdict in said.items() if verdict not in (SAME, DIFFERENT)]
        apart = [(a, b) for a, b in (*unsure, *torn) if clusters[a] is not clusters[b]]
        return self._named(names, why, column).noting(*self._notes(names, apart, column))

    def _named(self, names: Mapping[str, str], why: Mapping[str, str], column: str) -> Rows:
        """The rows with their names, and with the reason if the name is not the row's own spelling."""
        named = []
        for row, key, value in zip(self._rows.every, self._keys, self._column.values, strict=True):
            name, told = None if value is None else "", ""
            if key is not None and (name := names[key]) != spelling_of(value or ""):
                told = "its spelling" if key == same_key(name or "") else why[key]
            named.append(row.with_fields({column: name, f"{column} (why)": told}).valued(name))
        n = len(self._rows)
        return replace(
            self._rows, rows=tuple(named[:n]), doubtful=tuple(named[n:]), column=column,
            is_answered=True, shows_possible=False, totals=(),
        )  # fmt: skip

    def _notes(
        self, names: Mapping[str, str], unsure: Sequence[Pair], column: str
    ) -> Iterator[str]:
        """Notes on names that were merged and on pairs kept apart."""
        yield from self._column.notes
        others: dict[str, list[str]] = {}
        for key, spelled in self._spelled.items():
            others.setdefault(names[key], []).extend(x for x in spelled if x != names[key])
        told = [shortened(f"{name} = {', '.join(each)}") for name, each in others.items() if each]
        if told:
            n = sum(map(len, self._spelled.values()))
            yield f"{column}: {n:,} spellings are {len(others):,} names: {listed(told, MAX_TOLD, '; ')}"
        if unsure:
            pairs = [shortened(_both(self._best(a), self._best(b))) for a, b in unsure]
            n_pairs = counted(len(unsure), "pair")
            yield f"{MAY_CHANGE} the names in {column}: {n_pairs} undecided or contradictory, kept apart: {listed(pairs, MAX_TOLD, '; ')}"
        if (n := self._n_likely) > MAX_PAIRS:
            yield f"{column}: of {n:,} pairs of like names, the {MAX_PAIRS:,} most alike were compared"
        if n := sum(len(key) > MAX_LETTERS for key in self._spelled):
            yield f"{column}: {counted(n, 'value')} too long for a name, compared by spelling only"


def _both(a: str, b: str) -> str:
    return f"'{shortened(a)}' and '{shortened(b)}'"


def _likely(names: Mapping[str, str]) -> list[Pair]:
    """The most similar pairs of keys, by rare words, initials or letters; best first, `MAX_PARTNERS` per key."""
    keys = sorted(names)
    if len(keys) <= MAX_PARTNERS + 1:
        return list(combinations(keys, 2))
    own = [_marks(names[key]) for key in keys]
    owners, weight = _owners(own)
    scores: dict[tuple[int, int], float] = defaultdict(float)
    for mark, those in owners.items():
        if len(those) <= MAX_OWNERS:
            for pair in combinations(those, 2):
                scores[pair] += weight[mark]
    size = [sqrt(sum(map(weight.__getitem__, marks))) for marks in own]
    for i, j in scores:
        scores[i, j] /= size[i] * size[j]
    bare = ["".join(filter(str.isalnum, key)) for key in keys]
    threes = [{word[i : i + 3] for i in range(max(1, len(word) - 2))} for word in bare]
    _, rarity = _owners(threes)
    sums = [sum(map(rarity.__getitem__, each)) for each in threes]
    for letters in (bare, [word[::-1] for word in bare]):
        order = sorted(range(len(keys)), key=letters.__getitem__)
        for step in range(1, _REACH + 1):
            for i, j in map(sorted, zip(order, order[step:], strict=False)):
                like = sum(map(rarity.__getitem__, threes[i] & threes[j])) / min(sums[i], sums[j])
                if like >= _MIN_LIKENESS:
                    scores[i, j] = max(scores[i, j], like)
    n_partners = Counter[int]()
    likely = []
    for i, j in sorted(scores, key=lambda pair: (-scores[pair], pair)):
        if max(n_partners[i], n_partners[j]) < MAX_PARTNERS:
            n_partners.update((i, j))
            likely.append((keys[i], keys[j]))
    return likely


def _owners(own: Sequence[set[str]]) -> tuple[dict[str, list[int]], dict[str, float]]:
    """For each mark, the numbers of the names that have it, and a weight: the rarer, the higher."""
    owners: dict[str, list[int]] = defaultdict(list)
    for i, marks in enumerate(own):
        for mark in marks:
            owners[mark].append(i)
    return owners, {mark: log(1 + len(own) / len(those)) for mark, those in owners.items()}


def _marks(name: str) -> set[str]:
    """Features that two spellings of a name may share: words, the first letter with the last word, initials."""
    words, rare = WORD.findall(name.casefold()), terms(name, drop_stop_words=True)
    marks = set(rare)
    if len(words) > 1:
        marks |= {
            f"{one[0]} {other}" for one, other in (words[:1] + words[-1:], words[-1:] + words[:1])
        }
        initials = ("".join(word[0] for word in each) for each in (words, rare))
        # Initials often leave out one or two last words, such as "Inc" or "Co Ltd".
        marks |= {
            f"={each[:n]}" for each in initials for n in range(max(2, len(each) - 2), len(each) + 1)
        }
    if len(letters := "".join(filter(str.isalpha, name.casefold()))) <= _MAX_INITIALS:
        marks.add(f"={letters}")
    return marks
