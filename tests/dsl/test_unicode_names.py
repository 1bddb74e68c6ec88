"""Names of any script: what one is (UAX #31), when two are one, and which look alike (UTS #39)."""

from __future__ import annotations

import unicodedata

import pytest

from pearl.dsl.checker import compile_plan, diagnose
from pearl.dsl.decoding.constraint import to_gbnf
from pearl.dsl.decoding.grammar import static_grammar
from pearl.dsl.literals import terminal
from pearl.dsl.nodes import print_plan
from pearl.dsl.parser import parse, parse_action, read
from pearl.dsl.signatures import Action, ActionLibrary, Parameter, ValueType
from pearl.errors import PlanSyntaxError
from tests.dsl.sampling import accepts, admits, gbnf_admits, lalr_admits

LIBRARY = ActionLibrary(
    "mine", [Action("FIND", (Parameter("CTX", ValueType.CONTEXT), Parameter("X")))]
)

IGNORABLE = frozenset(
    code
    for first, last in (
        (0x34F, 0x34F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x3164, 0x3164),
        (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0100, 0xE01EF),
    )
    for code in range(first, last + 1)
)  # fmt: skip
"""Default_Ignorable_Code_Point among the letters, digits and marks: what nobody sees."""


def test_a_name_is_an_identifier_of_unicode_without_what_is_not_seen() -> None:
    name = terminal("NAME")
    # Unicode keeps what is an identifier: later versions only have more of them.
    is_exact = unicodedata.unidata_version == "14.0.0"
    for code in (*range(0xD800), *range(0xE000, 0x34000), *range(0xE0000, 0xE1000)):
        for text in (chr(code), f"a{chr(code)}"):
            wanted = text.isidentifier() and code not in IGNORABLE
            found = name.fullmatch(text) is not None
            if found != wanted:
                assert wanted, f"U+{code:04X}"
                assert not is_exact, f"U+{code:04X}"


def step(name: str) -> str:
    return f'1. {name} = FIND(CTX, "x") : a'


@pytest.fixture(scope="module")
def static() -> str:
    return static_grammar(LIBRARY, max_steps=1)


NAMES = [
    "clé", "clé", "कुंजी", "مفتاح", "กุญแจ", "ຊອກຫາ", "ᓄᓇᕗᑦ", "ꓮꓯ", "ⴰⴱ", "Ａ１", "𐐀𐑌", "𠮷野", "a١",
    "_", "a·",
]  # fmt: skip

NO_NAMES = [
    "\u0301a",  # a mark needs a letter
    # not seen: a blank, joiners, variation selectors, soft hyphens, what turns the line round
    "a\u200bb", "a\u200db", "a\ufe0f", "a\u034f", "\u3164", "\u115fa", "a\u00adb", "a\u202eb",
    "·a", "a÷b", "٣", "a²", "a🔑",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES + NO_NAMES)
def test_every_reader_agrees_and_decoders_write_ascii(static: str, name: str) -> None:
    text, is_one = step(name), name in NAMES
    assert accepts(text, "step") is is_one
    for is_admitted in (admits, lalr_admits, lambda g, text: gbnf_admits(to_gbnf(g), text)):
        assert is_admitted(static, text) is (is_one and name.isascii())
    assert (not read(text).errors) is is_one
    assert (parse_action(f"{name}(CTX) : a").__class__ is Action) is is_one


def test_a_name_is_one_however_its_accents_are_typed() -> None:
    typed = "\n".join(
        [
            "New actions:\n- CLE\u0301(CTX, X\u0301) : Find it\n",
            '1. cle\u0301 = CL\u00c9(CTX, "cle\u0301") : a',
            "2. ans = FIND(cl\u00e9, [cle\u0301]) : b",
        ]
    )
    checked = compile_plan(typed, LIBRARY)
    assert not checked.notes
    assert checked.outputs == ("ans",)
    printed = str(checked)
    assert parse(printed) == parse(typed)
    assert printed.count("cl\u00e9") == 3
    assert '"cle\u0301"' in printed  # what is quoted stays as it is


def test_a_name_is_measured_as_it_is_kept() -> None:
    grows = "\u0958"  # two characters in form C
    assert parse(step(grows * 40)) == parse(print_plan(parse(step(grows * 40))))
    for text in (step(grows * 41), f"New actions:\n- {grows * 41}(CTX) : a\n\n{step('a')}"):
        with pytest.raises(PlanSyntaxError) as caught:
            parse(text)
        assert "a name has at most 80 characters" in str(caught.value)


def notes(text: str) -> list[tuple[str, str, str | None]]:
    found = compile_plan(text, LIBRARY).notes
    assert all(note.severity == "note" for note in found)
    return [
        (text[note.span.start : note.span.end], note.message, note.help)
        for note in found
        if note.code == "confusable-name"
    ]


def test_names_that_look_alike_are_noted_once() -> None:
    assert not notes('1. find = FIND(CTX, "x") : a\n2. FIND = FIND(CTX, find) : b')
    text = (
        'New actions:\n- F\u0406ND(CTX, X) : Find\n\n1. payer = F\u0406ND(CTX, "x") : a\n'
        '2. p\u0430yer = FIND(CTX, "x") : b\n3. ans = FIND(p\u0430yer, payer) : c'
    )
    assert notes(text) == [
        (
            "F\u0406ND",
            "'F\u0406ND' looks like 'FIND' but is a different name",
            "it has CYRILLIC CAPITAL LETTER BYELORUSSIAN-UKRAINIAN I",
        ),
        (
            "p\u0430yer",
            "'p\u0430yer' looks like 'payer' but is a different name",
            "it has CYRILLIC SMALL LETTER A",
        ),
    ]


def test_a_look_alike_of_the_document_is_told_beside_the_error() -> None:
    text = '1. ans = FIND(\u0421TX, "x") : a'
    found = diagnose(read(text), LIBRARY)
    assert [diagnostic.code for diagnostic in found] == ["confusable-name", "undefined-name"]
    assert found[0].message == "'\u0421TX' looks like 'CTX' but is a different name"
