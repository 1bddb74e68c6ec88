"""Plans and their graphs, as notebooks show them."""

from __future__ import annotations

from pearl.dsl.checker import CheckedPlan
from pearl.dsl.graph import PlanGraph
from pearl.dsl.nodes import Plan, Step, one_line, print_argument, print_header
from pearl.view.notebook.errors import diagnostics_html
from pearl.view.notebook.markup import MONO, SOFT, Html, card, element, joined, shortened
from pearl.view.plan_graph import HEIGHT, WIDTH, draw_plan

MAX_STEPS, MAX_CHARACTERS = 40, 200
"""Steps of a plan, and characters of an argument or an explanation, that are shown."""

MAX_DRAWN, MAX_LINES = 60, 400
"""Steps and dependencies that are drawn."""


def plan_html(plan: Plan) -> Html:
    """A plan as it is printed."""
    return card(_printed(plan))


def checked_html(checked: CheckedPlan) -> Html:
    """A checked plan, with who carries out its steps and what the checker noted."""
    n, n_model = len(checked.plan.steps), checked.n_model_steps
    told = f"{n} step{'' if n == 1 else 's'}, {n_model} by a model; the answer: "
    outputs = element("code", shortened(", ".join(checked.outputs), MAX_CHARACTERS))
    notes = diagnostics_html(checked.notes, str(checked), most=5) if checked.notes else ""
    return card(_printed(checked.plan), element("div", told, outputs, style=SOFT), notes)


def graph_html(graph: PlanGraph) -> Html:
    """A graph drawn, each step below those whose outputs it takes, and the plan as text."""
    plan = graph.checked.plan
    n = len(plan.steps)
    # A step takes outputs of earlier ones only, so the first ones of a plan are a plan, too.
    drawing = draw_plan(type(plan)(plan.steps[:MAX_DRAWN]), {})
    boxes = [
        element(
            "g",
            element(
                "rect", x=box.x, y=box.y, width=WIDTH, height=HEIGHT, rx=6,
                fill="rgba(128,128,128,.12)", stroke="currentColor", stroke_opacity=0.45,
            ),
            _text(box.x + 12, box.y + 19, 13, f"{box.number}. {box.output}"),
            _text(box.x + 12, box.y + 36, 11, box.action),
        )
        for box in drawing.boxes
    ]  # fmt: skip
    path = "".join(line.path for line in drawing.lines[:MAX_LINES])
    told = shortened(drawing.text, 2_000)
    svg = element(
        "svg",
        element("title", "The plan as a graph"),
        element("desc", told),
        element("path", d=path, fill="none", stroke="currentColor", stroke_opacity=0.6),
        *boxes,
        viewBox=f"-2 -2 {drawing.width + 4} {drawing.height + 4}",
        width=drawing.width + 4,
        role="img",
        aria_label="The plan as a graph",
        style="max-width:100%;height:auto;color:inherit",
    )
    left = len(drawing.lines) - MAX_LINES
    cut = [f"the first {MAX_DRAWN} of {n:,} steps"] * (n > MAX_DRAWN)
    cut += [f"without {left:,} of their dependencies"] * (left > 0)
    return card(
        svg,
        element("div", f"Drawn are {', '.join(cut)}.", style=SOFT) if cut else "",
        element("details", element("summary", "As text", style=SOFT), _printed(plan)),
    )


def _printed(plan: Plan) -> Html:
    """The text of a plan, its actions marked."""
    question = f"Question: {one_line(plan.question)}\n\n" if plan.question else ""
    header = print_header(plan.new_actions)
    left = len(plan.steps) - MAX_STEPS
    return element(
        "pre",
        shortened(question, 1_000),
        shortened(header, 2_000),
        "\n\n",
        joined(*(_step(step, i) for i, step in enumerate(plan.steps[:MAX_STEPS], start=1))),
        f"… and {left:,} more steps" if left > 0 else "",
        style=MONO,
    )


def _step(step: Step, number: int) -> Html:
    arguments = ", ".join(shortened(print_argument(a), MAX_CHARACTERS) for a in step.arguments)
    explanation = shortened(one_line(step.explanation), MAX_CHARACTERS)
    return joined(
        f"{number}. {shortened(step.output, MAX_CHARACTERS)} = ",
        element("b", shortened(step.action, MAX_CHARACTERS)),
        f"({shortened(arguments, 3 * MAX_CHARACTERS)})",
        element("span", f" : {explanation}", style=SOFT),
        "\n",
    )


def _text(x: int, y: int, size: int, text: str) -> Html:
    return element("text", text, x=x, y=y, fill="currentColor", font_size=size)
