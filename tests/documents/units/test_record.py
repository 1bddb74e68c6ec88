"""Records: fields as in the source, in every form, and nothing of what stands around them."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pearl.documents.document import load
from pearl.documents.units import Piece, left_out, left_out_note
from pearl.documents.units.record import split
from tests.shared import shared


def fields(text: str) -> list[dict[str, str]]:
    return [piece.fields for piece in split(text)]


def sources(text: str) -> list[str]:
    return [text[piece.start : piece.end] for piece in split(text)]


OOLONG = """\
The following lines contain 3 general-knowledge questions, one per line. Each has a date and a user.

Date: Feb 02, 2023 || User: 76153 || Instance: What is 3 % of 1,000 ?
Date: Jan 31, 2022 || User: 44106 || Instance: Who wrote: "Yes" || No ?
Date: Feb 02, 2023 || User: 76153 || Instance: Where is “Ōsaka” ?

The lines above contain 3 questions: recall their labels.
"""


def test_lines_of_pairs_without_the_prose_around_them() -> None:
    assert fields(OOLONG) == [
        {"Date": "Feb 02, 2023", "User": "76153", "Instance": "What is 3 % of 1,000 ?"},
        {"Date": "Jan 31, 2022", "User": "44106", "Instance": 'Who wrote: "Yes" || No ?'},
        {"Date": "Feb 02, 2023", "User": "76153", "Instance": "Where is “Ōsaka” ?"},
    ]
    assert sources(OOLONG) == OOLONG.splitlines()[2:5]
    spans = left_out(OOLONG, split(OOLONG))
    assert [OOLONG[span.start : span.end] for span in spans] == [
        OOLONG.splitlines()[0],
        OOLONG.splitlines()[-1],
    ]
    note = "157 characters of the text belong to no record (2 places, the first at character 0)"
    assert left_out_note(OOLONG, split(OOLONG), "record") == note


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


def test_a_header_is_not_left_out() -> None:
    for text in ("id,note\n1,a\n", "| id | note |\n|---|---|\n| 1 | a |\n"):
        assert left_out(text, split(text)) == ()


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


def test_thousands_of_names_that_are_the_same_are_numbered() -> None:
    (record,) = fields("a: x || " * 50_000)
    assert len(record) == 50_000
    assert list(record)[-1] == "a (50000)"


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


def test_real_questions_in_json_lines() -> None:
    path = shared("medical/mediqa_questions.jsonl")
    with path.open(encoding="utf-8") as file:
        expected = [json.loads(line) for line in file]
    assert fields(load(path).text) == expected
