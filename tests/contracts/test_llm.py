"""What every backend of `pearl.llm` has to be, tomorrow's included."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pearl import plugins
from pearl.documents.tokens import Counter
from pearl.errors import PearlError, UsageError
from pearl.llm import Completion, Message, Model, Request
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.middleware.budget import Budget, Budgeted
from pearl.llm.middleware.caching import DedupCache
from pearl.llm.middleware.rate import Limited
from pearl.llm.middleware.retry import Retrying
from tests.gguf_models import write_random_model
from tests.models import answer_task
from tests.server import Server
from tests.skips import NO_LARGE

BACKENDS = plugins.names("pearl.llm.backends")

REQUEST = Request(
    (Message("user", "Ada sold the boat because it leaked.\n\nWhy did Ada sell the boat?"),),
    answer_task("Why did Ada sell the boat?", "Ada sold the boat because it leaked."),
)


@pytest.fixture
def make(tmp_path: Path, openai_server: Server) -> Callable[[str], Model]:
    """A model of a backend, with what it needs."""
    rules = tmp_path / "rules.json"
    rules.write_text('[{"match": "", "reply": "it leaked"}]')
    reply = {"match": REQUEST.digest, "reply": "it leaked", "model": "A model, recorded 2026-11-23"}
    (tmp_path / "recording.json").write_text(json.dumps([reply]))
    names = {
        "openai": "test-model", "ollama": "llama3.2:3b", "scripted": str(rules),
        "recorded": str(tmp_path / "recording"),
    }  # fmt: skip

    def make(backend: str) -> Model:
        if backend == "llamacpp":
            pytest.importorskip("xllamacpp", reason=NO_LARGE)
            names[backend] = str(write_random_model(tmp_path / "random.gguf", n_context=16_384))
        name = names.get(backend, "")
        return create_model(
            f"{backend}:{name}" if name else backend, ModelSettings(openai_server.url, 10.0, 9_000)
        )

    return make


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_backend_describes_itself(backend: str) -> None:
    module = plugins.load("pearl.llm.backends", backend)
    assert module.DESCRIPTION.strip()
    assert len(module.DESCRIPTION) <= 80
    assert "\n" not in module.DESCRIPTION
    assert list(inspect.signature(module.create).parameters) == ["name", "settings"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_model_has_a_name_a_window_and_a_notice(
    backend: str, make: Callable[[str], Model]
) -> None:
    model = make(backend)
    assert model.name.partition(":")[0] == backend
    assert model.window is None or model.window == 9_000
    assert "\n" not in model.notice
    asyncio.run(model.aclose())


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_identity_is_the_same_for_the_same_and_passes_through_wrappers(
    backend: str, make: Callable[[str], Model], openai_server: Server
) -> None:
    model = make(backend)
    settings = ModelSettings(openai_server.url, 10.0, 9_000)
    assert model.identity == create_model(model.name, settings).identity
    assert model.identity.startswith(model.name)
    wrapped = Retrying(Limited(Budgeted(DedupCache(model), Budget(Counter())), 2))
    assert wrapped.identity == model.identity
    asyncio.run(model.aclose())


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_identity_tells_servers_and_files_apart(
    backend: str, make: Callable[[str], Model], openai_server: Server
) -> None:
    """Replies are kept under it: two servers that share one are given each other's answers."""
    model = make(backend)
    name = model.name.partition(":")[2]
    if not name:
        assert model.identity == model.name, "there is only one"
        return
    path = Path(f"{name.partition(': ')[0]}.json" if backend == "recorded" else name)
    if path.exists():  # the same name, other weights or rules
        file = next(each for each in sorted([path, *path.rglob("*")]) if each.is_file())
        file.write_bytes(file.read_bytes() + b" ")
        settings = ModelSettings(window=9_000)
    else:
        settings = ModelSettings(openai_server.url.replace("127.0.0.1", "localhost"), window=9_000)
    assert create_model(model.name, settings).identity != model.identity
    asyncio.run(model.aclose())


def test_an_identity_of_a_server_holds_no_secret_and_knows_its_query() -> None:
    def identity(url: str) -> str:
        return create_model("openai:m", ModelSettings(url)).identity

    plain = identity("http://host:8000/v1/")
    assert plain == identity("http://me:pass-word@HOST:8000/v1") == "openai:m@http://host:8000/v1"
    keyed = identity("http://host:8000/v1?api-key=hidden")
    assert keyed != plain
    assert "hidden" not in keyed


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_model_replies(backend: str, make: Callable[[str], Model]) -> None:
    model = make(backend)

    async def twice() -> list[Completion]:
        try:
            return await asyncio.gather(*(model.complete(REQUEST) for _ in range(2)))
        finally:
            await model.aclose()

    for completion in asyncio.run(twice()):
        assert completion.text.strip()
        assert completion.text.encode()  # no lone surrogates
        assert completion.finish_reason == "stop"
        assert completion.usage.n_input_tokens >= completion.usage.n_cached_tokens >= 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_backend_that_cannot_be_set_up_raises_an_expected_error(backend: str) -> None:
    said = []
    for name in ("", "/no/such/file", "a b", "ü"):
        try:
            create_model(f"{backend}:{name}")
        except PearlError as error:
            said.append(str(error))
    assert all(len(message.splitlines()) <= 3 for message in said)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("opneai:gpt-4o", "did you mean 'openai:gpt-4o'"),
        ("gpt-4o", "did you mean 'openai:gpt-4o'"),
        ("nothing:like:this", "backends: "),
        ("", "backends: "),
    ],
)
def test_an_unknown_backend_is_a_usage_error(spec: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        create_model(spec)
    assert said.casefold() in str(caught.value).casefold()
