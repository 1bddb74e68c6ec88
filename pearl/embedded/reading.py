"""Answer a step from a document by quoting its sentences, each on a line of its own.

Quotes are verbatim except for white space. The reply consists of quotes only, or says that nothing was
found. Passages are neither list entries nor numbers, so values computed from them are undecided.

The query of a step has the terms of its own arguments; the plan's question and earlier findings have less
weight. The kind of the answer comes from the action's name, else
from an argument that is a question, else from the plan's question.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

from msgspec.structs import replace

from pearl.data.samples import letter
from pearl.documents.passages import terms
from pearl.dsl.signatures import NOTHING
from pearl.embedded.sentences import Kind, SentenceHit, SentenceIndex, SentenceQuery, SentenceRanker
from pearl.errors.patterns import lazy_pattern
from pearl.llm import ActionTask, ChooseTask

MAX_QUOTES = 3  # Maximum sentences quoted if one answer is requested
MAX_LISTED = 12  # Maximum sentences quoted if all answers are requested

_CLOSE = 0.7
_LISTED = 0.55
"""Minimum score of a quoted sentence as a share of the best score, if one answer is requested, and if all are."""
_N_LEADING = 5
"""Number of best sentences, one of which has to cover enough of the query; otherwise nothing is found."""
_ENOUGH = 0.12
_ENOUGH_OF_ONE = 0.35
"""Minimum coverage of the query by a sentence with several of its terms, and with one. Tuned on 120
questions whose words are mostly not those of the document."""
_N_NEAREST = 3
_NEAR = 0.2
"""With vectors it also suffices that the best sentence is among the `_N_NEAREST` by cosine, with a cosine of
at least `_NEAR`: unrelated texts have less. Tuned on the same questions."""

_N_CENTRAL = 60  # Number of central terms of a document

_NOTHING = f"{NOTHING[:-1]}: no passage of the document matches"
_NOT_COMPUTED = f"{NOTHING} Several rows match alike, and the embedded model neither chooses among them nor computes: name a language model with --model"
_MAX_SUBJECT_WORDS = 40  # maximum words of the query in the reply if nothing matches

QUOTED = lazy_pattern(r"^(?:\s*[-*]\s+)?\s*>\s?(.*)$", re.M)
"""A quoted line of an earlier result, possibly a list item."""

_FROM_QUESTION = 0.3
_FROM_INPUT = 0.25
_FROM_FRAME = 0.25
"""Weights of terms of the question, of earlier results and of `_FRAME`; terms of the step itself weigh 1."""
_MAX_INPUT_TERMS = 12  # rarest terms of an earlier result that join the query

_MANY = frozenset(["ALL", "COLLECT", "COPY", "ENUMERATE", "EVENTS", "EVERY", "EXTRACT", "GATHER", "INSTANCES", "LIST", "ORDER", "TIMELINE"])  # fmt: skip
_CLAIMING = frozenset(["CHECK", "CONSISTENCY", "EVIDENCE", "VERIFY"])
_KIND_WORDS: dict[str, Kind] = {
    **dict.fromkeys(["RECOMMENDATIONS", "RECOMMENDED", "RECOMMENDATION", "ADVICE"], "advice"),
    **dict.fromkeys(["EMOTION", "EMOTIONS", "FEELING", "FEELINGS", "ATTITUDE"], "emotion"),
    **dict.fromkeys(["NUMBER", "AMOUNT", "QUANTITY"], "number"),
    **dict.fromkeys(["IDENTIFY", "WHO", "PERSON"], "person"),
    **dict.fromkeys(["REASON", "CAUSE", "CAUSES", "WHY", "EXPLANATION"], "reason"),
    **dict.fromkeys(["TIME", "DATE", "WHEN", "DURATION"], "time"),
}
"""Words of action names → the kind of answer."""
_FRAME = frozenset(terms(
    "person people someone group name thing event fact reason cause time date place way text document story article"
    " passage author information question describe description mention accord happen following option best likely"
    " mr mrs ms miss dr explain explanation feel feeling emotion mean meaning define definition recommend"
    " recommendation advise advice suggest compare comparison contrast difference amount total patient make"
))  # fmt: skip
"""Terms that only describe the kind or place of the answer."""
_WH = r"(?:who|whom|whose|what|which|when|where|why|how)"
_PREPOSITIONS = r"(?:(?:in|at|on|by|for|since|until|to|from|with|of|about|under|after|before|during|and)\s+){0,2}"
_FORMS: tuple[tuple[Kind, str], ...] = (
    ("emotion", rf"(?:how|what) (?:do|does|did) (?:(?!\b{_WH}\b).)+? (?:feel|react|think)\b"),
    ("advice", r"what (?:should|ought|must)\b|(?:what|which) .*\b(?:advice|recommendations?)\b"),
    ("reason", r"(?:for what reason|what for|how come|why)\b|what (?:(?:is|are|was|were) )?(?:the )?(?:reason|cause|motive)s?\b"
     r"|(?:what|who) (?:makes?|made|caused?|led|leads?|prompted|drove|persuaded)\b"),
    ("time", r"when\b|(?:what|which) (?:time|day|date|year|month|week|hour|century)\b"
     r"|(?:for |since )?how (?:long|often|frequently|old|soon)\b|how many (?:years|months|weeks|days|hours|minutes)\b"),
    ("number", r"how (?:many|much|few|far|tall|high|deep|wide|big|large|heavy|fast)\b|what (?:is|was|are|were) the (?:number|amount|price|cost|sum|dose)\b"),
    ("person", r"(?:who|whom|whose)\b|(?:what|which) (?:person|man|woman|doctor|nurse|author|company)\b"),
)  # fmt: skip
_KINDS = [(kind, lazy_pattern(rf"\s*{_PREPOSITIONS}(?:{form})", re.I)) for kind, form in _FORMS]
"""Beginnings of questions that ask for a kind of answer; for other questions any sentence may answer."""


async def carry_out(task: ActionTask, ranker: SentenceRanker) -> str:
    """The result of one step."""
    if task.document is None:
        inputs = [value for name, value in task.arguments if name in task.inputs]
        # The different replies; those without a quote only if no reply has one
        replies = inputs or [value for _, value in task.arguments]
        different = dict.fromkeys(reply.strip() for reply in replies if reply.strip())
        quoted = [reply for reply in different if not reply.startswith(_NOTHING)]
        return "\n\n".join(quoted or different) or _nothing("")
    index = ranker.index(task.document)
    query = by_action(task, index)
    if not task.arguments:
        central = Counter(chain.from_iterable(index.words())).most_common(_N_CENTRAL)
        query = replace(query, weights=dict(central))
    # The sentences worth quoting, best first, or in document order if all are requested
    hits = await ranker.rank(index, query)
    if not _is_stated(hits):
        return _nothing(query.subject)
    share, most = (_LISTED, MAX_LISTED) if query.is_many else (_CLOSE, MAX_QUOTES)
    chosen: dict[str, int] = {}
    for hit in hits:
        if len(chosen) == most or hit.score < share * hits[0].score:
            break
        chosen.setdefault(index.texts[hit.number], hit.number)
    covered = [hit.coverage for hit in hits if hit.number in {*chosen.values()} & index.rows]
    if query.kind == "number" and not query.is_many and len({*covered}) < len(covered):
        return _NOT_COMPUTED  # the question does not say which of the equal matches it means
    return _block(sorted(chosen, key=lambda text: chosen[text]) if query.is_many else chosen)


async def combine(task: ActionTask, parts: Sequence[str], ranker: SentenceRanker) -> str:
    """Merge the quotes from the parts of a document."""
    quotes = dict.fromkeys(line for part in parts for line in QUOTED.findall(part))
    if not quotes:
        return parts[0]
    # Each quote is a paragraph, because quotes are not adjacent in the document.
    return await carry_out(replace(task, document=_block(quotes)), ranker)


def _is_stated(hits: Sequence[SentenceHit]) -> bool:
    """Whether the best sentences cover enough of a query to be quoted as an answer."""
    leading = hits[:_N_LEADING]
    if any(hit.coverage >= (_ENOUGH if hit.n_terms > 1 else _ENOUGH_OF_ONE) for hit in leading):
        return True
    nearest = sorted(hit.likeness for hit in hits if hit.likeness is not None)[-_N_NEAREST:]
    best = hits[0].likeness if hits else None
    return best is not None and best >= max(_NEAR, nearest[0])


def _block(quotes: Iterable[str]) -> str:
    return "\n\n".join(f"> {quote}" for quote in quotes)


def _nothing(subject: str) -> str:
    """The reply if nothing matches; it has no quotation marks, which would be parsed as a quote."""
    words = re.sub('["“”„«»「」]', "", subject).split()
    shown = " ".join(words[:_MAX_SUBJECT_WORDS]) + (" …" if len(words) > _MAX_SUBJECT_WORDS else "")
    return f"{_NOTHING}: {shown}" if shown else f"{_NOTHING}."


# Queries ------------------------------------------------------------------------------------------


def by_action(task: ActionTask, index: SentenceIndex) -> SentenceQuery:
    """The query of a step over an indexed text."""
    own: list[str] = []
    other: list[tuple[str, float]] = []
    for name, value in task.arguments:
        if name in task.inputs:
            lines = [line.strip(" -*") for line in QUOTED.sub("", value).splitlines()]
            own += filter(None, lines)
            rare = dict.fromkeys(terms(value, drop_stop_words=True))
            rarest = sorted(rare, key=index.idf, reverse=True)[:_MAX_INPUT_TERMS]
            other.append((" ".join(rarest), _FROM_INPUT))
        else:
            own.append(value)
    words = task.action.name.split("_")
    about = task.question if task.arguments else ""
    other.append((about, _FROM_QUESTION))
    weights: dict[str, float] = {}  # The largest one, if several texts have a term
    for text, weight in [*((text, 1.0) for text in own), *other]:
        for term in terms(text, drop_stop_words=True):
            share = _FROM_FRAME if term in _FRAME else 1.0
            weights[term] = max(weight * share, weights.get(term, 0.0))
    # By the name of the action, its own question, or that of the plan
    kinds = chain(
        (_KIND_WORDS[word] for word in words if word in _KIND_WORDS),
        (kind for text in (*own, about) for kind, form in _KINDS if form.match(text)),
    )
    return SentenceQuery(
        weights,
        next(kinds, "thing"),
        is_claim=not _CLAIMING.isdisjoint(words),
        text=" ".join(
            dict.fromkeys(" ".join(each.split()) for each in (*own, about) if each.strip())
        ),
        is_many=not _MANY.isdisjoint(words),
        subject=", ".join(own) or task.question,
    )


# Options ------------------------------------------------------------------------------------------

_OPTION_QUESTION = 0.3  # Weight of a term of the question; terms of an option weigh at most 1
_N_SENTENCES = 3  # Number of best sentences whose coverage counts


def choose_option(task: ChooseTask, ranker: SentenceRanker) -> str:
    """The letter of the best option, after the decisive passage if reasons are requested; "none" if unsure."""
    # 1 for a term of one option alone; terms of all options are left out
    different = [dict.fromkeys(terms(text, drop_stop_words=True)) for text in task.options]
    n_with, n = Counter(chain.from_iterable(different)), max(len(different), 2)
    known = {term: math.log(n / n_own, n) for term, n_own in n_with.items() if n_own < n}
    weights = [{term: known[term] for term in each if term in known} for each in different]
    quotes = [""] * len(weights)
    if task.answer is not None:
        said = set(terms(task.answer, drop_stop_words=True))
        scores = [
            sum(w for term, w in own.items() if term in said) / math.sqrt(sum(own.values()) or 1.0)
            for own in weights
        ]
    else:
        index = ranker.index(task.document or "")
        asked = dict.fromkeys(terms(task.question, drop_stop_words=True), _OPTION_QUESTION)
        ranked = [index.rank(SentenceQuery(asked | own))[:_N_SENTENCES] for own in weights]
        scores = [sum(hit.coverage for hit in hits) for hits in ranked]
        quotes = [f"> {index.texts[hits[0].number]}\n\n" if hits else "" for hits in ranked]
    top = max(scores)
    if top <= 0 or scores.count(top) > 1:
        return "none"
    best = scores.index(top)
    return f"{quotes[best]}Answer: {letter(best)}" if task.is_reasoned else letter(best)
