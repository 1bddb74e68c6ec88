"""Opens corpora for commands that search or ask them: options, indexes and their progress."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache, lru_cache, partial
from time import monotonic
from typing import TYPE_CHECKING, Any, get_args

import click

from pearl.cli.files import files_of_runs_beside, found_documents, is_corpus, is_file
from pearl.cli.options import AT_LEAST_1, PATH, grouped, option
from pearl.cli.terminal import notice
from pearl.cli.writing import keep_inputs
from pearl.documents.digest import digest
from pearl.documents.document import Document, Source, load
from pearl.documents.passages import Stem
from pearl.documents.sources import check_names, with_sources
from pearl.errors import UsageError
from pearl.errors.escaping import counted
from pearl.retrieval import SearchSettings

if TYPE_CHECKING:
    from pathlib import Path

    from pearl.retrieval.index import Index, IndexedDocument
    from pearl.retrieval.search import Searcher
    from pearl.runs.executors import Task
    from pearl.runs.request import ExecuteRequest

LINES_S = 10.0  # Seconds between two lines of progress

together_option = option(
    "--together", bool, help="Ask all documents together, as one corpus; each row of a file of rows is a document.",
)  # fmt: skip

source_option = option(
    "--source sources", str, multiple=True, metavar="NAME=PATH",
    help="Give a plan a file or a folder by a name, which may be told the planner: --source 'rules=rules/ : the rules'.",
)  # fmt: skip

NamedSource = tuple[str, str, str]  # The name of a source, its path, and what it is


def named_sources(said: Iterable[str]) -> tuple[NamedSource, ...]:
    """The sources of `--source`."""
    found = []
    for each in said:
        name, _, rest = each.partition("=")
        path, _, about = rest.partition(" : ")
        if not (name and path):
            advice = "--source rules=rules/, or --source 'rules=rules/ : what it is'"
            raise UsageError(f"--source {each}: not NAME=PATH", help=advice)
        found.append((name, path, about))
    check_names(name for name, _, _ in found)
    return tuple(found)


def source_identity(named: Iterable[NamedSource], store: Path | None = None) -> str:
    """The identity of sources without reading them."""
    from pearl.documents.document import file_source

    return digest(
        part
        for name, path, about in named
        for part in (name, about, corpus_identity([path], store) if _is_folder(path) else file_source(path))
    ).hex()  # fmt: skip


def identities(asked: ExecuteRequest, store: Path | None = None) -> dict[str, str]:
    """The identities of the corpus and the sources of a request, if it has them."""
    found = {}
    if asked.together:
        found["corpus"] = corpus_identity(asked.plan_and_documents[1:], store)
    if asked.sources:
        found["sources"] = source_identity(named_sources(asked.sources), store)
    return found


def opened_sources(named: Iterable[NamedSource], identity: str) -> list[Source]:
    """Sources, each opened once for all tasks."""
    return [Source(name, _opened(path, identity), about) for name, path, about in named]


@lru_cache(maxsize=16)
def _opened(path: str, identity: str) -> Document:
    return corpus_document([path]) if _is_folder(path) else load(path)


def _is_folder(path: str) -> bool:
    return not is_file(path) and is_corpus([path])


def sourced(named: tuple[NamedSource, ...]) -> Callable[[Task], Task]:
    """A function that gives the document of a task sources."""
    identity = source_identity(named)

    def change(task: Task) -> Task:
        if not named:
            return task
        is_known = task.source or task.document is None
        source = digest((task.source, identity)).hex() if is_known else ""
        load = partial(_with_sources, task.document, named, identity)
        return replace(task, document=load, source=source, has_sources=True)

    return change


def _with_sources(
    load: Callable[[], Document] | None, named: tuple[NamedSource, ...], identity: str
) -> Document:
    return with_sources(load() if load else None, opened_sources(named, identity))


def corpus_options(command: Any) -> Any:
    """Options for the passages and the index of a corpus."""
    from pearl.documents.units.window import OVERLAP, SIZE

    options = grouped(
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
    """The index of a corpus, kept on the disk and brought up to date; notes go to stderr."""
    from pearl.documents.units import window
    from pearl.retrieval.corpus import Cutting
    from pearl.retrieval.index import Index

    options = options or {}
    size, overlap = options.get("size", window.SIZE), options.get("overlap", window.OVERLAP)
    stem = stem or options.get("stem") or "english"
    tell = _now_and_then()

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
    """A corpus as the document `CTX` of a plan; standard input may be one of its documents."""
    from pearl.retrieval.corpus import CorpusDocument
    from pearl.retrieval.index import Index

    if "-" in named:
        read = (load(path) for path in found_documents(named))
        index = Index.build(
            CorpusDocument(each.name, each.text, pages=each.pages, ocr=each.ocr, notes=each.notes)
            for each in read
        )
    else:
        index = open_index(named)
    name = named[0] if len(named) == 1 else counted(len(index.documents), "document")
    return index.document(name)


def corpus_identity(named: Sequence[str], store: Path | None = None) -> str:
    """The identity of a corpus without reading it, and without the files that runs wrote into it."""
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

    change = sourced(sources)
    for _, path, _ in sources:
        keep_inputs(outs, _files_of([path]) if _is_folder(path) else [path])
    if named and not (together and is_corpus(named)):
        found = found_documents(named)
        keep_inputs(outs, found)
        tasks = over_files(
            found, question=question, plan=plan, parameters=parameters, is_named=is_named
        )
        return [
            change(_read_once(task) if name == "-" else task)
            for name, task in zip(found, tasks, strict=True)
        ]
    keep_inputs(outs, _files_of(named))
    more = f" and {len(named) - 1:,} more" if len(named) > 1 else ""
    id = f"{named[0]}{more}" if named else ", ".join(name for name, _, _ in sources)
    task = Task(id if is_named else "", None, question, plan, parameters=parameters or {})
    if named:
        load, source = partial(corpus_document, tuple(named)), corpus_identity(named)
        task = replace(task, document=load, source=source, kind="corpus")
    return [change(_read_once(task) if "-" in named else task)]


def _files_of(named: Sequence[str]) -> list[str]:
    """The files of a corpus."""
    from pearl.runs.tasks import corpus_files

    return [file.path for file in corpus_files(named, files_of_runs_beside(named))]


def _read_once(task: Task) -> Task:
    """The task with a cached document: standard input can be read only once, but is needed again."""
    assert task.document is not None, "a task over files has one"
    return replace(task, document=cache(task.document))


def _now_and_then() -> Callable[[str], None]:
    """Return a function that reports a line on stderr at most every `LINES_S` seconds."""
    began = shown = monotonic()

    def tell(line: str) -> None:
        nonlocal shown
        if monotonic() - shown >= LINES_S:
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
    tell = _now_and_then()
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
