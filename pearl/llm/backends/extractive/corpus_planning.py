"""Questions of a corpus → steps, where it is sure what they ask: passages about something, documents that name it.

What is counted, or asked for in full, is never searched: a search gives the best passages, not all.
"""

from __future__ import annotations

import re

from pearl.dsl.nodes import Number, String
from pearl.dsl.signatures import ActionLibrary
from pearl.llm.backends.extractive.adding import AddStep

N_PASSAGES = 10
"""Passages that are shown."""

_DOCUMENTS = (
    r"(?:documents?|files?|reports?|articles?|letters?|papers?|stories|texts?|notes?|memos?)"
)
_NAMING = re.compile(
    rf"\A(?:in\s+)?(?P<ask>which|what|how\s+many)\s+(?:of\s+the\s+)?(?:different\s+)?{_DOCUMENTS}\s+"
    r"(?:do\s+|does\s+)?(?:mentions?|names?|contains?)\s+(?:the\s+(?:word|name|phrase|term)\s+)?"
    r"(?P<name>[\"'“‘](?P<quoted>[^\"'“”‘’]+)[\"'”’]|[^?,;]+?)\s*\?*\Z",
    re.IGNORECASE,
)
_PASSAGES = re.compile(
    r"\A(?:find|show(?:\s+me)?|list|give\s+me|search\s+for|which\s+are|what\s+are)?\s*(?:the\s+)?"
    r"(?:best\s+|most\s+relevant\s+)?(?:passages|paragraphs)\s+"
    r"(?:about|on|that\s+(?:are\s+about|speak\s+of|deal\s+with)|which\s+(?:are\s+about|speak\s+of))\s+"
    r"(?P<about>[^?]+?)\s*[.?]*\Z",
    re.IGNORECASE,
)
_PROPER = re.compile(
    r"[A-Z0-9][\w.&'-]*(?:\s+(?:(?:of|and|the|de|von|van|&)\s+)?[A-Z0-9][\w.&'-]*)*"
)
_MIN_LETTERS = 6
"""Of a name of one word: a shorter one may be a part of other words."""

_NEEDED = {"RETRIEVE", "SPLIT", "WHERE", "FIELD", "COUNT"}


def plan_corpus(question: str, library: ActionLibrary, add: AddStep) -> bool:
    """Add the steps that answer a question of a corpus."""
    if not library.keys() >= _NEEDED or not library["RETRIEVE"].searches:
        return False
    line = " ".join(question.split())
    if about := _PASSAGES.match(line):
        query, k = String(about["about"]), Number(N_PASSAGES)
        add("passages", library["RETRIEVE"], "Find the passages that match best", query, k)
        return True
    naming = _NAMING.match(line)
    name = _name(naming) if naming else ""
    if naming is None or not name:
        return False
    documents = add("documents", library["SPLIT"], "One row for each document", String("document"))
    condition = (String("text"), String("contains"), String(name))
    found = add("found", library["WHERE"], "Those that name it", documents, *condition)
    if naming["ask"].lower().startswith("how"):
        add("number", library["COUNT"], "How many they are", found)
    else:
        add("names", library["FIELD"], "What they are called", found, String("Document"))
    return True


def _name(naming: re.Match[str]) -> str:
    """The name that is looked for word by word; "" where what is meant may be said in other words."""
    if naming["quoted"]:
        return str(naming["quoted"]).strip()
    name = naming["name"].strip()
    is_long = " " in name or len(name) >= _MIN_LETTERS
    return name if is_long and _PROPER.fullmatch(name) else ""
