"""When a run has to end: a server that is gone, and runs within one another."""

from __future__ import annotations

from pearl.errors import ModelError, PausedError
from pearl.llm.middleware.circuit_breaker import SILENT_CALLS, CircuitBreaker, OutageDetector


def test_a_server_that_is_gone_pauses_the_run() -> None:
    """So many calls, over so long: neither a burst of failures nor a single slow call is it."""
    gone, slow = ModelError("no server", kind="transport"), ModelError("late", kind="deadline")
    silence = OutageDetector()
    assert not any(silence.go_on(gone, 0.1 * i) for i in range(3 * SILENT_CALLS))
    silence.end()
    assert not any(silence.go_on(slow, 30.0 * i) for i in range(SILENT_CALLS - 1))
    silence.end()
    found = [silence.go_on(gone, 100.0 + 3.0 * i) for i in range(SILENT_CALLS)]
    assert not any(found[:-1])
    assert isinstance(found[-1], PausedError)
    assert "10 calls in a row got no answer in 27 s: no server" in str(found[-1])


def test_work_that_begins_beside_other_work_is_of_the_same_run() -> None:
    breaker, error = CircuitBreaker(), ModelError("no credit", kind="quota")
    with breaker.running():
        with breaker.running():
            breaker.throw(error)
        with breaker.running():
            assert breaker.error is error
    with breaker.running():
        breaker.check()
