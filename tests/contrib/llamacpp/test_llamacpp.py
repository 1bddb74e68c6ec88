"""Models in files: real files of random weights, real child processes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from pearl.actions.library import load_library
from pearl.contrib import llamacpp
from pearl.contrib.llamacpp import LlamaCppModel, create, read_header
from pearl.dsl.checker import compile_plan
from pearl.dsl.decoding.constraint import Constraint
from pearl.dsl.decoding.grammar import indexed_grammar
from pearl.errors import DataError, ModelError, UsageError
from pearl.llm import Completion, Message, Request
from pearl.llm.backends import ModelSettings
from pearl.llm.progress import CallProgress, listening
from tests.gguf_models import write_random_model
from tests.llm.backends import asking
from tests.models import answer_task
from tests.root import ROOT
from tests.skips import needs_proc

TIMEOUT_S = 60.0

T = TypeVar("T")

HARBOUR = "the captain was in the harbour with his letter " * 40
STORY = "she had the story from him and they had all the text " * 40


def asked(text: str, max_output_tokens: int | None = 8) -> Request:
    return Request((Message("user", text),), answer_task(text, ""), max_output_tokens)


async def n_cached(model: LlamaCppModel, text: str) -> int:
    """Tokens that were not read anew; the reply itself plays no part."""
    return (await model.complete(asked(text, None))).usage.n_cached_tokens


@pytest.fixture(scope="session")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that never ends a reply."""
    path = tmp_path_factory.mktemp("models") / "endless.gguf"
    return write_random_model(path, ending=0.0, n_context=16_384)


def used(weights: Path, use: Callable[[LlamaCppModel], Awaitable[T]], **settings: int) -> T:
    """The result of a use of the model in a file."""
    return asking.used(create(str(weights), ModelSettings(timeout_s=TIMEOUT_S, **settings)), use)


def pid_of(model: LlamaCppModel) -> int:
    assert model._worker.process
    return model._worker.process.pid


def is_running(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not asked for yet does not."""
    with contextlib.suppress(OSError):
        # The first thread may have ended while others still do: nobody can wait for it until then.
        n_threads = len(list(Path(f"/proc/{pid}/task").iterdir()))
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z" or n_threads > 1
    return False


def await_end(pid: int) -> None:
    while is_running(pid):
        time.sleep(0.02)


def n_workers() -> int:
    """Processes of models that this one has started."""
    command = ["ps", "--ppid", str(os.getpid()), "-ww", "-o", "args="]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    return found.stdout.count("worker.py")


def test_a_reply_says_which_model_wrote_it_and_what_it_took(weights: Path) -> None:
    async def use(model: LlamaCppModel) -> Completion:
        with pytest.raises(ModelError, match="cut off after 1 tokens") as caught:
            await model.complete(asked("who?", 1))
        assert caught.value.kind == "truncated"
        return await model.complete(asked("what?", None))

    completion = used(weights, use)
    assert completion.model == "random"
    assert completion.usage.n_input_tokens > completion.usage.n_cached_tokens
    assert completion.usage.n_output_tokens > 0


def test_a_prompt_longer_than_the_window_is_a_bad_request(weights: Path) -> None:
    said = r"the prompt has \d+ tokens; the window of random.gguf has 256\n.*window=8192"
    with pytest.raises(ModelError, match=said) as caught:
        used(weights, lambda model: model.complete(asked(HARBOUR)), window=256)
    assert caught.value.kind == "bad_request"


def test_the_beginning_of_a_prompt_is_read_once(weights: Path) -> None:
    async def use(model: LlamaCppModel) -> list[int]:
        return [
            await n_cached(model, f"{document}{i} who?")
            for i in range(3)
            for document in (HARBOUR, STORY)
        ]

    first, _, *later = used(weights, use)
    assert first == 0
    assert min(later) > 300, "documents that alternate keep their state"


@needs_proc
def test_requests_that_come_at_once_start_one_process(weights: Path) -> None:
    async def use(model: LlamaCppModel) -> list[Completion]:
        completions = await asyncio.gather(
            *(model.complete(asked(f"{HARBOUR}{i}", None)) for i in range(6))
        )
        assert n_workers() == 1
        return completions

    cached = [completion.usage.n_cached_tokens for completion in used(weights, use)]
    assert sorted(cached)[1] > 300  # all but the one that was first


@needs_proc
def test_a_process_that_was_closed_or_killed_is_started_anew(weights: Path) -> None:
    async def use(model: LlamaCppModel) -> None:
        await model.aclose()
        pids = []
        await model.complete(asked("who?", None))
        pids.append(pid_of(model))
        await model.aclose()
        await model.aclose()
        assert not is_running(pids[-1])
        await model.complete(asked("who?", None))
        pids.append(pid_of(model))
        os.kill(pids[-1], signal.SIGKILL)
        await_end(pids[-1])
        assert (await model.complete(asked("who?", None))).text
        assert len({*pids, pid_of(model)}) == 3

    used(weights, use)


@needs_proc
def test_a_process_killed_during_a_request_is_an_error(endless: Path) -> None:
    async def use(model: LlamaCppModel) -> None:
        with contextlib.suppress(ModelError):
            await model.complete(asked("who?", 1))
        # Drawn, for the likeliest tokens soon are the same over and over.
        drawn = replace(asked("who?", None), temperature=1.0, seed=7)
        call = asyncio.create_task(model.complete(drawn))
        await asyncio.sleep(0.2)
        os.kill(pid_of(model), signal.SIGKILL)
        with pytest.raises(ModelError, match=r"crashed on a request to .*: ended by SIGKILL") as caught:  # fmt: skip
            await call
        assert caught.value.kind == "transport"
        assert caught.value.is_retryable
        assert len(str(caught.value).splitlines()) <= 3
        with pytest.raises(ModelError, match="cut off"):
            await model.complete(asked("who?", 1))

    used(endless, use)


def test_a_reply_that_repeats_itself_is_cut_off_while_it_is_written(endless: Path) -> None:
    seen: list[CallProgress] = []

    async def use(model: LlamaCppModel) -> None:
        with listening(seen.append), pytest.raises(ModelError) as caught:
            await model.complete(asked("who?", None))
        assert caught.value.kind == "repetition"
        assert not caught.value.is_retryable
        assert "nearest=" in str(caught.value)
        usage = caught.value.usage
        assert usage is not None
        assert usage.n_input_tokens > 0
        assert 100 < usage.n_output_tokens < 4_000, "and not as many as the window holds"
        with pytest.raises(ModelError, match="cut off"):  # it serves others at once
            await model.complete(asked("who?", 1))

    used(endless, use)
    assert [p.phase for p in seen][:1] == ["loading"]
    assert {p.phase for p in seen} == {"loading", "reading", "writing"}
    written = [p.n_tokens for p in seen if p.phase == "writing"]
    assert written == list(range(1, len(written) + 1))
    read = [p for p in seen if p.phase == "reading"]
    assert read[-1].n_tokens == read[-1].n_total


CALLER = """
import asyncio, sys
from pathlib import Path
from pearl.llm.backends import ModelSettings
from tests.contrib.llamacpp.test_llamacpp import asked, create, pid_of

async def main():
    model = create(sys.argv[1], ModelSettings())
    try:
        await model.complete(asked("who?", None))
        print(pid_of(model), flush=True)
        await asyncio.sleep(60)
    finally:
        if "tidy" in sys.argv:
            await model.aclose()

asyncio.run(main())
"""


@contextlib.contextmanager
def calling(weights: Path, *manner: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A program that has asked a model, and the process of that model."""
    program = subprocess.Popen(
        [sys.executable, "-c", CALLER, str(weights), *manner],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with program:
        assert program.stdout
        try:
            yield program, int(program.stdout.readline())
        finally:
            program.kill()


@needs_proc
@pytest.mark.parametrize(
    ("by", "manner"),
    [
        (signal.SIGKILL, "untidy"),
        *(
            pytest.param(by, manner, marks=pytest.mark.slow)
            for by, manner in [
                (signal.SIGKILL, "tidy"), (signal.SIGINT, "tidy"), (signal.SIGINT, "untidy"),
                (signal.SIGTERM, "tidy"), (signal.SIGTERM, "untidy"),
            ]
        ),
    ],
)  # fmt: skip
def test_no_process_survives_its_program(weights: Path, by: signal.Signals, manner: str) -> None:
    with calling(weights, manner) as (program, worker):
        assert is_running(worker)
        program.send_signal(by)
        program.wait()
        await_end(worker)
        assert program.stderr
        assert "worker" not in program.stderr.read()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"It was a dark and stormy night.", "is not a GGUF file"),
        (b"GGUF", "is truncated"),
        (b"GGUF\x00\x00\x00\x03", "version 50331648"),
        (b"GGUF\x03\x00\x00\x00" + b"\xff" * 64, "is truncated"),
        (b"GGUF\x03\x00\x00\x00" + b"\x00" * 16, "contains no language model"),
        (b"GGUF\x03\0\0\0" + b"\0" * 8 + b"\x01" + b"\0" * 7 + b"\x01" + b"\0" * 7 + b"a" + b"\x63\0\0\0", "damaged"),
    ],
)  # fmt: skip
def test_a_file_without_a_model_is_refused_at_once(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(DataError, match=said) as caught:
        create(str(path), ModelSettings())
    assert str(path) in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 3


@pytest.mark.parametrize(
    ("share", "said"), [(0.9, "not within the file bounds"), (0.02, "failed to read key-value")]
)
def test_a_truncated_file_is_a_model_error(
    weights: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], share: float, said: str
) -> None:
    path = tmp_path / "cut.gguf"
    data = weights.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(ModelError, match=said) as caught:
        used(path, lambda model: model.complete(asked("who?")))
    assert caught.value.kind == "bad_request"
    assert len(str(caught.value).splitlines()) <= 3
    assert capfd.readouterr() == ("", "")


def test_a_model_without_a_chat_template_is_given_plain_text(tmp_path: Path) -> None:
    path = write_random_model(tmp_path / "base.gguf", has_template=False)

    async def use(model: LlamaCppModel) -> None:
        assert "base.gguf has no chat template" in model.notice
        reply = await model.complete(asked("who?", None))
        assert reply.usage.n_input_tokens < 60
        shown = posted(model, "/apply-template", messages=CONVERSATION)["prompt"]
        assert shown == (
            "Be brief.\n\n### Instruction:\nWho?\n\n### Response:\nNils.\n\n"
            "### Instruction:\nWhy?\n\n### Response:"
        )

    used(path, use)


@pytest.mark.parametrize(
    ("window", "help"),
    [(16_384, "window=4096"), (1_024, "window=1024"), (512, "use a smaller")],
)
def test_a_model_larger_than_memory_is_refused_before_it_is_loaded(
    weights: Path, monkeypatch: pytest.MonkeyPatch, window: int, help: str
) -> None:
    header = replace(read_header(weights), n_bytes=4 * 2**30, bytes_a_token=2**20)
    left = {16_384: 4_100, 1_024: 1_024, 512: 511}[window] * 2**20
    monkeypatch.setattr(llamacpp, "available_bytes", lambda: 4 * 2**30 + left)
    monkeypatch.setattr(llamacpp, "has_gpu", lambda: False)
    model = LlamaCppModel(weights, TIMEOUT_S, window, header)
    if window == 1_024:  # it just fits
        model._check_memory()
        return
    with pytest.raises(ModelError, match=r"does not fit into memory: it has 4\.0 GiB") as caught:
        asyncio.run(model.complete(asked("who?")))
    assert help in str(caught.value)
    assert caught.value.kind == "bad_request"
    assert len(str(caught.value).splitlines()) <= 3
    assert model._worker.process is None
    monkeypatch.setattr(llamacpp, "has_gpu", lambda: True)
    model._check_memory()  # who knows what a GPU has


def test_the_header_tells_the_memory_of_the_window(weights: Path, tmp_path: Path) -> None:
    header = read_header(weights)
    assert (header.trained, header.has_template) == (8_192, True)
    assert header.bytes_a_token == 2 * 2 * (64 + 64)  # 16 bits, layers, keys and values
    assert header.n_bytes == weights.stat().st_size
    large = Path(shutil.copy(weights, tmp_path / "large.gguf"))
    with large.open("ab") as file:
        file.truncate(2**31)  # sparse
    assert create(str(weights), ModelSettings()).is_small
    assert not create(str(large), ModelSettings()).is_small
    bare = write_random_model(tmp_path / "bare.gguf", has_template=False)
    assert not read_header(bare).has_template


def test_the_window_is_that_of_the_training_up_to_a_maximum(tmp_path: Path) -> None:
    short = write_random_model(tmp_path / "short.gguf", n_context=2_048)
    long = write_random_model(tmp_path / "long.gguf", n_context=131_072)
    assert create(str(short), ModelSettings()).window == 2_048
    assert create(str(long), ModelSettings()).window == 16_384
    assert create(str(long), ModelSettings(window=100_000)).window == 100_000
    with pytest.raises(UsageError, match="window=2048"):
        create(str(short), ModelSettings(window=4_096))


def test_a_model_that_is_too_slow_to_load_is_a_timeout(weights: Path) -> None:
    model = create(str(weights), ModelSettings(timeout_s=0.001))
    assert "was not loaded within" in str(asking.failure(model, "deadline"))


def test_without_xllamacpp_the_error_says_how_to_get_it(
    weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(UsageError, match=r"needs xllamacpp.*\n.*pip install .*\[llamacpp\]"):
        create(str(weights), ModelSettings())
    with pytest.raises(UsageError, match="needs a file"):
        create("", ModelSettings())


CONVERSATION = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Who?"},
    {"role": "assistant", "content": "Nils."},
    {"role": "user", "content": "Why?"},
]


def posted(model: LlamaCppModel, path: str, **body: object) -> dict[str, Any]:
    """What the process of a model answers at a path."""
    request = urllib.request.Request(
        f"{model._worker.address}{path}",
        json.dumps(body).encode(),
        {"content-type": "application/json", "authorization": f"Bearer {model._key}"},
    )
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:
        return dict(json.load(reply))


@pytest.mark.parametrize("form", ["llguidance", "gbnf"])
def test_a_model_of_random_weights_writes_valid_plans_under_a_constraint(
    weights: Path, form: str
) -> None:
    library = load_library("seed")
    grammar = getattr(Constraint("steps", indexed_grammar(library, max_text=40)), form)

    async def use(model: LlamaCppModel) -> list[str]:
        await model.complete(asked("who?", None))
        body = {"messages": [{"role": "user", "content": "Plan it."}], "temperature": 1}
        replies = [
            posted(model, "/v1/chat/completions", grammar=grammar, seed=i, **body) for i in range(5)
        ]
        return [reply["choices"][0]["message"]["content"] for reply in replies]

    for text in used(weights, use):
        compile_plan(text, library)


def test_the_process_requires_its_key(weights: Path) -> None:
    async def use(model: LlamaCppModel) -> None:
        await model.complete(asked("who?", None))
        model._key = "none"
        with pytest.raises(urllib.error.HTTPError, match="401") as refused:
            posted(model, "/tokenize", content="who?")
        refused.value.close()

    used(weights, use)
