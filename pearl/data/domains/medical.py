"""Medical transcripts, reports and questions, distinguished by the fields of a row.

- MTSamples (CSV): `transcription` is a document without a question, `medical_specialty` its subset.
- ACI-BENCH (JSON): the dialogue `src` is the document, its note `tgt` the reference of the task to
  write the note.
- Questions alone, as in MEDIQA, and all other rows: as in `generic`.
"""

from __future__ import annotations

from collections.abc import Iterator

from pearl.data.domains import Domain, Source
from pearl.data.domains.generic import inline, make_sample, read_as
from pearl.data.rows import Names, Row
from pearl.data.samples import Sample
from pearl.errors import DataError

DOMAIN = Domain(
    "Medical transcripts, reports and questions",
    library="medical",
    examples="medical",
    formats=(frozenset({"transcription", "medical_specialty"}),),
)

NOTE_TASK = "Write the clinical note of this consultation."
"""The question for a dialogue that has a reference note."""


def read(source: Source) -> Iterator[Sample | DataError]:
    """The samples of a file or a dataset."""
    return read_as(source, _sample)


def _sample(row: Row, names: Names) -> Sample:
    if DOMAIN.formats[0] <= row.fields.keys():
        # Names are not unique, so the line is part of the id.
        id = f"{(row.text('sample_name') or 'report').strip()}/{row.line}"
        report = inline(row, "transcription", id, names)
        specialty = row.text("medical_specialty")
        subsets = frozenset({specialty.strip()} if specialty else ())
        return Sample(names.claim_id(id, row), "", report, subsets=subsets)
    if {"src", "tgt"} <= row.fields.keys():
        id = row.name("file") or f"dialogue/{row.line}"
        dialogue, note = inline(row, "src", id, names), row.text("tgt")
        return Sample(names.claim_id(id, row), NOTE_TASK, dialogue, reference=note)
    return make_sample(row, names)
