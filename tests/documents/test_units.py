"""Units: entries, records, sections, turns and windows."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pearl.documents.document import Document, from_text, join, load
from pearl.documents.units import Piece, entry, left_out, window
from pearl.documents.units._plain import (
    split_documents,
    split_lines,
    split_pages,
    split_paragraphs,
    split_sentences,
)
from pearl.documents.units.record import split
from pearl.documents.units.section import split as split_of_section
from pearl.documents.units.turn import split as split_of_turn
from tests.documents.readers.test_pdf import make_pdf
from tests.shared import shared


def texts(text: str) -> list[str]:
    return [text[piece.start : piece.end] for piece in entry.split(text)]


WRAPPED = (
    "The ferry stopped running in the autumn of that year because the new\n"
    "bridge had been opened. Nobody was sorry for it, not even in the Upper\n"
    "Town, where they had always paid the fare.\n"
)
STANZA = "Ann Lee\n12 Mill Road\nOslo\n\nBob Ray\n3 High Street\nBergen\n\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # records, though what introduces them is longer than one
        ("These are two entries, each with what a user wrote:\n\nUser: 1 || Text: yes, I did\n"
         "User: 2 || Text: no, I did not\n", ["User: 1 || Text: yes, I did", "User: 2 || Text: no, I did not"]),
        ("id,text\n1,a\n2,b\n", ["1,a", "2,b"]),
        ("Date,User\n2023-01-02,Ann\n", ["2023-01-02,Ann"]),
        ("| a | b |\n|---|---|\n| some words | other words |\n", ["| some words | other words |"]),
        ("Smith,John\nDoe,Jane\n", ["Smith,John", "Doe,Jane"]),
        # turns
        ("Ann: Hi.\nHello?\nBob: Yo.\nAnn: So.\nBob: Yes.", ["Ann: Hi.\nHello?", "Bob: Yo.", "Ann: So.", "Bob: Yes."]),
        # items
        ("- one,\n  still one\n  - within\n- two\n\n  still two\n- three", [
            "- one,\n  still one\n  - within", "- two\n\n  still two", "- three"]),
        ("1) one\n2) two", ["1) one", "2) two"]),
        # lines
        ("bread\nmilk\nsalt", ["bread", "milk", "salt"]),
        ("It rained.\nShe left.\n\nIt was late.", ["It rained.", "She left.", "It was late."]),
        ("Three lines:\n\n" + "\n".join(f"line number {n} is here" for n in range(30)) + "\n\nThe end.",
         ["Three lines:", *(f"line number {n} is here" for n in range(30)), "The end."]),
        ("Come in, he said\nSit down, she said\nBe still, they said", ["Come in, he said", "Sit down, she said", "Be still, they said"]),
        ("one", ["one"]),
        # paragraphs
        (STANZA * 2, [part for part in (STANZA * 2).split("\n\n") if part]),
        (WRAPPED, [WRAPPED.strip()]),
        (f"{WRAPPED}\n{WRAPPED}", [WRAPPED.strip()] * 2),
        (f"{WRAPPED}\n- one\n- two\n\n{WRAPPED}", [WRAPPED.strip(), "- one\n- two", WRAPPED.strip()]),
    ],
)  # fmt: skip
def test_the_first_matching_form_gives_the_entries(text: str, expected: list[str]) -> None:
    assert texts(text) == expected


def test_a_line_with_two_colons_does_not_make_prose_records() -> None:
    text = f"{WRAPPED}\nTel: 12 | Fax: 34\n\n{WRAPPED}\n{WRAPPED}"
    assert len(texts(text)) == 4


def test_paragraphs_may_be_long_lines() -> None:
    text = ("It was late. " * 20).strip()
    assert len(split_paragraphs(f"{text}\n{text}\nShort.")) == 3
    assert len(split_paragraphs(WRAPPED)) == 1


def test_only_a_line_feed_ends_a_line() -> None:
    assert len(split_lines("a\u2028b\x85c\x1cd\n\n \ne")) == 2
    assert len(split_sentences("It rained. She left.")) == 2


def test_documents_are_the_files_that_were_joined() -> None:
    both = join([from_text("one\n\n# b\n\n", "a"), from_text(" two ", "b")])
    pieces = split_documents(both.text, both.parts)
    assert [(both.text[a:b], fields) for a, b, fields in pieces] == [
        ("one\n\n# b", {"Document": "a"}),
        ("two", {"Document": "b"}),
    ]
    assert [fields for _, _, fields in split_documents("one")] == [{}]


def pages(document: Document) -> list[tuple[str, str]]:
    pieces = split_pages(document.text, document.pages)
    return [(fields["Page"], document.text[a:b]) for a, b, fields in pieces]


def test_pages_of_a_pdf_keep_their_numbers(tmp_path: object) -> None:
    file = make_file(tmp_path, make_pdf([[], ["The first."], [], ["The", "second."], []]))
    document = load(file)
    assert pages(document) == [("2", "The first."), ("4", "The\nsecond.")]
    assert document.text == "\nThe first.\n\nThe\nsecond."
    assert pages(join([document, from_text("no pages", "b"), document]))[0] == ("2", "The first.")


def make_file(folder: object, data: bytes) -> str:
    path = f"{folder}/a.pdf"
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(data)
    return path


def test_form_feeds_end_pages() -> None:
    document = from_text("one\r\n\ftwo\f\fthree\f")
    assert document.text == "one\n\ntwo\n\nthree\n"
    assert pages(document) == [("1", "one"), ("2", "two"), ("4", "three")]


def fields(text: str) -> list[dict[str, str]]:
    return [piece.fields for piece in split(text)]


def sources(text: str) -> list[str]:
    return [text[piece.start : piece.end] for piece in split(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Name: Ann | Age: 30\nName: Bob | Age:\n", [{"Name": "Ann", "Age": "30"}, {"Name": "Bob", "Age": ""}]),
        ("Name: Ann\tAge: 30\n- Name: Bob\tAge: 41", [{"Name": "Ann", "Age": "30"}, {"Name": "Bob", "Age": "41"}]),
        ("1. A: 1 || B: x\nmore\n\n2. A: 2 || B: y\nend", [{"A": "1", "B": "x"}, {"A": "2", "B": "y"}]),
        ("A: 1 || B: x\nmore\nA: 2 || B: y\nend", [{"A": "1", "B": "x\nmore"}, {"A": "2", "B": "y"}]),
        ("A: 1 || A: 2 || A: 3", [{"A": "1", "A (2)": "2", "A (3)": "3"}]),
        ("text: x || count: 1 || http://a.b || it said that there is one: y",
         [{"text": "x", "count": "1 || http://a.b || it said that there is one: y"}]),
        ("שם: דנה || גיל: 30", [{"שם": "דנה", "גיל": "30"}]),
        ("A: a\u2028b\x85c || B: e\u0301", [{"A": "a\u2028b\x85c", "B": "e\u0301"}]),
        # blocks
        ("Some people.\n\nName: Ann\nBorn in: 1990\n\nName: Bob\nNote: one\n  and two\nTel: 5\n\nThat is all.",
         [{"Name": "Ann", "Born in": "1990"}, {"Name": "Bob", "Note": "one\n  and two", "Tel": "5"}]),
        ("Q: Why?\nA: So.\n\nQ: When?\nA:\nNow.", [{"Q": "Why?", "A": "So."}, {"Q": "When?", "A": "Now."}]),
        ("Incident 1\nDate: 2 May\nReport: It stood. Nobody saw.\n\nIncident 2\nDate: 3 May\nReport: It ran.",
         [{"Date": "2 May", "Report": "It stood. Nobody saw."}, {"Date": "3 May", "Report": "It ran."}]),
        # cells
        ("id,date,note\n1,2/3/2023,\"a, \"\"b\"\"\nc\"\n2,,\n", [
            {"id": "1", "date": "2/3/2023", "note": 'a, "b"\nc'}, {"id": "2", "date": "", "note": ""}]),
        ("Here they are:\n\nname; age\nAnn; 30\nBob; 41\n\nThat is all, or is it?",
         [{"name": "Ann", "age": "30"}, {"name": "Bob", "age": "41"}]),
        ("a\tb\n\"x\" y\t5\" pipe\n1\t\n", [{"a": '"x" y', "b": '5" pipe'}, {"a": "1", "b": ""}]),
        (",name,name\n0,Ann,Lee\n", [{"column 1": "0", "name": "Ann", "name (2)": "Lee"}]),
        ("a,b,c\n1,2\n3,4,5\n6,7,8,9, 10\n0,0,0\n", [
            {"a": "1", "b": "2", "c": ""}, {"a": "3", "b": "4", "c": "5"}, {"a": "6", "b": "7", "c": "8,9, 10"},
            {"a": "0", "b": "0", "c": "0"}]),
        ("a|b\n1|2", [{"a": "1", "b": "2"}]),
        ("a,b\n1,2\n3,4\nTwo rows in all.", [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]),
        # JSON
        ('{"a": 1.50, "b": "x\\n\\u00e9", "c": null, "d": true, "e": {"f": [1.0]}}\n{"a": -0}\n', [
            {"a": "1.50", "b": "x\né", "c": "", "d": "true", "e": '{"f": [1.0]}'}, {"a": "-0"}]),
        ('[{"a": 1}, {"a": 2}]', [{"a": "1"}, {"a": "2"}]),
        ('The rows:\n[\n  {\n    "a": [\n      1\n    ]\n  },\n  {"a": 2}\n]\nThe end.',
         [{"a": "[\n      1\n    ]"}, {"a": "2"}]),
        ('{"a": 1, "a": 2}', [{"a": "1", "a (2)": "2"}]),
        ('{"text": "x", "count": 12345678901234567890.10}', [{"text": "x", "count": "12345678901234567890.10"}]),
        ('{"a": 1}\n{"a": 2\n{"a": 3}', [{"a": "1"}, {"a": "3"}]),
        ('{"a": "\\ud800"}', [{"a": "\ufffd"}]),
        ('{"\\ud83d\\ude00": NaN}', [{"😀": "NaN"}]),
        # Markdown
        ("# Prices\n\n| what | price |\n|:--|--:|\n| a \\| b | 1,50 € |\n| c |\n| d | 2 | or 3 |\n\nSee below.", [
            {"what": "a | b", "price": "1,50 €"}, {"what": "c", "price": ""}, {"what": "d", "price": "2 | or 3"}]),
        ("a | b\n--- | ---\n1 | 2\n\n| c |\n|---|\n| 3 |", [{"a": "1", "b": "2"}, {"c": "3"}]),
    ],
)  # fmt: skip
def test_every_form(text: str, expected: list[dict[str, str]]) -> None:
    assert fields(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "word",
        "It rained, and she left.\nIt was late, and he slept.\nNobody came, nobody called.\nThen, at ten, it ended.",
        "One case of many\nDate: 2 May\nReport: It stood.\n\nAnother one\nPlace: York\nReport: It ran.",
        "He said: no.\n\nShe said: yes, of course.\n\nThen they left: both of them.",
        "It rained. " * 20 + "\n\nName: Ann | Age: 30\n\n" + "And so it went on and on. " * 20,
        "1,2\n3,4",
        "one, two, three, four",
        "[1, 2, 3]",
        "| a | b |\n| :: | -- |\n| 1 | 2 |",
        '{"a": 1} is an object.',
        "{" * 5000,
        '{"a":' * 5000,
    ],
)
def test_a_text_without_records_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no records"):
        split(text)


def test_only_the_row_with_an_unclosed_quote_is_read_as_it_stands_or_left_out() -> None:
    text = 'id,note\n1,a\n2,"b\n3,c\n4,"d" e\n5,"f,g\n6,h\n'
    pieces = split(text)
    assert [piece.fields["id"] for piece in pieces] == ["1", "2", "3", "4", "6"]
    assert [piece.fields["note"] for piece in pieces] == ["a", '"b', "c", '"d" e', "h"]
    assert [text[span.start : span.end] for span in left_out(text, pieces)] == ['5,"f,g']


@pytest.mark.parametrize("name", ["No.", '"Paid, if at all?"', "x" * 300, "Reply exactly «999»."])
def test_a_long_name_in_the_first_line_leaves_the_rows_below_it_as_they_are(name: str) -> None:
    """A row is not taken for the header, so that no count is one too low."""
    pieces = split(f"Crate,{name},State\nK1,salt,new\nK2,iron,old\nK3,rope,new\n")
    assert [next(iter(piece.fields.values())) for piece in pieces] == ["K1", "K2", "K3"]


def test_a_value_of_a_megabyte_is_read() -> None:
    value = "x, y || " * 125_000
    assert fields(f'id,note\n1,"{value}"\n')[0]["note"] == value.strip()
    assert fields(json.dumps({"id": 1, "note": value}))[0]["note"] == value
    assert fields(f"id: 1 || note: {value}")[0]["note"] == value.strip()


KEYS = st.text("abcXYZéשб", min_size=1, max_size=8)
VALUES = st.text(
    st.one_of(
        st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), st.sampled_from('":,|{}[]')
    )
)


def tables(values: st.SearchStrategy[str]) -> st.SearchStrategy[list[dict[str, str]]]:
    """Rows with the same two fields or more; the first is a number."""
    names = st.lists(KEYS, min_size=1, max_size=4, unique_by=str.casefold)

    def rows(names: list[str]) -> st.SearchStrategy[list[dict[str, str]]]:
        row = st.fixed_dictionaries(
            {"Id": st.integers(0, 99).map(str), **dict.fromkeys(names, values)}
        )
        return st.lists(row, min_size=2, max_size=6)

    return names.flatmap(rows)


@given(tables(VALUES.map(str.strip)))
def test_json_lines_come_back(rows: list[dict[str, str]]) -> None:
    text = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    assert fields(text) == rows
    assert sources(text) == text.split("\n")
    assert fields(json.dumps(rows, indent=2)) == rows


@given(tables(VALUES.map(str.strip)), st.sampled_from(",;\t"))
def test_csv_comes_back(rows: list[dict[str, str]], delimiter: str) -> None:
    for row in rows:
        assume(all(value == value.strip(" ") for value in row.values()))
    file = io.StringIO()
    quoting = csv.QUOTE_ALL
    writer = csv.DictWriter(
        file, list(rows[0]), delimiter=delimiter, quoting=quoting, lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(rows)
    assert fields(file.getvalue()) == rows


@given(tables(VALUES.filter(lambda value: "|" not in value).map(str.strip)))
def test_pairs_and_markdown_come_back(rows: list[dict[str, str]]) -> None:
    lines = "\n".join(
        " || ".join(f"{name}: {value}" for name, value in row.items()) for row in rows
    )
    assert fields(lines) == rows
    table = [
        "| " + " | ".join(cells) + " |"
        for cells in [rows[0].keys(), *([row[name] for name in rows[0]] for row in rows)]
    ]
    assume(not any("\\" in line for line in table))
    table.insert(1, "|---" * len(rows[0]) + "|")
    assert fields("\n".join(table)) == rows


def test_real_reports_are_read_as_python_reads_them() -> None:
    path = shared("medical/mtsamples.csv")
    csv.field_size_limit(2**31 - 1)
    with path.open(newline="", encoding="utf-8") as file:
        expected = [
            {name: value.strip() for name, value in row.items()} for row in csv.DictReader(file)
        ]
    document = load(path)
    pieces: list[Piece] = split(document.text)
    assert [piece.fields for piece in pieces] == expected
    assert left_out(document.text, pieces) == ()


def sections(text: str) -> list[tuple[str, str]]:
    return [
        (piece.fields["Section"], text[piece.start : piece.end]) for piece in split_of_section(text)
    ]


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
def test_every_form_section(text: str, expected: list[tuple[str, str]]) -> None:
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
        split_of_section(text)


def test_real_notes() -> None:
    rows = json.loads(shared("medical/aci_bench_train.json").read_text(encoding="utf-8"))
    for row in rows["data"] if isinstance(rows, dict) else rows:
        text = row["tgt"]
        stand_alone = [
            part.strip().removesuffix(":")
            for part in text.split("\n\n")
            if part.strip().isupper() and "\n" not in part.strip()
        ]
        found = [piece.fields["Section"] for piece in split_of_section(text)]
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


def turns(text: str) -> list[tuple[str, ...]]:
    return [
        (*piece.fields.values(), text[piece.start : piece.end]) for piece in split_of_turn(text)
    ]


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
def test_every_form_turn(text: str, expected: list[tuple[str, ...]]) -> None:
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
        split_of_turn(text)


def test_a_turn_may_be_long() -> None:
    speech = "It went on and on.\n" * 30
    text = "\n".join(f"{name}: Well.\n\n{speech}" for name in ("Ann", "Bob") * 3)
    assert [speaker for speaker, _ in turns(text)] == ["Ann", "Bob"] * 3
    # 6 of 186 lines, 6 of 12 paragraphs begin one
    with pytest.raises(ValueError, match="no turns"):
        split_of_turn(text.replace("\n\n", "\n"))


def test_real_consultations() -> None:
    rows = json.loads(shared("medical/aci_bench_train.json").read_text(encoding="utf-8"))
    for row in rows["data"] if isinstance(rows, dict) else rows:
        text = row["src"]
        begun = [line for line in text.split("\n") if line.startswith("[")]
        found = turns(text)
        assert [said.split("\n")[0] for _, said in found] == [line.strip() for line in begun]
        assert [speaker for speaker, _ in found] == [line[1:].split("]")[0] for line in begun]


BITS = st.sampled_from(["a", " ", "bb ", "\n\n", "é ", "x" * 15, "y" * 40, "   ", "\u2028"])


@given(st.lists(BITS, max_size=60).map("".join), st.integers(1, 30), st.data())
def test_windows_cover_all_words_and_overlap_by_at_most_the_given_length(
    text: str, size: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    if not text.strip():
        return
    last, covered = 0, set()
    for start, end, _ in window.split(text, (), size, overlap):
        assert 0 < end - start <= size
        assert end > last
        assert last - start <= overlap
        assert not text[start].isspace()
        assert not text[end - 1].isspace()
        last = end
        covered.update(range(start, end))
    assert all(text[i].isspace() or i in covered for i in range(len(text)))


def test_a_window_has_eleven_hundred_characters_and_shares_three_hundred() -> None:
    places = {"a " * 1_000: [(0, 1_099), (800, 1_899), (1_600, 1_999)],
              "a " * 100 + "x" * 2_500 + " b" * 100: [(0, 199), (200, 1_300), (1_300, 2_400), (2_400, 2_900)]}  # fmt: skip
    assert {
        text: [(start, end) for start, end, _ in window.split(text)] for text in places
    } == places


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (5, 5), (5, 6), (5, -1)])
def test_invalid_window_sizes_are_refused(size: int, overlap: int) -> None:
    with pytest.raises(ValueError, match="cannot overlap by"):
        window.split("one two", (), size, overlap)
