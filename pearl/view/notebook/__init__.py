"""Plans, graphs, traces, answers, errors and documents → HTML, as a notebook shows them.

Each is one element without scripts or addresses, and bounded, however large the object is.
"""

from __future__ import annotations

from functools import singledispatch

from pearl.documents.document import Document
from pearl.dsl.checker import CheckedPlan
from pearl.dsl.graph import PlanGraph
from pearl.dsl.nodes import Plan
from pearl.errors import PearlError
from pearl.errors.diagnostics import Diagnostic
from pearl.interpreter.answer import Answer
from pearl.trace import Trace
from pearl.view.notebook.answers import answer_html
from pearl.view.notebook.documents import document_html
from pearl.view.notebook.errors import diagnostic_html, error_html
from pearl.view.notebook.markup import card
from pearl.view.notebook.plans import checked_html, graph_html, plan_html
from pearl.view.notebook.traces import trace_html

__all__ = ["html_of"]


@singledispatch
def html_of(shown: object) -> str:
    """What a notebook shows of an object of one of these types."""
    raise TypeError(f"notebooks show no {type(shown).__name__}")


html_of.register(Answer, answer_html)
html_of.register(CheckedPlan, checked_html)
html_of.register(Diagnostic, lambda diagnostic: card(diagnostic_html(diagnostic)))
html_of.register(Document, document_html)
html_of.register(PearlError, error_html)
html_of.register(Plan, plan_html)
html_of.register(PlanGraph, graph_html)
html_of.register(Trace, trace_html)
