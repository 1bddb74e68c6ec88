"""Plans as JSON: whatever conforms is a plan, whatever does not is a ValueError."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llguidance import LLMatcher

from pearl.actions.operators import with_operators
from pearl.dsl.checker import compile_plan
from pearl.dsl.decoding.constraint import JsonForm
from pearl.dsl.decoding.forms import plan_constraint, plan_form
from pearl.dsl.parser import parse, read
from pearl.dsl.signatures import Action, ActionLibrary, Parameter
from tests.dsl.decoding.test_grammar import SMALL
from tests.dsl.sampling import admits, sentence
from tests.dsl.strategies import libraries
from tests.examples import examples

CTX = {"output": "CTX"}

KEYWORDS = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "anyOf", "$ref",
    "$defs", "pattern", "minItems", "maxItems", "minimum", "maximum", "maxLength",
}  # fmt: skip


def step(output: str, action: str, arguments: Any, purpose: str = "Do it") -> dict[str, Any]:
    return {"output": output, "action": action, "arguments": arguments, "purpose": purpose}


def whole(*steps: Any) -> dict[str, Any]:
    """A plan without new actions."""
    return {"new_actions": [], "steps": list(steps)}


def sampled(form: JsonForm, seed: int) -> Any:
    grammar = LLMatcher.grammar_from_json_schema(json.dumps(form.schema))
    return json.loads(sentence(grammar, seed, stop=0.6))


def test_the_schema_of_a_library_keeps_its_order() -> None:
    """The keys of stored plans have the text of the schema."""
    names = [*plan_form(SMALL).schema["$defs"]]
    n_actions = sum(name.startswith("a") and name[1].isdigit() for name in names)
    assert names[:2] == ["name", "new"]
    assert names[2 + n_actions :][:2] == ["array", "text"]
    assert all(name[1].isdigit() for name in names[2 : 2 + n_actions])


def test_a_plan_is_a_list_of_steps() -> None:
    value = whole(
        step("v1", "FIND", {"CTX": CTX, "X": ['the "key"', 2.50, CTX]}),
        step("n1", "COUNT", {"ITEMS": {"output": "v1"}}, "Count: them"),
        step("n2", "DOUBLE", {"N": -1e-7}, " \n"),
        step("v2", "CONCAT", {"S1": {"output": "n1"}, "more": ["a\nb", {"output": "v1"}]}),
    )
    text = plan_form(SMALL).text_of(value)
    assert text == (
        "New actions:\n- None\n\n"
        '1. v1 = FIND(CTX, ["the \\"key\\"", 2.5, CTX]) : Do it\n'
        "2. n1 = COUNT(v1) : Count: them\n"
        "3. n2 = DOUBLE(-0.0000001) : DOUBLE\n"
        '4. v2 = CONCAT(n1, "a\\nb", v1) : Do it'
    )
    compile_plan(text, SMALL)


def test_a_blank_explanation_is_the_definition_of_the_action() -> None:
    library = ActionLibrary("one", [Action("NOW", (), "Say what\ntime it is")])
    form = plan_form(library, max_text=8)
    assert form.text_of(whole(step("v1", "NOW", {}, "\u00a0"))).endswith("1. v1 = NOW() : Say what")


def test_the_answer_is_composed_of_outputs() -> None:
    known = with_operators(SMALL)
    form = plan_form(known)
    now = step("v1", "NOW", {})

    def composed(*results: Any) -> dict[str, Any]:
        question, first, *more = "When?", *results
        given = {"QUESTION": question, "R1": first, "more": more}
        return whole(now, step("answer", "ANSWER", given))

    text = form.text_of(composed({"output": "v1"}, {"output": "v1"}))
    assert text.endswith('2. answer = ANSWER("When?", v1, v1) : Do it')
    compile_plan(text, known)
    with pytest.raises(ValueError, match="R1"):
        form.text_of(composed("noon"))


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
    text = plan_form(SMALL).text_of(value)
    assert text == (
        "New actions:\n- TELL(CTX, X) : Tell X\n- MIX(X, ...) : MIX\n\n"
        '1. told = TELL(CTX, "it") : Do it\n2. ans = FIND(told, 3) : Do it'
    )
    compile_plan(text, SMALL)


NOW = step("v1", "NOW", {})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], 'the value: [] is not of type "object"'),
        ({}, 'the value: "new_actions" is a required property'),
        (whole(None), 'steps.0: null is not of type "object"'),
        (whole(NOW) | {"x": 1}, "('x' was unexpected)"),
        (whole(step("2nd", "NOW", {})), 'steps.0.output: "2nd" does not match'),
        (whole(step("v1", "NOW", {"X": 1})), "steps.0"),
        (whole(step("v1", "FIND", {"CTX": CTX})), '"X" is a required property'),
        (whole(step("v1", "FIND", {"CTX": "x", "X": 1})), 'arguments.CTX: "x" is not of type "object"'),
        (whole(step("n1", "DOUBLE", {"N": True})), "arguments.N"),
        (whole(step("n1", "DOUBLE", {"N": 10**400})), "is greater than the maximum"),
        (whole(step("n1", "DOUBLE", {"N": float("nan")})), "arguments.N"),
        (whole(step("v1", "FIND", {"CTX": CTX, "X": 10**16})), "X: 10000000000000000 is greater than"),
        (whole(step("n1", "DOUBLE", {"N": float("inf")})), "arguments.N"),
        (whole(*(step(f"v{i}", "NOW", {}) for i in range(4))), "has more than 3 items"),
    ],
)  # fmt: skip
def test_what_does_not_conform_says_where(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]+$") as raised:
        plan_form(SMALL, max_steps=3).text_of(value)
    assert message in str(raised.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from(["v1", "NOW", "FIND", "X", "CTX"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["output", "action", "arguments", "purpose", "CTX", "X",
             "new_actions", "steps", "name", "parameters", "definition", "other"]
        ),
        inner,
        max_size=5,
    ),
    max_leaves=12,
)  # fmt: skip

FORM = plan_form(SMALL, max_steps=3, max_text=9)


@given(st.data(), st.integers(0, 20))
@examples(25)
def test_a_plan_with_one_part_changed_is_a_plan_or_a_value_error(
    data: st.DataObject, seed: int
) -> None:
    value = sampled(FORM, seed)
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
    try:
        text = FORM.text_of(value)
    except ValueError:
        text = None
    if _has_lone_float(value):
        return
    assert jsonschema.Draft202012Validator(FORM.schema).is_valid(value) is (text is not None)
    assert text is None or read(text).plan


def _has_lone_float(value: Any) -> bool:
    """Whether there is what is no JSON: jsonschema lets a NaN pass every bound."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return True
    return False


@given(libraries(), st.integers(0, 2**32))
@examples(8)
def test_whole_plans_that_conform_are_read(library: ActionLibrary, seed: int) -> None:
    constraint = plan_constraint(library, requires_new=True, max_steps=3, max_text=9)
    form = constraint.json_form
    assert form is not None
    text = form.text_of(sampled(form, seed))
    parse(text)
    assert admits(constraint.lark, text)


def test_schemas_use_what_every_decoder_takes() -> None:
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

    jsonschema.Draft202012Validator.check_schema(FORM.schema)
    check(FORM.schema)
    assert FORM.schema["type"] == "object"
    assert FORM.hint


def test_names_of_new_actions_are_none_of_the_library() -> None:
    grammar = LLMatcher.grammar_from_json_schema(json.dumps(plan_form(SMALL).schema))

    def declares(name: str) -> bool:
        one = {"name": name, "parameters": "CTX, X", "definition": "Do"}
        return admits(grammar, json.dumps({"new_actions": [one], "steps": [NOW]}))

    names = ("NEW", "FIND", "FIND_", "FINDER", "N", "NOW", "9", "None")
    assert [*filter(declares, names)] == ["NEW", "FIND_", "FINDER", "N", "None"]


def test_parameters_of_one_name_stay_apart() -> None:
    twice = Action("TWICE", (Parameter("more"), Parameter("more")), is_variadic=True)
    form = plan_form(ActionLibrary("odd", [twice]))
    value = whole(step("v1", "TWICE", {"more": 1, "more_": [2, 3]}))
    assert form.text_of(value).endswith("1. v1 = TWICE(1, 2, 3) : Do it")
