"""NEAR(A, B, K): for each row, the likeliest partners by their words."""

from pearl.actions.pairing import check_n_pairs, identity, pair, unread_pairs
from pearl.actions.values import Value
from pearl.documents.numbers import whole_number
from pearl.documents.passages import terms
from pearl.documents.rows import Row, Rows
from pearl.dsl.signatures import Action, Parameter, ValueType
from pearl.retrieval.weighting import TermRanker

ACTION = Action(
    "NEAR",
    (
        Parameter("A", ValueType.LIST, "rows"),
        Parameter("B", ValueType.LIST, "rows"),
        Parameter("K", reads="number"),
    ),
    "Return each row of A with those K rows of B that have most words in common with it, as pairs",
    returns=ValueType.LIST,
    is_native=True,
)


def run(a: Rows, b: Rows, k: int | float) -> Value:
    r"""Pair rows with the K best by BM25 that share a word; no row with itself, no pair twice.

    Example:
        >>> left, right = Rows((Row("iron tablets"),)), Rows((Row("salt"), Row("iron pills")))
        >>> run(left, right, 1).values
        ['A: iron tablets\nB: iron pills']
    """
    n_best = whole_number(k, "K", least=1)
    lefts = [(row, i < len(a)) for i, row in enumerate((*a, *a.doubtful)) if row.value is not None]
    rights = [(row, i < len(b)) for i, row in enumerate((*b, *b.doubtful)) if row.value is not None]
    check_n_pairs(len(lefts) * min(n_best, len(rights)))
    index = TermRanker([_words(row) for row, _ in rights])
    n_unsure = sum(not is_sure for _, is_sure in rights)
    sure: list[Row] = []
    unsure: list[Row] = []
    seen: set[tuple[object, object]] = set()
    for row, is_sure in lefts:
        # One more: the row itself may be among them.
        n_before = n_sure_before = 0
        for i in index.best(_words(row), n_best + n_unsure + 1):
            other, is_other_sure = rights[i]
            one, two = identity(row), identity(other)
            if one == two:
                continue
            if n_sure_before >= n_best:
                break
            if (two, one) not in seen:
                seen.add((one, two))
                is_in = is_sure and is_other_sure and n_before < n_best
                (sure if is_in else unsure).append(pair(row, other))
            n_before += 1
            n_sure_before += is_other_sure
    unread = [
        *unread_pairs((row for row in (*a, *a.doubtful) if row.value is None), (*b, *b.doubtful)),
        *unread_pairs((row for row in (*b, *b.doubtful) if row.value is None), (*a, *a.doubtful)),
    ]
    notes = tuple(dict.fromkeys((*a.notes, *b.notes)))
    return Rows(tuple(sure), "pair", (*unsure, *unread), notes)


def _words(row: Row) -> list[str]:
    return list(terms(row.value or "", drop_stop_words=True))
