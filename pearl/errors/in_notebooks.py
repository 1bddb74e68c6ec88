"""Objects that notebooks show as HTML."""

from __future__ import annotations

from importlib import import_module


class ShownInNotebooks:
    """An object that `pearl.view.notebook` draws when a notebook asks for it.

    It is found by its name then: what draws imports what is drawn, from packages that lie above it.
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        html: str = import_module("pearl.view.notebook").html_of(self)
        return html
