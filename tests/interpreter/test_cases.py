"""Plans over small documents: what the model of each step says, and what comes of it (`cases/*.toml`).

A case has a `plan` (steps, one a line), a `document` of the file's `documents` or `files` that are joined, and what is said: `say` by
step (a text, a table written as JSON, "!kind" for an error of the model, or a list of them in the order of the calls) and `items` by step (words of an item -> its value,
"" for any other item; an item without a value is left out of the reply). Expected are the `status` (answered if it is not named) and any of: `text`, `value`,
`why` and `error` (parts of them), `notes` and `prompts` (each a part of one), `states`, `steps` (texts), `evidence` (texts), `rows` (numbers or
texts of the rows behind the answer), `batches` (the numbers of items in each call), `calls` (how many).
"""

from __future__ import annotations

import asyncio
import json
import re
import tomllib
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pearl import Answer, Document, Pearl
from pearl.documents.document import join
from pearl.errors import ModelError, PearlError
from pearl.llm import CheckTask, ItemsTask, Request
from pearl.runs.executors import Task
from pearl.runs.forecast import forecast
from tests.models import Reading, item_lines, verdicts

FILES = {
    path.stem: tomllib.loads(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).parent / "cases").glob("*.toml"))
}
CASES = [
    pytest.param(file, name, id=f"{file}: {name}")
    for file, cases in FILES.items()
    for name in cases
    if name != "documents"
]


class Model(Reading):
    """Says what a case has for each step; supports every claim."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.say = {name: said if isinstance(said, list) else [said] for name, said in case.get("say", {}).items()}  # fmt: skip
        self.items, self.batches = case.get("items", {}), list[int]()
        super().__init__(self.reply)

    def reply(self, request: Request) -> str:
        task = request.task
        if isinstance(task, CheckTask):
            return verdicts(*["supported"] * len(task.claims))
        if isinstance(task, ItemsTask):
            self.batches.append(len(task.items))
            values = self.items[task.output]
            return item_lines(
                request, lambda item: next((v for words, v in values.items() if words in item), None)
            ) or "I cannot."  # fmt: skip
        said = self.say[task.output]  # type: ignore[union-attr]
        one = said[0] if len(said) == 1 else said.pop(0)
        if isinstance(one, str) and one.startswith("!"):
            raise ModelError("I cannot help with that", kind=one[1:])  # type: ignore[arg-type]
        return one if isinstance(one, str) else json.dumps(one)


def numbered(plan: str) -> str:
    """The plan with the number and purpose of each step."""
    numbers = count(1)
    lines = [
        f"{next(numbers)}. {line}{'' if ') : ' in line else ' : It'}" if re.match(r"\w+ = \w+\(", line) else line
        for line in plan.strip().splitlines()
    ]  # fmt: skip
    return "\n".join(lines)


def run(file: str, name: str) -> tuple[Answer, Model, dict[str, Any]]:
    case = FILES[file][name]
    texts = FILES[file].get("documents", {})
    files = case.get("files") or {case["document"]: texts.get(case["document"], "")}
    given = [Document(text, at) for at, text in files.items()]
    model, settings = Model(case), dict(case.get("settings", {}))
    budget = {key: settings.pop(key) for key in ("token_budget",) if key in settings}
    pearl = Pearl(model, library=case.get("library"), **settings)
    plan = numbered(case["plan"])
    document = given[0] if len(given) == 1 else join(given)
    expected = forecast(pearl, [Task("", lambda: document, plan=plan)])
    assert bool(expected.n_problems) <= ("error" in case), expected.problems
    answer = asyncio.run(pearl.execute(plan, document, **budget))
    # What cannot be read is asked again, which the forecast has of replies in a form only.
    is_open = any(step.state in ("undecided", "refused") for step in answer.steps)
    calls = expected.total.calls
    assert is_open or calls.least <= len(model.requests) <= calls.upper
    return answer, model, case


@pytest.mark.parametrize(("file", "name"), CASES)
def test_a_plan_comes_to_what_its_case_says(file: str, name: str) -> None:
    if (error := FILES[file][name].get("error")) is not None:
        with pytest.raises(PearlError, match=re.escape(error)):
            run(file, name)
        return
    answer, model, case = run(file, name)
    assert answer.status == case.get("status", "answered"), answer.why
    found: dict[str, Any] = {
        "text": answer.text,
        "value": answer.value,
        "states": [step.state for step in answer.steps],
        "steps": [step.text for step in answer.steps],
        "evidence": [passage.text for passage in answer.evidence],
        "batches": model.batches,
        "calls": len(model.requests),
    }
    assert {key: found[key] for key in case if key in found} == {
        key: case[key] for key in case if key in found
    }
    assert case.get("why", "") in answer.why
    for said in case.get("notes", ()):
        assert any(said in note for note in answer.notes), answer.notes
    for said in case.get("prompts", ()):
        assert any(said in request.prompt for request in model.requests)
    if "rows" in case:
        is_number = all(isinstance(row, int) for row in case["rows"])
        assert [r.number if is_number else r.text for r in answer.row_evidence] == case["rows"]
