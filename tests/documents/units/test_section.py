"""Sections: headings of Markdown, numbered or in capitals, each with what stands below it."""

from __future__ import annotations

import json

import pytest

from pearl.documents.units.section import split
from tests.shared import shared


def sections(text: str) -> list[tuple[str, str]]:
    return [(piece.fields["Section"], text[piece.start : piece.end]) for piece in split(text)]


CONTRACT = """\
SERVICES AGREEMENT

This agreement begins on 1 May 2023.

ARTICLE IX
TERMINATION

9.1 Notice. Either party may end this agreement.
Section 4 of the law applies.
9.2 Without Cause.
The customer may end it: 30 days.

1. the first case,
2. the second case.

Section 10. Confidentiality

What is said stays.

11. GENERAL

11.1 The supplier keeps all records.

11.2 Prices rise by 1.5 % a year.

SCHEDULE A - Prices

None.
"""


def test_clauses_of_a_contract() -> None:
    assert sections(CONTRACT) == [
        ("SERVICES AGREEMENT", "SERVICES AGREEMENT\n\nThis agreement begins on 1 May 2023."),
        (
            "9.1 Notice",
            "ARTICLE IX\nTERMINATION\n\n9.1 Notice. Either party may end this agreement.\n"
            "Section 4 of the law applies.\n9.2 Without Cause.\nThe customer may end it: 30 days.\n\n"
            "1. the first case,\n2. the second case.",
        ),
        ("Section 10. Confidentiality", "Section 10. Confidentiality\n\nWhat is said stays."),
        ("11.1", "11. GENERAL\n\n11.1 The supplier keeps all records."),
        ("11.2", "11.2 Prices rise by 1.5 % a year."),
        ("SCHEDULE A - Prices", "SCHEDULE A - Prices\n\nNone."),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Before.\n# One\na\n## Two ##\nb\n", [("", "Before."), ("One", "# One\na"), ("Two", "## Two ##\nb")]),
        ("# One\n## Two\na\n# Three\n# Four\n", [("Two", "# One\n## Two\na"), ("Three", "# Three"), ("Four", "# Four")]),
        ("```\n# no heading\n```\n# Yes\na #1\n#hash\n1. item", [("", "```\n# no heading\n```"), ("Yes", "# Yes\na #1\n#hash\n1. item")]),
        ("One\n===\na\n\nTwo\n---\nb\n\n---\nc", [("One", "One\n===\na"), ("Two", "Two\n---\nb\n\n---\nc")]),
        ("| a | b |\n|---|---|\n# Real\nx", [("", "| a | b |\n|---|---|"), ("Real", "# Real\nx")]),
        ("ARTICLE IX\n\nTERMINATION\n\nIt ends.\nNow.", [("ARTICLE IX TERMINATION", "ARTICLE IX\n\nTERMINATION\n\nIt ends.\nNow.")]),
        ("§ 4 Kündigung\n\nEs endet.\n\n§ 5 Preise\n\nKeine.", [("§ 4 Kündigung", "§ 4 Kündigung\n\nEs endet."), ("§ 5 Preise", "§ 5 Preise\n\nKeine.")]),
        ("PLAN: Rest.\nALLERGIES: None.\nDone.", [("PLAN", "PLAN: Rest."), ("ALLERGIES", "ALLERGIES: None.\nDone.")]),
        ("A. Facts\nIt fell.\n\nB. Law\nNone applies.", [("A. Facts", "A. Facts\nIt fell."), ("B. Law", "B. Law\nNone applies.")]),
        ("It rained for days on end, on the hills and on the town.\n\nD. Statement of facts\n\nIt fell.", [("", "It rained for days on end, on the hills and on the town."), ("D. Statement of facts", "D. Statement of facts\n\nIt fell.")]),
        ("She came on Monday for her heart, and for her lungs, too.\n\nMedication on discharge\n\n- A 5 mg\n- B 10 mg", [("", "She came on Monday for her heart, and for her lungs, too."), ("Medication on discharge", "Medication on discharge\n\n- A 5 mg\n- B 10 mg")]),
        ("Diet\n\n- Soup\n\nFollow-up\n\nIn a week.", [("Diet", "Diet\n\n- Soup"), ("Follow-up", "Follow-up\n\nIn a week.")]),
        ("NAME: Ada\nBORN: 1950\n\nShe came.\n\nPLAN: Rest.\n\nReturn.", [("NAME", "NAME: Ada"), ("BORN", "BORN: 1950"), ("", "She came."), ("PLAN", "PLAN: Rest.\n\nReturn.")]),
        ("PLAN: ,1.  Rest.,2.  Soup.,ALLERGIES,1.  Gold, DVT, 1,000 mg.,VITALS:  Fine.", [
            ("PLAN", "PLAN: ,1.  Rest.,2.  Soup.,"), ("ALLERGIES", "ALLERGIES,1.  Gold, DVT, 1,000 mg.,"), ("VITALS", "VITALS:  Fine."),
        ]),
        ("1 Introduction\n\nIt rains.\n\n2 Methods\n\nWe look.", [("1 Introduction", "1 Introduction\n\nIt rains."), ("2 Methods", "2 Methods\n\nWe look.")]),
    ],
)  # fmt: skip
def test_every_form(text: str, expected: list[tuple[str, str]]) -> None:
    assert sections(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "It rained.\nShe left.",
        "To buy:\n\n1. Milk\n2. Bread\n3. Salt",
        "1. Milk\n\n2. Bread\n\n3. Salt",
        "page one\n\n12\n\npage two\n\n13\n\n1.5 million came.\n\n2 people left.",
        "ALL OF IT IS SHOUTED\n\nFROM THE FIRST LINE\n\nTO THE LAST ONE\n\nand so on",
        "Invoice: 4711\nVAT ID: DE 12\nIBAN: DE 89\n\nWe sent twelve pumps.",
        "Thank you for the boat.\n\nYours sincerely\n\nAda Lund\n\nP.S. It leaks.",
        "It was so.\n\nJ. Smith\n\nHe said that it was so, and that it had been so for as long as he knew.",
        "Which?\n\nA. Paris\n\nB. Rome\n\nC. Oslo\n\nChoose one.",
        "A word-for-word translation.\n\nIllustrated by Schoenherr\n\nThe cell had been put together more efficiently than any.",
        "Section 4 of the law applies.\n\nPart of it is new.\n\nI came.",
    ],
)
def test_a_text_without_headings_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no sections"):
        split(text)


def test_real_notes() -> None:
    rows = json.loads(shared("medical/aci_bench_train.json").read_text(encoding="utf-8"))
    for row in rows["data"] if isinstance(rows, dict) else rows:
        text = row["tgt"]
        stand_alone = [
            part.strip().removesuffix(":")
            for part in text.split("\n\n")
            if part.strip().isupper() and "\n" not in part.strip()
        ]
        found = [piece.fields["Section"] for piece in split(text)]
        assert [name for name in found if name in stand_alone] == stand_alone


def test_a_title_on_top_is_not_the_only_heading() -> None:
    """Found in a lease with a Markdown title, which was one section."""
    text = "# Lease\n\n1. Parties\n\nAda lets it to Otto.\n\n2. Rent\n\nOtto pays 300 EUR.\n"
    assert sections(text) == [
        ("1. Parties", "# Lease\n\n1. Parties\n\nAda lets it to Otto."),
        ("2. Rent", "2. Rent\n\nOtto pays 300 EUR."),
    ]
    assert [title for title, _ in sections("# Notes\n\n1. One thing,\n2. another thing.\n")] == [
        "Notes"
    ]
