"""What models cost: the shipped table, a table of one's own, and what is not known."""

from __future__ import annotations

from pathlib import Path

import pytest

from pearl.errors import DataError
from pearl.llm.prices import Price, read_prices

TABLE = 'as_of = 2026-01-31\n[usd_per_million]\n"Llama-4" = { input = 0.2, output = 0.6 }\n'


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("gpt-4o", "2.5/1.25/10"),
        ("openai:gpt-4o-2024-11-20", "2.5/1.25/10"),
        ("openai:gpt-4o-2024-05-13", "5/15"),
        ("openai:openai/GPT-4o-mini", "0.15/0.075/0.6"),
        ("openai:anthropic/claude-opus-4.5", "5/0.5/25"),
        ("claude-opus-4-5-20251101", "5/0.5/25"),
    ],
)
def test_the_longest_beginning_wins(model: str, price: str) -> None:
    assert str(read_prices().of(model)) == price


@pytest.mark.parametrize(
    "model",
    ["gpt-4o-audio-preview", "gpt-5-pro", "gpt-5.4", "ft:gpt-4o:me", "sim", "extractive", ""],
)
def test_an_unknown_price_is_none(model: str) -> None:
    assert read_prices().of(model) is None


def test_the_shipped_table_is_dated_and_plausible() -> None:
    table = read_prices()
    assert table.as_of.year >= 2026
    for name, price in table.by_beginning.items():
        writes = not name.startswith("text-embedding")
        assert price.input_usd > 0, name
        assert (price.output_usd > price.input_usd) if writes else price.output_usd == 0, name
        assert price.cached_usd is None or 0 < price.cached_usd < price.input_usd, name


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(TABLE, encoding="utf-8")
    table = read_prices(path)
    assert table.of("openai:meta/llama-4") == Price(input_usd=0.2, output_usd=0.6)
    assert table.of("gpt-4o") is None, "it takes the place of the shipped one"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read"),
        ("as_of =", "not TOML"),
        ("as_of = 2026-01-31\n", "usd_per_million: Field required"),
        (TABLE.replace("0.2", "-1"), "usd_per_million.Llama-4.input"),
        (TABLE.replace("output", "outptu"), "usd_per_million.Llama-4"),
    ],
)
def test_a_broken_table(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "prices.toml"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=said) as caught:
        read_prices(path)
    assert len(str(caught.value).splitlines()) <= 3
