"""Step or question → query: weighted terms, the kind of the answer, and how many.

The step's own arguments have the largest weight; the plan's question, earlier findings and the words
of the action's name have less. The kind comes from the action's name, else from an argument that is
a question, else from the plan's question, else from the action's definition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pearl.data.samples import without_background
from pearl.documents.passages import terms
from pearl.dsl.signatures import Action
from pearl.llm import ActionTask
from pearl.llm.backends.extractive.cues import Kind
from pearl.llm.backends.extractive.questions import Part, parts
from pearl.llm.backends.extractive.ranking import SentenceIndex, SentenceQuery

_FROM_QUESTION = 0.3
_FROM_INPUT = 0.25
_FROM_NAME = 0.3
_FROM_BACKGROUND = 0.5
_FROM_FRAME = 0.25
"""Weights of terms from elsewhere than the step's own arguments, and of `_FRAME`; the others weigh 1."""
_MAX_INPUT_TERMS = 12
_MAX_OWN_WORDS = 25
"""Maximum words of an input line that counts as an argument; findings are longer."""

QUOTED = re.compile(r"^(?:\s*[-*]\s+)?\s*>\s?(.*)$", re.M)
"""A quoted line of an earlier result, possibly a list item."""


@dataclass(frozen=True, slots=True)
class WantedSentences:
    """A query and how many answers it has."""

    query: SentenceQuery
    is_many: bool
    subject: str
    is_several: bool = False


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _stems(words: str) -> frozenset[str]:
    return frozenset(terms(words))


_KIND_NAMES: dict[Kind, str] = {
    "advice": "ADVICE FOLLOW IMPROVEMENT PREVENTION RECOMMENDATION RECOMMENDATIONS RECOMMENDED TREATMENT",
    "change": "CHANGE CHANGES DEVELOPMENT TURNING",
    "comparison": "COMMON COMPARE COMPARISON CONTRAST DIFFERENCE",
    "definition": "DEFINE DEFINITION INTERPRET MEANING",
    "duration": "DURATION FREQUENCY",
    "effect": "COMPLICATIONS CONSEQUENCE COUNTERFACTUAL EFFECT EFFECTS HYPOTHETICAL IMPACT IMPACTS OUTCOME",
    "emotion": "ATTITUDE CONCERNS EMOTION EMOTIONS FEELING FEELINGS IMPRESSION OPINION REACTION",
    "lesson": "LESSON MESSAGE MORAL THEME",
    "manner": "METHOD PROCESS",
    "number": "AMOUNT COST COSTS COUNT DOSAGE DOSES NUMBER PRICE QUANTITY RESULTS",
    "person": "AUTHOR PEOPLE PERSON WHO",
    "place": "LOCATION PLACE SETTING WHERE",
    "reason": "CAUSE CAUSES EXPLANATION JUSTIFICATION MOTIVATION MOTIVE PURPOSE REASON REASONS WHY",
    "speech": "DIALOGUE QUOTE",
    "time": "DATE DATES TIME TIMELINE TIMES WHEN YEAR",
}
_NAME_KINDS = {word: kind for kind, words in _KIND_NAMES.items() for word in words.split()}
_DEFINITIONS: tuple[tuple[Kind, str], ...] = (
    ("reason", r"why|reasons?|causes?|motives?"),
    ("duration", r"how (?:long|often)|duration"),
    ("time", r"when|dates?|times? (?:at|of)|years?"),
    ("place", r"where|places?|locations?"),
    ("number", r"how (?:many|much)|numbers?|amounts?|counts?"),
    ("person", r"who|whom|persons?|people"),
    ("emotion", r"feel(?:s|ings?)?|emotions?|attitudes?"),
    ("definition", r"means|meaning|definition|defin(?:e|ed|es)"),
    ("advice", r"advi[cs]es?|advised|recommend(?:s|ed|ations?)?|should"),
    ("comparison", r"compar\w+|differ\w*|contrast"),
    ("change", r"chang(?:e|es|ed)"),
    ("effect", r"effects?|consequences?|affect\w*"),
)
"""Kinds, with words of definitions that indicate them; the first match counts."""
_MANY = _set("ALL COLLECT ENUMERATE EVENTS EVERY EXTRACT GATHER INSTANCES LIST ORDER TIMELINE")
_CLAIMING = _set("CHECK CONSISTENCY VERIFY")
_GENERAL = _set("FIND EXTRACT COMPREHEND INFER IDENTIFY LIST_ALL SUMMARIZE_X VERIFY SELECT")
"""Actions whose definition does not tell the kind."""
_PLAIN_WORDS = (
    _NAME_KINDS.keys()
    | _MANY
    | _CLAIMING
    | _set("FIND GET IDENTIFY SEARCH LOOK LOOKUP UP FOR OF IN X Y THE AND A TO COMPREHEND INFER EXPLAIN DESCRIBE")
    | _set("ANALYZE SUMMARIZE SELECT RANK RETURN ANSWER EVENT RELATION BUILD SHOW GIVE TELL DETAILS ELEMENT ITEM")
    | _set("ITEMS BEHAVIOR CHARACTER GENERAL WHAT HOW ENDING DESCRIPTION PASSAGE")
)  # fmt: skip
"""Words of names that are no terms, unlike `ALLERGIES` in `FIND_ALLERGIES`."""
_FRAME = _stems(
    "person people someone group name thing event fact reason cause time date place way text document story article"
    " passage author information question describe description mention accord happen following option best likely"
    " mr mrs ms miss dr"
)
"""Terms that only describe the kind or place of the answer."""
_KIND_FRAMES = {
    "advice": _stems("recommend recommendation advise advice suggest change make patient"),
    "age": _stems("old age"),
    "change": _stems("change"),
    "comparison": _stems("compare comparison contrast differ different difference similar"),
    "definition": _stems("mean meaning define definition sense"),
    "effect": _stems("affect effect impact influence consequence"),
    "emotion": _stems("feel feeling emotion attitude react reaction think opinion respond"),
    "lesson": _stems("moral lesson theme message learn"),
    "number": _stems("amount total number"),
    "reason": _stems("cause explain explanation motive"),
    "time": _stems("year month day hour"),
}
"""The same for one kind, whose cues include them."""
_ASKING = re.compile(
    r"\s*(?:the |a )?(?:who|whose|whom|when|where|why|how|what|which|person|name|number|date)\b",
    re.I,
)
_LATE = re.compile(
    r"\b(?:(?:at|by|in|near) the (?:very )?end|finally|eventually|ultimately|end(?:s|ed)? up|after all"
    r"|in the last (?:part|scene|section|chapter|paragraph))\b",
    re.I,
)
_EARLY = re.compile(
    r"\b(?:at (?:the )?(?:very )?(?:beginning|start|outset|first)|initially|in the first (?:part|scene|section|chapter"
    r"|paragraph)|first (?:meets?|met|sees?|saw|appears?|arrives?|arrived|reach(?:es|ed)?|comes?|came))\b",
    re.I,
)


def by_question(part: Part) -> WantedSentences:
    """The query of one question."""
    weights = _weights([(part.text, 1.0), (part.background, _FROM_BACKGROUND)], part.kind)
    query = SentenceQuery(
        weights,
        part.kind,
        counted=_counted(part),
        is_claim=part.form == "claim",
        roles=part.roles,
        place=_place(part.text),
        text=_joined([part.text, part.background]),
    )
    return WantedSentences(query, part.form == "list", part.text)


def by_action(task: ActionTask, index: SentenceIndex) -> WantedSentences:
    """The query of a step over an indexed text."""
    own: list[str] = []
    other: list[tuple[str, float]] = []
    near: set[int] = set()
    for name, value in task.arguments:
        if name in task.inputs:
            near |= _quoted_sentences(value, index)
            lines = [line.strip(" -*") for line in QUOTED.sub("", value).splitlines()]
            own += [line for line in lines if line and len(line.split()) <= _MAX_OWN_WORDS]
            other.append((_telling(value, index), _FROM_INPUT))
        else:
            text, background = without_background(value)
            own.append(text)
            if background:
                other.append((background, _FROM_BACKGROUND))
    asked = [part for text in own if text.strip() for part in parts(text)]
    questions = parts(task.question) if task.question.strip() else ()
    words = task.action.name.split("_")
    other.append((" ".join(w for w in words if w not in _PLAIN_WORDS).lower(), _FROM_NAME))
    about = _about(questions, own)
    other.append((about, _FROM_QUESTION))
    kind = _kind(task.action, asked, questions)
    query = SentenceQuery(
        _weights([*((text, 1.0) for text in own), *other], kind),
        kind,
        counted=frozenset().union(*map(_counted, asked)),
        is_claim=not _CLAIMING.isdisjoint(words),
        roles=next((part.roles for part in (*asked, *questions) if part.roles), None),
        near=frozenset(near),
        place=_place(" ".join(own if len(questions) > 1 else [*own, task.question])),
        text=_joined([*own, about]),
    )
    return WantedSentences(
        query,
        not _MANY.isdisjoint(words),
        "; ".join(own) or task.question,
        is_several=any(word in _NAME_KINDS and word.endswith("S") for word in words),
    )


def _about(questions: tuple[Part, ...], own: Iterable[str]) -> str:
    """The part of the plan's question that shares most words with the step."""
    known = {term for text in own for term in terms(text)}
    texts = [part.text for part in questions]
    return max(texts, key=lambda text: len(known.intersection(terms(text))), default="")


def _kind(action: Action, asked: Iterable[Part], questions: tuple[Part, ...]) -> Kind:
    """The kind of a step's answer."""
    said = [part.kind for part in asked if _ASKING.match(part.text) and part.kind != "thing"]
    named = next((_NAME_KINDS[w] for w in action.name.split("_") if w in _NAME_KINDS), None)
    if named == "time" and said[:1] in (["duration"], ["age"]):
        return said[0]  # few libraries have an action for durations
    if named is not None:
        return named
    if said:
        return said[0]
    if len(questions) == 1 and questions[0].kind != "thing":
        return questions[0].kind
    if action.name in _GENERAL:
        return "thing"
    text = action.definition
    found = (kind for kind, words in _DEFINITIONS if re.search(rf"\b(?:{words})\b", text, re.I))
    return next(found, "thing")


def _weights(texts: Iterable[tuple[str, float]], kind: Kind) -> dict[str, float]:
    """Term → weight, the largest where a term is in several texts."""
    weights: dict[str, float] = {}
    frame = _FRAME | _KIND_FRAMES.get(kind, frozenset())
    for text, weight in texts:
        for term in terms(_LATE.sub(" ", _EARLY.sub(" ", text)), drop_stop_words=True):
            share = _FROM_FRAME if term in frame else 1.0
            weights[term] = max(weight * share, weights.get(term, 0.0))
    return weights


def _joined(texts: Iterable[str]) -> str:
    return " ".join(dict.fromkeys(" ".join(text.split()) for text in texts if text.strip()))


def _place(text: str) -> float | None:
    """The position in the document that a question mentions, 0 (beginning) or 1 (end)."""
    return 1.0 if _LATE.search(text) else 0.0 if _EARLY.search(text) else None


def _counted(part: Part) -> frozenset[str]:
    """The term of the things that a question counts."""
    found = terms(part.other) if part.kind == "number" else []
    return frozenset(found[-1:])


def _telling(text: str, index: SentenceIndex) -> str:
    """The rarest terms of an earlier finding."""
    found = dict.fromkeys(terms(text, drop_stop_words=True))
    return " ".join(sorted(found, key=index.idf, reverse=True)[:_MAX_INPUT_TERMS])


def _quoted_sentences(text: str, index: SentenceIndex) -> set[int]:
    """The numbers of the sentences that an earlier finding quotes."""
    quotes = {line.strip() for line in QUOTED.findall(text)}
    return {number for number, sentence in enumerate(index.texts) if sentence in quotes}
