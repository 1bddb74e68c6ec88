"""Task + document → answer text: sentences of the document, each quoted on a line of its own.

Quotes are verbatim except for white space. Nothing but quotes is said, except that nothing was
found: matching passages are no entries and no number, so values computed from them are undecided.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from pearl.dsl.signatures import NOTHING
from pearl.llm import ActionTask, CombineTask
from pearl.llm.backends.extractive.figures import carry_out_figures, merge
from pearl.llm.backends.extractive.meaning import SentenceRanker
from pearl.llm.backends.extractive.queries import made_query
from pearl.llm.backends.extractive.questions import parts
from pearl.llm.backends.extractive.ranking import SentenceHit, SentenceIndex, SentenceQuery
from pearl.llm.backends.extractive.steering import QUOTED, WantedSentences, by_action, by_question

MAX_QUOTES = 3
MAX_SEVERAL = 6
MAX_LISTED = 12
"""Maximum sentences quoted for one answer, for several, for all."""

_CLOSE = 0.7
_LISTED = 0.55
"""Minimum share of the best score of a quoted sentence, for one answer and for more."""
_N_LEADING = 5
"""Best sentences, one of which has to say enough of the query; else nothing was found."""
_ENOUGH = 0.12
_ENOUGH_OF_ONE = 0.35
_ENOUGH_OF_ONLY = 0.3
"""Minimum coverage of the query by a sentence with two of its terms or more, with one of them, with its
only one. Set on the open half of `experiments/reading`."""
_N_NEAREST = 3
_NEAR = 0.2
"""With vectors it is enough, too, if the best sentence is among so many that are nearest in meaning, and
near at all: less is the cosine of any two texts. Set there, too."""

_N_SUMMARY = 7
"""Sentences of a summary, one from each section of equal length."""
_N_CENTRAL = 60
"""Number of central terms of a document."""

_WHOLE = frozenset({"SUMMARIZE", "SUMMARISE", "SUMMARY", "GIST", "OVERVIEW"})
_ANSWERING = "ANSWER"
_COMPARING = frozenset({"COMPARE", "COMPARISON", "CONTRAST", "DIFFERENCE"})
_QUOTE_MARKS = re.compile('["“”„«»「」]')
_NOTHING = f"{NOTHING} No passage of the document matches"
_MAX_SUBJECT_WORDS = 40


async def carry_out(task: ActionTask, ranker: SentenceRanker) -> str:
    """The result of one step."""
    if task.document is None:
        if (made := made_query(task)) is not None:
            return made
        found = [value for name, value in task.arguments if name in task.inputs]
        return _side_by_side(found or [value for _, value in task.arguments])
    if (figure := carry_out_figures(task)) is not None:
        return figure
    words = task.action.name.split("_")
    if words == [_ANSWERING] and len(task.arguments) == 1 and not task.inputs:
        return await _answer(task.arguments[0][1], ranker, ranker.index(task.document))
    if len(task.arguments) > 1 and not _COMPARING.isdisjoint(words):
        return await _compared(task, ranker)
    index = ranker.index(task.document)
    if not task.arguments:
        if not _WHOLE.isdisjoint(words):
            return _summary(index)
        wanted = by_action(replace(task, question=""), index)
        about = {term: weight * 0.1 for term, weight in _central(index).items()}
        query = replace(wanted.query, weights=about | dict(wanted.query.weights))
        return await _quote(ranker, index, replace(wanted, query=query))
    return await _quote(ranker, index, by_action(task, index))


async def _answer(question: str, ranker: SentenceRanker, index: SentenceIndex) -> str:
    """The sentences that answer a question, part by part."""
    found = dict.fromkeys(
        [await _quote(ranker, index, by_question(part)) for part in parts(question)]
    )
    quoted = [text for text in found if not text.startswith(_NOTHING)]
    return "\n\n".join(quoted or list(found)[:1])


async def combine(task: CombineTask, ranker: SentenceRanker) -> str:
    """The best quotes from the parts of a document."""
    if (merged := merge(task.step, task.parts)) is not None:
        return merged
    quotes = dict.fromkeys(line for part in task.parts for line in QUOTED.findall(part))
    if not quotes:
        return task.parts[0]
    # One quote a paragraph, because they are not adjacent in the document.
    return await carry_out(replace(task.step, document=_block(quotes)), ranker)


async def _quote(ranker: SentenceRanker, index: SentenceIndex, wanted: WantedSentences) -> str:
    """The sentences worth quoting, best first, or in document order where all are asked for."""
    hits = await ranker.rank(index, wanted.query)
    if not _is_stated(hits, wanted.query):
        return _nothing(wanted.subject)
    share, most = (_LISTED, MAX_LISTED) if wanted.is_many else (_CLOSE, MAX_QUOTES)
    if wanted.is_several and not wanted.is_many:
        share, most = _LISTED, MAX_SEVERAL
    chosen: dict[str, SentenceHit] = {}
    for hit in hits:
        if len(chosen) == most or hit.score < share * hits[0].score:
            break
        chosen.setdefault(index.texts[hit.number], hit)
    if wanted.is_many:
        return _block(sorted(chosen, key=lambda text: chosen[text].number))
    return _block(chosen)


def _is_stated(hits: Sequence[SentenceHit], query: SentenceQuery) -> bool:
    """Whether the best sentences say enough of a query to be quoted as an answer."""
    n_own = sum(weight >= 1 for weight in query.weights.values())
    of_one = _ENOUGH_OF_ONE if n_own > 1 else _ENOUGH_OF_ONLY
    if any(hit.coverage >= (_ENOUGH if hit.n_terms > 1 else of_one) for hit in hits[:_N_LEADING]):
        return True
    nearest = sorted(hit.likeness for hit in hits if hit.likeness is not None)[-_N_NEAREST:]
    best = hits[0].likeness if hits else None
    return best is not None and best >= max(_NEAR, nearest[0])


def _block(quotes: Iterable[str]) -> str:
    return "\n\n".join(f"> {quote}" for quote in quotes)


def _nothing(subject: str) -> str:
    """The reply without a match; without quote marks, because it quotes nothing."""
    words = _QUOTE_MARKS.sub("", subject).split()
    shown = " ".join(words[:_MAX_SUBJECT_WORDS]) + (" …" if len(words) > _MAX_SUBJECT_WORDS else "")
    return f"{_NOTHING}: {shown}" if shown else f"{_NOTHING}."


def _side_by_side(values: list[str]) -> str:
    shown = dict.fromkeys(value.strip() for value in values if value.strip())
    return "\n\n".join(shown) or _nothing("")


async def _compared(task: ActionTask, ranker: SentenceRanker) -> str:
    """The findings on each of the compared things."""
    plain = replace(task.action, name="FIND", definition="")
    found = [
        value
        if name in task.inputs
        else await carry_out(
            replace(task, action=plain, arguments=((name, value),), question=""), ranker
        )
        for name, value in task.arguments
    ]
    quoted = [text for text in found if not text.startswith(_NOTHING)]
    return _side_by_side(quoted or found)


def _central(index: SentenceIndex) -> dict[str, float]:
    """The most frequent terms of a document, with relative frequencies."""
    counts = Counter(term for number in range(len(index)) for term in index.words(number))
    top = sorted(counts, key=lambda term: (-counts[term], term))[:_N_CENTRAL]
    return {term: counts[term] / counts[top[0]] for term in top}


def _summary(index: SentenceIndex) -> str:
    """The most central sentence of each section of the document."""
    central = _central(index)
    n_stretches = min(len(index), _N_SUMMARY)
    edges = [i * len(index) // n_stretches for i in range(n_stretches + 1)] if n_stretches else []
    best = [
        max(range(start, end), key=lambda number: (_centrality(index, number, central), -number))
        for start, end in pairwise(edges)
    ]
    return _block(dict.fromkeys(index.texts[number] for number in best)) or _nothing("")


def _centrality(index: SentenceIndex, number: int, central: dict[str, float]) -> float:
    """Weight of the central terms in a sentence, normalised by its length."""
    words, text = index.words(number), index.texts[number]
    if not 5 <= len(words) <= 40 or "?" in text:
        return 0.0
    share = sum(central.get(word, 0.0) for word in set(words)) / math.sqrt(len(words) + 4)
    return share * (0.6 if text[0] in "\"'“‘«" else 1.0)  # speech retells little
