"""Number of parameters of a model, by its name or its file, without requests."""

from __future__ import annotations

import re
from pathlib import Path

from pearl.errors.patterns import lazy_pattern

# Parameters of a small model: those sold as 3B have up to 3.3 billion, the next size begins at
# 3.8.
MAX_SMALL = 3.5e9
# Of a file: 3B at four bits have 2.0 GB, 7B at two bits 2.8 and at four bits 4.4.
SMALL_BYTES = 2_500_000_000

_SIZE = lazy_pattern(
    r"(?:(?<![a-z0-9.])|(?<=[-_:]e))(?:(\d+)x)?(\d+(?:[._]\d+)?)([bm])(?![a-z0-9])", re.I
)

_UNITS = {"b": 1e9, "m": 1e6}
# Smaller numbers are windows: `1m` to `10m` tokens.
_MIN_PARAMETERS = 11e6


def n_parameters(name: str) -> float | None:
    """Parameters of a model by its name; the largest number if the name has several.

    Example:
        >>> [n_parameters(name) for name in ("SmolLM2-135M-Instruct.Q4_1", "llama3.2:1b", "gpt-4o")]
        [135000000.0, 1000000000.0, None]
        >>> n_parameters("Qwen3-30B-A3B"), n_parameters("mixtral:8x7b"), n_parameters("Qwen2.5-7B-1M")
        (30000000000.0, 56000000000.0, 7000000000.0)
    """
    sizes = (
        int(times or 1) * float(number.replace("_", ".")) * _UNITS[unit.lower()]
        for times, number, unit in _SIZE.findall(name)
    )
    return max((size for size in sizes if size >= _MIN_PARAMETERS), default=None)


def is_small(name: str) -> bool:
    """Whether a model is known to have few parameters.

    Example:
        >>> is_small("ollama:llama3.2:1b"), is_small("openai:Qwen2.5-7B"), is_small("openai:gpt-4o")
        (True, False, False)
    """
    _, _, model = name.partition(":")
    path = Path(model).expanduser()
    said = n_parameters(path.name)
    if said is not None:
        return said <= MAX_SMALL
    try:
        return bool(model) and path.is_file() and path.stat().st_size <= SMALL_BYTES
    except (OSError, ValueError):  # the name is not a path
        return False
