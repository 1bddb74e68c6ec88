"""llama.cpp's server without llguidance: GBNF.

Grammars that begin with `%llguidance` are not tried, because they crash such a build.
"""

from __future__ import annotations

from pearl.llm.backends.openai.likelihoods import by_next_token
from pearl.llm.backends.openai.servers import Body, Server


def _with_grammar(body: Body, grammar: str) -> Body:
    return {**body, "grammar": grammar}


SERVER = Server(
    title="llama.cpp",
    help="use a newer llama-server, or --constrain off",
    owner="llamacpp",
    renderings=("gbnf",),
    with_grammar=_with_grammar,
    likelihoods=by_next_token,
    tokenizes="content",
    is_of_any_name=True,
    tells_props=True,
)
