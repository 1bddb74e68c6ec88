"""What tokens were counted by is said once with `-v`, where it decided anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.terminal import STORY, Terminal
from tests.server import Canned, Seen, Server, completion, quoting


@pytest.fixture(autouse=True)
def _long(pearl: Terminal) -> None:
    Path("long.txt").write_text(f"{STORY}\n\n" * 100)


def tokenizing(seen: Seen) -> Canned:
    if seen.path != "/tokenize":
        return Canned(quoting(completion("The hull was rotten."), seen.prompt))
    text = seen.body["prompt"] if "prompt" in seen.body else seen.body["messages"][0]["content"]
    return Canned({"tokens": [0] * len(text.split())})


@pytest.mark.parametrize(
    ("owner", "said", "is_split"),
    [("vllm", "tokens were counted by the tokenizer of test-model at http://", False),
     (None, "tokens were counted by estimate", True)],
)  # fmt: skip
@pytest.mark.parametrize("verbose", [["-v"], []])
def test_the_tokenizer_of_a_server_decides_whether_a_document_fits(
    pearl: Terminal,
    openai_server: Server,
    owner: str | None,
    said: str,
    is_split: bool,
    verbose: list[str],
) -> None:
    openai_server.owned_by, openai_server.answer = owner, tokenizing
    on = ["--model", "openai:test-model", "--base-url", openai_server.url]
    pearl("execute", "why.plan", "long.txt", *on, "--window", "3000", *verbose)
    assert pearl.talk.count("tokens were counted by") == len(verbose)
    assert not verbose or said in pearl.talk
    paths = [seen.path for seen in openai_server.requests]
    assert (paths.count("/v1/chat/completions") > 1) == is_split
