"""The child process: llama.cpp's server over one file, on a free port of this machine.

    python -P worker.py

The first line of standard input has the settings as JSON. The answer is one line on standard output,
`{"address": "http://127.0.0.1:PORT"}`; all messages of llama.cpp go to standard error. The process
ends when its standard input is closed. The system closes it when the parent ends for any reason.

This file runs alone and imports nothing of the project, so that it starts fast.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress

N_READ_AT_ONCE = 512  # Prompt tokens per progress report, equal to the batch size
MIN_WINDOW = 256  # Context window of a process that only tokenizes
# Seconds for llama.cpp to log an error: its thread for logging ends with the process.
LOG_S = 0.5
ERRORS_ONLY = 1  # A level of llama.cpp's messages


def main() -> None:
    """Serve until standard input ends."""
    settings = json.loads(sys.stdin.readline())
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of libraries must not be taken for the answer
    with suppress(ImportError):  # on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a dump is as large as the model
    try:
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
        if settings.get("is_tokenizing"):  # needs the vocabulary only, so that no weights are read
            parameters.n_ctx = MIN_WINDOW
            parameters.cache_ram_mib = 0
            parameters.n_gpu_layers = 0
            parameters.no_extra_bufts = True
            parameters.fit_params = False
            parameters.warmup = False
        server = xllamacpp.Server(parameters)
    except RuntimeError as error:
        time.sleep(LOG_S)
        sys.exit(str(error))
    print(json.dumps({"address": server.listening_address}), file=answers, flush=True)
    sys.stdin.read()
    os._exit(0)  # a clean exit would wait for unfinished replies


if __name__ == "__main__":
    main()
