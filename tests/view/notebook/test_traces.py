"""What notebooks show of traces."""

from __future__ import annotations

from hypothesis import given

from pearl.llm import Usage
from pearl.trace import CallFailed, ModelCalled, ModelWaited, PlanAttempted, StepFinished, Trace
from tests.notebooks import parsed, texts


def called(step: str, *, t_s: float = 1.0, took: float = 0.5) -> ModelCalled:
    return ModelCalled(
        t_s=t_s, step=step, purpose="step", model="m", duration_s=took, usage=Usage(10, 2)
    )


def trace_of(*events: object) -> Trace:
    trace = Trace("q-1")
    trace._events.extend(events)  # type: ignore[arg-type]
    return trace


def test_a_trace_is_its_calls_in_time_and_its_events() -> None:
    waited = ModelWaited(t_s=0.2, reason="429", wait_s=0.3, attempt=1)
    tree = parsed(trace_of(waited, called("a"), called("b", t_s=2.0, took=1.0))._repr_html_())
    told = "".join(tree.itertext())
    assert "Trace q-1 3 events, 2 calls, 20 tokens in, 4 out, 2.00 s" in told
    rows = tree.findall(".//tbody/tr")
    assert [row[1].text for row in rows] == ["model_waited", "model_called", "model_called"]
    said = "".join(rows[1].itertext())
    assert said.endswith("step: a; purpose: step; model: m; duration_s: 0.5; usage: 10 in, 2 out")
    bars = tree.findall("./svg/rect")
    assert [float(bar.get("x")) for bar in bars] == [280.0, 340.0, 440.0]
    assert [float(bar.get("width")) for bar in bars] == [60.0, 100.0, 200.0]
    assert "at most 1 at once" in told


def test_a_trace_without_events_or_calls_is_shown() -> None:
    assert "0 events, 0 calls" in "".join(parsed(Trace()._repr_html_()).itertext())


def test_a_huge_trace_is_small() -> None:
    long = "&" * 10_000
    events = [called(f"{long}{n}", t_s=float(n), took=n % 7) for n in range(100_000)]
    html = trace_of(*events)._repr_html_()
    assert len(html) < 100_000
    told = "".join(parsed(html).itertext())
    assert "99,950 more" in told
    assert "the longest 30 of 100,000" in told


@given(texts, texts)
def test_no_text_of_an_event_is_markup(text: str, other: str) -> None:
    trace = trace_of(
        PlanAttempted(round=0, model=text, reply=other, notes=(text,), diagnostics=(other,)),
        called(text),
        ModelWaited(reason=text, wait_s=1.0, attempt=1),
        CallFailed(
            step=text, purpose="step", model=other, kind="transport", reply=text, duration_s=1.0,
            usage=Usage(),
        ),
        StepFinished(
            step=text, action=other, value=text, is_native=True, context="none", coverage=None,
            n_calls=0, usage=Usage(), duration_s=0.0,
        ),
    )  # fmt: skip
    trace.id = text
    parsed(trace._repr_html_())
