"""Ollama: JSON of a schema (0.5 and newer), no grammars.

Its own API has `format` for it; under `/v1` it reads the schema out of `response_format`. Models in
the cloud take the schema and ignore it.
"""

from __future__ import annotations

from pearl.llm.backends.openai.servers import Server

__all__ = ["SERVER"]

SERVER = Server(
    title="Ollama",
    help="run a model of your own machine in Ollama 0.5 or newer, or use --constrain off",
    # Models of the official registry; those from elsewhere are owned by who made them.
    owner="library",
)
