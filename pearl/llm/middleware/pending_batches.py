"""Records of submitted batches whose replies are not read yet: one small file per batch.

A file is synced to disk before the batch is created, and removed when all replies are stored. So
every billed batch has its file, even after a kill.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from pydantic import BaseModel, ValidationError

from pearl.errors import StoreError

__all__ = ["PendingBatch", "PendingBatches"]

FOLDER = "batches"

_NEW = os.O_CREAT | os.O_WRONLY | os.O_TRUNC


class _Saved(BaseModel):
    v: int = 1
    server: str
    model: str
    file: str
    batch: str | None
    keys: list[str]


@dataclass(eq=False, slots=True)
class PendingBatch:
    """A batch that was submitted, or was about to be.

    Attributes:
        file_id: Its file of requests, as the server calls it.
        keys: Of its requests, 32 bytes each.
        batch_id: None where the server's answer did not come.
        path: Where it is kept; None where it is kept nowhere.
    """

    file_id: str
    keys: frozenset[bytes]
    batch_id: str | None = None
    path: Path | None = None


class PendingBatches:
    """The batches of one model at one server that are not read yet.

    Args:
        folder: Of the store; None to keep nothing beyond this process.
        server: Its address.
        model: The model's name.

    Raises:
        StoreError: What is kept cannot be read.
    """

    def __init__(self, folder: Path | None, server: str, model: str) -> None:
        self._folder = folder and folder / FOLDER
        self._server = server
        self._model = model
        self._by_key: dict[bytes, PendingBatch] = {}
        if self._folder is not None:
            try:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                for path in sorted(self._folder.glob("*.json")):
                    self._load(path)
            except OSError as error:
                raise _unusable(self._folder, error) from None

    def take(self, keys: Iterable[bytes]) -> list[PendingBatch]:
        """The batches with these requests; each is given once, unless it is put back."""
        found = {id(record): record for key in keys if (record := self._by_key.get(key))}
        for record in found.values():
            for key in record.keys:
                if self._by_key.get(key) is record:
                    del self._by_key[key]
        return list(found.values())

    def put_back(self, record: PendingBatch) -> None:
        """Have a batch found again: it was not read after all."""
        self._by_key.update(dict.fromkeys(record.keys, record))

    def add(self, file_id: str, keys: Iterable[bytes]) -> PendingBatch:
        """Remember a batch that is about to be created; returns when it is on the disk.

        Raises:
            StoreError: It is not.
        """
        record = PendingBatch(file_id, frozenset(keys))
        if self._folder is not None:
            record.path = self._folder / f"{uuid4().hex}.json"
            self._save(record)
        return record

    def created(self, record: PendingBatch, batch_id: str) -> None:
        """Remember what the server calls a batch; returns when that is on the disk.

        Raises:
            StoreError: It is not.
        """
        record.batch_id = batch_id
        self._save(record)

    def remove(self, record: PendingBatch) -> None:
        """Remove the record of a batch that was read."""
        if record.path is not None:
            record.path.unlink(missing_ok=True)

    def _load(self, path: Path) -> None:
        try:
            saved = _Saved.model_validate_json(path.read_bytes())
            keys = frozenset(map(bytes.fromhex, saved.keys))
        except FileNotFoundError:
            return  # another process has read its batch meanwhile
        except (ValidationError, ValueError):
            raise StoreError(
                "it is no record of a batch",
                path=path,
                help="remove it: its requests may be submitted, and paid, once more",
            ) from None
        if (saved.server, saved.model) == (self._server, self._model):
            self.put_back(PendingBatch(saved.file, keys, saved.batch, path))

    def _save(self, record: PendingBatch) -> None:
        if record.path is None:
            return
        saved = _Saved(
            server=self._server,
            model=self._model,
            file=record.file_id,
            batch=record.batch_id,
            keys=[key.hex() for key in sorted(record.keys)],
        )
        part = record.path.with_suffix(".part")
        try:
            with os.fdopen(os.open(part, _NEW, 0o600), "wb") as file:
                file.write(saved.model_dump_json().encode())
                file.flush()
                os.fsync(file.fileno())
            part.replace(record.path)
            folder = os.open(part.parent, os.O_RDONLY)  # the name is on the disk with its folder
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise _unusable(record.path, error) from None


def _unusable(path: Path, error: OSError) -> StoreError:
    return StoreError(error.strerror or str(error), path=path)
