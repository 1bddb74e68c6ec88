"""Datasets in folders and on Hugging Face hubs → rows, by the `datasets` library."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pearl.errors import DataError, UsageError, suggest
from pearl.plugins.extras import require_extra

PROBE_TIMEOUT_S = 10.0
"""Timeout in seconds of the request that checks whether a hub has a dataset."""

_SAVED = ("dataset_dict.json", "state.json")
"""Files that `save_to_disk` writes."""


def read_dataset(name: str, split: str | None = None) -> Iterator[dict[str, Any]]:
    """The rows of a dataset."""
    is_here = Path(name).exists()
    it = "a dataset" if is_here else "there is no such file, and a dataset of this name"
    require_extra("data", f"{name}: {it}", "datasets")
    import datasets

    with _quiet():
        try:
            if any((Path(name) / mark).is_file() for mark in _SAVED):
                data = datasets.load_from_disk(name)
            else:
                with _reachable(name):
                    data = datasets.load_dataset(name)
        except Exception as error:
            raise _unreadable(name, error) from error
    splits = data if isinstance(data, dict) else {str(data.split or "train"): data}
    rows = splits[_choose(split, list(splits), name)]
    try:
        yield from rows
    except Exception as error:
        raise _unreadable(name, error) from error


def _choose(split: str | None, known: list[str], name: str) -> str:
    if split is None and len(known) == 1:
        return known[0]
    if split is None:
        raise UsageError(f"{name}: which split?", help=f"--split {' | '.join(known)}")
    if split not in known:
        help = suggest(split, known, "splits")
        raise UsageError(f"{name}: there is no split '{split}'", help=help)
    return split


def _unreadable(name: str, error: Exception) -> DataError:
    if isinstance(error, ConnectionError):
        reason = "there is no such file, and no hub can be reached for a dataset of this name"
    else:
        cause = error.__cause__ if type(error).__name__ == "DatasetGenerationError" else None
        reason = f"no dataset that can be read: {str(cause or error).partition(chr(10))[0]}"
    return DataError(reason, path=name, help="check the name")


@contextmanager
def _reachable(name: str) -> Iterator[None]:
    """Without a hub, make `datasets` use its cache at once; it would retry for 25 s."""
    from datasets import config
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    before = config.HF_HUB_OFFLINE
    if not Path(name).exists():
        try:
            HfApi().dataset_info(name, timeout=PROBE_TIMEOUT_S)
        except (HfHubHTTPError, HFValidationError):
            pass  # leave the error report to `datasets`
        except Exception:  # noqa: BLE001 - any other failure is one to get there
            config.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        config.HF_HUB_OFFLINE = before


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress progress bars, warnings and logs of the library temporarily."""
    import datasets
    from datasets.utils import logging as talk
    from huggingface_hub.utils import logging as hub_talk

    had_bars = not datasets.are_progress_bars_disabled()
    levels = talk.get_verbosity(), hub_talk.get_verbosity()
    datasets.disable_progress_bars()
    talk.set_verbosity(talk.CRITICAL)
    hub_talk.set_verbosity(talk.CRITICAL)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        talk.set_verbosity(levels[0])
        hub_talk.set_verbosity(levels[1])
        if had_bars:
            datasets.enable_progress_bars()
