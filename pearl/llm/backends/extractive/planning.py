"""Question + library → plan text, by rule from the form of the question.

A form asks for a role ("finds a reason"), and the library's action for the role is found by the
words of its name, so that a library with other names is used as well. Where it has none, any action
of shape `(CTX, X)` stands in; where there is none of that shape, the plan declares one.
"""

from __future__ import annotations

from dataclasses import dataclass

from pearl.documents.passages import terms
from pearl.dsl.nodes import CTX, Argument, ListLiteral, Plan, Reference, Step, String
from pearl.dsl.printer import print_plan
from pearl.dsl.signatures import Action, ActionLibrary, Parameter, ValueType
from pearl.llm.backends.extractive.forms import Form
from pearl.llm.backends.extractive.questions import Part, options, parts

__all__ = ["build_plan", "missing_role", "write_other_plan", "write_plan"]

_MAX_ARGUMENT = 2_000
"""Characters of an argument; a question may be longer than a step can make use of."""

_ROLES: dict[Form, tuple[str, str, str]] = {
    # form: words of names that play the role (best first), name of the output, explanation
    "advice": ("RECOMMENDED RECOMMENDATION RECOMMENDATIONS ADVICE IMPROVEMENT", "advice", "Find what is advised"),
    "change": ("CHANGE CHANGES DEVELOPMENT CHARACTER", "change", "Find what is different afterwards, and from when"),
    "claim": ("VERIFY CHECK EVIDENCE", "verdict", "Find the passage that decides it"),
    "comparison": ("COMPARE COMPARISON CONTRAST DIFFERENCE", "comparison", "Set the two findings side by side"),
    "definition": ("DEFINITION DEFINE MEANING INTERPRET", "meaning", "Find what the term means in the text"),
    "duration": ("DURATION TIME WHEN", "duration", "Find how long or how often it is"),
    "effect": ("EFFECT EFFECTS IMPACT IMPACTS CONSEQUENCES", "effect", "Find what comes of it"),
    "emotion": ("EMOTION EMOTIONS FEELING FEELINGS ATTITUDE", "feeling", "Find the feelings and what shows them"),
    "ending": ("ENDING END OUTCOME", "ending", "Find how it ends"),
    "event": ("EVENT EVENTS INSTANCE", "event", "Find what happens"),
    "exception": ("EXCEPTION EXCEPT", "exception", "Find the one that does not belong"),
    "hypothesis": ("HYPOTHETICAL COUNTERFACTUAL PREDICT INFER", "outcome", "Find what would follow"),
    "lesson": ("MORAL THEME LESSON MESSAGE", "lesson", "Find what the text as a whole teaches"),
    "list": ("LIST EXTRACT", "entries", "Gather every one of them"),
    "manner": ("PROCESS METHOD", "way", "Find how it is done"),
    "number": ("NUMBER AMOUNT QUANTITY", "stated", "Find where the text states the number"),
    "person": ("IDENTIFY WHO PERSON", "who", "Find out who it is"),
    "place": ("PLACE LOCATION WHERE", "place", "Find where it is"),
    "reason": ("REASON CAUSE CAUSES WHY EXPLANATION", "reason", "Find the reasons that are given"),
    "relation": ("RELATION RELATIONSHIP CONNECTION", "relation", "Find how the two are connected"),
    "summary": ("SUMMARIZE SUMMARISE SUMMARY", "summary", "Sum it up"),
    "thing": ("", "answer", "Find what the text says about it"),
    "time": ("TIME DATE WHEN", "time", "Find when it is"),
}  # fmt: skip
_GENERIC = ("FIND", "SEARCH", "COMPREHEND", "EXTRACT", "LOOKUP", "QUERY", "ASK", "INFER", "ANSWER")
"""Actions that can be asked for anything, best first."""
_AS_CLAUSE = frozenset(
    {"reason", "time", "place", "event", "effect", "change", "manner", "relation",
     "definition", "emotion", "summary", "list", "ending", "lesson"}
)  # fmt: skip
"""Forms whose action takes what it is about; the others take the question as it is asked."""
_VERBS = frozenset(
    {"ALL", "BUILD", "COMPARE", "EXPLAIN", "FIND", "GET", "IDENTIFY", "LIST", "OF", "SUMMARIZE", "X", "Y"}
)  # fmt: skip
"""Words of names that say that something is looked for, not what."""
_OWN = Action(
    "FIND_PASSAGE",
    (Parameter(CTX, ValueType.CONTEXT), Parameter("X")),
    "Return the passages of CTX that say most about X, word for word",
)


@dataclass(slots=True)
class _Draft:
    """A plan under way."""

    library: ActionLibrary
    steps: list[Step]
    new_actions: list[Action]

    def add(self, output: str, action: Action, explanation: str, *arguments: Argument) -> Reference:
        """Add a step under a free name; CTX is given where the action takes it."""
        names = {step.output for step in self.steps}
        name, n = output, 2
        while name in names:
            name, n = f"{output}_{n}", n + 1
        context = (Reference(CTX),) if action.reads_context else ()
        self.steps.append(Step(name, action.name, (*context, *arguments), explanation))
        return Reference(name)

    def generic(self) -> Action:
        """The action of shape (CTX, X) that can be asked for anything."""
        for name in _GENERIC:
            action = self.library.get(name)
            if action is not None and _has_shape(action, 1):
                return action
        fitting = [action for action in self.library.values() if _has_shape(action, 1)]
        # A name of one word is the least likely to mean something special.
        if fitting:
            return min(fitting, key=lambda action: (action.name.count("_"), len(action.name)))
        if _OWN not in self.new_actions:
            self.new_actions.append(_OWN)
        return _OWN

    def playing(self, form: Form, n_texts: int) -> Action | None:
        """The action for a form that takes the document and so many texts.

        With one text its name may say more than the form does (`FIND_BEHAVIOR_REASON`); with two,
        what it says more is about the two.
        """
        roles = _ROLES[form][0].split()
        fitting = [action for action in self.library.values() if _has_shape(action, n_texts)]
        for word in roles:
            named = [action for action in fitting if word in action.name.split("_")]
            if n_texts > 1:
                named = [a for a in named if _VERBS.union(roles).issuperset(a.name.split("_"))]
            if named:
                return min(named, key=lambda action: (action.name.count("_"), len(action.name)))
        return None


def write_plan(question: str, library: ActionLibrary) -> str:
    """The text of a plan for a question; it passes the checker with that library.

    Example:
        >>> find = Action("FIND", (Parameter("CTX", ValueType.CONTEXT), Parameter("X")))
        >>> print(write_plan("Why did Ada sell the mill?", ActionLibrary("mine", [find])))
        New actions:
        - None
        <BLANKLINE>
        1. reason = FIND(CTX, "Why did Ada sell the mill?") : Find the reasons that are given
    """
    return print_plan(build_plan(question, library))


def write_other_plan(question: str, library: ActionLibrary) -> str:
    """Another plan, for where the first one leads nowhere: ask for the question as it stands."""
    draft = _Draft(library, [], [])
    draft.add("answer", draft.generic(), "Find what the text says about it", _text(question))
    return print_plan(Plan(tuple(draft.steps), tuple(draft.new_actions)))


def build_plan(question: str, library: ActionLibrary) -> Plan:
    """The plan of `write_plan` as a tree."""
    draft = _Draft(library, [], [])
    for part in parts(question):
        _plan(part, draft)
    return Plan(tuple(draft.steps), tuple(draft.new_actions))


def missing_role(part: Part, library: ActionLibrary) -> tuple[str, str] | None:
    """The role that no action of a library plays for a part of a question: its word, what it is for.

    Forms that every library can serve with a general action have no role.
    """
    words, _, explanation = _ROLES[part.form]
    if not words or _Draft(library, [], []).playing(part.form, 1) is not None:
        return None
    return words.split()[0], explanation


def _plan(part: Part, draft: _Draft) -> None:
    """Add the steps for one part of a question."""
    match part.form:
        case "comparison" if part.other:
            _compare(part, draft)
        case "exception":
            _except(part, draft)
        case "number" if part.is_tally:
            _tally(part, draft)
        case "summary" | "lesson" if part.is_about_document:
            _about_whole(part, draft)
        case "thing" if named := _named(part, draft):
            _step(part, draft, *named)
        case _:
            _step(part, draft)


def _step(part: Part, draft: _Draft, action: Action | None = None, about: str = "") -> None:
    """The usual plan: one step by the action that fits best."""
    _, output, explanation = _ROLES[part.form]
    if action is not None:
        draft.add(output, action, explanation, _text(about, part))
        return
    if part.other and part.form != "number":
        two = draft.playing(part.form, 2)
        if two is not None:
            draft.add(output, two, explanation, _text(part.topic, part), _text(part.other))
            return
    one = draft.playing(part.form, 1)
    if one is None:
        draft.add(output, draft.generic(), explanation, _text(part.asked, part))
        return
    as_clause = part.form in _AS_CLAUSE and part.is_clause and not part.other
    draft.add(output, one, explanation, _text(part.topic if as_clause else part.asked, part))


def _compare(part: Part, draft: _Draft) -> None:
    """Find both things, then set them side by side."""
    one = draft.playing("summary", 1) or draft.generic()
    found = [
        draft.add(name, one, f"Find what the text says about the {nth}", _text(topic, part))
        for name, nth, topic in (("one", "first", part.topic), ("two", "second", part.other))
    ]
    _, output, explanation = _ROLES["comparison"]
    if action := draft.playing("comparison", 2):
        draft.add(output, action, explanation, *found)
    elif action := draft.playing("comparison", 3):
        draft.add(output, action, explanation, *found, _text(part.asked))


def _except(part: Part, draft: _Draft) -> None:
    """Gather what does belong; what is named in the question and not among it does not."""
    gather = draft.playing("list", 1) or draft.generic()
    belonging = draft.add(
        "belonging", gather, "Gather everything that does belong", _text(part.topic, part)
    )
    named = options(part.asked)
    action = draft.playing("exception", 2)
    if named and action:
        items = ListLiteral(tuple(String(option) for option in named))
        _, output, explanation = _ROLES["exception"]
        draft.add(output, action, explanation, items, belonging)


def _tally(part: Part, draft: _Draft) -> None:
    """The passages on things that one counts by going through a text, or where their number is stated.

    They are not counted: passages that match are no entries, and how many there are is no answer.
    """
    _, output, explanation = _ROLES["number"]
    gather = draft.playing("list", 1)
    if gather is not None:
        draft.add("entries", gather, "List every one of them", _text(part.topic, part))
        return
    one = draft.playing("number", 1) or draft.generic()
    draft.add(output, one, explanation, _text(part.asked, part))


def _about_whole(part: Part, draft: _Draft) -> None:
    """A summary or a lesson of the document itself."""
    _, output, explanation = _ROLES[part.form]
    whole = draft.playing(part.form, 0)
    if whole is not None:
        draft.add(output, whole, explanation)
        return
    one = draft.playing(part.form, 1) or draft.generic()
    draft.add(output, one, explanation, _text(part.asked, part))


def _named(part: Part, draft: _Draft) -> tuple[Action, str] | None:
    """The action named like the thing asked for: `What are the symptoms of X` → `FIND_SYMPTOMS`."""
    if not part.of:
        return None
    wanted = terms(part.thing)
    best: tuple[int, Action] | None = None
    for action in draft.library.values():
        words = {word for word in action.name.split("_") if word not in _VERBS}
        named = set(terms(" ".join(words).lower()))
        if not _has_shape(action, 1) or not named <= set(wanted) or wanted[-1] not in named:
            continue
        if best is None or len(named) > best[0]:
            best = (len(named), action)
    return (best[1], part.of) if best else None


def _has_shape(action: Action, n_texts: int) -> bool:
    """Whether an action takes the document first and then so many texts."""
    return (
        not action.is_native
        and action.accepts(n_texts + 1)
        and [action.parameter(i).type for i in range(n_texts + 1)]
        == [ValueType.CONTEXT, *[ValueType.TEXT] * n_texts]
    )


def _text(text: str, part: Part | None = None) -> String:
    """An argument; what its pronouns may stand for is said in brackets."""
    shown = text.strip()[:_MAX_ARGUMENT]
    if part is not None and part.background:
        shown = f"{shown} (asked with: {part.background[:_MAX_ARGUMENT]})"
    return String(shown)
