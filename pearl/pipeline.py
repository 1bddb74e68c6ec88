"""Question → plan → run → answer. `Pearl` connects the parts."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from datetime import date
from functools import partial
from glob import has_magic
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, Unpack, overload

from msgspec.structs import replace

from pearl.actions.library import load_library
from pearl.arguments import AnyModel, SettingArguments, check_arguments
from pearl.data.domains import load_domain
from pearl.documents.document import Document, DocumentKind, Source, load
from pearl.documents.readers import reading
from pearl.documents.sources import with_sources
from pearl.dsl.binding import bind, parameter_value, with_names
from pearl.dsl.checker import CheckedPlan, compile_plan
from pearl.dsl.fields import Field
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import PlanError, PlanningError, UsageError, suggest
from pearl.errors.callers import WARNING, for_caller, log
from pearl.errors.privacy import keep_private
from pearl.interpreter.answer import Answer
from pearl.interpreter.chooser import Choice, choose
from pearl.interpreter.context import (
    ContextLimits,
    Strategy,
    reported_as_budget,
    share,
    share_parts,
)
from pearl.interpreter.execution import answer_plan, check_document, direct_plan
from pearl.interpreter.model_calls import Reader
from pearl.interpreter.parts import PartValue
from pearl.interpreter.searchers import new_searcher
from pearl.llm import Model
from pearl.llm.client import Client, ClientSettings, Role, as_client, clients_by_role
from pearl.llm.middleware.budget import Budget
from pearl.llm.middleware.caching import Replies
from pearl.llm.middleware.wrappers import ProgressListener
from pearl.llm.reply_limits import READING_TOKENS
from pearl.planner.planner import Planner, PlannerSettings
from pearl.planner.prompt import Rejected
from pearl.planner.prompt_selection import PlannerMaterial, extraction_plan
from pearl.planner.writer import one_line
from pearl.retrieval import SearchSettings
from pearl.retrieval.search import Searcher
from pearl.settings import SETTINGS, Settings, values_for
from pearl.trace import PlanFailed, Trace

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from pearl.data.schemas import Schema

T = TypeVar("T")
SourceGiven = Document | str | Path | tuple[Document | str | Path, str]
"""A document, or the path or pattern of a file or folder; optionally with a description for the planner."""
FieldsGiven = str | Path | Mapping[str, Any] | Sequence[Field]
"""A schema without a class: its values are dictionaries."""

CLIENT_SETTINGS = set(ClientSettings.__struct_fields__) - {"model"}
_OF_CLIENT = {"model", *CLIENT_SETTINGS} - {"embeddings"}
_ROLES: tuple[Role, ...] = ("planner", "rows", "escalate", "checker", "mapper")


def _opened(name: str, given: SourceGiven) -> Source:
    """Open a source given in Python; a folder or pattern becomes a corpus, indexed in memory."""
    given, about = given if isinstance(given, tuple) and len(given) == 2 else (given, "")
    if not (isinstance(given, Document | str | Path) and isinstance(about, str)):
        raise UsageError(
            f"source '{name}' must be a document or a path, or a pair of one and a text that describes it",
            help='sources={"rules": ("rules/", "the rules of the service")}',
        )
    if isinstance(given, Document):
        return Source(name, given, about)
    if Path(given).is_dir() or (has_magic(str(given)) and not Path(given).exists()):
        from pearl.retrieval.index import Index  # Imported on use: few runs have a corpus

        return Source(name, Index.open(given).document(str(given)), about)
    return Source(name, load(given), about)


def is_name(plan: str) -> bool:
    """Whether a plan argument may be the name of a file: it has no line break and no `=`, which every plan has."""
    return "\n" not in plan and "=" not in plan


class Pearl:
    """Writes plans, runs them and answers questions with a model and an action library.

    Use it as an asynchronous context manager, or call `aclose` when done.

    Args:
        model: The name of a model (`extractive`: no network, quotes passages; `openai:NAME`, ...), a
            function from messages to text, which may be asynchronous, a `Model`, a `Client`, or an official
            client: `openai.AsyncOpenAI` with `model_name`, or `AsyncAzureOpenAI`.
        library: An action library in place of the domain's: a name, a file, or a library.
        searcher: A searcher in place of `ranker` and `embeddings`; `aclose` does not close it.
        replies: As in `Client`.
        budget: As in `Client`.
        private: Leave text of documents, questions and replies out of errors, spans and caches, in the
            whole process from now on.
        settings: Fields of `pearl.settings.Settings`, as `domain` or `context`, and of
            `ClientSettings`, as `attempts` or `seed`. The models of roles are given as `model` is.

    Attributes:
        client: The client of the model.
        clients: The client of each role; `escalate` only if there is such a model.
        limits: Limits of the calls that read a document.
        settings: The settings that are not the client's.
        library: The action library.
        actions: The actions of plans: the library and the operators on rows.
        material: Actions and examples in the prompt of the planner.
        planner: The planner.
        searcher: The searcher of passages.
        ranker: The name of its method or preset.
        embeddings: The name of the embedder.

    Raises:
        UsageError: A name is unknown, a value has another type than its setting, or settings are given for a
            client that exists already.
        ModelError: The model cannot be set up: no key.
        DataError: The library cannot be read.

    Example:
        >>> import asyncio
        >>> from pearl.documents.document import Document
        >>> document = Document("It rained. Ada sold the boat because it leaked. Then she slept.")
        >>> answer = asyncio.run(Pearl().ask("Why did Ada sell the boat?", document))
        >>> answer.evidence[0].text
        'Ada sold the boat because it leaked.'
    """

    def __init__(
        self,
        model: AnyModel | AsyncOpenAI = "extractive",
        *,
        library: str | Path | ActionLibrary | None = None,
        searcher: Searcher | None = None,
        replies: Replies | None = None,
        budget: Budget | None = None,
        private: bool = False,
        **settings: Unpack[SettingArguments],
    ) -> None:
        if private:
            keep_private()
        given: dict[str, Any] = {**settings}
        check_arguments(given)
        client_settings = {name: given[name] for name in given.keys() & CLIENT_SETTINGS}
        chosen = Settings(**{name: given[name] for name in given.keys() & set(SETTINGS)})
        if isinstance(model, Client):
            client_settings.pop("embeddings", None)
        self.client = as_client(model, client_settings, replies=replies, budget=budget)
        self.clients = clients_by_role(
            self.client, {role: getattr(chosen, f"{role}_model") for role in _ROLES}
        )
        self._is_own_searcher = searcher is None
        self.embeddings = chosen.embeddings
        self.searcher = searcher or new_searcher(
            self.client.settings, SearchSettings(chosen.ranker), chosen.embeddings,
        )  # fmt: skip
        self.ranker = chosen.ranker if searcher is None else searcher.settings.method
        self.domain_name = chosen.domain
        self.domain = load_domain(chosen.domain)
        self.library = load_library(self.domain.library if library is None else library)
        planner = self.clients["planner"]
        self.material = PlannerMaterial(
            self.library, chosen.examples or self.domain.examples, chosen.nearest,
            partial(load_library, self.domain.library),
        )  # fmt: skip
        self.actions = self.material.actions
        if chosen.as_of is None and self.domain.is_dated:
            # One date for all questions; a resumed run keeps the date of its first start.
            chosen = replace(chosen, as_of=date.today())
        self.settings: dict[str, Any] = {
            **{name: getattr(chosen, name) for name in SETTINGS if name not in _OF_CLIENT},
            **{f"{role}_model": self._named(role) for role in _ROLES},
            "library": library,
        }
        planning = PlannerSettings(**values_for(PlannerSettings, chosen))
        self.planner = Planner(planner, self.material, planning)
        self.fallback: Literal["direct"] | None = "direct" if chosen.fallback == "direct" else None
        # A small model checks passages only if all decisions are to be checked.
        checker = self.clients["checker"]
        is_checked = checker.reads_prompts and (chosen.check == "all" or not checker.is_small)
        self.limits = ContextLimits(
            self.client.counter,
            is_strict=chosen.strict,
            is_constrained=self.client.reply_fallback.level is not None,
            answers_first=self.client.is_small,
            **{
                **values_for(ContextLimits, chosen),
                "strategy": chosen.context,
                "compose": chosen.compose if self.client.reads_prompts else "off",
                "check": chosen.check if is_checked else "off",
                "window": self.client.window,
            },
        )
        drawn = self.client.settings
        self.drawn = (drawn.seed, drawn.temperature)
        self._asked: dict[Role, Model] = {**self.clients}
        self._is_shared = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections of the model and the searcher."""
        if self._is_own_searcher:
            await self.searcher.aclose()
        for client in set(self.clients.values()):
            await client.aclose()

    async def plan(
        self,
        question: str,
        *,
        kind: DocumentKind = "document",
        rejected: Sequence[Rejected] = (),
        parameters: Mapping[str, str] | None = None,
        sources: Mapping[str, SourceGiven] | None = None,
        trace: Trace | None = None,
    ) -> CheckedPlan:
        """Write a plan for a question.

        Args:
            question: Not blank.
            kind: Kind of the document: a corpus can be searched, a table can be queried.
            rejected: Valid plans that gave no usable answer, and why.
            parameters: Texts of the question that the plan takes as parameters, by their names.
            sources: As in `ask`, in place of a document; the planner sees their names, kinds, sizes and descriptions.
            trace: Records every attempt.

        Raises:
            UsageError: The question is blank, or does not contain the value of a parameter.
            PlanningError: The repair loop ended without a valid plan.
            ModelError: The model gave no usable reply.
        """
        question = one_line(question)
        values = {name: parameter_value(name, v) for name, v in (parameters or {}).items()}
        question = with_names(question, values) if values else question
        read = await self._with_sources(None, sources) if sources else Document("", kind=kind)
        return await self.planner.write(
            question, self.calls(trace, "planner"), kind=read.kind, rejected=rejected,
            parameters=values, sources=read.sources, trace=trace,
        )  # fmt: skip

    def compile(self, text: str, *, question: str | None = None) -> CheckedPlan:
        """Parse and check the text of a plan; line breaks around it are ignored.

        Raises:
            PlanError: The plan is invalid; the error has every diagnostic.
        """
        max_steps = self.planner.settings.max_steps
        return compile_plan(text.strip("\n"), self.actions, max_steps=max_steps, question=question)

    def checked(self, plan: CheckedPlan | str | Path) -> CheckedPlan:
        """Check a plan given as a text or a file.

        Raises:
            PlanError: The plan is invalid.
            DataError: The file cannot be read.
        """
        if isinstance(plan, CheckedPlan):
            return plan
        if isinstance(plan, Path):
            try:
                return self.compile(load(plan).text)
            except PlanError as error:
                raise type(error)(error.text, error.diagnostics, str(plan)) from None
        if is_name(plan):
            raise UsageError(
                f"'{plan:.80}' is no plan", help="pass Path(...) for a file with a plan"
            )
        return self.compile(plan)

    def plan_extraction(
        self, fields: Sequence[Field], *, question: str | None = None
    ) -> CheckedPlan:
        """Build a plan that extracts fields from a document, without calling a model.

        Args:
            fields: The fields of a schema.
            question: An instruction for reading them.
        """
        plan = extraction_plan(fields, reply_tokens=min(READING_TOKENS, self.limits.reply_tokens))
        return plan if question is None else plan.asking(one_line(question))

    async def execute(
        self,
        plan: CheckedPlan | str | Path,
        document: Document | None = None,
        *,
        sources: Mapping[str, SourceGiven] | None = None,
        parameters: Mapping[str, str] | None = None,
        token_budget: int | None = None,
        trace: Trace | None = None,
    ) -> Answer:
        """Run a plan over a document.

        Args:
            plan: A checked plan, the text of one, or the `Path` of its file.
            document: The document, CTX in the plan.
            sources: Further sources of the plan, by the names that it declares under `Sources:`.
            parameters: A text for each of the plan's parameters.
            token_budget: Input tokens that all steps together may spend; each step is shown the
                best passages that fit its share.
            trace: Records all events.

        Raises:
            PlanError: The plan is invalid; its message names the file, or `plan` for a text.
            UsageError: A parameter is not set, unknown or empty.
            ExecutionError: A step failed.
        """
        checked = self.checked(plan)
        declared = [each.name for each in checked.plan.sources]
        for name in (sources or {}).keys() - {*declared}:
            raise UsageError(
                f"the plan has no source '{name}'", help=suggest(name, declared, "sources")
            )
        document = await self._with_sources(document, sources)
        if parameters or not checked.given:
            checked = bind(checked, parameters or {})
        actions = map(checked.action, checked.plan.steps if self.limits.check != "off" else ())
        n_checks = sum(a.composes or "claims" in a.traits for a in actions)
        limits = share(self.limits, token_budget, checked.n_model_steps + n_checks)
        return await self._run(checked, document, limits, "plan", token_budget, trace)

    @overload
    async def ask(
        self, question: str, document: Document | None = None, *, answer: None = None,
        sources: Mapping[str, SourceGiven] | None = None,
        token_budget: int | None = None, trace: Trace | None = None,
    ) -> Answer: ...  # fmt: skip
    @overload
    async def ask(
        self, question: str, document: Document | None = None, *, answer: type[T],
        sources: Mapping[str, SourceGiven] | None = None,
        token_budget: int | None = None, trace: Trace | None = None,
    ) -> Answer[T]: ...  # fmt: skip
    @overload
    async def ask(
        self, question: str, document: Document | None = None, *, answer: FieldsGiven,
        sources: Mapping[str, SourceGiven] | None = None,
        token_budget: int | None = None, trace: Trace | None = None,
    ) -> Answer[dict[str, PartValue]]: ...  # fmt: skip
    async def ask(
        self,
        question: str,
        document: Document | None = None,
        *,
        answer: Any = None,
        sources: Mapping[str, SourceGiven] | None = None,
        token_budget: int | None = None,
        trace: Trace | None = None,
    ) -> Answer[Any]:
        """Write a plan and run it; a question about several documents is planned once.

        Args:
            question: Not blank.
            document: The document or corpus.
            answer: A schema, as in `pearl.extract`: the answer is an instance of it, and no plan is written.
            sources: Named documents, corpora and tables; the plan reads those that the question needs.
            token_budget: As in `execute`; it does not include the planner.
            trace: Records all events.

        Raises:
            UsageError: The question is blank.
            PlanningError: No valid plan was found, and `fallback` is `none`.
            ModelError: The model gave no usable reply while planning.
            ExecutionError: A step failed.
        """
        trace = Trace() if trace is None else trace
        document = await self._with_sources(document, sources)
        question = one_line(question)
        from pearl.data.schemas import load_schema  # late: few runs have a schema

        schema = None if answer is None else load_schema(answer)
        check_document(document)  # Before a call is paid for
        if schema is not None:
            return await self._extract(schema, document, question, token_budget, trace)
        return await self._ask(question, document, token_budget, trace)

    async def _with_sources(
        self, document: Document | None, sources: Mapping[str, SourceGiven] | None
    ) -> Document:
        """The document with the sources, which are read in a thread."""
        if not sources:
            if document is None:
                raise UsageError("no document", help="pass a document, or sources={'name': ...}")
            return document

        def opened() -> Document:
            with reading(self.settings):
                return with_sources(document, starmap(_opened, sources.items()))

        return await asyncio.to_thread(opened)

    async def _ask(
        self, question: str, document: Document, token_budget: int | None, trace: Trace
    ) -> Answer:
        planner = self.clients["planner"]
        if self.fallback == "direct" and planner.is_small:
            if document.sources:
                raise UsageError(
                    f"{planner.name} is too small to write plans, and sources need a plan",
                    help="name another model with --planner-model, or let it try with --fallback none",
                )
            trace.append(PlanFailed(n_attempts=0, fallback="direct"))
            answer = await self.answer(question, document, token_budget=token_budget, trace=trace)
            note = (
                f"{planner.name} is too small to write plans: --planner-model names another, "
                "--fallback none lets it"
            )
            return dataclasses.replace(answer, document_notes=(note, *answer.document_notes))
        try:
            plan = await self.planner.write_shared(
                question, self.calls(trace, "planner"), trace, kind=document.kind,
                sources=document.sources,
            )  # fmt: skip
        except PlanningError as error:
            trace.append(PlanFailed(n_attempts=len(error.attempts), fallback=self.fallback))
            if self.fallback is None or document.sources:
                raise
            return await self.answer(question, document, token_budget=token_budget, trace=trace)
        return await self.execute(plan, document, token_budget=token_budget, trace=trace)

    @overload
    async def extract(
        self, schema: type[T], document: Document, *, token_budget: int | None = None, trace: Trace | None = None,
    ) -> Answer[T]: ...  # fmt: skip
    @overload
    async def extract(
        self, schema: FieldsGiven, document: Document, *, token_budget: int | None = None,
        trace: Trace | None = None,
    ) -> Answer[dict[str, PartValue]]: ...  # fmt: skip
    async def extract(
        self,
        schema: Any,
        document: Document,
        *,
        token_budget: int | None = None,
        trace: Trace | None = None,
    ) -> Answer[Any]:
        """Take the fields of a schema from a document.

        Args:
            schema: As in `pearl.extract`.
            document: The document.
            token_budget: As in `execute`.
            trace: Records all events.

        Returns:
            An answer whose `value` is an instance of the schema, or None if `reasons` says why; `fields` has the details.

        Raises:
            DataError: The schema cannot be used.
            ExecutionError: A step failed.
        """
        from pearl.data.schemas import load_schema

        return await self._extract(load_schema(schema), document, None, token_budget, trace)

    async def _extract(
        self, schema: Schema, document: Document, question: str | None, token_budget: int | None,
        trace: Trace | None,
    ) -> Answer:  # fmt: skip
        plan = self.plan_extraction(schema.fields, question=question)
        answer = await self.execute(plan, document, token_budget=token_budget, trace=trace)
        return dataclasses.replace(answer, schema=schema)

    async def answer(
        self,
        question: str,
        document: Document,
        *,
        context: Strategy | None = None,
        part_tokens: int | None = None,
        token_budget: int | None = None,
        trace: Trace | None = None,
    ) -> Answer:
        """Answer a question in one step, without a plan.

        Args:
            question: Not blank.
            document: The document or corpus.
            context: Strategy for long documents; None for the setting.
            part_tokens: Maximum tokens of a prompt, if fewer than the window allows.
            token_budget: As in `execute`.
            trace: Records all events.

        Raises:
            UsageError: The question is blank.
            ExecutionError: The step failed.
        """
        checked = direct_plan(one_line(question))
        limits = share_parts(self.limits, token_budget, context, part_tokens)
        return await self._run(checked, document, limits, "direct", token_budget, trace)

    async def choose(
        self,
        question: str,
        options: Sequence[str],
        *,
        answer: str | None = None,
        document: Document | None = None,
        is_reasoned: bool = False,
        token_budget: int | None = None,
        trace: Trace | None = None,
    ) -> Choice:
        """Choose one of several options, based on an answer in words, on a document, or on the question alone.

        Args:
            question: What was asked.
            options: 2 to 26.
            answer: The answer in words.
            document: The document; if it is longer than the window, its best passages are used, or an
                error is raised with `context="full"`.
            is_reasoned: Whether the model reasons before it chooses.
            token_budget: Input tokens that the call may spend.
            trace: Records the choice.

        Raises:
            UsageError: The number of options is wrong, or both answer and document are given.
            ExecutionError: No passage fits the prompt, or with `context="full"` not all of the document.
            ModelError: The model gave no usable reply.
        """
        with self.client.breaker.running(), reported_as_budget(token_budget):
            return await choose(
                question, options, self.calls(trace, "main" if answer is None else "mapper"),
                share(self.limits, token_budget, 1),
                answer=answer, document=document, is_reasoned=is_reasoned,
                searcher=self.searcher, trace=trace,
            )  # fmt: skip

    def asking(self, client: Client) -> Pearl:
        """A `Pearl` with the same settings and models but another main client; it does not share plans."""
        roles = {f"{role}_model": self.clients.get(role) for role in _ROLES if self._named(role)}
        more = {**roles, "library": self.library, "searcher": self.searcher}
        return Pearl(client, **{**self.settings, **more})

    def _named(self, role: Role) -> Any:
        """The model that the settings give to a role; None if the role uses the main model."""
        client = self.clients.get(role)
        is_own = client is not None and (client is not self.client or role == "escalate")
        return client.settings.model if client and is_own else None

    def unshared(
        self, seed: int | None = None, temperature: float | None = None, *, scope: str = ""
    ) -> Pearl:
        """A `Pearl` with the same client that shares no plans and no replies, so that its cost is its own.

        Args:
            seed: Seed of replies.
            temperature: Temperature of all calls, if there is a seed.
            scope: Name of the work; replies of the same work are reused, with their original cost.
        """
        other = self.asking(self.client)
        other.drawn = (seed, temperature)
        other._asked = {
            role: client.unshared(seed, temperature, scope=scope)
            for role, client in self.clients.items()
        }
        other._is_shared = False
        return other

    def calls(self, trace: Trace | None = None, role: Role = "main") -> Model:
        """The model of a role; the trace receives waits and progress of its calls."""
        asked = self._asked[role]
        return asked if trace is None else ProgressListener(asked, trace.progressed)

    async def _run(
        self, checked: CheckedPlan, document: Document, limits: ContextLimits,
        method: Literal["plan", "direct"], token_budget: int | None, trace: Trace | None,
    ) -> Answer:  # fmt: skip
        """Run a plan over a document with the models of this `Pearl`."""
        with self.client.breaker.running(), reported_as_budget(token_budget):
            readers = {
                role: Reader(
                    self.calls(trace, role), limits if role == "main" else self.limits_of(role, limits),
                    client.reply_fallback, client.items if self._is_shared else None,
                )
                for role, client in self.clients.items() if role == "main" or self._named(role)
            }  # fmt: skip
            answer = await answer_plan(
                checked, document, readers, method=method, models=self.models,
                searcher=self.searcher, trace=trace,
            )  # fmt: skip
        for note in document.notes:
            log(WARNING, "%s: %s", document.name, for_caller(note))
        if answer.is_unsure:
            log(WARNING, "%s: the answer is %s: %s", document.name, answer.status, answer.why)
        return answer

    @property
    def models(self) -> str:
        """The name of the main model, followed by the names of the other roles' models in parentheses."""
        others = [f"{role}: {c.name}" for role, c in self.clients.items() if c is not self.client]
        return f"{self.client.name} ({', '.join(others)})" if others else self.client.name

    def limits_of(self, role: Role, limits: ContextLimits | None = None) -> ContextLimits:
        """The limits of a role's prompts, which depend on its model's window and tokenizer."""
        client = self.clients[role]
        return replace(
            limits or self.limits,
            counter=client.counter, window=client.window,
            is_constrained=client.reply_fallback.level is not None, answers_first=client.is_small,
        )  # fmt: skip
