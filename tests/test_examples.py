"""Examples of the small functions that readers, tables, evidence and replies share."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from pearl.data import rows, storage
from pearl.data.samples import letter
from pearl.data.schemas import load_schema
from pearl.documents import comparisons, marks, numbers, table
from pearl.documents.digest import DigestTable, keys_after
from pearl.documents.document import page_ranges
from pearl.documents.evidence.standing import is_telling
from pearl.documents.lexicon import singular
from pearl.documents.readers import not_read
from pearl.documents.rows import document_fields, unused_name
from pearl.documents.table.totals import names_total
from pearl.documents.units.record import below_headers
from pearl.documents.words import shared_words
from pearl.dsl.fields import Field
from pearl.dsl.signatures import ValueType
from pearl.replies.raw import json_objects, says_not_stated
from pearl.replies.step_replies import begun
from pearl.tables.columns import number_in, word_form
from pearl.tables.lookup import declined
from pearl.tables.specification import Arithmetic

ADDRESSES = "s3://reviews/2024", "reviews/2024", "https://example.org"
ENTRY = '{"entries": [{"entry": "a dog", "quote": "A dog."}'


@pytest.mark.parametrize(
    ("function", "given", "expected"),
    [
        (comparisons.are_mostly, ("number", ["7", "", "8 mg", "none"]), True),
        (comparisons.are_mostly, ("date", ["7", "8"]), False),
        (page_ranges, ([3, 7, 8, 9],), "pages 3, 7-9"),
        (singular, ("categories",), "category"),
        (singular, ("users",), "user"),
        (singular, ("is",), "is"),
        (is_telling, (Field("sum", "number"), Decimal("1315.63")), True),
        (is_telling, (Field("sum", "number"), Decimal("2.5")), True),
        (is_telling, (Field("sum", "number"), Decimal("54")), False),
        (marks.raised, ("2",), "²"),
        (marks.raised, ("-6",), "⁻⁶"),
        (marks.raised, ("1,2",), "^(1,2)"),
        (marks.raised, ("a",), "^(a)"),
        (marks.raised, ("th",), "th"),
        (marks.raised, ("[3]",), "[3]"),
        (marks.raised, ("*",), "*"),
        (marks.lowered, ("2",), "₂"),
        (marks.lowered, ("i1",), "_(i1)"),
        (marks.list_number, (4, "i"), "iv"),
        (marks.list_number, (28, "upperLetter"), "BB"),
        (marks.list_number, (7, "decimalZero"), "07"),
        (numbers.is_bound, ("less than $5",), True),
        (numbers.is_bound, (">5",), True),
        (numbers.is_bound, ("about $5",), False),
        (
            not_read,
            ({"footnote": 2, "chart": 1, "comment": 0},),
            ("not read: 2 footnotes, 1 chart",),
        ),
        (
            document_fields,
            ("a.txt", {"year": "2008", "Document": "b"}),
            {"Document": "a.txt", "year": "2008", "Document (2)": "b"},
        ),
        (unused_name, ("rank", {"rank": "3"}), "rank (2)"),
        (
            table.same_columns_note,
            (["2023", "2024", "2023"],),
            "rows of 2 tables with the same columns: 2023; 2024",
        ),
        (names_total, ("Total revenue",), True),
        (names_total, ("Zwischensumme:",), True),
        (names_total, ("Totality",), False),
        (below_headers, ("User: 7 || Text: yes\nUser: 9 || Text: no",), []),
        (shared_words, ("a small red boat", "the boat"), 0.5),
        (word_form, ("h&c, modi'in-re'ut",), " h c modiin reut "),
        (number_in, ("$ (1,315)",), (-1315, "$")),
        (number_in, ("12.5%",), (12.5, "%")),
        (number_in, ("much",), None),
        (declined, ("Undecided: 'cheap' is of no column",), "'cheap' is of no column"),
        (
            str,
            (Arithmetic(multiply=("Units", Arithmetic(add=("Price", 1)))),),
            "Units * (Price + 1)",
        ),
        (json_objects, ('The parts {two}: {"a": 1}, or {"a": 2}',), [{"a": 1}, {"a": 2}]),
        (says_not_stated, ("Nothing found: no such dog.",), True),
        (says_not_stated, ("Nothing found, but a cat.",), False),
        (says_not_stated, ("Nothing happened.",), False),
        (
            begun,
            ('{"answer": "He fled. She st', ValueType.TEXT, lambda said: said[:8]),
            '{"answer": "He fled."}',
        ),
        (begun, (f'{ENTRY}, {{"entry": "a c', ValueType.LIST, str), f"{ENTRY}]}}"),
        (rows.kind, ([1],), "an array"),
        (letter, (2,), "C"),
    ],
)
def test_result(function: Callable[..., Any], given: tuple[Any, ...], expected: object) -> None:
    assert function(*given) == expected


def test_digests() -> None:
    assert keys_after(["a"])(b"b") == keys_after(["a"])(b"b") != keys_after(["b"])(b"b")
    numbered = DigestTable()
    assert [numbered.add(b"a"), numbered.add(b"b"), numbered.add(b"a")] == [1, 1, 2]
    assert (numbered[b"a"], numbered[b"c"]) == (2, 0)


def test_columns_and_names_of_data() -> None:
    row = rows.Row({"text": "Who?", "a": "I", "b": "you"}, "q.csv", 2)
    mapping = {"question": "text", "options": "a,b"}
    (named,) = rows.rename([row], mapping, ["question", "options"])
    assert isinstance(named, rows.Row)
    assert named.fields == {"question": "Who?", "options": ["I", "you"]}
    names, claims = rows.Names(), [("0a", "a", 1), ("0a", "b", 2), ("0b", "a", 3)]
    assert [names.claim(*claim) for claim in claims] == ["a", "a", "a, line 3"]
    fields = load_schema("patient, address: {city: str}").fields
    assert [field.name for field in fields] == ["patient", "address.city"]
    assert [storage.is_address(name) for name in ADDRESSES] == [True, False, False]
