"""Actions of the older language, and the calls of today that stand for them."""

from __future__ import annotations

from collections.abc import Mapping

CALLS_OF_OLDER: Mapping[tuple[str, int], str] = {
    ("COUNT_BY", 2): "GROUP({0}, {1})",
    ("HAVING", 3): 'WHERE({0}, "count", {1}, {2})',
    ("COUNT_OF", 2): 'WHERE({rows}, {field}, "is", {1}); COUNT({it})',
    ("SHARE_OF", 3): "WHERE({0}, {1}, {op}, {2}); SHARE({it}, {0})",
    ("MOST", 1): "NTH({ranked}, {by}, 1)",
    ("LEAST", 1): "NTH({ranked}, {by}, -1)",
    ("RANKED", 1): 'SORT({ranked}, {by}, "descending")',
    ("MEAN_BY", 3): 'AGGREGATE({0}, {1}, "mean", {2})',
    ("SUM_BY", 3): 'AGGREGATE({0}, {1}, "sum", {2})',
    ("MIN_BY", 3): 'AGGREGATE({0}, {1}, "min", {2})',
    ("MAX_BY", 3): 'AGGREGATE({0}, {1}, "max", {2})',
    ("MOST_BY", 2): 'AGGREGATE({0}, {1}, "mode", {field})',
    ("RATE", 4): "CLASSIFY({0}, {labels}, {1})",
    ("RERANK", 3): "TOP({0}, {1}, {2})",
}
"""The name and the number of arguments of an old call → the calls that say the same; `{it}` is the one before.

Names in braces stand for what the earlier steps of a plan tell: a call is left as it is where they do not."""

_PAGE = "docs/plan_reference.md has what stands for it today"
_REWRITES = f"'pearl check --fix FILE' rewrites this older plan; {_PAGE}"
ADVICE = {**{name: _REWRITES for name, _ in CALLS_OF_OLDER}, "SAMPLE": _PAGE, "NEAR": _PAGE}
"""The name of an old action → what to do with it."""
