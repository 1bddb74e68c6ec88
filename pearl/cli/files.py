"""Classifies files and expands documents named on the command line."""

from __future__ import annotations

import glob
import os
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from pearl import plugins
from pearl.cli.options import AT_LEAST_1, PATH, grouped, opened_folder, option
from pearl.cli.terminal import notice
from pearl.data.storage import is_address
from pearl.documents.document import ROW_SUFFIXES, read_bytes
from pearl.dsl.literals import canonical_name
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import DataError, Diagnostic, UsageError, suggest
from pearl.errors.escaping import counted
from pearl.errors.patterns import lazy_pattern

if TYPE_CHECKING:
    from pearl.data.columns import Position
    from pearl.data.samples import Sample

Kind = Literal["plan", "actions"]

_ACTION_LINE = lazy_pattern(r"^\w+\([^()\n]*\)\s*[:#]", re.M)
_PLAN_LINE = lazy_pattern(
    r"^\s*(?:New actions\b|Question:|\d+\s*[.)]|[-*]?\s*\w+\s*=)", re.M | re.I
)
_ADDRESS = lazy_pattern(r"[a-z][a-z0-9+.-]*://", re.I)

kind_option = option(
    "--kind", click.Choice(["plan", "actions"]), "Kind of the files [default: detected]."
)


def kind_of(name: str, text: str, said: Kind | None = None) -> Kind:
    """The kind of a file: as given, by its suffix, or by its lines."""
    if said is not None:
        return said
    suffix = Path(name).suffix
    if suffix in (".plan", ".actions"):
        return "plan" if suffix == ".plan" else "actions"
    return "actions" if _ACTION_LINE.search(text) and not _PLAN_LINE.search(text) else "plan"


def library_for(library: str | None, domain: str) -> ActionLibrary:
    """The library a plan file is checked against."""
    from pearl.actions.library import load_library
    from pearl.actions.operators import with_operators
    from pearl.data.domains import load_domain

    return with_operators(load_library(library or load_domain(domain).library))


def with_commands(found: Sequence[Diagnostic], name: str) -> list[Diagnostic]:
    """Diagnostics of a file; the help of those with a fix names the command that applies it."""
    context = click.get_current_context()
    words = ["pearl", "check", "--fix", name]
    for setting in ("domain", "library"):
        if context.get_parameter_source(setting) is click.core.ParameterSource.COMMANDLINE:
            words += [f"--{setting}", str(context.params[setting])]
    command = f"'{shlex.join(words)}' mends it"
    return [
        replace(each, help=f"{each.help}; {command}" if each.help else command)
        if each.fix
        else each
        for each in found
    ]


def is_file(name: str) -> bool:
    """Whether a file of that name exists; False for invalid names, such as a long question."""
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


def is_corpus(named: Sequence[str]) -> bool:
    """Whether the named documents are several, or the rows of a file."""
    if len(named) != 1:
        return True
    name = named[0]
    return Path(name).suffix.lower() in ROW_SUFFIXES or (name != "-" and not is_file(name))


def found_documents(named: Sequence[str]) -> list[str]:
    """Expand folders and patterns to documents: of a folder, all files with the suffix of a reader that are not hidden, by path."""
    written = files_of_runs_beside(named)
    found = Counter(path for name in named for path in _documents(name, written))
    if again := [path for path, n in found.items() if n > 1]:
        told = f"{counted(len(again), 'document')} {'is' if len(again) == 1 else 'are'} named twice"
        notice(f"{told}, but read only once: {again[0]}")
    return list(found)


def files_of_runs_beside(named: Sequence[str], store: Path | None = None) -> frozenset[Path]:
    """The files that runs of the store wrote, if there is a folder in which they may be."""
    if not any(map(os.path.isdir, named)):  # False where a NUL is in the name
        return frozenset()
    from pearl.runs.request import files_of_runs

    context = click.get_current_context(silent=True)
    named_store = context.params.get("store") if context else None
    return files_of_runs(store or opened_folder(named_store))


def _documents(name: str, written: frozenset[Path]) -> Iterator[str]:
    path = Path(name)
    if name == "-" or is_file(name):
        if path.suffix.lower() in ROW_SUFFIXES:
            notice(
                f"{name} is one document; to answer a question about each row: 'pearl plan --data {name}' "
                f"and 'pearl execute PLAN --data {name}'"
            )
        yield name
    elif _ADDRESS.match(name):
        stored = (
            f"save a plan (pearl plan, pearl extract --show-plan): pearl execute PLAN --data {name}"
        )
        raise UsageError(
            f"'{name}' is an address; documents are files",
            help=stored if is_address(name) else 'curl -sL ADDRESS | pearl ask "..." -',
        )
    elif path.is_dir() or (glob.has_magic(name) and not path.exists()):
        yield from _expanded(name, written, is_folder=path.is_dir())
    else:
        yield name


def _expanded(name: str, written: frozenset[Path], *, is_folder: bool) -> list[str]:
    """The files of a pattern, or the documents of a folder."""
    from pearl.retrieval.corpus.sources import find_files

    found = find_files([name], written)
    files = [file.path for file in found.files]
    if not is_folder:
        return files
    for note in found.notes:
        notice(note)
    package = "pearl.documents.readers"
    readers = [plugins.load(package, reader) for reader in plugins.names(package)]
    suffixes = {suffix for reader in readers for suffix in reader.SUFFIXES}
    # Files of rows are documents of a corpus, but not documents by themselves.
    documents = [file for file in files if Path(file).suffix.lower() in suffixes]
    if not documents:
        raise DataError(
            "the folder has no documents", path=name,
            help=f"documents have the suffixes {', '.join(sorted(suffixes))}",
        )  # fmt: skip
    if n := found.n_other + len(files) - len(documents):
        notice(f"{name}: {counted(n, 'file')} of other kinds left out")
    return documents


data_options = grouped(
    option(
        "--data", PATH, metavar="FILE|NAME",
        help="Samples in a format of the domain: JSONL, CSV, Parquet, a dataset; or files at s3://, gs://, az://, or of a "
        "pattern.",
    ),
    option("--split", str, "Split of a dataset.", metavar="NAME"),
    option(
        "--column columns", str, metavar="FIELD=COLUMN", multiple=True,
        help="Column that holds a field of the samples, such as question=text.",
    ),
    option("--subset", str, "Only samples of this subset, such as hard.", metavar="NAME"),
    option("--limit", AT_LEAST_1, "Only the first N samples.", metavar="N"),
    option(
        "--allow-outside", bool, help="Allow rows to name documents outside the folder of their file.",
    ),
)  # fmt: skip
"""The options of `read_data`, except the domain, which is a setting."""


def check_data(settings: dict[str, Any]) -> None:
    """Reject data options without `--data`."""
    said = {f"--{name}" for name in ("split", "subset", "limit") if settings[name] is not None}
    said |= {"--column"} if settings["columns"] else set()
    if settings["data"] is None and said:
        raise UsageError(f"{', '.join(sorted(said))} without --data", help="--data FILE")


def read_data(settings: dict[str, Any]) -> tuple[list[Sample], list[DataError]]:
    """The samples of `--data`, with an error for every invalid row."""
    found = list(open_samples(settings))
    samples = [one for one in found if not isinstance(one, DataError)]
    return samples, [one for one in found if isinstance(one, DataError)]


def open_samples(
    settings: dict[str, Any], position: Position | None = None
) -> Iterator[Sample | DataError]:
    """Yield samples and errors in the order of the data; `position` as in `Source`."""
    from pearl.data.domains import Source, read_samples

    columns = named_values("--column", settings["columns"], "FIELD=COLUMN")
    source = Source(
        settings["data"], settings["split"], columns, settings["allow_outside"], position
    )
    subset, limit = settings["subset"], settings["limit"]
    n_samples, subsets = 0, set[str]()
    for sample in read_samples(settings["domain"], source):
        if isinstance(sample, DataError):
            yield sample
            continue
        subsets |= sample.subsets
        if subset is None or subset in sample.subsets:
            yield sample
            n_samples += 1
            if n_samples == limit:
                return
    if subset is not None and subset not in subsets:
        help = suggest(subset, sorted(subsets), "subsets")
        raise UsageError(f"no sample is in subset '{subset}'", help=help)


def named_values(option: str, said: Sequence[str], form: str = "NAME=VALUE") -> dict[str, str]:
    """The values of an option that is given for several names, each once."""
    values: dict[str, str] = {}
    for each in said:
        name, equals, value = (part.strip() for part in each.partition("="))
        if not (name and equals and value):
            raise UsageError(f"{option} {each}: not {form}", help=f"{option} {form.lower()}")
        if name in values:
            raise UsageError(f"{option} gives '{name}' twice", help="give each name one value")
        values[canonical_name(name)] = value
    return values


def read_input(path: str) -> str:
    """A text file given on the command line; `-` is stdin."""
    label = "<stdin>" if path == "-" else path
    try:
        return read_bytes(path, label).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"not UTF-8 text: {error.reason} at byte {error.start}",
            path=label,
            help="save the file as UTF-8",
        ) from None
