"""The rules about values of fields: each row of the table in docs/answers.md, and every pattern by the row that it serves."""

from __future__ import annotations

import ast
import asyncio
import json
import re
from typing import Any, NamedTuple

import pytest

from pearl import Document, Pearl
from pearl.documents.record import FieldResult
from pearl.llm import CheckTask, Request
from tests.models import Reading
from tests.root import ROOT


class Rule(NamedTuple):
    """A row of the table; a value with its quote, or without one if the quote is the text."""

    name: str
    field: str
    text: str
    accepted: tuple[Any, str | None]
    refused: tuple[Any, str | None]


def rules() -> list[Rule]:
    lines = (ROOT / "docs/answers.md").read_text("utf-8").splitlines()
    start = lines.index("| rule | field | text | accepted | refused |") + 2
    found = []
    for line in lines[start:]:
        if not line.startswith("|"):
            return found
        name, field, text, *values = (
            cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]
        )
        field, text = field.strip("`"), text.strip("`").replace("⏎", "\n")
        found.append(Rule(name, field, text, *(_said(field, text, each) for each in values)))
    raise AssertionError("the table has no end")


def _said(field: str, text: str, cell: str) -> tuple[Any, str | None]:
    value, _, quote = cell.partition(" from ")
    value = value.strip("`")
    is_text = re.search(r": (?:str|text|date|'|yes)", field)
    given = value if is_text else json.loads(value) if value not in ("often",) else value
    return given, None if quote == "nothing" else quote.strip("`") or text


RULES = rules()
NAMES = {rule.name for rule in RULES}


def result_of(
    rule: Rule, said: tuple[Any, str | None], verdict: str, **settings: Any
) -> FieldResult:
    """The result of a field whose value a model gives and a checker judges."""
    name, (value, quote) = rule.field.partition(":")[0], said
    values = value if isinstance(value, list) else [value]
    claims = [
        {"value": each, "quote": "- " + each if rule.name == "entries" else quote}
        for each in values
    ]

    def reply(request: Request) -> str:
        if isinstance(request.task, CheckTask):
            ids = range(1, len(request.task.claims) + 1)
            return json.dumps({"verdicts": [{"id": i, "verdict": verdict} for i in ids]})
        return json.dumps({name: claims if isinstance(value, list) else claims[0]})

    plan = f'1. record = EXTRACT(CTX, "{rule.field}") : Extract'
    document = Document(f"The letter begins.\n{rule.text}\nThe letter ends.", "letter.txt")
    answer = asyncio.run(Pearl(Reading(reply), **settings).execute(plan, document))
    assert answer.record is not None
    return answer.record.fields[name]


def told(result: FieldResult) -> Any:
    return result.plain if result.entries else result.value


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.name}: {rule.accepted[0]}")
def test_a_rule_accepts_and_refuses_its_examples_whatever_the_checker_says(rule: Rule) -> None:
    found = result_of(rule, rule.accepted, "supported")
    assert (found.state, told(found), found.why) == ("found", rule.accepted[0], "")
    leaves = [f for entry in found.entries for f in entry.values()] or [found]
    wanted = {"judged"} if rule.name == "unknown" else {"copied", "normalised", "checked"}
    assert {leaf.basis for leaf in leaves} <= wanted
    refused = result_of(rule, rule.refused, "supported")
    assert (refused.state, refused.value) == ("undecided", None)
    assert refused.why


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.name}: {rule.accepted[0]}")
@pytest.mark.parametrize("verdict", ["not stated", "contradicted", "silence", "off"])
def test_no_value_is_certain_without_a_checker(rule: Rule, verdict: str) -> None:
    settings = {"check": "off"} if verdict == "off" else {}
    result = result_of(rule, rule.accepted, verdict, **settings)
    leaves = [f for entry in result.entries for f in entry.values()] or [result]
    if verdict in ("silence", "off") or rule.name == "unknown":
        assert {(leaf.state, leaf.basis) for leaf in leaves} == {("found", "judged")}
    else:
        assert {leaf.state for leaf in leaves} == {"undecided"}
        assert all(("else" in leaf.why) == (verdict == "contradicted") for leaf in leaves)


PATTERNS = {
    "pearl/documents/evidence/agreeing.py": {
        "_COMMA": "words", "_GROUP_AFTER": "cut", "_GROUP_BEFORE": "cut", "(_MAIL_BEFORE, _MAIL_AFTER)": "cut",
        "_NUMBER": "number", "_DECIMAL_COMMA": "number", "_BLANK_IN_NUMBER": "number", "_COMPOUND": "number",
        "_LETTER": "part of a figure", "_AFTER": "unit", "_NEXT": "unit", "_JOINT": "scale", "_LEAD": "sign", "_SCALE": "scale",
        "_IN_CAPTION": "scale", "_CAPTION_WORD": "scale", "_LAST_UNIT": "unit", "_IN_UNIT": "unit",
        "_DEGREE": "unit", "_CODE": "currency", "_BETWEEN": "unit", "_PLAIN_NUMBER": "number",
    },
    "pearl/documents/evidence/finding.py": {
        "_QUOTED_LINE": "quote", "_INLINE": "quote", "_MARK": "quote", "_KEY": "quote", "_BAR": "quote", "_NO_LETTERS": "quote",
        "_NEGATION": "omission", "_BEFORE": "omission", "_WORD_START": "omission", "_ASIDE": "omission",
    },
    "pearl/interpreter/extracting.py": {"_MARK": "entries"},
    "pearl/replies/extracted.py": {"_START": "reply", "_COMMAS": "reply", "_TOKEN": "reply"},
}  # fmt: skip
"""Every pattern of the modules that decide about values of fields → the rule that it serves."""


@pytest.mark.parametrize("path", PATTERNS)
def test_a_pattern_serves_a_rule_of_the_table(path: str) -> None:
    found = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text("utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called == "lazy_pattern" or (called.startswith("re.") and called != "re.escape"):
            found.add(node.lineno)
    named = {}
    for node in ast.parse((ROOT / path).read_text("utf-8")).body:
        if isinstance(node, ast.Assign):
            inside = {n for n in found if node.lineno <= n <= (node.end_lineno or 0)}
            found -= inside
            named |= {ast.unparse(t): inside for t in node.targets if inside}
    assert not found, f"patterns without a name on lines {sorted(found)}"
    assert named.keys() == PATTERNS[path].keys()
    assert set(PATTERNS[path].values()) <= NAMES
