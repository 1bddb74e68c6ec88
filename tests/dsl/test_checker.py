"""Checking: nothing undefined passes, everything wrong is said at once, mends never guess."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.actions.library import load_library, read_library
from pearl.actions.operators import with_operators
from pearl.dsl.checker import MAX_STEPS, check, compile_plan, diagnose, mend_plan
from pearl.dsl.nodes import CTX, Plan, Reference, Step, print_plan
from pearl.dsl.parser import parse, read
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import PlanCheckError
from tests.dsl.strategies import broken_texts, libraries, valid_plans

LIBRARY = read_library(
    "FIND(CTX, X) : a\nFIND_EVENT(CTX, X) : a\nSUMMARIZE(CTX) : a\nCONCAT(S1, S2, ...) : a\n"
    "COUNT(ITEMS) : a\nUNIQUE(ITEMS) : a\nSUM(NUMBERS) : a\nFIRST(ITEMS) : a\n",
    "test",
)


def codes(text: str, library: ActionLibrary = LIBRARY, **settings: int) -> list[str]:
    found = diagnose(read(text), library, **settings)
    return [d.code for d in found if d.code != "joins-answer"]


@given(st.data(), libraries())
def test_a_valid_plan_passes_and_defines_every_name_it_uses(
    data: st.DataObject, library: ActionLibrary
) -> None:
    plan = data.draw(valid_plans(library))
    checked = check(plan, library)
    defined = {CTX}
    for step in checked.plan.steps:
        assert {reference.name for reference in step.references()} <= defined
        assert step.output not in defined
        assert checked.action(step).accepts(len(step.arguments))
        defined.add(step.output)
    used = {r.name for step in plan.steps for r in step.references()}
    assert set(checked.outputs) == {step.output for step in plan.steps} - used
    assert checked.outputs  # there is always an answer


@pytest.mark.parametrize(
    ("sources", "steps", "expected"),
    [
        ("- rules : the rules", "ans = FIND(rules, CTX)", []),
        ("- rules", 'ans = FIND(rule, "x")', ["unused-source", "undefined-name"]),
        ("- rules : a\n- rules : b", 'ans = FIND(rules, "x")', ["duplicate-name"]),
        ("- CTX : a", 'ans = FIND(CTX, "x")', ["duplicate-name"]),
        ("- ans : a", 'ans = FIND(ans, "x")', ["duplicate-name"]),
        ("- rules : a\n- other : b", 'ans = FIND(rules, "x")', ["unused-source"]),
        ("- the rules : a", 'ans = FIND(CTX, "x")', ["syntax"]),
    ],
)
def test_a_declared_source_is_read_as_ctx_is(sources: str, steps: str, expected: list[str]) -> None:
    text = f"Sources:\n{sources}\n\nNew actions:\n- None\n\n1. {steps} : Find it"
    assert codes(text) == expected
    if not expected:
        assert str(compile_plan(text, LIBRARY)) == text
    undeclared = text.partition("\n\n")[2]
    known = parse(f"Sources:\n- rules : a\n\n{undeclared}").sources
    if "(rules" in steps:  # as a planner writes it
        assert str(compile_plan(undeclared, LIBRARY, sources=known)).startswith("Sources:\n- rules")


@given(broken_texts())
def test_mending_ends_and_its_result_reads_the_same_again(text: str) -> None:
    mended, applied = mend_plan(text, LIBRARY)
    assert mend_plan(mended, LIBRARY)[0] == mended
    if mended != read(text).text:
        assert applied
    else:
        assert applied == []


def test_errors_point_into_the_text_that_comes_with_them() -> None:
    plan = parse("5. a = FIND(CTX,b): x")
    with pytest.raises(PlanCheckError) as caught:
        check(plan, LIBRARY)
    (error,) = caught.value.diagnostics
    assert caught.value.text == print_plan(plan)
    assert caught.value.text[error.span.start : error.span.end] == "b"
    by_hand = Plan((Step("a", "FIND", (Reference("CTX"), Reference("b")), "x"),))
    with pytest.raises(PlanCheckError) as caught:
        check(by_hand, LIBRARY)
    (error,) = caught.value.diagnostics
    assert caught.value.text[error.span.start : error.span.end] == "b"


def test_the_declaration_of_the_plan_is_used_where_the_library_has_the_name_too() -> None:
    text = "New actions:\n- FIND(CTX) : mine\n\n1. a = FIND(CTX) : x"
    checked = compile_plan(text, LIBRARY)
    assert checked.actions["FIND"].definition == "mine"
    (note,) = checked.notes
    assert (note.code, note.severity) == ("shadowed-action", "note")
    assert note.help == "the plan's own declaration is used, not FIND(CTX, X)"


@pytest.mark.parametrize(
    ("call", "is_valid"),
    [
        ("SUMMARIZE(CTX)", True),
        ("SUMMARIZE(text)", True),  # an output may stand for the document
        ("SUMMARIZE(items)", True),
        ("SUMMARIZE(number)", False),
        ('SUMMARIZE("text")', False),
        ("SUMMARIZE([text])", False),
        ("COUNT(text)", True),  # it is read as a list when it is there
        ("COUNT(items)", True),
        ("COUNT(number)", False),
        ("COUNT(CTX)", False),
        ('COUNT("a; b")', False),
        ("COUNT(3)", False),
        ('COUNT(["a", text, 3])', True),
        ("CONCAT(number)", True),  # everything can be shown as text
        ("CONCAT(items, 3, CTX)", True),
        ('FIND(CTX, ["a", items])', True),
    ],
)
def test_types(call: str, is_valid: bool) -> None:
    text = (
        '1. text = FIND(CTX, "x") : x\n2. items = UNIQUE(text) : x\n3. number = COUNT(items) : x\n'
        f"4. a = {call} : x"
    )
    assert codes(text) == ([] if is_valid else ["wrong-type"])


def test_too_many_steps_is_one_error_and_ends_the_checking() -> None:
    steps = [f"{i}. a{i} = NOPE(b) : x" for i in range(1, 50)]
    found = codes("\n".join(steps))
    assert found.count("too-many-steps") == 1
    assert found.count("unknown-action") == MAX_STEPS
    assert (
        codes("\n".join(f"{i}. a{i} = SUMMARIZE(CTX) : x" for i in range(1, 4)), max_steps=3) == []
    )


@pytest.mark.parametrize(
    "text",
    [
        '1. a = FIND_EVIDENCE(CTX, "x") : x',
        '1. a1 = FIND(CTX, "x") : x\n2. b = CONCAT(a1, a2) : x',
        '1. cause = FIND(CTX, "x") : x\n2. b = CONCAT(cause, causes) : x',
        "1. b = SUMMARIZE(Key) : x\n2. key = SUMMARIZE(CTX) : x",
        '1. cause = FIND(CTX, "x") : x\n2. b = SUMMARIZE(Cause) : x\n3. Cause = FIND(CTX, "y") : x',
        '1. man_a = FIND(CTX, "x") : x\n2. b = CONCAT(man_b) : x',
    ],
)
def test_what_may_be_meant_otherwise_is_not(text: str) -> None:
    assert mend_plan(text, LIBRARY) == (text, [])
    assert any(d.help for d in diagnose(read(text), LIBRARY) if d.severity == "error")


def test_a_short_name_with_a_letter_more_is_another_word() -> None:
    text = '1. all = FIND(CTX, "x") : x\n2. b = LEAST(all) : x'
    assert mend_plan(text, read_library("FIND(CTX, X) : a\nLAST(ITEMS) : a\n", "test"))[0] == text


REFERRING = (
    "{key}", "{{key}}", "${key}", "$key", "<key>", "[key]", "{ key }", "{CTX}", "{key.name}", "`key`",
)  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        *REFERRING,
        *(f"the owner of {name}" for name in REFERRING),
        "{nobody}", "the key from step 1", "the result of step 1", "(see Step #1)", "step_1", "what the previous step found",
    ],
)  # fmt: skip
def test_a_string_that_names_an_output_or_a_step_is_never_sent(text: str) -> None:
    step = '1. key = FIND(CTX, "the key") : x\n2. b = FIND(CTX, {}) : x'
    for argument in (f'"{text}"', f'["who has it", "{text}"]'):
        [found] = diagnose(read(step.format(argument)), LIBRARY)
        assert (found.code, found.severity) == ("reference-in-string", "error")
        assert found.help


@pytest.mark.parametrize(
    "text",
    [
        "the theme", "key", "{1}", "x^{2}", "{a, b}", "{{nobody}}", "$5", "<b>", "[sic]", "step 1 of the recipe",
        "step 0", "step 2", "step 9", "the first step to freedom", "5%", "the result above", "his previous steps", "steps", "{",
    ],
)  # fmt: skip
def test_a_string_that_names_none_is_left_alone(text: str) -> None:
    step = f'1. key = FIND(CTX, "the key") : x\n2. b = FIND(CTX, ["{text}", key]) : x'
    assert codes(step) == []


@pytest.mark.parametrize("text", ["what {key} stands for", "what step 1 is", "{nobody}"])
def test_words_of_the_question_are_text(text: str) -> None:
    steps = f'1. key = FIND(CTX, "key") : x\n2. b = FIND(CTX, ["{text}", key]) : x'
    assert codes(f"Question: Who says {text}?\n\n{steps}") == []
    assert compile_plan(steps, LIBRARY, question=f"Who says {text}?").plan.question
    with pytest.raises(PlanCheckError, match="reference-in-string"):
        compile_plan(steps, LIBRARY)


def test_parameters_are_filled_into_the_question_alone() -> None:
    plan = (
        "Question: Why was {{drug}} stopped?\n\nParameters:\n- drug : the drug\n\n"
        '1. why = FIND(CTX, ["{}", drug]) : x'
    )
    assert codes(plan.format("Why was {drug} stopped?")) == []
    assert codes(plan.format("was {drug} stopped")) == ["reference-in-string"]


@pytest.mark.parametrize(
    ("call", "mended"),
    [
        ('FIND(CTX, ["a", "{CTX}"])', 'FIND(CTX, ["a", CTX])'),
        ('FIND(CTX, "{key}")', "FIND(CTX, key)"),
        ('FIND(CTX, ["a", "<key>"])', 'FIND(CTX, ["a", key])'),
        ('SUMMARIZE("{CTX}")', "SUMMARIZE(CTX)"),
        ('COUNT("{{key}}")', "COUNT(key)"),
        ('FIND(CTX, "who has {key} now")', 'FIND(CTX, ["who has key now", "key:", key])'),
        ('FIND(CTX, ["why", "$key or `key`?"])', 'FIND(CTX, ["why", "key or key?", "key:", key])'),
        ('FIND(CTX, "why {key}{key} fits")', 'FIND(CTX, ["why key key fits", "key:", key])'),
        ('FIND(CTX, "${key}: its use")', 'FIND(CTX, ["key: its use", "key:", key])'),
    ],
)
def test_an_output_that_a_string_marks_becomes_an_argument(call: str, mended: str) -> None:
    step = '1. key = FIND(CTX, "the key") : x\n2. b = {} : x'
    assert mend_plan(step.format(call), LIBRARY)[0] == step.format(mended)


@pytest.mark.parametrize(
    "call",
    [
        'FIND(CTX, "who has {nobody}")', 'FIND(CTX, "{key} and {nobody}")',
        'FIND(CTX, "the lock from step 1")', 'FIND(CTX, "{key} and step 1")', 'FIND(CTX, "{key.owner} has it")', 'FIND(CTX, "what {CTX} says")',
        'CONCAT("The {key} is {nobody}.")', 'CONCAT(["{key}?"])', 'FIND(CTX, "{key} says", 3)',
    ],
)  # fmt: skip
def test_a_reference_that_may_mean_something_else_is_not_mended(call: str) -> None:
    plan = f'1. key = FIND(CTX, "the key") : x\n2. b = {call} : x'
    assert mend_plan(plan, LIBRARY)[0] == plan
    assert "reference-in-string" in codes(plan)


def test_the_name_of_an_output_in_a_string_is_text_only_where_it_names_a_field() -> None:
    lines = '1. the_key = MAP(CTX, "a") : x\n2. b = {} : x'
    library = with_operators(LIBRARY)
    for call in ('FIND(CTX, "the_key")', 'FIND(CTX, "who has the_key")', 'SUMMARIZE("the_key")'):
        found = {each.code: each for each in diagnose(read(lines.format(call)), library)}
        assert "a step of the document" not in (found["reference-in-string"].help or "")
    for call in (
        'WHERE(the_key, "the_key", "is", "a")', 'FILTER(the_key, "the_key is a")', 'CONCAT("the_key: ", the_key)',
        'FIND(CTX, ["the_key", the_key])', 'LOOKUP(CTX, "the mean of the_key")',
    ):  # fmt: skip
        assert "reference-in-string" not in codes(lines.format(call), library)


def test_outputs_that_join_the_answer_are_noted() -> None:
    text = '1. a = FIND(CTX, "x") : x\n2. b = SUMMARIZE(CTX) : x\n3. c = CONCAT(a) : x'
    assert [(d.code, d.severity) for d in diagnose(read(text), LIBRARY)] == [
        ("joins-answer", "note")
    ]
    assert compile_plan(text, LIBRARY).outputs == ("b", "c")
    assert diagnose(read(text.replace("CONCAT(a)", "CONCAT(a, b)")), LIBRARY) == []


SEARCHING = with_operators(LIBRARY)


@pytest.mark.parametrize(
    "steps",
    [
        ["n = COUNT(found)"],
        ["kept = FILTER(found, \"it is sold\")", "n = COUNT(kept)"],
        ["kept = WHERE(found, \"Document\", \"is\", \"a\")", "n = GROUP(kept, \"Document\")"],
        ["again = RETRIEVE(found, \"y\", 2)", "n = SHARE(again, found)"],
        ["rows = SPLIT(CTX, \"line\")", "few = LIMIT(rows, 3)", "kept = FIELD(few, \"text\")", "n = COUNT(kept)"],
        ["best = TOP(found, \"y\", 2)", "label = CLASSIFY(best, [\"a\", \"b\"], \"kind\")", "n = NTH(label, \"label\", 1)"],
    ],
)  # fmt: skip
def test_a_count_of_what_a_search_gave_is_noted(steps: list[str]) -> None:
    lines = ['found = RETRIEVE(CTX, "x", 9)', *steps]
    text = "\n".join(f"{i}. {line} : Do it" for i, line in enumerate(lines, 1))
    assert codes(text, SEARCHING) == ["counts-best"]
    compile_plan(text, SEARCHING)  # a note, no error


def test_a_count_of_all_and_a_text_of_the_best_are_not_noted() -> None:
    text = """\
1. found = RETRIEVE(CTX, "x", 9) : Search
2. told = SUMMARIZE(found) : Tell
3. rows = SPLIT(CTX, "document") : All
4. n = COUNT(rows) : Count them
5. ans = CONCAT(told, n) : Both"""
    assert codes(text, SEARCHING) == []


@pytest.mark.parametrize(
    ("call", "n_errors"),
    [
        ('NTH(rows, "Cost", {})', {"0": 1, "1.5": 1, "-1": 0, "2": 0, "2.0": 0}),
        ("LIMIT(rows, {})", {"0": 1, "-1": 1, "1": 0}),
        ('TOP(rows, "size", {})', {"0": 1, "1": 0}),
    ],
)
def test_a_number_of_rows_is_checked_where_it_is_written(
    call: str, n_errors: dict[str, int]
) -> None:
    library = with_operators(load_library("quality"))
    for number, n in n_errors.items():
        plan = f'1. rows = SPLIT(CTX, "record") : Rows\n2. ans = {call.format(number)} : Some'
        assert codes(plan, library) == ["bad-number"] * n
