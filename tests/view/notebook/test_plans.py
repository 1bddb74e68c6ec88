"""What notebooks show of plans and their graphs."""

from __future__ import annotations

from hypothesis import given

from pearl.dsl.checker import check
from pearl.dsl.graph import build_graph
from pearl.dsl.nodes import Plan, Reference, Step, String
from pearl.dsl.parser import parse
from pearl.dsl.printer import print_plan
from pearl.dsl.signatures import Action, ActionLibrary, Parameter
from pearl.view.notebook import MAX_DRAWN
from tests.notebooks import parsed, texts

LIBRARY = ActionLibrary("mine", [Action("FIND", (Parameter("CTX"), Parameter("X")), "Find X")])
PLAN = """\
Question: Is a < b?

New actions:
- JOIN(A, B) : Join both

1. one = FIND(CTX, "x < y") : The first
2. two = FIND(CTX, "y") : The second
3. ans = JOIN(one, two) : Both"""


def shown(html: str) -> str:
    return "".join(parsed(html).itertext())


def test_a_plan_reads_as_it_is_printed() -> None:
    tree = parsed(parse(PLAN)._repr_html_())
    assert "".join(tree.itertext()).strip() == PLAN
    assert [each.text for each in tree.iter("b")] == ["FIND", "FIND", "JOIN"]


def test_a_checked_plan_says_who_carries_it_out() -> None:
    told = shown(check(parse(PLAN), LIBRARY)._repr_html_())
    assert told.startswith(PLAN)
    assert told.endswith("3 steps, 3 by a model; the answer: ans")
    unread = check(parse(PLAN.replace("JOIN(one, two)", "JOIN(one, one)")), LIBRARY)
    assert "two" in shown(unread._repr_html_())


def test_a_graph_is_drawn_and_told() -> None:
    tree = parsed(build_graph(check(parse(PLAN), LIBRARY))._repr_html_())
    assert [each.text for each in tree.findall("./svg/g/text")] == [
        "1. one", "FIND", "2. two", "FIND", "3. ans", "JOIN",
    ]  # fmt: skip
    assert tree.find("./svg/path").get("d").count("M") == 2
    assert "Step 3, ans, JOIN, takes one, two." in tree.findtext("./svg/desc")
    assert PLAN in "".join(tree.find("details").itertext())


def chain(n: int) -> Plan:
    """Each step takes what every earlier one gives."""
    names = [f"s{i}" for i in range(n)]
    return Plan(
        tuple(
            Step(name, "JOIN", (*map(Reference, names[:i]), String("<" * 999)), "e" * 9_999)
            for i, name in enumerate(names)
        ),
        (Action("JOIN", (Parameter("A"), Parameter("...")), "Join"),),
    )


def test_a_huge_plan_is_small_and_says_what_it_leaves_out() -> None:
    plan = chain(300)
    html = plan._repr_html_()
    assert len(html) < 100_000
    assert "and 260 more steps" in html
    action = Action("JOIN", (Parameter("A"),), "Join")
    one_each = Plan(tuple(Step(f"s{i}", "J", (String("x"),), "") for i in range(200)), (action,))
    assert parsed(one_each._repr_html_()) is not None


def test_a_huge_graph_is_drawn_in_part() -> None:
    first = '1. s1 = FIND(CTX, "x") : f'
    rest = [
        f'{i}. s{i} = FIND([{", ".join(f"s{j}" for j in range(1, i))}], "x") : f'
        for i in range(2, 101)
    ]
    graph = build_graph(check(parse("\n".join([first, *rest])), LIBRARY, max_steps=100))
    html = graph._repr_html_()
    assert len(html) < 100_000
    told = shown(html)
    assert f"the first {MAX_DRAWN} of 100 steps" in told
    assert "without 1,370 of their dependencies" in told


@given(texts, texts, texts)
def test_no_text_of_a_plan_is_markup(output: str, action: str, text: str) -> None:
    step = Step(output, action, (String(text), Reference(output)), text)
    plan = Plan((step, step), (Action(action, (Parameter("A"),), text),), text)
    parsed(plan._repr_html_())


def test_a_plan_without_steps_is_shown() -> None:
    assert print_plan(Plan(())) in shown(Plan(())._repr_html_())
