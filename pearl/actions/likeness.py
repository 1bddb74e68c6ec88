"""Actions → similarity, by signature, by the words of their names and by their definitions.

Opposites and negations have similar words but must not be merged: call `may_merge` as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from pearl.actions.thesaurus import opposites, synonyms
from pearl.documents.passages import terms
from pearl.dsl.signatures import Action
from pearl.plugins.extras import require_extra

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Matrix: TypeAlias = "NDArray[np.float64]"

_LOOKING = frozenset(terms("find identify determine locate detect discover get list"))
"""Interchangeable verbs of action names; the object distinguishes the actions."""

_FRAME = frozenset(terms(
    "action answer context determine document find get give given identify information input list "
    "locate mention name output passage provide return summarize text"
))  # fmt: skip
"""Boilerplate words of definitions, ignored in comparisons."""

_NEGATIONS = frozenset(
    terms("not no never neither nor none without except absent lack cannot least")
)
_PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non", "mis")


def shape(action: Action) -> tuple[object, ...]:
    """The signature without names: parameter types and whether the action is variadic."""
    return tuple(parameter.type for parameter in action.parameters), action.is_variadic


def meaning(action: Action) -> tuple[object, ...]:
    """Comparison key of what an action does: its shape and definition, whatever names and case.

    Example:
        >>> from pearl.dsl.signatures import Parameter
        >>> one = Action("FIND", (Parameter("X"),), "Look for X.")
        >>> meaning(one) == meaning(Action("SEEK", (Parameter("Y"),), "look for Y"))
        True
    """
    definition = action.definition
    for i, parameter in enumerate(action.parameters):
        definition = re.sub(rf"\b{re.escape(parameter.name)}\b", f"\0{i}", definition)
    return shape(action), " ".join(definition.casefold().rstrip(".").split())


def name_words(action: Action) -> tuple[str, ...]:
    """The stemmed words of a name, in order.

    Example:
        >>> name_words(Action("FIND_REASONS", ()))
        ('find', 'reason')
    """
    return _words_of(action.name)


@lru_cache(maxsize=1 << 14)
def _words_of(name: str) -> tuple[str, ...]:
    """The words of a name, cached because every name is compared with every other one."""
    return tuple(terms(name.replace("_", " ")))


def have_same_name(one: Action, other: Action) -> bool:
    """Whether two names differ at most in inflection, the search verb and synonyms."""
    ours, theirs = name_words(one), name_words(other)
    return len(ours) == len(theirs) and all(
        a == b or {a, b} <= _LOOKING or b in synonyms().get(a, ())
        for a, b in zip(ours, theirs, strict=True)
    )


def agreement(one: Action, other: Action) -> float:
    """Fraction of distinctive terms, 0 to 1, for which the other side has the term or a synonym."""
    ours, theirs = set(_telling_terms(one)), set(_telling_terms(other))
    if not ours or not theirs:
        return 0.0
    matched = sum(
        bool(({term} | synonyms().get(term, frozenset())) & facing)
        for side, facing in ((ours, theirs), (theirs, ours))
        for term in side
    )
    return matched / (len(ours) + len(theirs))


def may_merge(one: Action, other: Action) -> bool:
    """Whether one action may replace both: same signature, and neither opposite nor negated."""
    return shape(one) == shape(other) and not _are_opposed(one, other)


def _are_opposed(one: Action, other: Action) -> bool:
    ours, theirs = set(_all_terms(one)), set(_all_terms(other))
    if bool(ours & _NEGATIONS) != bool(theirs & _NEGATIONS):
        return True
    only_ours, only_theirs = ours - theirs, theirs - ours
    return any(only_theirs & opposites().get(term, frozenset()) for term in only_ours) or any(
        f"{prefix}{a}" == b or f"{prefix}{b}" == a
        for prefix in _PREFIXES
        for a in only_ours
        for b in only_theirs
    )


def _all_terms(action: Action) -> list[str]:
    return [*name_words(action), *terms(action.definition)]


def _telling_terms(action: Action) -> list[str]:
    """The terms of a definition without boilerplate and parameter names."""
    definition = action.definition
    for parameter in action.parameters:
        definition = re.sub(rf"\b{re.escape(parameter.name)}\b(?:['’]s)?", " ", definition)
    return [term for term in terms(definition, drop_stop_words=True) if term not in _FRAME]


def by_words(actions: Sequence[Action]) -> Matrix:
    """TF-IDF similarity of the stemmed words of name and definition."""
    require_extra("eval", "likeness by words", "scipy")
    import numpy as np
    from scipy.sparse import csr_array

    rows = [
        Counter([*(term for term in name_words(a) if term not in _FRAME), *_telling_terms(a)])
        for a in actions
    ]
    column = {term: i for i, term in enumerate(sorted(set().union(*rows)))}
    in_how_many = np.zeros(len(column))
    for row in rows:
        in_how_many[[column[term] for term in row]] += 1
    idf = np.log((1 + len(rows)) / (1 + in_how_many)) + 1
    vectors = csr_array(
        (
            [idf[column[term]] * (1 + np.log(n)) for row in rows for term, n in row.items()],
            (
                [i for i, row in enumerate(rows) for _ in row],
                [column[term] for row in rows for term in row],
            ),
        ),
        shape=(len(rows), max(1, len(column))),
    )
    return _cosines((vectors @ vectors.T).toarray())


def _cosines(products: Matrix) -> Matrix:
    """Inner products → cosines, clipped at 0 and rounded, so that summation order does not matter."""
    import numpy as np

    lengths = np.sqrt(np.diag(products))
    lengths[lengths == 0] = 1
    cosines: Matrix = np.round(np.clip(products / np.outer(lengths, lengths), 0, 1), 9)
    np.fill_diagonal(cosines, 1)
    return cosines
