"""Model name → token prices; an unknown price is None, never 0."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from datetime import date
from functools import lru_cache
from pathlib import Path

from msgspec import Struct
from pydantic import ConfigDict, Field, NonNegativeFloat, PositiveInt, ValidationError

from pearl.data.log_files import Frozen, reason
from pearl.errors import DataError
from pearl.errors.patterns import lazy_pattern
from pearl.llm import Usage

_SHIPPED = Path(__file__).with_name("prices.toml")
_FORMAT = 'as_of = 2026-11-21, then [usd_per_million] and "NAME" = { input = 2.5, output = 10 }'
# As high as the most expensive model of the shipped table, because users may copy the line
# unchanged.
PRICE_HELP = "add US dollars per million tokens of that model, as --price input=10,output=50"
# Minimum tokens of a prompt that vendors write to their cache.
MIN_WRITTEN_TOKENS = 1_024
_MODEL_CONFIG = ConfigDict(populate_by_name=True, allow_inf_nan=False, defer_build=True)
# Version suffixes that may follow a name in the table: `-2026-01-31`, `@latest`.
_VERSION = lazy_pattern(r"(?:[-@](?:20\d\d-?\d\d-?\d\d|\d{4}|latest))?\Z")


def money(usd: float) -> str:
    """US dollars as text, with four decimals below ten dollars."""
    return f"${usd:,.4f}" if abs(usd) < 10 else f"${usd:,.2f}"


def table_help(model: str) -> str:
    """Advice to add a model of unknown price to the price table."""
    name = model.partition(":")[2] or model
    return f'add "{name}" = {{ input = 10, output = 50 }} to the table of --prices: docs/costs.md'


class LongPrice(Frozen):
    """Prices for calls whose prompt has more than `above` tokens, in US dollars per million tokens."""

    model_config = _MODEL_CONFIG

    above: PositiveInt
    input_usd: NonNegativeFloat = Field(validation_alias="input")
    output_usd: NonNegativeFloat = Field(validation_alias="output")


class Price(Frozen):
    """Token prices of a model, in US dollars per million tokens.

    Example:
        >>> price = Price.read("input=2,cached=0.2,write=2.5,output=10,batch=0.5")
        >>> price.cost_usd(Usage(1_000_000, 100_000))
        3.0
        >>> str(price)
        'input=2,cached=0.2,write=2.5,output=10,batch=0.5'
    """

    model_config = _MODEL_CONFIG

    input_usd: NonNegativeFloat = Field(validation_alias="input")
    cached_usd: NonNegativeFloat | None = Field(default=None, validation_alias="cached")
    """For input tokens read from the server's cache; None for the usual input price."""
    write_usd: NonNegativeFloat | None = Field(default=None, validation_alias="write")
    """For input tokens written to the cache; None for the usual input price."""
    write_long_usd: NonNegativeFloat | None = Field(default=None, validation_alias="write_long")
    """For tokens kept an hour or longer; None if the lifetime does not affect the price."""
    write_on_request: bool = False
    """Whether the server writes to its cache only if a request asks for it."""
    output_usd: NonNegativeFloat = Field(validation_alias="output")
    batch: float | None = Field(default=None, gt=0, le=1)
    """Factor on all prices for batches; None for 1."""
    flex: float | None = Field(default=None, gt=0, le=1)
    """Factor on all prices for replies in the service tier `flex`; None for 1."""
    long: LongPrice | None = None

    @classmethod
    def read(cls, text: str) -> Price:
        """Read prices in the form of a TOML inline table without braces, as in price tables."""
        return cls.model_validate(tomllib.loads(f"price = {{{text}}}")["price"])

    def __str__(self) -> str:
        values = self.model_dump(exclude_defaults=True)
        long = values.pop("long", {})
        values |= {f"long.{name}": value for name, value in long.items()}
        return ",".join(
            f"{name.removesuffix('_usd')}={'true' if value is True else f'{value:.12g}'}"
            for name, value in values.items()
        )

    def cost_usd(self, usage: Usage, *, is_long: bool = False) -> float:
        """The cost of a usage in US dollars, at the prices for short or long prompts."""
        cached = self.input_usd if self.cached_usd is None else self.cached_usd
        write = self.input_usd if self.write_usd is None else self.write_usd
        write_long = write if self.write_long_usd is None else self.write_long_usd
        fresh = usage.n_input_tokens - usage.n_cached_tokens - usage.n_written_tokens
        read = (
            fresh * self.input_usd
            + usage.n_cached_tokens * cached
            + (usage.n_written_tokens - usage.n_written_long_tokens) * write
            + usage.n_written_long_tokens * write_long
        )
        output = self.output_usd
        if is_long and self.long is not None:
            rise = read / self.input_usd if self.input_usd else usage.n_input_tokens
            read = rise * self.long.input_usd
            output = self.long.output_usd
        return (read + usage.n_output_tokens * output) / 1_000_000

    def call_usd(self, usage: Usage, *, may_write: bool | None = None) -> float:
        """The cost of one call; if its usage lacks cache writes, the more expensive interpretation."""
        readings = [usage]
        n_fresh = usage.n_input_tokens - usage.n_cached_tokens
        may_write = not self.write_on_request if may_write is None else may_write
        if may_write and not usage.n_written_tokens and n_fresh >= MIN_WRITTEN_TOKENS:
            readings.append(replace(usage, n_written_tokens=n_fresh))
        is_long = self.is_long(usage.n_input_tokens)
        return max(self.cost_usd(reading, is_long=is_long) for reading in readings)

    def worst_usd(self, n_input: int, n_output: int) -> float:
        """The cost of a call with at most these tokens, at the highest prices."""
        parts = ((), (n_input,), (0, 0, n_input), (0, 0, n_input, n_input))
        return max(
            self.cost_usd(Usage(n_input, n_output, *part), is_long=is_long)
            for part in parts
            for is_long in {False, self.is_long(n_input)}
        )

    def is_long(self, n_input: float) -> bool:
        """Whether a prompt is charged at the price for long prompts."""
        return self.long is not None and n_input > self.long.above


class _Entry(Price):
    until: date | None = None  # The last day on which the price is valid, as for an offer


class PriceSource(Frozen):
    """A vendor's price page, and the day on which it, or a copy of it, was read."""

    read: date
    at: str


class _PriceTable(Frozen):
    as_of: date
    sources: dict[str, PriceSource] = Field(default_factory=dict)
    usd_per_million: dict[str, _Entry]


class Prices(Struct, frozen=True):
    """A table of prices."""

    as_of: date
    by_beginning: dict[str, Price]
    last_days: dict[str, date] = {}
    sources: dict[str, PriceSource] = {}

    def of(self, model: str) -> Price | None:
        """The price of `backend:name` or `name`, ignoring case and any prefix `vendor/`; None if unknown."""
        name = _spelled((model.partition(":")[2] or model).rpartition("/")[2])
        fits = [
            beginning
            for beginning in self.by_beginning
            if name.startswith(_spelled(beginning)) and _VERSION.match(name, len(beginning))
        ]
        beginning = max(fits, key=len, default="")
        if self.last_days.get(beginning, date.max) < date.today():
            return None
        return self.by_beginning.get(beginning)


@lru_cache(maxsize=4_096)  # A listing looks up one name per row
def _spelled(name: str) -> str:
    """A name with its spelling variants unified: routers write dots for hyphens."""
    return name.casefold().replace(".", "-")


def read_prices(path: str | Path | None = None) -> Prices:
    """Read a price table; None for the shipped one."""
    where = _SHIPPED if path is None else Path(path)
    try:
        table = _PriceTable.model_validate(tomllib.loads(where.read_text(encoding="utf-8")))
    except OSError as error:
        raise DataError(
            f"cannot be read: {error.strerror}", path=where, help="check the path"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"not TOML: {error}", path=where, help=_FORMAT) from None
    except ValidationError as error:
        raise DataError(reason(error), path=where, help=_FORMAT) from None
    entries = table.usd_per_million
    return Prices(
        table.as_of,
        {name: Price(**entry.model_dump(exclude={"until"})) for name, entry in entries.items()},
        {name: entry.until for name, entry in entries.items() if entry.until},
        table.sources,
    )
