"""Building blocks of all prompts. They are joined, never filled in, so that a document may contain any mark; what calls share comes first, for prefix caches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from pearl.dsl.decoding.constraint import Constraint
from pearl.errors.patterns import lazy_pattern
from pearl.llm import ConstrainBy, ItemsTask, Message, MineTask, PlanTask, Request

# Blanks, and characters without ink: a model reads a tag or a word as if they were not there.
_GAP = r"[\s\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]*+"
_TAGS = "|".join(map(_GAP.join, ("text", "input", "part", "answer", "item", "claim", "passage")))
# Many servers read the marks of a chat's turns in any text as the turns themselves.
_TURNS = (
    r"[|｜]\s*+[\w▁/-]++\s*+[|｜>]|[\w▁/-]++[|｜]>|<SYS>>|(?:seed:)?(?:s|bos|eos|pad|unk|sop|eop|think|tool_call"
    r"|(?:start|end)_of_turn|(?:SPECIAL|reserved)_\d+)>"
)
_BRACKETED = r"(?:g?MASK|INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|ARGS|THINK|BOS|EOS|\|\w++\|)\]"
_MARKED = rf"{_GAP}[/／]?{_GAP}(?:(?:{_TAGS})\b|{_TURNS})"
_MARK = lazy_pattern(rf"[<＜﹤](?={_MARKED})|\[(?=/?{_BRACKETED})", re.I)
_INERT = lazy_pattern(rf"&lt;(?={_MARKED})|&#91;(?=/?{_BRACKETED})", re.I)
_BEGIN, _END, _FIRST_ITEM = "<text>\n", "\n</text>", "\n\n<item 1>\n"
PLAN_ASKED = "Write the plan for this question."
MINE_ASKED = "Sketch the plan for this question and declare its new actions."
_SHARED_UNTIL = {ItemsTask: _FIRST_ITEM, PlanTask: PLAN_ASKED, MineTask: MINE_ASKED}
"""Kind of task → where that ends in the second message which other prompts share."""
_TEXT = lazy_pattern(r"<(text|item \d++|passage \d++)>\n")
"""The beginning of a block of the document."""


def block(tag: str, text: str) -> str:
    """An untrusted text between a pair of tags, which it cannot close or imitate, nor end a turn of a chat."""
    return f"<{tag}>\n{inert(text)}\n</{tag}>"


def inert(text: str) -> str:
    """An untrusted text without marks of blocks and of the turns of a chat."""
    return _MARK.sub(lambda mark: "&#91;" if mark[0] == "[" else "&lt;", text)


def restored(reply: str) -> str:
    """A reply with the marks that `inert` took from the texts of its prompt, so that quotes equal their document."""
    return _INERT.sub(lambda mark: "[" if mark[0] == "&#91;" else "<", reply)


def prefix_end(request: Request) -> int | None:
    """The end of the prefix in the second message; None if the prompt has none."""
    if len(request.messages) < 2:
        return None
    content = request.messages[1].content
    if mark := _SHARED_UNTIL.get(type(request.task)):
        end = content.find(mark)
        return end if end > 0 else None
    document = request.document
    if not document or not content.startswith(_BEGIN):
        return None
    # Escaped marks make the block longer than the document.
    end = content.find(_END, len(document))
    return None if end < 0 else end + len(_END)


def without_texts(messages: Iterable[Message]) -> str:
    """Messages for people: texts in blocks (`block`) are replaced by their lengths."""
    return "\n\n".join(
        f"[{message.role}]\n{''.join(_measured(message.content))}" for message in messages
    )


def _measured(content: str) -> Iterator[str]:
    at = 0
    while (begins := _TEXT.search(content, at)) is not None:
        end = f"\n</{begins[1]}>"
        # `find`, because a regular expression takes milliseconds for a long text.
        ends = content.find(end, begins.end())
        if ends < 0:
            break
        yield content[at : begins.start()]
        yield f"<{begins[1]}: {ends - begins.end():,} characters>"
        at = ends + len(end)
    yield content[at:]


def constrained(request: Request, constraint: Constraint | None, by: ConstrainBy | None) -> Request:
    """The request with a constraint in one of its forms, or unchanged without one."""
    if by is None or constraint is None:
        return request
    messages = request.messages
    if by == "json" and constraint.json_form is not None and constraint.json_form.hint:
        *before, last = messages
        asked = f"{last.content}\n\nReply as JSON: {constraint.json_form.hint}"
        messages = (*before, replace(last, content=asked))
    return replace(request, messages=messages, constraint=constraint, constrain_by=by)
