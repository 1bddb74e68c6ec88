"""Question → query by rules, without a model: what the thesaurus of a table reaches on its own."""

from __future__ import annotations

import re

from pearl.tables.folding import fold
from pearl.tables.opening import read_moment
from pearl.tables.query_table import QueryTable
from pearl.tables.specification import Query, read_query
from pearl.tables.terms import Term, Thesaurus

SURE = {"Clinic name": 0.95, "Clinic type": 0.8, "City": 0.25, "Services": 0.6, "Languages": 0.95}
"""Share of a term that the question has to have, by column."""

_TIME = re.compile(r"\bopen\b.*?\bon (\w+day(?: at \d{1,2}:\d\d)?)")
_COUNT = re.compile(r"\bhow many\b")


def guess(question: str, table: QueryTable, thesaurus: Thesaurus) -> Query:
    """Of each column the term that the question has most of is a condition."""
    said = fold(question)
    place = said.rpartition(" in ")[2]  # `the Haifa Clinic in Lod`
    best: list[Term] = []
    for column in ("Clinic name", "Clinic type", "City", "Services", "Languages"):
        found = thesaurus.nearest(place if column == "City" else question).get(column, [])
        if column == "Clinic name":
            found = [term for term in found if f"the {fold(term.text)} " in said]
        if found and found[0].share >= SURE[column]:
            best.append(found[0])
    is_named = any(term.column == "Clinic name" for term in best)
    conditions: list[dict[str, str]] = []
    for term in best:
        if is_named and term.column not in ("Clinic name", "City"):
            continue
        op = "contains" if term.column in ("Services", "Languages") else "is"
        conditions.append({"column": term.column, "op": op, "value": term.text})
    if (when := _TIME.search(said)) and read_moment(when[1]):
        conditions.append({"column": "Opening hours", "op": "open", "value": when[1]})
    spec: dict[str, object] = {"where": conditions}
    if _COUNT.search(said):
        spec["aggregate"] = {"function": "count"}
    return read_query(spec)
