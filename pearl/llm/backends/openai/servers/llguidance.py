"""llama.cpp built with llguidance, which cannot be detected; selected by the user only."""

from __future__ import annotations

from dataclasses import replace

from pearl.llm.backends.openai.servers import llamacpp

SERVER = replace(
    llamacpp.SERVER,
    title="llama.cpp with llguidance",
    help="build llama.cpp with -DLLAMA_LLGUIDANCE=ON, or say what it is: --server llamacpp",
    owner="",
    renderings=("llguidance", "gbnf"),
)
