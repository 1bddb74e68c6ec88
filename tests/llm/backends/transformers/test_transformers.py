"""Weights in a folder: loaded by the real code, made at random on the spot."""

from __future__ import annotations

import asyncio
import functools
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from pearl.dsl.checker import compile_plan
from pearl.dsl.decoding.constraint import Constraint
from pearl.dsl.decoding.forms import header_constraint, line_constraint, steps_constraint
from pearl.dsl.parser import parse
from pearl.errors import ModelError, ModelErrorKind
from pearl.llm import Completion, Message, Request
from pearl.llm.backends import ModelSettings
from pearl.llm.backends.transformers import TransformersModel, create, decoding
from pearl.llm.progress import CallProgress, listening
from tests.llm.backends.asking import complete, failure, used
from tests.llm.backends.transformers.asking import LIBRARY, asked
from tests.llm.backends.transformers.tiny_models import (
    END,
    save_saying,
    save_tokenizer,
)
from tests.skips import NO_TORCH

torch = pytest.importorskip("torch", reason=NO_TORCH)
transformers = pytest.importorskip("transformers", reason=NO_TORCH)

DOCUMENT = "Ada sold the boat because it leaked. " * 20


async def outcome(model: TransformersModel, request: Request) -> Completion | ModelError:
    try:
        return await model.complete(request)
    except ModelError as error:
        return error


# ---------------------------------------------------------------------------------------------
# Constraints


def drawn(model: TransformersModel, constraint: Constraint, by: str, n: int) -> list[str]:
    async def ask(model: TransformersModel) -> list[str]:
        requests = (
            replace(asked(), constraint=constraint, constrain_by=by, temperature=1.0, seed=seed)  # type: ignore[arg-type]
            for seed in range(n)
        )
        return [(await model.complete(request)).text for request in requests]

    return used(model, ask)


def test_every_plan_that_is_written_line_by_line_is_valid(model: TransformersModel) -> None:
    texts = drawn(model, line_constraint(LIBRARY, max_steps=4, max_text=16), "line", 8)
    for text in texts:
        compile_plan(text, LIBRARY)
    assert len(set(texts)) == 8


@pytest.mark.parametrize(
    ("constraint", "n", "prefix", "suffix"),
    [
        (steps_constraint(LIBRARY, max_steps=4, max_text=16), 8, "", ""),
        (
            header_constraint(LIBRARY, max_text=16),
            4,
            "New actions:\n- ",
            "1. a = FIND(CTX, CTX) : f",
        ),
    ],
)
def test_every_plan_of_a_grammar_is_valid(
    model: TransformersModel, constraint: Constraint, n: int, prefix: str, suffix: str
) -> None:
    for text in drawn(model, constraint, "grammar", n):
        assert text.startswith(prefix)
        parse(text + suffix)
        assert suffix or compile_plan(text, LIBRARY)


def test_a_grammar_may_have_characters_of_many_bytes(model: TransformersModel) -> None:
    constraint = Constraint("letters", 'start: /[ä-ü☂-☆😀-😎]{8}/ "."')
    for text in drawn(model, constraint, "grammar", 6):
        assert len(text) == 9
        assert "\ufffd" not in text


def test_a_grammar_of_one_sentence_yields_it(model: TransformersModel) -> None:
    constraint = Constraint("yes", 'start: "yes ☂"')
    assert drawn(model, constraint, "grammar", 1) == ["yes ☂"]


def test_a_sentence_that_reads_like_the_end_of_a_reply_does_not_end_it(
    model: TransformersModel,
) -> None:
    """llguidance would have the special token written, which is no text."""
    with pytest.raises(ModelError, match="allows no token"):
        drawn(model, Constraint("end", f'start: "{END}yes"'), "grammar", 1)


def test_lines_follow_one_another_without_a_break_at_the_end(model: TransformersModel) -> None:
    written: list[str] = []

    def next_line(so_far: str) -> str:
        written.append(so_far)
        return 'start: "last"' if so_far else 'start: "first\\n"'

    constraint = Constraint("two", 'start: "unused"', next_line=next_line)
    assert drawn(model, constraint, "line", 1) == ["first\nlast"]
    assert written == ["", "first\n"]


@pytest.mark.parametrize(
    ("constraint", "by"),
    [
        (Constraint("broken", 'start: "a" missing'), "grammar"),
        (Constraint("broken", 'start: "a" (?=b)'), "grammar"),
        (Constraint("no lines", 'start: "a"'), "line"),
        (Constraint("json", 'start: "a"'), "json"),
        (Constraint("lines", 'start: "a"', next_line=lambda _: "start: missing"), "line"),
    ],
)
def test_an_impossible_constraint_is_an_error(
    model: TransformersModel, constraint: Constraint, by: str
) -> None:
    with pytest.raises(ModelError) as caught:
        drawn(model, constraint, by, 1)
    assert caught.value.kind == "unconstrained"
    assert len(str(caught.value).splitlines()) <= 3


# ---------------------------------------------------------------------------------------------
# Replies and their limits


def test_a_reply_ends_where_the_model_ends_it(tmp_path: Path) -> None:
    save_saying(tmp_path, "it leaked")
    completion = complete(create(str(tmp_path), ModelSettings()), asked())
    assert completion.text == "it leaked"
    assert completion.model == f"transformers:{tmp_path}"
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    prompt = tokenizer("Why did Ada sell the boat?\n")["input_ids"]
    assert completion.usage.n_input_tokens == len(prompt)
    assert completion.usage.n_output_tokens == len(tokenizer("it leaked")["input_ids"]) + 1


def test_progress_is_reported_token_by_token(tmp_path: Path) -> None:
    save_saying(tmp_path, "it leaked")
    seen: list[CallProgress] = []
    with listening(seen.append):
        complete(create(str(tmp_path), ModelSettings()), asked("\n".join(["who?"] * 400)))
    phases = [p.phase for p in seen]
    assert list(dict.fromkeys(phases)) == ["loading", "reading", "writing"]
    assert phases == sorted(phases), "one after the other, which is in the order of the alphabet"
    read = [(p.n_tokens, p.n_total) for p in seen if p.phase == "reading"]
    assert read[0][0] == 0
    assert len(read) > 1, "a long prompt is read in parts"
    written = [p.n_tokens for p in seen if p.phase == "writing"]
    assert written == list(range(1, len(written) + 1))


def test_a_reply_that_repeats_itself_is_cut_off(tmp_path: Path) -> None:
    save_saying(tmp_path, "it leaked")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    weights = transformers.LlamaForCausalLM.from_pretrained(tmp_path)
    heads, end = weights.lm_head.weight, tokenizer.eos_token_id
    with torch.no_grad():  # where it would end, it begins again
        last = int(heads[end].argmax())
        heads[end, last] = 0.0
        heads[tokenizer("\nit leaked")["input_ids"][1], last] = 1.0
    weights.save_pretrained(tmp_path)
    caught = failure(create(str(tmp_path), ModelSettings()), "repetition", asked(limit=3_000))
    assert "leaked" in str(caught)
    assert caught.usage is not None
    assert 100 < caught.usage.n_output_tokens < 1_500


@pytest.mark.parametrize(
    ("window", "limit", "text", "kind"),
    [
        (None, 5, "who?", "truncated"),
        (40, 3_000, "who?", "truncated"),  # it fills the window
        (20, 3_000, DOCUMENT, "bad_request"),  # the prompt alone is longer than the window
    ],
)
def test_a_reply_has_limits(
    folder: Path, window: int | None, limit: int, text: str, kind: ModelErrorKind
) -> None:
    model = create(str(folder), ModelSettings(window=window))
    constraint = Constraint("long", "start: /[a-z]{500}/")
    caught = failure(model, kind, replace(asked(text, limit), constraint=constraint))
    assert "--max-output-tokens" in str(caught) or "window" in str(caught)


def test_a_blank_reply_is_empty(model: TransformersModel) -> None:
    failure(model, "empty", replace(asked(), constraint=Constraint("blank", 'start: "  "')))


def test_invalid_bytes_are_removed(tmp_path: Path) -> None:
    save_saying(tmp_path, "it", "Ã", "Ġthe", "â", "ĺ")
    assert complete(create(str(tmp_path), ModelSettings()), asked()).text == "it the"


def test_the_window_is_that_of_the_model_unless_it_is_set(folder: Path) -> None:
    assert create(str(folder), ModelSettings()).window == 4_096
    assert create(str(folder), ModelSettings(window=77)).window == 77


def test_the_same_seed_draws_the_same_reply(model: TransformersModel) -> None:
    constraint = steps_constraint(LIBRARY, max_steps=2, max_text=12)
    first, second = (drawn(model, constraint, "grammar", 3) for _ in range(2))
    assert first == second


def test_a_lone_surrogate_in_a_prompt_is_replaced(tmp_path: Path) -> None:
    save_saying(tmp_path, "it leaked")
    assert complete(create(str(tmp_path), ModelSettings()), asked("a \ud800 b")).text == "it leaked"


def test_the_prompt_is_built_by_the_chat_template(tmp_path: Path) -> None:
    save_saying(tmp_path, "it leaked")
    template = (
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}"
        "{% endif %}[{{ m.role }}] {{ m.content }}{% endfor %}{{ '\n' }}"
    )
    save_tokenizer(tmp_path, chat_template=template)
    messages = Message("system", "Be brief."), Message("user", "why?")
    completion = complete(
        create(str(tmp_path), ModelSettings()), replace(asked(), messages=messages)
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    expected = tokenizer("[user] Be brief.\n\nwhy?\n")["input_ids"]
    assert completion.usage.n_input_tokens == len(expected)
    save_tokenizer(tmp_path, chat_template="{{ raise_exception('never') }}")
    assert "never" in str(failure(create(str(tmp_path), ModelSettings()), "bad_request", asked()))


# ---------------------------------------------------------------------------------------------
# Prompts that begin alike


def test_a_cached_document_is_not_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Greedy replies are the same with and without it, whichever document was asked about last."""
    constraint = steps_constraint(LIBRARY, max_steps=2, max_text=12)
    other = DOCUMENT.replace("boat", "ship")
    prompts = [
        f"{document}\n\n{question}?"
        for question in ("Who", "Why", "When")
        for document in (DOCUMENT, other)
    ]

    async def ask(n_kept: int) -> list[Completion]:
        monkeypatch.setattr(decoding, "MAX_CACHED", n_kept)
        model = TransformersModel(folder, "random", 4_096)
        done = [
            await model.complete(replace(asked(prompt), constraint=constraint))
            for prompt in prompts
        ]
        await model.aclose()
        return done

    kept, unkept = asyncio.run(ask(4)), asyncio.run(ask(0))
    assert [one.text for one in kept] == [one.text for one in unkept]
    assert all(one.usage.n_cached_tokens == 0 for one in unkept)
    for one in kept[2:]:
        assert one.usage.n_input_tokens - one.usage.n_cached_tokens < 10
        assert one.usage.n_cached_tokens < one.usage.n_input_tokens


def test_the_same_prompt_again_reads_one_token(tmp_path: Path) -> None:
    save_saying(tmp_path, "it leaked")

    async def ask() -> list[Completion]:
        model = create(str(tmp_path), ModelSettings())
        return await asyncio.gather(*(model.complete(asked(DOCUMENT)) for _ in range(3)))

    first, *again = asyncio.run(ask())
    assert first.usage.n_cached_tokens == 0
    for one in again:
        assert one.text == first.text
        assert one.usage.n_cached_tokens == one.usage.n_input_tokens - 1


# ---------------------------------------------------------------------------------------------
# Time


ENDLESS = Constraint("endless", "start: A A A A\nA: /[a-z]{4000}/")
BRIEF = Constraint("yes", 'start: "yes"')


def test_a_call_that_takes_too_long_is_a_timeout(folder: Path) -> None:
    model = create(str(folder), ModelSettings(timeout_s=2.0, window=20_000))

    async def ask() -> tuple[Completion | ModelError, Completion | ModelError]:
        await outcome(model, replace(asked(), constraint=BRIEF))  # loads the weights
        return (
            await outcome(model, replace(asked(limit=18_000), constraint=ENDLESS)),
            await outcome(model, replace(asked(), constraint=BRIEF)),
        )

    late, after = asyncio.run(ask())
    assert isinstance(late, ModelError)
    assert late.kind == "deadline"
    assert isinstance(after, Completion)


def test_a_cancelled_call_stops_at_the_next_token(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = create(str(folder), ModelSettings(window=20_000))
    threads = watched(monkeypatch)

    async def ask() -> str:
        brief = replace(asked(), constraint=BRIEF)
        await model.complete(brief)
        endless = asyncio.ensure_future(
            model.complete(replace(asked(limit=18_000), constraint=ENDLESS))
        )
        for _ in range(10):
            await asyncio.sleep(0.01)  # the loop goes on meanwhile
        assert not endless.done()
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless
        return (await model.complete(brief)).text

    assert asyncio.run(ask()) == "yes"
    assert len(threads) < 3_000  # the whole of it has more than twice as many tokens
    assert len(set(threads)) == 1
    assert threads[0] != threading.get_ident()


def watched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The thread of every call of a model from now on."""
    threads: list[int] = []
    forward = transformers.LlamaForCausalLM.forward

    @functools.wraps(forward)
    def seen(*args: object, **kwargs: object) -> object:
        threads.append(threading.get_ident())
        return forward(*args, **kwargs)

    monkeypatch.setattr(transformers.LlamaForCausalLM, "forward", seen)
    return threads
