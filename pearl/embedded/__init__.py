"""The embedded model replies to `Request.task` with quotes of the best sentences; it is no language model."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from pearl.dsl.nodes import Plan, Reference, Step, String, print_action, print_plan
from pearl.dsl.signatures import CTX, Action, ActionLibrary, Parameter, ValueType
from pearl.embedded.reading import carry_out, choose_option, combine
from pearl.embedded.sentences import SentenceRanker
from pearl.errors import UsageError
from pearl.errors.patterns import lazy_pattern
from pearl.llm import (
    ActionTask,
    CheckTask,
    ChooseTask,
    Completion,
    ItemsTask,
    LookupTask,
    MineTask,
    ModelBase,
    PlanTask,
    RefineTask,
    Request,
)
from pearl.replies.extracted import UNREAD, name_key, wanted_fields

if TYPE_CHECKING:
    from pearl.llm.embedders import TextEmbedder


_LINE = lazy_pattern(  # "- **Date of birth:** 2 May 1961"
    r"^[ \t>*•|-]*(?P<label>[^\n:|]{1,60}?)[ \t*]*[:|][ \t*]*(?P<value>[^\n|]*[^\s|])", re.M
)

_RUNS_ON = lazy_pattern(r"[.:;!?]\s|\s{3}|\t")
"""The end of a value within its line: a sentence or another label follows."""
_MAX_WORDS = 8  # maximum words of a value; a longer text may say more than the value

_UNREAD = "the embedded model reads only 'label: value' lines; name a language model with --model"


def read_lines(task: ActionTask) -> str:
    """The reply to an extraction: values read from lines; all other fields are undecided."""
    text = dict(task.arguments)["FIELDS"]
    lines: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for match in _LINE.finditer(task.document or ""):
        lines[name_key(match["label"])].append((match["value"], match[0].strip()))
    read: dict[str, Any] = {}
    for field in wanted_fields(text, is_all=task.action.extracts_all):
        read[field.name] = {UNREAD: _UNREAD}
        same = lines.get(name_key(field.name), [])
        if field.is_list:
            read[field.name] = [{UNREAD: _UNREAD}]
        elif len(same) == 1:
            ((value, line),) = same
            if not (_RUNS_ON.search(value) or len(value.split()) > _MAX_WORDS):
                read[field.name] = {"value": value, "quote": line}
    return json.dumps(read, ensure_ascii=False)


_GENERAL = ("FIND", "SEARCH", "COMPREHEND", "COPY_OUT", "EXTRACT", "LOOKUP", "QUERY", "ASK", "INFER", "ANSWER")  # fmt: skip
"""General actions, best first."""
_SHAPE = (Parameter(CTX, ValueType.CONTEXT), Parameter("X"))
_OWN = Action(
    "FIND_PASSAGE", _SHAPE, "Return the passages of CTX that say most about X, word for word"
)
MAX_ARGUMENT = 2_000  # Maximum characters of the question in a plan


def write_plan(question: str, library: ActionLibrary) -> str:
    """The text of a plan of one step that asks the question; it passes the checker with that library.

    Example:
        >>> find = Action("FIND", (Parameter("CTX", ValueType.CONTEXT), Parameter("X")))
        >>> print(write_plan("Why did Ada sell the mill?", ActionLibrary("mine", [find])))
        New actions:
        - None
        <BLANKLINE>
        1. answer = FIND(CTX, "Why did Ada sell the mill?") : Find what the text says about it
    """
    fitting = [
        action
        for action in library.values()
        if not (action.is_native or action.asks_table or action.extracts)
        and action.accepts(2)
        and [action.parameter(i).type for i in range(2)] == [ValueType.CONTEXT, ValueType.TEXT]
    ]
    named = {action.name: action for action in fitting}
    known = next((named[name] for name in _GENERAL if name in named), None)
    action = known or min(fitting, key=lambda a: (a.name.count("_"), len(a.name)), default=_OWN)
    asked = String(" ".join(question.split())[:MAX_ARGUMENT])
    step = Step("answer", action.name, (Reference(CTX), asked), "Find what the text says about it")
    return print_plan(Plan((step,), (_OWN,) if action is _OWN else ()))


class ExtractiveModel(ModelBase):
    """Computes replies to tasks by rule."""

    reads_prompts = False

    def __init__(self, embedder: TextEmbedder | None = None) -> None:
        self._ranker = SentenceRanker(embedder)
        self.name = self.identity = "extractive"
        by = served = ""
        if embedder is not None:
            vectors = embedder.name.partition("@")[0]  # the name without the address of a server
            self.name, self.identity = f"extractive+{vectors}", f"extractive+{embedder.name}"
            by, served = f", ranked by words and vectors of {vectors}", f"\n{embedder.notice}"
        told = f"extractive: quotes passages of the document{by}; no language model is used"
        self.notice = (told + served).strip()

    async def complete(self, request: Request) -> Completion:
        """Compute the reply to one request."""
        match request.task:
            case PlanTask(has_sources=True):
                raise UsageError(
                    "planning over named sources needs a language model",
                    help="name one with --model, or write the plan: pearl execute FILE.plan --source ...",
                )
            case PlanTask() | MineTask() as task:
                text = write_plan(task.question, task.library)
            case ActionTask() as task if task.action.extracts:
                text = read_lines(task)
            case ActionTask(parts=[*parts]) as task:
                text = await combine(task, parts, self._ranker)
            case ActionTask() as task:
                text = await carry_out(task, self._ranker)
            case ItemsTask():
                text = "{}"  # decides about no item
            case CheckTask():
                text = '{"verdicts": []}'  # it checks no claim
            case LookupTask():
                text = "Undecided: the embedded model queries no tables; name a language model with --model"
            case ChooseTask() as task:
                text = choose_option(task, self._ranker)
            case RefineTask() as task:  # the rules of `pearl.mining` merge equal drafts
                kept = [
                    {"action": print_action(draft), "drafts": [i]}
                    for i, draft in enumerate(task.drafts, start=1)
                ]
                text = json.dumps({"actions": kept, "dropped": []})
        # A question may contain lone surrogates.
        return Completion(text.encode(errors="replace").decode(), self.name)

    async def aclose(self) -> None:
        """Clear the cache, and close the embedder."""
        await self._ranker.aclose()
