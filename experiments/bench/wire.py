"""What the form of an extraction's reply takes to write, beside the bare record.

    python experiments/bench/wire.py [--documents N] [--quick]

The documents of `extraction.py`; an oracle replies in the form that it is asked for, with whole sentences as quotes, and
again where it is asked again. Tokens are those of PEARL's own counter, the same for all forms of a run.
Prints the tokens of a document for its 12 fields alone, and with its 2 lists, and what became of the values.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter as Counts
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from experiments.bench.extraction import FIELDS, SCALARS, Made, Reading, Stated, judged, made
from pearl import Document, Pearl
from pearl.documents.tokens import Counter
from pearl.dsl.fields import Field, parse_fields, print_fields
from pearl.llm import ActionTask, CheckTask, Request
from pearl.replies.extracted import wanted_fields

PLAN = """Question: Which values does the document state?

New actions:
- None

1. record = EXTRACT(CTX, "{}") : Extract the fields
"""
_COUNTER = Counter()


def _pair(stated: Stated) -> dict[str, Any]:
    return {"value": stated.value, "quote": stated.quote}


def bare_record(doc: Made, fields: Sequence[Field]) -> str:
    """The record alone, without what proves it."""
    record: dict[str, Any] = {name: _one([s.value for s in doc.fields[name]]) for name in SCALARS}
    record["drugs"] = [{"name": name.value, "dose_mg": dose.value} for name, dose in doc.drugs]
    record["allergies"] = [each.value for each in doc.allergies]
    return json.dumps({field.name: record[field.name] for field in fields}, ensure_ascii=False)


def _one(values: list[Any]) -> Any:
    return values if len(values) > 1 else values[0] if values else None


def reply_of(doc: Made, fields: Sequence[Field], is_quoted: bool) -> str:
    """The reply of an oracle in the form that it is asked for."""
    reply: dict[str, Any] = {}
    for field in fields:
        if field.name == "allergies":
            reply[field.name] = [_pair(each) for each in doc.allergies]
        elif field.name == "drugs":
            reply[field.name] = [
                {"name": _pair(name), "dose_mg": _pair(dose)} if is_quoted
                else {"name": name.value, "dose_mg": dose.value, "quote": name.quote}
                for name, dose in doc.drugs
            ]  # fmt: skip
        else:
            stated = doc.fields[field.name]
            reply[field.name] = _one([_pair(s) if is_quoted else s.value for s in stated])
            if not is_quoted and field.type in ("int", "bool", "label", "text"):
                reply[f"{field.name}_quote"] = _one([each.quote for each in stated])
    return json.dumps(reply, ensure_ascii=False)


async def measured(n: int, fields_text: str) -> dict[str, Any]:
    """The tokens of the replies about some documents, and what became of the values."""
    fields = parse_fields(fields_text)
    tokens: Counts[str] = Counts()
    current = made(0)

    def reply(request: Request) -> str:
        if isinstance(request.task, CheckTask):
            verdicts = [
                {"id": i + 1, "verdict": "supported"} for i in range(len(request.task.claims))
            ]
            return json.dumps({"verdicts": verdicts})
        assert isinstance(request.task, ActionTask)
        asked = wanted_fields(dict(request.task.arguments)["FIELDS"], is_all=False)
        text = reply_of(current, asked, request.task.is_quoted)
        tokens["asked"] += _COUNTER.count(text)
        tokens["requests"] += 1
        return text

    pearl = Pearl(Reading(reply))
    plan = pearl.compile(PLAN.format(fields_text))
    for seed in range(n):
        current = made(seed)
        tokens["bare"] += _COUNTER.count(bare_record(current, fields))
        tokens["quoted"] += _COUNTER.count(reply_of(current, fields, is_quoted=True))
        answer = await pearl.execute(plan, Document(current.text, f"{seed}.txt"))
        assert answer.record is not None
        own = {field.name for field in fields}
        whole = {**answer.record.fields}
        if len(own) == len(SCALARS):  # the lists are not asked for
            current = current._replace(drugs=[], allergies=[])
            whole |= dict.fromkeys(("drugs", "allergies"), next(iter(whole.values())))
        for path, what, _ in judged(current, type(answer.record)(whole)):
            if path.partition("[")[0] in own:
                tokens[what] += 1
    return {
        "requests a document": round(tokens["requests"] / n, 3),
        **{f"tokens, {form}": round(tokens[form] / n, 1) for form in ("bare", "asked", "quoted")},
        "asked / bare": round(tokens["asked"] / tokens["bare"], 3),
        "quoted / bare": round(tokens["quoted"] / tokens["bare"], 3),
        **{what: tokens[what] for what in ("right", "wrong", "undecided")},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--documents", type=int, default=1_000)
    parser.add_argument("--quick", action="store_true", help="20 documents")
    given = parser.parse_args()
    n = 20 if given.quick else given.documents
    every = parse_fields(FIELDS)
    scalars = print_fields([field for field in every if not field.is_list])
    results = {
        name: asyncio.run(measured(n, text))
        for name, text in (("12 fields", scalars), ("with 2 lists", FIELDS))
    }
    for name, figures in results.items():
        print(name, *(f"  {key:24} {value}" for key, value in figures.items()), sep="\n")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
