"""Several segments → one, without the documents that were removed. Nothing is analysed anew."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pearl.retrieval.index.segment import Segment, SegmentTexts
from pearl.retrieval.postings import merge


def live_passages(segment: Segment, live: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which passages are of documents that are live."""
    found: NDArray[np.bool_] = live[segment.documents]
    return found


def merge_segments(segments: Sequence[Segment], live: Sequence[NDArray[np.bool_]]) -> Segment:
    """One segment of the live documents of several, in their order."""
    passages = [live_passages(s, alive) for s, alive in zip(segments, live, strict=True)]
    documents: list[NDArray[np.int32]] = []
    base = 0
    for segment, alive, kept in zip(segments, live, passages, strict=True):
        numbers = np.cumsum(alive) - 1 + base
        documents.append(numbers[segment.documents[kept]].astype(np.int32))
        base += int(alive.sum())
    fields = None
    if any(segment.fields is not None for segment in segments):
        none = [_blank(s.n_passages) if s.fields is None else s.fields for s in segments]
        fields = _selected(none, passages)
    return Segment(
        _selected([s.texts for s in segments], live),
        _selected([s.names for s in segments], live),
        _selected([s.metadata for s in segments], live),
        np.concatenate([s.digests[alive] for s, alive in zip(segments, live, strict=True)]),
        np.concatenate(documents),
        np.concatenate([s.spans[kept] for s, kept in zip(segments, passages, strict=True)]),
        np.concatenate([s.byte_spans[kept] for s, kept in zip(segments, passages, strict=True)]),
        fields,
        merge([s.terms for s in segments], [~kept for kept in passages]),
        tuple(dict.fromkeys(name for s in segments for name in s.field_names)),
    )


def _blank(n: int) -> SegmentTexts:
    return SegmentTexts(np.zeros(0, np.uint8), np.zeros(n + 1, np.int64))


def _selected(every: Sequence[SegmentTexts], kept: Sequence[NDArray[np.bool_]]) -> SegmentTexts:
    """The kept strings; runs of them are copied at once."""
    pieces: list[NDArray[np.uint8]] = [np.zeros(0, np.uint8)]
    sizes: list[NDArray[np.int64]] = [np.zeros(1, np.int64)]
    for texts, mask in zip(every, kept, strict=True):
        edges = np.flatnonzero(np.diff(mask, prepend=False, append=False))
        for start, end in edges.reshape(-1, 2).tolist():
            pieces.append(texts.data[int(texts.starts[start]) : int(texts.starts[end])])
        sizes.append(np.diff(texts.starts)[mask])
    return SegmentTexts(np.concatenate(pieces), np.cumsum(np.concatenate(sizes)))
