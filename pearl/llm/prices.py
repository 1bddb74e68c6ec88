"""Model name → token prices; an unknown price is None, never 0."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, ValidationError, convert, to_builtins
from msgspec.structs import asdict, replace

from pearl.errors import DataError
from pearl.errors.patterns import lazy_pattern
from pearl.errors.validation import reason
from pearl.llm import Usage

_SHIPPED = Path(__file__).with_name("prices.toml")
_FORMAT = 'as_of = 2026-11-21, then [usd_per_million] and "NAME" = { input = 2.5, output = 10 }'
# As high as the most expensive model of the shipped table, because users may copy the line
# unchanged.
PRICE_HELP = "add US dollars per million tokens of that model, as --price input=10,output=50"
# Minimum tokens of a prompt that vendors write to their cache.
MIN_WRITTEN_TOKENS = 1_024
# Version suffixes that may follow a name in the table: `-2026-01-31`, `@latest`.
_VERSION = lazy_pattern(r"(?:[-@](?:20\d\d-?\d\d-?\d\d|\d{4}|latest))?\Z")


def money(usd: float) -> str:
    """US dollars as text, with four decimals below ten dollars."""
    return f"${usd:,.4f}" if abs(usd) < 10 else f"${usd:,.2f}"


def table_help(model: str) -> str:
    """Advice to add a model of unknown price to the price table."""
    name = model.partition(":")[2] or model
    return f'add "{name}" = {{ input = 10, output = 50 }} to the table of --prices: docs/costs.md'


class _Prices(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The base class of prices; each price is checked when it is made."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            is_number = isinstance(value, int | float)
            if name.endswith("_usd") and value is not None and not (is_number and 0 <= value < inf):
                raise ValueError(f"{name} must be 0 or more, not {value!r}")
            if (
                name in ("batch", "flex")
                and value is not None
                and not (is_number and 0 < value <= 1)
            ):
                raise ValueError(f"{name} must be above 0 and at most 1, not {value!r}")


class LongPrice(_Prices, frozen=True):
    """Prices for calls whose prompt has more than `above` tokens, in US dollars per million tokens."""

    above: Annotated[int, Meta(gt=0)]
    input_usd: float
    output_usd: float


class Price(_Prices, frozen=True, kw_only=True):
    """Token prices of a model, in US dollars per million tokens.

    Example:
        >>> price = Price.read("input=2,cached=0.2,write=2.5,output=10,batch=0.5")
        >>> price.cost_usd(Usage(1_000_000, 100_000))
        3.0
        >>> str(price)
        'input=2,cached=0.2,write=2.5,output=10,batch=0.5'
    """

    input_usd: float
    cached_usd: float | None = None
    """For input tokens read from the server's cache; None for the usual input price."""
    write_usd: float | None = None
    """For input tokens written to the cache; None for the usual input price."""
    write_long_usd: float | None = None
    """For tokens kept an hour or longer; None if the lifetime does not affect the price."""
    write_on_request: bool = False
    """Whether the server writes to its cache only if a request asks for it."""
    output_usd: float
    batch: float | None = None
    """Factor on all prices for batches; None for 1."""
    flex: float | None = None
    """Factor on all prices for replies in the service tier `flex`; None for 1."""
    long: LongPrice | None = None

    @classmethod
    def read(cls, text: str) -> Price:
        """Read prices in the form of a TOML inline table without braces, as in price tables."""
        return cls.of(tomllib.loads(f"price = {{{text}}}")["price"])

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Price:
        """Read prices by the names of price tables, which have no `_usd`; raises a `ValueError`."""
        try:
            return convert(_named(values, cls), cls, strict=False)
        except ValidationError as error:
            raise ValidationError(str(error).replace("_usd", "")) from None

    def to_dict(self) -> dict[str, Any]:
        """As JSON data, by the names of the fields."""
        return asdict(self) | {"long": self.long and asdict(self.long)}

    def __str__(self) -> str:
        values = to_builtins(self)  # Without defaults
        values |= {f"long.{name}": value for name, value in values.pop("long", {}).items()}
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


def _named(values: Mapping[str, Any], kind: type[_Prices]) -> dict[str, Any]:
    """The values of a price by the names of its fields."""
    fields = kind.__struct_fields__
    named = {
        n if (name := f"{n}_usd") not in fields or name in values else name: value
        for n, value in values.items()
    }
    if isinstance(named.get("long"), dict):
        named["long"] = _named(named["long"], LongPrice)
    return named


class PriceSource(Struct, frozen=True, forbid_unknown_fields=True):
    """A vendor's price page, and the day on which it, or a copy of it, was read."""

    read: date
    at: str


class _PriceTable(Struct, forbid_unknown_fields=True):
    as_of: date
    usd_per_million: dict[str, Any]
    sources: dict[str, Any] = {}


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
    prices: dict[str, Price] = {}
    last_days: dict[str, date] = {}
    sources: dict[str, PriceSource] = {}
    place = ""
    try:
        table = convert(tomllib.loads(where.read_text(encoding="utf-8")), _PriceTable)
        for name, source in table.sources.items():
            place = f"sources.{name}"
            sources[name] = convert(source, PriceSource)
        for name, each in table.usd_per_million.items():
            place = f"usd_per_million.{name}"
            entry = convert(each, dict[str, Any])
            if "until" in entry:  # The last day on which the price is valid, as for an offer
                place += ".until"
                last_days[name] = convert(entry.pop("until"), date)
                place = place.removesuffix(".until")
            prices[name] = Price.of(entry)
    except OSError as error:
        raise DataError(
            f"cannot be read: {error.strerror}", path=where, help="check the path"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"not TOML: {error}", path=where, help=_FORMAT) from None
    except ValidationError as error:
        raise DataError(reason(error, place), path=where, help=_FORMAT) from None
    return Prices(table.as_of, prices, last_days, sources)
