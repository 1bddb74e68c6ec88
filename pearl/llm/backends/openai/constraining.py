"""Constrained requests: a probe shows which form a server obeys, as some ignore what they cannot parse; and reads the replies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, get_args

from pearl.dsl.decoding.constraint import Constraint, Form, JsonForm, closed_object, validate
from pearl.errors import ModelError, ModelErrorKind, UsageError
from pearl.llm import Completion, ConstrainBy, Message, Request
from pearl.llm.backends.openai import faults, replies, servers
from pearl.llm.backends.openai.endpoint import scrubbed
from pearl.llm.backends.openai.faults import Refuses, StatusError
from pearl.llm.backends.openai.servers import Server
from pearl.llm.backends.openai.sessions import HttpSession
from pearl.llm.concurrency import SingleFlight
from pearl.llm.flaws import is_blank
from pearl.replies.json_objects import unique_json
from pearl.replies.reasoning import without_reasoning

# A sentence that no model would reply to the probe's prompt on its own.
SENTENCE = "Seven umbrellas hum in quartz"
PROBE_PROMPT = "Please say hello."
MAX_PROBE_TOKENS = 512  # Maximum tokens of the probe: ten for the sentence, the rest for reasoning

PROBE = Constraint(
    "probe",
    # A rule, a terminal and a character class, as in the grammars of plans.
    'start: COUNT " umbrellas " verb " in quartz"\nverb: "hum"\nCOUNT: /[S]even/\n',
    JsonForm(closed_object({"sentence": {"type": "string", "enum": [SENTENCE]}}), str, hint=""),
)
"""The language of one sentence."""

# Kinds of errors that rule out a form; other errors are inconclusive.
_VERDICTS: frozenset[ModelErrorKind] = frozenset(
    {"unconstrained", "truncated", "repetition", "empty", "refused", "filtered"}
)

_OFF = "use --constrain off"

Spend = Callable[[Request, Callable[[], Awaitable[Completion]]], Awaitable[Completion]]
"""Makes a call within the limits of a budget."""

_WANTED: dict[ConstrainBy, str] = {"grammar": "grammar", "json": "JSON Schema"}


class Constraining:
    """Constrained requests to one server, whose kind is detected if it is None."""

    def __init__(self, session: HttpSession, server: Server | None) -> None:
        self._session = session
        self._endpoint = session.endpoint
        self._server = server
        self._verdicts: dict[ConstrainBy, Form | ModelError] = {}
        self._asking: SingleFlight[None] = SingleFlight()

    async def complete(self, request: Request, constraint: Constraint) -> Completion:
        """Send a request with its constraint."""
        server, form = await self.ready(request)
        try:
            completion = await self._ask(server, request, constraint, form)
        except ModelError as error:
            if error.kind == "unconstrained":
                self._session.memory.forget()  # the server may be another than it was
            raise
        return self.sentence(completion, constraint) if form == "json-schema" else completion

    async def ready(self, request: Request, spend: Spend | None = None) -> tuple[Server, Form]:
        """The kind of the server and the form in which it obeys a constraint; probes it if necessary."""
        by, constraint = request.constrain_by, request.constraint
        if self._server is None:
            await self._find_out("kind", self._recognise)
        server = self._server
        if server is None:
            raise _unconstrained(
                f"{self._endpoint.shown} does not list its models at present, "
                f"so the form of its {_WANTED[by]} is unknown",
                f"name the kind of the server: --server vllm, or {', '.join(servers.names())}",
            )
        if not server.forms(by):
            where = f"{self._endpoint.shown} is {server.title}, which"
            raise _unconstrained(f"{where} takes no {_WANTED[by]}", server.help)
        if by == "json" and constraint is not None and constraint.json_form is None:
            raise _unconstrained(f"the language '{constraint.name}' has no JSON form", _OFF)
        if by not in self._verdicts and (kept := self._kept(by, server)) is not None:
            self._verdicts[by] = kept
        if by not in self._verdicts:
            await self._find_out(by, lambda: self._judge(by, server, request, spend))
        verdict = self._verdicts[by]
        if isinstance(verdict, ModelError):
            raise verdict.copy()
        return server, verdict

    @property
    def n_probes(self) -> int:
        """The most probes that are still needed, each of `MAX_PROBE_TOKENS` at most."""
        kinds = [self._server] if self._server else list(map(servers.load, servers.names()))
        probed = [k for k in kinds if any(self._kept(by, k) for by in get_args(ConstrainBy))]
        return max(
            sum(
                len(kind.forms(by))
                for by in get_args(ConstrainBy)
                if by not in self._verdicts and self._kept(by, kind) is None
            )
            for kind in probed or kinds
        )

    def _kept(self, by: ConstrainBy, server: Server) -> Form | ModelError | None:
        """What a probe of an earlier command has shown."""
        match self._session.memory.read(f"{server.title}: {by}"):
            case {"form": str(name)}:
                return next((form for form in server.forms(by) if form == name), None)
            case {"refused": str(message)}:
                return _unconstrained(message, server.help)
        return None

    def sentence(self, completion: Completion, constraint: Constraint) -> Completion:
        """The completion with its JSON as a sentence of the language."""
        split = without_reasoning(completion.text)
        with replies.billed(completion.usage, completion.text):
            if split.is_unclosed:
                raise replies.truncated(completion.usage, self._endpoint)
            text = self._text_of(split.text, constraint)
        return replace(completion, text=text, reasoning=completion.reasoning or split.reasoning)

    async def _find_out(self, what: str, find: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Ask the server once for all callers; after a failure, the next caller asks again."""
        try:
            await self._asking.do(what, find)
        except ModelError as error:
            raise error.copy() from None

    async def _recognise(self) -> None:
        try:
            listed = await self._session.known_listing()
        except (StatusError, TimeoutError):
            return  # the server may list its models later
        known = servers.by_listing(listed, self._endpoint.model)
        self._server = known or servers.load(servers.UNKNOWN)

    async def _judge(
        self, by: ConstrainBy, server: Server, request: Request, spend: Spend | None
    ) -> None:
        # The first caller may be cancelled or time out while others still wait.
        timeout_s = self._session.timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                verdict = self._verdicts[by] = await self._probe(server, request, spend)
        except TimeoutError:
            raise faults.too_slow(timeout_s, self._endpoint) from None
        kept = (
            {"refused": verdict.message} if isinstance(verdict, ModelError) else {"form": verdict}
        )
        self._session.memory.keep(f"{server.title}: {by}", kept)

    async def _probe(
        self, server: Server, request: Request, spend: Spend | None
    ) -> Form | ModelError:
        """The first form that the server obeys, or the error of the best form."""
        probe = replace(
            request,
            messages=(Message("user", PROBE_PROMPT),),
            max_output_tokens=MAX_PROBE_TOKENS,
            temperature=0.0,
            seed=None,
        )
        wanted = _WANTED[request.constrain_by]
        outcomes = []
        for form in server.forms(request.constrain_by):
            try:
                ask = partial(self._ask, server, probe, PROBE, form, faults.refuses_probe)
                reply = await (ask() if spend is None else spend(probe, ask))
            except ModelError as error:
                if error.kind not in _VERDICTS:
                    raise
                outcomes.append(f"{server.title} takes no {wanted}: {error.message}")
                continue
            if _is_obeyed(reply.text, form):
                return form
            # Truncated after keys are hidden, so that no partial key is left.
            said = self._endpoint.quote(reply.text)[:60]
            outcomes.append(
                f"{server.title} ignores a {wanted}: {self._endpoint.shown} replied '{said}'"
            )
        return _unconstrained(outcomes[0], server.help)

    async def _ask(
        self,
        server: Server,
        request: Request,
        constraint: Constraint,
        form: Form,
        is_of_constraint: Refuses = faults.refuses_constraint,
    ) -> Completion:
        """The reply in a form, JSON unparsed."""
        try:
            if form != "json-schema":
                _validate(constraint.lark)
            body = server.held(self._session.parameters.body(request), constraint, form)
        except UsageError as error:
            first = error.message.partition("\n")[0]
            message = f"the grammar of '{constraint.name}' is not sent: {first}"
            raise _unconstrained(message, _OFF) from None
        try:
            data = await self._session.post(server.path, body, is_of_constraint)
            return server.read(data, self._endpoint)
        except replies.BlankError as error:
            if form == "json-schema":
                for text in error.elsewhere.values():
                    if _conforms(text, constraint):
                        return replace(error.completion, text=text, reasoning="")
            raise
        except ModelError as error:
            if error.kind == "unconstrained":
                raise _unconstrained(error.message, server.help, is_sent=True) from None
            raise

    def _text_of(self, reply: str, constraint: Constraint) -> str:
        """Convert a JSON reply to a sentence."""
        assert constraint.json_form
        if constraint.json_form.is_read_by_caller:
            return scrubbed(reply)
        try:
            # JSON escapes may encode lone surrogates.
            text = scrubbed(constraint.json_form.text_of(unique_json(reply)))
        except (ValueError, RecursionError) as error:
            reason = self._endpoint.quote(str(error))
            raise ModelError(
                f"the reply of {self._endpoint.model} is not the JSON that '{constraint.name}' "
                f"requires: {reason}",
                kind="unconstrained",
                help=_OFF,
            ) from None
        if is_blank(text):
            raise replies.blank(self._endpoint)
        return text


def _unconstrained(message: str, help: str, *, is_sent: bool = False) -> ModelError:
    return ModelError(message, kind="unconstrained", help=help, is_sent=is_sent)


def _conforms(text: str, constraint: Constraint) -> bool:
    """Whether a text is JSON of a schema's form."""
    assert constraint.json_form
    try:
        return not is_blank(constraint.json_form.text_of(unique_json(text)))
    except (ValueError, RecursionError):
        return False


def _is_obeyed(text: str, form: Form) -> bool:
    if form != "json-schema":
        return text.strip() == SENTENCE
    try:
        return bool(json.loads(text) == {"sentence": SENTENCE})
    except (ValueError, RecursionError):
        return False


_validate = lru_cache(maxsize=64)(validate)
