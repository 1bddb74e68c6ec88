"""Question + library → plan, by rule from the form of the question.

A question about a table becomes a LOOKUP; a question that counts rows uses the operators on rows. Every
other part of a question becomes one step. Its action is the library's action for the form of the part,
found by words in its name, else a general action with the signature `(CTX, X)`, else a new action.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from pearl.actions.operators import REWRITE, SUBQUERIES
from pearl.actions.values import items_of
from pearl.data.samples import asked_with, without_background
from pearl.documents.document import DocumentKind
from pearl.documents.passages import terms
from pearl.dsl.nodes import Argument, Plan, Reference, Step, String, print_action, print_plan
from pearl.dsl.signatures import CTX, Action, ActionLibrary, Parameter, ValueType
from pearl.embedded.questions import Form, Part, parts
from pearl.embedded.row_planner import plan_rows, row_question
from pearl.errors.patterns import lazy_pattern
from pearl.llm import ActionTask, RefineTask, StandaloneTask

_MAX_ARGUMENT = 2_000
"""Maximum characters of an argument."""

_ROLES: dict[Form, tuple[str, str, str]] = {
    # form: words in the names of suitable actions (best first), name of the output, explanation
    "advice": ("RECOMMENDATIONS RECOMMENDED RECOMMENDATION ADVICE", "advice", "Find what is advised"),
    "claim": ("VERIFY CHECK EVIDENCE", "verdict", "Find the passage that decides it"),
    "comparison": ("COMPARE COMPARISON CONTRAST DIFFERENCE", "comparison", "Set the two findings side by side"),
    "definition": ("DEFINITION DEFINE MEANING INTERPRET", "meaning", "Find what the term means in the text"),
    "duration": ("DURATION TIME WHEN", "duration", "Find how long or how often it is"),
    "emotion": ("EMOTION EMOTIONS FEELING FEELINGS ATTITUDE", "feeling", "Find the feelings and what shows them"),
    "list": ("LIST COPY EXTRACT", "entries", "Gather every one of them"),
    "manner": ("PROCESS METHOD", "way", "Find how it is done"),
    "number": ("NUMBER AMOUNT QUANTITY", "stated", "Find where the text states the number"),
    "person": ("IDENTIFY WHO PERSON", "who", "Find out who it is"),
    "place": ("PLACE LOCATION WHERE", "place", "Find where it is"),
    "reason": ("REASON CAUSE CAUSES WHY EXPLANATION", "reason", "Find the reasons that are given"),
    "summary": ("SUMMARIZE SUMMARISE SUMMARY", "summary", "Sum it up"),
    "thing": ("", "answer", "Find what the text says about it"),
    "time": ("TIME DATE WHEN", "time", "Find when it is"),
}  # fmt: skip
ROLE_WORDS: dict[str, Form] = {
    word: form for form in reversed(_ROLES) for word in _ROLES[form][0].split()
}
GENERAL = ("FIND", "SEARCH", "COMPREHEND", "COPY_OUT", "EXTRACT", "LOOKUP", "QUERY", "ASK", "INFER", "ANSWER")  # fmt: skip
"""General actions, best first."""
VERBS = frozenset(["ALL", "BUILD", "COMPARE", "EXPLAIN", "FIND", "GET", "IDENTIFY", "LIST", "OF", "OUT", "SUMMARIZE", "VERIFY", "X", "Y"])  # fmt: skip
"""Words of names that do not describe what to look for."""
_SHAPE = (Parameter(CTX, ValueType.CONTEXT), Parameter("X"))
_OWN = Action(
    "FIND_PASSAGE", _SHAPE, "Return the passages of CTX that say most about X, word for word"
)


@dataclass(slots=True)
class _Draft:
    """An unfinished plan."""

    library: ActionLibrary
    steps: list[Step] = field(default_factory=list)
    new_actions: list[Action] = field(default_factory=list)

    @property
    def plan(self) -> Plan:
        return Plan(tuple(self.steps), tuple(self.new_actions))

    def add(self, output: str, action: Action, explanation: str, *arguments: Argument) -> Reference:
        """Add a step under a free name, with CTX if the action takes it."""
        names = {step.output for step in self.steps}
        name, n = output, 2
        while name in names:
            name, n = f"{output}_{n}", n + 1
        context = (Reference(CTX),) if action.reads_context else ()
        self.steps.append(Step(name, action.name, (*context, *arguments), explanation))
        return Reference(name)

    def general(self) -> Action:
        """The most general action with the signature (CTX, X)."""
        for name in GENERAL:
            action = self.library.get(name)
            if action is not None and _has_shape(action, 1):
                return action
        fitting = [action for action in self.library.values() if _has_shape(action, 1)]
        if fitting:
            return min(fitting, key=_specialty)
        if _OWN not in self.new_actions:
            self.new_actions.append(_OWN)
        return _OWN

    def playing(self, form: Form, n_texts: int) -> Action | None:
        """The action for a form that takes the document and `n_texts` texts.

        With one text, its name may be more specific than the form (`FIND_BEHAVIOR_REASON`).
        """
        roles = _ROLES[form][0].split()
        fitting = [action for action in self.library.values() if _has_shape(action, n_texts)]
        for word in roles:
            named = [a for a in fitting if word in a.name.split("_") and _first_role(a) in roles]
            if n_texts > 1:
                named = [a for a in named if VERBS.union(roles).issuperset(a.name.split("_"))]
            if named:
                return min(named, key=_specialty)
        return None


def write_plan(question: str, library: ActionLibrary, kind: DocumentKind = "document") -> str:
    """The text of a plan for a question; it passes the checker with that library.

    Example:
        >>> find = Action("FIND", (Parameter("CTX", ValueType.CONTEXT), Parameter("X")))
        >>> print(write_plan("Why did Ada sell the mill?", ActionLibrary("mine", [find])))
        New actions:
        - None
        <BLANKLINE>
        1. reason = FIND(CTX, "Why did Ada sell the mill?") : Find the reasons that are given
    """
    return print_plan(build_plan(question, library, kind))


def write_other_plan(question: str, library: ActionLibrary) -> str:
    """An alternative plan: one step with the question itself."""
    draft = _Draft(library)
    asked, background = without_background(question)
    _, output, explanation = _ROLES["thing"]
    draft.add(output, draft.general(), explanation, _text(asked, background))
    return print_plan(draft.plan)


def build_plan(question: str, library: ActionLibrary, kind: DocumentKind = "document") -> Plan:
    """The plan of `write_plan` as a tree."""
    draft = _Draft(library)
    lookup = library.get("LOOKUP")
    if kind == "table" and lookup is not None and lookup.asks_table:
        line = " ".join(question.split())
        split = parts(line)
        for text in [line] if len(split) == 1 else [part.asked for part in split]:
            draft.add("found", lookup, "Ask the table", _text(text))
        return draft.plan
    question, background = without_background(question)
    if not background:  # if the question refers to background, its rows are unknown
        rows = row_question(question)
        if rows is not None and plan_rows(rows, library, draft.add):
            return draft.plan
    for part in parts(question):
        both = "; ".join(filter(None, (part.background, background)))
        _plan(replace(part, background=both), draft)
    return draft.plan


def _plan(part: Part, draft: _Draft) -> None:
    """Add the steps for one part of a question."""
    _, output, explanation = _ROLES[part.form]
    one = draft.playing(part.form, 1) or draft.general()
    about = part.asked if one.name in GENERAL else part.topic
    match part.form:
        case "comparison":
            _compare(part, draft)
            return
        case "emotion" if len(part.topics) == 2 and (two := draft.playing(part.form, 2)):
            texts = (_text(part.topics[0], part.background), _text(part.topics[1]))
            draft.add(output, two, explanation, *texts)
            return
        case "number" if (
            part.is_tally
        ):  # passages are listed, not counted: several passages may state the same entry
            output, explanation = "entries", "List every one of them"
            one, about = draft.playing("list", 1) or one, part.asked
        case "summary" if part.is_about_document and (whole := draft.playing(part.form, 0)):
            draft.add(output, whole, explanation)
            return
        case "thing":
            one, about = _named(part, draft) or (one, part.asked)
    draft.add(output, one, explanation, _text(about, part.background))


def _compare(part: Part, draft: _Draft) -> None:
    """Find both things, then compare them."""
    one = draft.playing("summary", 1) or draft.general()
    found = [
        draft.add(name, one, f"Find what the text says about the {nth}", _text(topic, part.background))
        for name, nth, topic in zip(("one", "two"), ("first", "second"), part.topics, strict=True)
    ]  # fmt: skip
    _, output, explanation = _ROLES["comparison"]
    if action := draft.playing("comparison", 2):
        draft.add(output, action, explanation, *found)
    elif action := draft.playing("comparison", 3):
        draft.add(output, action, explanation, *found, _text(part.asked))


def _named(part: Part, draft: _Draft) -> tuple[Action, str] | None:
    """The action named after the thing: `What are the symptoms of X` → `FIND_SYMPTOMS`."""
    thing, of = part.thing_of
    if not of:
        return None
    wanted = terms(thing)
    best: tuple[int, Action] | None = None
    for action in draft.library.values():
        words = {word for word in action.name.split("_") if word not in VERBS}
        named = set(terms(" ".join(words).lower()))
        if not _has_shape(action, 1) or not named <= set(wanted) or wanted[-1] not in named:
            continue
        if best is None or len(named) > best[0]:
            best = (len(named), action)
    return (best[1], of) if best else None


def _first_role(action: Action) -> str:
    """The word that describes the purpose of an action: `RECOMMENDED` in `FIND_RECOMMENDED_CHANGES`."""
    return next((word for word in action.name.split("_") if word in ROLE_WORDS), "")


def _specialty(action: Action) -> tuple[int, int]:
    """A sort key that is lower for more general actions, by the length of the name."""
    return action.name.count("_"), len(action.name)


def _has_shape(action: Action, n_texts: int) -> bool:
    """Whether an action takes the document, as text, first and then `n_texts` texts."""
    return (
        not action.is_native
        and not (action.asks_table or action.extracts)
        and action.accepts(n_texts + 1)
        and [action.parameter(i).type for i in range(n_texts + 1)]
        == [ValueType.CONTEXT, *[ValueType.TEXT] * n_texts]
    )


def _text(text: str, background: str = "") -> String:
    """An argument, with the text that its pronouns may refer to in brackets."""
    return String(asked_with(text.strip()[:_MAX_ARGUMENT], background[:_MAX_ARGUMENT]))


# Questions of a conversation ----------------------------------------------------------------------

_MAX_EARLIER = 6
_MAX_BACKGROUND = 800
"""Maximum characters of the earlier questions."""
_REFERS = lazy_pattern(
    r"\A(?:and|so|but|or|then|what about|how about|in|for|the|including)\b|\b(?:it|its|they|them|theirs?|this"
    r"|that|these|those|such|same|both|ones?|he|him|his|she|hers?|then|again|also|previous|next|other|others"
    r"|another|else|instead|there)\b",
    re.I,
)
"""Words that may refer to an earlier question."""
_YEAR = lazy_pattern(r"\b(?:19|20)\d\d\b")
_GENERIC = frozenset(terms(
    "change difference increase decrease sum total average ratio share percentage percent value amount figure number"
))  # fmt: skip
"""Terms that do not name the subject of a figure."""


def make_standalone(task: StandaloneTask) -> str:
    """The question, with the earlier ones in brackets if it may refer to them.

    Example:
        >>> from pearl.data.samples import Turn
        >>> make_standalone(StandaloneTask("How much did that change?", (Turn("What were sales in 2008?"),)))
        'How much did that change? (asked with: What were sales in 2008)'
    """
    question, earlier = task.question, [turn.question for turn in task.history]
    own = _subject(question)
    says_less = len(own) < 2 or any(own < _subject(text) for text in earlier)
    has_no_year = not _YEAR.search(question) and any(map(_YEAR.search, earlier))
    if not earlier or not (says_less or has_no_year or _REFERS.search(question)):
        return question
    lines = [" ".join(re.sub(r"[()?？;]", " ", text).split()) for text in earlier]
    first, rest = lines[0][: _MAX_BACKGROUND // 2], lines[1:][1 - _MAX_EARLIER :]
    while sum(map(len, (first, *rest))) > _MAX_BACKGROUND and rest:
        rest = rest[1:]
    omitted = ["..."] * (len(rest) < len(lines) - 1)
    return asked_with(question, "; ".join(filter(None, (first, *omitted, *rest))))


def _subject(question: str) -> set[str]:
    """The terms that name the subject of a question."""
    words = {term for term in terms(question, drop_stop_words=True) if not term.isdigit()}
    return words - _GENERIC


def made_query(task: ActionTask) -> str | None:
    """The result of SUBQUERIES or REWRITE; None for other actions.

    Example:
        >>> task = ActionTask("a", SUBQUERIES, (("QUESTION", "Who sold the mill, and why?"),), None)
        >>> print(made_query(task))
        - Who sold the mill
        - why (Who sold the mill)
    """
    values = dict(task.arguments)
    if task.action.signature == SUBQUERIES.signature:
        split = parts(values["QUESTION"])
        return "\n".join(
            f"- {part.text}" + (f" ({part.background})" if part.background else "")
            for part in split
        )
    if task.action.signature == REWRITE.signature:
        question = " ".join(values["QUESTION"].split())
        earlier = [text for text in items_of(values["HISTORY"]) if text != question]
        if len(earlier) > _MAX_EARLIER:
            earlier = [earlier[0], *earlier[1 - _MAX_EARLIER :]]
        return f"{question} ({'; '.join(earlier)})" if earlier else question
    return None


# New actions --------------------------------------------------------------------------------------

_NOUN = lazy_pattern(r"the ([a-z]{3,}(?: [a-z]{3,})?)")
_DOING = lazy_pattern(r"\s\w+ing\Z")
"""Matches "the ship hiding" of "What is the captain of the ship hiding", which does not ask for a captain."""


def propose(question: str, library: ActionLibrary) -> str:
    """A plan that declares the new actions it calls, named after the nouns of the question.

    Example:
        >>> find = Action("FIND", _SHAPE, "Find X")
        >>> print(propose("What are the symptoms of gout?", ActionLibrary("mine", [find])))
        New actions:
        - FIND_SYMPTOMS(CTX, X) : Find the symptoms of X in CTX
        <BLANKLINE>
        1. answer = FIND_SYMPTOMS(CTX, "gout") : Find what the text says about it
    """
    drafts = [action for part in parts(question) if (action := _drafted(part, library))]
    plan = build_plan(question, library.extended(drafts))
    called = {step.action for step in plan.steps}
    new = [action for action in dict.fromkeys(drafts) if action.name in called]
    return print_plan(replace(plan, new_actions=(*new, *plan.new_actions)))


def _drafted(part: Part, library: ActionLibrary) -> Action | None:
    """The new action for a part of a question, if the library lacks one."""
    thing, of = part.thing_of if part.form == "thing" else ("", "")
    words, _, explanation = _ROLES[part.form]
    if not _DOING.search(of) and (noun := _NOUN.fullmatch(thing.strip().lower())):
        name = f"FIND_{noun[1].replace(' ', '_').upper()}"
        definition = f"Find the {noun[1]} of X in CTX"
    elif words and _Draft(library).playing(part.form, 1) is None:
        word = words.split()[0]
        name = word if word in VERBS else f"FIND_{word}"
        definition = f"{explanation}, for X, in CTX"
    else:
        return None
    return None if name in library else Action(name, _SHAPE, definition)


def refine(task: RefineTask) -> str:
    """Return every draft unchanged: rules in place of a model would repeat the rules of `pearl.mining`."""
    return "\n".join(f"{print_action(draft)} [{i}]" for i, draft in enumerate(task.drafts, start=1))
