"""What models cost: the shipped table, a table of one's own, and what is not known."""

from __future__ import annotations

import math
import tomllib
from datetime import date
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from pearl.errors import DataError
from pearl.llm import Usage
from pearl.llm.prices import Price, money, read_prices

TABLE = 'as_of = 2026-01-31\n[usd_per_million]\n"Llama-4" = { input = 0.2, output = 0.6 }\n'
FULL = "input=2,cached=0.2,write=2.5,write_long=5,output=10,batch=0.5,flex=0.4"
LONG = "long.above=1000,long.input=4,long.output=15"


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("gpt-4o", (2.5, 1.25, None, 10)),
        ("openai:gpt-4o-2024-11-20", (2.5, 1.25, None, 10)),
        ("openai:gpt-4o-2024-05-13", (5, None, None, 15)),
        ("openai:openai/GPT-4o-mini", (0.15, 0.075, None, 0.6)),
        ("openai:anthropic/claude-opus-4.5", (5, 0.5, 6.25, 25)),
        ("claude-opus-4-5-20251101", (5, 0.5, 6.25, 25)),
        ("claude-opus-5-5", (4, 0.2, 5, 20)),
        ("gpt-6-sol-2026-09-22", (2, 0.2, 2.5, 10)),
    ],
)
def test_the_longest_beginning_wins(model: str, price: tuple[float | None, ...]) -> None:
    known = read_prices().of(model)
    assert known is not None
    assert (known.input_usd, known.cached_usd, known.write_usd, known.output_usd) == price


@pytest.mark.parametrize(
    "model",
    ["gpt-4o-audio-preview", "gpt-5-pro", "gpt-5.4-pro", "ft:gpt-4o:me", "sim", "extractive", ""],
)
def test_an_unknown_price_is_none(model: str) -> None:
    assert read_prices().of(model) is None


def test_the_shipped_table_is_dated_and_plausible() -> None:
    table = read_prices()
    assert {"OpenAI", "Anthropic", "Google"} <= table.sources.keys()
    assert (
        min(source.read for source in table.sources.values()) == table.as_of >= date(2026, 11, 24)
    )
    assert all(source.at.startswith("https://") for source in table.sources.values())
    for name, price in table.by_beginning.items():
        is_embedder = name.startswith("text-embedding")
        assert price.input_usd > 0, name
        assert price.output_usd == 0 if is_embedder else price.output_usd >= price.input_usd, name
        assert price.cached_usd is None or 0 < price.cached_usd < price.input_usd, name
        assert price.write_usd is None or price.write_usd == 1.25 * price.input_usd, name
        assert (price.write_usd is None) == (price.write_long_usd is None), name
        assert price.write_long_usd is None or price.write_long_usd >= 2 * price.input_usd, name
        assert price.write_on_request == name.startswith("claude"), name
        if price.long is not None:
            assert price.long.above >= 100_000, name
            assert price.long.input_usd / price.input_usd >= 2, name
            assert price.long.output_usd / price.output_usd >= 1.5, name
        assert Price.read(str(price)) == price, name


def test_a_price_is_written_as_in_a_table() -> None:
    price = Price.read(f"{FULL},{LONG}")
    spaced = f'"new" = {{ {FULL.replace(",", ", ")}, long = {{ above = 1_000, input = 4, output = 15 }} }}'
    assert Price.of(tomllib.loads(spaced)["new"]) == price
    assert str(price) == f"{FULL},{LONG}"


@pytest.mark.parametrize(
    "text",
    ["", "2/8", "input=1", "input=-1,output=2", "input=1,output=2,flex=0", "input=1,output=2,long={above=0,input=2,output=3}", "input=inf,output=2", "input=nan,output=2",
     "input=1,output=2,batch=1.5", "input=1,output=2,until=2026-01-01", "in=1,output=2", "input=1}\nx={output=2"],
)  # fmt: skip
def test_no_price(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Price.read(text)


@pytest.mark.parametrize(
    "text", ["input=0,output=0,batch=1,flex=1", "input=1,output=2,long.above=1,long.input=0,long.output=3"]
)  # fmt: skip
def test_prices_at_their_bounds(text: str) -> None:
    assert str(Price.read(text)) == text


@pytest.mark.parametrize(
    ("name", "value"),
    [*(("output_usd", usd) for usd in (-0.1, math.nan, math.inf, "2")), ("batch", 5), ("flex", 0)],
)
def test_no_price_in_python(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must be (0 or more|above 0 and at most 1), not"):
        Price(**{"input_usd": 1, "output_usd": 2, name: value})


@pytest.mark.parametrize(
    ("kind", "rate", "long_rate"),
    [((1,), "2", "4"), ((1, 0, 1), "0.2", "0.4"), ((1, 0, 0, 0, 1), "2.5", "5"), ((1, 0, 0, 0, 1, 1), "5", "10"),
     ((0, 1), "10", "15")],
)  # fmt: skip
def test_each_kind_of_token_has_its_rate(kind: tuple[int, ...], rate: str, long_rate: str) -> None:
    price, n = Price.read(f"{FULL},{LONG}"), 123_457
    usage = Usage(*(n * is_kind for is_kind in kind))
    for usd, is_long in ((rate, False), (long_rate, True)):
        exact = float(n * Decimal(usd) / 1_000_000)
        assert price.cost_usd(usage, is_long=is_long) == pytest.approx(exact, rel=1e-14)


def test_rates_that_are_not_given_are_those_of_input() -> None:
    price = Price.read("input=3,output=15")
    assert price.cost_usd(Usage(900, 0, 300, 0, 300, 100)) == 900 * 3 / 1e6


def test_a_long_prompt_costs_more_from_the_first_token_beyond() -> None:
    price = Price.read(f"{FULL},write_on_request=true,{LONG}")
    assert price.call_usd(Usage(1_000, 10)) == (1_000 * 2 + 10 * 10) / 1e6
    assert price.call_usd(Usage(1_001, 10)) == (1_001 * 4 + 10 * 15) / 1e6
    assert Price.read(f"input=0,output=0,{LONG}").call_usd(Usage(1_001)) == 1_001 * 4 / 1e6


def test_writes_that_a_server_makes_unasked_and_does_not_tell() -> None:
    price = Price.read("input=2,cached=0.2,write=2.5,output=10")
    assert price.call_usd(Usage(2_000, 0, 500)) == (1_500 * 2.5 + 500 * 0.2) / 1e6
    assert (
        price.call_usd(Usage(2_000, 0, 500, 0, 1_000)) == (500 * 2 + 500 * 0.2 + 1_000 * 2.5) / 1e6
    )
    assert price.call_usd(Usage(1_000)) == 1_000 * 2 / 1e6, "too short for a cache"
    asked = Price.read("input=2,write=2.5,output=10,write_on_request=true")
    assert asked.call_usd(Usage(2_000)) == 2_000 * 2 / 1e6


def test_no_usage_costs_more_than_the_worst() -> None:
    for cached, write, kept, read, said in product((1, 9), repeat=5):
        price = Price.read(f"input=2,cached={cached},write={write},write_long={kept},output=10,"
                           f"long.above=2000,long.input={read},long.output={said}")  # fmt: skip
        for n, *parts in product((1_900, 2_100), (0, 900, 2_100), (0, 900, 2_100), (0, 2_100)):
            assert price.call_usd(Usage.bounded(n, 9, *parts)) <= price.worst_usd(2_100, 9) + 1e-15


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(TABLE, encoding="utf-8")
    table = read_prices(path)
    assert table.of("openai:meta/llama-4") == Price(input_usd=0.2, output_usd=0.6)
    assert table.of("gpt-4o") is None, "it takes the place of the shipped one"


@pytest.mark.parametrize(("until", "is_known"), [("2999-01-01", True), ("2026-01-01", False)])
def test_a_price_ends_with_its_last_day(tmp_path: Path, until: str, is_known: bool) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(TABLE.replace("0.6", f"0.6, until = {until}"), encoding="utf-8")
    assert (read_prices(path).of("llama-4") is not None) == is_known


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read"),
        ("as_of =", "not TOML"),
        ("as_of = 2026-01-31\n", "usd_per_million: is missing"),
        (TABLE.replace("0.2", "-1"), "usd_per_million.Llama-4: input must be 0 or more, not -1"),
        (TABLE.replace("0.2", "true"), "usd_per_million.Llama-4.input: expected float, got bool"),
        (TABLE.replace(", output = 0.6", ""), "usd_per_million.Llama-4.output: is missing"),
        (TABLE.replace("0.6", "0.6, output_usd = 1"), "usd_per_million.Llama-4.output: is unknown"),
        (f'"a - at b" = 1\n{TABLE}', "a - at b: is unknown"),
        (TABLE.replace("0.6", "0.6, until = 5"), "usd_per_million.Llama-4.until: expected date"),
        (f"{TABLE}other = 5\n", "usd_per_million.other: expected object, got int"),
        (f"{TABLE}[sources.Meta]\nread = 2026-01-31\n", "sources.Meta.at: is missing"),
        (TABLE.replace("output", "outptu"), "usd_per_million.Llama-4"),
        (TABLE.replace("0.6", "0.6, long = { above = 10 }"), "usd_per_million.Llama-4.long"),
    ],
)
def test_a_broken_table(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "prices.toml"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=said) as caught:
        read_prices(path)
    assert len(str(caught.value).splitlines()) <= 3


def test_sums_below_ten_dollars_have_four_decimals() -> None:
    assert (money(0.0012), money(1234.5)) == ("$0.0012", "$1,234.50")
