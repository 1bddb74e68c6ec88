"""Row S27: a quote that is shown as verified is in the document, however a model changed it."""

from __future__ import annotations

import asyncio
import random
import re

import pytest

from pearl import Pearl
from pearl.documents.document import Document
from pearl.llm.backends.scripted import Scripted
from tests.suite import Trial

WORDS = """
patient captain nurse fever pump dose lesion harbour denies reports took stopped daily morning left right the a of
with and was has no not without never before after mild severe chronic letter signed water
"""
AMOUNTS = [
    "5 mg",
    "0.5 mg",
    ".5 mg",
    "10-5 mg",
    "< 5 mg",
    "50 %",
    "5%",
    "$5",
    "-3.2",
    "1,250",
    "120/80",
    "1 5/8 mg",
    "7",
]
NEGATIONS = {"no", "not", "without", "never", "denies"}
# An independent reading of a text: words, and numbers with all that belongs to them.
TOKEN = re.compile(r"(?:[<>~]\s?)?[-+$]?\.?\d[\d.,/%-]*(?:\s\d+/\d+)?%?|\w+")


def tokens(text: str) -> list[str]:
    """Words and numbers of a text."""
    return [
        token.strip(".,") if token[0].isalpha() else token.rstrip(".,")
        for token in TOKEN.findall(text)
    ]


def is_in(quote: str, text: str) -> bool:
    """Whether the tokens of a quote follow each other in a text."""
    wanted, all_ = tokens(quote), tokens(text)
    return any(
        all_[start : start + len(wanted)] == wanted for start in range(len(all_) - len(wanted) + 1)
    )


def a_document(random: random.Random) -> str:
    """Sentences of words, negations and amounts."""
    sentences = []
    for _ in range(random.randint(4, 12)):
        words = random.choices(WORDS.split(), k=random.randint(5, 14))
        words.insert(random.randrange(len(words)), random.choice(AMOUNTS))
        sentences.append(" ".join(words).capitalize() + ".")
    return " ".join(sentences)


def a_lie(random: random.Random, quote: str) -> str:
    """A quote with one change that a model or an attacker makes."""
    words = quote.split(" ")
    at = random.randrange(len(words))
    numbers = list(re.finditer(r"\d", quote))
    changes = [
        lambda: [*words[:at], random.choice(WORDS.split()), *words[at + 1 :]],
        lambda: [*words[:at], *words[at + 1 :]],
        lambda: [*words[:at], random.choice(sorted(NEGATIONS)), *words[at:]],
        lambda: [word for word in words if word not in NEGATIONS],
        lambda: [*words[: at + 1], *reversed(words[at + 1 :])],
        lambda: [*words[:at], words[at].lstrip("<-$."), *words[at + 1 :]],
    ]
    if numbers:
        digit = random.choice(numbers).start()
        changes.append(
            lambda: (quote[:digit] + random.choice("123456789") + quote[digit + 1 :]).split(" ")
        )
        changes.append(lambda: (quote[: digit + 1] + "0" + quote[digit + 1 :]).split(" "))
    return " ".join(random.choice(changes)()).strip()


@pytest.mark.row("S27", "quotes of a model that lies about a document")
def test_quotes(trial: Trial) -> None:
    n_documents = trial.n(ci=150, nightly=2_000, release=20_000)
    n_true = n_verified = n_lies = n_wrong_places = 0
    accepted = []
    for _ in range(n_documents):
        text = a_document(trial.random)
        quotes = []
        for _ in range(12):
            words = text.split(" ")
            start = trial.random.randrange(len(words) - 6)
            quotes.append(" ".join(words[start : start + trial.random.randint(4, 9)]))
        lies = [a_lie(trial.random, quote) for quote in quotes]
        reply = "It is so.\n" + "".join(f"> {quote}\n\n" for quote in [*quotes, *lies])
        pearl = Pearl(Scripted(lambda request, reply=reply: reply))
        plan = pearl.compile('1. ans = FIND(CTX, "what is so") : Find it')
        answer = asyncio.run(pearl.execute(plan, Document(text)))
        flagged = {quote.text for quote in answer.unverified}
        n_wrong_places += sum(
            text[match.span.start : match.span.end] != match.text or not match.text
            for match in answer.evidence
        )
        for quote in quotes:
            n_true += 1
            n_verified += quote not in flagged
        for lie in lies:
            if not is_in(lie, text):
                n_lies += 1
                if lie not in flagged:
                    accepted.append((lie, text))
    trial.figure("quotes as they stand", n_true)
    trial.figure("of them verified", n_verified / n_true)
    trial.figure("changed quotes", n_lies)
    trial.figure("of them verified, though not in the document", len(accepted), at_most=0)
    trial.figure("spans that are not the passage shown", n_wrong_places, at_most=0)
    assert not accepted, accepted[:3]
