"""`LookupTask` → a query, if what the table says accounts for every word of the question; else none.

A word that is left over may be a condition, so a query without it would be wrong and look right.
"""

from __future__ import annotations

import json
import re

from pearl.documents.passages import terms
from pearl.dsl.signatures import NOTHING
from pearl.llm import LookupTask, TableTerm

__all__ = ["write_query"]

_SURE = 0.6
"""Share of a term that a question has to have."""
_RIVAL = 0.1
"""Terms of two columns whose shares differ less are both possible."""
_COUNTED = re.compile(r"\bhow many\b", re.I)
_OTHERWISE = re.compile(
    r"\b(?:no|not|non|nor|neither|never|none|without|except|other|or|either|than|more|most|less|least|"
    r"fewer|fewest|before|after|since|until|between|over|under|above|below|only|both|all|each|every|per)\b"
    r"|n['’]t\b",
    re.I,
)
"""Words that turn conditions round, join them otherwise than by `and`, or compare."""
_FRAME = frozenset(terms("list show name give tell find there which what who many number row rows entry entries"))  # fmt: skip
"""Words that say nothing of rows."""


def write_query(task: LookupTask) -> str:
    """The query of a question, by the terms of the table that it has; `Nothing found.` for none.

    Example:
        >>> from pearl.actions.lookup import LOOKUP
        >>> near = (TableTerm("City", "Tel Aviv-Yafo", 0.7, True), TableTerm("Kind", "Pharmacy", 0.8, True))
        >>> def asked(question): return write_query(LookupTask("a", LOOKUP, question, ("Name",), near))
        >>> asked("How many pharmacies are in Tel Aviv?")
        '{"where": [{"column": "Kind", "op": "is", "value": "Pharmacy"}, {"column": "City", "op": "is", \
"value": "Tel Aviv-Yafo"}], "aggregate": {"function": "count"}}'
        >>> asked("Which pharmacies in Tel Aviv are open on Friday?")
        'Nothing found.'
    """
    conditions = _conditions(task)
    if conditions is None:
        return NOTHING
    query: dict[str, object] = {
        "select": list(task.columns[:1]),
        "where": [
            {"column": term.column, "op": "is" if term.is_value else "contains", "value": term.text}
            for term in conditions
        ],
    }
    if _COUNTED.search(task.question):
        del query["select"]
        query["aggregate"] = {"function": "count"}
    return json.dumps(query, ensure_ascii=False)


def _conditions(task: LookupTask) -> list[TableTerm] | None:
    """One term for every word of the question; None if it says more, or may mean several."""
    left = set(terms(task.question, drop_stop_words=True)) - _FRAME
    if _OTHERWISE.search(task.question) or not left:
        return None
    near = [(set(terms(term.text)), term) for term in task.terms if term.share >= _SURE]
    near.sort(key=lambda each: -each[1].share)
    found: list[TableTerm] = []
    used: set[str] = set()
    for words, term in near:
        said = words & left
        if not said or words & used:
            continue
        rivals = (
            other
            for own, other in near
            if other is not term
            and own & left == said
            and not own & used
            and term.share - other.share < _RIVAL
        )
        if any(rivals):
            return None
        found.append(term)
        left -= said
        used |= said
    return None if left else found
