"""Writes docs/plan_reference.md: the grammar of plans, and every diagnostic as the checker prints it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pearl.actions.library import load_library, read_actions
from pearl.actions.operators import with_operators
from pearl.dsl.binding import values_left
from pearl.dsl.checker import MAX_STEPS, compile_plan, diagnose
from pearl.dsl.nodes import print_step
from pearl.dsl.parser import read
from pearl.errors import Diagnostic, render_diagnostics
from pearl.planner.writer import not_meant, repeated, unread
from pearl.plugins.files import find_data

PAGE = Path(__file__).with_name("plan_reference.md")
ENTRIES: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("diagnostics.toml").read_text(encoding="utf-8")
)
LIBRARY = with_operators(load_library("seed"))

HEAD = """\
# Grammar and diagnostics

This page is made by `make docs` from the [grammar](../grammars/plan.lark) and from what the checker says of the texts in
[diagnostics.toml](diagnostics.toml). What plans mean: [the plan language](language.md).

## Grammar

In the notation of [Lark](https://lark-parser.readthedocs.io/en/stable/grammar.html). `plan` is what a model writes, `file` a
plan with its question, `library_action` a line of an action file. Long classes of letters are shortened to `…`.
"""
FORGIVEN = """\
## What is forgiven

The strict reader (`pearl check`, `pearl fmt`, `pearl execute`) takes exactly the grammar, with line breaks of any system. Plans of models go through the tolerant
reader, which mends what can have one meaning only, and records it in the trace; `pearl check --fix` mends the same in files. Below each step are other ways to write it:
"""
BEYOND = """\
A call over several lines is one step, two steps on a line are two, and a call in a call becomes a step, `ans_1`. A name that is given a value (`topic = "x"`) is
replaced by it. `"why " + who` is [an output in a string](#reference-in-string). Control characters in strings become escapes. New actions are
mended likewise; missing, bold, repeated or misplaced headings, `None` without a dash, blank lines, code fences, and text around the plan are put right. Of several plans
the last counts; if they differ, or the reply takes its plan back, the planner asks again (`unclear-plan`).

What only the library and the other steps can tell is mended by `pearl check --fix` and the planner: a name that differs by case, underscores or one letter; arguments with
names of parameters (`FIND(CTX, query="x")`); the document left out, or in quotes; `step2` or `#2` for an output.

Not mended: strings, lists and calls that are not closed, words without quotes, unknown escapes, outputs of two words, loops and conditions, numbers such as `1e5`, a missing colon.
"""
DIAGNOSTICS = f"""\
## Diagnostics

Every diagnostic has a code, a line, a column, and a line of help; where `pearl check --fix FILE` mends it, that line names
this command. All errors of a plan are reported at once; a
name that a broken line defines is not reported again where it is used. `pearl check --json` has them as data,
`pearl check --fix` mends what can be meant in one way only. A plan has at most {MAX_STEPS} steps. The examples are checked
against the library `seed`.
"""


def page() -> str:
    """The whole page."""
    found = {code: findings(entry) for code, entry in ENTRIES.items()}
    errors = [code for code in ENTRIES if found[code][0].severity == "error"]
    notes = [code for code in ENTRIES if code not in errors]
    return "\n".join(
        [
            HEAD,
            f"```lark\n{_grammar()}```\n",
            FORGIVEN,
            "```text example",
            *_forgiven(),
            "```\n",
            BEYOND,
            DIAGNOSTICS,
            *(_section(code, found[code]) for code in errors),
            "## Notes\n\nNotes never stop a plan.\n",
            *(_section(code, found[code]) for code in notes),
        ]
    )


def _forgiven() -> Iterator[str]:
    """Steps that the strict reader refuses, under what the tolerant one makes of them."""
    meant: dict[str, list[str]] = {}
    for written in ENTRIES["leniency"]["written"]:
        step = read(written, tolerant=True).plan.steps[0]
        meant.setdefault(print_step(step, 1), []).append(written)
    for step, forms in meant.items():
        yield step
        yield from (f"    {form}" for form in forms)


def findings(entry: dict[str, Any]) -> Sequence[Diagnostic]:
    """What is found in the text of an entry, by whoever reads such a text."""
    text, reader = entry["broken"].lstrip("\n"), entry.get("read", "checker")
    if reader == "actions":
        return read_actions(text)[1]
    if reader == "planner":
        checked = compile_plan(text, LIBRARY)
        return *values_left(checked, entry.get("values", {})), *unread(checked), *repeated(checked)
    if reader == "reply":
        return not_meant(
            text, compile_plan(read(text, tolerant=True).text, LIBRARY), entry["question"]
        )
    reading = read(text, tolerant=reader == "tolerant")
    found = diagnose(reading, LIBRARY, max_steps=entry.get("max_steps", MAX_STEPS))
    return [*reading.notes, *found]


def _section(code: str, found: Sequence[Diagnostic]) -> str:
    """A diagnostic: its meaning, a text that triggers it, what is printed, and the text mended."""
    entry = ENTRIES[code]
    text, kind = entry["broken"], "actions" if entry.get("read") == "actions" else "plan"
    name = "mine.actions" if kind == "actions" else "ans.plan"
    parts = [f"### `{code}`\n\n{entry['means']}\n"]
    parts.append(f"```{kind} broken\n{text}```\n")
    parts.append(f"```text printed\n{render_diagnostics(found, text, name)}\n```\n")
    if "mended" in entry:
        parts.append(f"Mended:\n\n```{kind}\n{entry['mended']}```\n")
    return "\n".join(parts)


def _grammar() -> str:
    """The grammar, without the classes that spell out the letters of Unicode."""
    path = find_data("grammars", "plan.lark")
    assert path is not None, "the grammar is part of the package"
    text = re.sub(r"(?:\\[uU][0-9a-f]+-?){20,}", "…", path.read_text(encoding="utf-8"))
    assert max(map(len, text.splitlines())) < 200
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
