"""Charts of evaluations: what is drawn, what is skipped, the same bytes every time."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Any

import pytest

from pearl.evals.log import EvalLog
from pearl.evals.pictures import Picture, draw, heading, series_of, subsets_of
from pearl.llm import Usage
from pearl.llm.prices import Price
from tests.evals.evallogs import header, log, record
from tests.skips import needs

pytestmark = needs("matplotlib")


def drawn(*logs: EvalLog) -> tuple[dict[str, Picture], dict[str, str]]:
    pictures, skipped = draw(series_of(logs))
    return {picture.name: picture for picture in pictures}, skipped


def words(picture: Picture) -> str:
    """The text in the picture, which must be XML."""
    return "\n".join(ET.fromstring(picture.svg).itertext())


def log_of(*records: Any, **fields: Any) -> EvalLog:
    return EvalLog(header(**fields), records)


@pytest.mark.slow
def test_a_log_and_libraries_of_several_sizes() -> None:
    pictures, skipped = drawn(log(12))
    assert set(pictures) == {"accuracy-cost", "subsets"}
    assert list(skipped) == ["library-size"]
    for picture in pictures.values():
        said = words(picture)
        assert {"quality-dev", "openai:gpt-x · n = 12", "pearl", "direct"} <= {*said.split("\n")}
        assert picture.png.startswith(b"\x89PNG")
    cost = words(pictures["accuracy-cost"])
    for word in (
        "mean cost of a sample (US dollars)",
        "accuracy (%), 95 % interval",
        "chance: 25 %",
    ):
        assert word in cost
    for word in ("all", "easy", "hard", "n = 12", "n = 6"):
        assert word in words(pictures["subsets"])
    logs = [log(6, n_actions=n, library=f"lib{n}") for n in (43, 11, 23)]
    pictures, skipped = drawn(*logs)
    assert skipped == {}
    text = words(pictures["library-size"]).split()
    assert [text.count(word) for word in ("direct", "pearl")] == [1, 1]
    assert "direct, 43 actions" in words(pictures["accuracy-cost"])
    import matplotlib

    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path"}):
        assert drawn(*logs)[0] == pictures, "the same bytes, whatever the user's style"
        assert matplotlib.rcParams["font.size"] == 30
    assert "matplotlib.pyplot" not in sys.modules


@pytest.mark.parametrize(
    ("made", "reasons"),
    [
        (log_of(record()), {"subsets": "no sample belongs to a subset"}),
        (log_of(record(usage=Usage(), subsets=("s",)), price=None),
         {"accuracy-cost": "no costs and no tokens were counted"}),
        (log_of(), dict.fromkeys(("accuracy-cost", "subsets", "library-size"), "no records")),
    ],
)  # fmt: skip
def test_pictures_without_data_are_skipped(made: EvalLog, reasons: dict[str, str]) -> None:
    pictures, skipped = drawn(made)
    assert reasons.items() <= skipped.items()
    assert not set(skipped) & set(pictures)


@pytest.mark.parametrize("options", [((), ("a", "b")), ((), ())])
def test_no_chance_line_unless_all_have_as_many_options(options: Sequence[tuple[str, ...]]) -> None:
    records = [record(str(i), options=each) for i, each in enumerate(options)]
    assert "chance" not in words(drawn(log_of(*records))[0]["accuracy-cost"])


def test_names_are_not_interpreted_as_markup_or_formulas() -> None:
    hostile = "<b>&$\\frac$\x00\n" + "long" * 40
    made = log_of(
        record(method=hostile, subsets=("</text>", "海")), methods=(hostile,), data="$x_1$ ]]>"
    )
    pictures, _ = drawn(made)
    for picture in pictures.values():
        assert "$x_1$ ]]>" in words(picture)
    assert "<b>&$\\frac$�" in words(pictures["accuracy-cost"])
    assert "</text>" in words(pictures["subsets"])
    assert "海" in words(pictures["subsets"])


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
def test_labels_name_the_differences_between_logs(
    fields: list[dict[str, object]], labels: list[str]
) -> None:
    logs = [EvalLog(header(**each), (record(),)) for each in fields]
    assert [row.label for row in series_of(logs)] == labels


def test_the_heading_says_data_model_and_n() -> None:
    rows = series_of([log(6, seeds=(0, 1)), log(4, model="other", seeds=(0, 1))])
    assert heading(rows) == "quality-dev · openai:gpt-x, other · n = 4 to 6, 2 seeds"
