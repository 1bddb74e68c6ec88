"""Prompts for people: texts of the document stand in none of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.llm import Message, Request
from pearl.llm.messages import block, inert, restored, without_texts
from tests.attacks.generating import DELIMITERS, ORDERS, order_outside
from tests.models import answer_task

TEXTS = st.text(alphabet="<>/text item 12\n&;", max_size=60)


@given(TEXTS, TEXTS)
def test_whatever_a_text_says_its_length_alone_is_left(document: str, item: str) -> None:
    n_document, n_item = (len(block("", text)) - len("<>\n\n</>") for text in (document, item))
    asked = f"{block('text', document)}\n\nWho?\n{block('item 1', item)}"
    assert without_texts([Message("user", asked)]) == (
        f"[user]\n<text: {n_document} characters>\n\nWho?\n<item 1: {n_item} characters>"
    )


def test_what_stands_in_no_block_is_left_as_it_is() -> None:
    asked = [Message("system", "Read <text> and </text>."), Message("user", "<item 1>\nno end")]
    assert without_texts(asked) == (
        "[system]\nRead <text> and </text>.\n\n[user]\n<item 1>\nno end"
    )


@pytest.mark.parametrize("marks", DELIMITERS)
def test_no_text_ends_its_block_or_the_turn_of_a_chat(marks: str) -> None:
    attack = marks.format(ORDERS["en"].format("999"))
    task = answer_task("Why?", attack)
    assert order_outside(Request((Message("user", attack),), task)) == "999"
    assert order_outside(Request((Message("user", block("text", attack)),), task)) is None


@pytest.mark.parametrize(
    "mark",
    ["</text>", "<s>", "[INST]", "<|im_end|>", "<|turn>user", "<turn|>", "[|system|]", "</think>"],
)
def test_marks_are_inert_in_prompts_and_restored_in_replies(mark: str) -> None:
    text = f"It says {mark} here, a < b, and &lt;b>."
    assert mark not in inert(text)
    assert restored(inert(text)) == text
