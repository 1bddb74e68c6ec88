"""Write the names of months in other languages (`pearl/documents/months.txt`) from the CLDR data of Babel.

    pip install babel && python docs/make_months.py

Names that mean different months in two of the languages are left out: `listopad` is October in Croatian,
November in Polish. English is in `pearl.documents.lexicon`.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from unicodedata import combining, normalize

from babel import Locale, __version__

LANGUAGES = (
    "ar bg ca cs da de el es et fi fr he hi hr hu id it lt lv nb nl pl pt ro ru sk sl sr sv tr uk"
)
FILE = Path(__file__).parents[1] / "pearl" / "documents" / "months.txt"
HEAD = f"""\
# Names of months, with the number of the month: wide and abbreviated, as in dates and alone, with and without accents.
# Made by docs/make_months.py from the Unicode CLDR (Babel {__version__}), licence Unicode-3.0: https://www.unicode.org/license.txt
"""
LEAST = 3  # letters of an alphabet; shorter names are too common as words


def spellings(name: str) -> set[str]:
    """The name in lower case, and in plain letters where they are Latin."""
    name = normalize("NFC", name).lower().strip(" .\u200f").removeprefix("de ").removeprefix("d’")
    plain = "".join(c for c in normalize("NFD", name) if not combining(c))
    return {name, normalize("NFC", plain)} if name.isascii() or plain.isascii() else {name}


months: dict[str, set[int]] = defaultdict(set)
for language in LANGUAGES.split():
    for context in ("format", "stand-alone"):
        for width in ("wide", "abbreviated"):
            for number, name in Locale(language).months[context][width].items():
                for spelling in spellings(name):
                    is_long = len(spelling) >= (LEAST if spelling[0] < "\u0900" else 2)
                    if is_long and not any(map(str.isdigit, spelling)):
                        months[spelling].add(number)
rows = defaultdict(list)
for spelling, numbers in months.items():
    if len(numbers) == 1:
        rows[next(iter(numbers))].append(spelling)
lines = [f"{number}\t{', '.join(sorted(rows[number]))}\n" for number in sorted(rows)]
FILE.write_text(HEAD + "".join(lines), encoding="utf-8")
