"""Replies about numbered items: no value that the reply does not give with that number and its words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.replies.items import (
    ItemKind,
    end_words,
    form_flaw,
    item_names,
    items_constraint,
    label_line,
    read_items,
)
from tests.dsl.sampling import admits_each, grammar_of, sentence

Values = tuple[str | None, ...]
LABELS = ("spam", "ham", "human", "human being", "location", "no", "C", "C++")
SAID = '"1":"yes","2":"no","3":"yes"'
ALL = ("yes", "no", "yes")
NONE = (None, None, None)


@pytest.mark.parametrize(
    ("text", "values", "why"),
    [
        (f"{{{SAID}}}", ALL, ""),
        ('{"3": true, "2": false, "1": true}', ALL, ""),
        ('{\n  "1": "Yes.",\n  "2": "**No**",\n  "3": "\'yes\'"\n}', ALL, ""),
        (f"Here you are:\n\n```json\n{{{SAID}}}\n```", ALL, ""),
        (f"Sure: {{{SAID}}}", ALL, ""),
        ("1: yes\n2: no\n3: yes", ALL, ""),
        ("3: yes\n1:yes\n\n 2 : no\r\n", ALL, ""),
        ("```\n1: yes\n2: no\n3: yes\n```", ALL, ""),
        ('{"1":"yes","2":"maybe","3":"yes"}', ("yes", None, "yes"), "item 2: its value is not"),
        ('{"1":"yes","1":"no","2":"no","3":"yes"}', (None, "no", "yes"), "item 1 has several values"),
        ('{"1":"yes","1":"Yes","2":"no","3":"yes"}', ALL, ""),
        ('{"1":null,"2":"","3":["yes"]}', NONE, "item 1: its value is not"),
        ('{"0":"yes","1":"no","2":"yes"}', NONE, "there is no item 0"),
        ('{"1":"yes","2":"no","3":"no","4":"yes"}', NONE, "there is no item 4"),
        ('{"1":"yes","3":"yes"}', NONE, "item 2 is missing"),
        ("1: yes\n1: no\n2: no", NONE, "item 2 is missing"),
        (f"{{{SAID}}}\n\nItem 1 may be a no.", NONE, "there is text after"),
        ("1: yes\n2: no\n3: yes\n\nItem 1 may be a no.", NONE, "a line in it that is no row"),
        (f"1: yes\n2: no\n3: yes\n{{{SAID}}}", NONE, "a line in it that is no row"),
        ('{"a":"yes","b":"no","c":"yes"}', NONE, "a key without a number"),
        ("{" + SAID, NONE, "its JSON is broken"),
        ("{" * 50_000, NONE, "no JSON object"),
        ('{"1":' * 50_000, NONE, "its JSON is broken"),
        ('["yes","no","yes"]', NONE, "no JSON object"),
        ("yes\nno\nyes", NONE, "no JSON object"),
        ("**1**: yes\n**2**: no\n**3**: yes", NONE, "no JSON object"),
        ("", NONE, "no JSON object"),
        ("{}", NONE, "no JSON object"),
        ("{" + ",".join(f'"{i}":"yes"' for i in range(1, 5_001)) + "}", NONE, "there is no item 4"),
    ],
)  # fmt: skip
def test_a_reply_is_of_the_form_or_undecided(text: str, values: Values, why: str) -> None:
    read = read_items(text, 3, "yes_no")
    assert read.values == values
    assert read.why.startswith(why) or why in read.why
    assert bool(read.why) == (None in values)


@pytest.mark.parametrize(
    ("kind", "labels", "values"),
    [
        ("label", LABELS, {
            "human being": "human being", "Human Being.": "human being", "human": "human", "human b": None,
            "human or location": None, "a location": None, "`location`": "location", "“location”": "location",
            "locations": None, "c++": "C++", '"C++."': "C++", "C": "C", "C#": None, "spam?": None,
            "spam (probably)": None, "spam/ham": None, "label 1": None, "1": None, 1: None, None: None,
        }),
        ("label", ("Yes!", "Yes?"), {"Yes!": "Yes!", "yes": None, "YES?": "Yes?"}),
        ("label", ("a\n b", "clear", "unclear"), {"a  b": "a\n b", "unclear": "unclear"}),
        ("yes_no", (), {"Yes.": "yes", "not stated": "not stated", "n": None, "yes, mostly": None, "yеs": None, 1: None}),
        ("line", (), {
            None: "Nothing found.", "Nothing found.": "Nothing found.", "Not stated.": "Nothing found.",
            "12:30, at noon": "12:30, at noon", "a\nb": "a b", "**red**": "red", "500 mg": "500 mg", 500: "500",
            "no pain": "no pain", "not found in Oslo": "not found in Oslo", "": None, '"': None, "N/A": None,
            "Both": None, "I don't know": None, "I'm sorry, I can't help with that.": None, "same as above": None, "idem": None,
            "see 3": None, "red, no wait, blue": None, "Item 2": None, "see #3": None,
            "[error: content filtered]": None, "<result>": None, "{colour}": None, "\ufffd\ufffd": None,
            "dark re...": None, "red<|eot_id|>": None, "<5 ng": "<5 ng",
        }),
    ],
)  # fmt: skip
def test_a_value_is_one_of_the_form_but_for_marks_around_it(
    kind: ItemKind, labels: tuple[str, ...], values: dict[Any, str | None]
) -> None:
    items = ("The shoe is red and blue.", "<5 ng of it")
    for said, value in values.items():
        item = items[said == "<5 ng"]
        text = json.dumps({"1": said, "2": None})
        assert read_items(text, 2, kind, labels, items=(item, "b")).values[0] == value, said


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        ('{"1":"ham","2":"human"', "label", ("ham", None, None)),
        ('{"1":"ham","2":"human","3":"hu', "label", ("ham", "human", None)),
        ('{"1":"ham","2":"hu, hu","3":"hu, h', "line", ("ham", "hu, hu", None)),
        ('{"', "label", NONE),
        ("1: ham\n2: human", "label", ("ham", None, None)),
        ("1: a\n2: the man wa", "line", ("a", None, None)),
    ],
)
def test_of_a_reply_that_is_cut_off_the_whole_values_count(
    text: str, kind: ItemKind, values: Values
) -> None:
    assert read_items(text, 3, kind, LABELS, is_cut=True).values == values


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("dusk", "label", "dusk"), ("**Dusk.**", "label", "dusk"), ("Yes", "yes_no", "yes"),
        ("dusk or dawn", "label", None), ("dusk", "line", None), ("1: dusk", "line", "dusk"),
    ],
)  # fmt: skip
def test_a_single_value_of_a_fixed_form_needs_no_number(
    text: str, kind: ItemKind, value: str | None
) -> None:
    labels = ("dusk", "dawn") if kind == "label" else ()
    assert read_items(text, 1, kind, labels).values == (value,)


def test_a_line_that_a_constraint_cut_off_is_no_value() -> None:
    assert read_items('{"1":"abcd","2":"abc"}', 2, "line", max_length=4).values == (None, "abc")


ANIMALS = (
    "The dog barks.",
    "The dogs sleep",
    "A cat, 3 kg",
    "12:30 the hen is fed: twice",
    "Ox",
    "An ox",
)
HERD = item_names(ANIMALS, "yes_no")
A, B, C, D, E, F = HERD.numbers
SIX = ("yes", "no", "yes", "no", "yes", "no")
NO_SIX = (None,) * 6


@pytest.mark.parametrize(
    ("lines", "values", "why"),
    [
        ([f"{A} yes", f"{B} no", f"{C} yes", f"{D} no", f"{E} Ox yes", f"{F} An no"], SIX, ""),
        ([f"{A}: Yes", f"{B} | no", f" {C} yes.", f"{D}  no", f"{E} ox: yes", f"{F} (An) | **no**"], SIX, ""),
        (["Here they are, 6 lines:", "", f"{A} yes", f"{B} no", f"{C} yes", f"{D} no", f"{E} Ox yes", f"{F} An no"], SIX, ""),
        ([f"{A} yes", f"{C} yes", f"{D} no", f"{E} Ox yes", f"{F} An no"], ("yes", None, "yes", "no", "yes", "no"), f"item {B} is missing"),
        ([f"{A} yes", f"{B} maybe", f"{C} yes", f"{D} no", f"{E} Ox yes", f"{F} An no"], ("yes", None, *SIX[2:]), f"item {B}: its value"),
        ([f"{A} yes", f"{B} no", f"{C} yes", f"{D} no", f"{E} yes", f"{F} no"], NO_SIX, f"item {E}: its first words are missing"),
        ([f"{A} no", f"{B} yes", f"{C} no", f"{D} yes", f"{E} An no", f"{F} An no"], NO_SIX, f"item {E}: its first words are missing"),
        ([f"{A} yes", f"{B} no", f"{C} yes", f"{D} no", f"{E} Ox yes"], (*SIX[:5], None), f"item {F} is missing"),
        ([f"{A} yes", f"{B} no", f"{C} yes", f"{D} no"], NO_SIX, f"item {D} is missing"),
        ([f"{B} yes", f"{A} no", f"{C} yes", f"{D} no", f"{E} Ox yes", f"{F} An no"], NO_SIX, f"item {A} is not in its place"),
        ([f"{A} yes", f"{A} yes", f"{B} no", f"{C} yes", f"{D} no", f"{E} Ox yes", f"{F} An no"], NO_SIX, f"item {A} is not in its place"),
        ([f"{A} yes", "1 no", f"{B} no", f"{C} yes", f"{D} no", f"{E} Ox yes", f"{F} An no"], NO_SIX, "there is no item 1"),
        ([f"{A} yes", f"{B} no", f"{C} yes", f"{D} no", f"{E} Ox yes", f"{F} An no", "7 no"], SIX, ""),
        ([f"{A} yes", "Now the second:", f"{B} no"], NO_SIX, "there is a line in it that is no row"),
        (["1 yes", "2 no", "3 yes", "4 no", "5 Ox yes", "6 An no"], NO_SIX, "there is no line with the number of an item"),
    ],
)  # fmt: skip
def test_a_row_counts_up_to_words_that_show_that_none_is_shifted(
    lines: list[str], values: Values, why: str
) -> None:
    read = read_items("\n".join(lines), 6, "yes_no", items=ANIMALS, names=HERD)
    assert read.values == values
    assert read.why.startswith(why)
    assert bool(read.why) == bool(why)


AGAIN = item_names(ANIMALS, "yes_no", 1)


def test_from_the_second_request_on_all_items_are_called_by_words_too() -> None:
    def values(words: Sequence[str]) -> Values:
        lines = [" ".join(row) for row in zip(map(str, AGAIN.numbers), words, SIX, strict=True)]
        return read_items("\n".join(lines), 6, "yes_no", items=ANIMALS, names=AGAIN).values

    assert (AGAIN.asked, AGAIN.ends.which) == ((0, 1, 2, 3, 4, 5), "first")
    assert values([end_words(item, AGAIN.n_words) for item in ANIMALS]) == SIX
    assert values(ANIMALS) == SIX  # all of an item, as small readers repeat it
    assert values(["", *ANIMALS[1:]]) == NO_SIX
    others = [*ANIMALS[1:], ANIMALS[-1]]  # each row speaks of the next item
    assert values(others) == values([end_words(item, AGAIN.n_words) for item in others]) == NO_SIX
    assert values([f"{item}s" for item in ANIMALS])[4:] == (None, None)  # "Oxs" is not "Ox"


def test_an_object_is_read_by_the_same_names() -> None:
    said = {
        str(A): "yes",
        str(B): "no",
        str(C): "yes",
        str(D): "no",
        f"{E} Ox": "yes",
        f"{F} An": "no",
    }
    assert read_items(json.dumps(said), 6, "yes_no", items=ANIMALS, names=HERD).values == SIX
    said = {f"{key} A cat" if key == str(A) else key: value for key, value in said.items()}
    assert read_items(json.dumps(said), 6, "yes_no", items=ANIMALS, names=HERD).values == NO_SIX


def test_of_lines_that_break_off_those_before_the_last_words_count() -> None:
    names = item_names(ANIMALS, "label")
    assert names.checked == (2, 4, 5)
    whole = [f"{A} ham", f"{B} human", f"{C} A ham", f"{D} human", f"{E} Ox hu"]
    numbers = dict(zip(HERD.numbers, names.numbers, strict=True))
    text = "\n".join(f"{numbers[int(line.split()[0])]} {line.partition(' ')[2]}" for line in whole)
    for is_cut in (True, False):
        read = read_items(text, 6, "label", LABELS, items=ANIMALS, names=names, is_cut=is_cut)
        assert read.values == ("ham", "human", "ham", None, None, None)


WORDS = st.sampled_from(["the", "dog", "dogs", "a", "cat", "12", "3", "kg:", "Is it", "漢字", "?"])
ITEMS = st.lists(
    st.lists(WORDS, min_size=1, max_size=6).map(" ".join), min_size=2, max_size=40, unique=True
)


def rows_of(items: list[str], looked_at: list[int], numbered: list[int], kind: ItemKind) -> str:
    """A reply whose writer gives row by row the number of one item, and the value and words of the one that it looks at."""
    names = item_names(tuple(items), kind)
    rows = []
    for seen, told in zip(looked_at, numbered, strict=True):
        is_last = names.ends.which == "last"
        words = end_words(items[seen], names.n_words, is_last=is_last) + " "
        rows.append(f"{names.numbers[told]} {words * (told in names.checked)}v{seen}")
    return "\n".join(rows)


@given(data=st.data(), items=ITEMS, kind=st.sampled_from(["label", "yes_no"]))
def test_no_item_takes_the_value_of_another(
    data: st.DataObject, items: list[str], kind: ItemKind
) -> None:
    """Of rows that are left out, repeated, exchanged and moved, each is read rightly or not at all."""
    n = len(items)
    truth = [f"v{i}" for i in range(n)]  # A label of its own: every exchange would show
    seen = data.draw(st.lists(st.integers(0, n - 1), max_size=n + 2))
    names = item_names(tuple(items), kind)

    def read(seen: list[int], numbered: list[int]) -> Values:
        text = rows_of(items, seen, numbered, kind)
        return read_items(text, n, "label", truth, items=items, names=names).values

    for value, right in zip(read(seen, seen), truth, strict=True):
        assert value in (None, right)
    every = [*range(n)]
    assert read(every, every) == (*truth,)


@pytest.mark.parametrize("kind", ["label", "yes_no"])
@given(n=st.integers(3, 40), at=st.integers(0, 39), is_split=st.booleans(), is_filled=st.booleans())
def test_numbers_written_by_rote_beside_shifted_values_are_noticed(
    kind: ItemKind, n: int, at: int, *, is_split: bool, is_filled: bool
) -> None:
    """The writer goes through the numbers in order, but leaves an item out, or takes it for two."""
    items = [f"{('The', 'A', 'My')[i % 3]} thing {i} is here" for i in range(n)]
    seen, at = [*range(n)], at % n
    if is_split:
        seen.insert(at, at)
    else:
        del seen[at]
        seen += seen[-1:] * is_filled
    seen = seen[:n]
    text = rows_of(items, seen, [*range(len(seen))], kind)
    truth = [f"v{i}" for i in range(n)]
    names = item_names(tuple(items), kind)
    read = read_items(text, n, "label", truth, items=items, names=names)
    for value, right in zip(read.values, truth, strict=True):
        assert value in (None, right)


def test_a_reply_about_other_items_is_noticed() -> None:
    items, others = ([f"{word} {i}" for i in range(32)] for word in ("row", "line"))
    for kind in ("yes_no", "label"):
        text = rows_of(others, [*range(32)], [*range(32)], kind)
        names = item_names(tuple(items), kind)
        labels = [f"v{i}" for i in range(32)]
        read = read_items(text, 32, "label", labels, items=items, names=names)
        assert read.values == (None,) * 32


@given(data=st.data(), n=st.integers(2, 9))
def test_numbers_that_are_not_those_of_the_items_are_seen_without_words(
    data: st.DataObject, n: int
) -> None:
    constraint = items_constraint(n, "yes_no")
    ids = data.draw(st.lists(st.integers(0, n + 1), max_size=n + 1))
    text = "{" + ",".join(f'"{id}":"yes"' for id in ids) + "}"
    is_whole = sorted(ids) == list(range(1, n + 1))
    assert (form_flaw(text, constraint) is None) == is_whole
    if set(ids) != {*range(1, n + 1)}:
        assert read_items(text, n, "yes_no").values == (None,) * n


@pytest.mark.parametrize("kind", get_args(ItemKind))
@pytest.mark.parametrize("text", ["1: {}x", "1{}x", '{{"1": 2}}{}x', "{}1: no", "1 |{}:"])
def test_a_reply_of_blanks_takes_linear_time(kind: ItemKind, text: str) -> None:
    for blank in (" ", "\t", "*", ":"):
        said = text.format(blank * 200_000)
        read_items(
            said,
            2,
            kind,
            ("yes", "no"),
            1,
            items=("a", "b"),
            names=None if kind == "pick" else item_names(("a", "b"), kind),
        )


PICKED = ("", "", "2", "", "", "", "1", "")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('{"items":[7,3]}', PICKED), ('```json\n{"items": [7, 3]}\n```', PICKED), ("7\n3", PICKED),
        ("7, 3", PICKED), *[(text, (None,) * 8) for text in (
            "7\n7", "7\n3\n1", "7", "7\n9", "1. item 7\n2. item 3", "7 is the best of the 8\n3", '["a", 3]',
            '{"items":[7]}', '{"items":["7","3"]}', '{"items":[7,3],"a":1}', '{"items":[7,3]} or 4', "Item 7\nItem 3",
        )],
    ],
)  # fmt: skip
def test_choices_are_read_whole_or_not_at_all(text: str, values: Values) -> None:
    read = read_items(text, 8, "pick", n_picks=2)
    assert read.values == values
    assert bool(read.why) == (None in values)


@given(text=st.text('0123456789:{}[]"<>item yesno\n,.-*`', max_size=200))
def test_any_text_is_read(text: str) -> None:
    for kind in get_args(ItemKind):
        assert len(read_items(text, 4, kind, ["yes", "no"], 2).values) == 4


# ---------------------------------------------------------------------------------------------
# Constraints

HARD = ('say "no"', "a\\b", "naïve ☃ 漢字", "two\nlines", "a/b|c (d) [e]{1,2}", "<item 3>", "x", "xx")  # fmt: skip
CASES: list[tuple[ItemKind, tuple[str, ...]]] = [
    ("yes_no", ()), ("label", ("spam", "ham")), ("label", HARD), ("label", ("-1", "0", "1")), ("line", ()), ("pick", ()),
]  # fmt: skip


@pytest.mark.parametrize(
    "n", [1, 2, 9, *(pytest.param(n, marks=pytest.mark.slow) for n in (32, 100))]
)
@pytest.mark.parametrize(("kind", "labels"), CASES)
def test_decoders_take_the_constraint_and_its_sentences_are_read(
    kind: ItemKind, labels: tuple[str, ...], n: int
) -> None:
    n_picks = min(3, n)
    constraint = items_constraint(n, kind, labels, n_picks=n_picks)
    for seed in range(5):
        text = sentence(grammar_of(constraint), seed)
        assert form_flaw(text, constraint) is None
        read = read_items(text, n, kind, labels, n_picks)
        picked = kind == "pick" and len(set(json.loads(text)["items"])) < n_picks
        doubtful = kind == "line"  # a random line may be no value
        assert picked or doubtful or (None not in read.values and not read.why), text
        assert constraint.json_form
        assert json.loads(constraint.json_form.text_of(json.loads(text))) == json.loads(text)


def test_wrong_alignment_cannot_be_written() -> None:
    constraint = items_constraint(3, "label", ("human", "human being"))
    good = '{"1":"human","2":"human being","3":"human"}'
    bad = [
        '{"1":"human","3":"human","2":"human"}', '{"1":"human","2":"human"}', good[:-1] + ',"4":"human"}',
        good.replace("n being", "ns"), good.replace('"2"', '"1"'), good.replace('"human"}', "null}"), f"{good}\n",
    ]  # fmt: skip
    assert admits_each(grammar_of(constraint), [good, *bad]) == [True, *[False] * len(bad)]
    flaws = [form_flaw(text, constraint) is None for text in bad]
    assert flaws == [True, *[False] * (len(bad) - 2), True]  # the order and blanks do not matter


def test_free_lines_are_bounded() -> None:
    constraint = items_constraint(1, "line", max_text=8)
    texts = [f'{{"1":"{"x" * n}"}}' for n in (8, 9)]
    assert admits_each(grammar_of(constraint), [*texts, '{"1":null}']) == [True, False, True]
    assert [form_flaw(text, constraint) is None for text in texts] == [True, False]


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=5))
def test_any_labels_make_a_form(labels: list[str]) -> None:
    labels = [label for label in labels if label_line(label)]
    if not labels:
        return
    constraint = items_constraint(2, "label", tuple(labels))
    said = {"1": label_line(labels[0]), "2": label_line(labels[-1])}
    text = json.dumps(said, ensure_ascii=False, separators=(",", ":"))
    assert admits_each(grammar_of(constraint), [text]) == [True]
    values = read_items(text, 2, "label", labels).values
    shown = [label_line(label) for label in labels]
    if len(set(shown)) == len(labels) and all(any(c.isalnum() for c in label) for label in shown):
        assert values == (labels[0], labels[-1])


@pytest.mark.parametrize(
    ("items", "checked", "n_words", "which"),
    [
        (("The dog barks.", "The dogs", "The", "A cat"), (0, 2, 3), 1, "last"),
        (("On 2 May I saw a dog", "On 2 May I saw a cat", "On 2 May I saw it"), (1, 2), 1, "last"),
        (("漢字の本を読む人", "漢字の本を書く人"), (0, 1), 1, "first"),
        (("?", "!", "."), (), 0, "first"),
        (("a b a", "a b a"), (), 0, "first"),
    ],
)  # fmt: skip
def test_few_words_tell_items_from_those_beside_them(
    items: tuple[str, ...], checked: tuple[int, ...], n_words: int, which: str
) -> None:
    names = item_names(items, "label")
    assert (names.checked, names.n_words, names.ends.which) == (checked, n_words, which)


def test_words_of_long_items_are_looked_for_at_their_ends() -> None:
    items = tuple(
        f"{first} {'and so on ' * 30}{last}"
        for first, last in zip(["Ada", "Ben", "Cy"], ["x", "y", "z"], strict=True)
    )
    alike = tuple(item.partition(" ")[2] for item in items)
    for each, which, words in ((items, "first", "Ada Ben Cy"), (alike, "last", "x y z")):
        names = item_names(each, "label", 1)
        assert (names.ends.which, names.n_words, names.asked) == (which, 1, (0, 1, 2))
        rows = zip(names.numbers, words.split(), strict=True)
        text = "\n".join(f"{number} {word} ham" for number, word in rows)
        values = read_items(text, 3, "label", LABELS, items=each, names=names).values
        assert values == ("ham", "ham", "ham")
