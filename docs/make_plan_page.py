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

N_FORMS = 12
"""Forms of one step that the page shows; diagnostics.toml has all."""
HEAD = """\
# Grammar and diagnostics

`make docs` makes this page from the [grammar](../grammars/plan.lark) and from what the checker says of the texts in
[diagnostics.toml](diagnostics.toml), which has a mended text for each. What plans mean: [the plan language](language.md).

## Grammar

In the notation of [Lark](https://lark-parser.readthedocs.io/en/stable/grammar.html). `plan` is what a model writes, `file` a
plan with its question, `library_action` a line of an action file. Long classes of letters are shortened to `…`.
"""
FORGIVEN = """\
## What is forgiven

The strict reader (`pearl check`, `pearl fmt`, `pearl execute`) takes exactly the grammar. Plans of models go through the tolerant reader, which
mends what can have one meaning only, and records it in the trace; `pearl check --fix` mends the same in files. Below each step are other ways
to write it:
"""
BEYOND = """\
Also mended: a call over several lines, two steps on a line, a call in a call (it becomes the step `ans_1`), [an output in a
string](#reference-in-string), headings that are missing, bold or repeated, code fences and text around the plan. Of several plans the last counts; if they differ, or the reply takes its plan back, the planner asks again (`unclear-plan`).

With the library and the other steps: a name that differs by case, underscores or, from five letters on, one letter; arguments with names of parameters
(`FIND(CTX, query="x")`); the document left out, or in quotes; `step2` for an output.

Not mended: what is written as in another language (`let ans = ...`, `ans := ...`, `ans: str = ...`, `-> ans`, `{ans}`, `f"x"`, `"a" + "b"`), a step without an output,
new actions below the steps, strings, lists and calls that are not closed, words without quotes, quotes inside a string, unknown escapes, outputs of two words, loops and conditions,
numbers such as `1e5`, a missing colon. Each is an error at its place, and the planner asks the model again.
"""
DIAGNOSTICS = f"""\
## Diagnostics

A diagnostic has a code, a line, a column and help; where `pearl check --fix FILE` mends it, the help names this command. All errors of a plan
are reported at once, and `pearl check --json` has them as data. A plan has at most {MAX_STEPS} steps. The examples use the library `seed`.
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
        yield from (f"    {form}" for form in forms[:N_FORMS])


def findings(entry: dict[str, Any]) -> Sequence[Diagnostic]:
    """What is found in the text of an entry, by whoever reads such a text."""
    text, reader = entry["broken"].lstrip("\n"), entry.get("read", "checker")
    if reader == "actions":
        return read_actions(text)[1]
    if reader == "planner":
        checked = compile_plan(text, LIBRARY)
        return *values_left(checked, entry.get("values", {})), *unread(checked), *repeated(checked)
    if reader == "reply":
        checked = compile_plan(read(text, tolerant=True).text, LIBRARY)
        return not_meant(text, checked, entry["question"])
    reading = read(text, tolerant=reader == "tolerant")
    found = diagnose(reading, LIBRARY, max_steps=entry.get("max_steps", MAX_STEPS))
    return [*reading.notes, *found]


def _section(code: str, found: Sequence[Diagnostic]) -> str:
    """A diagnostic: its meaning, and what is printed of a text that triggers it."""
    entry = ENTRIES[code]
    name = "mine.actions" if entry.get("read") == "actions" else "ans.plan"
    printed = render_diagnostics(found, entry["broken"], name)
    return f"### `{code}`\n\n{entry['means']}\n\n```text printed\n{printed}\n```\n"


def _grammar() -> str:
    """The grammar, without the classes that spell out the letters of Unicode."""
    path = find_data("grammars", "plan.lark")
    assert path is not None, "the grammar is part of the package"
    text = re.sub(r"(?:\\[uU][0-9a-f]+-?){20,}", "…", path.read_text(encoding="utf-8"))
    assert max(map(len, text.splitlines())) < 200
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
