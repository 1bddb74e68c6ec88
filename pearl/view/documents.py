"""`ResultRecord` → the same with the document that it was read of, where that may be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pearl.documents.document import Document, load
from pearl.errors import PearlError
from pearl.trace import RunStarted
from pearl.view.record import ResultRecord


def with_document(record: ResultRecord, folders: Sequence[Path]) -> ResultRecord:
    """Load the document of a record; what it cannot have, a page says.

    Rows come from anyone, and so do the names in them: a file is read only if it lies in one of the
    folders or below, however it is named.
    """
    name = record.row.get("document")
    if record.document is not None or not isinstance(name, str) or not name.strip():
        return record
    wanted = next((e.document_sha256 for e in record.events if isinstance(e, RunStarted)), None)
    problems: list[str] = []
    other: Document | None = None
    for folder in folders:
        for path in dict.fromkeys([_within(folder, name), _within(folder, Path(name).name)]):
            if path is None:
                continue
            try:
                document = load(path, name=name)
            except PearlError as error:
                problems.append(f"The document cannot be read: {error.message.splitlines()[0]}.")
                continue
            if wanted is None or document.digest == wanted:
                return replace(record, document=document)
            other = other or document
    told = () if other else tuple(problems[:1])
    return replace(record, document=other, problems=(*record.problems, *told))


def _within(folder: Path, name: str) -> Path | None:
    """A file of a folder or below it, links resolved; None where there is none."""
    try:
        root, path = folder.resolve(), (folder / name).resolve()
        return path if path.is_relative_to(root) and path.is_file() else None
    except (OSError, ValueError, RuntimeError):
        return None
