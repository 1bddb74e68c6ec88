"""How long the language server takes over a long plan: answers while it is typed, and findings. Prints one JSON line.

    python experiments/bench/editor.py [--steps N]

The server is a process of its own, as an editor starts it. Each answer follows a change of the text, so that
nothing is computed before; milliseconds, from the message to the answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

URI = "file:///tmp/long.plan"
ROUNDS = 15


def plan(n_steps: int, typed: str) -> str:
    """A plan of so many steps with something typed below it."""
    steps = (
        f'{i}. v{i} = FIND(CTX, ["the key 🔑 of room {i}", v{i - 1}]) : Find it'
        for i in range(2, n_steps + 1)
    )
    return "\n".join(['1. v1 = FIND(CTX, "x") : Find it', *steps, typed])


async def measure(n_steps: int) -> dict[str, float]:
    client = LanguageClient("bench", "1")
    told: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()

    @client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def hear(found: lsp.PublishDiagnosticsParams) -> None:
        told.put_nowait(found)

    await client.start_io(sys.executable, "-m", "pearl", "lsp")
    await client.initialize_async(lsp.InitializeParams(capabilities=lsp.ClientCapabilities()))
    typed = f"{n_steps + 1}. last = FIND(CTX, v"
    item = lsp.TextDocumentItem(URI, "pearl", 1, plan(n_steps, typed))
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
    await told.get()
    at, doc = lsp.Position(n_steps, len(typed)), lsp.TextDocumentIdentifier(URI)
    inside = lsp.Position(n_steps // 2, 10)
    asked: dict[str, Callable[[], Awaitable[object]]] = {
        "completion": lambda: client.text_document_completion_async(lsp.CompletionParams(doc, at)),
        "signature": lambda: client.text_document_signature_help_async(lsp.SignatureHelpParams(doc, at)),
        "hover": lambda: client.text_document_hover_async(lsp.HoverParams(doc, inside)),
        "definition": lambda: client.text_document_definition_async(lsp.DefinitionParams(doc, inside)),
    }  # fmt: skip
    version, taken = 1, {}
    for name, ask in asked.items():
        every = []
        for i in range(ROUNDS):
            version += 1
            change = lsp.TextDocumentContentChangeWholeDocument(
                plan(n_steps, typed) + " " * (i % 2)
            )
            document = lsp.VersionedTextDocumentIdentifier(version, URI)
            began = time.perf_counter()
            client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, [change]))
            await ask()
            every.append(1_000 * (time.perf_counter() - began))
        taken[f"{name}_ms"] = round(statistics.median(every), 1)
        taken[f"{name}_max_ms"] = round(max(every), 1)
    began = time.perf_counter()
    while (await told.get()).version != version:
        pass
    taken["findings_ms"] = round(1_000 * (time.perf_counter() - began), 1)
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=10_000)
    steps = parser.parse_args().steps
    print(json.dumps({"steps": steps, **asyncio.run(measure(steps))}))


if __name__ == "__main__":
    main()
