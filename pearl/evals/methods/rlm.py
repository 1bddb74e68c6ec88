"""A recursive language model: `dspy.RLM` with PEARL's model (arXiv 2512.24601).

The model writes Python over the document, sees its output, asks a model about pieces of the document, and
continues until it submits an answer. All calls use the client, with its limits, retries, store and prices. The
code runs in dspy's sandbox, which needs Deno; without the sandbox only if the user allows it, because the
author of the document influences the code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, NoReturn, get_args

from pearl.data.samples import Sample
from pearl.documents.document import Document
from pearl.dsl.signatures import Action
from pearl.embedded import ExtractiveModel
from pearl.errors import BudgetError, ExecutionError, PausedError, PearlError, UsageError
from pearl.evals.methods import Effort, Prediction, standalone
from pearl.llm import ActionTask, Completion, Message, Request
from pearl.pipeline import Pearl
from pearl.plugins.extras import require_extra
from pearl.trace import ModelCalled, Trace

if TYPE_CHECKING:
    import dspy

DESCRIPTION = "dspy.RLM: the model's code reads the document and asks about pieces; then mapped"
NEEDS_OPTIONS = False

IDLE_S = 300.0
"""Code without a call for so long, or up to twice that, is ended: it may run for ever."""

FORCED = "Extract forced final output"
"""The reasoning that dspy gives for an answer that it forced after the last turn."""

Role = Literal["user", "assistant"]


def require() -> None:
    """Report a missing package before any call."""
    require_extra("rlm", "method 'rlm'", "dspy")


async def predict(
    pearl: Pearl, sample: Sample, document: Document, effort: Effort, trace: Trace
) -> Prediction:
    """Answer one sample; when no turn is left, dspy forces an answer."""
    if isinstance(pearl.client.model, ExtractiveModel):
        raise UsageError(
            f"method 'rlm' needs a model that writes code; '{pearl.client.name}' does not",
            help="name a language model: --model openai:NAME",
        )
    question = await standalone(pearl, sample, trace)
    calls = _Calls(pearl, question, effort.token_budget, trace)
    with pearl.client.breaker.running():
        said = await _run(calls, question, document.text, is_confined=not effort.unsandboxed)
    text = str(said.answer).strip()
    choice = None
    if sample.options:
        choice = await pearl.choose(sample.question, sample.options, answer=text, trace=trace)
    is_forced = said.final_reasoning == FORCED
    return Prediction("fell_back" if is_forced else "answered", text, choice)


async def _run(calls: _Calls, question: str, text: str, *, is_confined: bool) -> dspy.Prediction:
    """Run dspy in a separate thread: it blocks there for calls and for code."""
    loop = asyncio.get_running_loop()
    threads = ThreadPoolExecutor(1, "rlm")
    dspy = await loop.run_in_executor(threads, _imported)
    interpreters = _Interpreters(dspy.PythonInterpreter if is_confined else dspy.LocalInterpreter)

    def answer() -> Any:
        lm = dspy.LM(calls.model, engine=calls, cache=False, num_retries=0)
        with dspy.context(lm=lm, disable_history=True):
            rlm = dspy.RLM("context, query -> answer", interpreter_factory=interpreters)
            return rlm(context=text, query=question)

    work = loop.run_in_executor(threads, answer)
    try:
        n_seen = calls.n_begun
        while not (await asyncio.wait({work}, timeout=IDLE_S))[0]:
            if calls.n_begun == calls.n_ended == n_seen:
                raise ExecutionError(f"the model's code made no call for {IDLE_S:.0f} s")
            n_seen = calls.n_begun
        said = work.result()
    except dspy.CodeInterpreterError as error:
        why = str(error).splitlines()[0]
        raise ExecutionError(
            f"the model's code cannot run (dspy needs Deno and, once, the network): {why}"
        ) from error
    except dspy.DSPyError as error:
        _raise_cause(error)
    finally:
        calls.close()
        interpreters.close()
        await asyncio.gather(work, return_exceptions=True)  # it ends now: its calls are refused
        threads.shutdown(wait=False)
    if calls.over is not None:  # the answer may lack calls that a limit refused
        raise calls.over
    return said


def _imported() -> Any:
    """Dspy, whose import takes seconds."""
    import dspy

    return dspy


def _raise_cause(error: BaseException) -> NoReturn:
    """Raise the failed call behind dspy's error, or the error itself."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, PearlError):
            raise cause
        cause = cause.__cause__
    raise ExecutionError(f"dspy.RLM failed: {error}") from error


class _Calls:
    """The engine of a `dspy.LM`: makes dspy's calls in the evaluation's event loop."""

    def __init__(self, pearl: Pearl, question: str, token_budget: int | None, trace: Trace) -> None:
        self.model = pearl.client.name
        self.n_begun = self.n_ended = 0
        self.over: PearlError | None = None
        self._pearl = pearl
        self._trace = trace
        self._loop = asyncio.get_running_loop()
        self._task = ActionTask("rlm", Action("RLM", ()), (), None, question=question)
        self._budget = token_budget
        self._left = token_budget
        self._lock = Lock()
        self._is_closed = False
        self._under_way: set[asyncio.Task[Completion]] = set()

    def complete(self, request: dspy.lm15.Request) -> dspy.lm15.Response:
        """Make one call, from any thread."""
        from dspy import lm15

        if request.tools:
            raise lm15.UnsupportedFeatureError("tool calls are not supported")
        prompt = Request(tuple(_messages(request)), self._task, self._pearl.limits.reply_tokens)
        self._spend(self._pearl.client.counter.count(prompt.prompt))
        reply = asyncio.run_coroutine_threadsafe(self._ask(prompt), self._loop).result()
        usage = reply.usage
        return lm15.Response(
            id=None,
            model=reply.model,
            message=lm15.Message.assistant([lm15.TextPart(reply.text)]),
            finish_reason="stop",
            usage=lm15.Usage(
                input_tokens=usage.n_input_tokens,
                output_tokens=usage.n_output_tokens,
                total_tokens=usage.n_tokens,
            ),
        )

    def close(self) -> None:
        """Cancel all calls, and refuse new ones."""
        self._is_closed = True
        for task in self._under_way:
            task.cancel()

    def _spend(self, n_tokens: int) -> None:
        with self._lock:
            if self._left is None:
                return
            if n_tokens > self._left:
                raise ExecutionError(
                    f"a budget of {self._budget:,} tokens is too small: {self._left:,} are left, "
                    f"and a call needs {n_tokens:,}",
                    help="raise --token-budget",
                )
            self._left -= n_tokens

    async def _ask(self, request: Request) -> Completion:
        if self.over is not None or self._is_closed:
            raise self.over or ExecutionError("the sample has ended")
        began = monotonic()
        task = asyncio.ensure_future(self._pearl.calls(self._trace).complete(request))
        self._under_way.add(task)
        self.n_begun += 1
        try:
            reply = await task
        except PearlError as error:
            if isinstance(error, BudgetError | PausedError) or self._pearl.client.breaker.error:
                self.over = error
            raise
        finally:
            self.n_ended += 1
            self._under_way.discard(task)
        self._trace.append(
            ModelCalled(
                step="rlm",
                purpose="step",
                model=reply.model,
                duration_s=monotonic() - began,
                usage=reply.usage,
                is_remembered=reply.is_remembered,
                prefix=reply.prefix,
            )
        )
        return reply


def _messages(request: dspy.lm15.Request) -> Iterator[Message]:
    if request.system:
        parts = request.system
        yield Message(
            "system", parts if isinstance(parts, str) else "".join(part.text for part in parts)
        )
    for message in request.messages:
        role: Role = message.role if message.role in get_args(Role) else "user"
        yield Message(role, message.text or "")


class _Interpreters:
    """Makes dspy's code interpreters, and can end their processes at any time."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.execution_instructions = getattr(make, "execution_instructions", "")
        self._make = make
        self._made: list[Any] = []
        self._is_closed = False

    def __call__(self) -> Any:
        """Make an interpreter, from any thread; it is ended at once after `close`."""
        made = self._make()
        self._made.append(made)
        if self._is_closed:
            _end(made)
        return made

    def close(self) -> None:
        """End all processes."""
        self._is_closed = True
        for each in self._made:
            _end(each)


def _end(interpreter: Any) -> None:
    # `shutdown` waits for the sandbox's process, which may be busy for ever.
    if (process := getattr(interpreter, "deno_process", None)) is not None:
        process.kill()
    interpreter.shutdown()
