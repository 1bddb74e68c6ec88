"""What a value has to fulfil: keywords of JSON Schema, checked by `jsonschema_rs` with an engine that never backtracks."""

from __future__ import annotations

import json
from decimal import Decimal
from functools import lru_cache
from typing import Any, NoReturn

from pearl.dsl.literals import short

MAX_PATTERN = 1_000  # Maximum characters of a pattern: compiling one takes time and room


@lru_cache(maxsize=1_000)
def validator(rules: str) -> Any:
    """The validator of some rules; `ValueError` says why they cannot be checked."""
    import jsonschema_rs  # late: few schemas have rules

    said = json.loads(rules, parse_float=Decimal)
    if len(str(said.get("pattern", ""))) > MAX_PATTERN:
        raise ValueError(f"a pattern has more than {MAX_PATTERN:,} characters")

    def refuse(uri: str) -> NoReturn:
        raise ValueError(f"not looked up: {uri}")

    try:
        return jsonschema_rs.Draft202012Validator(
            said, validate_formats=True, pattern_options=jsonschema_rs.RegexOptions(), retriever=refuse
        )  # fmt: skip
    except jsonschema_rs.ValidationError as error:
        raise ValueError(error.message) from None


def broken_rule(rules: str, value: object) -> str:
    """The rule that a value breaks, and how: `the value 140 breaks "maximum": 120`; "" for none.

    Example:
        >>> broken_rule('{"multipleOf": 0.01}', Decimal("0.105"))
        'the value 0.105 breaks "multipleOf": 0.01'
    """
    if not rules or isinstance(value, bool):
        return ""
    given = Decimal(str(value)) if isinstance(value, int | float) else value
    error = next(iter(validator(rules).iter_errors(given)), None)
    if error is None:
        return ""
    (keyword, *_) = error.schema_path
    wanted = json.loads(rules, parse_float=Decimal)[keyword]
    wanted = json.dumps(wanted, ensure_ascii=False) if isinstance(wanted, str) else str(wanted)
    shown = f"'{short(given)}'" if isinstance(given, str) else value
    return f'the value {shown} breaks "{keyword}": {short(wanted)}'
