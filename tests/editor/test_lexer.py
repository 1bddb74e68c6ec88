"""The Pygments lexer reads plans as lark does, token by token, and shows where a line goes wrong."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from pygments.token import (
    Comment,
    Error,
    Generic,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Whitespace,
    _TokenType,
)

from pearl.dsl.nodes import CTX
from pearl.editor.lexer import PlanLexer
from tests.dsl.sampling import GRAMMAR
from tests.dsl.strategies import plan_texts
from tests.root import ROOT

PLANS = sorted([*ROOT.glob("fewshot/*/*.plan"), *ROOT.glob("tests/plans/*.plan")])
LIBRARIES = sorted(ROOT.glob("actions/*.actions"))

TOKENS: dict[str, tuple[_TokenType, ...]] = {
    "NAME": (Name.Function, Name.Variable, Name.Builtin, Name.Variable.Instance),
    "TEXT": (Comment, String.Doc, Generic.Strong),
    "STRING": (String,),
    "NUMBER": (Number,),
    "GIVES": (Keyword.Type,),
    "_NUMBER_DOT": (Name.Label,),
    "_NO_ACTIONS": (Keyword.Constant,),
    "Question: ": (Keyword,),
    "New actions:": (Keyword,),
    " = ": (Operator,),
}
"""Terminal, or fixed text of the grammar, → what it may be; anything else is punctuation."""


def lexed(text: str) -> list[tuple[int, str, _TokenType]]:
    """The tokens of a text, without its line breaks."""
    found = PlanLexer().get_tokens_unprocessed(text)
    return [(at, value, token) for at, token, value in found if token is not Whitespace]


def by_lark(text: str, start: str = "file") -> Iterator[tuple[int, str, str]]:
    """Offset, text and terminal of everything that lark's own lexer reads."""
    parser = GRAMMAR.parse_interactive(text, start=start)
    for token in parser.iter_parse():
        if token.strip("\n"):
            assert token.start_pos is not None
            yield token.start_pos, token.rstrip("\n"), token.type


def agree(text: str, start: str = "file") -> None:
    ours, larks = lexed(text), list(by_lark(text, start))
    assert [each[:2] for each in ours] == [each[:2] for each in larks]
    for (_, value, token), (_, _, terminal) in zip(ours, larks, strict=True):
        assert token in TOKENS.get(terminal, TOKENS.get(value, (Punctuation,))), value


@pytest.mark.parametrize("path", PLANS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_plan_is_lexed_as_lark_does(path: Path) -> None:
    agree(path.read_text(encoding="utf-8"))


@given(plan_texts)
def test_any_plan_is_lexed_as_lark_does(text: str) -> None:
    agree(text)


@pytest.mark.parametrize("path", LIBRARIES, ids=lambda path: path.stem)
def test_an_action_file_is_lexed_as_lark_does(path: Path) -> None:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            assert [token for _, _, token in lexed(line)] == [Comment.Single]
        elif line:
            agree(line, "library_action")


def test_a_name_has_the_token_of_its_role() -> None:
    text = (
        '- LOOK(CTX, X) -> List : Look\n\n1. a = LOOK(CTX, "b") : c\n2. d = LOOK(a, [CTX, 3]) : e\n'
    )
    assert [(value, token) for _, value, token in lexed(text) if token in Name] == [
        ("LOOK", Name.Function),
        ("CTX", Name.Variable.Instance),
        ("X", Name.Variable.Instance),
        ("1. ", Name.Label),
        ("a", Name.Variable),
        ("LOOK", Name.Function),
        (CTX, Name.Builtin),
        ("2. ", Name.Label),
        ("d", Name.Variable),
        ("LOOK", Name.Function),
        ("a", Name.Variable),
        (CTX, Name.Builtin),
    ]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('1. a = FIND(CTX,  "b") : c\n2. d = FIND(a) : e\n', " "),
        ("1. a = FIND(CTX, ) : c", ")"),
        ('1. a = FIND("b) : c', '"'),
        ("Here is the plan:", " "),
        ("1.a = FIND(CTX) : c", "1"),
        ("- none", ""),
    ],
)
def test_the_first_error_of_a_line_is_marked_and_other_lines_do_not_change(
    text: str, wrong: str
) -> None:
    found = lexed(text)
    assert "".join(value for _, value, token in found if token is Error) == wrong
    first, *others = text.split("\n")
    below = [(value, token) for at, value, token in found if at > len(first)]
    assert below == [(value, token) for _, value, token in lexed("\n".join(others))]


def test_lexing_loses_no_character_and_ends_for_any_text() -> None:
    text = "".join(map(chr, range(0x20, 0x3000))) + "\n1. a" + "(" * 3_000 + '"' * 3_000
    found = PlanLexer().get_tokens_unprocessed(text)
    assert "".join(value for _, _, value in found) == text


def test_the_lexer_is_registered() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (name,) = project["entry-points"]["pygments.lexers"].values()
    assert name == f"{PlanLexer.__module__}:{PlanLexer.__name__}"
