"""The identity of results (configuration, prompts, weights, software), for file headers, row keys and cluster nodes."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from pkgutil import get_data
from typing import Any

from pearl.actions.library import library_digest
from pearl.documents.digest import digest, text_sha256
from pearl.documents.document import readers_sha256
from pearl.dsl.nodes import print_plan
from pearl.llm import parameters_of
from pearl.llm.backends import address_of
from pearl.pipeline import Pearl
from pearl.plugins.version import __version__
from pearl.settings import Deciding

DECIDING = Deciding.__struct_fields__

KEYS = 4  # Version of row keys; a run with another version is not resumed
SAMPLED_BYTES = 2**20  # Bytes read at each end of a model file


class RunConfig(Deciding, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The basis of a header; a file is continued only if all of these fields are equal."""

    kind: str
    v: int
    pearl_version: str
    domain: str
    model: str
    library: str
    n_actions: int
    library_sha256: str
    bank: str
    n_examples: int
    bank_sha256: str = ""


def run_config(pearl: Pearl) -> dict[str, Any]:
    """The fields of a `RunConfig` except `kind` and `v`, for the header of a file."""
    bank = "\n".join(print_plan(example.plan) for example in pearl.material.examples)
    planned = pearl.planner.settings
    deciding = {
        name: pearl.settings.get(name, getattr(pearl.client.settings, name, None))
        for name in DECIDING
    }
    return {
        "pearl_version": __version__,
        "domain": pearl.domain_name,
        "model": pearl.client.name,
        "library": pearl.library.name,
        "n_actions": len(pearl.library),
        "library_sha256": library_digest(pearl.library),
        "bank": Path(pearl.material.bank).name,
        "n_examples": len(pearl.material.examples),
        "bank_sha256": text_sha256(bank),
        **deciding,
        **{
            f"{role}_model": client.name
            for role, client in pearl.clients.items()
            if client is not pearl.client
        },
        # Settings that default to the model or the domain are stored with their effective value.
        "ranker": pearl.ranker,
        "window": pearl.limits.window,
        "as_of": None if planned.as_of is None else planned.as_of.isoformat(),
        "fiscal_year_end": list(planned.fiscal_year_end),
    }


def fingerprint(pearl: Pearl) -> dict[str, object]:
    """Everything in a `Pearl` that determines outcomes, as JSON data; without addresses, which may differ between shards."""
    weights = [
        _weights(Path(name))
        for client in dict.fromkeys(pearl.clients.values())
        if (name := client.name.partition(":")[2]) and address_of(client.name) is None
    ]
    return {
        **run_config(pearl),
        **parameters_of(pearl.client.settings),
        "keys": KEYS,
        "readers_sha256": readers_sha256(),
        "prompts_sha256": prompts_sha256(),
        "weights": " ".join(weights),
    }


def _weights(path: Path) -> str:
    """Identity of a model file, or of the files in a model folder."""
    try:
        if path.is_dir():
            files = sorted(each for each in path.rglob("*") if each.is_file())
            return digest(f"{each.relative_to(path)} {_ends(each)}" for each in files).hex()
        return _ends(path)
    except OSError:
        return ""


def _ends(path: Path) -> str:
    n_bytes = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(SAMPLED_BYTES)
        file.seek(max(0, n_bytes - SAMPLED_BYTES))
        return digest([str(n_bytes), head, file.read()]).hex()


def version() -> str:
    """Versions that determine results: of Python, pearl and its prompts."""
    python = ".".join(platform.python_version_tuple()[:2])
    return f"pearl {__version__} (prompts {prompts_sha256()[:8]}, Python {python})"


_PROMPTS = (
    "pearl.interpreter.composing",
    "pearl.interpreter.prompt",
    "pearl.llm.messages",
    "pearl.planner.prompt",
    "pearl.replies.extracted",
    "pearl.replies.step_replies",
    "pearl.tables.lookup",
)
"""Modules that contain the texts of prompts."""


@cache
def prompt_digests() -> Mapping[str, str]:
    """Module → SHA-256 of its source, which contains templates of prompts, in hexadecimal."""
    # Of the source, because rendering all prompts would import as many modules as a run.
    packages = {name: name.rpartition(".") for name in _PROMPTS}
    return {
        name: sha256(get_data(package, f"{module}.py") or b"").hexdigest()
        for name, (package, _, module) in packages.items()
    }


def prompts_sha256() -> str:
    """SHA-256 of all modules with prompts, in hexadecimal."""
    return digest(prompt_digests().values()).hex()
