"""A sentence → its figures with their years, where it puts them side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator

_NUMBER = (
    r"(?<![\w.,/-])(?:(?:us ?)?[$€£¥] ?)?\(? ?[0-9][0-9,]*(?<!,)(?:\.[0-9]+)?(?: ?\))?"
    r"(?: ?%| (?:thousand|million|billion)\b)?(?!\w)"
)
_YEAR = r"(?:19|20)[0-9]{2}(?![0-9%])"
_AND = r"(?: ?, ?(?:and )?| and )"
_DATE = r"(?:(?:january|february|march|april|may|june|july|august|september|october|november|december) [0-9]{1,2} ?, ?)"
_LINK = (
    r" ?,? (?:(?:in|for|during|at|as of)\b ?)?(?:(?:each of )?(?:the )?(?:fiscal )?(?:years?|periods?)?"
    rf"(?: ended| ending)? ?)?{_DATE}?"
)
_MEASURED = re.compile(r"[$€£¥%]|thousand|million|billion|[0-9],[0-9]{3}|\.[0-9]", re.I)
"""What makes a number a figure, and no day, note or page."""
_THEN = re.compile(
    rf"(?P<figures>{_NUMBER}(?:{_AND}{_NUMBER})*){_LINK}(?P<years>{_YEAR}(?:{_AND}{_YEAR})*)", re.I
)
_RESTATED = re.compile(r" ?\( ?[$€£¥]? ?[0-9.,]+ ?%? ?\)")
"""`5% ( 5 % )`: a percentage that is said twice."""
_NEXT = re.compile(
    r"\W*(?:and|from|to|compared (?:to|with)|versus|(?:an? )?(?:increase|decrease) from)?\W*", re.I
)
"""What may stand between a figure with its year and the next one of the same thing."""


def dated_figures(sentence: str) -> Iterator[tuple[str, int, str]]:
    """Each figure of a sentence with its year, and the words before the first figure of the same thing.

    Figures without a year beside them are left out: they may be of any.

    Example:
        >>> list(dated_figures("rent was $ 3 million , $ 2 million and $ 1 million for 2006 , 2005 and 2004"))
        [('$ 3 million', 2006, 'rent was '), ('$ 2 million', 2005, 'rent was '), ('$ 1 million', 2004, 'rent was ')]
        >>> [found[:2] for found in dated_figures("rent rose from $ 2 million in 2005 to $ 3 million in 2006")]
        [('$ 2 million', 2005), ('$ 3 million', 2006)]
        >>> list(dated_figures("rent was $ 2 million in 2005 , and taxes $ 3 million"))
        [('$ 2 million', 2005, 'rent was ')]
    """
    line = _RESTATED.sub("", sentence)
    before, end = 0, None
    for match in _THEN.finditer(line):
        figures = [" ".join(one[0].split()) for one in _ONE.finditer(match["figures"])]
        years = [int(year) for year in _ONE_YEAR.findall(match["years"])]
        if end is None or not _NEXT.fullmatch(line, end, match.start()):
            start = before if end is None else end
            before, subject = match.start(), line[start : match.start()]
        end = match.end()
        if len(figures) == len(years) and all(map(_MEASURED.search, figures)):
            yield from (
                (figure, year, subject) for figure, year in zip(figures, years, strict=True)
            )


_ONE = re.compile(_NUMBER, re.I)
_ONE_YEAR = re.compile(_YEAR)
