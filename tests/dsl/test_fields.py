"""The short form of fields, alone and in plans."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.actions.library import load_library
from pearl.actions.operators import with_operators
from pearl.dsl.checker import compile_plan, mend_plan
from pearl.dsl.fields import TYPES, Field, labels_flaw, name_flaw, parse_fields, print_fields
from pearl.dsl.nodes import Reference, String
from pearl.errors import PlanError
from pearl.planner.prompt_selection import extraction_plan
from tests.dsl.strategies import AWKWARD, string_values
from tests.examples import examples

LIBRARY = with_operators(load_library("seed"))

SHORT = st.text(st.sampled_from(AWKWARD + "abAB_検שé|?"), max_size=6)
NAMES = st.one_of(st.sampled_from(["a", "b", "dose_mg", "first name", "名前"]), SHORT)
NAMES = NAMES.filter(lambda name: not name_flaw(name))
SCALARS = st.one_of(
    st.builds(Field, st.just(""), st.sampled_from(TYPES)),
    st.lists(st.one_of(SHORT, st.sampled_from([*TYPES, "yes", "null"])), min_size=1, max_size=4)
    .filter(lambda labels: not labels_flaw(labels))
    .map(lambda labels: Field("", "label", labels=tuple(labels))),
)


def named(
    fields: st.SearchStrategy[Field], paths: st.SearchStrategy[str]
) -> st.SearchStrategy[list[Field]]:
    """Lists of these fields with names, optional or not, some with descriptions."""
    one = st.builds(
        lambda field, name, is_optional, description: Field(
            name, field.type, is_optional, field.labels, description, field.is_list, field.fields
        ),
        fields, paths, st.booleans(), st.one_of(st.just(""), SHORT, string_values),
    )  # fmt: skip
    return st.lists(one, min_size=1, max_size=4).filter(are_different)


def are_different(fields: list[Field]) -> bool:
    names = [field.name for field in fields]
    return len(set(names)) == len(names) and not any(
        other.startswith(f"{name}.") for name in names for other in names
    )


PATHS = st.lists(NAMES, min_size=1, max_size=2).map(".".join)
LISTS = st.one_of(
    SCALARS.map(lambda field: Field("", field.type, labels=field.labels, is_list=True)),
    named(SCALARS, PATHS).map(lambda fields: Field("", is_list=True, fields=tuple(fields))),
)


@examples(400)
@given(named(st.one_of(SCALARS, LISTS), PATHS))
def test_what_is_printed_reads_the_same(fields: list[Field]) -> None:
    text = print_fields(fields)
    assert parse_fields(text) == tuple(fields)
    plan = extraction_plan(fields, reply_tokens=500)
    assert compile_plan(str(plan), LIBRARY).plan == plan.plan


def test_the_short_form() -> None:
    text = """patient, age: int? (at admission, in years (whole)),
        address: {city: str, 'zip code': str?}? (postal),
        drugs: [{name: str, dose: {mg: number}}], notes: [text]?,
        smoker: yes|no|'not asked',"""
    postal = "postal"
    assert parse_fields(text) == (
        Field("patient"),
        Field("age", "int", True, description="at admission, in years (whole)"),
        Field("address.city", "str", True, description=postal),
        Field("address.zip code", "str", True, description=postal),
        Field("drugs", is_list=True, fields=(Field("name"), Field("dose.mg", "number"))),
        Field("notes", "text", True, is_list=True),
        Field("smoker", "label", labels=("yes", "no", "not asked")),
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", ""), ("a b", "b"), ("a,, b", ","), (": int", ":"), ("a: {b: int, : str}", ":"),
        ("a: {}", "{"), ("a: [{}]", "{"), ("a: []", "]"), ("a: [[str", "["), ("a: [str?]", "?"), ("a: [[]]", "]"), ("a: strng", "strng"),
        ("a: int|null", "int"), ("a: x|X", "x"), ("a: x|", ""), ("a: ''", "''"), ("a, a", "a"),
        ("a, a: {b}", "a"), ("a.b, a", "a"), ("a: {b: {c}, b: {c}}", "b"), ("a?: int", ":"),
        ("first-name", "first-name"), ("'a.b'", "'a.b'"), ("'a", "'"), ("a (b", "("),
        ("a: int)", ")"), ("a}", "}"), ("a: {b", "{"), ("a: [int", "["), (".".join("abcdefghijklmnopqr"), "a"),
        ("".join(f"{c}: [{{" for c in "abcdefghijklmnopq") + "r: int", "["), ("a: " + "[" * 18, "["),
        (", ".join(f"a{i}: [{{x, y}}]" for i in range(2_501)), "a0"),
        ('a: int {"minimum": }', "{"), ('a: int {"least": 1}', "{"), ('a: str {"pattern": "(?=a)"}', "{"),
        ('a: str {"pattern": "["}', "{"), ('a: str {"maxLength": -1}', "{"),
        (f'a: str {{"pattern": "{"a" * 1_001}"}}', "{"),
    ],
)  # fmt: skip
def test_an_error_names_its_place(text: str, place: str) -> None:
    with pytest.raises(PlanError) as caught:
        parse_fields(text)
    (diagnostic,) = caught.value.diagnostics
    assert text[diagnostic.span.start : diagnostic.span.end].startswith(place)
    assert len(str(caught.value).splitlines()) <= 3
    assert text.rfind(place) >= diagnostic.span.start


@pytest.mark.parametrize(
    ("call", "place"),
    [
        ('EXTRACT(CTX, "a: yes|no (so \\"said\\"), b: strng")', "strng"),
        ('EACH_EXTRACT(rows, "a: strng")', "strng"),
        ('EXTRACT_ALL(CTX, "a, b: [str]")', '"a, b: [str]"'),
        ("EXTRACT(CTX, rows)", "rows"),
        ('EXTRACT(CTX, ["a"])', '["a"]'),
        ("EXTRACT(CTX, CTX)", "CTX"),
    ],
)
def test_an_error_in_a_plan_stands_at_its_place(call: str, place: str) -> None:
    text = f'1. rows = SPLIT(CTX, "line") : Split\n2. a = {call} : Extract'
    with pytest.raises(PlanError) as caught:
        compile_plan(text, LIBRARY)
    (diagnostic,) = caught.value.diagnostics
    assert text[diagnostic.span.start : diagnostic.span.end] == place


def test_names_that_need_quotes_are_mended() -> None:
    plan = """1. a = EXTRACT(CTX, "x (\\"x\\"), first-name, rows: [{a}]") : Extract"""
    mended, _ = mend_plan(plan, LIBRARY)
    assert mended == plan.replace("first-name", "'first-name'")
    compile_plan(mended, LIBRARY)


@pytest.mark.parametrize(
    ("n_tokens", "groups"),
    [
        (10_000, ["a: str, b: int, c: [{d: str, e: str}], f: [str], g: str"]),
        (600, ["a: str, b: int", "c: [{d: str, e: str}]", "f: [str], g: str"]),
        (1, ["a: str", "b: int", "c: [{d: str, e: str}]", "f: [str]", "g: str"]),
    ],
)
def test_fields_are_in_one_step_if_the_reply_fits(n_tokens: int, groups: list[str]) -> None:
    plan = extraction_plan(
        parse_fields("a, b: int, c: [{d, e}], f: [str], g"), reply_tokens=n_tokens
    )
    assert [step.arguments for step in plan.plan.steps] == [
        (Reference("CTX"), String(group)) for group in groups
    ]
    assert len(set(plan.outputs)) == len(groups)
