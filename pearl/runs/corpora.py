"""A corpus as the document of a task: told from others by its files."""

from __future__ import annotations

from collections.abc import Sequence

from pearl.documents.digest import digest
from pearl.documents.document import file_source
from pearl.retrieval.corpus.sources import SourceFile, find_files


def corpus_files(named: Sequence[str]) -> tuple[SourceFile, ...]:
    """The files of a corpus, in its order; standard input is none of them."""
    paths = [name for name in named if name != "-"]
    return find_files(paths).files if paths else ()


def corpus_source(named: Sequence[str]) -> str:
    """The identity of a corpus without reading it: the names, sizes and times of its files."""
    if "-" in named:
        return ""
    files = corpus_files(named)
    return digest(part for file in files for part in (file.label, file_source(file.path))).hex()
