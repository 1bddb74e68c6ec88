from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.tables.columns import ALWAYS, WEEK, minutes_of_week, read_hours, read_moment


@pytest.mark.parametrize(
    ("text", "intervals"),
    [
        ("Mon 8-12, Mon 14:00-18:00", ((480, 720), (840, 1080))),
        ("Mon 9am-1pm and 4 pm - 7 pm", ((540, 780), (960, 1140))),
        ("Sun 20:00-02:00", ((0, 120), (6 * 1440 + 1200, WEEK))),
        ("Mon-Tue 24h", ((0, 2880),)),
        ("daily closed", ()),
        ("Mon 09:00-20:00; Sat 20:00-23:00", ((540, 1200), (8400, 8580))),
        ("Mon 09:00-20:000", None),
        ("24/7", ((0, WEEK),)),
        ("Mon 25:00-26:00", None),
        ("Mon 13pm-2pm", None),
        ("Mon 8-12 except holidays", None),
        ("", None),
    ],
)
def test_hours(text: str, intervals: tuple[tuple[int, int], ...] | None) -> None:
    minutes = None if intervals is None else sum(minutes_of_week(*each) for each in intervals)
    assert read_hours(text) == minutes


@given(st.text(max_size=40) | st.from_regex(r"(?:Mon|Fri-Sun) [0-9:apm -]{1,20}", fullmatch=True))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert 0 <= (read_hours(text) or 0) <= ALWAYS
    if moment := read_moment(text):
        assert 1 <= moment.minutes.bit_count() <= 1440
