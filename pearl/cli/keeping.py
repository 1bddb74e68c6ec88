"""What of a command goes into the store: its replies and, where it writes a file, its outcomes."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pearl.cli.storing import opened_folder
from pearl.cli.writing import OutputWriter
from pearl.documents.digest import file_sha256
from pearl.errors import StoreError
from pearl.errors.addresses import LEFT_OUT, redacted
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.runs.executors import DEFAULT, Execute, Task, load_executor, run_with

if TYPE_CHECKING:
    from pearl.llm import Completion
    from pearl.llm.middleware.dedup_cache import Replies
    from pearl.pipeline import Pearl
    from pearl.runs.shard import Shard
    from pearl.runs.store import RunSpec, Store

__all__ = ["RunOptions", "content"]


def content(path: str) -> str:
    """What tells a file from others: its SHA-256; of a folder, or what is none of these, the path.

    What can be read but once is never the same again.
    """
    if Path(path).is_fifo():
        return f"{path} {time_ns()}"
    if not Path(path).is_file():  # a device may have no end
        return path
    try:
        return file_sha256(Path(path))
    except OSError:
        return path


class FreshCache:
    """Keeps replies, and finds only those that were kept since: what is begun anew is asked anew."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: set[bytes] = set()

    async def reply(self, key: bytes) -> Completion | None:
        """The reply that was kept under a key since then."""
        return await self._store.reply(key) if key in self._known else None

    async def keep(self, key: bytes, completion: Completion) -> None:
        """Keep a reply."""
        await self._store.keep(key, completion)
        self._known.add(key)


@dataclass
class RunOptions:
    """The store of one command, and the run that it is.

    Attributes:
        command: The name of the command.
        inputs: Name and digest, or path, of what is worked on.
        store: The folder, or None for the default one.
        is_fresh: Whether to begin a new run.
        run: The run to go on with, by its id.
        executor: The name of the executor.
        shard: Which part of the tasks to run; None for all.
        max_errors: Tasks that may fail before no more are begun; None for any number.
        is_forced: Whether files are replaced that this command did not write.
    """

    command: str
    inputs: Mapping[str, str]
    store: str | None = None
    is_fresh: bool = False
    run: str | None = None
    executor: str = DEFAULT
    shard: Shard | None = None
    max_errors: int | None = None
    is_forced: bool = False
    _folder: Path = field(init=False)

    def __post_init__(self) -> None:
        self._folder = opened_folder(self.store)

    def replies(self, store: Store) -> Replies:
        """Where the model's replies are found and kept; a fresh run finds none from before."""
        return FreshCache(store) if self.is_fresh else store

    @contextmanager
    def opened(self) -> Iterator[Store]:
        """The store; its warning goes to stderr.

        Raises:
            StoreError: It cannot be used.
        """
        from pearl.runs.store import Store

        with Store.open(self._folder) as store:
            if store.warning:
                click.echo(f"pearl: {store.warning}", err=True)
            yield store
            if store.n_bad_replies:
                n = store.n_bad_replies
                click.echo(f"pearl: {n} kept replies were damaged and asked for again", err=True)

    @contextmanager
    def opened_replies(self) -> Iterator[Replies | None]:
        """Where replies are kept while nothing else is; None where there is no place for the default store.

        Raises:
            StoreError: The store that was named cannot be used.
        """
        with ExitStack() as stack:
            try:
                store = stack.enter_context(self.opened())
            except StoreError as error:
                if self.store is not None:
                    raise
                first = str(error).partition("\n")[0]
                click.echo(f"pearl: no reply is kept, for there is no store: {first}", err=True)
                yield None
                return
            yield self.replies(store)

    def spec(self, settings: Mapping[str, Any]) -> RunSpec:
        """What makes the run the one it is."""
        from pearl.cli.resuming import ExecuteWork
        from pearl.runs.store import RunSpec

        said = {"command": self.command, **settings}
        if self.shard is not None:
            said["shard"] = str(self.shard)
        context = click.get_current_context()
        arguments: tuple[str, ...] = context.find_root().obj or ()
        work = ExecuteWork.of(context.params).model_dump()
        shown = tuple(redacted(word, LEFT_OUT) for word in arguments)
        return RunSpec(shown, said, self.inputs, work=work)

    def writer(self, spec: RunSpec) -> OutputWriter:
        """What writes the files of a run: it may replace those of the same run."""
        return OutputWriter(spec.key.hex(), self.store, is_forced=self.is_forced)

    def execute(self, store: Store) -> Execute:
        """The `run` of the executor."""
        return run_with(
            load_executor(self.executor),
            replies=self.replies(store),
            folder=store.folder,
            on_progress=lambda progress: click.echo(f"pearl: {progress}", err=True),
            on_trouble=lambda error, wait_s: click.echo(
                f"pearl: {error.message}; asked again for {wait_s / 60:.0f} minutes at most",
                err=True,
            ),
        )

    def places(self, tasks: Iterable[Task]) -> Iterator[tuple[int, Task]]:
        """The tasks to run, with their places in the whole work."""
        return enumerate(tasks) if self.shard is None else self.shard.of(tasks)

    def left(
        self, pearl: Pearl, tasks: Iterable[Task], on_known: Callable[[], None]
    ) -> Iterator[Task]:
        """The tasks that have no row yet; nothing is written.

        Args:
            pearl: What they would be run with.
            tasks: All of them, read one by one.
            on_known: Told of every task that has a row.
        """
        from pearl.runs.identity import fingerprint
        from pearl.runs.recording import unrecorded
        from pearl.runs.store import Store

        if self.is_fresh:
            yield from (task for _, task in self.places(tasks))
            return
        key = self.spec(fingerprint(pearl)).key
        try:
            store = Store.open(self._folder, read_only=True)
        except StoreError:  # none was made yet, or the run itself will say what is wrong with it
            yield from (task for _, task in self.places(tasks))
            return
        with store:
            ids = [info.id for info in store.runs() if info.spec_key == key]
            id = self.run or next(iter(ids), None)

            def has(key: bytes) -> bool:
                return id is not None and store.is_done(id, key)

            for _, task, _ in unrecorded(pearl, self.places(tasks), has, lambda _: on_known()):
                yield task

    def is_too_much(self, n_failed: int) -> bool:
        """Whether so many failures end the work."""
        return self.max_errors is not None and n_failed > self.max_errors

    def resume_command(self, run_id: str) -> str:
        """What to type to go on with a run."""
        words = ["pearl", "runs", "resume", run_id]
        if self.store is not None:
            words += ["--store", self.store]
        context = click.get_current_context()
        url = str(context.params["base_url"])
        is_flag = context.get_parameter_source("base_url") is ParameterSource.COMMANDLINE
        # Where only the store names it, a key for OpenAI is not sent there. A password is not shown.
        if is_flag and Endpoint(url, "", "").shown == url.rstrip("/"):
            words += ["--base-url", url]
        if context.params.get("allow_outside"):
            words.append("--allow-outside")
        return shlex.join(words)
