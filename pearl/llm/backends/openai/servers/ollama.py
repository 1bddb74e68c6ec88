"""Ollama: JSON of a schema (0.5 and newer), no grammars.

Cloud models accept the schema and ignore it.
"""

from __future__ import annotations

from pearl.llm.backends.openai.servers import Server

SERVER = Server(
    title="Ollama",
    help="run a model of your own machine in Ollama 0.5 or newer, or use --constrain off",
    # Models of the official registry; others have the name of their publisher.
    owner="library",
)
