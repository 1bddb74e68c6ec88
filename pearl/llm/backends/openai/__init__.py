"""Any server that speaks OpenAI's Chat Completions: OpenAI itself, vLLM, Ollama, llama.cpp, ...; and Anthropic's Messages.

Every call returns a `Completion` or raises a `ModelError`, whatever the server sends. A request passes through:

- `servers.Server`: what the kind of the server adds to its API, `chat` or `anthropic`: request → body.
- `sessions.HttpSession`: posts the body, again without a parameter that the server rejects (`api.Accepted`), by
  `wire` (h11: docs/decisions.md), or by `official` with a client of the caller.
- `faults`: status other than 2xx, or a broken connection → `ModelError`; the API reads the other bodies.

A constrained request is sent in the forms that the kind of server takes, the best first. A server that rejects all
forms is not asked again; one that ignores them is detected by its first reply (`OpenAIModel.judge`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import lru_cache

from msgspec.structs import replace

from pearl.documents.digest import digest
from pearl.documents.tokens import DEFAULT_WINDOW, known_window
from pearl.dsl.decoding.constraint import Constraint, Form, validate
from pearl.errors import ModelError, UsageError
from pearl.errors.escaping import json_bytes
from pearl.llm import Completion, ConstrainBy, Constrains, Request
from pearl.llm.backends import Abilities, ModelSettings
from pearl.llm.backends.openai import chat, faults, servers, sessions
from pearl.llm.backends.openai.chat import Listed, plausible
from pearl.llm.backends.openai.endpoint import (
    KEY_VARIABLE,
    Endpoint,
    key_variable,
    read_key,
)
from pearl.llm.backends.openai.faults import StatusError
from pearl.llm.backends.openai.servers import Server
from pearl.llm.concurrency import SingleFlight
from pearl.llm.flaws import is_blank
from pearl.replies.raw import unique_json, without_reasoning

DESCRIPTION = "any OpenAI-compatible server: openai:NAME; --base-url for one of your own"
ABILITIES = Abilities("NAME", None, key=KEY_VARIABLE, tokenizes=None)
ADDRESS_VARIABLE = "OPENAI_BASE_URL"
OWN_URL = "https://api.openai.com/v1"
_OFF = "use --constrain off"
_WANTED: dict[ConstrainBy, str] = {"grammar": "grammar", "json": "JSON Schema"}


def create(name: str, settings: ModelSettings) -> OpenAIModel:
    """Create the model `name` of the server in `settings`, else `OPENAI_BASE_URL`, else OpenAI."""
    return create_named("openai", name, settings)


def create_named(
    backend: str, name: str, settings: ModelSettings, server: Server | None = None
) -> OpenAIModel:
    """As `create`, for another backend name and, optionally, a known kind of server."""
    if not name:
        help = (
            "for example openai:gpt-4o-mini"
            if backend == "openai"
            else "use the server's name for it"
        )
        raise UsageError(f"{backend}: needs the name of a model", help=help)
    is_asked = settings.is_asked
    endpoint = endpoint_of(name, settings.base_url, settings.api_key_env, is_asked=is_asked)
    if settings.server is not None:
        kind = servers.load(settings.server)
        own = server or kind  # A provider needs its own fields and names, too, whatever it runs
        server = replace(
            kind, fields={**kind.fields, **own.fields}, names={**kind.names, **own.names}
        )
    return OpenAIModel(
        endpoint,
        settings.timeout_s,
        settings.window,
        server or servers.by_address(endpoint),
        backend=backend,
        is_asked=is_asked,
    )


def endpoint_of(
    name: str, base_url: str | None, api_key_env: str | None, *, is_asked: bool
) -> Endpoint:
    """The endpoint of the model `name`, with the key for its server."""
    url = base_url or os.environ.get(ADDRESS_VARIABLE, "").strip() or OWN_URL
    variable = key_variable(url) if api_key_env is None else api_key_env
    key = read_key(variable) if is_asked else ""
    endpoint = Endpoint(url, name, key, variable if key else "")
    if is_asked and not key and (api_key_env or endpoint.is_openai):
        raise ModelError(
            f"{endpoint.shown} requires a key, but {api_key_env or KEY_VARIABLE} is not set",
            kind="auth",
            help=f"set {api_key_env or KEY_VARIABLE}, or name your own server with --base-url",
        )
    return endpoint


def address(settings: ModelSettings) -> str:
    """The address of the server; "" for OpenAI's own."""
    return settings.base_url or os.environ.get(ADDRESS_VARIABLE, "").strip()


class OpenAIModel:
    """One model of one server; if `server` is None, its kind is detected when a request has a constraint."""

    reads_prompts = True

    def __init__(
        self,
        endpoint: Endpoint,
        timeout_s: float,
        window: int | None,
        server: Server | None = None,
        *,
        backend: str = "openai",
        is_asked: bool = True,
        new_wire: sessions.NewWire | None = None,
    ) -> None:
        self.name = f"{backend}:{endpoint.model}"
        self.identity = f"{self.name}@{endpoint.identity}"
        if server and server.fields:  # Other fields get other replies
            self.identity += f"?{digest([json_bytes(dict(server.fields))]).hex()[:16]}"
        self.notice = f"{backend}: {endpoint.greeting}"
        # Until a request is sent: an unknown server may support both forms.
        self.constrains = Constrains((server or servers.load(servers.UNKNOWN)).by)
        self.session = sessions.HttpSession(endpoint, timeout_s, backend, new_wire, server=server)
        self.memory = self.session.memory
        may_tokenize = not endpoint.is_openai if server is None else bool(server.tokenizes)
        self.tokenizer = (
            sessions.ServerTokenizer(endpoint, server, self.memory)
            if is_asked and may_tokenize
            else None
        )
        self.server = server
        self.caching = self.session.accepted.caching
        self._is_asked = is_asked
        self._window = window
        self._endpoint = endpoint
        self._listing: SingleFlight[list[Listed]] = SingleFlight()
        # Kept separately for plans and replies: a server may reject the long form of a plan and
        # accept the short ones of steps.
        self._verdicts: dict[tuple[ConstrainBy, bool], Form | ModelError] = {}
        # Forms that were sent, but whose first reply has not been judged yet
        self._unproven: set[tuple[ConstrainBy, bool]] = set()

    @property
    def window(self) -> int:
        """Context window in tokens: as set, as reported by the server, or known from the model's name."""
        if self._window is None:
            known = known_window(self._endpoint.model)
            # The known windows hold for the vendors' own servers.
            is_told = self._endpoint.is_local or (known is None and not self._endpoint.is_openai)
            told = None
            if is_told and self._is_asked:
                finding = sessions.find_window(self._endpoint, self.server, self.memory)
                told = sessions.aside(finding).result()
            self._window = told or known or DEFAULT_WINDOW
        return self._window

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, {self._endpoint.shown!r})"

    async def complete(self, request: Request) -> Completion:
        """Send one request, repeated without a parameter that the server rejects."""
        wire = self.session.connect()  # The import must not count towards the timeout
        from pearl.llm.backends.openai.wire import at_most

        timeout_s = self.session.timeout_s
        window = self._window or known_window(self._endpoint.model) or DEFAULT_WINDOW
        try:
            async with asyncio.timeout(timeout_s):
                with at_most(wire.reply_bytes(request, window)):
                    if request.constraint is None:
                        completion = await self._ask(self.server, request)
                    else:
                        completion = await self._constrained(request, request.constraint)
        except TimeoutError:
            raise faults.too_slow(timeout_s, self._endpoint) from None
        except ModelError as error:
            error.usage = error.usage and plausible(error.usage, request)
            raise
        completion = chat.within(completion, request, self._endpoint)
        form = (self.server or servers.load(servers.UNKNOWN)).api.form
        return self.session.accepted.completed(completion, request, form)

    async def _ask(
        self,
        server: Server | None,
        request: Request,
        form: Form | None = None,
        refuses_form: Callable[[StatusError], bool] = lambda error: False,
    ) -> Completion:
        """The reply to a request, with its constraint in a given form; JSON is not converted."""
        server = server or servers.load(servers.UNKNOWN)
        body = server.body(request, self._endpoint.model, self.session.accepted, form)
        data = await self.session.post(server.api.path, body, refuses_form)
        return server.api.read(data, self._endpoint)

    async def _constrained(self, request: Request, constraint: Constraint) -> Completion:
        """Send a request with its constraint, in the best form that the server supports."""
        by = request.constrain_by
        server = await self._detected(by)
        if by == "json" and constraint.json_form is None:
            raise _unconstrained(f"the constraint '{constraint.name}' has no JSON form", _OFF)
        if by == "grammar":
            try:
                _validate(constraint.lark)
            except UsageError as error:
                message = error.message.partition("\n")[0]
                raise _unconstrained(
                    f"the grammar of '{constraint.name}' is not sent: {message}", _OFF
                ) from None
        kind = by, bool(constraint.lark)
        known = self._verdict(kind, server)
        if isinstance(known, ModelError):
            raise known.copy()
        refusals: list[ModelError] = []
        for form in (known,) if known else server.forms(by):
            try:
                completion = await self._in_form(
                    server, request, constraint, form, is_new=not known
                )
            except ModelError as error:
                if error.kind != "unconstrained":
                    raise
                refusals.append(error)
                continue
            if not known:
                self._verdicts[kind] = form
                self._unproven.add(kind)
            return completion
        if known:  # A remembered form failed: the server may have been replaced
            self.memory.keep(_memory_key(kind, server), None)
            self.memory.keep("listing", None)
        raise refusals[0]

    async def _in_form(
        self, server: Server, request: Request, constraint: Constraint, form: Form, *, is_new: bool
    ) -> Completion:
        """The reply to a request in a form. If the form `is_new`, an error of the kind `unconstrained` rules it out."""
        # Some servers do not name the constraint as the reason of a rejection; `judge` is called
        # if a request without it succeeds.
        refuses = faults.may_refuse_constraint if is_new else faults.refuses_constraint
        where = f"{server.title} takes no {_WANTED[request.constrain_by]}: " if is_new else ""
        try:
            completion = await self._ask(server, request, form, refuses)
        except chat.BlankError as error:
            texts = error.elsewhere.values() if form == "json-schema" else ()
            formed = next((text for text in texts if _conforms(text, constraint)), None)
            if formed is not None:
                completion = replace(error.completion, text=formed, reasoning="")
            elif is_new:
                raise _unconstrained(f"{where}{error.message}", server.help, of=error) from None
            else:
                raise
        except ModelError as error:
            if error.kind == "unconstrained":
                raise _unconstrained(f"{where}{error.message}", server.help, of=error) from None
            raise
        if form != "json-schema":
            return completion
        try:
            return chat.sentence(completion, constraint, self._endpoint)
        except ModelError as error:
            if error.kind != "unconstrained" or not is_new:
                raise
            message = f"{server.title} ignores a JSON Schema: {error.message}"
            raise _unconstrained(message, server.help, of=error) from None

    async def _detected(self, by: ConstrainBy) -> Server:
        """Detect the kind of the server; raise an error if it does not support this form of constraint."""
        if self.server is None:
            try:
                listed = await self._listing.do("listing", self.session.known_listing)
                kind = servers.by_listing(listed, self._endpoint.model)
                self.server = kind or servers.load(servers.UNKNOWN)
            except (StatusError, TimeoutError):
                pass  # The server may list its models later
            except ModelError as error:
                raise error.copy() from None  # A copy: several requests may wait for the listing
        if self.server is None:
            raise _unconstrained(
                f"{self._endpoint.shown} does not list its models at present, "
                f"so it is unknown in which form it takes a {_WANTED[by]}",
                f"name the kind of the server: --server vllm, or {', '.join(servers.names())}",
            )
        if not self.server.forms(by):
            where = f"{self._endpoint.shown} is {self.server.title}, which"
            raise _unconstrained(f"{where} takes no {_WANTED[by]}", self.server.help)
        return self.server

    def _verdict(self, kind: tuple[ConstrainBy, bool], server: Server) -> Form | ModelError | None:
        """What earlier requests, even of earlier commands, showed about a kind of constraint; None if unknown."""
        if kind not in self._verdicts:
            match self.memory.read(_memory_key(kind, server)):
                case {"form": name}:
                    forms = (form for form in server.forms(kind[0]) if form == name)
                    if (form := next(forms, None)) is not None:
                        self._verdicts[kind] = form
                case {"refused": str(message)}:
                    self._verdicts[kind] = _unconstrained(message, server.help)
        return self._verdicts.get(kind)

    def judge(
        self, by: ConstrainBy, violation: ModelError | None, *, is_of_plans: bool = False
    ) -> None:
        """Learn from the first reply that is read whether the server applies the form, ignores it or rejects it."""
        # A reply that is not JSON shows that the server ignores schemas; JSON of another shape
        # may be due to the plan's form only.
        is_ignored = False
        if violation is not None and violation.reply:
            try:
                unique_json(without_reasoning(violation.reply).text)
            except (ValueError, RecursionError):
                is_ignored = True
        for kind in ((by, is_of_plans), *([(by, not is_of_plans)] if is_ignored else [])):
            verdict = violation or self._verdicts.get(kind)
            is_open = kind in self._unproven or kind not in self._verdicts
            if self.server is None or verdict is None or not is_open:
                continue
            self._unproven.discard(kind)
            self._verdicts[kind] = verdict
            kept = (
                {"refused": verdict.message}
                if isinstance(verdict, ModelError)
                else {"form": verdict}
            )
            self.memory.keep(_memory_key(kind, self.server), kept)

    async def listing(self) -> list[Listed]:
        """The models that the server lists; free of charge. Empty if it has no listing."""
        try:
            return await self.session.listed()
        except StatusError as error:
            if error.status in (404, 405, 501):  # a server without a listing
                return []
            raise await self.session.refused(error) from None
        except TimeoutError:
            raise faults.too_slow(sessions.TIMEOUT_S, self._endpoint) from None
        except ValueError:
            return []

    async def served(self) -> list[str]:
        """Names of the models that the server lists."""
        listed = await self.listing()
        kind = servers.by_listing(listed, self._endpoint.model)
        if len(listed) == 1 and kind is not None and kind.is_of_any_name:
            return []
        names = [model.id for model in listed]
        # Users leave out parts: "models/gemini-3", "llama3.2:latest", "claude-haiku-4-20260101"
        short = []
        for name in names:
            bare, _, day = name.rpartition("-20")
            short.append(bare if len(day) == 6 and day.isdecimal() else name)
        short = [name.removeprefix("models/").removesuffix(":latest") for name in short]
        return list(dict.fromkeys([*names, *short]))

    async def aclose(self) -> None:
        """Close connections."""
        await self.session.aclose()
        if self.tokenizer is not None:
            await self.tokenizer.aclose()


def _unconstrained(message: str, help: str, of: ModelError | None = None) -> ModelError:
    """An error about a constraint; it counts as sent if it is about the reply to `of`."""
    return ModelError(
        message,
        kind="unconstrained",
        help=help,
        usage=of and of.usage,
        reply=of.reply if of else "",
        is_sent=of is not None,
    )


def _conforms(text: str, constraint: Constraint) -> bool:
    """Whether a text is JSON that conforms to a constraint's schema."""
    assert constraint.json_form
    try:
        return not is_blank(constraint.json_form.text_of(unique_json(text)))
    except (ValueError, RecursionError):
        return False


_validate = lru_cache(maxsize=64)(validate)


def _memory_key(kind: tuple[ConstrainBy, bool], server: Server) -> str:
    by, is_of_plans = kind
    return f"{server.title}: {by} of {'plans' if is_of_plans else 'replies'}"
