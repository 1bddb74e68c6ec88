"""OpenAI's Chat Completions: a grammar is that of a custom tool, whose call is required."""

from __future__ import annotations

from pearl.llm.backends.openai.replies import read_tool_call
from pearl.llm.backends.openai.servers import TOOL, Body, Server


def _with_grammar(body: Body, grammar: str) -> Body:
    form = {"type": "grammar", "grammar": {"syntax": "lark", "definition": grammar}}
    tool = {"name": TOOL, "description": "Takes your whole reply.", "format": form}
    return {
        **body,
        "tools": [{"type": "custom", "custom": tool}],
        "tool_choice": {"type": "custom", "custom": {"name": TOOL}},
    }


SERVER = Server(
    title="OpenAI",
    help="use a model that knows custom tools, such as gpt-5, or --constrain off",
    is_at=lambda endpoint: endpoint.is_openai,
    renderings=("lark",),
    with_grammar=_with_grammar,
    read_grammar=read_tool_call,
)
