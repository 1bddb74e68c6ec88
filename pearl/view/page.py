"""A template and its data → one HTML file: every text is escaped, and its policy lets nothing be loaded.

The style and the scripts stand in the page, allowed by their hashes and nothing else beside them.
"""

from __future__ import annotations

import base64
from functools import cache
from pathlib import Path
from typing import Any

from pearl.documents.digest import text_sha256
from pearl.errors.escaping import escaped, json_bytes

TEMPLATES = Path(__file__).with_name("templates")


def render_page(
    name: str,
    title: str,
    *,
    folder: Path = TEMPLATES,
    style: str | None = None,
    script: str | None = None,
    records: Any = None,
    **data: Any,
) -> str:
    """The page of a template that extends `page.html`."""
    css = _text(TEMPLATES / "page.css") + _text(folder / f"{style or name}.css")
    code = "" if script is None else _text(TEMPLATES / f"{script}.js")
    page = _environment(folder).get_template(f"{name}.html").render(
        title=title,
        style=css,
        style_hash=_hash(css),
        script=code,
        script_hash=_hash(code),
        records=None if records is None else _inert_json(records),
        **data,
    )  # fmt: skip
    return escaped(page)


def _hash(text: str) -> str:
    """As a content security policy has it."""
    return base64.b64encode(bytes.fromhex(text_sha256(text))).decode()


def _inert_json(data: Any) -> str:
    """JSON in which nothing can end the element that it stands in."""
    text = json_bytes(data).decode()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _environment(folder: Path) -> Any:
    # Imported on use: no command but those that write pages needs it.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(list(dict.fromkeys([folder, TEMPLATES]))),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
