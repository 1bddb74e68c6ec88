"""Prediction + gold answer → score from 0 to 1. Unmapped and failed predictions score 0."""

from __future__ import annotations

from collections.abc import Sequence

from pearl.documents.words import words
from pearl.errors import PearlError, UsageError
from pearl.evals.log import EvalLog, EvalRecord
from pearl.evals.scorers import EXACT, load_scorer
from pearl.interpreter.chooser import read_choice


def right_option(options: Sequence[str], reference: str) -> int | None:
    """The index of the only option that equals a reference answer, or None.

    Example:
        >>> right_option(["a mill", "The boat"], "boat.")
        1
    """
    found = [i for i, option in enumerate(options) if words(option) == words(reference)]
    return found[0] if len(found) == 1 else None


def score(record: EvalRecord, scorer: str = EXACT) -> float:
    """1 for the correct option, else 0; for free text, the scorer's value.

    Example:
        >>> record = EvalRecord(sample="1", method="mcq", status="answered", question="Who?", gold=1)
        >>> score(record), score(record.model_copy(update={"choice": 1}))
        (0.0, 1.0)
    """
    if record.status == "failed":
        return 0.0
    if record.gold is not None:
        return float(record.choice == record.gold)
    if record.reference is not None:
        try:
            found = load_scorer(scorer)
            compared: tuple[str, str] | None = (record.answer, record.reference)
            if hasattr(found, "compared"):
                compared = found.compared(record)
            return 0.0 if compared is None else found.score(*compared)
        except PearlError:
            raise
        except Exception as error:  # a scorer may be anybody's
            raise UsageError(
                f"the scorer '{scorer}' failed: {reason(error)}",
                help="fix it, or name another --scorer: replies are kept",
            ) from error
    return 0.0


def reason(error: Exception) -> str:
    """The text of an error in a record: its type and the first line of its message."""
    first = str(error).partition("\n")[0].encode(errors="backslashreplace").decode()
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def rescored(log: EvalLog, scorer: str | None = None) -> EvalLog:
    """Parse the replies of a log again and rescore its records; calls no model.

    Records keep the model's reply, so changes of the parser take effect.
    """
    header = log.header.model_copy(update={"scorer": scorer or log.header.scorer})
    return EvalLog(header, tuple(_rescored(record, header.scorer) for record in log.records))


def _rescored(record: EvalRecord, scorer: str) -> EvalRecord:
    if record.status != "failed" and record.options:
        choice = read_choice(record.reply, record.options)
        record = record.model_copy(update={"choice": choice})
    return record.model_copy(update={"score": score(record, scorer)})
