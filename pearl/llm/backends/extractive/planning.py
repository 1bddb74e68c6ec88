"""Question + library → plan text, by rule from the form of the question.

A question of a table is asked of it. A question that counts rows is planned with the operators on rows, where the library has them. Any
other form has a role ("finds a reason"); the library's action for it is found by the words of its
name. Without one, any action of shape `(CTX, X)` is used; without one of that shape, the plan
declares it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pearl.data.samples import asked_with, without_background
from pearl.documents.kinds import DocumentKind
from pearl.documents.passages import terms
from pearl.dsl.nodes import Argument, ListLiteral, Plan, Reference, Step, String
from pearl.dsl.printer import print_plan
from pearl.dsl.signatures import CTX, Action, ActionLibrary, Parameter, ValueType
from pearl.llm.backends.extractive.corpus_planning import plan_corpus
from pearl.llm.backends.extractive.forms import Form
from pearl.llm.backends.extractive.questions import Part, options, parts
from pearl.llm.backends.extractive.row_planning import plan_rows
from pearl.llm.backends.extractive.row_questions import row_question
from pearl.llm.backends.extractive.table_planning import plan_table

_MAX_ARGUMENT = 2_000
"""Maximum characters of an argument."""

_ROLES: dict[Form, tuple[str, str, str]] = {
    # form: words of names that play the role (best first), name of the output, explanation
    "advice": ("RECOMMENDATIONS RECOMMENDED RECOMMENDATION ADVICE IMPROVEMENT", "advice", "Find what is advised"),
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
_ROLE_WORDS = frozenset(word for words, _, _ in _ROLES.values() for word in words.split())
_GENERIC = ("FIND", "SEARCH", "COMPREHEND", "EXTRACT", "LOOKUP", "QUERY", "ASK", "INFER", "ANSWER")
"""General actions, best first."""
_AS_CLAUSE = frozenset(
    {"reason", "time", "place", "event", "effect", "change", "manner", "relation",
     "definition", "emotion", "summary", "list", "ending", "lesson"}
)  # fmt: skip
"""Forms whose action takes the topic; the others take the question."""
_VERBS = frozenset(
    {"ALL", "BUILD", "COMPARE", "EXPLAIN", "FIND", "GET", "IDENTIFY", "LIST", "OF", "SUMMARIZE", "VERIFY", "X", "Y"}
)  # fmt: skip
"""Words of names that do not say what is looked for."""
_OWN = Action(
    "FIND_PASSAGE",
    (Parameter(CTX, ValueType.CONTEXT), Parameter("X")),
    "Return the passages of CTX that say most about X, word for word",
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

    def generic(self) -> Action:
        """The most general action of shape (CTX, X)."""
        for name in _GENERIC:
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

        With one text its name may be more specific than the form (`FIND_BEHAVIOR_REASON`).
        """
        roles = _ROLES[form][0].split()
        fitting = [action for action in self.library.values() if _has_shape(action, n_texts)]
        for word in roles:
            named = [
                action
                for action in fitting
                if word in action.name.split("_") and _first_role(action) in roles
            ]
            if n_texts > 1:
                named = [a for a in named if _VERBS.union(roles).issuperset(a.name.split("_"))]
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
    shown = String(asked_with(asked.strip()[:_MAX_ARGUMENT], background[:_MAX_ARGUMENT]))
    draft.add("answer", draft.generic(), "Find what the text says about it", shown)
    return print_plan(draft.plan)


def build_plan(question: str, library: ActionLibrary, kind: DocumentKind = "document") -> Plan:
    """The plan of `write_plan` as a tree."""
    draft = _Draft(library)
    if kind == "table" and plan_table(question, library, draft.add):
        return draft.plan
    question, background = without_background(question)
    if background:  # what it refers to is not known, so nothing is counted or selected by it
        for part in parts(question):
            both = "; ".join(filter(None, (part.background, background)))
            _plan(replace(part, background=both), draft)
        return draft.plan
    if plan_corpus(question, library, draft.add):
        return draft.plan
    asked = row_question(question)
    if asked is None or not plan_rows(asked, library, draft.add):
        for part in parts(question):
            _plan(part, draft)
    return draft.plan


def missing_role(part: Part, library: ActionLibrary) -> tuple[str, str] | None:
    """The role for a part of a question that a library lacks: the name of an action for it, and its explanation."""
    words, _, explanation = _ROLES[part.form]
    if not words or part.form == "exception" or _Draft(library).playing(part.form, 1) is not None:
        return None
    word = words.split()[0]
    return (word if word in _VERBS else f"FIND_{word}"), explanation


def _plan(part: Part, draft: _Draft) -> None:
    """Add the steps for one part of a question."""
    match part.form:
        case "comparison" if part.other:
            _compare(part, draft)
        case "exception" if part.is_clause and (gather := draft.playing("list", 1)):
            _except(part, draft, gather)
        case "exception":
            _step(part, draft, draft.generic(), part.asked)
        case "number" if part.is_tally:
            _tally(part, draft)
        case "summary" | "lesson" if part.is_about_document:
            _about_whole(part, draft)
        case "thing" | "effect" if not part.other and (named := _named(part, draft)):
            _step(part, draft, *named)
        case _:
            _step(part, draft)


def _step(part: Part, draft: _Draft, action: Action | None = None, about: str = "") -> None:
    """One step by the best action."""
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
    """Find both things, then compare them."""
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


def _except(part: Part, draft: _Draft, gather: Action) -> None:
    """List what belongs; the exception is the option in the question that is not among it."""
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
    """List the passages on the things, without counting them: matching passages are no entries."""
    _, output, explanation = _ROLES["number"]
    gather = draft.playing("list", 1)
    if gather is not None:
        draft.add("entries", gather, "List every one of them", _text(part.asked, part))
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
    """The action named after the thing: `What are the symptoms of X` → `FIND_SYMPTOMS`."""
    thing, of = part.thing_of
    if not of:
        return None
    wanted = terms(thing)
    best: tuple[int, Action] | None = None
    for action in draft.library.values():
        words = {word for word in action.name.split("_") if word not in _VERBS}
        named = set(terms(" ".join(words).lower()))
        if not _has_shape(action, 1) or not named <= set(wanted) or wanted[-1] not in named:
            continue
        if best is None or len(named) > best[0]:
            best = (len(named), action)
    return (best[1], of) if best else None


def _first_role(action: Action) -> str:
    """The word that says what an action is for: `RECOMMENDED` in `FIND_RECOMMENDED_CHANGES`."""
    return next((word for word in action.name.split("_") if word in _ROLE_WORDS), "")


def _specialty(action: Action) -> tuple[int, int]:
    """Lower for a more general action, by the length of its name."""
    return action.name.count("_"), len(action.name)


def _has_shape(action: Action, n_texts: int) -> bool:
    """Whether an action takes the document, as text, first and then `n_texts` texts."""
    return (
        not action.is_native
        and not action.asks_table
        and action.accepts(n_texts + 1)
        and [action.parameter(i).type for i in range(n_texts + 1)]
        == [ValueType.CONTEXT, *[ValueType.TEXT] * n_texts]
    )


def _text(text: str, part: Part | None = None) -> String:
    """An argument, with what its pronouns may refer to in brackets."""
    background = "" if part is None else part.background[:_MAX_ARGUMENT]
    return String(asked_with(text.strip()[:_MAX_ARGUMENT], background))
