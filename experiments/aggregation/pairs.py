"""The twenty questions about pairs of users: the first ten ask the same of both, the others not."""

from __future__ import annotations

from datetime import date

from aggregation.queries import Condition, Query, UserPredicate

__all__ = ["PAIR_QUERIES"]

_ABBREVIATION, _ENTITY, _ABSTRACT, _HUMAN, _LOCATION, _NUMERIC = (
    "abbreviation", "entity", "description and abstract concept", "human being", "location", "numeric value",
)  # fmt: skip


def _some(*labels: str, n: int = 1) -> Condition:
    return Condition(labels, n)


def _exactly(n: int, label: str) -> Condition:
    return Condition((label,), n, is_exact=True)


def _both(
    *conditions: Condition, all_of: str = "", is_after: bool = True, day: date = date(2023, 1, 6)
) -> Query:
    return Query("pairs", pair=(UserPredicate(conditions, all_of, is_after, day),))


def _one(*conditions: Condition) -> UserPredicate:
    return UserPredicate(conditions)


def _dated(*conditions: Condition, all_of: str, is_after: bool, day: date) -> UserPredicate:
    return UserPredicate(conditions, all_of, is_after, day)


PAIR_QUERIES: tuple[Query, ...] = (
    _both(_some(_NUMERIC, _LOCATION)),
    _both(_some(_ENTITY, _HUMAN)),
    _both(_some(_ABSTRACT, _ABBREVIATION)),
    _both(_some(_HUMAN, _LOCATION), all_of=_HUMAN),
    _both(_some(_ENTITY, _NUMERIC), all_of=_ENTITY, is_after=False, day=date(2023, 3, 15)),
    _both(_some(_LOCATION, _ABBREVIATION), all_of=_LOCATION, day=date(2022, 8, 20)),
    _both(_some(_ABSTRACT, _NUMERIC), all_of=_NUMERIC, is_after=False, day=date(2024, 2, 1)),
    _both(_some(_HUMAN, _ABSTRACT), all_of=_ABSTRACT, day=date(2023, 5, 10)),
    _both(_some(_ENTITY, n=2), _some(_LOCATION)),
    _both(_some(_NUMERIC, _HUMAN), all_of=_HUMAN, is_after=False, day=date(2023, 12, 24)),
    Query("pairs", pair=(_one(_some(_ENTITY), _some(_ABBREVIATION)), _one(_exactly(1, _ENTITY)))),
    Query("pairs", pair=(_one(_some(_NUMERIC, n=2)), _one(_some(_LOCATION), _some(_HUMAN)))),
    Query("pairs", pair=(_one(_exactly(1, _ABSTRACT)), _one(_some(_ABBREVIATION), _some(_ENTITY)))),
    Query("pairs", pair=(_one(_some(_HUMAN)), _one(_some(_ENTITY), _exactly(1, _ABBREVIATION)))),
    Query("pairs", pair=(_one(_some(_ENTITY, _LOCATION, n=2)), _one(_exactly(1, _NUMERIC)))),
    Query("pairs", pair=(
        _dated(_some(_LOCATION), all_of=_LOCATION, is_after=True, day=date(2022, 11, 1)),
        _one(_some(_HUMAN, n=2)),
    )),
    Query("pairs", pair=(
        _one(_exactly(1, _NUMERIC)),
        _dated(_some(_LOCATION, n=2), all_of=_LOCATION, is_after=False, day=date(2024, 6, 30)),
    )),
    Query("pairs", pair=(
        _one(_some(_ABBREVIATION), _exactly(1, _HUMAN)),
        _dated(_some(_ENTITY), all_of=_ENTITY, is_after=True, day=date(2023, 1, 6)),
    )),
    Query("pairs", pair=(
        _one(_some(_LOCATION, n=2), _some(_ENTITY)),
        _dated(_exactly(1, _ABSTRACT), all_of=_ABSTRACT, is_after=False, day=date(2024, 1, 31)),
    )),
    Query("pairs", pair=(
        _dated(_some(_HUMAN, n=2), all_of=_HUMAN, is_after=True, day=date(2022, 5, 1)),
        _dated(_exactly(1, _ENTITY), all_of=_ENTITY, is_after=False, day=date(2024, 9, 1)),
    )),
)  # fmt: skip
