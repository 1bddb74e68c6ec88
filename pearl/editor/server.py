"""The language server: `handlers` in a session with one editor, over standard input and output."""

from __future__ import annotations

import logging
from typing import BinaryIO

from pygls.exceptions import JsonRpcException

from pearl.editor.handlers import FEATURES
from pearl.editor.session import ActionsFor, EditorSession


def serve(actions_for: ActionsFor, stdin: BinaryIO, stdout: BinaryIO) -> None:
    """Answer a client until it says goodbye or is gone."""
    logging.getLogger("pygls.protocol.json_rpc").addFilter(_told_briefly)
    session = EditorSession(actions_for)
    for method, (handler, options) in FEATURES.items():
        session.feature(method, options)(handler)
    session.start_io(stdin, stdout)


def _told_briefly(record: logging.LogRecord) -> bool:
    """What is refused, as a name that is taken, is an answer: without a traceback."""
    error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
    if isinstance(error, JsonRpcException):
        record.exc_info = None
        record.msg, record.args = "refused: %s", (error.message,)
    return True
