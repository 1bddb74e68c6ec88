"""llama.cpp's server as it comes: GBNF.

What begins with `%llguidance` is not even tried: a build without llguidance aborts at it, process
and all.
"""

from __future__ import annotations

from pearl.llm.backends.openai.servers import Body, Server

__all__ = ["SERVER"]


def _with_grammar(body: Body, grammar: str) -> Body:
    return {**body, "grammar": grammar}


SERVER = Server(
    title="llama.cpp",
    help="use a newer llama-server, or --constrain off",
    owner="llamacpp",
    renderings=("gbnf",),
    with_grammar=_with_grammar,
)
