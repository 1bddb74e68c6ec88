"""Reason over long documents: a question becomes a plan, the plan runs over the document.

>>> import pearl
>>> document = pearl.Document("The lamp failed at ten. Ines lit a fire because the lamp failed.")
>>> answer = pearl.run(pearl.Pearl().ask("Why did Ines light a fire?", document))
>>> print(answer.evidence[0].text)
Ines lit a fire because the lamp failed.
"""

from __future__ import annotations

from importlib import import_module
from io import StringIO
from typing import TYPE_CHECKING, Any

from pearl.errors.callers import AS_ARGUMENTS, SHOWN_BY

if TYPE_CHECKING:
    from pearl.actions.library import load_library as load_library
    from pearl.documents.document import Document as Document
    from pearl.documents.document import load as load
    from pearl.dsl.checker import CheckedPlan as CheckedPlan
    from pearl.errors import PearlError as PearlError
    from pearl.interpreter.answer import Answer as Answer
    from pearl.pipeline import Pearl as Pearl
    from pearl.plugins.version import __version__ as __version__
    from pearl.runs.executors import Task as Task
    from pearl.runs.session import Session as Session
    from pearl.runs.session import run as run
    from pearl.runs.tasks import over_files as over_files
    from pearl.runs.typed_api import Extraction as Extraction
    from pearl.runs.typed_api import extract as extract
    from pearl.trace import Trace as Trace
    from pearl.trace import read_trace as read_trace

_HOME = {
    "Answer": "pearl.interpreter.answer",
    "CheckedPlan": "pearl.dsl.checker",
    "Document": "pearl.documents.document",
    "Extraction": "pearl.runs.typed_api",
    "Pearl": "pearl.pipeline",
    "PearlError": "pearl.errors",
    "Session": "pearl.runs.session",
    "Task": "pearl.runs.executors",
    "Trace": "pearl.trace",
    "__version__": "pearl.plugins.version",
    "extract": "pearl.runs.typed_api",
    "load": "pearl.documents.document",
    "load_library": "pearl.actions.library",
    "over_files": "pearl.runs.tasks",
    "read_trace": "pearl.trace",
    "run": "pearl.runs.session",
}
__all__ = [name for name in _HOME if name != "__version__"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that importing `pearl` costs nothing."""
    if name not in _HOME:
        raise AttributeError(f"module 'pearl' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(_HOME)


def _shown(shown: object) -> str:
    from pearl.cli.output import print_answer
    from pearl.interpreter.answer import Answer

    if not isinstance(shown, Answer):
        return str(shown)
    file = StringIO()
    print_answer(shown, file)
    return file.getvalue()


def _with_arguments(text: str) -> str:
    from pearl.arguments import with_arguments

    return with_arguments(text)


SHOWN_BY.append(_shown)
AS_ARGUMENTS.append(_with_arguments)
