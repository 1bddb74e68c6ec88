"""Render pages: a template and its data, escaped, → one HTML file whose policy allows only its own script; draw plans."""

from __future__ import annotations

import base64
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from pearl.documents.digest import text_sha256
from pearl.dsl.nodes import Plan
from pearl.errors.escaping import escaped, json_bytes

TEMPLATES = Path(__file__).with_name("templates")


def render_page(name: str, title: str, *, records: Any = None, **data: Any) -> str:
    """Render a template that extends `page.html`, with the style of its name, and the script if there is one."""
    css = _text(TEMPLATES / "page.css") + _text(TEMPLATES / f"{name}.css")
    script = TEMPLATES / f"{name}.js"
    code = _text(script) if script.exists() else ""
    lines = None
    if records is not None:  # as JSON that cannot close the HTML element around it
        lines = json_bytes(records).decode()
        lines = lines.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    page = _environment().get_template(f"{name}.html").render(
        title=title,
        style=css,
        style_hash=_hash(css),
        script=code,
        script_hash=_hash(code),
        records=lines,
        **data,
    )  # fmt: skip
    return escaped(page)


def _hash(text: str) -> str:
    """The hash of a text in the form of a content security policy."""
    return base64.b64encode(bytes.fromhex(text_sha256(text))).decode()


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _environment() -> Any:
    """The templates, with all texts escaped."""
    # Imported on use: only commands that write pages need it.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


WIDTH, HEIGHT = 190, 46  # Size of a box in drawing units
ACROSS, DOWN = 24, 40  # Distances between boxes
CHARACTERS = 25  # Maximum characters of a name in a box


class Box(Struct, frozen=True):
    """The box of a step: its number and its top left corner."""

    number: int
    output: str
    action: str
    x: int
    y: int


class Drawing(Struct, frozen=True):
    """A drawing of a plan; its lines, from each step to those that use its output, are SVG paths."""

    boxes: tuple[Box, ...]
    lines: tuple[str, ...]
    width: int
    height: int
    text: str


def draw_plan(plan: Plan) -> Drawing:
    """Draw a plan; steps that can run at the same time are in one row."""
    index = {step.output: i for i, step in enumerate(plan.steps)}
    needs = [
        sorted({index[r.name] for r in step.references() if r.name in index}) for step in plan.steps
    ]
    level = [0] * len(needs)
    for i, needed in enumerate(needs):
        level[i] = 1 + max((level[j] for j in needed), default=-1)
    rows = [[i for i, at in enumerate(level) if at == row] for row in range(max(level) + 1)]
    width = max(len(row) for row in rows) * (WIDTH + ACROSS) - ACROSS
    places: dict[int, tuple[int, int]] = {}
    for y, row in enumerate(rows):
        left = (width - (len(row) * (WIDTH + ACROSS) - ACROSS)) // 2
        for x, i in enumerate(row):
            places[i] = left + x * (WIDTH + ACROSS), y * (HEIGHT + DOWN)
    lines = []
    for i, needed in enumerate(needs):
        for j in needed:  # a curve from the box of a step to that of one that uses it
            x1, y1 = places[j][0] + WIDTH // 2, places[j][1] + HEIGHT
            x2, y2 = places[i][0] + WIDTH // 2, places[i][1]
            bend = (y2 - y1) // 2
            lines.append(f"M{x1} {y1}C{x1} {y1 + bend} {x2} {y2 - bend} {x2} {y2}")
    told = []  # the drawing in words, for screen readers
    for i, step in enumerate(plan.steps):
        taken = ", ".join(plan.steps[j].output for j in needs[i])
        reads = any(reference.is_context for reference in step.references())
        of = " and ".join(filter(None, ["the document" if reads else "", taken])) or "nothing"
        told.append(f"Step {i + 1}, {step.output}, {step.action}, uses {of}.")
    return Drawing(
        boxes=tuple(
            Box(i + 1, _short(step.output), _short(step.action), *places[i])
            for i, step in enumerate(plan.steps)
        ),
        lines=tuple(lines),
        width=width,
        height=len(rows) * (HEIGHT + DOWN) - DOWN,
        text=" ".join(told),
    )


def _short(name: str) -> str:
    return name if len(name) <= CHARACTERS else f"{name[: CHARACTERS - 1]}…"
