"""What a model says, read as a value, as nothing, or as undecided: never as what it is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.dsl.decoding.constraint import validate
from pearl.dsl.signatures import NOTHING, ValueType
from pearl.replies.typed import follows_form, read_reply, reply_constraint
from tests.dsl.sampling import admits_each

LIST, NUMBER, BOOL, TEXT = ValueType.LIST, ValueType.NUMBER, ValueType.BOOL, ValueType.TEXT


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("- a dog\n- a cat", ["a dog", "a cat"]),
        ("- a dog\n- a cat\n\n> The dog barked.\n> The cat hissed.", ["a dog", "a cat"]),
        ("1. a dog\n2) a cat\n(3) a cow", ["a dog", "a cat", "a cow"]),
        ("* a dog\n• a cat\n– a cow", ["a dog", "a cat", "a cow"]),
        ("Here are the animals:\n\n- a dog\n- a cat", ["a dog", "a cat"]),
        ("- a dog\n  that barks\n- a cat", ["a dog that barks", "a cat"]),
        ("```\n- a dog\n- a cat\n```", ["a dog", "a cat"]),
        ("a dog\na cat\n\n> The dog saw the cat.", ["a dog", "a cat"]),
        ("Animals:\na dog\na cat", ["a dog", "a cat"]),
        ("a dog; a cat", ["a dog", "a cat"]),
        ("a dog\n> The farm had a dog.", ["a dog"]),
        ("- The dog bit the postman.", ["The dog bit the postman."]),
        ("- 30 mg\n- 40 mg\n> 30 mg in the morning\n> 40 mg at night", ["30 mg", "40 mg"]),
        ("-\n- a dog", ["a dog"]),
        ('["Rex", "Fido"]', ["Rex", "Fido"]),
        ('```json\n{\n"dogs": [\n"Rex",\n"Fido"\n]\n}\n```', ["Rex", "Fido"]),
        ("[30, 4.50]", ["30", "4.50"]),
        ('Here is the list:\n\n["Rex", "Fido"]', ["Rex", "Fido"]),
        ("I looked for dogs.\n\n- Rex\n- Fido", ["Rex", "Fido"]),
        ("Here are the 2 dogs:\n\n1. Rex\n2. Fido\n\nTotal: two", ["Rex", "Fido"]),
        ("## Dogs in 2010\n- Rex\n\n- Fido\n\nThese are the dogs of the text.", ["Rex", "Fido"]),
        ("- **Rex** – a dog\n- **Tom**: a cat", ["Rex – a dog", "Tom: a cat"]),
        ("- Rex - a dog\n- Tom - a cat", ["Rex - a dog", "Tom - a cat"]),
        ("- $10\n- $10\n- USD 5", ["$10", "$10", "USD 5"]),
        ("- 5 mg", ["5 mg"]),
    ],
)  # fmt: skip
def test_entries_are_read_and_quotes_are_none(text: str, entries: list[str]) -> None:
    reply = read_reply(text, LIST)
    assert (reply.state, reply.value) == ("found", entries)


@pytest.mark.parametrize("wanted", [LIST, NUMBER, BOOL])
@pytest.mark.parametrize(
    "text",
    [
        NOTHING, "nothing found", "**Nothing found.**", "Nothing found: there is no animal.",
        "Nothing was found.", "None", "none.", "- None", "(none)", "[]", "N/A", "Not mentioned.",
        f"{NOTHING}\n> The barn stood empty.",
    ],
)  # fmt: skip
def test_nothing_found_is_no_entry(text: str, wanted: ValueType) -> None:
    reply = read_reply(text, wanted)
    assert (reply.state, reply.value) == ("nothing", [])


@pytest.mark.parametrize(
    "text",
    [
        "There is no mention of animals",
        "- There is no mention of animals",
        "- No animals are mentioned",
        "- No animals",
        "- Keine Tiere",
        "- Aucun animal n'est mentionné",
        "- No se mencionan animales",
        "- 没有动物",
        "- なし",
        "Keine Tiere",
        "No animals",
        "a dog and a cat",
        "The farm has a dog and a cat.",
        "I found two: a dog and a cat",
        "Sure! a dog",
        "- a dog\n- No cats are mentioned",
        "- a dog\n- Nothing found.",
        "- a dog\nThat is the only one.",
        "I looked for animals.\n- a dog",
        "- animals\n  - a dog\n  - a cat",
        "> The dog barked.\n> The cat hissed.",
        "The dog barked.\nThe cat hissed.",
        "- No fever\n- No cough",
        "Nothing found its way into the barn",
        "Nothing found, but three dogs bark.",
        "Nothing found. However, two dogs: Rex and Fido.",
        '{"dogs": ["Rex"], "cats": ["Tom"]}',
        '{"dogs": {"first": "Rex", "age": "3"}}',
        '["Rex", null]',
        '["Rex"]\n["Fido"]',
        '["Rex", "..."]',
        "[1] The dog barked.",
        "Here are the three dogs:\nRex\nFido",
        "- \n- ",
        "- [end of list]",
        "- Rex\n- </s>",
        "- Rex\n- END",
        "- [animal 1]\n- [animal 2]",
        "- <animal>",
        "- [ ] Rex\n- [x] Fido",
        "- [ERROR] upstream timeout",
        "- Rex\n- Error: rate limit exceeded",
        "- Rex\n- Source: the document",
        "- Note: only dogs that bark\n- Rex",
        "- First, I read the text.\n- Rex",
        "- (implied) Rex",
        "- possibly a dog",
        "- Rex (inferred)\n- Fido",
        "- Rex\n- Fido?",
        "- Rex\n- ditto",
        "- Rex\n- see above",
        "- Rex\n- unknown",
        "- Rex\n- several others",
        "- Rex\n- rate limit exceeded",
        "- Rex\n- Fido (already listed)",
        "- a dog\n- the dog",
        "- Rex\n- Fido\n- 2",
        "1. Rex\n3. Fido",
        "1. Rex\n2.\n3. Fido",
        "- Rex → Fido",
        "- Rex\n- Fido\n\nAnd Tom.",
        "- Rex ✓\n- Tom ✗",
        "- Rex\n- Fido\n- rex",
        "- **Rex**: at night\n- **Rex**: by day",
        "- Rex\n- Fido\n\n- Rex\n- Fido",
        "- Rex: no",
        "- Rex: yes\n- Tom: not mentioned",
        "- Rex - Fido",
        "- Rex - Fido\n- Tom",
        "- Rex, Fido and Tom",
        "- 2 dogs",
        "- Rex\n- Fido\n- two dogs",
        "- Rex\n- Fido\n\nThere may be others.",
        "- Rex\n- Fido\n\nTotal: 3",
        "Here are the three dogs:\n- Rex\n- Fido",
        "Here are some of the dogs:\n- Rex",
        "- Rex\n\nFido",
        "No dogs are named:\n- Rex",
        "Dogs:\n- Rex\n\nCats:\n- Tom",
        "<ul>\n<li>Rex</li>\n</ul>",
        "# Dogs\nRex\nFido",
        "Dogs found\nRex\nFido",
        "Dogs\n  Rex\n  Fido",
        "Rex\nFido\nTotal\n2",
        "- Rex\n- Fido\n- Total: 2",
        "- 100 EUR\n- 200 EUR\n- 300 EUR in total",
        "- Rex\n- and 3 others",
        "- Rex\n- 3 more",
        "- Rex\n- ...",
        "- Rex\n- etc.",
        "- Dogs:\n- Rex\n- Fido",
        "1. Dogs\n- Rex\n- Fido\n2. Cats\n- Tom",
        "- Dogs\n - Rex\n - Fido",
        "▪ Dogs\n  ◦ Rex\n  ◦ Fido",
        "- Rex, Fido, Tom",
        "- Rex; Fido",
        "1) Rex 2) Fido",
        "-5 mg\n-3 mg",
        "Rex\nor Fido",
        "Rex\n\nFido\n\nSo there are two",
        "- Here are the dogs\n- Rex",
        "- Rex\n- That is all",
        "- ?",
        "- tidak ada",
        "- लागू नहीं",
        "- لا شيء",
    ],
)
def test_what_may_be_no_entry_is_undecided(text: str) -> None:
    reply = read_reply(text, LIST, source="There was no dog.")
    assert reply.state == "undecided"
    assert str(reply.value).startswith("undecided: the reply cannot be read as a list: ")
    assert reply.why in str(reply.value)


def test_names_in_one_line_are_one_entry_only_in_quotation_marks() -> None:
    source = "They were Rex, Fido and Tom."
    assert read_reply("Rex, Fido and Tom", LIST, source=source).state == "undecided"
    assert read_reply("- Rex, Fido", LIST, source=source).state == "undecided"
    assert read_reply("- Rex, the dog", LIST, is_second=True).state == "undecided"
    assert read_reply('- "Rex, the dog"', LIST).value == ["Rex, the dog"]


@pytest.mark.parametrize("entry", ["Na", "Total Recall", "And Then There Were None", "5 m²"])
def test_what_only_looks_like_a_remark_is_an_entry(entry: str) -> None:
    assert read_reply(f"- {entry}\n- a dog", LIST, is_second=True).value == [entry, "a dog"]


def test_a_line_alone_is_an_entry_where_it_stands_in_what_was_shown() -> None:
    assert read_reply("Rex the dog", LIST, source="They called\nrex  the Dog.").value == [
        "Rex the dog"
    ]
    assert read_reply("Rex the dog", LIST, source="They called him Rex.").state == "undecided"


def test_a_doubtful_entry_is_one_where_the_text_says_the_same() -> None:
    for entry in ("No smoking", "Possible fractures", "Note: wash your hands", "Fever: none"):
        assert read_reply(f"- {entry}\n- a dog", LIST).state == "undecided"
        source = f"Findings. {entry}. The end."
        assert read_reply(f"- {entry}\n- a dog", LIST, source=source).value == [entry, "a dog"]


def test_a_part_of_a_word_is_not_what_the_text_says() -> None:
    assert read_reply("- yes\n- a dog", LIST, source="Its eyes shone.").state == "undecided"


def test_a_line_of_more_than_twelve_words_is_a_sentence() -> None:
    words = [
        "the",
        "old",
        "dog",
        "that",
        "Ada",
        "bought",
        "in",
        "the",
        "town",
        "last",
        "year",
        "when",
        "young",
    ]
    assert len(words) == 13
    assert read_reply("a cat\n" + " ".join(words[:12]), LIST).state == "found"
    assert read_reply("a cat\n" + " ".join(words), LIST).state == "undecided"


def test_denials_that_were_asked_for_are_entries_when_what_is_counted_was_said() -> None:
    assert read_reply("- No fever\n- No cough", LIST, is_second=True).value == [
        "No fever",
        "No cough",
    ]
    assert read_reply("- No fever", LIST, is_second=True).state == "undecided"
    assert (
        read_reply("- No fever is mentioned\n- No cough", LIST, is_second=True).state == "undecided"
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((text, text) for text in (
            "12", "12 mg", "-12.4 percent", "$1,250", "12%", "about 12", "5.2 million", "5 Millionen", "$15m", ".5",
            "(1,315)", "minus 5", "138.0 (in millions)", "12 animals",
        )),
        ("12 mg\n\n> q 3", "12 mg"),
        ("**$138.0 million**", "$138.0 million"),
        ("```\n１\u200b２ mg\n```", "12 mg"),
        ('{"value": 138}', "138"),
        (r"\boxed{42}", "42"),
        ("Here is the number:\n\n12.", "12"),
        ("Answer: **12**", "12"),
        ("The dose is 12 mg.", "12 mg"),
        ("There are 12 animals mentioned in the text.", "12 animals"),
        ("A total of 12 animals", "12 animals"),
        ("RSU expense for 2010: **$138 million**", "$138 million"),
        ("The RSU expense for 2010 was $138.0 million.", "$138.0 million"),
        ("For the year ended December 31, 2010, the expense was $138.0 million.", "$138.0 million"),
        ("$138.0 million in 2010", "$138.0 million"),
    ],
)  # fmt: skip
def test_a_number_is_kept_with_its_unit_and_scale(text: str, value: str) -> None:
    reply = read_reply(text, NUMBER)
    assert (reply.state, reply.value) == ("found", value)


@pytest.mark.parametrize(
    "text",
    [
        "- 5", "- 138.0", "– 5", "1. 5", "10-20 mg", "1 or 2", "not 12", "twelve", "12\n13", "> 12", "3 or four",
        "3 or more", "3 at most", "2⅓", "10²", "2 dozen", "2 and a half", "20 minus five", "3百", "12.500 EUR", "1.200",
        "12 000", "48,2", "5 ?", "5 maybe", "<20", "~30", "~ 12 mg a day", "1st", "5th", "12-15", "5+", "5k", "Q$5",
        "429 Too Many Requests", "error code: 500", '{"status": 429}', "prior year: 138",
        "$138 million decrease", "138 (negative)", "$138 -", "+-138", "138…", "0138", "2x", "138ish", "138 is wrong",
        "503 Service Unavailable", "In 2021", "Chapter 5", "COVID-19", "(3)", "$5%",
        "It fell by $12 million.", "The change was a decrease of $12 million.", "The number is probably 5.",
        "The expense was $138 million higher than in 2009.", "He paid 5 in May, not in June", "I cannot tell. 5",
        '{"low": 5, "high": 6}',
    ],
)  # fmt: skip
def test_what_may_be_another_number_is_undecided(text: str) -> None:
    reply = read_reply(text, NUMBER)
    assert reply.state == "undecided"
    assert read_reply(text, NUMBER, is_second=True).state == "undecided"


def test_a_year_alone_is_a_number_when_it_is_repeated() -> None:
    assert read_reply("2021", NUMBER).state == "undecided"
    assert read_reply("2021", NUMBER, is_second=True).value == "2021"
    assert read_reply("2021 boats", NUMBER).value == "2021 boats"
    assert read_reply("$2021", NUMBER).value == "$2021"


def test_a_long_reply_is_no_number_at_once() -> None:
    assert read_reply("1," * 500_000 + "?", NUMBER).state == "undecided", "quadratic: years"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Yes.", True), ("no", False), ("**Yes**\n> q", True), ('"yes"', True), ('{"answer": "yes"}', True),
        ('{"answer": false}', False), ("Answer: Yes", True), ("The answer is **no**.", False), ("TRUE", True),
        ("Yes, because he said so", True), ("No, he did not come.", False), ("Yes\n\nHe says it on page 3.", True),
        ("Yes: the letter names him.", True),
    ],
)  # fmt: skip
def test_yes_and_no(text: str, value: bool) -> None:
    assert read_reply(text, BOOL).value is value


@pytest.mark.parametrize(
    "text",
    [
        "Perhaps.", "Yes and no", "Yes or no", "Yes, but only once", "Yes, partly.", "Yes, initially; later he refused",
        "Yes, he failed to", "Yes, it is claimed", "Yes, I can help with that.", "No, he left at dawn",
        "No, the text does not mention it.", "yes-ish", "Yes, unless he lied.",
        "Yes, he did not come.", "No, yes", "No. Wait, he did.", "Yes?", "Yes (implied)", "Not yes", "Yesterday", "1",
        "yes\nno", '{"a": "yes", "b": "no"}', "I think yes", "Nobody came", "No doubt", "Yes man",
    ],
)  # fmt: skip
def test_what_takes_yes_or_no_back_is_undecided(text: str) -> None:
    assert read_reply(text, BOOL).state == "undecided"


@pytest.mark.parametrize(
    ("text", "state", "value"),
    [
        ("She was late.\n> She came at nine.", "found", "She was late."),
        ("> She came\n> at nine.", "found", "She came\n\nat nine."),
        ("None", "nothing", "None"),
        ("Nothing found: the text names no time.", "nothing", "Nothing found: the text names no time."),
        ("There is no mention of it.", "nothing", "There is no mention of it."),
    ],
)  # fmt: skip
def test_a_text_is_what_stands_beside_its_quotes(text: str, state: str, value: str) -> None:
    reply = read_reply(text, TEXT)
    assert (reply.state, reply.value) == (state, value)


def test_quotes_are_kept_apart() -> None:
    assert read_reply("- a dog\n\n> The dog.\n>\n> The end.", LIST).quotes == (
        "The dog.",
        "The end.",
    )


@given(text=st.text(), wanted=st.sampled_from(ValueType))
def test_any_reply_is_read(text: str, wanted: ValueType) -> None:
    reply = read_reply(text, wanted)
    assert (reply.state == "undecided") == bool(reply.why)
    if reply.state == "found" and wanted is LIST:
        assert isinstance(reply.value, list)
        assert reply.value
        assert all(entry.strip() for entry in reply.value)


# Letters that spell no word which says something of the list, as "the list" and "the rest" do.
ENTRIES = st.lists(
    st.text("bdghkvwxz", min_size=1).map(lambda w: f"the {w}"), min_size=1, max_size=20, unique=True
)


@given(entries=ENTRIES, quotes=st.lists(st.sampled_from(["A dog.", "- a list", "3"]), max_size=4))
def test_what_is_written_in_the_form_is_read_back(entries: list[str], quotes: list[str]) -> None:
    text = "\n".join([*(f"- {entry}" for entry in entries), *(f"> {quote}" for quote in quotes)])
    reply = read_reply(text, LIST)
    assert (reply.value, reply.quotes) == (entries, tuple(quotes))
    assert follows_form(text, LIST)


@pytest.mark.parametrize("wanted", [LIST, NUMBER, BOOL])
@pytest.mark.parametrize("max_text", [None, 50])
def test_decoders_are_held_to_what_is_read(wanted: ValueType, max_text: int | None) -> None:
    constraint = reply_constraint(wanted, max_text)
    assert constraint is not None
    validate(constraint.lark)
    assert constraint.gbnf.startswith("root ::=")
    values: dict[ValueType, tuple[list[str], list[str]]] = {
        LIST: (["- a dog", "- a dog\n- a cat\n> q", "- a dog\n\n> q\n> r"], ["a dog", "> q", "- a\nb"]),
        NUMBER: (["12", "12 mg", "-3.5 %\n> q", "-$138.0 million", "12%"], ["twelve", "- 12", "12\n13"]),
        BOOL: (["yes", "no\n> q"], ["maybe", "yes."]),
    }  # fmt: skip
    admitted, refused = values[wanted]
    assert not any(admits_each(constraint.lark, refused))
    assert all(admits_each(constraint.lark, [*admitted, NOTHING]))
    for text in (*admitted, NOTHING):
        assert read_reply(text, wanted).state != "undecided"
        assert follows_form(text, wanted)


@pytest.mark.parametrize(
    ("wanted", "said", "text"),
    [
        (LIST, {"value": ["a dog", " a\ncat "], "passages": ["The dog."]}, "- a dog\n- a cat\n> The dog."),
        (LIST, {"value": [], "passages": []}, NOTHING),
        (NUMBER, {"value": "12 mg", "passages": []}, "12 mg"),
        (NUMBER, {"value": "", "passages": []}, NOTHING),
        (BOOL, {"value": "yes", "passages": ["He did."]}, "yes\n> He did."),
    ],
)  # fmt: skip
def test_json_stands_for_the_same_text(wanted: ValueType, said: Any, text: str) -> None:
    constraint = reply_constraint(wanted)
    assert constraint is not None
    assert constraint.json_form is not None
    assert constraint.json_form.text_of(said) == text
    assert json.loads(constraint.rendered("json-schema"))["required"] == ["value", "passages"]


@pytest.mark.parametrize(
    "said", [{}, [], {"value": "x", "passages": []}, {"value": [1], "passages": []}]
)
def test_json_of_another_form_is_refused(said: Any) -> None:
    constraint = reply_constraint(LIST)
    assert constraint is not None
    assert constraint.json_form is not None
    text_of: Callable[[Any], str] = constraint.json_form.text_of
    with pytest.raises(ValueError, match=r"\w"):
        text_of(said)


def test_a_text_is_held_to_nothing() -> None:
    assert reply_constraint(TEXT) is None


@pytest.mark.parametrize("wanted", [LIST, NUMBER, BOOL, TEXT])
@pytest.mark.parametrize("unit", ["\n", "\\(", "_", "$", " ", "<think>", "</think>"])
def test_a_reply_of_marks_takes_linear_time(unit: str, wanted: ValueType) -> None:
    for start in ("", "- ", "The text "):
        assert read_reply(f"{start}{unit * 20_000}x", wanted).state in ("found", "undecided")
