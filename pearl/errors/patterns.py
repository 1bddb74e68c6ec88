"""Regular expressions compiled on first use; compiling all of them takes half the time of `pearl check`."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

_METHODS = ("findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn")


class _Lazy:
    """A stand-in for a `re.Pattern`; the first use of a method compiles it."""

    def __init__(self, text: Any, flags: int) -> None:
        self.pattern, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self.pattern, self._flags)
        vars(self).update({method: getattr(compiled, method) for method in _METHODS})
        return getattr(compiled, name)

    def __reduce__(self) -> Any:
        return lazy_pattern, (self.pattern, self._flags)


def lazy_pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    r"""Like `re.compile`, but compiled at the first use; functions of `re` do not accept the result.

    Example:
        >>> lazy_pattern(r"\d+").findall("1 and 22")
        ['1', '22']
    """
    return cast("re.Pattern[AnyStr]", _Lazy(text, flags))
