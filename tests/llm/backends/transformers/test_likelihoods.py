"""Log-likelihoods of candidates, against one forward pass over each whole text."""

from __future__ import annotations

import asyncio

import pytest

from pearl.errors import ModelError
from pearl.llm.backends.transformers import TransformersModel, decoding
from pearl.llm.messages import log_likelihoods
from tests.llm.backends.asking import complete
from tests.llm.backends.transformers.asking import asked
from tests.skips import NO_TORCH

torch = pytest.importorskip("torch", reason=NO_TORCH)

CANDIDATES = ("FIND_REASON", "FIND", "IDENTIFY the person, and then what she did", "COUNT")


def rated(
    model: TransformersModel, text: str, candidates: tuple[str, ...] = CANDIDATES
) -> tuple[tuple[float, ...], int]:
    async def ask(model: TransformersModel) -> tuple[tuple[float, ...], int]:
        request = asked(text)
        values, completion = await log_likelihoods(
            model, request.messages, candidates, request.task
        )
        return values, completion.usage.n_cached_tokens

    return asyncio.run(ask(model))


def in_one_pass(model: TransformersModel, text: str, candidate: str) -> float:
    weights, _ = model.loaded(lambda: None)
    prompt = model.encoded(asked(text), weights.tokenizer)
    path = weights.tokenizer(candidate, add_special_tokens=False)["input_ids"]
    with torch.inference_mode():
        logits = weights.model(input_ids=torch.tensor([[*prompt, *path]])).logits[0]
    chances = torch.log_softmax(logits[:, : weights.n_tokens].float(), dim=-1)
    return sum(float(chances[len(prompt) - 1 + i, token]) for i, token in enumerate(path))


@pytest.mark.parametrize("n_at_once", [3, 512])
def test_likelihoods_equal_those_of_one_pass(
    model: TransformersModel, monkeypatch: pytest.MonkeyPatch, n_at_once: int
) -> None:
    monkeypatch.setattr(decoding, "N_READ_AT_ONCE", n_at_once)
    text = "Why did Ada sell the boat? " * 5
    values, n_cached = rated(model, text)
    assert n_cached == 0
    wanted = [in_one_pass(model, text, candidate) for candidate in CANDIDATES]
    assert values == pytest.approx(wanted, abs=1e-3)
    assert len(set(values)) == len(CANDIDATES)


def test_the_prompt_is_cached_and_stays_what_it_is(model: TransformersModel) -> None:
    text = "Who bought the boat? " * 20
    first, _ = rated(model, text)
    again, n_cached = rated(model, text)
    assert again == pytest.approx(first, abs=1e-4)
    assert n_cached > 20
    one_by_one = [rated(model, text, (candidate,))[0][0] for candidate in CANDIDATES]
    assert one_by_one == pytest.approx(list(first), abs=1e-4)
    assert complete(model, asked(text, 5_000)).usage.n_cached_tokens > 20


def test_candidates_beyond_the_window_are_refused(model: TransformersModel) -> None:
    assert model.window
    with pytest.raises(ModelError, match="window"):
        rated(model, "Why?", ("word " * model.window,))
