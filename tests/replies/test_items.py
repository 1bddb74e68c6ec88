"""Replies about numbered items: no value that the reply does not give with that number."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.dsl.decoding.constraint import validate
from pearl.errors import UsageError
from pearl.replies.items import (
    RATINGS,
    ItemKind,
    first_words,
    form_flaw,
    items_constraint,
    label_line,
    read_items,
)
from tests.dsl.sampling import admits_each, sentence

LABELS = ("spam", "ham", "human", "human being", "location", "no", "C", "C++")


@pytest.mark.parametrize(
    "text",
    [
        "1: yes\n2: no\n3: yes",
        "3: yes\n1: yes\n2: no",
        "1: Yes.\n2: **No**\n3: 'yes'",
        "1. yes\n2. no\n3. yes",
        "1) yes\n2) no\n3) yes",
        "- 1: yes\n- 2: no\n- 3: yes",
        "**1**: yes\n**2**: no\n**3**: yes",
        "**1:** yes\n**2:** no\n**3:** yes",
        "Item 1: yes\nItem 2: no\nItem 3: yes",
        "<item 1>: yes\n<item 2>: no\n<item 3>: yes",
        "<item 1>yes</item 1>\n<item 2>no</item 2>\n<item 3>yes</item 3>",
        "1 - yes\n2 - no\n3 - yes",
        "1:yes\r\n2:no\r\n3:yes\r\n",
        "Here you are:\n\n```\n1: yes\n2: no\n3: yes\n```\nI hope this helps.",
        '{"1": "yes", "2": "no", "3": "yes"}',
        '```json\n{"1": true, "2": false, "3": true}\n```',
        'Sure:\n{"items": {"1": "yes", "2": "no", "3": "yes"}}\nDone.',
        '[{"id": 1, "value": "yes"}, {"id": 3, "value": "yes"}, {"id": "2", "value": "no"}]',
        '{"results": [{"item": 1, "label": "yes"}, {"item": 2, "label": "no", "why": "x"}, {"item": 3, "label": "yes"}]}',
        '{"id": 1, "answer": "yes"}\n{"id": 2, "answer": "no"}\n{"id": 3, "answer": "yes"}',
        '{"1": {"label": "yes"}, "2": {"label": "no"}, "3": {"label": "yes"}}',
    ],
)  # fmt: skip
def test_the_ways_in_which_models_number_items(text: str) -> None:
    assert read_items(text, 3, "yes_no").values == ("yes", "no", "yes")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("yes\nno\nyes", (None, None, None)),
        ('["yes", "no", "yes"]', (None, None, None)),
        ("1: yes\n3: yes", ("yes", None, "yes")),
        ("1: yes\n1: no\n2: no\n3: yes", (None, "no", "yes")),
        ("1: yes\n1: Yes\n2: no\n3: yes", ("yes", "no", "yes")),
        ('{"1": "yes", "1": "no", "2": "no", "3": "yes"}', (None, "no", "yes")),
        ('1: yes\n2: no\n3: yes\n{"1": "no"}', (None, "no", "yes")),
        ("1: yes\n1: no\n2: no", (None, None, None)),
        ("0: yes\n1: yes\n2: no", (None, None, None)),
        ("1: yes\n2: no\n3: no\n4: yes", (None, None, None)),
        ('{"0": "yes", "1": "no", "2": "yes"}', (None, None, None)),
        ("1: yes\n2: no", (None, None, None)),
        ("1: yes\n2: no\n3: yes\n\nItem 1 may be a no.", (None, None, None)),
        ("1: no, it does not say\n2: no, it does not bark\n3: yes", (None, "no", "yes")),
        ("1: yes, mostly\n2: maybe\n3: undecided", (None, None, None)),
        ("1: unclear\n2: n/a\n3:", (None, None, None)),
        ('{"1": null, "2": "", "3": ["yes"]}', (None, None, None)),
        ('[{"id": 1, "value": "yes", "label": "no"}, {"value": "no"}]', (None, None, None)),
        ("1: yes, 2: no, 3: yes", (None, None, None)),
        ("", (None, None, None)),
        ("<item 1>\na\n</item 1>\n1: yes\n<item 3>\nb\n</item 3>\n3: no", ("yes", None, "no")),
        ('{"1": "yes", "2": "no"', (None, None, None)),
        ("[" * 50_000, (None, None, None)),
        ("1: yes\n2: no\n3: y", ("yes", "no", None)),
        ("1: yes<|eot_id|>\n2: n\u200bo\n3: yеs</s>", ("yes", "no", None)),
    ],
)
def test_what_is_not_said_of_an_item_is_undecided(
    text: str, values: tuple[str | None, ...]
) -> None:
    read = read_items(text, 3, "yes_no")
    assert read.values == values
    assert bool(read.why) == (None in values)


@pytest.mark.parametrize(
    ("said", "label"),
    [
        ("human being", "human being"),
        ("Human Being.", "human being"),
        ("human", "human"),
        ("human b", None),
        ("human or location", None),
        ("a location", None),
        ("`location`", "location"),
        ("“location”", "location"),
        ("no location", None),
        ("locations", None),
        ("c++", "C++"),
        ('"C++."', "C++"),
        ("C", "C"),
        ("C#", None),
        ("spam?", None),
        ("spam (probably)", None),
        ("spam/ham", None),
        ("label 1", None),
        ("1", None),
    ],
)
def test_a_label_is_verbatim_but_for_case_and_marks_around_it(said: str, label: str | None) -> None:
    assert read_items(f"1: {said}\n2: ham", 2, "label", LABELS).values == (label, "ham")


def test_labels_that_differ_in_marks_alone_are_told_apart_or_not_taken() -> None:
    assert read_items("1: Yes!\n2: yes\n3: YES?", 3, "label", ["Yes!", "Yes?"]).values == (
        "Yes!", None, "Yes?",
    )  # fmt: skip
    assert read_items("1: a  b", 1, "label", ["a\n b"]).values == ("a\n b",)
    assert read_items("1: unclear", 1, "label", ["clear", "unclear"]).values == ("unclear",)


@pytest.mark.parametrize(
    ("said", "rating"),
    [("7", "7"), ("10/10", "10"), ("8 out of 10", "8"), ("7.5", "7.5"), ("0", "0"), ("11", None), ("-3", None),
     ("7-8", None), ("about 7", None), ("seven", None), ("7/5", None), ("7.0", "7")],
)  # fmt: skip
def test_ratings(said: str, rating: str | None) -> None:
    assert read_items(f"1: {said}\n2: 3", 2, "rating").values == (rating, "3")


@pytest.mark.parametrize(
    ("said", "rating"),
    [("-2", "-2"), ("0", "0"), ("2/3", "2"), ("3 out of 3", "3"), ("1.5", "1.5"), ("4", None), ("-3", None),
     ("2/5", None), ("−1", "-1"), ("-", None), ("three", None), ("2 (very good)", "2")],
)  # fmt: skip
def test_ratings_in_a_range(said: str, rating: str | None) -> None:
    text, labels = f"1: {said}\n2: 3", ["-2", "-1", "0", "1", "2", "3"]
    assert read_items(text, 2, "rating", labels).values == (rating, "3")
    assert read_items(f"1: 3\n2: {said}", 2, "rating", labels, is_cut=True).values[0] == "3"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1: 12:30, at noon\n2: nothing found", ("12:30, at noon", "Nothing found.")),
        ("At\n12:30 they met\n1: a\n2: b", ("a", "b")),
        ("1: the fear:\n  1. of dogs\n  2. of cats\n2: b", (None, "b")),
        ("1: the fear:\n1. of dogs\n2. of cats", (None, None)),
        ("1: one line\nand another\n2: b", (None, "b")),
        ('1: he said\n> "never"\n\n2: b', ("he said", "b")),
        ('1: sets {"2": "x"}\n2: b', ('sets {"2": "x"}', "b")),
        ('{"1": "a\\nb", "2": "N/A"}', ("a b", None)),
        ("**1: a**\n**2: b**", ("a", "b")),
        ("1: a\n2: b\n\nThat is all.", ("a", "b")),
    ],
)
def test_free_lines(text: str, values: tuple[str | None, ...]) -> None:
    assert read_items(text, 2, "line").values == values


def test_a_last_line_that_may_be_cut_off_is_not_trusted() -> None:
    def read(text: str, kind: ItemKind) -> tuple[str | None, ...]:
        labels = () if kind == "rating" else LABELS
        return read_items(text, 3, kind, labels, is_cut=True).values

    assert read("1: ham\n2: human", "label") == ("ham", None, None)
    assert read("1: ham\n2: human\n", "label") == ("ham", "human", None)
    assert read("1: ham\n2: spam", "label") == ("ham", "spam", None)
    assert read("1: 7\n2: 1", "rating") == ("7", None, None)
    assert read("1: a\n2: the man wa", "line") == ("a", None, None)
    assert read("2: b\n3: the end", "line") == (None, "b", "the end")


ANIMALS = ("The dog barks.", "A cat, 3 kg", "12:30 the hen is fed: twice")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1 | The dog barks: yes\n2 | A cat, 3: no\n3 | 12:30 the hen: yes", ("yes", "no", "yes")),
        (
            '- **3** | "12:30 the": yes\n- **1** | the dog...: yes\n- **2** | A cat: no',
            ("yes", "no", "yes"),
        ),
        ("1: The dog: yes\n2: A cat: no\n3: the hen is: yes", ("yes", "no", "yes")),
        ("1 | The dog: yes\n3 | 12:30 the hen: yes", ("yes", None, "yes")),
        ("1 | The dog: yes\n2 | A cow: no\n3 | 12:30 the hen: yes", ("yes", None, "yes")),
        ("1 | The dog: yes\n2 | 12:30 the hen: no\n3 | 12:30 the hen: yes", ("yes", None, "yes")),
        ("1 | A cat: yes\n2 | The dog: no\n3 | 12:30 the hen: yes", (None, None, "yes")),
        ("1: yes\n2: no\n3: yes", (None, None, None)),
    ],
)
def test_a_value_counts_behind_the_first_words_of_its_item(
    text: str, values: tuple[str | None, ...]
) -> None:
    assert read_items(text, 3, "yes_no", items=ANIMALS, is_echoed=True).values == values


def test_words_that_several_items_begin_with_count_unless_others_are_shifted() -> None:
    items = ("The dog barks", "The dog sleeps", "A cat")
    text = "1 | The dog barks: yes\n2 | The dog: no\n3 | A: no"
    read = partial(read_items, n=3, kind="yes_no", is_echoed=True)
    assert read(text, items=items).values == ("yes", None, "no")
    alike = (f"{'The dog ' * 8}barks", f"{'The dog ' * 8}sleeps", "A cat")
    said = "1 | The dog: yes\n2 | {}: no\n3 | A cat: no"
    said = said.replace("The dog", first_words(alike[0], 8))
    assert read(said.format(first_words(alike[1], 8)), items=alike).values == ("yes", "no", "no")
    assert read(said.format("A cat"), items=alike).values == (None, None, "no")


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("Both", None),
        ("I don't know", None),
        ("I'm sorry, I can't help with that.", None),
        ("same as above", None),
        ("idem", None),
        ("see 3", None),
        ("red, no wait, blue", None),
        ("[error: content filtered]", None),
        ("<result>", None),
        ("{colour}", None),
        ("Item 2", None),
        ("\ufffd\ufffd", None),
        ("rеd", None),
        ("not leak", None),
        ("dark re...", None),
        ("<think>red</think> blue", None),
        ("The shoe is red and blue.", None),
        ("Not stated.", "Nothing found."),
        ("not mentioned in the text", "Nothing found."),
        ("The item does not say", "Nothing found."),
        ("r\u200bed<|eot_id|>", "red"),
        ("**red**", "red"),
        ("** red", "red"),
        ("500 mg", "500 mg"),
        ("no pain", "no pain"),
        ("not found in Oslo", "not found in Oslo"),
    ],
)
def test_a_line_is_a_value_or_none(said: str, value: str | None) -> None:
    items = ("The shoe is red and blue.", "b")
    assert read_items(f"1: {said}\n2: blue", 2, "line", items=items).values == (value, "blue")


@pytest.mark.parametrize("kind", get_args(ItemKind))
@pytest.mark.parametrize(
    "text", ["1: {}x", "1{}x", "item{}x", '{{"1": 2}}{}x', "{}1: no", "1 |{}:"]
)
def test_a_reply_of_blanks_takes_linear_time(kind: ItemKind, text: str) -> None:
    for blank in (" ", "\t", "*", ":"):
        read_items(
            text.format(blank * 200_000),
            2,
            kind,
            () if kind == "rating" else LABELS,
            1,
            items=("a", "b"),
            is_echoed=True,
        )


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("7\n3", ("", "", "2", "", "", "", "1", "")),
        ("Item 7\n- 3.", ("", "", "2", "", "", "", "1", "")),
        ("The best are:\n7, 3", ("", "", "2", "", "", "", "1", "")),
        ('{"items": [7, 3]}', ("", "", "2", "", "", "", "1", "")),
        ("7\n7", (None,) * 8),
        ("7\n3\n1", (None,) * 8),
        ("7", (None,) * 8),
        ("7\n9", (None,) * 8),
        ("1. item 7\n2. item 3", (None,) * 8),
        ("7 is the best of the 8\n3", (None,) * 8),
        ('["a", 3]', (None,) * 8),
    ],
)
def test_choices_are_read_whole_or_not_at_all(text: str, values: tuple[str | None, ...]) -> None:
    read = read_items(text, 8, "pick", n_picks=2)
    assert read.values == values
    assert bool(read.why) == (None in values)


# ---------------------------------------------------------------------------------------------
# Faults


def _said(kind: ItemKind) -> st.SearchStrategy[str]:
    # Blanks are read as one.
    words = st.text("abc dxyz.,-", min_size=1, max_size=12).map(lambda text: " ".join(text.split()))
    free = words.filter(lambda text: any(c.isalpha() for c in text))
    return {
        "yes_no": st.sampled_from(["yes", "no"]),
        "label": st.sampled_from(LABELS),
        "rating": st.integers(*RATINGS).map(str),
        "line": free,
    }[kind]


WRITTEN = ["{}: {}", "- {}: {}", "**{}**: {}", "{}. {}", "{}) {}", "Item {}: {}", "<item {}>: {}"]


@given(
    data=st.data(),
    kind=st.sampled_from(["yes_no", "label", "rating", "line"]),
    written=st.sampled_from(WRITTEN),
    faults=st.sets(
        st.sampled_from(["drop", "duplicate", "reorder", "foreign", "off-list", "prose", "cut"])
    ),
)
def test_never_a_value_that_the_reply_does_not_give(
    data: st.DataObject, kind: ItemKind, written: str, faults: set[str]
) -> None:
    truth = data.draw(st.lists(_said(kind), min_size=1, max_size=8))
    n = len(truth)
    said = list(enumerate(truth, start=1))
    unsure: set[int] = set()
    if "drop" in faults:
        left = data.draw(st.sets(st.sampled_from(said), max_size=n))
        unsure |= {id for id, _ in set(said) - left}
        said = [pair for pair in said if pair in left]
    if "duplicate" in faults and said:
        id, value = data.draw(st.sampled_from(said))
        other = data.draw(_said(kind))
        unsure |= {id} if other != value else set()
        said.append((id, other))
    if "off-list" in faults and said and kind != "line":
        at = data.draw(st.integers(0, len(said) - 1))
        unsure.add(said[at][0])
        said[at] = (said[at][0], f"rather {said[at][1]}")
    if "foreign" in faults:
        unsure |= set(range(1, n + 1))
        said.append((data.draw(st.sampled_from([0, n + 1, n + 32])), data.draw(_said(kind))))
    if "reorder" in faults:
        said = data.draw(st.permutations(said))
    lines = [written.format(id, value) for id, value in said]
    if "prose" in faults:
        lines = ["Here are the results:", "", *lines, "", "I hope this helps."]
    text = "\n".join(lines)
    if "cut" in faults:
        text = text[: data.draw(st.integers(0, len(text)))]
    read = read_items(text, n, kind, () if kind == "rating" else LABELS)
    # What ends early may go on: its last value is not taken for a longer one's beginning.
    is_short = "cut" in faults or "drop" in faults
    for i, got in enumerate(read.values, start=1):
        if i in unsure or is_short:
            assert got is None or (i, got) in said or _is_the_end(text, i, n, got)
        else:
            assert got == truth[i - 1], text
    if not faults:
        assert not read.why


def _is_the_end(text: str, i: int, n: int, value: str) -> bool:
    """The one cut that nobody can see: all numbers are there, and the last line is a whole value."""
    ids = [int(id) for id in re.findall(r"^[^0-9]*([0-9]+)", text, re.M)]
    return (
        ids[-1:] == [i]
        and text.rstrip().endswith(value)
        and (i == n or {*range(1, n + 1)} <= {*ids})
    )


@given(text=st.text('0123456789:{}[]"<>item yesno\n,.-*`', max_size=200))
def test_any_text_is_read(text: str) -> None:
    for kind in get_args(ItemKind):
        labels = () if kind == "rating" else ["yes", "no"]
        read = read_items(text, 4, kind, labels, 2)
        assert len(read.values) == 4


# ---------------------------------------------------------------------------------------------
# Constraints

HARD = (
    'say "no"',
    "a\\b",
    "naïve ☃ 漢字",
    "two\nlines",
    "a/b|c (d) [e]{1,2}",
    "<item 3>",
    "x",
    "xx",
)
CASES: list[tuple[ItemKind, tuple[str, ...]]] = [
    ("yes_no", ()), ("label", ("spam", "ham")), ("label", HARD), ("rating", ()), ("rating", ("-1", "0", "1")), ("line", ()), ("pick", ()),
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
    validate(constraint.lark)
    assert constraint.gbnf.startswith("root ::=")
    assert len(constraint.lark) < 20 * n + 1_000
    for seed in range(5):
        text = sentence(constraint.lark, seed)
        assert form_flaw(text, n, kind, labels, n_picks) is None
        read = read_items(text, n, kind, labels, n_picks)
        picked = kind == "pick" and len(set(text.split("\n"))) < n_picks
        doubtful = kind == "line"  # a random line may say "N/A"
        assert picked or doubtful or (None not in read.values and not read.why), text


def test_wrong_alignment_cannot_be_written() -> None:
    constraint = items_constraint(3, "label", ("human", "human being"))
    good = "1: human\n2: human being\n3: human"
    bad = [
        "1: human\n3: human\n2: human", "1: human\n2: human", f"{good}\n4: human", "1: humans\n2: human\n3: human",
        f"{good}\n", f" {good}", good.replace("2:", "1:"),
    ]  # fmt: skip
    assert admits_each(constraint.lark, [good, *bad]) == [True, *[False] * len(bad)]
    flaws = [form_flaw(text, 3, "label", ("human", "human being")) for text in bad]
    assert [flaw is None for flaw in flaws] == [text.endswith("\n") for text in bad]


def test_a_reply_of_the_form_may_leave_items_undecided() -> None:
    for text, kind in (("1: N/A\n2: ", "line"), ("1: N/A\n2:", "line"), ("2\n2", "pick")):
        assert form_flaw(text, 2, kind, (), 2) is None  # type: ignore[arg-type]
        assert None in read_items(text, 2, kind, (), 2).values  # type: ignore[arg-type]


def test_free_lines_are_bounded() -> None:
    constraint = items_constraint(1, "line", max_item_tokens=5)
    assert admits_each(constraint.lark, ["1: " + "x" * 20, "1: " + "x" * 21]) == [True, False]
    shorter = items_constraint(1, "line", max_item_tokens=5, max_text=8)
    assert admits_each(shorter.lark, ["1: " + "x" * 8, "1: " + "x" * 9]) == [True, False]
    assert shorter.json_form is not None
    assert shorter.json_form.schema["$defs"]["value"]["maxLength"] == 8


@pytest.mark.parametrize(
    ("kind", "said", "text"),
    [
        ("yes_no", {"1": "yes", "2": "no"}, "1: yes\n2: no"),
        ("label", {"2": 'say "no"', "1": "two lines"}, '1: two lines\n2: say "no"'),
        ("rating", {"1": 10, "2": 0}, "1: 10\n2: 0"),
        ("line", {"1": "a\nb", "2": "c"}, "1: a b\n2: c"),
        ("pick", {"items": [2]}, "2"),
    ],
)
def test_json_stands_for_the_same_lines(kind: ItemKind, said: Any, text: str) -> None:
    hard = () if kind == "rating" else HARD
    form = items_constraint(2, kind, hard, n_picks=1).json_form
    assert form is not None
    assert form.text_of(said) == text
    assert form_flaw(text, 2, kind, hard, 1) is None
    labels = hard and ('say "no"', "two\nlines")
    read = read_items(text, 2, kind, labels, 1)
    assert None not in read.values
    assert read == read_items(json.dumps(said), 2, kind, labels, 1)


@pytest.mark.parametrize(
    "said",
    [{"1": "yes"}, {"1": "yes", "2": "maybe"}, {"1": "yes", "2": "no", "3": "no"}, ["yes", "no"], {"1": "yes", "2": None}],
)  # fmt: skip
def test_json_of_another_shape_is_refused(said: Any) -> None:
    form = items_constraint(2, "yes_no").json_form
    assert form is not None
    with pytest.raises(ValueError, match=r"."):
        form.text_of(said)


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=5))
def test_any_labels_make_a_grammar(labels: list[str]) -> None:
    labels = [label for label in labels if label_line(label)]
    if not labels:
        return
    constraint = items_constraint(2, "label", tuple(labels))
    try:
        validate(constraint.lark)
    except UsageError as error:  # pragma: no cover
        raise AssertionError(labels) from error
    text = f"1: {label_line(labels[0])}\n2: {label_line(labels[-1])}"
    assert admits_each(constraint.lark, [text]) == [True]
    values = read_items(text, 2, "label", labels).values
    shown = [label_line(label) for label in labels]
    if len(set(shown)) == len(labels) and all(any(c.isalnum() for c in label) for label in shown):
        assert values == (labels[0], labels[-1])
