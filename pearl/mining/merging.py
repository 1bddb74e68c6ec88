"""Merge drafts of the same name and parameters, and drop entries to fit a budget."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from pearl.actions.library import meaning, shape
from pearl.documents.passages import terms
from pearl.dsl.nodes import print_action
from pearl.dsl.signatures import Action
from pearl.mining.refinement import DraftFate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CLEAR_WORDS = 4  # Minimum words of a clear definition; `Find X` alone is too vague


class Draft(Struct, frozen=True):
    """One proposed action."""

    number: int
    text: str
    action: Action | None
    question: str | None = None
    is_seed: bool = False
    flaw: str | None = None


class LibraryEntry(Struct, frozen=True):
    """An action and the drafts merged into it."""

    action: Action
    drafts: frozenset[int]
    questions: frozenset[str] = frozenset()
    is_seed: bool = False

    @property
    def support(self) -> int:
        """Number of questions it was proposed for, or of drafts without questions."""
        return len(self.questions) or len(self.drafts)

    @property
    def text(self) -> str:
        """The action's line in a library."""
        return print_action(self.action)


Fates = dict[int, DraftFate]
"""The fate of each draft so far, by its number; a merge and a drop change those of an entry."""


def entry_of(draft: Draft, action: Action) -> LibraryEntry:
    """The initial entry of a draft."""
    questions = frozenset() if draft.question is None else frozenset([draft.question])
    return LibraryEntry(action, frozenset([draft.number]), questions, draft.is_seed)


def merged(
    entries: Iterable[LibraryEntry],
    fates: Fates,
    stage: Literal["name", "model"],
    round: int = 0,
    action: Action | None = None,
) -> LibraryEntry:
    """Merge entries into one."""
    first, *others = entries
    moved = frozenset[int]().union(*(other.drafts for other in others))
    drafts = first.drafts | moved
    if action is not None and print_action(action) != first.text:
        first, moved = replace(first, action=action), drafts
    for number in moved:
        if fates[number].fate == "kept":
            fates[number] = replace(fates[number], fate="merged", stage=stage, round=round)
    return replace(
        first,
        drafts=drafts,
        questions=first.questions.union(*(other.questions for other in others)),
        is_seed=first.is_seed or any(other.is_seed for other in others),
    )


def drop(
    entry: LibraryEntry, fates: Fates, stage: Literal["model", "room"], why: str, round: int = 0
) -> None:
    """Leave out an entry with its drafts."""
    for number in entry.drafts:
        fates[number] = replace(fates[number], fate="dropped", stage=stage, round=round, why=why)


def best(entry: LibraryEntry) -> tuple[object, ...]:
    """Sort key of entries, best representative first."""
    return (
        not entry.is_seed,
        -entry.support,
        len(entry.action.definition.split()) < _CLEAR_WORDS,
        entry.action.name.count("_"),
        len(entry.action.definition),
        entry.action.name,
        entry.text,
    )


def merge_by_rule(entries: Iterable[LibraryEntry], fates: Fates) -> list[LibraryEntry]:
    """Merge entries of the same name and parameters; a model finds others with the same meaning."""
    found = sorted(entries, key=best)
    for key in (meaning, shape):  # the text that most questions proposed represents its name
        groups: dict[object, list[LibraryEntry]] = {}
        for entry in found:
            groups.setdefault((entry.action.name, key(entry.action)), []).append(entry)
        found = sorted((merged(group, fates, "name") for group in groups.values()), key=best)
    return found


class LibraryBudget(Struct, frozen=True):
    """Size limits of a library."""

    max_actions: int
    max_tokens: int | None
    count: Callable[[str], int]

    def tokens(self, entries: Sequence[LibraryEntry]) -> int:
        """Tokens of the library in a planner's prompt."""
        return self.count("\n".join(f"- {print_action(e.action)}" for e in by_name(entries)))

    def fits(self, entries: Sequence[LibraryEntry]) -> bool:
        """Whether the entries are within the limits."""
        return len(entries) <= self.max_actions and (
            self.max_tokens is None or self.tokens(entries) <= self.max_tokens
        )

    def capacity(self, entries: Sequence[LibraryEntry]) -> int:
        """About how many of the entries fit within the limits; only about, as actions differ in length."""
        if self.max_tokens is None:
            return min(len(entries), self.max_actions)
        share = self.max_tokens / max(1, self.tokens(entries))
        return min(len(entries), self.max_actions, int(len(entries) * share))


def by_name(entries: Sequence[LibraryEntry]) -> list[LibraryEntry]:
    """The order of a library: native actions first."""
    return sorted(entries, key=lambda entry: (not entry.action.is_native, entry.action.name))


def without_clashes(entries: Sequence[LibraryEntry], fates: Fates) -> list[LibraryEntry]:
    """Keep the best action of each name; actions of different shapes cannot be merged."""
    kept: dict[str, LibraryEntry] = {}
    for entry in sorted(entries, key=lambda entry: (not entry.action.is_native, *best(entry))):
        holder = kept.setdefault(entry.action.name, entry)
        if holder is not entry:
            drop(entry, fates, "room", f"the name is taken by {holder.action.signature}")
    return list(kept.values())


def prune_library(
    entries: Sequence[LibraryEntry], budget: LibraryBudget, fates: Fates
) -> list[LibraryEntry]:
    """Drop the entries that the fewest questions proposed until the rest fits; native ones and seeds stay longest."""
    alive = sorted(entries, key=lambda entry: (not entry.action.is_native, *best(entry)))
    while not budget.fits(alive) and not alive[-1].action.is_native:
        drop(alive.pop(), fates, "room", "no room")
    return alive


def shards(entries: Sequence[LibraryEntry], size: int) -> list[list[LibraryEntry]]:
    """Split entries into shards of similar ones, at most `size` (2 or more) each, by hierarchical clustering."""
    n_shards = -(-len(entries) // size)
    if n_shards <= 1:
        return [list(entries)]
    # Imported on use: `import pearl` stays light.
    import numpy as np
    from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
    from scipy.spatial.distance import squareform

    distances = squareform(1 - _likeness([entry.action for entry in entries]), checks=False)
    tree = linkage(distances, method="average")
    if len(entries) <= _MOST_ORDERED:
        tree = optimal_leaf_ordering(tree, distances)
    parts = np.array_split(leaves_list(tree), n_shards)
    return [[entries[int(i)] for i in part] for part in parts]


_MOST_ORDERED = 1_000
"""Maximum entries for optimal leaf ordering, which takes more than quadratic time."""

_FRAME = frozenset(terms(
    "action answer context determine document find get give given identify information input list "
    "locate mention name output passage provide return summarize text"
))  # fmt: skip
"""Boilerplate words of definitions, ignored in comparisons."""


def _likeness(actions: Sequence[Action]) -> NDArray[np.float64]:
    """Cosines of the TF-IDF vectors of actions, rounded so that the order of summation does not matter."""
    import numpy as np
    from scipy.sparse import csr_array

    rows: list[Counter[str]] = []
    for action in actions:
        text = action.definition  # without the names of its parameters
        for parameter in action.parameters:
            text = re.sub(rf"\b{re.escape(parameter.name)}\b(?:['’]s)?", " ", text)
        words = [*terms(action.name.replace("_", " ")), *terms(text, drop_stop_words=True)]
        rows.append(Counter(term for term in words if term not in _FRAME))
    column = {term: i for i, term in enumerate(sorted(set().union(*rows)))}
    in_how_many = Counter(term for row in rows for term in row)
    idf = {term: np.log((1 + len(rows)) / (1 + n)) + 1 for term, n in in_how_many.items()}
    cells = [
        (i, column[term], idf[term] * (1 + np.log(n)))
        for i, row in enumerate(rows)
        for term, n in row.items()
    ]
    i, j, weights = zip(*cells, strict=True) if cells else ((), (), ())
    vectors = csr_array((weights, (i, j)), shape=(len(rows), max(1, len(column))))
    products = (vectors @ vectors.T).toarray()
    lengths = np.sqrt(np.diag(products))
    lengths[lengths == 0] = 1
    cosines: NDArray[np.float64] = np.round(np.clip(products / np.outer(lengths, lengths), 0, 1), 9)
    np.fill_diagonal(cosines, 1)
    return cosines
