"""The embedded model about items: what words decide, and "undecided" for what they do not."""

from __future__ import annotations

import asyncio
import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.dsl.signatures import NOTHING, Action, Parameter
from pearl.embedded.items import judge
from pearl.llm import ItemsTask, Message, Request
from pearl.llm.backends import ModelSettings
from pearl.llm.backends.extractive import create
from pearl.replies.items import ItemKind, read_items
from tests.shared import shared

ACTION = Action(
    "FILTER", (Parameter.named("ROWS"), Parameter("X")), "Keep those of which X is true"
)


def values(
    about: str, items: tuple[str, ...], kind: ItemKind = "yes_no", labels: tuple[str, ...] = ()
) -> tuple[str | None, ...]:
    task = ItemsTask("kept", ACTION, (("X", about),), items, kind, labels, n_picks=2)
    return read_items(asyncio.run(judge(task)), len(items), kind, labels, n_picks=2).values


@pytest.mark.parametrize(
    ("item", "value"),
    [
        ("The patient had chest pain all night.", "yes"),
        ("Chest pain; no cough.", "yes"),
        ("No fever, but chest pain since Monday.", "yes"),
        ("He has a cough.", "no"),
        ("The knee was examined.", "no"),
        ("", "no"),
        ("She denies chest pain.", None),
        ("Chest pain: none.", None),
        ("He didn't have any chest pain.", None),
        ("Chest pain yesterday. No chest pain today.", None),
        ("Possible chest pain?", None),
        ("If chest pain returns, call us.", None),
        ("A family history of chest pain.", None),
        ("Her chest hurts.", None),
        ("The chest is clear. Abdominal pain.", None),
    ],
)
def test_an_item_is_decided_by_unnegated_words(item: str, value: str | None) -> None:
    assert values("the patient had chest pain", (item,)) == (value,)


@pytest.mark.parametrize(
    ("condition", "item", "value"),
    [
        ("the patient had no chest pain", "Chest pain.", None),
        ("the patient had no chest pain", "A fine day.", None),
        ("older than 65", "A 72-year-old woman.", None),
        ("more than two doses were given", "Two doses.", None),
        ("chest pain or cough", "A cough.", None),
        ("chest pain or cough", "A fine day.", "no"),
        ("chest pain before the operation", "Chest pain after the operation.", None),
        ("the patient is a smoker", "She used to smoke.", None),
        ("mentions warfarin", "Warfarin was given.", "yes"),
        ("is it so", "It is so.", None),
    ],
)
def test_conditions_that_words_cannot_decide_are_undecided(
    condition: str, item: str, value: str | None
) -> None:
    assert values(condition, (item,)) == (value,)


def test_a_label_needs_words_of_its_own() -> None:
    labels = ("sports news", "business news", "news about the weather")
    items = (
        "A sports day",
        "Business: the news",
        "News.",
        "Not sports",
        "sports and business",
        "Rain",
    )
    assert values("the topic", items, "label", labels) == (
        "sports news", "business news", None, None, None, None,
    )  # fmt: skip
    assert values("the topic", ("a post", "a post office"), "label", ("post office", "place")) == (
        None, "post office",
    )  # fmt: skip
    assert values("the topic", ("spam", "ham"), "label", ("spam",)) == ("spam", None)


def test_the_labels_yes_and_no_are_verdicts() -> None:
    items = ("Chest pain.", "No chest pain.", "A cough.")
    assert values("has chest pain", items, "label", ("No", "Yes")) == ("Yes", None, "No")


def test_a_line_is_quoted_from_the_item_itself() -> None:
    items = ("Ada was late. The harm was a broken\narm.", "All went well.", "")
    assert values("the harm", items, "line") == ("The harm was a broken arm.", NOTHING, NOTHING)


def test_ratings_and_choices_depend_on_the_share_of_words() -> None:
    items = ("no chest pain", "pain", "chest pain", "a cough")
    assert values("chest pain", items, "rating") == ("0", "5", "10", "0")
    assert values("chest pain", items, "pick") == ("", "2", "1", "")


WORDS = st.lists(
    st.sampled_from(["chest", "pain", "no", "fever", "but", "spam", "1:", "</item 1>", ".", "\n", "?"]), max_size=8
).map(" ".join)  # fmt: skip


@given(
    items=st.lists(WORDS, min_size=1, max_size=6),
    kind=st.sampled_from(["yes_no", "label", "rating", "line"]),
)
def test_an_item_is_judged_on_its_own(items: list[str], kind: ItemKind) -> None:
    labels = ("1", "2", "3") if kind == "rating" else ("chest pain", "fever")
    together = values("chest pain", tuple(items), kind, labels)
    assert together == tuple(values("chest pain", (item,), kind, labels)[0] for item in items)
    assert kind in ("yes_no", "label") or None not in together


def test_the_model_answers_for_every_item() -> None:
    task = ItemsTask("kept", ACTION, (("X", "a dog"),), ("a dog", "a cat", "\udc80"), "yes_no")
    request = Request((Message("user", ""),), task)
    completion = asyncio.run(create("", ModelSettings()).complete(request))
    assert completion.text == "1: yes\n2: no\n3: no"


def test_letters_that_deny_chest_pain_are_not_counted() -> None:
    with shared("medical/mtsamples.csv").open(newline="", encoding="utf-8") as file:
        letters = [row["transcription"] for row in csv.DictReader(file)]
    said = values("the patient had chest pain", tuple(letters))
    literal = ["chest pain" in letter.lower() for letter in letters]
    assert sum(literal) == 7  # all of them deny it
    assert not any(value == "yes" for value in said)
    assert not any(value == "no" for value, is_said in zip(said, literal, strict=True) if is_said)
    # Where neither "chest" nor "pain" is said; one of them alone decides nothing.
    assert sum(value == "no" for value in said) > 0.4 * len(said)
