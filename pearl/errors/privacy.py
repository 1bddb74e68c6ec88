"""Private runs keep text of documents, questions and replies out of messages and files, in child processes too."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "PEARL_PRIVATE"
HIDDEN = "a private run leaves out what was wrong, because it may quote content"


def is_private() -> bool:
    """Whether this process leaves out content."""
    return os.environ.get(VARIABLE, "").strip().lower() not in ("", "0", "false", "no", "off")


def keep_private() -> None:
    """Leave out content from now on, in this process and its children."""
    os.environ[VARIABLE] = "1"
    os.umask(0o077)  # for the files that the user names


@contextmanager
def privacy_restored() -> Iterator[None]:
    """Restore the switch and the umask at the end, for code that runs commands within its process."""
    before, umask = os.environ.get(VARIABLE), os.umask(0o077)
    os.umask(umask)
    try:
        yield
    finally:
        os.umask(umask)
        if before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = before
