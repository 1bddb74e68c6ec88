"""Action files: read, written, and everything that is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pearl.actions.library import format_library, load_library, read_actions, read_library
from pearl.dsl.nodes import print_action
from pearl.dsl.signatures import ActionLibrary, ValueType
from pearl.errors import DataError, LibraryError
from tests.dsl.strategies import libraries

GIVEN = (ValueType.TEXT, ValueType.LIST, ValueType.NUMBER, ValueType.BOOL)


@given(libraries(), st.sampled_from(GIVEN))
def test_a_printed_library_is_read_unchanged(library: ActionLibrary, gives: ValueType) -> None:
    library = ActionLibrary(
        "typed", [replace(action, returns=gives) for action in library.values()]
    )
    text = "".join(f"{print_action(action)}\n" for action in library.values())
    actions, found = read_actions(text)
    assert found == []
    assert [a.definition for a in actions] == [a.definition for a in library.values()]
    assert [a.signature for a in actions if not a.is_native] == [
        a.signature for a in library.values() if a.name != "CONCAT"
    ]
    assert {a.returns for a in actions if not a.is_native} <= {gives}
    assert format_library(text) == text


def test_an_unknown_type_is_named() -> None:
    text = "F(CTX) -> Lists : x"
    actions, found = read_actions(text)
    assert actions == []
    assert [(d.message, d.span.position(text)) for d in found] == [
        ("unknown type 'Lists'", (1, 11))
    ]
    assert "List" in (found[0].help or "")


def test_duplicates_and_drafts_are_returned_with_diagnostics() -> None:
    text = "FIND(CTX) :\nFIND(CTX) # x\nJOIN(S, S, ...)"
    actions, found = read_actions(text)
    assert [(a.name, a.definition) for a in actions] == [("FIND", ""), ("FIND", "x"), ("JOIN", "")]
    assert [(d.code, d.span.position(text)) for d in found] == [
        ("empty-definition", (1, 1)),
        ("duplicate-name", (2, 1)),
        ("empty-definition", (3, 1)),
        ("duplicate-name", (3, 1)),
    ]


def test_a_definition_may_end_in_a_colon() -> None:
    (action,), found = read_actions("FIND(CTX) : Return one of these (a):")
    assert (action.definition, found) == ("Return one of these (a):", [])


def test_a_broken_file_is_a_library_error_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.actions"
    path.write_text("# Mine\nFIND CTX) : x\nFIND(CTX : x y\n", encoding="utf-8")
    with pytest.raises(LibraryError, match=r"mine.actions:2: '\(' is missing") as caught:
        load_library(path)
    assert len(caught.value.diagnostics) == 2
    with pytest.raises(LibraryError, match="more than 5,000 actions"):
        read_library("".join(f"A{i}(CTX) : x\n" for i in range(5_001)), "many")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.actions"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="cannot be read as an action library"):
        load_library(path)
    with pytest.raises(DataError, match="did you mean 'quality'"):
        load_library("qualitie")
    with pytest.raises(DataError, match=r"libraries: (finance, )?medical, quality, seed"):
        load_library(tmp_path / "none")


def test_formatting_keeps_comments_and_evens_out_blanks() -> None:
    text = "\n# Mine  \n\n  FIND(CTX,X)#Find X\nCOUNT(ITEMS):\nJOIN(A, ...) : y  \n\n\n"
    formatted = "# Mine\n\nFIND(CTX, X) : Find X\nCOUNT(ITEMS)\nJOIN(A, ...) : y\n"
    assert format_library(text) == formatted
    assert format_library(formatted) == formatted


def test_formatting_refuses_unreadable_lines() -> None:
    with pytest.raises(LibraryError, match="'\\(' is missing") as caught:
        format_library("FIND(CTX) : x\nFIND CTX")
    assert caught.value.line == 2
