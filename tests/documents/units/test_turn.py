"""Turns: who speaks, until the next does; prose with colons is no conversation."""

from __future__ import annotations

import json

import pytest

from pearl.documents.units.turn import split
from tests.shared import shared


def turns(text: str) -> list[tuple[str, ...]]:
    return [(*piece.fields.values(), text[piece.start : piece.end]) for piece in split(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ann: Hi.\nBob: No:\n  never.\nAnn:\nFine.\nBob: So.",
         [("Ann", "Ann: Hi."), ("Bob", "Bob: No:\n  never."), ("Ann", "Ann:\nFine."), ("Bob", "Bob: So.")]),
        ("[doctor] hi , martha .\n[patient] okay .\n", [("doctor", "[doctor] hi , martha ."), ("patient", "[patient] okay .")]),
        ("Transcript of May 1\n\nDR. O'NEIL - Pain - where?\n\nMRS LEE – Here.\n\nDR. O'NEIL - I see.\n\nMRS LEE - Yes.",
         [("DR. O'NEIL", "DR. O'NEIL - Pain - where?"), ("MRS LEE", "MRS LEE – Here."), ("DR. O'NEIL", "DR. O'NEIL - I see."),
          ("MRS LEE", "MRS LEE - Yes.")]),
        ("[00:01:02] Ann Lee: Hi.\n[00:01:04] Bob: Yo.", [
            ("Ann Lee", "00:01:02", "[00:01:02] Ann Lee: Hi."), ("Bob", "00:01:04", "[00:01:04] Bob: Yo.")]),
        ("9:05 AM - Ann: Hi.\n(9:06 AM) Bob: Yo.", [
            ("Ann", "9:05 AM", "9:05 AM - Ann: Hi."), ("Bob", "9:06 AM", "(9:06 AM) Bob: Yo.")]),
        ("Ann (00:12): Hi.\nBob [00:13]: Yo.", [("Ann", "00:12", "Ann (00:12): Hi."), ("Bob", "00:13", "Bob [00:13]: Yo.")]),
        ("**Ann:** Hi.\n\n**Bob**: Yo.", [("Ann", "**Ann:** Hi."), ("Bob", "**Bob**: Yo.")]),
        ("Speaker 1: Hi.\nMary of York (guest): Yo.", [("Speaker 1", "Speaker 1: Hi."), ("Mary of York (guest)", "Mary of York (guest): Yo.")]),
        ("דנה: שלום\nיוסי: היי", [("דנה", "דנה: שלום"), ("יוסי", "יוסי: היי")]),
        ("田中：はい。\n鈴木：いいえ。", [("田中", "田中：はい。"), ("鈴木", "鈴木：いいえ。")]),
    ],
)  # fmt: skip
def test_every_form(text: str, expected: list[tuple[str, ...]]) -> None:
    assert turns(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "It rained.\nShe left.",
        "Ann: I was there.\nNobody else was.",
        "It went on.\nNote: the door was open.\nNobody saw it.\nWarning: do not go in.\nThey went in.",
        "ALLERGIES: None.\nMEDICATIONS: Aspirin.\nPLAN: Rest.",
        "Aspirin - 81 mg\nWarfarin - 5 mg\nHeparin - none",
        "https://example.org\nhttp://example.com",
        "12:30 went home\n13:00 came back",
    ],
)
def test_a_text_that_is_not_a_conversation_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no turns"):
        split(text)


def test_turns_may_be_long() -> None:
    speech = "It went on and on.\n" * 30
    text = "\n".join(f"{name}: Well.\n\n{speech}" for name in ("Ann", "Bob") * 3)
    with pytest.raises(
        ValueError, match="no turns"
    ):  # 6 of 186 lines, 6 of 12 paragraphs begin one
        split(text.replace("\n\n", "\n"))
    assert [piece.fields["Speaker"] for piece in split(text)] == ["Ann", "Bob"] * 3


def test_real_consultations() -> None:
    rows = json.loads(shared("medical/aci_bench_train.json").read_text(encoding="utf-8"))
    for row in rows["data"] if isinstance(rows, dict) else rows:
        text = row["src"]
        begun = [line for line in text.split("\n") if line.startswith("[")]
        found = turns(text)
        assert [said.split("\n")[0] for _, said in found] == [line.strip() for line in begun]
        assert [speaker for speaker, _ in found] == [line[1:].split("]")[0] for line in begun]
