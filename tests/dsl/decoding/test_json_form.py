"""Plans as JSON: whatever conforms is a plan, whatever does not is a ValueError."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from llguidance import LLMatcher

from pearl.dsl.checker import compile_plan
from pearl.dsl.decoding.constraint import Constraint, JsonForm
from pearl.dsl.decoding.forms import (
    header_constraint,
    plan_constraint,
    steps_constraint,
    steps_form,
)
from pearl.dsl.parser import parse, read
from pearl.dsl.signatures import Action, ActionLibrary, Parameter, ValueType
from pearl.errors import LibraryError
from tests.dsl.decoding.test_grammar import SMALL
from tests.dsl.sampling import admits, sentence, typed_libraries
from tests.dsl.strategies import libraries
from tests.examples import examples

CTX = {"output": "CTX"}

KEYWORDS = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "anyOf", "$ref",
    "$defs", "pattern", "minItems", "maxItems", "minimum", "maximum", "maxLength",
}  # fmt: skip


def step(output: str, action: str, arguments: Any, purpose: str = "Do it") -> dict[str, Any]:
    return {"output": output, "action": action, "arguments": arguments, "purpose": purpose}


def linked(*steps: Any) -> Any:
    node = None
    for one in reversed(steps):
        node = {"step": one, "then": node}
    return {"plan": node}


def form_of(constraint: Constraint) -> JsonForm:
    assert constraint.json_form is not None
    return constraint.json_form


def sampled(form: JsonForm, seed: int) -> Any:
    grammar = LLMatcher.grammar_from_json_schema(json.dumps(form.schema))
    return json.loads(sentence(grammar, seed, stop=0.6))


def test_a_plan_is_a_linked_list() -> None:
    value = linked(
        step("v1", "FIND", {"CTX": CTX, "X": ['the "key"', 2.50, CTX]}),
        step("n1", "COUNT", {"ITEMS": {"output": "v1"}}, "Count: them"),
        step("n2", "DOUBLE", {"N": -1e-7}, " \n"),
        step("v2", "CONCAT", {"S1": {"output": "n1"}, "more": ["a\nb", {"output": "v1"}]}),
    )
    text = form_of(steps_constraint(SMALL, max_steps=4)).text_of(value)
    assert text == (
        '1. v1 = FIND(CTX, ["the \\"key\\"", 2.5, CTX]) : Do it\n'
        "2. n1 = COUNT(v1) : Count: them\n"
        "3. n2 = DOUBLE(-0.0000001) : DOUBLE\n"
        '4. v2 = CONCAT(n1, "a\\nb", v1) : Do it'
    )
    compile_plan(text, SMALL)


def test_a_blank_explanation_is_the_definition_of_the_action() -> None:
    library = ActionLibrary("one", [Action("NOW", (), "Say what\ntime it is")])
    form = form_of(steps_constraint(library, max_text=8))
    assert form.text_of(linked(step("v1", "NOW", {}, "\u00a0"))) == "1. v1 = NOW() : Say what"


def test_a_whole_plan_declares_first() -> None:
    value = {
        "new_actions": [
            {"name": "TELL", "parameters": "CTX, X", "definition": "Tell X"},
            {"name": "MIX", "parameters": "X, ...", "definition": ""},
        ],
        "steps": [
            step("told", "TELL", [CTX, "it"]),
            step("ans", "FIND", {"CTX": {"output": "told"}, "X": 3}),
        ],
    }
    text = form_of(plan_constraint(SMALL)).text_of(value)
    assert text == (
        "New actions:\n- TELL(CTX, X) : Tell X\n- MIX(X, ...) : MIX\n\n"
        '1. told = TELL(CTX, "it") : Do it\n2. ans = FIND(told, 3) : Do it'
    )
    compile_plan(text, SMALL)
    header = form_of(header_constraint(SMALL)).text_of({"new_actions": value["new_actions"]})
    assert text.startswith(header)
    assert form_of(header_constraint(SMALL)).text_of({"new_actions": []}).endswith("- None\n\n")


NOW = step("v1", "NOW", {})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "the value: an array is not of type object"),
        ({}, "the value: 'plan' is missing"),
        ({"plan": None}, "plan: None is not of type object"),
        (linked(NOW) | {"x": 1}, "'x' is not among plan"),
        (linked(step("v2", "NOW", {})), "'v2' is none of v1"),
        (linked(step("v1", "NEVER", {})), "plan.step.action: 'NEVER' is none of"),
        (linked(step("v1", "NOW", {"X": 1})), "'X' is not among nothing"),
        (linked(step("v1", "FIND", {"CTX": CTX})), "'X' is missing"),
        (
            linked(step("v1", "FIND", {"CTX": "x", "X": 1})),
            "arguments.CTX: 'x' is not of type object",
        ),
        (linked(step("n1", "DOUBLE", {"N": True})), "arguments.N"),
        (linked(step("n1", "DOUBLE", {"N": 10**400})), "so large a number is out of bounds"),
        (linked(step("n1", "DOUBLE", {"N": float("nan")})), "nan is out of bounds"),
        (
            linked(step("v1", "FIND", {"CTX": CTX, "X": 10**16})),
            "X: 10000000000000000 is out of bounds",
        ),
        (linked(step("n1", "DOUBLE", {"N": float("inf")})), "inf is out of bounds"),
        (linked(NOW, step("v2", "FIND", {"CTX": {"output": "v2"}, "X": 1})), "then"),
        (linked(*(step(f"v{i}", "NOW", {}) for i in range(1, 5))), "then"),
    ],
)
def test_what_does_not_conform_says_where(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]+$") as raised:
        form_of(steps_constraint(SMALL, max_steps=3)).text_of(value)
    assert message in str(raised.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from(["v1", "NOW", "FIND", "X", "CTX"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["plan", "step", "then", "output", "action", "arguments", "purpose", "CTX", "X",
             "new_actions", "steps", "name", "parameters", "definition", "other"]
        ),
        inner,
        max_size=5,
    ),
    max_leaves=12,
)  # fmt: skip

FORMS = [
    form_of(make(SMALL, max_steps=3, max_text=9)) for make in (steps_constraint, plan_constraint)
] + [form_of(header_constraint(SMALL, max_text=9))]


@given(st.data(), st.sampled_from(FORMS), st.integers(0, 20))
@examples(25)
def test_a_plan_with_one_part_changed_is_a_plan_or_a_value_error(
    data: st.DataObject, form: JsonForm, seed: int
) -> None:
    value = sampled(form, seed)
    places: list[tuple[Any, Any]] = []

    def walk(inner: Any) -> None:
        keys = (
            inner
            if isinstance(inner, dict)
            else range(len(inner))
            if isinstance(inner, list)
            else ()
        )
        for key in keys:
            places.append((inner, key))
            walk(inner[key])

    walk(value)
    inner, key = data.draw(st.sampled_from(places))
    inner[key] = data.draw(JSON)
    _is_as_jsonschema_says(value, form)


def _is_as_jsonschema_says(value: Any, form: JsonForm) -> None:
    try:
        text = form.text_of(value)
    except ValueError:
        text = None
    if _has_lone_float(value):
        return
    assert jsonschema.Draft202012Validator(form.schema).is_valid(value) is (text is not None)
    assert text is None or read(f"{text}1. v1 = NOW() : a" if text.endswith("\n") else text).plan


def _has_lone_float(value: Any) -> bool:
    """Whether there is what is no JSON: jsonschema lets a NaN pass every bound."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return True
    return False


@given(libraries() | typed_libraries(), st.integers(0, 2**32))
@examples(15)
def test_steps_that_conform_are_valid(library: ActionLibrary, seed: int) -> None:
    try:
        constraint = steps_constraint(library, max_steps=4, max_text=9)
    except LibraryError:
        assume(False)
    text = form_of(constraint).text_of(sampled(form_of(constraint), seed))
    compile_plan(text, library)
    assert admits(constraint.lark, text)


@given(libraries(), st.integers(0, 2**32))
@examples(8)
def test_whole_plans_that_conform_are_read(library: ActionLibrary, seed: int) -> None:
    constraint = plan_constraint(library, requires_new=True, max_steps=3, max_text=9)
    text = form_of(constraint).text_of(sampled(form_of(constraint), seed))
    parse(text)
    assert admits(constraint.lark, text)
    header = header_constraint(library, max_text=9)
    assert admits(header.lark, form_of(header).text_of(sampled(form_of(header), seed)))


@pytest.mark.parametrize("form", FORMS)
def test_schemas_use_what_every_decoder_takes(form: JsonForm) -> None:
    def check(schema: Any) -> None:
        assert set(schema) <= KEYWORDS
        for inner in [*schema.get("anyOf", []), *schema.get("$defs", {}).values()]:
            check(inner)
        if "items" in schema:
            check(schema["items"])
        if schema.get("type") == "object":
            assert schema["additionalProperties"] is False
            assert schema["required"] == list(schema["properties"])
            for inner in schema["properties"].values():
                check(inner)

    jsonschema.Draft202012Validator.check_schema(form.schema)
    check(form.schema)
    assert form.schema["type"] == "object"
    assert form.hint


def test_names_of_new_actions_are_none_of_the_library() -> None:
    form = form_of(header_constraint(SMALL))
    grammar = LLMatcher.grammar_from_json_schema(json.dumps(form.schema))

    def declares(name: str) -> bool:
        one = {"name": name, "parameters": "CTX, X", "definition": "Do"}
        return admits(grammar, json.dumps({"new_actions": [one]}))

    names = ("NEW", "FIND", "FIND_", "FINDER", "N", "NOW", "9", "None")
    assert [*filter(declares, names)] == ["NEW", "FIND_", "FINDER", "N", "None"]


def test_parameters_of_one_name_stay_apart() -> None:
    twice = Action("TWICE", (Parameter("more"), Parameter("more")), is_variadic=True)
    form = steps_form(ActionLibrary("odd", [twice]))
    value = linked(step("v1", "TWICE", {"more": 1, "more_": [2, 3]}))
    assert form.text_of(value) == "1. v1 = TWICE(1, 2, 3) : Do it"


def test_a_library_that_leaves_nothing_to_call() -> None:
    tables = Action("T", (Parameter("T", ValueType.TABLE),), returns=ValueType.TABLE)
    with pytest.raises(LibraryError, match="no action of the library can begin a plan"):
        steps_form(ActionLibrary("tables", [tables]))
