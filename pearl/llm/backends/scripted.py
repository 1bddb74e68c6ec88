r"""Scripted replies: for tests and demonstrations; no model, no network.

`scripted:FILE` reads a JSON array of rules `[{"match": ..., "reply": ...}]`. The first rule whose
regular expression matches in the prompt (`.` matches line ends) gives the reply; `\1` in a reply is
the first group of the match.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from pearl.documents.document import file_source
from pearl.errors import DataError, ModelError, UsageError
from pearl.errors.validation import reason
from pearl.llm import Completion, ModelBase, Request
from pearl.llm.backends import Abilities, ModelSettings
from pearl.llm.flaws import is_blank

DESCRIPTION = "replies from a file of rules, for tests: scripted:rules.json"

NOTICE = "scripted: these replies were prepared; no model wrote them"

FORMAT = 'a JSON array of rules: [{"match": "regular expression", "reply": "text"}]'


class Scripted(ModelBase):
    """A model whose replies are computed by a function."""

    notice = NOTICE
    reads_prompts = False

    def __init__(
        self,
        reply: Callable[[Request], str],
        *,
        name: str = "scripted",
        source: str = "",
        window: int | None = None,
        is_recording: bool = True,
    ) -> None:
        self.name = name
        self.identity = f"{name} {source}".rstrip()
        self.window = window
        self.is_recording = is_recording
        self.requests: list[Request] = []
        self._reply = reply

    def __repr__(self) -> str:
        return f"Scripted({self.name!r})"

    async def complete(self, request: Request) -> Completion:
        """Send one request."""
        if self.is_recording:
            self.requests.append(request)
        await asyncio.sleep(0)  # Like any model, it yields to other tasks
        text = self._reply(request)
        if is_blank(text):
            raise ModelError(f"the reply of {self.name} is blank", kind="empty")
        return Completion(text, self.name)


class Rule(Struct, frozen=True, forbid_unknown_fields=True):
    """A prepared reply: the pattern it matches, its text, and the model that wrote it, if any."""

    match: str
    reply: str
    model: str = ""


def create(name: str, settings: ModelSettings) -> Scripted:
    """Create the model with the rules of the file `name`."""
    if not name:
        raise UsageError("scripted: needs a file of rules", help="for example scripted:rules.json")
    rules = read_rules(Path(name))
    patterns = []
    for number, rule in enumerate(rules):
        try:
            patterns.append(re.compile(rule.match, re.DOTALL))
        except re.error as error:
            raise DataError(f"rules: {number}.match: {error}", path=name, help=FORMAT) from None

    def reply(request: Request) -> str:
        prompt = request.prompt
        for pattern, rule in zip(patterns, rules, strict=True):
            if found := pattern.search(prompt):
                with suppress(re.error, IndexError):  # Its backslashes are no references to groups
                    return found.expand(rule.reply)
                return rule.reply
        raise ModelError(
            f"no rule of {name} matches the prompt",
            kind="bad_request",
            help=f"it begins: {prompt[:80]!r}",
        )

    return Scripted(
        reply,
        name=f"scripted:{name}",
        source=file_source(name),
        window=settings.window,
        is_recording=False,
    )


def read_rules(path: Path) -> list[Rule]:
    """Read the rules of a file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Rule])
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path=path) from None
    except msgspec.DecodeError as error:
        raise DataError(f"rules: {reason(error)}", path=path, help=FORMAT) from None


ABILITIES = Abilities("RULES.json")
