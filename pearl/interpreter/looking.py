"""Further searches for a step that found nothing in its passages: lower ranks, other words, other periods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence

from msgspec.structs import replace

from pearl.documents.dates import years_in
from pearl.documents.lexicon import SCALES
from pearl.documents.passages import terms
from pearl.dsl.nodes import Step
from pearl.dsl.signatures import PERIOD, Action, Parameter, ValueType
from pearl.errors import ModelError
from pearl.interpreter.model_calls import CUT_SHORT, Asker, TextReply
from pearl.interpreter.results import Look
from pearl.llm import ActionTask

OTHER_WORDS = Action(
    "OTHER_WORDS",
    (Parameter("QUERY"),),
    "List up to three short search phrases for what QUERY is about, in other words than QUERY: synonyms, and the "
    "names that reports and their tables have for it",
    returns=ValueType.LIST,
)

MAX_QUERIES, MAX_QUERY = 3, 200  # Maximum queries of a model, and characters of each
NEAR_TOKENS = 64  # Maximum tokens that a prompt about other periods adds
RANKS, WORDS, PERIODS = "the next ranks", "other words", "other periods"


async def looks(
    step: Step, task: ActionTask, queries: Sequence[str], asker: Asker, read: list[TextReply],
    has_more: Callable[[], bool],
) -> AsyncIterator[tuple[Look, ActionTask]]:  # fmt: skip
    """Yield the searches that follow the one by `queries`, each with its task; append the model's replies with new queries to `read`."""
    n, words, period = asker.calls.n_looks, list[str](), dict(task.arguments).get(PERIOD, "")
    # The query without the period of a figure, and without the explanation of the step.
    bare = " ".join(value for name, value in task.arguments if name != PERIOD)
    years = years_in(f"{bare} {period}")
    near = [year + by for year in years for by in (-1, 1) if year + by not in years]
    if n > 0 and has_more():
        yield Look(RANKS), task
    if n > 1 and has_more():
        words = _different(await _by_model(step, task, asker, read), [bare, *queries])
        scaled = [f"{bare} {' '.join(SCALES)}"] if period else []
        others = [bare, *scaled, *(f"{bare} {year}" for year in near), *words]
        if found := _different(others, queries):
            yield Look(WORDS, found), task
    if n > 2 and len(years) == 1 and str(years[0]) in period and asker.calls.is_last(step):
        other = " or ".join(period.replace(str(years[0]), str(year)) for year in near)
        arguments = ((name, other if name == PERIOD else value) for name, value in task.arguments)
        # The question names the period asked for.
        asked = replace(task, arguments=tuple(arguments), question="")
        yield Look(PERIODS, [f"{each} {year}" for each in (bare, *words) for year in near]), asked


async def _by_model(step: Step, task: ActionTask, asker: Asker, read: list[TextReply]) -> list[str]:
    """Ask a model for other queries, without the document; [] if its reply cannot be used."""
    if not asker.reads_prompts:
        return []
    query = " ".join(value for _, value in task.arguments)
    asked = replace(
        task, action=OTHER_WORDS, arguments=(("QUERY", query),), document=None, is_of_numbers=False,
        inputs=frozenset({"QUERY"} if task.inputs else ()), gives=ValueType.LIST,
    )  # fmt: skip
    try:
        read.append(await asker.read(step, "look", asker.calls.whole(asked)))
    except ModelError as error:
        if error.kind not in (*CUT_SHORT, "refused", "filtered", "malformed"):
            raise
        return []
    entries = read[-1].reply.value if isinstance(read[-1].reply.value, list) else []
    return [entry for entry in entries if len(entry) <= MAX_QUERY][:MAX_QUERIES]


def _different(queries: Iterable[str], before: Sequence[str]) -> list[str]:
    """Drop queries without terms, and those with the same terms as an earlier one."""
    first = {frozenset[str](): ""}
    for query in [*before, *queries]:
        first.setdefault(frozenset(terms(query, drop_stop_words=True)), query)
    return [query for query in first.values() if query and query not in before]


def of_other_period(asked: ActionTask, shown: ActionTask, texts: Iterable[str]) -> str:
    """The period of a value, read from the texts around it (nearest first); "" if it is unknown, or if `asked` names it."""
    wanted, read = (years_in(" ".join(v for _, v in task.arguments)) for task in (asked, shown))
    nearest = next(filter(None, map(years_in, texts)), ())
    others = {*read} - {*wanted}
    if near := others & {*nearest}:
        return " or ".join(map(str, sorted(near)))
    if not wanted or {*wanted} & {*nearest}:
        return ""
    unknown = "no period that its passage names" * (PERIOD in dict(asked.arguments))
    return ", ".join(map(str, nearest)) or " or ".join(map(str, sorted(others))) or unknown
