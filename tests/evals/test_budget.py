"""A token budget holds: for every method, over all calls that read, whatever the document is like."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pearl import Document, Pearl
from pearl.documents.tokens import Counter
from pearl.evals.log import EvalRecord
from pearl.evals.methods import Effort
from pearl.llm import ChooseTask, PlanTask, Request
from tests.evals.asking import READING, acting, run, sample
from tests.examples import examples
from tests.models import Acting

COUNTER = Counter.for_model("acting")

PARAGRAPHS = (
    "Nils sold the boat because the hull was rotten, and the rain of the night had filled it.",
    "Ada counted 12,345.67 crowns (and 8 øre) in the ledger: 1/2 of what he owed to the harbour.",
    "Der Käufer bezahlte mit einer Uhr ohne Zeiger, über die sich später niemand wundern wollte.",
    "Покупатель заплатил часами без стрелок, и никто не спросил почему.",
    "船体が腐っていたのでニルスは船を売った。",
    "zqxjkvbp" * 40,
    "The the of and to the of and to the of and to the and of the.",
)

documents = st.lists(
    st.tuples(st.sampled_from(PARAGRAPHS), st.integers(1, 60)), min_size=1, max_size=6
).map(lambda runs: "\n\n".join(text for text, n in runs for _ in range(n)))


def reads(request: Request) -> bool:
    """Whether a call is about the document: no plan, no mapping of an answer to the options."""
    if isinstance(request.task, ChooseTask):
        return request.task.document is not None
    return not isinstance(request.task, PlanTask)


def spent(model: Acting) -> int:
    return sum(COUNTER.count(request.prompt) for request in model.requests if reads(request))


def asked(
    name: str, text: str, effort: Effort, *, reply: str = "It was rotten.",
    window: int | None = 8_000, max_output_tokens: int | None = None,
) -> tuple[EvalRecord, Acting]:  # fmt: skip
    model = acting(step=reply, window=window)
    pearl = Pearl(model, max_output_tokens=max_output_tokens)
    read = sample(document=Document(text, "d.txt"), gold_passages=(text,))
    record = run(pearl, [read], name, effort=effort)
    return record["q1", name, 0], model


LONG = "\n\n".join(f"{PARAGRAPHS[i % 2]} {i}." for i in range(450))


@pytest.mark.parametrize("name", READING)
@given(
    text=documents,
    budget=st.integers(256, 20_000),
    part_tokens=st.integers(256, 5_000),
    reply=st.sampled_from(["no", "It was rotten. " * 5, "> " + PARAGRAPHS[1] * 12, "wort " * 600]),
    window=st.sampled_from([None, 1_000, 8_000]),
    max_output_tokens=st.sampled_from([None, 16, 400]),
)
@example(LONG, 10_000, 500, "It was rotten. " * 5, 8_000, None)
@example(LONG, 10_000, 2_048, "> " + PARAGRAPHS[1] * 12, None, 16)
@examples(25)
def test_all_calls_together_stay_within_the_budget(
    name: str, text: str, budget: int, part_tokens: int, reply: str, window: int | None,
    max_output_tokens: int | None,
) -> None:  # fmt: skip
    record, model = asked(
        name, text, Effort(budget, part_tokens), reply=reply, window=window,
        max_output_tokens=max_output_tokens,
    )  # fmt: skip
    assert spent(model) <= budget
    if record.status == "failed":
        assert record.error is not None
        assert "ExecutionError: a budget of " in record.error
        assert " tokens is too small: " in record.error
    elif record.coverage is not None:
        assert 0 < record.coverage <= 1


@pytest.mark.parametrize("name", READING)
def test_methods_use_most_of_the_budget(name: str) -> None:
    budget = 6_000
    record, model = asked(name, LONG, Effort(budget, 1_000), window=None)
    assert record.status == "answered"
    assert record.coverage is not None
    assert 0 < record.coverage < 1
    least = {"retrieve": 500, "map-reduce": budget // 3}.get(name, budget // 2)
    assert least < spent(model) <= budget


def test_parts_that_match_best_are_read_in_the_order_of_the_document() -> None:
    filler = "\n\n".join("Ada counted the oars again and again in the rain." for _ in range(300))
    text = f"{filler}\n\nNils sold the boat at noon.\n\n{filler}\n\nThe boat was sold by Nils.\n"
    record, model = asked("map-reduce", text, Effort(6_000, 1_000), window=None)
    shown = [request.document for request in model.requests]
    parts = [text.index(part) for part in shown if part is not None and part in text]
    assert len(parts) == len([part for part in shown if part is not None]) > 1
    joined = "".join(part for part in shown if part is not None)
    assert "at noon" in joined
    assert "sold by Nils" in joined
    assert record.coverage == pytest.approx(len(joined) / len(text))
