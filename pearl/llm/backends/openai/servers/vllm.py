"""vLLM 0.12 and newer; older ones ignore `structured_outputs`, which the probe detects.

Lark works with the guidance backend and newer xgrammar backends, GBNF with older ones.
"""

from __future__ import annotations

import re

from pearl.llm.backends.openai.likelihoods import by_prompt
from pearl.llm.backends.openai.servers import Body, Schema, Server


def _with_grammar(body: Body, grammar: str) -> Body:
    # vLLM detects the notation by a "::=" anywhere, even in a string.
    if not re.match(r"[\w-]+ ::=", grammar):
        grammar = grammar.replace("::=", r":\u003a=")
    return {**body, "structured_outputs": {"grammar": grammar}}


def _with_schema(body: Body, schema: Schema) -> Body:
    return {**body, "structured_outputs": {"json": schema}}


SERVER = Server(
    title="vLLM",
    help="start vLLM, 0.12 or newer, with --structured-outputs-config.backend guidance, "
    "or use --constrain off",
    owner="vllm",
    renderings=("lark", "gbnf"),
    with_grammar=_with_grammar,
    likelihoods=by_prompt,
    tokenizes="prompt",
    with_schema=_with_schema,
)
