"""Building blocks of all prompts. They are concatenated, not formatted, so that documents may contain any character; what calls share comes first, for prefix caches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from pearl.dsl.decoding.constraint import Constraint
from pearl.errors.patterns import lazy_pattern
from pearl.llm import ConstrainBy, ItemsTask, Message, MineTask, PlanTask, Request

# Blanks and invisible characters: a model reads a tag or word as if they were not there.
_GAP = r"[\s\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]*+"
_TAGS = "|".join(map(_GAP.join, ("text", "input", "part", "answer", "item", "claim", "passage")))
# Many servers treat chat markers in any text as real turns.
_TURNS = (
    r"[|｜]\s*+[\w▁/-]++\s*+[|｜>]|[\w▁/-]++[|｜]>|<SYS>>|(?:seed:)?(?:s|bos|eos|pad|unk|sop|eop|think|tool_call"
    r"|(?:start|end)_of_turn|(?:SPECIAL|reserved)_\d+)>"
)
_BRACKETED = r"(?:g?MASK|INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|ARGS|THINK|BOS|EOS|\|\w++\|)\]"
_MARKED = rf"{_GAP}[/／]?{_GAP}(?:(?:{_TAGS})\b|{_TURNS})"
_MARK_BEGINS = "<＜﹤["
# The "<" of `</text>` or `<|im_end|>`, the "[" of `[/INST]`; `re` finds one class faster than alternatives
_MARK = lazy_pattern(
    rf"[{re.escape(_MARK_BEGINS)}](?:(?<!\[)(?={_MARKED})|(?<=\[)(?=/?{_BRACKETED}))", re.I
)
# The same after escaping: `&lt;/text>`
_INERT = lazy_pattern(rf"&lt;(?={_MARKED})|&#91;(?=/?{_BRACKETED})", re.I)
_BEGIN, _END, _FIRST_ITEM = "<text>\n", "\n</text>", "\n\n<item "
PLAN_ASKED = "Write the plan for this question."
MINE_ASKED = "Sketch the plan for this question and declare its new actions."
_SHARED_UNTIL = {ItemsTask: _FIRST_ITEM, PlanTask: PLAN_ASKED, MineTask: MINE_ASKED}
"""Kind of task → the text in its second message at which the prefix shared with other prompts ends."""
_TEXT = lazy_pattern(r"<(text|item \d++|passage \d++)>\n")
"""The beginning of a block of the document: `<text>`, `<item 3>`."""


def block(tag: str, text: str) -> str:
    """Wrap an untrusted text in a pair of tags; it cannot close or imitate them, nor end a chat turn."""
    return f"<{tag}>\n{inert(text)}\n</{tag}>"


def inert(text: str) -> str:
    """Escape the block tags and chat markers in an untrusted text."""
    if not any(begin in text for begin in _MARK_BEGINS):  # 200 times as fast as the pattern
        return text
    return _MARK.sub(lambda mark: "&#91;" if mark[0] == "[" else "&lt;", text)


def restored(reply: str) -> str:
    """Undo in a reply the escapes that `inert` made in the prompt, so that quotes equal their document."""
    if "&" not in reply:
        return reply
    return _INERT.sub(lambda mark: "[" if mark[0] == "&#91;" else "<", reply)


def prefix_end(request: Request) -> int | None:
    """The end of the shared prefix in the second message; None if the prompt has no such prefix."""
    if len(request.messages) < 2:
        return None
    content = request.messages[1].content
    if mark := _SHARED_UNTIL.get(type(request.task)):
        end = content.find(mark)
        return end if end > 0 else None
    document = request.document
    if not document or not content.startswith(_BEGIN):
        return None
    # Escapes make the block longer than the document.
    end = content.find(_END, len(document))
    return None if end < 0 else end + len(_END)


def without_texts(messages: Iterable[Message]) -> str:
    """Messages for people: each text in a block (`block`) is replaced by its length."""
    return "\n\n".join(
        f"[{message.role}]\n{''.join(_measured(message.content))}" for message in messages
    )


def _measured(content: str) -> Iterator[str]:
    at = 0
    while (begins := _TEXT.search(content, at)) is not None:
        end = f"\n</{begins[1]}>"
        # `find`, because a regular expression takes milliseconds on a long text.
        ends = content.find(end, begins.end())
        if ends < 0:
            break
        yield content[at : begins.start()]
        yield f"<{begins[1]}: {ends - begins.end():,} characters>"
        at = ends + len(end)
    yield content[at:]


def constrained(request: Request, constraint: Constraint | None, by: ConstrainBy | None) -> Request:
    """Add a constraint in one of its forms to a request; unchanged without one."""
    if by is None or constraint is None:
        return request
    messages = request.messages
    if by == "json" and constraint.json_form is not None and constraint.json_form.hint:
        *before, last = messages
        asked = f"{last.content}\n\nReply as JSON: {constraint.json_form.hint}"
        messages = (*before, replace(last, content=asked))
    return replace(request, messages=messages, constraint=constraint, constrain_by=by)
