"""`pearl review`: what persons decide is stored at once, reaches every output, and measures what PEARL decided."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pearl.interpreter.row import read_row
from pearl.runs.decisions import Decisions
from pearl.runs.reviewing import KINDS, wilson
from pearl.runs.store import RunSpec, Store
from pearl.view import review_server
from pearl.view.sources import Reviewed, RunResults, open_results
from tests.cli.commands.test_extract import RESULTS, table
from tests.cli.terminal import Terminal, rows_of, write
from tests.reviewing import FIELDS, Person, child, key, letters, served

AGE, DOSE = key("clinic/brandt.txt", "age"), key("clinic/moreau.txt", "drugs[0].dose_mg")
EXTRACT = ("extract", FIELDS, "clinic/", "--model", "scripted:clinic.json", "-o")


@pytest.fixture
def run(pearl: Terminal) -> str:
    """The id of a run over five letters."""
    letters(pearl.folder)
    pearl(*EXTRACT, "letters.csv", code=1)
    return str(pearl.json("runs", "list")[0]["id"])


def opened(store: Store, run: str, **how: Any) -> Any:
    return served(RunResults(store, run), Decisions.of_run(store, run), **how)


def reader() -> Store:
    return Store.open(read_only=True)


def test_decisions_reach_every_table_and_page_as_a_persons(pearl: Terminal, run: str) -> None:
    with reader() as store, opened(store, run, kinds=["undecided"]) as ada:
        assert ada.item() == (AGE, "age · clinic/brandt.txt")
        assert ada.decide("accepted", AGE, choice=2) == {"next": f"?at={DOSE}"}
        marked = {"text": "tramadol 50 mg", "near": 0}
        assert ada.decide("corrected", DOSE, value="50", quote=marked) == {"next": "?at="}
        assert "All of it is decided" in ada.get()
    pearl("runs", "export", run, "-o", "all.csv")
    brandt = table("all.csv")[0]
    assert (brandt["age"], brandt["age_basis"], brandt["status"]) == ("67", "person", "answered")
    assert brandt["age_source"] == "clinic/brandt.txt:96-116"
    dose = table("all.drugs.csv")[-1]
    assert (dose["dose_mg"], dose["dose_mg_basis"]) == ("50", "person")
    assert dose["dose_mg_source"] == "clinic/moreau.txt:165-179"
    pearl("runs", "export", run, "-o", "all.xlsx")
    pearl("runs", "export", run, "-o", "all.jsonl")
    for row in rows_of("all.jsonl"):
        jsonschema.validate(row, RESULTS)
    first = rows_of("all.jsonl")[0]
    assert first["record"]["age"]["decided_by"] == "ada"
    assert "age: 67" in first["answer"]
    assert "- age: 67\n- seen: 2024-05-06[^3]\n" in first["markdown"]
    assert "undecided" not in first["answer"] + first["markdown"]
    pearl(*EXTRACT, "letters.csv")  # the same command: nothing is undecided, so its code is 0
    assert table("letters.csv")[0]["age"] == "67"
    pearl(*EXTRACT, "letters.html")
    page = Path("letters.html").read_text("utf-8")
    assert "by a person" in page
    assert "by ada" in page
    pearl("view", run, "--row", "clinic/brandt.txt", "-o", "one.html")
    assert "age: 67" in Path("one.html").read_text("utf-8")


NO_DECISIONS: list[tuple[str, str, dict[str, Any], str]] = [
    (AGE, "accepted", {}, "Several values"),
    (AGE, "accepted", {"choice": 3}, "no such proposal"), (AGE, "corrected", {"value": "sixty"}, "a whole number"),
    (AGE, "corrected", {"value": "61", "quote": {"text": "He is 61", "near": 0}}, "no such passage"),
    (AGE, "corrected", {"value": "61", "quote": {"text": "andt", "near": 0}}, "whole words"),
    (AGE, "agreed", {}, "no such decision"), (AGE, "undone", {}, "Nothing to undo"),
]  # fmt: skip


def test_what_cannot_be_a_decision_is_told_and_not_stored(run: str) -> None:
    with reader() as store, opened(store, run) as ada:
        for at, what, more, problem in NO_DECISIONS:
            assert problem in ada.decide(what, at, **more)["problem"]
        assert not Decisions.of_run(store, run).all()


def test_a_marked_passage_is_the_one_that_was_marked(run: str) -> None:
    with reader() as store, opened(store, run, kinds=["undecided"]) as ada:
        text = Path("clinic/moreau.txt").read_text("utf-8")
        for near in (text.index("He weighs"), text.index("He takes")):
            said = ada.post("quote", {"at": DOSE, "quote": {"text": "He", "near": near}})
            assert f"characters {near}-" in said["where"]
        assert said["value"] is None, "a dose is a number"
        said = ada.post("quote", {"at": DOSE, "quote": {"text": "50", "near": 0}})
        assert (said["text"], said["value"]) == ("50", "50")


def test_each_decision_that_was_acknowledged_survives_a_kill(run: str) -> None:
    acknowledged = 0
    at = None
    with child(run, "--name", "ada") as (process, ada):
        with suppress(OSError):
            for _ in range(30):
                at = ada.decide("not_stated", at)["next"].partition("=")[2]
                acknowledged += 1
                if acknowledged == 7:
                    process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    with child(run, "--name", "ada") as (_, ada):
        assert 7 <= acknowledged <= ada.report["decided_by_persons"] <= acknowledged + 1 < 30
        assert acknowledged > 7 or ada.item()[0] == at, "it goes on where it was"


def test_two_persons_lose_no_decision_and_the_later_one_counts(run: str) -> None:
    with child(run, "--name", "ada") as (_, ada), child(run, "--name", "bo") as (_, bo):
        letters = ("brandt", "keller", "lindqvist", "moreau", "okafor")
        keys = [key(f"clinic/{name}.txt", path) for name in letters for path in ("patient", "seen", "smoker")]  # fmt: skip

        def decide(person: Person, own: list[str]) -> None:
            for each in own:
                person.decide("not_stated", each)

        threads = [threading.Thread(target=decide, args=each) for each in ((ada, keys[::2]), (bo, keys[1::2]))]  # fmt: skip
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert bo.report["persons"] == {"ada": 8, "bo": 7}
        ada.decide("corrected", AGE, value="61")
        bo.decide("corrected", AGE, value="67")
        page = ada.get(f"?at={AGE}")
        assert page.index("corrected <b>61</b>") < page.index("corrected <b>67</b>")
        assert age_of(run) == (67, "bo")
        bo.decide("undone")
        assert age_of(run) == (61, "ada")


def age_of(run: str) -> tuple[int, str]:
    """The age of the first letter, and who decided it."""
    with reader() as store:
        age = next(iter(store_rows(store, run)))["record"]["age"]
    return age["value"], age["decided_by"]


def store_rows(store: Store, run: str) -> Any:
    from pearl.runs.decisions import reviewed

    return reviewed(store, run)()


def test_only_who_knows_the_address_is_served(run: str) -> None:
    with reader() as store, opened(store, run) as ada:
        said = {"at": ada.item()[0], "what": "not_stated"}
        assert ada.status("get", Host="evil.example") == 403
        assert ada.status("get", Origin="http://evil.example") == 403
        for headers in (
            {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"},
            {"Content-Type": "text/plain"},
        ):  # fmt: skip
            assert ada.status("post", "decide", said, **headers) == 403
        stranger = Person(f"{ada.origin}/{'x' * 32}/")
        assert stranger.status("get") == stranger.status("post", "decide", said) == 404
        assert ada.status("get", "../../etc/passwd") == ada.status("post", "", said) == 404
        assert ada.report["decided_by_persons"] == 0
        assert ada.post("decide", said)["next"]


def test_a_sample_measures_what_was_decided(pearl: Terminal, run: str) -> None:
    def drawn(n: int, seed: str = "0") -> list[str]:
        how: dict[str, Any] = {
            "person": "ada",
            "kinds": KINDS,
            "folders": (),
            "n_sampled": n,
            "seed": seed,
        }
        return list(review_server.Review(RunResults(store, run), decisions, **how).items)

    with reader() as store:
        decisions = Decisions.of_run(store, run)
        assert not {AGE, DOSE} & set(drawn(36))
        assert drawn(20)[:10] == drawn(10) != drawn(10, "1"), (
            "more of a seed are the same and others"
        )
        with opened(store, run, n_sampled=10) as ada:
            *right, wrong, skipped = drawn(10)
            for each in right:
                assert "next" in ada.decide("accepted", each)
            ada.decide("not_stated", wrong)
            ada.decide("skipped", skipped)
            page = ada.get()
    assert "8 of 9 right: 88.9 %" in page
    assert "seed 0" in page
    said = json.loads(pearl("review", run, "--report"))["sample"]
    precision = said["precision"]
    assert (precision["right"], precision["of"], said["seeds"]) == (8, 9, ["0"])
    assert (precision["low"], precision["high"]) == wilson(8, 9)
    assert sum(each["of"] for each in precision["fields"].values()) == 9


@pytest.mark.parametrize(
    ("right", "n", "ends"),
    [(0, 3, (0, 0.5615)), (3, 3, (0.4385, 1)), (48, 50, (0.8654, 0.9890)), (1_500, 3_000, (0.4821, 0.5179))],
)  # fmt: skip
def test_an_interval_is_that_of_wilson(right: int, n: int, ends: tuple[float, float]) -> None:
    assert wilson(right, n) == pytest.approx(ends, abs=5e-5)


def test_documents_that_moved_are_told_and_found(pearl: Terminal, run: str) -> None:
    Path("clinic").rename("../moved")
    with reader() as store:
        with opened(store, run, kinds=["undecided"]) as ada:
            page = ada.get()
            assert "was not found; name its folder with --documents" in page
            assert "This 67-year-old man" in page
            assert 'id="document"' not in page
            marked = {"text": "This 67-year-old man", "near": 0}
            assert "problem" in ada.decide("corrected", AGE, value="67", quote=marked)
            assert "next" in ada.decide("corrected", AGE, value="67")
        with opened(store, run, kinds=["undecided"], folders=[Path("../moved")]) as ada:
            assert '<mark class="lit">tramadol 50 mg twice a day</mark>' in ada.get()
    Path("../moved/moreau.txt").write_text("Another letter.", encoding="utf-8")
    with reader() as store, opened(store, run, kinds=["undecided"], folders=[Path("../moved")]) as ada:  # fmt: skip
        assert "not in the text at this place" in ada.get()


def row(id: str, **fields: Any) -> dict[str, Any]:
    plan = '1. record = EXTRACT(CTX, "' + ", ".join(f"{name}: str" for name in fields) + '") : Read'
    return {"id": id, "status": "degraded", "question": "q", "document": id, "plan": plan, "record": fields}  # fmt: skip


UNDECIDED = {"state": "undecided", "value": None, "why": "no quote"}


def test_a_run_that_still_runs_is_reviewed_as_it_grows(
    pearl: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(review_server, "REFRESH_S", 0.0)
    with Store.open() as store:
        run = store.begin(RunSpec(("pearl",), {}, {}))

        def record(n: int) -> None:
            asyncio.run(run.record(bytes([n]) * 32, n, f"{n}.txt", row(f"{n}.txt", age=UNDECIDED), None))  # fmt: skip

        record(1)
        with opened(store, run.id) as ada:
            assert "the run still runs: 1 row so far" in ada.get()
            ada.decide("corrected", value="61")
            assert ada.item()[0] == ""
            record(2)
            assert ada.item()[1] == "age · 2.txt"
            run.finish("done")
            assert "still runs" not in ada.get()
            assert ada.report["decided_by_persons"] == 1
        assert [each["record"]["age"]["value"] for each in store_rows(store, run.id)] == [
            "61",
            None,
        ]


def test_a_table_of_a_run_stands_for_the_run(
    pearl: Terminal, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert json.loads(pearl("review", "letters.csv", "--report"))["source"] == f"run {run}"
    odd = {"id": "1", "status": "answered", "answer": 5, "record": {"a": 3}}
    write("odd.jsonl", odd, row("x", a=UNDECIDED), row("y", a={**UNDECIDED, "candidates": 5}))
    assert json.loads(pearl("review", "odd.jsonl", "--report"))["fields"] == 1
    assert "2 rows cannot be read" in pearl.talk
    Path("none.csv").write_text("a,b\n")
    pearl("review", "none.csv", code=3)
    assert "no run of the store wrote this file" in pearl.talk
    pearl("review", run, "--sample", "5", "--state", "undecided", code=2)
    monkeypatch.setenv("PEARL_PRIVATE", "1")
    pearl("review", run, code=2)


def test_a_value_without_a_passage_is_not_said_to_have_one(pearl: Terminal, run: str) -> None:
    with reader() as store, opened(store, run, kinds=["unchecked"]) as ada:
        unquoted = ada.get(f"?at={key('clinic/moreau.txt', 'smoker')}")
        assert "No passage was cited for it" in unquoted
        assert "passage is in the document" not in unquoted
        assert "passage is in the document" in ada.get(f"?at={key('clinic/brandt.txt', 'smoker')}")


def test_a_proposed_value_of_another_type_is_not_taken(pearl: Terminal) -> None:
    unsure = {**UNDECIDED, "candidates": [{"value": "sixty-one", "evidence": []}, {"value": "61.0", "evidence": []}]}  # fmt: skip
    one = row("a.txt", age=unsure)
    write("odd.jsonl", {**one, "plan": one["plan"].replace("age: str", "age: int")})
    found = open_results(Path("odd.jsonl"))
    assert found
    with served(found, Decisions.beside(Path("odd.jsonl"))) as ada:
        assert "'sixty-one' is not a whole number" in ada.decide("accepted", choice=1)["problem"]
        ada.decide("accepted", choice=2)
        ((_, seen),) = Reviewed(found, Decisions.beside(Path("odd.jsonl"))).rows()
        assert seen["record"]["age"]["decided_by"] == "ada"
    (decision,) = Decisions.beside(Path("odd.jsonl")).all()
    assert decision.result["value"] == 61
    assert type(decision.result["value"]) is int


def test_an_answer_without_fields_is_decided_whole(pearl: Terminal) -> None:
    answer = {
        "status": "degraded", "question": "Who?", "document": "story.txt", "answer": "Ada, or Nils", "why": "two names",
        "method": "plan", "model": "m", "plan": "", "unverified_quotes": [], "steps": [], "coverage": 1.0,
        "usage": {"input_tokens": 1, "output_tokens": 1, "cached_tokens": 0}, "duration_s": 1.0, "evidence": [
            {"text": "He sold the boat", "start": 32, "end": 48, "source": "story.txt", "match": "exact", "steps": ["ans"]},
        ],
    }  # fmt: skip
    Path("answer.json").write_text(json.dumps(answer, indent=1), "utf-8")
    found = open_results(Path("answer.json"))
    assert found
    decisions = Decisions.beside(Path("answer.json"))
    with served(found, decisions) as ada:
        assert '<mark class="lit">He sold the boat</mark>' in ada.get()
        ada.decide("corrected", value="Nils <b>himself</b>")
    pearl("view", "answer.json", "-o", "answer.html")
    page = Path("answer.html").read_text("utf-8")
    assert "Nils &lt;b&gt;himself" in page
    assert "decided by a person: ada" in page
    assert "Ada, or Nils" not in page


def test_undecided_rows_behind_an_answer_are_decided(pearl: Terminal) -> None:
    def behind(n: int, **more: Any) -> dict[str, Any]:
        row: dict[str, Any] = {"match": "row", "text": f"Boat {n}", "value": None, "fields": {}, "source": "boats.txt", "steps": ["n"]}  # fmt: skip
        return {**row, "state": "undecided", "start": 7 * n, "end": 7 * n + 6, **more}

    evidence = [behind(0, fields={"kind": "sail"}, state="found", value="sail"), behind(1, fields={"kind": None}), behind(2), behind(3), behind(4)]  # fmt: skip
    answer = {
        "id": "boats.txt", "status": "undecided", "question": "How many?", "document": "boats.txt", "answer": "1 (4 undecided)",
        "why": "rows are undecided", "method": "plan", "model": "m", "plan": "", "unverified_quotes": [], "steps": [],
        "coverage": 1.0, "usage": {"input_tokens": 1, "output_tokens": 1, "cached_tokens": 0}, "duration_s": 1.0, "evidence": evidence,
    }  # fmt: skip
    write("rows.jsonl", read_row(answer).to_dict())
    Path("boats.txt").write_text("\n".join(f"Boat {n}" for n in range(5)))
    found = open_results(Path("rows.jsonl"))
    assert found
    decisions = Decisions.beside(Path("rows.jsonl"))
    with served(found, decisions) as ada:
        assert ada.item()[1] == "kind · boats.txt"
        assert '<mark class="lit">Boat 1</mark>' in ada.get()
        ada.decide("corrected", value="motor")
        assert ada.item()[1] == "counts · boats.txt"
        ada.decide("corrected", value="yes")
        ada.decide("corrected", value="no")
        ada.decide("skipped")
        ada.decide("skipped")
        ((_, row),) = Reviewed(found, decisions).rows()
        jsonschema.validate(row, RESULTS)
        rows = [(each["text"], each["state"], each["fields"]) for each in row["evidence"]]
        assert rows == [
            ("Boat 0", "found", {"kind": "sail"}), ("Boat 1", "found", {"kind": "motor"}), ("Boat 2", "found", {}),
            ("Boat 4", "undecided", {}),
        ]  # fmt: skip
        assert (row["status"], row["answer"]) == ("undecided", "1 (4 undecided)")
        assert row["notes"] == ["persons decided 3 rows after the answer was computed, which counts them as undecided"]  # fmt: skip
        assert row["evidence"][1]["decided_by"] == ["ada"]
        ada.decide("corrected", key("boats.txt", "answer"), value="3")
        ((_, row),) = Reviewed(found, decisions).rows()
        assert (row["status"], row["answer"]) == ("answered", "3")


def test_decisions_end_with_their_run(pearl: Terminal, run: str) -> None:
    with reader() as store, opened(store, run) as ada:
        ada.decide("not_stated")
        path = store.review_path(run)
    assert path.stat().st_mode & 0o077 == 0
    pearl("runs", "prune", "--keep", "0", "--yes")
    assert not path.exists()


def test_a_full_disk_is_told_on_the_page(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with reader() as store, opened(store, run) as ada:
        store.review_path(run).write_bytes(b"no database" * 1000)
        assert ada.status("post", "decide", {"at": AGE, "what": "skipped"}) == 500
        assert ada.status("get") == 500


def test_ctrl_c_ends_it_well(run: str) -> None:
    line = [sys.executable, "-m", "pearl", "review", run]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # fmt: skip
        assert process.stdout
        process.stdout.readline()
        os.kill(process.pid, signal.SIGINT)
        _, talk = process.communicate()
    assert process.returncode == 0
    assert "0 decisions in" in talk
    assert "Traceback" not in talk
