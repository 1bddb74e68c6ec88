"""Weights in a folder, run in this process by transformers: `transformers:PATH`.

Replies can be constrained by a grammar, or by a new one after every line (`Masks`). The state of a
common prefix of prompts is reused (`Prefixes`). Requests are processed sequentially, in a worker
thread.

Without a chat template in the tokenizer, the prompt is the contents of the messages, separated by
blank lines and ended by a line break.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from typing import Any

from pearl.documents.document import file_source
from pearl.errors import DataError, ModelError, UsageError
from pearl.llm import Completion, Constrains, Message, Request, Usage
from pearl.llm.backends import Abilities, ModelSettings
from pearl.llm.backends.transformers.decoding import Masks, Prefixes, rate, write
from pearl.llm.backends.transformers.loading import (
    FolderTokenizer,
    LoadedWeights,
    load,
    read_window,
)
from pearl.llm.flaws import is_blank, loop_in, repeats
from pearl.llm.messages import write_numbers
from pearl.llm.progress import MAX_TAIL, CallProgress, report
from pearl.plugins.extras import require_extra

__all__ = ["ABILITIES", "DESCRIPTION", "TransformersModel", "create"]

DESCRIPTION = "weights in a folder, run in this process: transformers:PATH"
MAX_OUTPUT_TOKENS = 4_096  # Default limit of a reply in tokens
CHECKED_EVERY = 64  # Tokens between two checks for repetition
CHECKED = 4_096  # Tokens at the end of a reply that are checked for repetition
TAIL_TOKENS = 100  # Tokens at the end of a reply whose text is reported while it is written
# Maximum characters of a free text under a constraint, as for the explanation of a step.
MAX_TEXT = 240


def create(name: str, settings: ModelSettings) -> TransformersModel:
    """Create the model of the folder `name`, which is loaded on first use."""
    if not name:
        raise UsageError(
            "transformers: needs a folder of weights", help="for example transformers:models/own"
        )
    folder = Path(name).expanduser()
    try:
        window = read_window(folder)
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"is no folder: {error}", path=ascii(name)) from None
    require_extra("transformers", "a model in this process", "torch", "transformers", "llguidance")
    return TransformersModel(folder, name, settings.window or window, settings.timeout_s)


class TransformersModel:
    """One model of one folder."""

    notice = ""
    reads_prompts = True
    constrains = Constrains(by=frozenset({"line", "grammar"}), max_text=MAX_TEXT, likelihoods=True)

    def __init__(
        self, folder: Path, name: str, window: int | None, timeout_s: float = 600.0
    ) -> None:
        self.name = f"transformers:{name}"
        files = sorted(each for each in folder.rglob("*") if each.is_file())
        self.identity = " ".join([self.name, *map(file_source, files)])
        self.window = window
        self.tokenizer = FolderTokenizer(folder, f"the tokenizer of {folder.name}")
        self._folder = folder
        self._timeout_s = timeout_s
        self._state: tuple[LoadedWeights, Prefixes] | None = None
        self._worker: ThreadPoolExecutor | None = None

    def __repr__(self) -> str:
        return f"TransformersModel({self.name!r})"

    async def complete(self, request: Request) -> Completion:
        """Send one request, after those before it."""
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="transformers")
        is_cancelled = threading.Event()
        loop, context = asyncio.get_running_loop(), copy_context()

        def on_progress(progress: CallProgress) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(report, progress, context=context)

        try:
            reply = self._worker.submit(self._reply, request, is_cancelled, on_progress)
            return await asyncio.wrap_future(reply)
        finally:
            is_cancelled.set()  # the thread stops at the next token

    async def aclose(self) -> None:
        """Release the weights; the next request loads them again."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.shutdown(wait=False, cancel_futures=True)
        self._state = None

    def _reply(
        self,
        request: Request,
        is_cancelled: threading.Event,
        on_progress: Callable[[CallProgress], None],
    ) -> Completion:
        """Compute a reply, in the worker thread."""
        if self._state is None:
            on_progress(CallProgress("loading"))
        weights, prefixes = self._loaded()
        prompt = self._encoded(request, weights.tokenizer)
        check_time = self._timer(is_cancelled)
        try:
            if request.candidates:
                paths = [_tokens(weights.tokenizer, c, is_whole=False) for c in request.candidates]
                self._limit(len(prompt) + max(map(len, paths)), None)
                values, n_cached = rate(weights, prefixes, prompt, paths, check_time)
                usage = Usage(len(prompt) + sum(map(len, paths)), 0, n_cached)
                return Completion(write_numbers(values), self.name, usage)
            return self._written(request, prompt, weights, prefixes, check_time, on_progress)
        except RuntimeError as error:  # out of memory, most of all
            raise ModelError(
                f"{self.name} failed: {_on_one_line(error)}",
                kind="bad_request",
                help="a smaller --window takes less memory",
            ) from error

    def _written(
        self,
        request: Request,
        prompt: list[int],
        weights: LoadedWeights,
        prefixes: Prefixes,
        check_time: Callable[[], None],
        on_progress: Callable[[CallProgress], None],
    ) -> Completion:
        limit = self._limit(len(prompt), request.max_output_tokens)
        masks = None
        if request.constraint is not None:
            masks = Masks(request.constraint, request.constrain_by, weights.vocabulary)

        def before_call() -> None:
            check_time()
            if len(prefix.tokens) < len(prompt):
                on_progress(CallProgress("reading", len(prefix.tokens), len(prompt)))

        prefix = prefixes.take(prompt)
        n_cached = len(prefix.tokens)
        tokens: list[int] = []
        temperature = request.temperature or 0.0
        # After any other error its tokens and its cache may differ, so it is not given back.
        try:
            for token in write(
                weights, prefix, prompt, temperature, request.seed, masks, before_call
            ):
                tokens.append(token)
                if token in weights.ends:
                    break
                # A letter of several tokens is incomplete until the last of them.
                tail = weights.tokenizer.decode(tokens[-TAIL_TOKENS:]).strip("\ufffd")
                on_progress(CallProgress("writing", len(tokens), text=tail[-MAX_TAIL:]))
                if len(tokens) % CHECKED_EVERY == 0:
                    text = weights.tokenizer.decode(tokens[-CHECKED:])
                    if (loop := loop_in(text)) is not None:
                        usage = Usage(len(prompt), len(tokens), n_cached)
                        raise repeats(self.name, loop, usage, text)
                if len(tokens) == limit:
                    break
        except ModelError:
            prefixes.give(prefix)
            raise
        prefixes.give(prefix)
        usage = Usage(len(prompt), len(tokens), n_cached)
        return Completion(self._usable(tokens, masks, weights, usage), self.name, usage)

    def _timer(self, is_cancelled: threading.Event) -> Callable[[], None]:
        """A function that raises `ModelError` after a timeout or a cancellation."""
        until = time.monotonic() + self._timeout_s

        def check() -> None:
            if is_cancelled.is_set() or time.monotonic() > until:
                raise ModelError(
                    f"no complete reply from {self.name} within {self._timeout_s:g} s",
                    kind="deadline",
                    help="allow more with --timeout-s",
                )

        return check

    def _loaded(self) -> tuple[LoadedWeights, Prefixes]:
        if self._state is None:
            weights = load(self._folder)
            self._state = weights, Prefixes(weights.model.config)
        return self._state

    def _encoded(self, request: Request, tokenizer: Any) -> list[int]:
        if not tokenizer.chat_template:
            contents = "\n\n".join(message.content for message in request.messages)
            return _tokens(tokenizer, f"{contents}\n", is_whole=True)
        from jinja2 import TemplateError

        reason = ""
        # Some templates reject system messages, which then become part of the user's.
        for messages in (request.messages, _without_system(request.messages)):
            shown = [{"role": m.role, "content": m.content} for m in messages]
            try:
                text = tokenizer.apply_chat_template(
                    shown, tokenize=False, add_generation_prompt=True
                )
            except TemplateError as error:
                reason = _on_one_line(error)
            else:
                return _tokens(tokenizer, text, is_whole=False)
        raise ModelError(
            f"the chat template of {self.name} refuses the messages: {reason}", kind="bad_request"
        )

    def _limit(self, n_prompt: int, limit: int | None) -> int:
        """Maximum tokens of the reply."""
        limit = MAX_OUTPUT_TOKENS if limit is None else limit
        if self.window is None:
            return limit
        if n_prompt >= self.window:
            raise ModelError(
                f"the prompt has {n_prompt:,} tokens, the window of {self.name} {self.window:,}",
                kind="bad_request",
                help="use --context map-reduce or retrieve, or a model with a larger window",
            )
        return min(limit, self.window - n_prompt)

    def _usable(
        self, tokens: list[int], masks: Masks | None, weights: LoadedWeights, usage: Usage
    ) -> str:
        """The text of a reply. Truncation is checked first, because a cut reply may be blank."""
        if tokens[-1] not in weights.ends:
            raise ModelError(
                f"the reply of {self.name} was cut off after {len(tokens):,} tokens",
                kind="truncated",
                help="allow more with --max-output-tokens, or use a model with a larger window",
                usage=usage,
            )
        if masks is not None:
            text = masks.text
        else:
            decoded: str = weights.tokenizer.decode(tokens[:-1], skip_special_tokens=True)
            text = decoded.replace("\ufffd", "")  # invalid bytes
        if is_blank(text):
            raise ModelError(f"the reply of {self.name} is blank", kind="empty", usage=usage)
        return text


def _on_one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _without_system(messages: Sequence[Message]) -> list[Message]:
    """The messages with each system message prepended to the next one."""
    system: list[str] = []
    others: list[Message] = []
    for message in messages:
        if message.role == "system":
            system.append(message.content)
        else:
            others.append(Message(message.role, "\n\n".join([*system, message.content])))
            system = []
    return others


def _tokens(tokenizer: Any, text: str, *, is_whole: bool) -> list[int]:
    """The tokens of a text, with special tokens added if it `is_whole` (a template adds its own)."""
    valid = text.encode(errors="replace").decode()  # tokenizers reject lone surrogates
    ids: list[int] = tokenizer(valid, add_special_tokens=is_whole, verbose=False)["input_ids"]
    return ids


ABILITIES = Abilities("FOLDER", TransformersModel.constrains, "transformers", tokenizes=True)
