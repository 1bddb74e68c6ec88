"""A template of this folder and its data → one HTML page; every text is escaped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["render_page"]


def render_page(template: str, title: str, **data: Any) -> str:
    """The page of a file of `templates/`, named without `.html`; a text that it lacks is a bug, and raises."""
    # Imported on use: no command but those that write pages needs it.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(f"{template}.html").render(title=title, **data)
