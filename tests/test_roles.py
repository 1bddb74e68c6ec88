"""Several models in one run: which request carries which model name."""

from __future__ import annotations

import pearl
from pearl import Document, Pearl
from tests.server import Canned, Seen, Server, completion

PLAN = """\
New actions:
- None

1. ans = FIND_REASON(CTX, "Nils selling the boat") : Find why he sold it"""

STORY = Document("Nils sold the boat because the hull was rotten.")


def models(server: Server) -> list[str]:
    return [seen.body["model"] for seen in server.requests]


def test_plans_are_written_by_the_model_for_plans(openai_server: Server) -> None:
    def answer(seen: Seen) -> Canned:
        is_plan = seen.body["model"] == "planner"
        return Canned(completion(PLAN if is_plan else "The hull was rotten."))

    openai_server.answer = answer
    asker = Pearl(
        "openai:main", base_url=openai_server.url, api_key_env="", planner_model="openai:planner"
    )
    answered = pearl.run(asker.ask("Why did Nils sell the boat?", STORY))
    assert answered.text == "The hull was rotten."
    assert models(openai_server) == ["planner", "main"]
    assert asker.clients["planner"].limiter is asker.clients["rows"].limiter
