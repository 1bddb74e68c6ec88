"""The child process: llama.cpp's server over one file, on a free port of this machine.

    python -P worker.py

The first line of standard input says what to serve, as JSON. The answer is one line on standard
output, `{"address": "http://127.0.0.1:PORT"}`; everything llama.cpp says goes to standard error.
The process ends when its standard input does: with its parent, however that ended, because the
system closes a dead process's pipes.

Nothing of the project is imported: this runs as a file, so that it starts fast.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from typing import Any

N_READ_AT_ONCE = 512  # Prompt tokens per progress report, equal to the batch size
MIN_WINDOW = 256  # Context window of a process that only tokenizes
# Seconds that llama.cpp is given to log why: it does so in a thread, which the end of the process
# cuts off.
LOG_S = 0.5
ERRORS_ONLY = 1  # llama.cpp's level of messages.


def main() -> None:
    """Serve until standard input ends."""
    settings = json.loads(sys.stdin.readline())
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer
    with suppress(ImportError):  # on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a dump is as large as the model
    try:
        server = _serve(settings)
    except RuntimeError as error:
        time.sleep(LOG_S)
        sys.exit(str(error))
    print(json.dumps({"address": server.listening_address}), file=answers, flush=True)
    sys.stdin.read()
    os._exit(0)  # a clean exit would wait for unfinished replies


def _serve(settings: dict[str, Any]) -> Any:
    """A running server; it starts in its constructor."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = settings["path"]
    parameters.model_alias = {settings["alias"]}
    parameters.api_keys = [settings["key"]]
    parameters.n_ctx = settings["window"]
    parameters.cache_ram_mib = settings["cache_mib"]
    parameters.n_batch = N_READ_AT_ONCE
    parameters.n_parallel = 1
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.ui = False
    parameters.endpoint_slots = False
    parameters.verbosity = ERRORS_ONLY
    if settings["template"]:
        parameters.chat_template = settings["template"]
        parameters.use_jinja = True
        parameters.antiprompt = settings["stops"]
    if settings.get("is_tokenizing"):  # the vocabulary suffices: weights are mapped, and not read
        parameters.n_ctx = MIN_WINDOW
        parameters.cache_ram_mib = 0
        parameters.n_gpu_layers = 0
        parameters.no_extra_bufts = True
        parameters.fit_params = False
        parameters.warmup = False
    return xllamacpp.Server(parameters)


if __name__ == "__main__":
    main()
