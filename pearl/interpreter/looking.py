"""A step that found nothing in the passages it was shown → other searches: further ranks, other words, other periods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import replace

from pearl.documents.english import SCALES
from pearl.documents.passages import terms
from pearl.dsl.nodes import Step
from pearl.dsl.signatures import PERIOD, Action, Parameter, ValueType
from pearl.errors import ModelError
from pearl.interpreter.asking import CUT_SHORT, Asker, TextReply
from pearl.interpreter.results import Look
from pearl.llm import ActionTask
from pearl.retrieval.queries import years_in

OTHER_WORDS = Action(
    "OTHER_WORDS",
    (Parameter("QUERY"),),
    "List up to three short search phrases for what QUERY is about, in other words than QUERY: synonyms, and the "
    "names that reports and their tables have for it",
    returns=ValueType.LIST,
)

MAX_QUERIES, MAX_QUERY = 3, 200
"""Maximum queries of a model, and characters of each; longer ones are left out."""

NEAR_TOKENS = 64
"""Maximum tokens by which a prompt about other periods is longer."""


RANKS, WORDS, PERIODS = "the next ranks", "other words", "other periods"


async def looks(
    step: Step, task: ActionTask, queries: Sequence[str], asker: Asker, read: list[TextReply],
    has_more: Callable[[], bool],
) -> AsyncIterator[tuple[Look, ActionTask]]:  # fmt: skip
    """The searches that follow one by `queries`, each with the task that is read; replies with queries go to `read`."""
    # A figure without its period, and without what its step is for.
    bare = " ".join(value for name, value in task.arguments if name != PERIOD)
    n, words = asker.calls.n_looks, list[str]()
    years = years_in(" ".join(value for _, value in task.arguments))
    near = [year + by for year in years for by in (-1, 1) if year + by not in years]
    if n > 0 and has_more():
        yield Look(RANKS), task
    if n > 1 and has_more():
        scaled = [f"{bare} {' '.join(SCALES)}"] if PERIOD in dict(task.arguments) else []
        written = await _by_model(step, words_task(task), asker, read)
        words = _different(written, [bare, *queries])
        found = _different([bare, *scaled, *(f"{bare} {year}" for year in near), *words], queries)
        if found:
            yield Look(WORDS, tuple(found)), task
    if n > 2 and asker.calls.is_last(step) and (other := in_other_periods(task)) is not None:
        yield (
            Look(PERIODS, tuple(f"{each} {year}" for each in (bare, *words) for year in near)),
            other,
        )


def words_task(task: ActionTask) -> ActionTask:
    """The task of writing other queries, which is shown no document."""
    query = " ".join(value for _, value in task.arguments)
    return replace(
        task, action=OTHER_WORDS, arguments=(("QUERY", query),), document=None, inputs=frozenset({"QUERY"} if task.inputs else ()),
        gives=ValueType.LIST, is_of_numbers=False,
    )  # fmt: skip


async def _by_model(step: Step, task: ActionTask, asker: Asker, read: list[TextReply]) -> list[str]:
    """Queries that a model writes; none if its reply cannot be used."""
    if not asker.reads_prompts:
        return []
    try:
        reply = await asker.read(step, "look", asker.calls.whole(task))
    except ModelError as error:
        if error.kind not in (*CUT_SHORT, "refused", "filtered", "malformed"):
            raise
        return []
    read.append(reply)
    entries = reply.reply.value if isinstance(reply.reply.value, list) else []
    queries = (" ".join(entry.split()) for entry in entries)
    return [query for query in queries if len(query) <= MAX_QUERY][:MAX_QUERIES]


def _different(queries: Iterable[str], before: Iterable[str]) -> list[str]:
    """Queries with terms, without those that have the terms of another or of one before."""
    seen: set[frozenset[str]] = {
        frozenset(terms(query, drop_stop_words=True)) for query in before
    } | {frozenset()}
    different: dict[frozenset[str], str] = {}
    for query in queries:
        different.setdefault(frozenset(terms(query, drop_stop_words=True)), query)
    return [query for key, query in different.items() if key not in seen]


def in_other_periods(task: ActionTask) -> ActionTask | None:
    """The task for the periods before and after that of a figure; None if it is not of one year."""
    period = dict(task.arguments).get(PERIOD, "")
    years = years_in(" ".join(value for _, value in task.arguments))
    if len(years) != 1 or years != years_in(period):
        return None
    (year,) = years
    has_year = str(year) in period
    near = " or ".join(
        period.replace(str(year), str(other)) if has_year else str(other) for other in (year - 1, year + 1)
    )  # fmt: skip
    arguments = tuple((name, near if name == PERIOD else value) for name, value in task.arguments)
    # The question names the period that was asked for.
    return replace(task, arguments=arguments, question="")


def of_other_period(asked: ActionTask, shown: ActionTask, texts: Iterable[str]) -> str:
    """The period that a value was found under, if it is not certainly that of the task; "" if it is.

    Args:
        asked: The task of the step.
        shown: The task that was read.
        texts: What stands around the value, the nearest first.
    """
    wanted, read = (years_in(" ".join(v for _, v in task.arguments)) for task in (asked, shown))
    found = next(filter(None, map(years_in, texts)), ())
    others = {*read} - {*wanted}
    if near := others & {*found}:
        return " or ".join(map(str, sorted(near)))
    if not wanted or {*wanted} & {*found}:
        return ""
    unknown = "no period that its passage names" * (PERIOD in dict(asked.arguments))
    return ", ".join(map(str, found)) or " or ".join(map(str, sorted(others))) or unknown
