"""Reasoning is separated from a reply; what only mentions its marks is left alone."""

from __future__ import annotations

import pytest

from pearl.replies.raw import without_reasoning

HARMONY = "<|channel|>analysis<|message|>So 3.<|end|><|start|>assistant<|channel|>final<|message|>3"


@pytest.mark.parametrize(
    ("reply", "text", "reasoning"),
    [
        ("<think>So 3.</think>\n\n3", "3", "So 3."),
        ("<think>\n\n</think>\n\n3", "3", ""),
        ("<THINK>So 3.</THINK>3", "3", "So 3."),
        ("<think> So 3. </think> 3", "3", "So 3."),
        ('<think duration="3">So 3.</think>3', "3", "So 3."),
        ("<thinking>\nSo 3.\n</thinking>\n3", "3", "So 3."),
        ("<reasoning>So 3.</reasoning>\n3", "3", "So 3."),
        ("<thought>So 3.</thought>3", "3", "So 3."),
        ("<seed:think>So 3.</seed:think>3", "3", "So 3."),
        ("[THINK]So 3.[/THINK]3", "3", "So 3."),
        ("◁think▷So 3.◁/think▷3", "3", "So 3."),
        ("<|START_THINKING|>So 3.<|END_THINKING|><|START_RESPONSE|>3<|END_RESPONSE|>", "3", "So 3."),
        ("<|channel>thought\nSo 3.<channel|>3", "3", "So 3."),
        ("<|begin_of_thought|>So 3.<|end_of_thought|>\n3", "3", "So 3."),
        (HARMONY, "3", "So 3."),
        (f"{HARMONY}<|return|>", "3", "So 3."),
        ("analysisSo 3.assistantfinal3", "3", "analysisSo 3."),
        ("So 3.\n</think>\n\n3", "3", "So 3."),
        ("okay, so 3</think>3", "3", "okay, so 3"),
        ("So 3 </think>\n3", "3", "So 3"),
        ("<think>a</think>\n<think>b</think>\n3", "3", "a\nb"),
        ("<think>a <think>b</think> c</think>3", "3", "a\nb\nc"),
        ("<think>I close it with `</think>` later.</think>3", "3", "I close it with `</think>` later."),
        ("- a dog\n<think>\n- a cat?\n</think>\n- a fox", "- a dog\n\n- a fox", "- a cat?"),
        ("<think>So 3.</think><answer>3</answer>", "3", "So 3."),
        ("<think>a</think>Perhaps 3.</think>", "", "a\nPerhaps 3."),
        ("<think>a</think>\nOr 3?\n<think>b</think>\n3", "3", "a\nOr 3?\nb"),
        ("<think>So 3.</think>", "", "So 3."),
        ("So 3.\n</think>", "", "So 3."),
        ("<answer>3</answer>", "3", ""),
        ("So 3.\n<answer>\n3\n</answer>", "3", "So 3."),
        ("A dog.<think>So 3.</think>", "A dog.", "So 3."),
        # special tokens
        ("3</s>", "3", ""),
        ("<s> 3 </s>", "3", ""),
        ("3<|eot_id|><|endoftext|>", "3", ""),
        ("3<｜end▁of▁sentence｜>", "3", ""),
        ("[EOS]", "", ""),
    ],
)  # fmt: skip
def test_reasoning_and_special_tokens_are_removed(reply: str, text: str, reasoning: str) -> None:
    assert without_reasoning(reply) == (text, reasoning, False)


@pytest.mark.parametrize(
    "reply",
    [
        "<think>So 3", "<think>So 3.\n\n3", "a dog\n<thinking>\nor a cat", "[THINK]So", "◁think▷So",
        "<|channel|>analysis<|message|>So 3", "<think>a</think>\n<think>b",
    ],
)  # fmt: skip
def test_reasoning_without_an_end_leaves_no_reply(reply: str) -> None:
    split = without_reasoning(reply)
    assert (split.text, split.is_unclosed) == ("", True)


@pytest.mark.parametrize(
    "reply",
    [
        "The tags <think> and </think> enclose the thoughts.",
        "The model writes `<think>` first, then `</think>`.",
        "Answer: <think>So 3.</think>3",
        '{"answer": "It ends with </think>"}',
        "It prints <think>x</think> first.",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get:0<|tool_call_end|>",
        "The model marks its thoughts.\n> <think> comes first\n> The reply follows </think>",
        "> <think>This is a quote.</think>",
        "He saw [THINK] on the wall.",
        "The text was <s>old</s> and is new",
        "An assistant finally came. I think <b>so</b>.",
        "a < b",
        "assistant",
        "Thinking...",
        "<details><summary>Sales</summary>3</details>",
    ],
)  # fmt: skip
def test_marks_that_are_mentioned_are_text(reply: str) -> None:
    assert without_reasoning(reply) == (reply, "", False)
