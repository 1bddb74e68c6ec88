"""What a model says, read as a value, as nothing, or as undecided: never as what it is not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.dsl.decoding.constraint import require
from pearl.dsl.nodes import one_line
from pearl.dsl.signatures import NOTHING, ValueType
from pearl.replies.step_replies import (
    Reply,
    begun,
    form_text,
    read_reply,
    reply_constraint,
)
from tests.dsl.sampling import admits_each, grammar_of

LIST, NUMBER, BOOL, TEXT = ValueType.LIST, ValueType.NUMBER, ValueType.BOOL, ValueType.TEXT
KEYS = {TEXT: "answer", LIST: "entries", NUMBER: "value", BOOL: "verdict"}
SOURCE = "A dog barked at 5 dogs. A cat, aged 12 months, took 30 mg; about 40 came in 2010. No fever. They hissed."


def read(text: str, wanted: ValueType, **how: Any) -> Reply:
    return read_reply(text, wanted, source=SOURCE, **how)


# ---------------------------------------------------------------------------------------------
# The JSON form


@pytest.mark.parametrize(
    ("wanted", "said", "value", "quotes"),
    [
        (TEXT, {"answer": "It leaked.", "quotes": ["the hull"]}, "It leaked.", ("the hull",)),
        (TEXT, {"answer": 42, "quotes": "of 42"}, "42", ("of 42",)),
        (TEXT, {"Answer": "Late", "quote": "at nine"}, "Late", ("at nine",)),
        (TEXT, {"answer": "- a\n- b"}, "- a\n- b", ()),
        (LIST, {"entries": [{"entry": "a dog", "quote": "A dog"}, {"entry": "No fever"}]}, ["a dog", "No fever"], ("A dog",)),
        (LIST, {"entries": ["Rex, the dog", 3]}, ["Rex, the dog", "3"], ()),
        (LIST, {"entries": [{"entry": "$10"}, {"entry": "$10"}]}, ["$10", "$10"], ()),
        (NUMBER, {"value": "12 mg", "quotes": ["q\n3"]}, "12 mg", ("q 3",)),
        (NUMBER, {"value": -3.5}, "-3.5", ()),
        (NUMBER, {"value": "about 40"}, "about 40", ()),
        (NUMBER, {"value": "7 boats"}, "7 boats", ()),
        (BOOL, {"verdict": "Yes", "quotes": []}, True, ()),
        (BOOL, {"verdict": False}, False, ()),
    ],
)  # fmt: skip
@pytest.mark.parametrize("around", ["{}", "```json\n{}\n```", "Here it is:\n{}\nI hope it helps."])
def test_an_object_is_read_from_what_stands_around_it(
    wanted: ValueType, said: Any, value: object, quotes: tuple[str, ...], around: str
) -> None:
    text = around.replace("{}", json.dumps(said, indent=1))
    reply = read(text, wanted, given="How many boats?")
    assert (reply.state, reply.value, reply.quotes) == ("found", value, quotes)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (TEXT, {"answer": None, "quotes": []}), (TEXT, {"answer": "Not stated.", "quotes": []}),
        (LIST, {"entries": []}), (LIST, {"entries": None}), (NUMBER, {"value": None}),
        (BOOL, {"verdict": "not stated"}), (BOOL, {"verdict": None}),
    ],
)  # fmt: skip
def test_null_is_not_stated_also_beside_quotes(wanted: ValueType, said: Any) -> None:
    assert read(json.dumps(said), wanted).state == "nothing"
    if wanted is not LIST:
        reply = read(json.dumps({**said, "quotes": ["A dog"]}), wanted)
        assert (reply.state, reply.quotes) == ("nothing", ("A dog",))


@pytest.mark.parametrize("wanted", KEYS)
@pytest.mark.parametrize(
    "text",
    [
        '{"reply": "x"}', '{"KEY": "...", "quotes": []}', '{"KEY": " "}', '{"KEY": {"a": 1}}', '{"KEY": "yes", "KEY": "no"}',
        '{"KEY": "yes"} {"KEY": "no"}', '{"KEY": "12", "unit": "million"}', '{"KEY": "ye', '{"KEY": "12", "quotes": [1]}',
        '{"KEY": ["...", null]}', '{"KEY": [{}]}',
    ],
)  # fmt: skip
def test_an_object_of_another_form_is_asked_for_again(wanted: ValueType, text: str) -> None:
    reply = read(text.replace("KEY", KEYS[wanted]), wanted)
    assert reply.state == "undecided"
    assert str(reply.value) == f"undecided: {reply.why}"


@pytest.mark.parametrize(
    "value", ["1 or 2", "5 maybe", "3 or more", "10-20 mg", "twelve", "138 is wrong", "2x", "7 boats or so", "", "0" * 300]
)  # fmt: skip
def test_a_number_of_json_is_one_number_and_nothing_that_may_change_it(value: str) -> None:
    reply = read(json.dumps({"value": value}), NUMBER, given="How many boats?")
    assert reply.state == "undecided"


def test_an_entry_stands_once() -> None:
    assert read('{"entries": ["Rex", "Tom", "rex"]}', LIST).state == "undecided"
    assert read('{"entries": ["Rex", "Rexy"]}', LIST).value == ["Rex", "Rexy"]


def test_entries_of_numbers_are_numbers_of_one_unit() -> None:
    assert read('{"entries": ["3 mg", "4 mg"]}', LIST, is_of_numbers=True).state == "found"
    assert read('{"entries": ["3 mg", "a few"]}', LIST, is_of_numbers=True).state == "undecided"
    assert read('{"entries": ["3 mg", "$4"]}', LIST, is_of_numbers=True).state == "undecided"


def test_5_000_entries_and_long_quotes_are_read() -> None:
    entries = [{"entry": f"a{i}", "quote": "q" * 10_000 * (i == 0)} for i in range(5_000)]
    reply = read(json.dumps({"entries": entries}), LIST)
    assert isinstance(reply.value, list)
    assert (len(reply.value), len(reply.quotes[0])) == (5_000, 10_000)


# ---------------------------------------------------------------------------------------------
# The plain form


@pytest.mark.parametrize(
    ("wanted", "text", "value"),
    [
        (TEXT, "She was late.\n> She came at nine.", "She was late."),
        (TEXT, "> She came\n> at nine.", "She came\n\nat nine."),
        (LIST, "- a dog\n- **a cat**\n\n> A dog barked.", ["a dog", "a cat"]),
        (LIST, "```\n- a dog\n- a cat\n```", ["a dog", "a cat"]),
        (LIST, "- no fever", ["no fever"]),
        *((NUMBER, text, text) for text in (
            "12", "30 mg", "-12.4 percent", "$1,250", "12%", "about 40", "5.2 million", "5 Millionen", "$15m", ".5",
            "(1,315)", "minus 5", "12 animals", "5 dogs", "2010",
        )),
        (NUMBER, "**$138.0 million**", "$138.0 million"),
        (NUMBER, "```\n１\u200b２ mg\n```", "12 mg"),
        (BOOL, "**Yes**\n> q", True), (BOOL, "no.", False),
    ],
)  # fmt: skip
def test_plain_text_in_its_form_is_read(wanted: ValueType, text: str, value: object) -> None:
    reply = read(text, wanted, given="How many animals?")
    assert (reply.state, reply.value) == ("found", value)


@pytest.mark.parametrize("wanted", KEYS)
@pytest.mark.parametrize(
    "text", [NOTHING, "**Nothing found.**", "Nothing found: no dog.", "- Nothing found.", "None", "Not stated.", "N/A", f"{NOTHING}\n> q"]
)  # fmt: skip
def test_nothing_found_is_not_stated(text: str, wanted: ValueType) -> None:
    assert read(text, wanted).state == "nothing"


def test_a_text_below_nothing_found_is_a_text() -> None:
    assert read("Nothing found: no dog.\nA cat barked.", TEXT).state == "found"


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        *((LIST, text) for text in (
            "- No animals", "- a dog\n- a bear", "a dog\na cat", "- a dog\nThat is all.", "Dogs:\n- a dog", "- a dog, a cat",
            "- a dog\n  - a cat", "1. a dog\n2. a cat", "> A dog barked.", "- a dog\n- A dog", "- [animal 1]", "- END", "- - a dog",
            "- a dog\n- Total: 1", "Nothing found, but three dogs bark.",
        )),
        *((NUMBER, text) for text in (
            "- 5", "1. 5", "10-20 mg", "not 12", "twelve", "12\n13", "3 at most", "10²", "12.500 EUR", "48,2", "~30", "1st",
            "429 Too Many Requests", "In 2021", "The dose is 12 mg.", "1," * 50_000 + "?",
        )),
        *((BOOL, text) for text in (
            "Perhaps.", "Yes and no", "Yes, but only once", "No, he left", "yes\nno", "Not yes", "1", "Yes?",
        )),
    ],
)  # fmt: skip
def test_other_text_is_asked_for_again(wanted: ValueType, text: str) -> None:
    assert read(text, wanted).state == "undecided"


# ---------------------------------------------------------------------------------------------
# Properties

WORDS = st.text('abc "\\\n>-é', min_size=1).map(lambda word: f"x{word}x")


@given(text=st.text(), wanted=st.sampled_from(ValueType))
def test_any_reply_is_read(text: str, wanted: ValueType) -> None:
    for said in (text, json.dumps({KEYS.get(wanted, "answer"): text})):
        reply = read_reply(said, wanted, source="")
        assert (reply.state == "undecided") == bool(reply.why)
        if reply.state == "found" and wanted is LIST:
            assert isinstance(reply.value, list)
            assert all(entry.strip() for entry in reply.value)


@given(
    values=st.lists(WORDS, min_size=1, unique_by=lambda w: " ".join(w.split()).casefold()),
    quotes=st.lists(WORDS),
)
def test_what_is_written_in_the_form_is_read_back(values: list[str], quotes: list[str]) -> None:
    flat = [one_line(quote) for quote in quotes]
    answer = json.dumps({"answer": values[0], "quotes": quotes})
    assert read(answer, TEXT) == Reply("found", values[0].strip(), tuple(flat))
    assert read(answer, TEXT).plain.split("\n> ")[1:] == flat
    entries = read(json.dumps({"entries": [{"entry": v, "quote": "q"} for v in values]}), LIST)
    assert entries.value == [one_line(value) for value in values]


@pytest.mark.parametrize("wanted", KEYS)
@pytest.mark.parametrize("max_text", [None, 50])
def test_decoders_are_held_to_what_is_read(wanted: ValueType, max_text: int | None) -> None:
    constraint = reply_constraint(wanted, max_text)
    admitted: dict[ValueType, list[str]] = {
        TEXT: ['{"answer": "a \\"dog\\"", "quote": ["q", "r"]}', '{"answer": null, "quote": []}'],
        LIST: ['{"entries": ["a dog", "b"], "quotes": ["q", ""]}', '{"entries": [], "quotes": []}'],
        NUMBER: ['{"value": "12 mg", "quote": "q"}', '{"value": null, "quote": []}'],
        BOOL: ['{"quote": "q", "verdict": "no"}', '{"quote": [], "verdict": "not stated"}'],
    }  # fmt: skip
    assert constraint.json_form is not None
    for text in admitted[wanted]:
        require(json.loads(text), constraint.json_form.schema)
        assert read(text, wanted).state in ("found", "nothing")
        assert read(text, wanted).is_formed
        assert json.loads(constraint.json_form.text_of(json.loads(text))) == json.loads(text)
    refused = ["a dog", '{"answer": 1, "quote": []}', '{"quote": [], "verdict": "maybe"}', NOTHING, "{}"]  # fmt: skip
    compact = [json.dumps(json.loads(text), separators=(",", ":")) for text in admitted[wanted]]
    assert all(admits_each(grammar_of(constraint), compact))
    assert not any(admits_each(grammar_of(constraint), refused))
    assert f'"{KEYS[wanted]}"' in form_text(wanted)
    for said in ({}, [], {"x": 1}):
        with pytest.raises(ValueError, match=r"\w"):
            constraint.json_form.text_of(said)


@pytest.mark.parametrize(
    ("wanted", "text", "kept"),
    [
        (TEXT, '{"answer": "He fled. She st', "He fled. She st"),
        (TEXT, '{"answer": "A \\"dog\\" \\u00', 'A "dog"'),
        (LIST, '{"entries": [{"entry": "a", "quote": "b"}, {"entry": "c', "- a\n> b"),
        (LIST, '{"entries": [{"ent', ""), (TEXT, "He fled", "He fled"),
        (TEXT, "He {once} fled {and", "He {once} fled {and"),  # it does not begin as JSON
        (TEXT, '```json\n{"answer": "He fled. She st', "He fled. She st"),
        (LIST, '{"entries": ["a", "b \\"q\\" c", "d', '- a\n- b "q" c'),
        (LIST, '{"entries": ["a", "b"], "quotes": ["x", "y', "- a\n- b\n> x"),
        (LIST, 'Here:\n{"entries": ["a", "b', "- a"), (LIST, 'Here:\n{"entries": ["a', ""),
        (LIST, '{"entries": [], "quo', ""), (LIST, '["a", "b', '["a", "b'),
        (TEXT, 'Here:\n{"answer": "He fled. She st', "He fled. She st"), (TEXT, 'Here:\n{"ans', ""),
        (TEXT, '{"Answer": "He fled.", "quote": "He fl', "He fled."),
        (TEXT, 'Of {"a": 1}. He', 'Of {"a": 1}. He'), (TEXT, '{"answer": null, "quo', ""),
        (NUMBER, '{"value": "138", "unit": "mil', ""), (NUMBER, '{"value": "138 or', ""),
        (BOOL, '{"quote": "He fled", "verd', ""), (BOOL, '{"quote": "He fl', ""),
    ],
)  # fmt: skip
def test_the_beginning_of_a_reply_is_kept(wanted: ValueType, text: str, kept: str) -> None:
    assert read(begun(text, wanted, str), wanted).plain == kept


@pytest.mark.parametrize("wanted", KEYS)
@pytest.mark.parametrize("unit", ["\n", "\\(", "_", "$", " ", "<think>", "{", '{"a": ', "["])
def test_a_reply_of_marks_takes_linear_time(unit: str, wanted: ValueType) -> None:
    for start in ("", "- ", "The text ", '{"answer": "'):
        assert read(f"{start}{unit * 20_000}x", wanted).state in ("found", "undecided", "nothing")
