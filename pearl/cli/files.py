"""Read the files named on the command line (plans, data, documents, corpora, sources) and make tasks of them."""

from __future__ import annotations

import dataclasses
import glob
import os
import shlex
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache, lru_cache, partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, get_args

import click
from msgspec.structs import replace

from pearl.cli.options import ABOUT, AT_LEAST_1, PATH, SEARCH, grouped, opened_folder, option
from pearl.cli.terminal import notice
from pearl.cli.writing import refuse_overwriting_inputs
from pearl.data.storage import is_address
from pearl.documents.digest import digest
from pearl.documents.document import (
    ROW_SUFFIXES,
    Document,
    Source,
    document_suffixes,
    file_source,
    load,
    read_bytes,
)
from pearl.dsl.literals import canonical_name
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import DataError, Diagnostic, UsageError, suggest
from pearl.errors.escaping import counted

if TYPE_CHECKING:
    from pearl.data.rows import Position
    from pearl.data.samples import Sample
    from pearl.documents.passages import Stem
    from pearl.retrieval import SearchSettings
    from pearl.retrieval.index import Index, IndexedDocument
    from pearl.retrieval.search import Searcher
    from pearl.runs.executors import Task
    from pearl.runs.request import ExecuteRequest

Kind = Literal["plan", "actions"]

kind_option = option(
    "--kind",
    click.Choice(["plan", "actions"]),
    "Kind of the files [default: by the suffix, else plan].",
)


def kind_of(name: str, said: Kind | None = None) -> Kind:
    """The kind of a file: `said` if given, else by its suffix."""
    return said or ("actions" if Path(name).suffix == ".actions" else "plan")


def library_for(library: str | None, domain: str) -> ActionLibrary:
    """The library a plan file is checked against."""
    from pearl.actions.library import load_library
    from pearl.actions.operators import with_operators
    from pearl.data.domains import load_domain

    return with_operators(load_library(library or load_domain(domain).library))


def with_commands(found: Sequence[Diagnostic], name: str) -> list[Diagnostic]:
    """Add the command that applies the fix to the help of each diagnostic that has one."""
    context = click.get_current_context()
    words = ["pearl", "check", "--fix", name]
    for setting in ("domain", "library", "kind"):
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
    """Whether the names mean several documents: several names, a folder, a pattern, or a file of rows."""
    if len(named) != 1:
        return True
    name = named[0]
    return Path(name).suffix.lower() in ROW_SUFFIXES or (name != "-" and not is_file(name))


def expand_documents(named: Sequence[str]) -> list[str]:
    """Expand folders and patterns to documents. A folder gives all visible files that a reader can read, by path."""
    written = files_of_runs_beside(named)
    documents = Counter(path for name in named for path in _documents(name, written))
    if repeated := [path for path, n in documents.items() if n > 1]:
        text = f"{counted(len(repeated), 'document')} {'is' if len(repeated) == 1 else 'are'} named twice"
        notice(f"{text}, but read only once: {repeated[0]}")
    return list(documents)


def files_of_runs_beside(named: Sequence[str], store: Path | None = None) -> frozenset[Path]:
    """The files that runs of the store wrote; none unless a folder, which may contain them, is named."""
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
    elif name.partition("://")[1] and name.partition("://")[0].isalnum():  # https://..., s3://...
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
    from pearl.retrieval.corpus import find_files

    found = find_files([name], written)
    files = [file.path for file in found.files]
    if not is_folder:
        return files
    for note in found.notes:
        notice(note)
    suffixes = document_suffixes()
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
    ABOUT,
    option(
        "--data", PATH, metavar="FILE|NAME", is_first=True,
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
        raise UsageError(
            f"{', '.join(sorted(said))} without --data", help="name the file of rows: --data FILE"
        )


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
    """Parse an option `NAME=VALUE` that may be repeated; each name may be given once."""
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


# --- corpora and named sources ------------------------------------------------------------

INDEXING_LINES_S = 10.0  # Seconds between two lines of progress

together_option = option(
    "--together", bool, group=ABOUT, is_first=True, help="Ask all documents together, as one corpus; each row of a file of rows is a document.",
)  # fmt: skip

source_option = option(
    "--source sources", str, group=ABOUT, multiple=True, metavar="NAME=PATH",
    help="A file or folder that plans read by this name; a description may follow: --source 'rules=rules/ : the rules'.",
)  # fmt: skip

NamedSource = tuple[str, str, str]  # The name of a source, its path, and what it is


def named_sources(options: Iterable[str]) -> tuple[NamedSource, ...]:
    """The sources of `--source`."""
    from pearl.documents.sources import check_names  # imported on use: few commands have sources

    sources = []
    for text in options:
        name, _, rest = text.partition("=")
        path, _, about = rest.partition(" : ")
        if not (name and path):
            advice = "--source rules=rules/, or --source 'rules=rules/ : what it is'"
            raise UsageError(f"--source {text}: not NAME=PATH", help=advice)
        sources.append((name, path, about))
    if sources:
        check_names(name for name, _, _ in sources)
    return tuple(sources)


def source_identity(named: Iterable[NamedSource], store: Path | None = None) -> str:
    """The identity of sources without reading them."""
    return digest(
        part
        for name, path, about in named
        for part in (name, about, corpus_identity([path], store) if _is_folder(path) else file_source(path))
    ).hex()  # fmt: skip


def identities(asked: ExecuteRequest, store: Path | None = None) -> dict[str, str]:
    """The identities of the corpus and the sources of a request; {} without them."""
    digests = {}
    if asked.together:
        digests["corpus"] = corpus_identity(asked.plan_and_documents[1:], store)
    if asked.sources:
        digests["sources"] = source_identity(named_sources(asked.sources), store)
    return digests


def opened_sources(named: Iterable[NamedSource], identity: str) -> list[Source]:
    """Sources, each opened once for all tasks."""
    return [Source(name, _opened(path, identity), about) for name, path, about in named]


@lru_cache(maxsize=16)
def _opened(path: str, identity: str) -> Document:
    return corpus_document([path]) if _is_folder(path) else load(path)


def _is_folder(path: str) -> bool:
    return not is_file(path) and is_corpus([path])


def source_adder(named: tuple[NamedSource, ...]) -> Callable[[Task], Task]:
    """Return a function that adds the sources to the document of a task."""
    identity = source_identity(named)

    def change(task: Task) -> Task:
        if not named:
            return task
        is_known = task.source or task.document is None
        source = digest((task.source, identity)).hex() if is_known else ""
        load = partial(_with_sources, task.document, named, identity)
        return dataclasses.replace(task, document=load, source=source, has_sources=True)

    return change


def _with_sources(
    load: Callable[[], Document] | None, named: tuple[NamedSource, ...], identity: str
) -> Document:
    from pearl.documents.sources import with_sources

    return with_sources(load() if load else None, opened_sources(named, identity))


def corpus_options(command: Any) -> Any:
    """Options for the passages and the index of a corpus."""
    from pearl.documents.passages import Stem
    from pearl.documents.units.window import OVERLAP, SIZE

    options = grouped(
        SEARCH,
        option(
            "--unit", str, metavar="NAME",
            help="Unit of passages: paragraph, sentence, window, record (rows of tables), ... "
            "[default: paragraphs of files, rows whole].",
        ),
        option("--size", AT_LEAST_1, "Characters of a window.", metavar="N", default=SIZE),
        option(
            "--overlap", click.IntRange(min=0), metavar="N", default=OVERLAP, help="Characters that adjacent windows share.",
        ),
        option("--stem", click.Choice(get_args(Stem)), "How words are stemmed."),
        option("--at", PATH, "Folder of the index [default: in the cache].", metavar="FOLDER"),
    )  # fmt: skip
    return options(command)


def open_index(
    corpus: Sequence[str],
    options: Mapping[str, Any] | None = None,
    *,
    stem: Stem | None = None,
    is_fresh: bool = False,
    with_update: bool = True,
) -> Index:
    """Open the stored index of a corpus and update it; print notes to stderr."""
    from pearl.documents.units import window
    from pearl.retrieval.corpus import Cutting
    from pearl.retrieval.index import Index

    options = options or {}
    size, overlap = options.get("size", window.SIZE), options.get("overlap", window.OVERLAP)
    stem = stem or options.get("stem") or "english"
    tell = _throttled_notice()

    def progress(n_files: int, total: int, n_documents: int) -> None:
        of = f"{n_files:,} of {counted(total, 'file')}, " if total > 1 else ""
        tell(f"indexing: {of}{counted(n_documents, 'document')}")

    index = Index.open(
        *corpus, cutting=Cutting(options.get("unit") or "", size, overlap), stem=stem, at=options.get("at"),
        is_fresh=is_fresh, with_update=with_update, progress=progress,
        without=files_of_runs_beside(corpus),
    )  # fmt: skip
    for note in index.notes:
        notice(note)
    return index


def corpus_document(named: Sequence[str]) -> IndexedDocument:
    """Open a corpus as the document `CTX` of a plan; one of its documents may be standard input."""
    from pearl.retrieval.corpus import CorpusDocument
    from pearl.retrieval.index import Index

    if "-" in named:
        read = (load(path) for path in expand_documents(named))
        index = Index.build(
            CorpusDocument(each.name, each.text, pages=each.pages, ocr=each.ocr, notes=each.notes)
            for each in read
        )
    else:
        index = open_index(named)
    name = named[0] if len(named) == 1 else counted(len(index.documents), "document")
    return index.document(name)


def corpus_identity(named: Sequence[str], store: Path | None = None) -> str:
    """The identity of a corpus by the names, sizes and times of its files, except those that runs wrote."""
    from pearl.runs.tasks import corpus_source

    return corpus_source(named, files_of_runs_beside(named, store))


def document_tasks(
    named: Sequence[str],
    *,
    together: bool,
    question: str | None = None,
    plan: str | None = None,
    parameters: Mapping[str, str] | None = None,
    is_named: bool = True,
    outs: Iterable[str | None] = (),
    sources: tuple[NamedSource, ...] = (),
) -> list[Task]:
    """Tasks of a question or a plan: one for each document, or one for all of them as a corpus."""
    from pearl.runs.executors import Task
    from pearl.runs.tasks import over_files

    change = source_adder(sources)
    for _, path, _ in sources:
        refuse_overwriting_inputs(outs, _files_of([path]) if _is_folder(path) else [path])
    if named and not (together and is_corpus(named)):
        found = expand_documents(named)
        refuse_overwriting_inputs(outs, found)
        tasks = over_files(
            found, question=question, plan=plan, parameters=parameters, is_named=is_named
        )
        return [
            change(_read_once(task) if name == "-" else task)
            for name, task in zip(found, tasks, strict=True)
        ]
    refuse_overwriting_inputs(outs, _files_of(named))
    more = f" and {len(named) - 1:,} more" if len(named) > 1 else ""
    id = f"{named[0]}{more}" if named else ", ".join(name for name, _, _ in sources)
    task = Task(id if is_named else "", None, question, plan, parameters=parameters or {})
    if named:
        load, source = partial(corpus_document, tuple(named)), corpus_identity(named)
        task = dataclasses.replace(task, document=load, source=source, kind="corpus")
    return [change(_read_once(task) if "-" in named else task)]


def _files_of(named: Sequence[str]) -> list[str]:
    """The files of a corpus."""
    from pearl.runs.tasks import corpus_files

    return [file.path for file in corpus_files(named, files_of_runs_beside(named))]


def _read_once(task: Task) -> Task:
    """The task with a cached document: standard input can be read only once, but is needed again."""
    assert task.document is not None, "a task over files has one"
    return dataclasses.replace(task, document=cache(task.document))


def _throttled_notice() -> Callable[[str], None]:
    """Return a function that reports a line on stderr at most every `INDEXING_LINES_S` seconds."""
    began = shown = monotonic()

    def tell(line: str) -> None:
        nonlocal shown
        if monotonic() - shown >= INDEXING_LINES_S:
            shown = monotonic()
            notice(f"{line}, {shown - began:.0f} s")

    return tell


@asynccontextmanager
async def searcher_opened(
    settings: SearchSettings, options: Mapping[str, Any]
) -> AsyncIterator[Searcher]:
    """Open the searcher of the options, and report its server on stderr."""
    from pearl.interpreter.searchers import new_searcher
    from pearl.llm.client import ClientSettings

    url = options.get("embeddings_url")
    if url and not options["embeddings"]:
        raise UsageError("--embeddings-url without --embeddings", help="--embeddings openai:NAME")
    tell = _throttled_notice()
    searcher = new_searcher(
        ClientSettings(), settings, options["embeddings"], embeddings_url=url,
        progress=lambda n, total: tell(f"embeddings: {n:,} of {total:,} passages"),
    )  # fmt: skip
    if told := getattr(searcher.embedder, "notice", ""):
        notice(told)
    try:
        yield searcher
    finally:
        await searcher.aclose()
