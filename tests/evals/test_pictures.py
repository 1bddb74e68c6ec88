"""Charts of evaluations: what is drawn, what is skipped, the same bytes every time."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Any

import pytest

from pearl.errors import UsageError
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
def test_one_log_gives_three_pictures() -> None:
    pictures, skipped = drawn(log(12))
    assert set(pictures) == {"accuracy-cost", "subsets", "plan-shape"}
    assert skipped == {
        "library-size": "all logs have libraries of the same size; give logs with different libraries",
        "reliability": "no answer has a confidence; run pearl eval with --plans",
    }
    for picture in pictures.values():
        assert "quality-dev · openai:gpt-x · n = 12" in words(picture)
        assert "pearl" in words(picture)
        assert picture.png.startswith(b"\x89PNG")
    cost = words(pictures["accuracy-cost"])
    assert "mean cost of a sample (US dollars)" in cost
    assert "accuracy (%), 95 % interval" in cost
    assert "chance" in cost
    assert "25 %" in cost
    for word in ("all", "easy", "hard", "n = 12", "n = 6", "direct"):
        assert word in words(pictures["subsets"])
    shape = words(pictures["plan-shape"])
    assert "steps on the longest chain (depth)" in shape
    assert re.search(r"pearl \(\d+ plans\)", shape)
    assert "direct" not in shape  # it makes no plans


@pytest.mark.slow
def test_libraries_of_different_size_give_a_line_a_method() -> None:
    pictures, skipped = drawn(*(log(6, n_actions=n, library=f"lib{n}") for n in (43, 11, 23)))
    assert set(skipped) == {"reliability"}
    text = words(pictures["library-size"]).split()
    assert [text.count(word) for word in ("11", "23", "43", "direct", "pearl")] == [1] * 5
    assert "direct, 43 actions" in words(pictures["accuracy-cost"])


@pytest.mark.slow
def test_the_same_log_gives_the_same_bytes() -> None:
    first, second = (drawn(log(8), log(8, n_actions=3))[0] for _ in range(2))
    assert first == second
    assert "date" not in first["subsets"].svg


@pytest.mark.slow
def test_the_users_matplotlib_style_has_no_effect() -> None:
    import matplotlib

    before = drawn(log(4))[0]
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path"}):
        assert drawn(log(4))[0] == before
        assert matplotlib.rcParams["font.size"] == 30


@pytest.mark.slow
def test_nothing_global_is_left_behind() -> None:
    drawn(log(4))
    assert "matplotlib.pyplot" not in sys.modules


@pytest.mark.slow
def test_costs_far_apart_stand_on_a_logarithmic_axis() -> None:
    pictures, _ = drawn(log(6, methods=("retrieve", "pearl")))
    assert "US dollars), logarithmic" in words(pictures["accuracy-cost"])
    assert "mathdefault" not in pictures["accuracy-cost"].svg


@pytest.mark.parametrize(
    ("made", "reasons"),
    [
        (log_of(record()), {"subsets": "no sample belongs to a subset",
                        "plan-shape": "no record has a plan"}),
        (log_of(record(usage=Usage(), subsets=("s",)), price=None),
         {"accuracy-cost": "no costs and no tokens were counted"}),
        (log_of(), dict.fromkeys(("accuracy-cost", "subsets", "library-size", "plan-shape", "reliability"),
                             "no records")),
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


def test_confidence_is_drawn_with_its_counts_and_its_error() -> None:
    sure = [record(f"a{i}", confidence=1.0) for i in range(6)]
    unsure = [record(f"b{i}", confidence=0.5, score=0.0, choice=1) for i in range(4)]
    pictures, _ = drawn(log_of(*sure, *unsure))
    said = words(pictures["reliability"])
    assert "pearl (n = 10, error 20.0 %)" in said
    assert {"6", "4"} <= set(said.split())
    assert "confidence (%)" in said


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


def test_every_point_is_in_a_legend_that_leaves_the_axes_their_height() -> None:
    def of_methods(n: int) -> Picture:
        names = tuple(f"a method with a longer name {i}" for i in range(n))
        made = log_of(*(record(method=name) for name in names), methods=names)
        return drawn(made)[0]["accuracy-cost"]

    few, many = of_methods(1), of_methods(20)
    svg = ET.fromstring(many.svg)
    legend = next(group for group in svg.iter() if group.get("id") == "legend_1")
    named = [text.strip() for text in legend.itertext() if text.strip()]
    assert named == [f"a method with a longer name {i}" for i in range(20)]
    assert legend not in list(next(group for group in svg.iter() if group.get("id") == "axes_1"))
    assert axes_height(many) > 0.9 * axes_height(few)


def axes_height(picture: Picture) -> float:
    """Points from the lowest to the highest corner of the background of the axes."""
    axes = next(g for g in ET.fromstring(picture.svg).iter() if g.get("id") == "axes_1")
    numbers = [float(n) for n in re.findall(r"[\d.]+", axes[0][0].get("d", ""))]
    return max(numbers[1::2]) - min(numbers[1::2])


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"needs matplotlib.*\n.*pip install .*\[pictures\]"):
        drawn(log(2))


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
