"""Which of my files, how many of them, and how do they differ: 40 questions over 5 to 200 files, with an oracle.

The files are written by a generator that knows what each says; the model says of a row what is so, with the words that
say it, and of results what a hurried reader would write: some of the rows, the number of the others left out.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import Counter
from functools import cache

import pytest

from pearl import Answer, Document, Pearl
from pearl.documents.document import join
from pearl.documents.tokens import estimate
from pearl.llm import CheckTask, ItemsTask, Request
from pearl.replies.items import MAX_QUOTE_WORDS
from pearl.view.answer_page import answer_page
from tests.models import Reading, item_keys, verdicts, written

SIZES = (5, 40, pytest.param(200, marks=pytest.mark.slow))
LAWS = ("Bavaria", "Ohio", "Peru", "Wales")
SAYS = {
    "law": {law: f"It is governed by the law of {law} and by no other." for law in LAWS},
    "source": {
        "yes": "Whoever passes it on hands out the source as well.",
        "no": "The source may be kept by whoever passes it on.",
    },
    "days": {str(n): f"Either side ends it with notice of {n} days." for n in (14, 30, 60, 90)},
}
"""What a file may say: by the topic, what is so, and the sentence that says it."""
FILLER = ("The parties met twice.", "Headings are for convenience.", "Copies are as good as originals.",
          "Notices are sent by post.", "No clause stands for another.")  # fmt: skip

PLANS = {
    "which": 'kept = FILTER(files, "source") : Those with the source',
    "which of a value": 'days = MAP(files, "days") : Notice\nkept = WHERE(days, "days", "at least", 60) : Long notice',
    "which and which": """kept = FILTER(files, "source") : Those with the source
home = FILTER(files, "Bavaria") : Those of Bavaria
answer = ANSWER("Which have the source, and which are of Bavaria?", kept, home) : Answer""",
    "how many": 'kept = FILTER(files, "source") : Those with the source\nn = COUNT(kept) : How many',
    "how many and which": """kept = FILTER(files, "source") : Those with the source
n = COUNT(kept) : How many have the source
answer = ANSWER("How many have the source, and which?", n, kept) : Answer""",
    "how many of each": 'law = CLASSIFY(files, ["Bavaria", "Ohio", "Peru", "Wales", "none"], "law") : Law\nkept = GROUP(law, "law") : Files of each',
    "more or less": """kept = FILTER(files, "source") : Those with the source
home = FILTER(files, "Bavaria") : Those of Bavaria
n = COUNT(kept) : Those
m = COUNT(home) : These
more = RELATION(n, m) : More or less""",
    "compare": 'law = MAP(files, "law") : Law\ndays = MAP(files, "days") : Notice\nkept = SHOW(files, law, days) : Side by side',
}  # fmt: skip


def files(n: int, seed: int) -> dict[str, dict[str, str]]:
    """What each file says, by its name; one in six leaves a topic out."""
    draw = random.Random(seed)
    return {
        f"{draw.choice(['north', 'south'])}/{i:03}.txt": {
            topic: draw.choice([*says])
            for topic, says in SAYS.items() if draw.random() > 1 / 6
        }
        for i in range(n)
    }  # fmt: skip


def document(facts: dict[str, dict[str, str]]) -> Document:
    def text(name: str) -> str:
        said = [SAYS[topic][value] for topic, value in facts[name].items()]
        own = random.Random(name)
        pieces = [f"Agreement {name[-7:-4]}."]
        for sentence in said:
            pieces += [" ".join(own.choices(FILLER, k=6)), sentence]
        return "\n\n".join([*pieces, " ".join(own.choices(FILLER, k=8))])

    return join([Document(text(name), name) for name in facts])


class Oracle:
    """Says of each row what is so, and writes answers that leave out most rows."""

    def __init__(self) -> None:
        self.replies: list[str] = []
        self.n_rows = 0
        self.model = Reading(self._reply)

    def _reply(self, request: Request) -> str:
        task = request.task
        if isinstance(task, CheckTask):
            return verdicts(*["supported"] * len(task.claims))
        if not isinstance(task, ItemsTask):
            return self._composed(request.prompt)
        asked = dict(task.arguments)["X"]
        found = [self._of(asked, item, task.labels) for item in task.items]
        reply = written(request.prompt, [v for v, _ in found])
        if task.is_quoted:
            numbers = [key.split()[0] for key in item_keys(request.prompt)]
            quotes = {f"q{i}": quote for i, (_, quote) in zip(numbers, found, strict=True)}
            reply = json.dumps(json.loads(reply) | quotes, separators=(",", ":"))
        self.n_rows += len(found)
        self.replies.append(reply)
        return self.replies[-1]

    @staticmethod
    def _of(asked: str, item: str, labels: tuple[str, ...]) -> tuple[str, str | None]:
        topic = "law" if asked == "Bavaria" else asked
        value = next((v for v, sentence in SAYS[topic].items() if sentence in item), None)
        quote = SAYS[topic][value] if value else None
        if asked == "Bavaria" and value:
            value = "yes" if value == asked else "no"
        return value or ("none" if labels else "not stated"), quote and " ".join(
            quote.split()[1 - MAX_QUOTE_WORDS :]
        )

    @staticmethod
    def _composed(prompt: str) -> str:
        sentences = []
        for block in re.findall(r"<input>\n(.*?)\n</input>", prompt, re.S):
            names = re.findall(r"^- (\S+?\.txt).*\[(\d+)\]$", block, re.M)[:2]
            value = re.search(r"\{\w+\}", block)
            (last,) = re.findall(r"\[(\d+)\]", block)[-1:]
            if value:
                sentences.append(f"There are {value[0]} of them [{last}].")
            elif names:
                sentences += [f"One is {name} [{n}]." for name, n in names]
            else:
                sentences.append(f"Some are so [{last}].")
        return " ".join(sentences)


@cache
def asked(shape: str, n: int, row_quotes: int = 200) -> tuple[Answer, Oracle, str]:
    facts = files(n, seed=n)
    lines = ['files = SPLIT(CTX, "document") : One row a file', *PLANS[shape].splitlines()]
    plan = "\n".join(f"{i}. {line}" for i, line in enumerate(lines, start=1))
    oracle, text = Oracle(), document(facts)
    answer = asyncio.run(Pearl(oracle.model, row_quotes=row_quotes).execute(plan, text))
    return answer, oracle, answer_page(answer, text) if row_quotes else ""


def wanted(shape: str, facts: dict[str, dict[str, str]]) -> dict[str, list[str]]:
    """The files that an answer is about, each with the sentences that decide so."""
    topics: dict[str, list[str]] = {name: [] for name in facts}
    for name, says in facts.items():
        of = {topic: SAYS[topic][value] for topic, value in says.items()}
        if shape in ("compare", "how many of each"):
            kept = ["law", "days"] if shape == "compare" else ["law"]
        elif shape == "which of a value":
            kept = ["days"] if int(says.get("days", 0)) >= 60 else []
        else:
            kept = ["source"] if says.get("source") == "yes" else []
            kept += ["law"] if "home" in PLANS[shape] and says.get("law") == "Bavaria" else []
        topics[name] = [of[topic] for topic in kept if topic in of]
    return {name: says for name, says in topics.items() if says}


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("shape", PLANS)
def test_no_row_is_lost_and_each_has_its_passage_lit(shape: str, n: int) -> None:
    facts = files(n, seed=n)
    answer, _, page = asked(shape, n)
    hits = wanted(shape, facts)
    is_told = "may change" in answer.why or "without all of the results" in answer.why
    assert answer.status == ("degraded" if is_told else "answered"), answer.why
    # named in the answer, or counted there and in the table of rows
    named = {name for name in facts if name in answer.text}
    in_table = {row.source for row in answer.row_evidence}
    counts = {int(number) for number in re.findall(r"\b\d+\b", answer.text)}
    assert in_table >= hits.keys()
    if "how many" not in shape and shape != "more or less" and len(hits) <= 30:
        assert named >= hits.keys()
    if shape.startswith("which") and shape != "which and which":
        assert named == hits.keys()
    if shape.startswith("how many") and "each" not in shape:
        yes = Counter(says.get("source") for says in facts.values())
        assert {yes["yes"], *([yes["yes"] + yes["no"], yes[None]] if yes[None] else [])} <= counts
    if shape == "how many of each":
        laws = Counter(says.get("law", "none") for says in facts.values())
        assert all(f"- {law}: {number}" in answer.text for law, number in laws.items())
    lit = set(re.findall(r"<mark[^>]*>([^<]*)", page))
    deciding = [(name, sentence) for name, says in hits.items() for sentence in says]
    places = {(each.source, each.text) for each in answer.evidence}
    n_lit = sum(each in places and each[1] in lit for each in deciding)
    assert n_lit >= 0.95 * len(deciding)
    assert not answer.unverified


@pytest.mark.parametrize("shape", ["which", "compare", "how many of each"])
def test_the_words_cost_at_most_20_tokens_a_row_and_no_call(shape: str) -> None:
    (_, quoted, _), (_, bare, _) = asked(shape, 40), asked(shape, 40, row_quotes=0)
    assert len(quoted.replies) == len(bare.replies)
    spent = [sum(map(estimate, oracle.replies)) for oracle in (quoted, bare)]
    assert spent[0] - spent[1] <= 20 * quoted.n_rows
