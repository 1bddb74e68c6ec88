"""A reply and the plan that was read from it → why it may not be the plan that is meant.

Models write drafts, alternatives, other questions with their plans, and plans as bad examples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pearl.documents.passages import terms
from pearl.dsl.checker import CheckedPlan
from pearl.dsl.line_classifier import QUESTION, SourceLine, rows
from pearl.errors import Diagnostic
from pearl.planner.examples import wording

CODE = "unclear-plan"

MAX_LINES = 400
"""Lines of steps in a reply, all its plans together."""

_FINAL = re.compile(
    r"\b(?:final\w*|correct\w*|revis\w*|improv\w*|better|fix\w*|updat\w*|instead|actually|wait|oops|mistake"
    r"|rewrit\w*|again|complete|whole|so the|therefore|(?:the|my) plan(?: is)?)\b",
    re.I,
)
_DRAFT = re.compile(r"\b(?:drafts?|attempt|first try|sketch|rough|example|think\w*)\b", re.I)
_AGAINST = re.compile(
    r"\b(?:do not|don['’]t|never|should not|must not|cannot|can['’]t) (?:use|follow|run|execute|apply) "
    r"(?:this|the|that|it|a)\b|\b(?:bad|wrong|invalid|unusable) (?:example|plan)\b"
    r"|\b(?:this|that|the|above) (?:plan )?is (?:wrong|bad|invalid|incorrect|unusable|not (?:valid|usable|correct))\b",
    re.I,
)
_OUTPUT = re.compile(r"(\w{1,80})`?+\s*+(?:=|:=)")


def not_meant(reply: str, checked: CheckedPlan, question: str) -> tuple[Diagnostic, ...]:
    """An error for a valid plan that its reply gives in another sense, or beside another one."""
    why = _why(reply.replace("\r\n", "\n").replace("\r", "\n"), checked, question)
    if not why:
        return ()
    at = checked.plan.steps[0].output_span
    return (
        Diagnostic(CODE, why, at, help="write the one plan for this question, and nothing else"),
    )


def _why(reply: str, checked: CheckedPlan, question: str) -> str:
    other = checked.plan.question or question
    asked, answered = ({*terms(text, drop_stop_words=True)} for text in (question, other))
    if 2 * len(asked & answered) < min(len(asked), len(answered)):
        return f"the plan is for another question: '{other[:80]}'"
    found = rows(reply)
    lines = [reply[row.span.start : row.span.end] for row in found]
    if sum(row.is_step for row in found) > MAX_LINES:
        return "there are several plans in the reply"
    plans = list(_plans(found, lines))
    chosen = [plan for plan in plans if any(found[i].role == "step" for i in plan)]
    if not chosen:
        return ""
    if len(chosen) > 1:
        return "there are several plans in the reply"
    (plan,) = chosen
    at = plans.index(plan)
    begin = plans[at - 1][-1] if at else 0
    end = plans[at + 1][0] if at + 1 < len(plans) else len(lines)
    above, below = (
        "\n".join(line for i, line in enumerate(lines[a:b], a) if found[i].role == "surplus")
        for a, b in ((begin, plan[0]), (plan[-1] + 1, end))
    )
    *_, said = _FINAL.split(above)
    if _AGAINST.search(said) or _AGAINST.search(below):
        return "the reply says that this plan is not to be used"
    calls = {_call(lines[i]) for i in plan}
    for number, each in enumerate(plans):
        if number == at or calls.issuperset(_call(lines[i]) for i in each):  # told again
            continue
        if number > at:
            competes = not _is_apart(found, lines, plan[-1], each[0], question)
        else:
            before = "\n".join(lines[max(0, each[0] - 6) : each[0]])
            between = "\n".join(lines[each[-1] + 1 : plan[0]])
            competes = not (_DRAFT.search(before) or _FINAL.search(between))
        if competes:
            return "there are several plans in the reply"
    return ""


def _plans(found: Sequence[SourceLine], lines: Sequence[str]) -> Iterator[list[int]]:
    """The lines of steps, plan by plan: a number 1 begins one, unless its steps go on from those above."""
    plan: list[int] = []
    steps = [i for i, row in enumerate(found) if row.is_step]
    for k, i in enumerate(steps):
        is_first = found[i].number == 1 and plan
        if is_first and (found[plan[-1]].number != 1 or i > plan[-1] + 1):
            rest = next(
                (m for m, j in enumerate(steps[k + 1 :], k + 1) if found[j].number == 1), None
            )
            own = {_output(lines[j]) for j in steps[k:rest]}
            given = {_output(lines[j]) for j in plan} - own
            text = " ".join(lines[j] for j in steps[k:rest])
            if given.isdisjoint(re.findall(r"\w+", text)):
                yield plan
                plan = []
        plan.append(i)
    if plan:
        yield plan


def _call(line: str) -> str:
    """Letters and digits of a step, without its number and its explanation."""
    match = _OUTPUT.search(line)
    return re.sub(r"[\W_]+", "", line[match.start() if match else 0 :].partition(")")[0])


def _output(line: str) -> str:
    match = _OUTPUT.search(line)
    return match[1] if match else ""


def _is_apart(
    found: Sequence[SourceLine], lines: Sequence[str], end: int, begin: int, question: str
) -> bool:
    """Whether a later plan is that of another question, or in a fence that is cut off."""
    headings = [i for i in range(end + 1, begin) if found[i].form in ("question", "turn")]
    if headings:
        asked = [QUESTION.sub("", lines[i], count=1) for i in headings]
        return all(wording(each) != wording(question) for each in asked)
    fences = [i for i, row in enumerate(found) if row.form == "fence"]
    return len(fences) % 2 == 1 and end < fences[-1] < begin
