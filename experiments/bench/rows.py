"""Labelling every entry of a window: PEARL beside dspy.RLM and DocETL, with the same simulated model.

    python experiments/bench/rows.py [--entries N] [--per-call N] [--seed S] [--peers PYTHON]
        [--only NAME ...]

The entries are those of `experiments/oolong.py`, whose labels only the model knows: an oracle, on
loopback. It plays the root of dspy.RLM, too, with code written beforehand, so that its figures are those of
a root that makes no mistake. Each labels all entries three times: with perfect replies; with one item
left out of every reply to several; and killed (SIGKILL) when half of the replies are there, then begun again,
with all that it has kept. `--peers` names the Python that has dspy and docetl, if it is another. Tokens are
characters of messages / 4; nothing here says how well a language model labels. Prints a table and one
JSON line; exit code 1 if PEARL has a row wrong, or asks again what was answered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from aggregation.oracle import Fault, Oracle, on_loopback  # noqa: E402
from aggregation.windows import Window, draw_window  # noqa: E402
from aiohttp import web  # noqa: E402
from labellers import LABELLERS, Labels, root_turns  # noqa: E402

PEERS = ("dspy_rlm", "docetl_batch", "docetl_single")
SETTLE_S = 1.0
"""After half of the replies were sent, before the kill: for them to be kept."""

AT_ONCE = 8
"""PEARL's calls at once: what is under way when it is killed is asked again."""

_TURN = re.compile(r"\[\[ ## iteration ## \]\]\s+(\d+)/")


@dataclass
class Server:
    """Answers labellers: from the oracle, in the form that is asked for, and as the root of dspy.RLM.

    Attributes:
        oracle: What labels.
        turns: The root's code.
        roots: Prompts of the root.
        hold_after: Replies of the oracle after which the others wait; None for never.
    """

    oracle: Oracle
    turns: Sequence[str]
    roots: list[str] = field(default_factory=list)
    hold_after: int | None = None
    _life: int = 0

    def begin_again(self) -> None:
        """Forget the calls that wait, and hold none any more."""
        self._life += 1
        self.hold_after = None

    @property
    def application(self) -> web.Application:
        """As aiohttp serves it."""
        application = web.Application(client_max_size=64 * 2**20)
        application.router.add_post("/v1/chat/completions", self._complete)
        return application

    async def _complete(self, request: web.Request) -> web.Response:
        body = await request.json()
        prompt = "\n\n".join(message["content"] for message in body["messages"])
        if turn := _TURN.search(prompt):
            self.roots.append(prompt)
            return _reply(body, prompt, {"content": _root(self.turns[int(turn[1]) - 1])})
        life = self._life
        while self.hold_after is not None and len(self.oracle.calls) >= self.hold_after:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        if life != self._life:
            return web.json_response({"error": {"message": "the caller is gone"}}, status=500)
        try:
            text = self.oracle.call(prompt).reply
        except ValueError as error:
            return web.json_response({"error": {"message": str(error)}}, status=400)
        return _reply(body, prompt, _message(body, text))


def _root(code: str) -> str:
    return (
        f"[[ ## reasoning ## ]]\nGo on.\n\n[[ ## code ## ]]\n```python\n{code}\n```\n\n"
        "[[ ## completed ## ]]"
    )


def _message(body: Mapping[str, Any], text: str) -> dict[str, Any]:
    """The oracle's lines, or the call of a function with an object for each of them, if there is one."""
    if not body.get("tools"):
        return {"content": text}
    (tool,) = body["tools"]
    found = [{"label": line.partition(": ")[2]} for line in text.splitlines()]
    is_list = "results" in tool["function"]["parameters"]["properties"]
    arguments = json.dumps({"results": found} if is_list else found[0])
    called = {"name": tool["function"]["name"], "arguments": arguments}
    return {"content": None, "tool_calls": [{"id": "1", "type": "function", "function": called}]}


def _reply(body: Mapping[str, Any], prompt: str, message: Mapping[str, Any]) -> web.Response:
    n_in, n_out = len(prompt) // 4, len(json.dumps(message)) // 4
    reason = "tool_calls" if "tool_calls" in message else "stop"
    return web.json_response({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": body["model"],
        "choices": [{"index": 0, "finish_reason": reason, "message": {"role": "assistant", **message}}],
        "usage": {"prompt_tokens": n_in, "completion_tokens": n_out, "total_tokens": n_in + n_out},
    })  # fmt: skip


class MissingError(Exception):
    """What a labeller needs is not installed."""


@dataclass
class Bench:
    """One window, and those who label it."""

    window: Window
    per_call: int
    seed: int
    peers: str

    def measured(self, name: str) -> dict[str, Any]:
        """The figures of one labeller.

        Raises:
            Missing: What it needs is not installed.
        """
        plain, right = self._labelled(name, {})
        faulty, right_faulty = self._labelled(name, {"drop": 1.0})
        killed, right_killed = self._killed(name, len(plain.oracle.calls) // 2)
        asked = [sum(len(call.items) for call in each.oracle.calls) for each in (plain, killed)]
        prompts = [*(call.prompt for call in plain.oracle.calls), *plain.roots]
        tokens = sum(map(len, prompts)) // 4
        return {
            "calls": len(prompts), "input_tokens": tokens,
            "tokens_by_document": round(tokens / (len(self.window.text) // 4), 2), "right": right,
            "right_dropped": right_faulty, "calls_dropped": len(faulty.oracle.calls) + len(faulty.roots),
            "asked_again_after_kill": asked[1] - asked[0], "right_after_kill": right_killed,
        }  # fmt: skip

    def _server(self, faults: Mapping[Fault, float]) -> Server:
        window = self.window
        oracle = Oracle(window.labels_of, window.labels, seed=self.seed, faults=faults)
        return Server(oracle, root_turns(list(window.labels), self.per_call))

    def _labelled(self, name: str, faults: Mapping[Fault, float]) -> tuple[Server, int]:
        server = self._server(faults)
        with tempfile.TemporaryDirectory() as folder, on_loopback(server.application) as url:
            return server, self._right(*self._start(name, url, Path(folder)).communicate())

    def _killed(self, name: str, n_before: int) -> tuple[Server, int]:
        server = self._server({})
        server.hold_after = n_before
        with tempfile.TemporaryDirectory() as folder, on_loopback(server.application) as url:
            first = self._start(name, url, Path(folder))
            while len(server.oracle.calls) < n_before and first.poll() is None:
                time.sleep(0.01)
            time.sleep(SETTLE_S)
            os.killpg(first.pid, signal.SIGKILL)
            first.communicate()
            server.begin_again()
            return server, self._right(*self._start(name, url, Path(folder)).communicate())

    def _start(self, name: str, url: str, folder: Path) -> subprocess.Popen[str]:
        texts, window, kept = folder / "texts.json", folder / "window.txt", folder / "kept"
        texts.write_text(json.dumps([entry.text for entry in self.window.entries]))
        window.write_text(self.window.text)
        kept.mkdir(exist_ok=True)
        said = {
            "url": url, "texts": str(texts), "window": str(window), "kept": str(kept),
            "labels": self.window.labels, "per_call": self.per_call,
        }  # fmt: skip
        asked = folder / "said.json"
        asked.write_text(json.dumps(said))
        with asked.open() as stdin:
            return subprocess.Popen(
                [self.peers if name in PEERS else sys.executable, HERE / "labellers.py", name],
                stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                start_new_session=True, env={**os.environ, "HOME": str(folder)},
            )  # fmt: skip

    def _right(self, out: str, errors: str) -> int:
        """Entries with the label that the oracle has for them."""
        if "ModuleNotFoundError" in errors:
            raise MissingError(errors.splitlines()[-1])
        try:
            labels: Labels = json.loads(out.splitlines()[-1])
        except (IndexError, json.JSONDecodeError):
            raise RuntimeError(f"no labels were printed: {errors[-2_000:]}") from None
        pairs = zip(labels, self.window.entries, strict=True)
        return sum(label == entry.label for label, entry in pairs)


def main() -> int:
    """Measure all that are asked for and installed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--entries", type=int, default=1_000)
    parser.add_argument("--per-call", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--only", nargs="+", default=[*LABELLERS], choices=LABELLERS)
    said = parser.parse_args()
    bench = Bench(draw_window(said.entries, said.seed), said.per_call, said.seed, said.peers)
    found: dict[str, dict[str, Any]] = {}
    for name in said.only:
        try:
            found[name] = bench.measured(name)
        except MissingError as error:
            print(f"{name}: not measured: {error}")
            continue
        figures = ", ".join(f"{what.replace('_', ' ')} {n}" for what, n in found[name].items())
        print(f"{name}: {figures}", flush=True)
    line = {
        "bench": "rows", "entries": said.entries, "per_call": said.per_call, "seed": said.seed,
        "document_tokens": len(bench.window.text) // 4, **found,
    }  # fmt: skip
    print(json.dumps(line))
    ours = found.get("pearl")
    if ours is None:
        return 0
    rights = (ours["right"], ours["right_dropped"], ours["right_after_kill"])
    is_met = set(rights) == {said.entries}
    return 0 if is_met and ours["asked_again_after_kill"] <= AT_ONCE * said.per_call else 1


if __name__ == "__main__":
    sys.exit(main())
