"""Model name → price of its tokens; an unknown price is None, never 0."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from pydantic import ConfigDict, Field, NonNegativeFloat, ValidationError

from pearl.data.journal import Frozen, reason
from pearl.errors import DataError
from pearl.errors.patterns import lazy_pattern
from pearl.llm import Usage

_SHIPPED = Path(__file__).with_name("prices.toml")
_FORMAT = 'as_of = 2026-11-21, then [usd_per_million] and "NAME" = { input = 2.5, output = 10 }'
# Versions that may follow a name of the table.
_VERSION = lazy_pattern(r"(?:[-@](?:20\d\d-?\d\d-?\d\d|\d{4}|latest))?\Z")


def money(usd: float) -> str:
    """US dollars as text, with four decimals below ten dollars.

    Example:
        >>> money(0.0012), money(1234.5)
        ('$0.0012', '$1,234.50')
    """
    return f"${usd:,.4f}" if abs(usd) < 10 else f"${usd:,.2f}"


class Price(Frozen):
    """US dollars per million tokens."""

    model_config = ConfigDict(populate_by_name=True)

    input_usd: NonNegativeFloat = Field(validation_alias="input")
    output_usd: NonNegativeFloat = Field(validation_alias="output")
    cached_usd: NonNegativeFloat | None = Field(default=None, validation_alias="cached")
    """Of input tokens that the server's cache served; None if it is the price of all input tokens."""

    def __str__(self) -> str:
        return "/".join(
            f"{usd:g}"
            for usd in (self.input_usd, self.cached_usd, self.output_usd)
            if usd is not None
        )

    def cost_usd(self, usage: Usage) -> float:
        """The cost of a usage in US dollars."""
        cached = self.input_usd if self.cached_usd is None else self.cached_usd
        fresh = usage.n_input_tokens - usage.n_cached_tokens
        return (
            fresh * self.input_usd
            + usage.n_cached_tokens * cached
            + usage.n_output_tokens * self.output_usd
        ) / 1_000_000


class _PriceTable(Frozen):
    as_of: date
    usd_per_million: dict[str, Price]


@dataclass(frozen=True)
class Prices:
    """A table of prices."""

    as_of: date
    by_beginning: dict[str, Price]

    def of(self, model: str) -> Price | None:
        """The price of `backend:name` or `name`, ignoring case and any `vendor/`; None if unknown.

        Example:
            >>> str(read_prices().of("openai:gpt-4o-mini-2024-07-18"))
            '0.15/0.075/0.6'
            >>> read_prices().of("openai:gpt-4o-mini-like-model") is None
            True
        """
        name = (model.partition(":")[2] or model).rpartition("/")[2].casefold()
        fits = [
            beginning
            for beginning in self.by_beginning
            if name.startswith(beginning) and _VERSION.match(name, len(beginning))
        ]
        return self.by_beginning[max(fits, key=len)] if fits else None


def read_prices(path: str | Path | None = None) -> Prices:
    """Read a table of prices; None for the shipped one."""
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
    prices = table.usd_per_million
    return Prices(table.as_of, {name.casefold(): price for name, price in prices.items()})
