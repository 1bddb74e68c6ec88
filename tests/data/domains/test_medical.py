"""Reports, consultations and questions."""

from __future__ import annotations

import json
from pathlib import Path

from pearl.data.domains import Source, read_samples
from pearl.data.domains.medical import NOTE_TASK
from pearl.data.samples import Sample
from pearl.documents.document import Document
from pearl.errors import DataError
from tests.shared import shared

HEADER = "description,medical_specialty,sample_name,transcription,keywords\n"


def read(path: Path, text: str | None = None) -> list[Sample | DataError]:
    if text is not None:
        path.write_text(text)
    return list(read_samples("medical", Source(str(path))))


def test_reports(tmp_path: Path) -> None:
    rows = 'x, Surgery, Knee ,"One,\ntwo.",k\nx, Surgery, Knee ,Three.,k\nx,,,Four.,\nx,y,z,,k\n'
    *samples, bad = read(tmp_path / "r.csv", HEADER + rows)
    surgery = frozenset({"Surgery"})
    assert samples == [
        Sample("Knee/2", "", Document("One,\ntwo.", "Knee/2"), subsets=surgery),
        Sample("Knee/4", "", Document("Three.", "Knee/4"), subsets=surgery),
        Sample("report/5", "", Document("Four.", "report/5")),
    ]
    assert str(bad) == f"{tmp_path}/r.csv:6: 'transcription' contains no text"


def test_consultations(tmp_path: Path) -> None:
    data = [
        {"src": "[doctor] hi", "tgt": "NOTE", "file": "D1"},
        {"src": "[doctor] hi", "tgt": None},
    ]
    data += [{"src": "[doctor] ho", "tgt": "NOTE", "file": "D1"}]
    first, second, bad = read(tmp_path / "r.json", json.dumps({"data": data}, indent=1))
    assert first == Sample("D1", NOTE_TASK, Document("[doctor] hi", "D1"), reference="NOTE")
    assert isinstance(second, Sample)
    assert second.id == "dialogue/8"
    assert second.reference is None
    assert str(bad).startswith(f"{tmp_path}/r.json:12: duplicate id 'D1', first used in line 3")


def test_duplicate_report_is_one_document(tmp_path: Path) -> None:
    rows = "x,Surgery,Knee,One.,k\nx,Urology,Knee,One.,k\n"
    samples = [s for s in read(tmp_path / "r.csv", HEADER + rows) if isinstance(s, Sample)]
    assert [(s.id, s.document_name) for s in samples] == [
        ("Knee/2", "Knee/2"),
        ("Knee/3", "Knee/2"),
    ]
    talks = [{"src": "hi", "tgt": "N", "file": name} for name in ("D1", "D2")]
    samples = [s for s in read(tmp_path / "r.json", json.dumps(talks)) if isinstance(s, Sample)]
    assert [s.document for s in samples] == [Document("hi", "D1")] * 2


def test_questions(tmp_path: Path) -> None:
    (sample,) = read(tmp_path / "r.jsonl", '{"id": "3", "question": "Does it hurt?"}')
    assert sample == Sample("3", "Does it hurt?")


def counted(path: Path) -> tuple[list[Sample], int]:
    found = read(path)
    samples = [sample for sample in found if isinstance(sample, Sample)]
    assert len({sample.id for sample in samples}) == len(samples)
    return samples, len(found)


def test_the_real_reports() -> None:
    samples, n_rows = counted(shared("medical/mtsamples.csv"))
    assert (len(samples), n_rows) == (238, 241)  # three have no text
    assert {"Surgery", "Urology"} < frozenset().union(*(sample.subsets for sample in samples))


def test_the_real_consultations() -> None:
    samples, n_rows = counted(shared("medical/aci_bench_train.json"))
    assert len(samples) == n_rows == 67
    assert all(sample.reference for sample in samples)


def test_the_real_questions() -> None:
    samples, n_rows = counted(shared("medical/mediqa_questions.jsonl"))
    assert len(samples) == n_rows == 100
    assert all(sample.document is None for sample in samples)
