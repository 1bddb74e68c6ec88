"""The numbers of an evaluation, and what methods of several logs are called."""

from __future__ import annotations

import pytest

from pearl.evals.log import EvalLog
from pearl.evals.pictures import heading, series_of, subsets_of
from pearl.llm import Usage
from pearl.llm.prices import Price
from tests.evals.evallogs import header, log, record


def test_a_cell_counts_what_happened() -> None:
    records = (
        record("a", duration_s=1.0),
        record("b", status="fell_back", choice=None, score=0.0, duration_s=2.0),
        record("c", status="failed", choice=None, score=0.0, usage=Usage(), duration_s=9.0),
        record(
            "d", status="failed", score=1.0, duration_s=4.0
        ),  # a failure is wrong, come what may
    )
    (row,) = series_of([EvalLog(header(), records)])
    cell = row.cells[None]
    assert cell.accuracy.estimate == 0.25
    assert (cell.n, cell.n_failed, cell.n_fell_back, cell.n_unmapped) == (4, 2, 1, 1)
    assert cell.tokens_per_record == 3 * 9_120 / 4
    assert cell.cost_per_record_usd is None  # one has none
    assert (cell.latency_p50_s, cell.latency_p95_s) == (3.0, 8.25)


def test_what_a_record_cost_goes_before_the_price() -> None:
    (row,) = series_of([EvalLog(header(), (record(cost_usd=7.0),))])
    assert row.cells[None].cost_per_record_usd == 7.0


def test_a_cost_that_one_record_lacks_is_unknown() -> None:
    (row,) = series_of([EvalLog(header(price=None), (record("a", cost_usd=1.0), record("b")))])
    assert row.cells[None].cost_per_record_usd is None


def test_more_seeds_do_not_fake_precision() -> None:
    once = [record(f"q{i}", score=float(i % 2)) for i in range(40)]
    often = [r.model_copy(update={"seed": seed}) for seed in range(5) for r in once]
    narrow, wide = (
        series_of([EvalLog(header(), tuple(records))])[0].cells[None].accuracy
        for records in (often, once)
    )
    assert narrow.estimate == wide.estimate == 0.5
    assert narrow.high - narrow.low == pytest.approx(wide.high - wide.low, abs=0.01)


def test_subsets_without_records_of_a_method_have_no_cell() -> None:
    records = (record("a", subsets=("hard",)), record("b", "direct", subsets=("easy",)))
    rows = series_of([EvalLog(header(), records)])
    assert [set(row.cells) for row in rows] == [{None, "easy"}, {None, "hard"}]
    assert subsets_of(rows) == ("easy", "hard")


@pytest.mark.parametrize(
    ("fields", "labels"),
    [
        ([{}], ["pearl"]),
        ([{"n_actions": 9, "library": "a"}, {}], ["pearl, 9 actions", "pearl, 80 actions"]),
        ([{"model": "m"}, {"model": "n"}], ["pearl, m", "pearl, n"]),
        ([{"price": Price(input_usd=1, output_usd=1)}, {}], ["pearl, log 1", "pearl, log 2"]),
        ([{"data": "x"}, {}, {}],
         ["pearl, x, log 1", "pearl, quality-dev, log 2", "pearl, quality-dev, log 3"]),
    ],
)  # fmt: skip
def test_labels_say_what_tells_logs_apart(
    fields: list[dict[str, object]], labels: list[str]
) -> None:
    logs = [EvalLog(header(**each), (record(),)) for each in fields]
    assert [row.label for row in series_of(logs)] == labels


def test_the_heading_says_data_model_and_n() -> None:
    rows = series_of([log(6, seeds=(0, 1)), log(4, model="other", seeds=(0, 1))])
    assert heading(rows) == "quality-dev · openai:gpt-x, other · n = 4 to 6, 2 seeds"


def test_a_log_without_records_has_no_rows() -> None:
    assert series_of([EvalLog(header(), ())]) == ()
