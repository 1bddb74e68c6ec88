"""Private runs keep text of documents, questions and replies out of messages and files.

The switch holds for a process and its children, and is never turned off again.
"""

from __future__ import annotations

import os

VARIABLE = "PEARL_PRIVATE"
KEY_VARIABLE = "PEARL_STORE_KEY"
"""The variable of the key that encrypts stores: 64 hexadecimal digits."""
HIDDEN = "a private run leaves out what was wrong, because it may quote content"


def is_private() -> bool:
    """Whether this process leaves out content."""
    return os.environ.get(VARIABLE, "").strip().lower() not in ("", "0", "false", "no", "off")


def is_encrypted() -> bool:
    """Whether stores of this process are encrypted."""
    return bool(os.environ.get(KEY_VARIABLE, "").strip())


def keep_private() -> None:
    """Leave out content from now on, in this process and its children."""
    os.environ[VARIABLE] = "1"
