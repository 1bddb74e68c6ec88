"""A text that is being typed: nothing raises, and every place that is told is in the text."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from pearl.contrib.editor.features import (
    Kind,
    complete,
    definition,
    findings,
    fixed,
    formatted,
    hover,
    known_actions,
)
from pearl.errors import Span
from tests.dsl.strategies import AWKWARD, broken_texts, plan_texts
from tests.examples import examples
from tests.root import ROOT

SEED = known_actions("seed")
SHIPPED = [path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("fewshot/*/*.plan"))]


@st.composite
def unfinished(draw: st.DrawFn) -> str:
    """A plan, or a broken one, with something cut out of it and something typed in its place."""
    text = draw(st.one_of(st.sampled_from(SHIPPED), plan_texts, broken_texts()))
    start = draw(st.integers(0, len(text)))
    end = draw(st.one_of(st.just(start), st.just(len(text)), st.integers(start, len(text))))
    typed = draw(st.text(st.sampled_from(AWKWARD + "\n"), max_size=5))
    return text[:start] + typed + text[end:]


def spans_told(text: str, offset: int, kind: Kind) -> Iterator[Span]:
    """Every place in the text that anything here names."""
    for found in findings(text, kind, SEED.library):
        yield found.span
        if found.fix:
            yield found.fix.span
    for suggestion in complete(text, offset, SEED):
        assert suggestion.span.start <= offset <= suggestion.span.end
        assert "\n" not in text[suggestion.span.start : suggestion.span.end]
        yield suggestion.span
    if (said := hover(text, offset, kind, SEED)) is not None:
        assert said.span.start <= offset <= said.span.end
        yield said.span
    place = definition(text, offset, kind, SEED)
    if place is not None and place.path is None:
        yield place.span


@examples(300)
@given(unfinished(), st.data(), st.sampled_from(["plan", "actions"]))
def test_every_reported_span_is_in_the_text(text: str, data: st.DataObject, kind: Kind) -> None:
    offset = data.draw(st.integers(0, len(text)))
    for span in spans_told(text, offset, kind):
        assert 0 <= span.start <= span.end <= len(text)
    assert isinstance(fixed(text, kind, SEED.library), str)
    canonical = formatted(text, kind)
    assert canonical is None or formatted(canonical, kind) == canonical


def test_every_cursor_of_a_plan_that_is_typed_letter_by_letter() -> None:
    text = '- A(X) : b\n1. a = FIND(CTX, ["b\\"", a, 3]) : c'
    for end in range(len(text) + 1):
        assert all(span.end <= end for span in spans_told(text[:end], end, "plan"))
