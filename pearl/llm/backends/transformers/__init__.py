"""Weights in a folder, run in this process by transformers: `transformers:PATH`.

Replies can be constrained by a grammar, or by a new one after every line (`Masks`). The state of a
common prefix of prompts is reused (`Prefixes`). Requests are processed sequentially, in a worker
thread.

Without a chat template in the tokenizer, the prompt is the contents of the messages, separated by
blank lines and ended by a line break.
"""

from __future__ import annotations

import asyncio
import math
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
        raise DataError(f"is not a folder: {error}", path=ascii(name)) from None
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
        self.timeout_s = timeout_s
        self._state: tuple[LoadedWeights, Prefixes] | None = None
        self._worker: ThreadPoolExecutor | None = None

    def __repr__(self) -> str:
        return f"TransformersModel({self.name!r})"

    async def complete(self, request: Request) -> Completion:
        """Send one request, after those before it."""
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="transformers")
        call = _Call(self, request)
        try:
            return await asyncio.wrap_future(self._worker.submit(call.run))
        finally:
            call.is_cancelled = True  # the thread stops at the next token

    async def aclose(self) -> None:
        """Release the weights; the next request loads them again."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.shutdown(wait=False, cancel_futures=True)
        self._state = None

    def loaded(self, on_load: Callable[[], None]) -> tuple[LoadedWeights, Prefixes]:
        """The weights, loaded by the first call, and the prefixes cached with them."""
        if self._state is None:
            on_load()
            weights = load(self._folder)
            self._state = weights, Prefixes(weights.model.config)
        return self._state

    def encoded(self, request: Request, tokenizer: Any) -> list[int]:
        """The tokens of the prompt, in the chat template of the model if it has one."""
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
            f"the chat template of {self.name} rejects the messages: {reason}", kind="bad_request"
        )


class _Call:
    """One request, which the worker thread computes."""

    def __init__(self, model: TransformersModel, request: Request) -> None:
        self.is_cancelled = False
        self._model = model
        self._request = request
        self._loop, self._context = asyncio.get_running_loop(), copy_context()
        self._until = math.inf

    def run(self) -> Completion:
        """Compute the reply, or the log-likelihoods of candidates."""
        weights, prefixes = self._model.loaded(lambda: self._report(CallProgress("loading")))
        prompt = self._model.encoded(self._request, weights.tokenizer)
        self._until = time.monotonic() + self._model.timeout_s
        try:
            if self._request.candidates:
                return self._rated(prompt, weights, prefixes)
            return self._written(prompt, weights, prefixes)
        except RuntimeError as error:  # mostly out of memory
            raise ModelError(
                f"{self._model.name} failed: {_on_one_line(error)}",
                kind="bad_request",
                help="a smaller --window takes less memory",
            ) from error

    def _rated(self, prompt: list[int], weights: LoadedWeights, prefixes: Prefixes) -> Completion:
        candidates = self._request.candidates
        paths = [_tokens(weights.tokenizer, each, is_whole=False) for each in candidates]
        self._limit(len(prompt) + max(map(len, paths)))
        values, n_cached = rate(weights, prefixes, prompt, paths, self._check_time)
        usage = Usage(len(prompt) + sum(map(len, paths)), 0, n_cached)
        return Completion(write_numbers(values), self._model.name, usage)

    def _written(self, prompt: list[int], weights: LoadedWeights, prefixes: Prefixes) -> Completion:
        request, tokenizer = self._request, weights.tokenizer
        limit = self._limit(len(prompt))
        masks = None
        if request.constraint is not None:
            masks = Masks(request.constraint, request.constrain_by, weights.vocabulary)
        prefix = prefixes.take(prompt)
        n_cached = len(prefix.tokens)

        def before_call() -> None:
            self._check_time()
            if len(prefix.tokens) < len(prompt):
                self._report(CallProgress("reading", len(prefix.tokens), len(prompt)))

        tokens: list[int] = []
        sampling = (request.temperature or 0.0, request.seed)
        # After any other error its tokens and its cache may differ, so it is not given back.
        try:
            for token in write(weights, prefix, prompt, *sampling, masks, before_call):
                tokens.append(token)
                if token in weights.ends:
                    break
                # A character of several tokens is incomplete until the last of them.
                tail = tokenizer.decode(tokens[-TAIL_TOKENS:]).strip("\ufffd")
                self._report(CallProgress("writing", len(tokens), text=tail[-MAX_TAIL:]))
                if len(tokens) % CHECKED_EVERY == 0:
                    text = tokenizer.decode(tokens[-CHECKED:])
                    if (loop := loop_in(text)) is not None:
                        usage = Usage(len(prompt), len(tokens), n_cached)
                        raise repeats(self._model.name, loop, usage, text)
                if len(tokens) == limit:
                    break
        except ModelError:
            prefixes.give(prefix)
            raise
        prefixes.give(prefix)
        usage = Usage(len(prompt), len(tokens), n_cached)
        # Truncation is checked first, because a cut reply may be blank.
        if tokens[-1] not in weights.ends:
            raise ModelError(
                f"the reply of {self._model.name} was cut off after {len(tokens):,} tokens",
                kind="truncated",
                help="allow more with --max-output-tokens, or use a model with a larger window",
                usage=usage,
            )
        if masks is not None:
            text = masks.text
        else:  # without invalid bytes
            decoded: str = tokenizer.decode(tokens[:-1], skip_special_tokens=True)
            text = decoded.replace("\ufffd", "")
        if is_blank(text):
            message = f"the reply of {self._model.name} is blank"
            raise ModelError(message, kind="empty", usage=usage)
        return Completion(text, self._model.name, usage)

    def _limit(self, n_prompt: int) -> int:
        """Maximum tokens of the reply."""
        limit, window = self._request.max_output_tokens, self._model.window
        limit = MAX_OUTPUT_TOKENS if limit is None else limit
        if window is None:
            return limit
        if n_prompt >= window:
            raise ModelError(
                f"the prompt has {n_prompt:,} tokens; the window of {self._model.name} has {window:,}",
                kind="bad_request",
                help="use --context map-reduce or retrieve, or a model with a larger window",
            )
        return min(limit, window - n_prompt)

    def _check_time(self) -> None:
        if self.is_cancelled or time.monotonic() > self._until:
            raise ModelError(
                f"no complete reply from {self._model.name} within {self._model.timeout_s:g} s",
                kind="deadline",
                help="allow more with --timeout-s",
            )

    def _report(self, progress: CallProgress) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(report, progress, context=self._context)


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
