"""Documents of any size and encoding, malformed rows, stores of other versions."""

from __future__ import annotations

import json
import sqlite3
import unicodedata
from contextlib import closing
from pathlib import Path

import pytest

import pearl
from pearl import Pearl, load
from pearl.llm.backends.scripted import Scripted
from pearl.runs.store import VERSION
from tests.documents.readers.test_text import SENTENCES
from tests.faults.programs import WORKS, Lab
from tests.suite import Trial

LOADING = """
import resource, sys
from pearl import load
rss = lambda: int(open("/proc/self/statm").read().split()[1]) * 4_096
before = rss()
text = load("big.txt").text
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024
print(len(text), text[-6:].strip(), peak - before)
"""


@pytest.mark.row("R25", "documents of any size are whole or refused")
@pytest.mark.parametrize("name", ["0 B", "1 B", "10 MB", "one line of 50 MB", "200 MB"])
def test_huge_documents(trial: Trial, lab: Lab, name: str) -> None:
    megabytes = {
        "10 MB": 10,
        "one line of 50 MB": 50,
        "200 MB": trial.n(ci=60, nightly=200, release=200),
    }
    n_bytes = megabytes.get(name, 0) * 1_000_000
    line = "She left." + (" " if "line" in name else "\n")
    text = line * (n_bytes // len(line)) + "It ended." if n_bytes else name[0].replace("0", "")
    folder = lab.folder_of({"big.txt": text})
    program = lab.programs.start(folder, "-c", LOADING)
    code = program.wait()
    is_refused = code == 3 and len(program.stderr.splitlines()) <= 3
    trial.figure("megabytes", len(text.encode()) / 1e6)
    trial.figure("whole documents refused", is_refused and name != "0 B", at_most=0)
    trial.figure("empty documents accepted", name == "0 B" and not is_refused, at_most=0)
    if not is_refused:
        n_characters, end, grown = program.stdout.split()
        trial.figure("characters missing", len(text) - int(n_characters), at_most=0, at_least=0)
        trial.figure("ends missing", end != text[-6:].strip(), at_most=0)
        trial.figure("megabytes of memory", int(grown) / 1e6, at_most=3 * n_bytes / 1e6 + 50)


MARKS = {
    "plain": "The gate was shut.", "NUL": "The gate\0 was shut.", "right to left": "هو قال: الباب مغلق.",
    "zero width": "The ga\u200bte was sh\u200but.", "NFC": unicodedata.normalize("NFC", "Le café fermé."),
    "NFD": unicodedata.normalize("NFD", "Le café fermé."), "emoji": "The 👩‍👧 left 🔑.",
}  # fmt: skip
UNICODE = ["utf-8", "utf-8-sig", "utf-16", "utf-32"]
FILES = [
    *((f"{mark} in {code}, {end!r}", f"Before it.{end}{text}{end}After it.{end}", text, code)
      for mark, text in MARKS.items() for code in UNICODE for end in ("\n", "\r\n")),
    *((f"{code}", f"Un.\n{text}\nFin.\n", text, code) for code, text in SENTENCES.items()),
]  # fmt: skip


@pytest.mark.row("R26", "spans of evidence in files of many encodings")
def test_encodings(trial: Trial, tmp_path: Path) -> None:
    wrong_texts, wrong_spans = [], []
    for number, (name, text, quote, encoding) in enumerate(FILES):
        path = tmp_path / f"{number}.txt"
        path.write_bytes(text.encode(encoding))
        document = load(path)
        plain, quote = (t.replace("\r\n", "\n").replace("\0", " ") for t in (text, quote))
        if document.text.strip() != plain.strip():
            wrong_texts.append(name)
        plan = '1. ans = FIND(CTX, "it") : Find it'
        answer = pearl.run(
            Pearl(Scripted(lambda request, q=quote: f"> {q}")).execute(plan, document)
        )  # type: ignore[misc]
        spans = [document.text[e.span.start : e.span.end] for e in answer.evidence if e.span]
        if not any(quote.strip(".。 ") in span and span in plain for span in spans):
            wrong_spans.append(name)
    trial.figure("files", len(FILES), at_least=60)
    trial.figure("texts read wrongly", len(wrong_texts), at_most=0)
    trial.figure("quotes whose span is not their text", len(wrong_spans), at_most=0)


BAD = ['{"id": "x", "doc', "[1]", '{"id": "y"}', '{"id": "z", "document": 7}', '{"id": "0", "document": "She left again."}',
       '{"document": "\\ud800"}', "NaN", '"text"', '{"id": "n", "document": NaN}', "\x00"]  # fmt: skip


@pytest.mark.row("R27", "malformed rows among good ones")
def test_malformed_rows(trial: Trial, lab: Lab) -> None:
    n_rows = trial.n(ci=500, nightly=10_000, release=10_000)
    bad = {i: trial.random.choice(BAD) for i in trial.random.sample(range(1, n_rows), n_rows // 20)}
    lines = [
        bad.get(i) or json.dumps({"id": str(i), "document": f"She left on day {i}."})
        for i in range(n_rows)
    ]
    folder = lab.folder_of(
        {
            "d.jsonl": "\n".join(lines),
            "a.plan": 'New actions:\n- None\n\n1. ans = FIND(CTX, "it") : It\n',
        }
    )
    command = (
        "execute a.plan --data d.jsonl --out rows.jsonl --model extractive --max-errors 100000"
    )
    program = lab.programs.start(folder, *command.split())
    code = program.wait()
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    ids = [row["id"] for row in rows if row["status"] != "failed"]
    good = {str(i) for i in range(n_rows) if i not in bad}
    told = {str(row["error"]) for row in rows if row["status"] == "failed"}
    unplaced = [error for error in told if "d.jsonl:" not in error]
    trial.figure("rows", n_rows)
    trial.figure("malformed rows", len(bad), at_least=1)
    trial.figure("good rows lost", len(good - set(ids)), at_most=0)
    trial.figure("rows twice", len(ids) - len(set(ids)), at_most=0)
    trial.figure("malformed rows reported", sum(row["status"] == "failed" for row in rows))
    trial.figure("reports without file and line", len(unplaced), at_most=0)
    trial.figure("exit code", code, at_most=1, at_least=1)


@pytest.mark.row("R30", "stores of other versions")
@pytest.mark.parametrize("version", [1, 2, 3, VERSION, VERSION + 1], ids="version {}".format)
def test_other_versions_of_the_store(trial: Trial, lab: Lab, version: int) -> None:
    """Version 2 had a checksum beside each row, version 3 none: both are converted; others are refused."""
    work = WORKS["documents"]
    lab.n_documents = 4
    folder = lab.folder(work)
    args = lab.args(work, folder)
    expected = lab.result(work, folder, lab.programs.run(folder, *args))
    n_calls = lab.n_calls
    with closing(sqlite3.connect(folder / "kept" / "store.db")) as connection:
        for table, column in (("replies", "body"), ("results", "row")) if version < VERSION else ():
            connection.execute(f"UPDATE {table} SET {column} = substr({column}, 33)")  # its digest
            if version < 3:
                connection.execute(
                    f"ALTER TABLE {table} ADD COLUMN checksum BLOB NOT NULL DEFAULT x'00'"
                )
        connection.execute(f"PRAGMA user_version = {version}")
        connection.commit()
    before = (folder / "kept" / "store.db").read_bytes()
    program = lab.programs.start(folder, *args)
    code = program.wait()
    is_read = version in (2, 3, VERSION)
    trial.figure("wrong exit codes", code != (0 if is_read else 8), at_most=0)
    trial.figure("calls made again", lab.n_calls - n_calls, at_most=0)
    if is_read:
        copy = folder / "kept" / f"store.db.version-{version}"
        is_told = "is converted" in program.stderr and copy.name in program.stderr
        is_kept = version == VERSION or (is_told and copy.exists())
        trial.figure("conversions without a notice or a copy", not is_kept, at_most=0)
        trial.figure("different results", lab.result(work, folder, program) != expected, at_most=0)
    else:
        is_told = (
            f"version {version}" in program.stderr and "name another --store" in program.stderr
        )
        trial.figure("refusals without a way out", not is_told, at_most=0)
        trial.figure(
            "changed stores", (folder / "kept" / "store.db").read_bytes() != before, at_most=0
        )
