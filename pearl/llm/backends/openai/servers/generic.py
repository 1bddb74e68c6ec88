"""Any server that supports `response_format`; selected by the user only."""

from __future__ import annotations

from pearl.llm.backends.openai.servers import Server

SERVER = Server(
    title="a server of another kind",
    help="plan without a constraint: --constrain off",
)
