"""`ItemsTask` → one line for each item, decided by the words of that item alone.

Most items stay undecided. An item meets a condition if one of its clauses has every word of the condition
without negation or hedging; it does not meet the condition if it has at most half of the words. A label is
chosen if the item has more of its words than of any other label's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pearl.documents.evidence.finding import negations
from pearl.documents.passages import sentences, terms
from pearl.dsl.signatures import NOTHING
from pearl.embedded.reading import QUOTED, by_action, carry_out, weigh_own
from pearl.embedded.sentences import SentenceIndex, SentenceRanker, matching_terms
from pearl.errors.patterns import lazy_pattern
from pearl.llm import ActionTask, ItemsTask
from pearl.replies.items import RATINGS, first_words, label_line, n_first_words

_OPERATORS = frozenset({"CLASSIFY", "FILTER", "MAP", "RATE", "TOP"})
"""Actions whose names do not describe what to look for."""
_UNDECIDED = "undecided"
_HALF = 0.5
"""Share of the words up to which an item does not have the label or meet the condition."""
_BEARERS = frozenset(
    terms(
        "patient person people someone man woman user customer client speaker writer author sender item entry row"
        " record document text message review letter note email comment report ticket call turn sentence paragraph"
        " section page one mention say speak talk tell describe contain include state concern suffer show"
        " take use receive undergo experience subject topic content true"
    )
)
"""Terms of a condition that an item need not contain: its kind, and verbs such as `mention`."""

_TURN = lazy_pattern(r"\s*(?:;|\b(?:but|however|although|though|whereas)\b)\s*", re.I)
_OPEN = lazy_pattern(
    r"\b(?:if|whether|unless|possibl[ey]|probabl[ey]|perhaps|maybe|may|might|could|would|should|risk"
    r"|family|suspect\w*|suspicio\w+|unlikely|likely|prevent\w*|avoid\w*|rule out|ruled out|r/o|resolved"
    r"|history|previous(?:ly)?|former(?:ly)?)\b|\?",
    re.I,
)
"""Words that make a statement uncertain."""
_RELATING = lazy_pattern(
    r"\b(?:or|either|before|after|until|since|between|first|last|only|all|every|always|both|same|different)\b",
    re.I,
)
"""Words that relate other words: an item with all words may still not meet the condition."""
_COMPARING = lazy_pattern(
    r"\b(?:more|less|fewer|\w+er than|over|under|above|below|at least|at most|most|least|exactly|about how)\b",
    re.I,
)
"""Comparisons, which matching words cannot decide."""


async def judge(task: ItemsTask) -> str:
    """The reply for all items."""
    if task.kind == "rating":  # the ends of the range are no words to look for
        arguments = (each for each in task.arguments if each[0] not in ("LOW", "HIGH"))
        task = replace(task, arguments=tuple(arguments))
    wanted = _wanted(task)
    match task.kind:
        case "pick":
            scores = [_best_share(_clauses(item), wanted) for item in task.items]
            order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
            return "\n".join(str(i + 1) for i in order[: task.n_picks])
        case "yes_no":
            values = [_holds(_condition(task), wanted, item) for item in task.items]
        case "label" if {label.casefold() for label in task.labels} == {"yes", "no"}:
            shown = {label.casefold(): label_line(label) for label in task.labels}
            verdicts = [_holds(_condition(task), wanted, item) for item in task.items]
            values = [shown.get(verdict, verdict) for verdict in verdicts]
        case "label":
            words = [weigh_own(label, task.labels) for label in task.labels]
            values = [_label(task.labels, words, item) for item in task.items]
        case "rating":
            shares = (_best_share(_clauses(item), wanted) for item in task.items)
            low, high = (int(each) for each in (task.labels[:1] + task.labels[-1:] or RATINGS))
            values = [str(low + round((high - low) * share)) for share in shares]
        case "line":
            ranker = SentenceRanker()
            replies = [await carry_out(_step(task, item), ranker) for item in task.items]
            quotes = [QUOTED.findall(reply) for reply in replies]
            values = [lines[0].strip() if lines else NOTHING for lines in quotes]
    n = n_first_words(task.items)
    echoes = [f" | {first_words(item, n)}" if task.is_echoed else "" for item in task.items]
    return "\n".join(
        f"{i}{echo}: {value}" for i, (echo, value) in enumerate(zip(echoes, values, strict=True), 1)
    )


def _condition(task: ItemsTask) -> str:
    return " ".join(value for _, value in task.arguments)


def _step(task: ItemsTask, item: str) -> ActionTask:
    """The step for one item as its document."""
    action = task.action
    if action.name in _OPERATORS:
        action = replace(action, name="FIND", definition="")
    return ActionTask(task.output, action, task.arguments, item, inputs=task.inputs)


def _wanted(task: ItemsTask) -> frozenset[str]:
    """The terms to look for; framing terms only if there are no others."""
    weights = by_action(_step(task, ""), SentenceIndex("")).weights
    own = {term for term, weight in weights.items() if weight >= 1} - _BEARERS
    return frozenset(own or terms(_condition(task), drop_stop_words=True))


def _clauses(item: str) -> list[tuple[frozenset[str], bool]]:
    """The terms of each clause, and whether it is neither negated nor uncertain."""
    return [
        (
            frozenset(terms(clause, drop_stop_words=True)),
            not negations(clause) and not _OPEN.search(clause),
        )
        for span in sentences(item)
        for clause in _TURN.split(item[span.start : span.end])
    ]


def _best_share(clauses: Iterable[tuple[frozenset[str], bool]], wanted: frozenset[str]) -> float:
    """The largest share of the terms in a clause that is neither negated nor uncertain."""
    shares = (len(wanted & words) / len(wanted) for words, is_plain in clauses if is_plain)
    return max(shares, default=0.0) if wanted else 0.0


def _holds(condition: str, wanted: frozenset[str], item: str) -> str:
    """Whether an item meets a condition."""
    if not wanted or negations(condition) or _COMPARING.search(condition):
        return _UNDECIDED
    clauses = _clauses(item)
    is_relating = _RELATING.search(condition)
    whole = [is_plain for words, is_plain in clauses if wanted <= words]
    if whole:
        return "yes" if all(whole) and not is_relating else _UNDECIDED
    near = [
        {term for term in wanted if matching_terms(term, sorted(words))} for words, _ in clauses
    ]
    # One of two words is undecided: "a refund for a lamp" may be a refund request.
    bears = any(found and (is_relating or len(found) / len(wanted) >= _HALF) for found in near)
    return _UNDECIDED if bears or wanted <= set().union(*near) else "no"


def _label(labels: Sequence[str], words: Sequence[Mapping[str, float]], item: str) -> str:
    """The label that most words of a clause name."""
    said = [clause for clause, is_plain in _clauses(item) if is_plain]
    shares = [
        max((sum(w for term, w in own.items() if term in clause) for clause in said), default=0.0)
        / (sum(own.values()) or 1.0)
        for own in words
    ]
    best = max(shares, default=0.0)
    if best <= _HALF or shares.count(best) > 1:
        return _UNDECIDED
    return label_line(labels[shares.index(best)])
