"""Writes grammars/plan.tables.json: the tables of the parser of plans, which `pearl` reads instead of building them.

Tables of this grammar stay as they are: lark numbers states in another order each time.
"""

from __future__ import annotations

import re
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import get_args

import msgspec
from lark import Lark
from lark.grammar import Rule as LarkRule

from pearl.dsl.lalr import Rule, Tables
from pearl.dsl.literals import COARSE_NAME
from pearl.dsl.parser import TABLES, Start
from pearl.plugins.files import read_data

FILE = Path(__file__).parents[1] / "grammars" / TABLES

WIDE = r"\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
COARSE = (
    (rf"[!-~\u00a1-{WIDE}", r"[^\x00-\x20\x7f-\xa0]"),
    (rf"[ -~\u00a0-{WIDE}", r"[^\x00-\x1f\x7f-\x9f]"),
    (rf"[ !#-\[\]-~\u00a0-{WIDE}", r'[^\x00-\x1f"\\\x7f-\x9f]'),
)
"""Character classes of the grammar, and cheaper ones, which give valid plans the same tokens: a class beyond Latin-1 takes a millisecond to compile."""


def coarse_grammar() -> str:
    """The grammar with the cheaper classes."""
    grammar = read_data("grammars", "plan.lark")
    for exact, coarse in COARSE:
        grammar = grammar.replace(exact, coarse)
    return re.sub(r"(?m)^NAME: /.*/$", lambda _: f"NAME: /{COARSE_NAME}/", grammar)


def digest() -> str:
    """That of the grammar."""
    return sha256(coarse_grammar().encode()).hexdigest()


def built() -> Tables:
    """The tables of the grammar of plans."""
    starts = get_args(Start)
    made = Lark(coarse_grammar(), parser="lalr", start=[*starts], maybe_placeholders=False)
    data, memo = made.memo_serialize([LarkRule])
    table = data["parser"]["parser"]
    in_order = sorted(
        made.terminals, key=lambda t: (-t.pattern.max_width, -len(t.pattern.value), t.name)
    )
    rules = {
        number: Rule(
            rule["origin"]["name"],
            len(rule["expansion"]),
            [
                (at, symbol["__type__"] == "NonTerminal" and symbol["name"].startswith("_"))
                for at, symbol in enumerate(rule["expansion"])
                if not symbol.get("filter_out")
            ],
        )
        for number, rule in memo.items()
    }
    numbers = {number: -1 - at for at, number in enumerate(rules)}
    return Tables(
        digest(),
        {t.name: t.pattern.value for t in in_order},
        [t.name for t in in_order if t.pattern.type == "str"],
        list(rules.values()),
        [
            {
                table["tokens"][symbol]: numbers[to["@"]] if is_reduced else to
                for symbol, (is_reduced, to) in table["states"][state].items()
            }
            for state in range(len(table["states"]))
        ],
        {name: (table["start_states"][name], table["end_states"][name]) for name in starts},
    )


if __name__ == "__main__":
    kept = ""
    with suppress(FileNotFoundError, msgspec.DecodeError):  # no file, or one of another form
        kept = msgspec.json.decode(FILE.read_bytes(), type=Tables).digest
    if kept != digest():
        FILE.write_bytes(msgspec.json.encode(built()) + b"\n")
