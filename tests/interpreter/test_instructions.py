"""Instructions in words: every action that a model carries out, with arguments of every kind."""

from __future__ import annotations

import re

import pytest

from pearl import plugins
from pearl.actions import by_row
from pearl.actions.library import library_names, load_library
from pearl.actions.operators import operators
from pearl.dsl.parser import parse_action
from pearl.dsl.signatures import CTX, ROWS, Action
from pearl.errors import Span
from pearl.interpreter.prompt import filled_in
from pearl.planner.examples import read_bank
from tests.root import ROOT

EXAMPLES = [e for folder in sorted((ROOT / "fewshot").iterdir()) for e in read_bank(folder)]
READ = [by_row._module(name).READING for name in plugins.names(by_row.__name__)]
ACTIONS = {
    action.signature: action
    for each in (
        *map(load_library, library_names()),
        operators(),
        {a.name: a for a in READ},
        *({a.name: a for a in example.plan.new_actions} for example in EXAMPLES),
    )
    for action in each.values()
    if not action.is_native
}
KINDS = ("Tobias crossing the river every night", "Why was the fuel pontoon moved?")
ASKED = ("QUESTION", "QUERY")


def names(action: Action) -> list[str]:
    """Parameters whose arguments an instruction shows."""
    return [p.name for p in action.parameters if p.name not in (CTX, ROWS)]


@pytest.mark.parametrize("text", KINDS)
@pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS)
def test_every_definition_is_a_sentence_with_any_argument(action: Action, text: str) -> None:
    others = [p.name for p in action.parameters if p.reads == "number"]
    arguments = [(name, "3" if name in others else text) for name in names(action)]
    said = filled_in(action, tuple(arguments))
    sentence = said.replace(f'"{text}"', "…")
    assert re.match(r"[A-Z][a-z]+ [^\n]*\.(\n|\Z)", said)
    assert not re.search(r"\b(CTX|ROWS|X|Y|[A-Z]{3,})\b", sentence.partition("\n")[0])
    texts = [name for name in names(action) if name not in others]
    assert sentence.count("…") >= len(texts)
    is_asked = said.startswith(f'Answer the question "{text}" f')
    assert is_asked or "\n" not in said  # other arguments of a question
    if texts and (action.reads_context or action.reads_rows):
        things = [n for n in texts if f'"{n}"' not in action.definition and n not in ASKED]
        assert is_asked == (text.endswith("?") and bool(things))


@pytest.mark.parametrize(
    ("declared", "arguments", "said"),
    [
        ("F(CTX, X) : Find X's X-rays in CTX (CTX-wide).", ['the "old" man'],
         "Find \"the 'old' man\"'s X-rays in the text (CTX-wide)."),
        ("F(CTX, X, Y) : Set X against Y", ["Y", "X in CTX"], 'Set "Y" against "X in CTX".'),
        ("FIND_IT(CTX, X) : Find the thing", ["a cat"], 'Find the thing.\n\nX: "a cat"'),
        ("F(CTX, X1, X2, ...) : Compare X1, X2 and all others", ["a", "b", "c", "d"],
         'Compare "a", "b" and all others.\n\nX4: "c"\n\nX5: "d"'),
        ("F(CTX, X1, X2, ...) : Compare X1, X2 and all others", ["a"], 'Compare "a", X2 and all others.'),
        ("F(X) : What is X?", ["a\n- b"], "What is X (below)?\n\nX:\n<input>\na\n- b\n</input>"),
        ("F(CTX, X) : Find X, or where X is", ["- a\n- b"],
         "Find X (below), or where X is.\n\nX:\n<input>\n- a\n- b\n</input>"),
        ("F(CTX, X, Y) : Find X in Y", ["Who left?", "2012"],
         'Answer the question "Who left?" from the text.\n\nY: "2012"'),
        ("F(CTX, X, Y) : Find X in Y", ["Who left?", "Who came？ "],
         'Answer the question "Who left?" from the text.\n\nY: "Who came？"'),
        ("F(CTX, QUESTION) : Say whether CTX answers QUESTION", ["Who left?"],
         'Say whether the text answers "Who left?".'),
        ('F(CTX, X) : Find words like "X" in CTX', ["Who left?"], 'Find words like "Who left?" in the text.'),
        ("F(X) : Rephrase X", ["Who left?"], 'Rephrase "Who left?".'),
        ("F(ROWS, X) : Name X of ROWS", ["Who left?"],
         'Answer the question "Who left?" for each of the items, on its own.'),
        ("F(CTX) : Describe CTX", [], "Describe the text."),
        ("F(CTX, X) : Find X", [""], 'Find "".'),
    ],
)  # fmt: skip
def test_definitions_of_any_library(declared: str, arguments: list[str], said: str) -> None:
    action = parse_action(declared, Span(0, len(declared)))
    assert isinstance(action, Action)
    first = len(action.parameters) - len(names(action))
    given = [(action.parameter(first + i).name, text) for i, text in enumerate(arguments)]
    assert filled_in(action, tuple(given)) == said
