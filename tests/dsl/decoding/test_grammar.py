"""The grammars for decoders admit what the strict reader and the checker accept, and no more."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from pearl.actions.library import load_library
from pearl.actions.operators import with_operators
from pearl.dsl.checker import check, compile_plan
from pearl.dsl.decoding.constraint import to_gbnf, validate
from pearl.dsl.decoding.grammar import (
    MAX_COUNTED,
    MAX_NEW_NAME,
    MAX_WRITTEN_STEPS,
    header_grammar,
    indexed_grammar,
    names_except,
    static_grammar,
)
from pearl.dsl.nodes import CTX, Plan, print_plan
from pearl.dsl.parser import parse, read
from pearl.dsl.signatures import Action, ActionLibrary, Parameter, ValueType
from pearl.errors import LibraryError
from tests.dsl.sampling import (
    admits,
    admits_each,
    counted,
    gbnf_admits,
    lalr_admits,
    renamed,
    sentence,
    typed_libraries,
)
from tests.dsl.strategies import libraries, valid_plans
from tests.examples import examples, times

SEEDS = st.integers(0, 2**32)

SMALL = ActionLibrary(
    "small",
    [
        Action("FIND", (Parameter("CTX", ValueType.CONTEXT), Parameter("X"))),
        Action("FIND_ALL", (Parameter("CTX", ValueType.CONTEXT),)),
        Action("CONCAT", (Parameter("S1"), Parameter("S2")), is_variadic=True),
        Action("COUNT", (Parameter("ITEMS", ValueType.LIST),), returns=ValueType.NUMBER),
        Action("DOUBLE", (Parameter("N", ValueType.NUMBER),), returns=ValueType.NUMBER),
        Action("NOW", ()),
    ],
)

NONE = "New actions:\n- None\n\n"
ONE = "New actions:\n- NEW(CTX, X) : Do it\n\n"

# What each grammar says of a text: static, sketch, indexed, header.
PARITY = [
    ('1. v1 = FIND(CTX, "x") : a', "ynyn"),
    ('1. key = FIND(CTX, "x") : a', "ynnn"),
    (f"{NONE}1. v1 = NOW() : a", "yynn"),
    (f"{ONE}1. v1 = NEW(CTX) : a", "yynn"),
    (NONE, "nnny"),
    (ONE, "nnny"),
    ("New actions:\n- NEW(A, B, ...) : Do it\n\n1. a = NOW() : b", "yynn"),
    ("New actions:\n- FIND(CTX) : Do it\n\n", "nnnn"),
    ("New actions:\n- NEW(X, X) : Do it\n\n", "nnnn"),
    ("New actions:\n- NEW(X, Y, ...) : Do it\n\n", "nnny"),
    ("New actions:\n- NEW(CTX)\n\n", "nnnn"),
    ('1. v1 = FIND(CTX, "x") : a\n2. v2 = FIND(v1, [v1, 2, "z", CTX]) : b', "ynyn"),
    ('1. v1 = FIND(CTX, "x") : a\n2. v2 = FIND(v2, 3) : b', "ynnn"),
    ("1. n1 = COUNT([1, 2]) : a\n2. v1 = FIND(CTX, n1) : b", "ynnn"),  # nothing is there to count
    ("1. v1 = NOW() : a\n2. n1 = COUNT([1, 2]) : a\n3. v2 = FIND(CTX, n1) : b", "ynyn"),
    ("1. n1 = COUNT([1, 2]) : a\n2. v1 = FIND(n1, CTX) : b", "ynnn"),
    ("1. v1 = FIND_ALL(CTX) : a\n2. n1 = COUNT(v1) : b\n3. n2 = DOUBLE(n1) : c", "ynyn"),
    ("1. v1 = COUNT([]) : a", "ynnn"),
    ('1. n1 = COUNT("a") : a', "nnnn"),
    ("1. n1 = COUNT(CTX) : a", "ynnn"),
    ('1. v1 = CONCAT("a") : a', "ynyn"),
    ('1. v1 = CONCAT("a", 1, 2, []) : a', "ynyn"),
    ("1. v1 = CONCAT() : a", "nnnn"),
    ("1. v1 = FIND(CTX) : a", "nnnn"),
    ('1. v1 = FIND("x", CTX) : a', "nnnn"),
    ("1. v1 = FIND_A(CTX) : a", "ynnn"),
    ('1. v1 = FIND(CTX,"x") : a', "nnnn"),
    ("1. v1 = NOW(): a", "nnnn"),
    ("1. v1 = NOW() : ", "nnnn"),
    ("1. v1 = NOW()", "nnnn"),
    ("2. v1 = NOW() : a", "nnnn"),
    ("1. v1 = NOW() : a\n", "nnnn"),
    ("1. v1 = FIND(CTX, [[1]]) : a", "nnnn"),
    ("1. v1 = FIND(CTX, 1e5) : a", "nnnn"),
    ("1. v1 = FIND(CTX, -12.50) : a", "ynyn"),
    ('1. v1 = FIND(CTX, "a\\"\\\\\\n\\u00e9 é 🔑") : a : b', "ynyn"),
    ('1. v1 = FIND(CTX, "\\ud800") : a', "nnnn"),
    ('1. v1 = FIND(CTX, "\t") : a', "nnnn"),
    ("", "nnnn"),
]  # fmt: skip


@pytest.fixture(scope="module")
def grammars() -> list[str]:
    return [
        static_grammar(SMALL, max_steps=3),
        static_grammar(SMALL, requires_new=True, max_steps=3),
        indexed_grammar(SMALL, max_steps=3),
        header_grammar(SMALL),
    ]


@pytest.mark.parametrize(("text", "said"), PARITY)
def test_every_reader_says_the_same(grammars: list[str], text: str, said: str) -> None:
    assert "".join("ny"[admits(grammar, text)] for grammar in grammars) == said
    assert "".join("ny"[lalr_admits(grammar, text)] for grammar in grammars) == said
    assert "".join("ny"[gbnf_admits(to_gbnf(grammar), text)] for grammar in grammars) == said


def is_as_printed(text: str) -> bool:
    """Whether a text prints back as itself, but for how numbers and strings are spelled."""
    printed = print_plan(parse(text)).removeprefix("" if text.startswith("New") else NONE)
    return _evened(printed) == _evened(text)


def _evened(text: str) -> list[str]:
    literals = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9.]+')
    return [literals.sub("?", line.rstrip(" \u00a0")) for line in text.split("\n")]


@given(libraries(), SEEDS, st.booleans())
@examples(15)
def test_static_sentences_are_read(library: ActionLibrary, seed: int, requires_new: bool) -> None:
    grammar = static_grammar(library, requires_new=requires_new, max_steps=4, max_text=9)
    assert is_as_printed(sentence(grammar, seed))


@given(libraries() | typed_libraries(), SEEDS, st.booleans())
@examples(40)
def test_indexed_sentences_are_valid(library: ActionLibrary, seed: int, is_open: bool) -> None:
    named = parse("Parameters:\n- drug : a\n- year : b\n\n1. a = B(CTX) : c").parameters
    names = [each.name for each in named] if is_open else []
    try:
        grammar = indexed_grammar(library, max_steps=4, max_text=9, parameters=names)
    except LibraryError:
        assume(False)
    text = without_braces(sentence(grammar, seed))
    compile_plan(text, library, parameters=named if is_open else ())
    assert is_open or is_as_printed(text)


def test_every_reader_takes_parameters() -> None:
    grammar = indexed_grammar(SMALL, max_steps=2, parameters=["drug"])
    for text, said in (
        ("1. v1 = FIND(CTX, drug) : a", "y"),
        ('1. v1 = FIND(CTX, ["x", drug]) : a', "y"),
        ("1. v1 = FIND(drug, drug) : a", "n"),
        ("1. v1 = FIND(CTX, dru) : a", "n"),
        ("1. v1 = drug(CTX, drug) : a", "n"),
        ("1. drug = FIND(CTX, drug) : a", "n"),
    ):
        readers = admits(grammar, text), lalr_admits(grammar, text), gbnf_admits(to_gbnf(grammar), text)  # fmt: skip
        assert {"ny"[each] for each in readers} == {said}, text


@given(libraries(), SEEDS)
@examples(30)
def test_headers_are_read_and_leave_nothing_to_check(library: ActionLibrary, seed: int) -> None:
    header = sentence(header_grammar(library, max_text=9), seed)
    actions = read(header).actions
    assert (header == NONE) is (not actions)
    assert not {action.name for action in actions} & set(library)
    known = library.extended(actions)
    text = sentence(indexed_grammar(known, max_steps=2, max_text=9), seed)
    assert is_as_printed(header + text)
    found = check(parse(header + text), library) if len(known) > len(library) else None
    assert found is None or len(found.actions) >= len(library)


def without_braces(text: str) -> str:
    """A name in braces is no reference: the check refuses it in any string."""
    return text.replace("{", "(").replace("}", ")")


def compiled(text: str, library: ActionLibrary) -> None:
    """Check a sentence of a grammar."""
    compile_plan(without_braces(text), library)


@st.composite
def known_plans(draw: st.DrawFn) -> tuple[ActionLibrary, Plan]:
    """A library and a valid plan; new actions and outputs have names that decoders may make up."""
    library = draw(libraries())
    plan = draw(valid_plans(library))
    own = {action.name: f"OWN_{i}" for i, action in enumerate(plan.new_actions)}
    assume(not set(own.values()) & set(library))
    to = {step.output: f"out_{i}" for i, step in enumerate(plan.steps)} | {CTX: CTX}
    steps = tuple(
        replace(
            step,
            output=to[step.output],
            action=own.get(step.action, step.action),
            arguments=tuple(renamed(argument, to) for argument in step.arguments),
        )
        for step in plan.steps
    )
    declared = tuple(
        replace(
            action,
            name=own[action.name],
            parameters=tuple(
                p if p.name == CTX else replace(p, name=f"P{i}")
                for i, p in enumerate(action.parameters)
            ),
        )
        for action in plan.new_actions
    )
    return library, Plan(steps, declared)


@given(known_plans())
@examples(12)
def test_valid_plans_are_admitted(known: tuple[ActionLibrary, Plan]) -> None:
    library, plan = known
    check(plan, library)
    assert admits(static_grammar(library, max_steps=5), print_plan(plan))
    assert admits(static_grammar(library, requires_new=True, max_steps=5), print_plan(plan))
    own = library.extended(plan.new_actions)
    assert admits(indexed_grammar(own, max_steps=5), counted(plan, own))


def of(*actions: Action) -> ActionLibrary:
    return ActionLibrary("made", actions)


def taking(name: str, *types: ValueType, **more: object) -> Action:
    parameters = tuple(Parameter(f"P{i}", kind) for i, kind in enumerate(types))
    return Action(name, parameters, **more)  # type: ignore[arg-type]


TEXT = ValueType.TEXT


@pytest.mark.parametrize(
    "library",
    [
        of(*(taking(f"A{i}", *[TEXT] * (i % 4)) for i in range(times(4_000)))),
        of(taking("A"), taking("AB", TEXT), taking("ABC", TEXT, TEXT), taking("A_", TEXT)),
        of(taking("検索", TEXT), taking("clé", TEXT, TEXT), taking("कुंजी")),
        of(taking("JOIN", TEXT, is_variadic=True)),
        of(taking("JOIN", TEXT, TEXT, is_variadic=True)),
        of(Action("J", (Parameter("S1"), Parameter("S2")), "", True)),
        of(*(taking(f"NATIVE_{t.upper()}", t, returns=ValueType.NUMBER) for t in ValueType)),
        of(taking("A" * 80, TEXT), taking("B" * 80)),
        of(taking("CTX", ValueType.CONTEXT), taking("None"), taking("New", TEXT)),
        of(taking("v1", TEXT), taking("NAME", TEXT), taking("STRING"), taking("start", TEXT)),
        of(taking("LISTS", ValueType.LIST, returns=ValueType.LIST), taking("T", TEXT)),
        of(taking("LISTS", ValueType.LIST, returns=ValueType.LIST)),
    ],
    ids=lambda library: next(iter(library))[:20],
)
def test_odd_libraries(library: ActionLibrary) -> None:
    for grammar in (static_grammar(library), header_grammar(library)):
        validate(grammar)
    indexed = indexed_grammar(library, max_steps=4, max_text=9)
    validate(indexed)
    gbnf_admits(to_gbnf(indexed), "")
    for seed in range(3 if len(library) < 100 else 1):
        compile_plan(without_braces(sentence(indexed, seed)), library)
        assert is_as_printed(sentence(static_grammar(library, max_steps=2, max_text=9), seed))


@pytest.mark.parametrize("library", [of(), of(taking("T", ValueType.TABLE))])
def test_libraries_that_leave_nothing_to_call(library: ActionLibrary) -> None:
    with pytest.raises(LibraryError, match="no action of the library can begin a plan"):
        indexed_grammar(library)
    validate(static_grammar(library))
    validate(header_grammar(library))


def test_only_so_many_steps_and_outputs_of_a_kind() -> None:
    grammar = indexed_grammar(SMALL)
    lines = [f"{i}. v{i} = NOW() : a" for i in range(1, MAX_WRITTEN_STEPS + 2)]
    counts = [f"{i + 1}. n{i} = COUNT([]) : a" for i in range(1, MAX_COUNTED[0] + 2)]
    numbers = [lines[0], *counts]
    longest, too_long = "\n".join(lines[:-1]), "\n".join(lines)
    assert admits_each(grammar, [longest, too_long]) == [True, False]
    assert admits_each(grammar, ["\n".join(numbers[:-1]), "\n".join(numbers)]) == [True, False]


def test_texts_are_bounded() -> None:
    grammar = indexed_grammar(SMALL, max_text=3)
    texts = [
        f'1. v1 = FIND(CTX, "{a}") : {b}' for a, b in (("abc", "abc"), ("abcd", "a"), ("a", "abcd"))
    ]
    assert admits_each(grammar, texts) == [True, False, False]


@pytest.mark.parametrize("name", ["seed", "quality", "medical"])
def test_the_operators_leave_room_in_a_servers_grammar(name: str) -> None:
    """llama.cpp and hosted servers refuse, or take seconds over, much longer ones."""
    n_bytes = len(indexed_grammar(with_operators(load_library(name))).encode())
    assert n_bytes <= 40_000, "shorten the grammar, or make an action one of some domains only"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["seed", "quality", "medical"])
def test_sentences_under_the_shipped_libraries_are_valid(name: str) -> None:
    library = with_operators(load_library(name))
    grammar = indexed_grammar(library, max_text=30)
    for seed in range(256):
        compiled(sentence(grammar, seed), library)


WORDS = ["".join(letters) for n in range(1, 4) for letters in itertools.product("ab_", repeat=n)]
LONG = [*WORDS, *(f"{word}{'c' * n}" for word in WORDS for n in (37, 38, 39))]


@given(st.sets(st.sampled_from(LONG)))
def test_every_name_but_those_taken(taken: set[str]) -> None:
    pattern = re.compile(names_except(taken))
    spelled = {word for word in LONG if pattern.fullmatch(word)}
    assert spelled == {word for word in LONG if len(word) <= MAX_NEW_NAME} - taken
    assert not any(pattern.fullmatch(word) for word in ("", "9", "a-b", "é"))
