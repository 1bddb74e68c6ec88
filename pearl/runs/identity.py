"""The identity of results: configuration, prompts, weights and software.

Headers of logs and banks hold a `RunConfig`; runs of the store and the keys of their rows hold the
`fingerprint`; nodes of a cluster compare their `version`.
"""

from __future__ import annotations

import platform
from dataclasses import fields, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, get_args

from pearl.actions import by_search
from pearl.actions.library import library_digest
from pearl.actions.operators import LOOKUP
from pearl.data.journal import Frozen
from pearl.data.samples import Turn
from pearl.documents.digest import digest, text_sha256
from pearl.dsl.nodes import print_plan
from pearl.dsl.signatures import ROWS, Action, ActionLibrary, Parameter, ValueType
from pearl.interpreter.prompt import (
    FORMS,
    action_messages,
    again_messages,
    choose_messages,
    combine_messages,
    items_messages,
)
from pearl.llm import ActionTask, ChooseTask, ItemsTask, Message, messages_digest
from pearl.llm.backends import address_of
from pearl.llm.messages import json_messages
from pearl.pipeline import Pearl
from pearl.planner.prompt import (
    plan_messages,
    repair_messages,
    short_plan_messages,
    steps_messages,
)
from pearl.planner.routing import decompose_messages
from pearl.planner.routing import repair_messages as parts_repair_messages
from pearl.planner.understanding import standalone_messages, unusable_messages
from pearl.plugins.version import __version__
from pearl.replies.items import ItemKind
from pearl.settings import Deciding
from pearl.tables.lookup import PROMPT_TEXTS

DECIDING = tuple(field.name for field in fields(Deciding))

KEYS = 3
"""Version of the keys under which rows are recorded; a run with others is not gone on with."""

SAMPLED_BYTES = 2**20
"""Read of each end of a model's file."""


class RunConfig(Frozen, Deciding):
    """The base of a header; a file whose header differs in one of these is not gone on with."""

    kind: str
    v: int
    pearl_version: str
    domain: str
    model: str
    library: str
    n_actions: int
    library_sha256: str
    bank: str
    n_examples: int
    bank_sha256: str = ""


def run_config(pearl: Pearl) -> dict[str, Any]:
    """The fields of a `RunConfig`, without `kind` and `v`, for the header that a file begins with."""
    bank = "\n".join(print_plan(example.plan) for example in pearl.material.examples)
    planned = pearl.planner.settings
    deciding = {
        name: pearl.settings.get(name, getattr(pearl.client.settings, name, None))
        for name in DECIDING
    }
    return {
        "pearl_version": __version__,
        "domain": pearl.domain_name,
        "model": pearl.client.name,
        "library": pearl.library.name,
        "n_actions": len(pearl.library),
        "library_sha256": library_digest(pearl.library),
        "bank": Path(pearl.material.bank).name,
        "n_examples": len(pearl.material.examples),
        "bank_sha256": text_sha256(bank),
        **deciding,
        # What is in force, where the setting leaves that to the model or to the domain.
        "ranker": pearl.ranker,
        "window": pearl.limits.window,
        "profile": pearl.material.profile.name,
        "route": planned.is_routed,
        "apart": pearl.limits.is_apart,
        "as_of": None if planned.as_of is None else planned.as_of.isoformat(),
        "fiscal_year_end": list(planned.fiscal_year_end),
    }


def fingerprint(pearl: Pearl) -> dict[str, object]:
    """Everything in a `Pearl` that determines its outcomes, as JSON data.

    The address of a server is left out, and so is where the file of a model lies: shards of one run
    may each have their own.
    """
    name = pearl.client.name.partition(":")[2]
    is_file = bool(name) and address_of(pearl.client.name) is None
    settings = pearl.client.settings
    drawn = {"seed": settings.seed, "temperature": settings.temperature}
    return {
        **run_config(pearl),
        **{name: value for name, value in drawn.items() if value is not None},
        "keys": KEYS,
        "prompts_sha256": prompts_sha256(),
        "weights": _weights(Path(name)) if is_file else "",
    }


def _weights(path: Path) -> str:
    """Identity of a model's file, or of the files of its folder.

    Of each its length and its ends, for it may be long; "" where there is none that can be read.
    """
    try:
        if path.is_dir():
            files = sorted(each for each in path.rglob("*") if each.is_file())
            return digest(f"{each.relative_to(path)} {_ends(each)}" for each in files).hex()
        return _ends(path)
    except OSError:
        return ""


def _ends(path: Path) -> str:
    n_bytes = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(SAMPLED_BYTES)
        file.seek(max(0, n_bytes - SAMPLED_BYTES))
        return digest([str(n_bytes), head, file.read()]).hex()


def version() -> str:
    """Versions that determine results: Python, pearl and its prompts."""
    python = ".".join(platform.python_version_tuple()[:2])
    return f"pearl {__version__} (prompts {prompts_sha256()[:8]}, Python {python})"


@cache
def prompts_sha256() -> str:
    """SHA-256 of all prompt texts in hexadecimal.

    Example:
        >>> len(prompts_sha256())
        64
    """
    find = Action("FIND", (Parameter("CTX", ValueType.CONTEXT), Parameter("X")), "Find X")
    task = ActionTask("a", find, (("X", "x"), ("Y", "y")), "text", "why", "what?", frozenset({"Y"}))
    each = Action("EACH", (Parameter.named(ROWS),), "Read each")
    search = by_search.known().values()
    turns = (Turn("who?", "she"),)
    called = ActionLibrary("all", [find, each, LOOKUP, *search])
    plan = plan_messages("what?", called, card="1 document", kind="table")
    prompts = (
        plan,
        short_plan_messages("what?", called, (), 3),
        repair_messages(plan, "1. a = FIND(CTX)", ()),
        steps_messages(plan, "New actions:\n- None"),
        json_messages(plan, "an object"),
        parts_repair_messages(decompose_messages("what?"), "no parts", ("wrong",)),
        unusable_messages(standalone_messages("what?", turns), "she", "why"),
        action_messages(task),
        *(action_messages(replace(task, gives=form)) for form in FORMS),
        *(again_messages(action_messages(task), "one", "why", form) for form in FORMS),
        combine_messages(task, ("one", "two")),
        *(
            items_messages(
                ItemsTask("a", find, (("X", "x"),), ("one",), kind, ("b",), 1, is_echoed=True)
            )
            for kind in get_args(ItemKind)
        ),
        *(
            choose_messages(ChooseTask("what?", ("a", "b"), document, answer, is_reasoned))
            for document, answer in (("text", None), (None, "x"))
            for is_reasoned in (False, True)
        ),
    )
    of_tables = [Message("user", text) for text in PROMPT_TEXTS]
    return messages_digest(chain(*prompts, of_tables))
