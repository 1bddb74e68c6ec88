"""SGLang: `ebnf` takes Lark with the llguidance backend, GBNF with its default, xgrammar.

Lark goes first: llguidance reads GBNF as well, but mistakes some of its escapes.
"""

from __future__ import annotations

from pearl.llm.backends.openai.servers import Body, Server


def _with_grammar(body: Body, grammar: str) -> Body:
    return {**body, "ebnf": grammar}


SERVER = Server(
    title="SGLang",
    help="launch SGLang with --grammar-backend llguidance, or use --constrain off",
    owner="sglang",
    renderings=("lark", "gbnf"),
    with_grammar=_with_grammar,
    tokenizes="prompt",
)
