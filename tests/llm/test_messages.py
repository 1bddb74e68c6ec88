"""Prompts for people: texts of the document stand in none of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pearl.llm import Message
from pearl.llm.messages import block, without_texts

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
