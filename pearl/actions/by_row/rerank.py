"""RERANK(ROWS, QUERY, K): the rows that answer a query best, each read together with it."""

from collections.abc import Sequence
from dataclasses import replace

from pearl.actions.estimates import among_best
from pearl.actions.first_rows import first_of
from pearl.documents.rows import Rows
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "RERANK",
    (Parameter.named("ROWS"), Parameter("QUERY"), Parameter("K", ValueType.TEXT, "number")),
    "Rate each of ROWS, on its own, from 0 to 10 by how well it answers QUERY, and return the best K, "
    "the best first",
    returns=ValueType.LIST,
)
KIND = "rating"
QUERY = "QUERY"
READING = Action(
    "RATE_ANSWER",
    (Parameter.named("CTX"), Parameter("QUERY")),
    "Rate from 0 to 10 how well CTX answers QUERY and return the number",
    returns=ValueType.NUMBER,
)


def collect(rows: Rows, replies: Sequence[str | None], column: str) -> Rows:
    """Order the rows by their scores, which become a field; rows with equal ones keep their order.

    Example:
        >>> from pearl.documents.rows import Row
        >>> found = collect(Rows((Row("a"), Row("b"), Row("c"))), ["7", None, "9"], "best")
        >>> found.values, [row.value for row in found.doubtful]
        (['c', 'a'], ['b'])
    """
    pairs = [(row, reply) for row, reply in zip(rows, replies, strict=True) if reply is not None]
    scored = [row.with_fields({column: reply}) for row, reply in pairs]
    order = sorted(range(len(pairs)), key=lambda i: -float(pairs[i][1]))
    unread = (row for row, reply in zip(rows, replies, strict=True) if reply is None)
    return rows.where((scored[i] for i in order), unread)


def select(rows: Rows, k: int) -> Rows:
    """The first K of these rows; each undecided one may be before any of them."""
    first, doubtful = first_of([(row, True) for row in rows], len(rows.doubtful), k)
    found = replace(rows, rows=first, doubtful=(*doubtful, *rows.doubtful), sample=None)
    return found.noting(among_best(k)) if len(rows) > k else found
