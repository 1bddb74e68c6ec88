"""What the control of prefix caches costs, by the rules and prices of vendors, on loopback."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pearl.llm.messages import PLAN_ASKED
from tests.billing import VENDORS, BillingServer, billed, document, plan
from tests.models import MemoryReplies

N_TOKENS = 17_000  # Steps over a single shorter document do not wait for each other

BOATS = [document(f"Nils {i}", N_TOKENS) for i in range(5)]


def marks(server: BillingServer) -> list[str]:
    """The lifetimes that requests asked for, in the order in which they came."""
    return [ttl for call in server.calls for _, ttl in call.blocks if ttl]


@pytest.mark.parametrize("name", VENDORS)
@pytest.mark.parametrize(("n_steps", "n_tasks"), [(2, 1), (1, 2)])
def test_the_bill_is_the_least_possible(name: str, n_steps: int, n_tasks: int) -> None:
    reads = [(boat, plan(n_steps, f"boat {i}")) for i in range(n_tasks) for boat in BOATS]
    server, budget = billed(VENDORS[name], reads)
    assert len(server.calls) == len(BOATS) * n_steps * n_tasks
    assert server.cache.usd <= 1.02 * server.least_usd()
    assert budget.cost_usd == pytest.approx(server.cache.usd)


@pytest.mark.parametrize(
    ("n_steps", "settings"),
    [(1, {}), (1, {"context": "map-reduce"}), (2, {"context": "retrieve"})],
)
def test_a_step_that_reads_what_no_other_reads_writes_nothing(n_steps: int, settings: Any) -> None:
    text = plan(n_steps) + '\n9. t = FIND(s1, "a boat") : Look there'
    server, _ = billed(VENDORS["Anthropic"], [(BOATS[0], text)], window=6_000, **settings)
    assert server.calls
    assert not marks(server)


@pytest.mark.parametrize("name", VENDORS)
def test_what_all_planning_prompts_share_is_read_from_the_cache(name: str) -> None:
    note = document("Ada", 50)
    server, _ = billed(VENDORS[name], [(note, f"Why was boat {i} sold?") for i in range(24)])
    sizes = [(len(c.text) // 4, c.n_cached) for c in server.calls if PLAN_ASKED in c.text]
    assert len(sizes) == 24
    total, cached = map(sum, zip(*sizes, strict=True))
    if VENDORS[name].rules == "none":
        assert cached == 0
        return
    assert cached > 0.75 * total
    uncached_usd = total * VENDORS[name].price.input_usd / 1e6
    assert server.cache.usd < 0.35 * uncached_usd or name.endswith("free")


def test_an_hour_is_paid_for_where_calls_take_longer_than_five_minutes() -> None:
    chain = plan(1) + "".join(
        f'\n{i}. s{i} = COMPARE(CTX, s{i - 1}, "boats") : Compare' for i in range(2, 6)
    )
    server, _ = billed(
        VENDORS["Anthropic"], [(boat, chain) for boat in BOATS], delay_s=400.0, concurrency=1
    )
    assert set(marks(server)[-5:]) == {"1h"}
    quick, _ = billed(VENDORS["Anthropic"], [(boat, chain) for boat in BOATS], concurrency=1)
    assert set(marks(quick)) == {"5m"}


def test_a_lost_entry_is_not_written_again_for_one_read() -> None:
    chain = plan(1) + '\n2. s2 = COMPARE(CTX, s1, "boats") : Compare'
    chain += '\n3. s3 = COMPARE(CTX, s2, "boats") : Compare'
    server, _ = billed(VENDORS["Anthropic"], [(BOATS[0], chain)], delay_s=400.0)
    assert marks(server) == ["5m"]


def test_a_step_whose_reply_is_stored_is_no_later_read() -> None:
    replies, before = MemoryReplies(), plan(5)
    server, _ = billed(VENDORS["Anthropic"], [(boat, before) for boat in BOATS], replies=replies)
    edited = [(boat, before.replace('"boat 1"', '"a ship"')) for boat in BOATS]
    again, _ = billed(VENDORS["Anthropic"], edited, replies=replies, port=server._port)
    assert len(again.calls) == len(BOATS)
    assert not marks(again)


@pytest.mark.parametrize("name", ["Anthropic", "OpenAI, writes billed"])
def test_steps_over_a_short_document_wait_for_the_write_that_is_paid_for(name: str) -> None:
    server, _ = billed(VENDORS[name], [(document("Nils", 3_000), plan(2))])
    assert marks(server) or name != "Anthropic"
    assert server.cache.usd <= 1.02 * server.least_usd()


@pytest.mark.parametrize(
    ("model", "least"),
    [("opus-5-5", 512), ("sonnet-5", 1_024), ("opus-4-7", 2_048), ("haiku-4-5-20251001", 4_096)],
)
def test_a_document_is_marked_if_the_model_caches_so_few_tokens(model: str, least: int) -> None:
    vendor = replace(VENDORS["Anthropic"], model=f"anthropic:claude-{model}", min_tokens=least)
    for n_tokens in (least - 300, least + 300):
        server, _ = billed(vendor, [(document("Nils", n_tokens), plan(3))])
        assert len(marks(server)) == 3 * (n_tokens > least)


def test_a_document_that_is_too_short_for_the_server_proves_nothing() -> None:
    vendor = replace(VENDORS["Anthropic"], min_tokens=4_096)
    reads = [(document(f"Nils {n}", n), plan(3)) for n in (2_000, 2_100, 2_200, 9_000)]
    server, _ = billed(vendor, reads, concurrency=1)
    assert [bool(call.n_cached) for call in server.calls[-3:]] == [False, True, True]


@pytest.mark.parametrize(("settings", "lifetime_s"), [({"prefix": "off"}, 300.0), ({}, 0.0)])
def test_nothing_is_written_where_nothing_is_read(settings: Any, lifetime_s: float) -> None:
    vendor = replace(VENDORS["Anthropic"], lifetime_s=lifetime_s)
    reads = [(document(f"Nils {i}", 3_000), plan(3)) for i in range(4)]
    server, _ = billed(vendor, reads, concurrency=1, **settings)
    assert len(marks(server)) == (0 if settings else 6)  # until three reads have failed


def test_steps_whose_replies_have_different_forms_share_no_entry() -> None:
    counted = "\n3. n = COUNT(s2) : Count"  # whose input is a list
    alone, _ = billed(VENDORS["Anthropic"], [(BOATS[0], plan(2) + counted)], constrain="json")
    assert not marks(alone)
    both, _ = billed(
        VENDORS["Anthropic"],
        [(BOATS[0], plan(3) + counted.replace("3. n", "4. n"))],
        constrain="json",
    )
    assert len(marks(both)) == 2


def test_batches_of_rows_share_a_long_condition() -> None:
    condition = "the boat was sold by one of them, " + "or by Nils, who owned many boats, " * 200
    text = (
        plan(0)
        + f'1. rows = SPLIT(CTX, "line") : Split\n2. sold = FILTER(rows, "{condition}") : Select'
    )
    server, _ = billed(VENDORS["Anthropic"], [(document("Nils", 2_000), text)])
    assert len(marks(server)) == len(server.calls) > 2
    assert server.calls[0].written
    assert all(call.n_cached for call in server.calls[1:])


def test_an_hour_is_paid_for_where_many_calls_come_between_two_reads() -> None:
    reads = [(boat, plan(3)) for boat in BOATS[:2]]
    server, _ = billed(VENDORS["Anthropic"], reads, window=6_000, concurrency=1, delay_s=100.0)
    later = [ttl for call in server.calls if "Nils 1 " in call.text for _, ttl in call.blocks]
    assert set(later) == {"", "1h"}
