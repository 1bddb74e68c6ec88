"""A segment ↔ one file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pearl.errors import DataError
from pearl.retrieval.corpus.sources import DIGEST
from pearl.retrieval.index.arrays_file import DamagedError, Stamp, read_arrays, write_arrays
from pearl.retrieval.index.segment import Segment, SegmentTexts
from pearl.retrieval.postings import Postings


def write_segment(path: Path, segment: Segment) -> Stamp:
    """Write a segment to a file that is not there yet; returns its stamp."""
    arrays: dict[str, NDArray[Any]] = {
        **texts_arrays("texts", segment.texts),
        **texts_arrays("names", segment.names),
        **texts_arrays("metadata", segment.metadata),
        "digests": segment.digests,
        "documents": segment.documents,
        "spans": segment.spans,
        "byte_spans": segment.byte_spans,
        **{f"postings.{name}": array for name, array in segment.terms.arrays().items()},
    }
    if segment.fields is not None:
        arrays |= texts_arrays("fields", segment.fields)
    return write_arrays(path, {"field_names": list(segment.field_names)}, arrays)


def read_segment(path: Path, written: Stamp | None) -> Segment:
    """Map a segment into memory, and make sure that nothing in it leads out of it."""
    file = read_arrays(path, written)
    arrays = file.arrays
    try:
        names = file.about["field_names"]
        postings = {
            name.removeprefix("postings."): array
            for name, array in arrays.items()
            if name.startswith("postings.")
        }
        segment = Segment(
            read_texts("texts", arrays),
            read_texts("names", arrays),
            read_texts("metadata", arrays),
            arrays["digests"],
            arrays["documents"],
            arrays["spans"],
            arrays["byte_spans"],
            read_texts("fields", arrays) if "fields.data" in arrays else None,
            Postings.from_arrays(postings),
            tuple(str(name) for name in names),
        )
        _check(segment)
    except (KeyError, TypeError, ValueError, DataError) as error:
        raise DamagedError(f"{path.name} is damaged: {error}") from None
    return segment


def _check(segment: Segment) -> None:
    """Make sure that the arrays of a segment fit each other."""
    n, n_passages = segment.n_documents, segment.n_passages
    shapes: dict[str, tuple[NDArray[Any], str, tuple[int, ...]]] = {
        "digests": (segment.digests, "u1", (n, DIGEST)),
        "documents": (segment.documents, "i4", (n_passages,)),
        "spans": (segment.spans, "i4", (n_passages, 2)),
        "byte_spans": (segment.byte_spans, "i4", (n_passages, 2)),
    }
    for name, (array, kind, shape) in shapes.items():
        if array.dtype.str[1:] != kind or array.shape != shape:
            raise ValueError(f"'{name}' is not as it was stored")
    fields = segment.fields
    if not (
        len(segment.texts) == len(segment.metadata) == n
        and segment.terms.n_passages == n_passages
        and (fields is None or len(fields) == n_passages)
    ):
        raise ValueError("its parts are not equally long")
    documents, sizes = segment.documents, np.diff(segment.texts.starts)
    if n_passages:
        if int(documents.min()) < 0 or int(documents.max()) >= n:
            raise ValueError("a passage has no document")
        if bool((np.diff(documents) < 0).any()):
            raise ValueError("the passages are not in order")
        for spans in (segment.spans, segment.byte_spans):
            starts, ends = spans[:, 0], spans[:, 1]
            if bool(((starts < 0) | (starts > ends) | (ends > sizes[documents])).any()):
                raise ValueError("a passage is outside of its document")


def texts_arrays(name: str, texts: SegmentTexts) -> dict[str, NDArray[Any]]:
    """Strings as two arrays to be stored."""
    return {f"{name}.data": texts.data, f"{name}.starts": texts.starts}


def read_texts(name: str, arrays: Mapping[str, NDArray[Any]]) -> SegmentTexts:
    """What `texts_arrays` made."""
    data, starts = arrays[f"{name}.data"], arrays[f"{name}.starts"]
    if (
        (data.dtype.str[1:], data.ndim, starts.dtype.str[1:], starts.ndim) != ("u1", 1, "i8", 1)
        or not len(starts)
        or starts[0] != 0
        or starts[-1] != len(data)
        or bool((np.diff(starts) < 0).any())
    ):
        raise ValueError(f"'{name}' is not as it was stored")
    return SegmentTexts(data, starts)
