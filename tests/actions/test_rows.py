"""What operators on rows compute is right in every case that the undecided rows leave open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.actions import native
from pearl.actions.values import Scalar, Value
from pearl.documents.rows import Row, Rows
from pearl.errors import Span
from tests.examples import examples


def run(name: str, *values: Value) -> Value:
    return native.compute(native.known()[name], list(values))


native_errors = (ValueError,)

KEYS = ["a", "b", "c"]
ANY_KEY = [*KEYS, "d"]
"""What an undecided label may be: one that occurs, or another."""

Base = list[tuple[str | None, str, bool]]
"""Label (None: undecided), number, whether the row surely is there."""

bases: st.SearchStrategy[Base] = st.lists(
    st.tuples(
        st.sampled_from([*KEYS * 2, None]),
        st.sampled_from(["1", "2", "3"]),
        st.sampled_from([True, True, True, False]),
    ),
    max_size=7,
).filter(
    lambda rows: sum(key is None for key, _, _ in rows) <= 2 and sum(not s for *_, s in rows) <= 2
)


def rows_of(base: Base, label: str = "label") -> Rows:
    rows = [
        (Row(key, {label: key, "n": n}, (Span(i, i + 1),), f"text {n}"), is_sure)
        for i, (key, n, is_sure) in enumerate(base)
    ]
    return Rows(
        tuple(row for row, is_sure in rows if is_sure),
        label,
        tuple(row for row, is_sure in rows if not is_sure),
        is_answered=True,
        is_in_order=True,
    )


def worlds(base: Base) -> Iterator[Base]:
    """Every way in which what is undecided may turn out."""
    ways = [
        [[(label, n, True)] for label in ([key] if key else ANY_KEY)] + ([] if is_sure else [[]])
        for key, n, is_sure in base
    ]
    for world in product(*ways):
        yield [row for rows in world for row in rows]


Plan = Callable[[Rows], Value]

PLANS: dict[str, Plan] = {
    "where is": lambda r: run("WHERE", r, "label", "is", "a"),
    "where is not": lambda r: run("WHERE", r, "label", "is not", "a"),
    "where in": lambda r: run("WHERE", r, "label", "in", ["a", "b"]),
    "where at least": lambda r: run("WHERE", r, "n", "at least", 2),
    "where of where": lambda r: run("WHERE", run("WHERE", r, "n", "at most", 2), "label", "not in", ["c"]),
    "where in rows": lambda r: run(
        "WHERE", r, "label", "in", run("FIELD", run("WHERE", r, "n", "is", 3), "label")
    ),
    "field": lambda r: run("FIELD", r, "n"),
    "count": lambda r: run("COUNT", run("WHERE", r, "label", "is", "b")),
    "group": lambda r: run("GROUP", r, "label"),
    "group where": lambda r: run("GROUP", run("WHERE", r, "label", "is", "a"), "n"),
    "count groups": lambda r: run("COUNT", run("GROUP", r, "label")),
    "having": lambda r: run("WHERE", run("GROUP", r, "label"), "count", "at least", 2),
    "having is": lambda r: run("WHERE", run("GROUP", r, "label"), "count", "is", 1),
    "having is not": lambda r: run("WHERE", run("GROUP", r, "n"), "count", "is not", 2),
    "having at most": lambda r: run("WHERE", run("GROUP", run("WHERE", r, "label", "is", "a"), "n"), "count", "at most", 1),
    "sizes of few": lambda r: run("WHERE", run("GROUP", r, "label"), "count", "before", 2),
    "sizes of many": lambda r: run("WHERE", run("GROUP", r, "label"), "count", "after", 1),
    "group of a group": lambda r: run("GROUP", run("GROUP", r, "label"), "count"),
    "sizes": lambda r: run("FIELD", run("GROUP", r, "label"), "count"),
    "sum of sizes": lambda r: run("SUM", run("FIELD", run("GROUP", r, "label"), "count")),
    "largest sizes of pairs": lambda r: run(
        "WHERE", run("JOIN", run("GROUP", r, "label"), run("GROUP", run("WHERE", r, "n", "is", 1), "label"), "label"), "count", "at least", 2
    ),
    "sizes of a join": lambda r: run(
        "AGGREGATE", run("JOIN", run("GROUP", r, "label"), r, "label"), "n", "max", "count"
    ),
    "figures of a join": lambda r: run("AGGREGATE", run("JOIN", r, run("WHERE", r, "n", "at most", 2), "label"), "n (2)", "sum", "n"),
    "largest of a join": lambda r: run("AGGREGATE", run("JOIN", r, run("WHERE", r, "n", "at most", 2), "label"), "n (2)", "max", "n"),
    "count having": lambda r: run("COUNT", run("WHERE", run("GROUP", r, "label"), "count", "at least", 2)),
    "most": lambda r: run("NTH", run("GROUP", r, "label"), "count", 1),
    "latest": lambda r: run("NTH", r, "n", 1),
    "first of names": lambda r: run("NTH", run("FIELD", r, "n"), "label", -1),
    "least": lambda r: run("NTH", run("GROUP", r, "label"), "count", -1),
    "second": lambda r: run("NTH", run("GROUP", r, "label"), "count", 2),
    "most of some": lambda r: run("NTH", run("GROUP", run("WHERE", r, "label", "is", "a"), "n"), "count", 1),
    "relation": lambda r: run("RELATION", run("COUNT", run("WHERE", r, "label", "is", "a")), run("COUNT", run("WHERE", r, "label", "is", "b"))),
    "relation of counts": lambda r: run(
        "RELATION",
        run("COUNT", run("WHERE", r, "label", "is", "a")),
        run("COUNT", run("WHERE", r, "label", "is", "c")),
    ),
    "difference": lambda r: run(
        "DIFFERENCE", run("GROUP", r, "label"), run("GROUP", run("WHERE", r, "n", "is", 1), "label")
    ),
    "difference of numbers": lambda r: run(
        "DIFFERENCE", run("GROUP", r, "n"), run("GROUP", run("WHERE", r, "label", "is", "a"), "n")
    ),
    "intersection": lambda r: run(
        "INTERSECT", run("GROUP", run("WHERE", r, "label", "is", "a"), "n"), run("GROUP", run("WHERE", r, "label", "is", "b"), "n")
    ),
    "union": lambda r: run(
        "UNION", run("GROUP", run("WHERE", r, "label", "is", "a"), "n"), run("GROUP", run("WHERE", r, "label", "is", "b"), "n")
    ),
    "unique": lambda r: run("UNIQUE", r),
    "count of unique": lambda r: run("COUNT", run("UNIQUE", r)),
    "pairs": lambda r: run("PAIRS", run("GROUP", r, "label"), run("GROUP", r, "label")),
    "count of pairs": lambda r: run("COUNT", run("PAIRS", run("GROUP", r, "label"), run("GROUP", r, "n"))),
    "pairs of parts": lambda r: run(
        "PAIRS", run("GROUP", run("WHERE", r, "label", "is", "a"), "n"), run("GROUP", run("WHERE", r, "label", "is", "b"), "n")
    ),
    "join": lambda r: run("JOIN", run("WHERE", r, "label", "is", "a"), run("WHERE", r, "label", "is", "b"), "n"),
    "limit": lambda r: run("LIMIT", run("WHERE", r, "label", "is", "a"), 2),
    "limit of values": lambda r: run("LIMIT", run("FIELD", r, "n"), 3),
    "limit of a union": lambda r: run("LIMIT", run("UNION", run("FIELD", run("WHERE", r, "label", "is", "b"), "n"), run("FIELD", r, "n")), 2),
    "first sorted": lambda r: run("LIMIT", run("SORT", r, "label", "descending"), 2),
    "sort where": lambda r: run("WHERE", run("SORT", r, "label", "ascending"), "n", "is", 1),
    "limit of sorted groups": lambda r: run("LIMIT", run("SORT", run("GROUP", run("WHERE", r, "label", "is", "a"), "n"), "n", "ascending"), 1),
    "means": lambda r: run("AGGREGATE", r, "label", "mean", "n"),
    "sums of some": lambda r: run("AGGREGATE", run("WHERE", r, "label", "is not", "a"), "label", "sum", "n"),
    "smallest": lambda r: run("AGGREGATE", r, "label", "min", "n"),
    "largest of one": lambda r: run("AGGREGATE", run("WHERE", r, "label", "is", "a"), "label", "max", "n"),
    "most by mean": lambda r: run("NTH", run("AGGREGATE", r, "label", "mean", "n"), "mean", 1),
    "least mean": lambda r: run("LIMIT", run("SORT", run("AGGREGATE", r, "label", "mean", "n"), "mean", "ascending"), 1),
    "means that are high": lambda r: run("WHERE", run("AGGREGATE", r, "label", "mean", "n"), "mean", "at least", 2),
    "figures of groups": lambda r: run("AGGREGATE", run("GROUP", r, "label"), "label", "sum", "count"),
    "share of groups": lambda r: run("SHARE", run("WHERE", run("GROUP", r, "label"), "count", "at least", 2), run("GROUP", r, "label")),
    "most by an undecided key": lambda r: run("AGGREGATE", r, "label", "mode", "n"),
    "most by": lambda r: run("AGGREGATE", r, "n", "mode", "label"),
    "where of most": lambda r: run("WHERE", r, "label", "is", run("NTH", run("GROUP", r, "label"), "count", 1)),
    "share": lambda r: run("SHARE", run("WHERE", r, "label", "is", "a"), r),
    "relation of shares": lambda r: run("RELATION", run("SHARE", run("WHERE", r, "label", "is", "a"), r), run("SHARE", run("WHERE", r, "n", "is", "1"), r)),
}  # fmt: skip


def values_of(result: Value) -> Counter[str | None]:
    return Counter(row.value for row in result.rows) if isinstance(result, Rows) else Counter()


def check_rows(found: Rows, truth: Rows, at: str) -> None:
    """Every sure row is in the truth; what else is in it is doubtful here."""
    there, sure, doubtful = (
        values_of(truth),
        values_of(found),
        Counter(r.value for r in found.doubtful),
    )
    n_unread = sum(max(1, len(row.possible)) for row in found.undecided if row.value is None)
    sure.pop(None, None)
    assert not sure - there, at
    left = there - sure - doubtful
    assert left.total() <= n_unread, at


def check_scalar(found: Scalar, truth: Value, at: str) -> None:
    value = truth.value if isinstance(truth, Scalar) else truth
    if not found.rows.undecided:
        ties = [sorted(str(v).split("; ")) for v in (found.value, value)]
        assert ties[0] == ties[1], at
    if found.low is not None and found.high is not None:
        assert found.low - 1e-9 <= value <= found.high + 1e-9, at  # type: ignore[operator]


@pytest.mark.parametrize("name", PLANS)
@given(base=bases)
@examples(120)
def test_decided_results_hold_for_all_values_of_undecided_rows(name: str, base: Base) -> None:
    plan = PLANS[name]
    try:
        found = plan(rows_of(base))
    except native_errors:
        return
    for world in worlds(base):
        try:
            truth = plan(rows_of(world))
        except native_errors:
            assert isinstance(found, Scalar), (base, world)
            assert found.rows.undecided, (base, world)
            continue
        at = f"{base} as {world}: {found} against {truth}"
        if isinstance(found, Rows):
            assert isinstance(truth, Rows)
            assert not truth.undecided, at
            check_rows(found, truth, at)
        else:
            assert isinstance(found, Scalar)
            check_scalar(found, truth, at)


def test_a_row_cannot_be_changed() -> None:
    row = Row("a", {"User": "7"})
    with pytest.raises(AttributeError):
        row.value = "b"  # type: ignore[misc]
    assert row.valued("b") == Row("b", {"User": "7"})
    assert row == Row("a", {"User": "7"})
