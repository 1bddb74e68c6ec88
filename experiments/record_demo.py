"""Write the recording of `pearl demo` from replies that a language model gave to its prompts.

    python experiments/record_demo.py replies.jsonl "Claude (Anthropic), recorded 2026-11-23"

The file has a JSON object {"prompt": ..., "reply": ...} a line. A prompt that it lacks is appended with an
empty reply: let the model write the reply, do not edit it, and run this again, until nothing is missing.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from pearl import Pearl, load
from pearl.cli.commands.demo import FOLDER, QUESTION
from pearl.errors import ModelError, PearlError
from pearl.llm import Request
from pearl.llm.backends import recorded
from pearl.llm.backends.scripted import Scripted


def main(file: Path, model: str) -> int:
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    replies = {row["prompt"]: row["reply"] for row in map(json.loads, lines)}
    rules = []

    def reply(request: Request) -> str:
        text = replies.setdefault(request.prompt, "")
        if not text:
            raise ModelError("no reply yet", kind="bad_request")
        rules.append({"match": recorded.key(request), "reply": text, "model": model})
        return text

    scripted = Scripted(reply, is_recording=False)
    scripted.reads_prompts = True  # the same path as that of a language model
    try:
        print(asyncio.run(Pearl(scripted).ask(QUESTION, load(FOLDER / "story.txt"))).text)
    except PearlError as error:
        print(error, file=sys.stderr)
    rows = [json.dumps({"prompt": key, "reply": text}) for key, text in replies.items()]
    file.write_text("\n".join(rows) + "\n", "utf-8")
    n_missing = sum(not text for text in replies.values())
    if n_missing:
        print(f"{n_missing} of {len(rows)} prompts in {file} have no reply yet", file=sys.stderr)
        return 1
    recorded.FOLDER.mkdir(exist_ok=True)
    text = json.dumps(rules, indent=2, ensure_ascii=False)
    (recorded.FOLDER / "demo.json").write_text(text + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
