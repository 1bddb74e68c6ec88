"""Ollama: the OpenAI client without a key. Ollama silently truncates prompts beyond its window, so they are rejected here."""

from __future__ import annotations

import os

from pearl.documents.tokens import Counter
from pearl.errors import ModelError, UsageError
from pearl.llm import Completion, Constrains, Request
from pearl.llm.backends import Abilities, ModelSettings
from pearl.llm.backends.openai import OpenAIModel
from pearl.llm.backends.openai.endpoint import Endpoint, read_key
from pearl.llm.backends.openai.servers import load

DESCRIPTION = "Ollama, here or at $OLLAMA_HOST: ollama:NAME, as in `ollama list`"
ADDRESS_VARIABLE = "OLLAMA_HOST"
PORT = 11434  # Ollama's default
WINDOW = 4_096  # Ollama's default window in tokens, with less than 24 GiB of video memory


def create(name: str, settings: ModelSettings) -> OllamaModel:
    """Create the model `name` of the server in `settings`, in `OLLAMA_HOST`, or on this machine."""
    if not name:
        raise UsageError("ollama: needs the name of a model", help="for example ollama:llama3.2")
    key = read_key(settings.api_key_env or "")
    endpoint = Endpoint(address(settings), name, key, settings.api_key_env or "" if key else "")
    given = os.environ.get("OLLAMA_CONTEXT_LENGTH", "").strip() or str(WINDOW)
    if not settings.window and (not given.isdecimal() or int(given) < 256):
        raise UsageError(
            f"OLLAMA_CONTEXT_LENGTH={given} is not a number of tokens",
            help="use 256 or more, or --window instead",
        )
    window = settings.window or int(given)
    return OllamaModel(endpoint, settings.timeout_s, window, load("ollama"), backend="ollama")


class OllamaModel(OpenAIModel):
    """One model of Ollama."""

    async def complete(self, request: Request) -> Completion:
        """Send one request; a prompt that exceeds the window is rejected."""
        window = self.window
        document = request.document
        excess = Counter.for_model(self.name).excess(request.prompt, window, document or "")
        if excess:
            raise ModelError(
                f"Ollama would truncate this prompt of {window + excess:,} tokens to its window of {window:,}",
                kind="bad_request",
                help="set OLLAMA_CONTEXT_LENGTH for `ollama serve` and here, or --window: docs/local_models.md",
            )
        return await super().complete(request)


def address(settings: ModelSettings) -> str:
    """The address of the server, `/v1` included."""
    if settings.base_url:
        return settings.base_url
    # `OLLAMA_HOST`, parsed as Ollama's own client does: `0.0.0.0` → `http://localhost:11434/v1`
    host = os.environ.get(ADDRESS_VARIABLE, "").strip().strip("\"'")
    scheme, _, rest = host.rpartition("://")
    where, _, path = rest.partition("/")
    name, colon, port = where.rpartition(":")
    if not colon or not port.isdecimal() or (":" in name and not name.endswith("]")):
        name, port = where, str({"http": 80, "https": 443}.get(scheme, PORT))
    if name in ("", "0.0.0.0", "::", "[::]"):  # Addresses to listen on, not to connect to
        name = "localhost"
    if ":" in name and not name.startswith("["):
        name = f"[{name}]"
    path = f"/{path.strip('/')}" if path.strip("/") else ""
    return f"{scheme or 'http'}://{name}:{port}{path}/v1"


ABILITIES = Abilities("NAME", Constrains(load("ollama").by))
