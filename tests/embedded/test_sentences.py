"""Sentence vectors beside words: what they add, that they are made once, and that replies say so."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from pearl.documents.document import Document
from pearl.embedded import ExtractiveModel
from pearl.embedded.sentences import (
    SentenceIndex,
    SentenceQuery,
    SentenceRanker,
)
from pearl.errors import ExecutionError, ModelError
from pearl.interpreter.answer import Answer
from pearl.llm import Request
from pearl.pipeline import Pearl
from pearl.retrieval import TextKind
from tests.models import answer_task
from tests.server import Canned, Server, error

HARBOUR = (
    "The harbour was full of boats. "
    "Nils disposed of his vessel because the hull leaked. "
    "Greta keeps bees. "
    "The baker sells bread. "
    "It rained in the evening."
)
TOPICS = (
    {"sell", "sells", "sold", "disposed", "buy"},
    {"boat", "boats", "vessel", "ship", "hull"},
    {"bees", "honey"},
    {"bread", "baker"},
    {"rained", "rain", "evening"},
)


class Topics:
    """Makes vectors of the topics that a text has words of; the last dimension is for other words."""

    name = "topics:1@http://here"
    notice = "embeddings: topics"

    def __init__(self) -> None:
        self.asked: list[tuple[TextKind, tuple[str, ...]]] = []

    async def embed(self, texts: Sequence[str], kind: TextKind) -> NDArray[np.float32]:
        self.asked.append((kind, tuple(texts)))
        await asyncio.sleep(0)
        rows = []
        for text in texts:
            words = text.casefold().replace(".", "").replace("?", "").split()
            rows.append([sum(word in topic for word in words) for topic in TOPICS] + [0.5])
        found = np.array(rows, dtype=np.float64)
        unit: NDArray[np.float32] = (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(
            np.float32
        )
        return unit

    async def aclose(self) -> None:
        self.asked.clear()


def reply(question: str, model: ExtractiveModel, document: str = HARBOUR) -> str:
    return asyncio.run(model.complete(Request((), answer_task(question, document)))).text


def test_vectors_find_a_sentence_in_other_words() -> None:
    index = SentenceIndex(HARBOUR)
    query = SentenceQuery({"harbour": 1.0}, text="Whose honey is it?")

    def ranked(ranker: SentenceRanker) -> list[str]:
        return [index.texts[hit.number] for hit in asyncio.run(ranker.rank(index, query))]

    assert "Greta keeps bees." not in ranked(SentenceRanker())
    assert "Greta keeps bees." in ranked(SentenceRanker(Topics()))[:3]


def test_concurrent_steps_compute_vectors_once() -> None:
    topics = Topics()
    model = ExtractiveModel(topics)

    async def run() -> None:
        tasks = [answer_task(f"Who sold boat {i}?", HARBOUR) for i in range(5)]
        await asyncio.gather(*(model.complete(Request((), task)) for task in tasks))

    asyncio.run(run())
    asyncio.run(run())  # another event loop, the same document
    passages = [texts for kind, texts in topics.asked if kind == "passage"]
    assert passages == [tuple(SentenceIndex(HARBOUR).texts)]
    assert sum(kind == "query" for kind, _ in topics.asked) == 10


def test_a_failed_embedding_is_not_cached() -> None:
    class Flaky(Topics):
        async def embed(self, texts: Sequence[str], kind: TextKind) -> NDArray[np.float32]:
            if not self.asked:
                self.asked.append((kind, ()))
                raise ModelError("no server", kind="transport")
            return await super().embed(texts, kind)

    model = ExtractiveModel(Flaky())
    with pytest.raises(ModelError, match="no server"):
        reply("Who sold the ship?", model)
    assert "Nils" in reply("Who sold the ship?", model)


def test_embeddings_change_the_identity_of_the_model() -> None:
    plain, model = ExtractiveModel(), ExtractiveModel(Topics())
    assert (plain.name, plain.identity) == ("extractive", "extractive")
    assert (model.name, model.identity) == (
        "extractive+topics:1",
        "extractive+topics:1@http://here",
    )
    assert "vectors of topics:1" in model.notice
    assert "no language model is used" in model.notice
    assert "embeddings: topics" in model.notice  # where texts are sent
    done = asyncio.run(model.complete(Request((), answer_task("Who left?", HARBOUR))))
    assert done.model == model.name


# --- what the document does not say ---------------------------------------------------------------


def says(question: str, document: str, model: ExtractiveModel | None = None) -> bool:
    return not reply(question, model or ExtractiveModel(), document).startswith("Nothing found")


def test_one_matching_word_of_several_is_not_quoted() -> None:
    document = "The lease is of the upper rooms. Rent is due in March. The roof was mended in June."
    assert not says("How many guests signed the lease?", document)
    assert says("How many rooms has the lease?", document)
    assert says("Where is the lease?", document)  # it is the only one


def test_the_nearest_sentence_is_quoted_without_a_common_word() -> None:
    question = "Whose honey is it?"
    assert not says(question, HARBOUR)
    assert reply(question, ExtractiveModel(Topics())).startswith("> Greta keeps bees.")


def test_a_question_unlike_all_sentences_finds_nothing() -> None:
    document = "Greta keeps bees. The baker sells bread. It rained in the evening."
    assert says("Whose honey is it?", document, ExtractiveModel(Topics()))

    class Apart(Topics):
        """Gives a question a direction of its own."""

        async def embed(self, texts: Sequence[str], kind: TextKind) -> NDArray[np.float32]:
            vectors = await super().embed(texts, kind)
            return vectors if kind == "passage" else np.eye(6, dtype=np.float32)[[1] * len(texts)]

    assert not says("Whose honey is it?", document, ExtractiveModel(Apart()))


# --- from the setting to the server --------------------------------------------------------------


async def asked_with_embeddings() -> Answer:
    async with Pearl("extractive", embeddings="openai:m") as pearl:
        return await pearl.ask("Why did Nils sell the boat?", Document(HARBOUR))


def test_the_embeddings_setting_reaches_the_server(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEARL_EMBEDDINGS_URL", openai_server.url)
    answer = asyncio.run(asked_with_embeddings())
    assert answer.model == "extractive+openai:m"
    assert "Nils disposed of his vessel because the hull leaked." in answer.text
    sent = [text for seen in openai_server.requests for text in seen.body["input"]]
    assert set(SentenceIndex(HARBOUR).texts) <= set(sent)


def test_a_server_without_vectors_fails_the_step_and_says_so(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEARL_EMBEDDINGS_URL", openai_server.url)
    openai_server.next(*[Canned(error("no vectors today"), status=400)] * 4)
    with pytest.raises(ExecutionError, match="no vectors today"):
        asyncio.run(asked_with_embeddings())
