"""llama.cpp's server as a process of its own, as users start theirs: prints its address, then serves.

    python tests/real/llama_server.py MODEL.gguf

It is the server that xllamacpp has inside; it ends with its standard input.
"""

from __future__ import annotations

import json
import os
import sys


def main() -> None:
    """Serve until the caller is gone."""
    import xllamacpp  # doctest imports this module in every environment

    parameters = xllamacpp.CommonParams()
    parameters.model.path = sys.argv[1]
    parameters.model_alias = {"smollm2"}
    parameters.n_ctx = 4_096
    parameters.n_parallel = 1
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.ui = False
    parameters.verbosity = 1
    server = xllamacpp.Server(parameters)
    print(json.dumps({"address": server.listening_address}), flush=True)  # noqa: T201
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
