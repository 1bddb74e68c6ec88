"""Records of submitted batches whose replies are not read yet: one small file per batch.

A file is synced to disk before the batch is created, and removed when all replies are stored. So
every billed batch has its file, even after a kill.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pearl.errors import StoreError

FOLDER = "batches"

_NEW = os.O_CREAT | os.O_WRONLY | os.O_TRUNC


class PendingBatch(BaseModel):
    """A batch that was submitted, or was about to be."""

    model_config = ConfigDict(ser_json_bytes="hex", val_json_bytes="hex")

    server: str
    model: str
    file_id: str
    keys: frozenset[bytes]
    batch_id: str | None = None
    path: Path | None = Field(default=None, exclude=True)


class PendingBatches:
    """The batches of one model at one server that are not read yet."""

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
        """Take the batches with these requests; each is returned once, unless it is put back."""
        found = {id(record): record for key in keys if (record := self._by_key.get(key))}
        for record in found.values():
            for key in record.keys:
                if self._by_key.get(key) is record:
                    del self._by_key[key]
        return list(found.values())

    def put_back(self, record: PendingBatch) -> None:
        """Return a batch that was not read after all."""
        self._by_key.update(dict.fromkeys(record.keys, record))

    def add(self, file_id: str, keys: Iterable[bytes]) -> PendingBatch:
        """Record a batch that is about to be created, synced to disk."""
        record = PendingBatch(
            server=self._server,
            model=self._model,
            file_id=file_id,
            keys=frozenset(keys),
            path=self._folder and self._folder / f"{uuid4().hex}.json",
        )
        _save(record)
        return record

    def created(self, record: PendingBatch, batch_id: str) -> None:
        """Record the server's id of a batch, synced to disk."""
        record.batch_id = batch_id
        _save(record)

    def remove(self, record: PendingBatch) -> None:
        """Remove the record of a batch that was read."""
        if record.path is not None:
            record.path.unlink(missing_ok=True)

    def _load(self, path: Path) -> None:
        try:
            record = PendingBatch.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return  # another process has read its batch meanwhile
        except ValidationError:
            raise StoreError(
                "it is no record of a batch",
                path=path,
                help="remove it: its requests may be submitted, and paid, once more",
            ) from None
        if (record.server, record.model) == (self._server, self._model):
            record.path = path
            self.put_back(record)


def _save(record: PendingBatch) -> None:
    if record.path is None:
        return
    part = record.path.with_suffix(".part")
    try:
        with os.fdopen(os.open(part, _NEW, 0o600), "wb") as file:
            file.write(record.model_dump_json().encode())
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
