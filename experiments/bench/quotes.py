"""Are true quotes verified, and false ones not? Prints a table and one JSON line.

    python experiments/bench/quotes.py [FILE_OR_FOLDER...] [--seed N] [--quick]

2,800 true quotes, 200 of each kind: passages of the documents as replies give them, set in another way,
or with an omission. 900 false ones, 100 of each kind: passages altered, cut inside a number,
or stitched together. Every quote stands in a reply, and is read from it and looked up as those of an answer
are. Without arguments, over the two documents that come with the project and generated ones full of
numbers; texts, JSON, JSONL and CSV in the given folders are read instead. Exit code 1 if a true quote was
refused or a false one is `exact`.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import re
import sys
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pearl
from pearl import Document, load
from pearl.documents.evidence import StepReply, collect
from pearl.documents.passages import sentences

N_TRUE, N_FALSE = 200, 100
MIN_DOCUMENT = 2_000
"""Characters from which a string of a data file is a document."""


class Case(NamedTuple):
    """A reply that quotes a document."""

    document: str
    reply: str


class Source:
    """A document and its sentences."""

    def __init__(self, text: str) -> None:
        self.text = text
        spans = [text[s.start : s.end] for s in sentences(text)]
        self.sentences = [" ".join(s.split()) for s in spans if 8 <= len(s.split()) <= 60]
        self.numbers = [
            s for s in self.sentences if re.search(r"(?<![\w.,/-])\d{2,}(?![\w.,/%-])", s)
        ]


Make = Callable[[random.Random, Source], Case | None]


def block(text: str) -> str:
    return "It says so:\n\n" + "\n".join(f"> {line}" for line in text.split("\n"))


# --- true quotes ------------------------------------------------------------------------------


def as_it_is(rng: random.Random, source: Source) -> Case | None:
    return Case(source.text, block(rng.choice(source.sentences)))


def unmarked(rng: random.Random, source: Source) -> Case | None:
    quote = rng.choice(source.sentences)
    return Case(source.text, f">{quote}") if quote[0].isalpha() else None  # `>5 mg` compares


def words(rng: random.Random, source: Source) -> Case | None:
    """Some words of a sentence, from one blank to another."""
    found = rng.choice(source.sentences).split()
    start = rng.randrange(len(found) - 6)
    return Case(source.text, block(" ".join(found[start : start + rng.randint(6, 20)])))


def inline(rng: random.Random, source: Source) -> Case | None:
    quote = rng.choice(source.sentences)
    begin, end = rng.choice(["“”", "«»", "「」", '""', "„“"])
    if re.search(r"""["“”„«»‹›「」]""", quote):
        return None  # the marks of a quotation are others than those within it
    return Case(source.text, f"He says {begin}{quote}{end} there.")


def other_marks(rng: random.Random, source: Source) -> Case | None:
    marks = {"“": '"', "”": '"', "‘": "'", "’": "'", '"': "”", "'": "’", "—": "--", "–": "-"}
    quote = "".join(marks.get(c, c) for c in rng.choice(source.sentences))
    return Case(source.text, block(quote.replace("--", " — ")))


def other_punctuation(rng: random.Random, source: Source) -> Case | None:
    """The commas, colons and brackets between words are left out, or are others."""
    quote = rng.choice(source.sentences)
    mark = rng.choice(["", " ,", ";"])
    said = re.sub(r"(?<=[^\W\d_])[,;:)](?= [^\W\d_])|(?<=[^\W\d_] )[(](?=[^\W\d_])", mark, quote)
    return Case(source.text, block(said)) if said != quote else None


def broken_quote(rng: random.Random, source: Source) -> Case | None:
    quote = textwrap.fill(
        rng.choice(source.sentences),
        rng.randint(20, 60),
        break_on_hyphens=False,
        break_long_words=False,
    )
    return Case(source.text, block(quote))


def hyphenated(text: str, rng: random.Random) -> str:
    """A text with line breaks within one word of ten."""

    def broken(match: re.Match[str]) -> str:
        word = match[0]
        at = rng.randint(2, len(word) - 2)
        return f"{word[:at]}-\n{word[at:]}" if rng.random() < 0.1 else word

    return re.sub(r"(?<![\w’'/@.-])[a-z]{6,}(?![\w’'/@-])", broken, text)


def hyphenated_quote(rng: random.Random, source: Source) -> Case | None:
    return Case(source.text, block(hyphenated(rng.choice(source.sentences), rng)))


def hyphenated_document(rng: random.Random, source: Source) -> Case | None:
    """The lines of the document end within words, as in a scan."""
    quote = rng.choice(source.sentences)
    at = max(source.text.find(quote[:20]), 0)
    around = source.text[max(at - 3_000, 0) : at + 3_000]
    if quote not in " ".join(around.split()):
        return None
    return Case(hyphenated(around, rng), block(quote))


def decomposed(rng: random.Random, source: Source) -> Case | None:
    return Case(source.text, block(unicodedata.normalize("NFD", rng.choice(source.sentences))))


def attributed(rng: random.Random, source: Source) -> Case | None:
    quote = rng.choice(source.sentences)
    if not quote.endswith((".", "!", "?")):
        return None
    after = rng.choice(
        [" (p. 12)", " (chapter 3)", " — The Author", " (Smith, 1998)", " [3]", "\n— the narrator"]
    )
    return Case(source.text, block(quote + after))


def left_out(rng: random.Random, source: Source) -> Case | None:
    """An omission within a sentence."""
    found = rng.choice(source.sentences).split()
    if len(found) < 12:
        return None
    start = rng.randint(3, 5)
    end = rng.randint(start + 1, len(found) - 3)
    gone = " ".join(found[start:end])
    if len(gone) > 400 or "..." in gone or "…" in " ".join(found):
        return None
    mark = rng.choice([" ... ", " … ", " […] ", "... ", "…"])
    return Case(source.text, block(" ".join(found[:start]) + mark + " ".join(found[end:])))


def ends_left_out(rng: random.Random, source: Source) -> Case | None:
    found = rng.choice(source.sentences).split()
    return Case(source.text, block("… " + " ".join(found[2:-1]).rstrip(",;") + " ..."))


def several(rng: random.Random, source: Source) -> Case | None:
    """Sentences of different places, on lines that follow each other."""
    return Case(source.text, block("\n".join(rng.sample(source.sentences, 3))))


# --- false quotes -----------------------------------------------------------------------------

COMMON = [
    "the", "of", "and", "to", "a", "in", "that", "it", "was", "he", "for", "on", "with", "as", "his", "her",
    "they", "at", "by", "had", "but", "all", "she",
]  # fmt: skip


def common_words(rng: random.Random, source: Source) -> Case | None:
    return Case(source.text, block(" ... ".join(rng.choices(COMMON, k=5))))


def halves(rng: random.Random, source: Source) -> Case | None:
    """The beginning of a sentence and the end of another that comes later."""
    i, j = sorted(rng.sample(range(len(source.sentences)), 2))
    one, other = source.sentences[i].split(), source.sentences[j].split()
    return Case(source.text, block(f"{' '.join(one[:5])} ... {' '.join(other[-5:])}"))


def neighbours(rng: random.Random, source: Source) -> Case | None:
    """The same of two sentences that follow each other."""
    i = rng.randrange(len(source.sentences) - 1)
    one, other = source.sentences[i].split(), source.sentences[i + 1].split()
    return Case(source.text, block(f"{' '.join(one[:4])} … {' '.join(other[-4:])}"))


def turned(rng: random.Random, source: Source) -> Case | None:
    found = rng.choice(source.sentences).split()
    middle = len(found) // 2
    return Case(source.text, block(" ".join(found[middle:]) + " ... " + " ".join(found[:middle])))


def other_word(rng: random.Random, source: Source) -> Case | None:
    found = rng.choice(source.sentences).split()
    at = rng.randrange(1, len(found) - 1)
    found[at] = rng.choice(rng.choice(source.sentences).split())
    return Case(source.text, block(" ".join(found)))


def word_gone(rng: random.Random, source: Source) -> Case | None:
    """A word is left out, and nothing shows it."""
    found = rng.choice(source.sentences).split()
    del found[rng.randrange(1, len(found) - 1)]
    return Case(source.text, block(" ".join(found)))


def other_number(rng: random.Random, source: Source) -> Case | None:
    quote = rng.choice(source.numbers or [""])
    altered = re.sub(
        r"(?<![\w.,/-])\d{2,}", lambda m: str(int(m[0]) + rng.randint(1, 9)), quote, count=1
    )
    return Case(source.text, block(altered)) if quote else None


def joined(rng: random.Random, source: Source) -> Case | None:
    """Two sentences from different places as one quote."""
    i, j = sorted(rng.sample(range(len(source.sentences)), 2))
    if j == i + 1:
        return None
    return Case(source.text, block(f"{source.sentences[i]} {source.sentences[j]}"))


NUMBERS = (
    (".{b} mg", "{b} mg"), ("1/{b} tablet", "{b} tablet"), ("{a}-{b} mg", "{b} mg"), ("{a}–{b} mg", "{b} mg"),
    ("{a} {b}50 mg", "{b}50 mg"), ("-{b}.4 percent", "{b}.4 percent"), ("−{b} degrees", "{b} degrees"),
    ("< {b} units", "{b} units"), ("≥{b} units", "{b} units"), ("${b} million", "{b} million"), ("{a}.{b} mg", "{b} mg"),
    ("re-sign {b} times", "resign {b} times"), ("un-ionized {b} times", "unionized {b} times"), ("1,{b}0 g", "{b}0 g"),
)  # fmt: skip


def cut_number(rng: random.Random, source: Source) -> Case | None:
    """The quote begins inside a number, or joins a word with a hyphen."""
    said, quoted = rng.choice(NUMBERS)
    values = {"a": rng.randint(2, 9), "b": rng.randint(10, 99)}
    if " {b}50" in said:
        values["b"] = rng.randint(2, 9)
    end = f" was the amount that {rng.choice(['Ann', 'Ben', 'Cem'])} noted at {rng.randint(1, 12)} o'clock"
    document = f"{source.text}\n\nBefore that, {said.format(**values)}{end}, and it stayed so.\n"
    return Case(document, block(quoted.format(**values) + end))


TRUE: tuple[Make, ...] = (
    as_it_is, unmarked, words, inline, other_marks, other_punctuation, broken_quote, hyphenated_quote, hyphenated_document, decomposed,
    attributed, left_out, ends_left_out, several,
)  # fmt: skip
FALSE: tuple[Make, ...] = (
    common_words, halves, neighbours, turned, other_word, word_gone, other_number, joined, cut_number,
)  # fmt: skip

ALTERED = set(FALSE) - {cut_number}  # which says what the number's end says


def is_said(case: Case, source: Source) -> bool:
    """Whether an altered quote stands in the document after all, punctuation aside."""
    return letters(case.reply.split("\n\n", 1)[1]) in letters(source.text)


def letters(text: str) -> str:
    return re.sub(r"[\W_]", "", text)


def made(make: Make, n: int, rng: random.Random, sources: list[Source]) -> Iterator[Case]:
    """Quotes of a kind."""
    tries = 0
    while n:
        tries += 1
        if tries > 100_000:
            raise SystemExit(f"the documents give too few quotes of the kind {make.__name__}")
        source = rng.choice(sources)
        try:
            case = make(rng, source)
        except (IndexError, ValueError):  # this document has no sentence of the kind
            continue
        if case is None or (make in ALTERED and is_said(case, source)):
            continue
        n -= 1
        yield case


def results(case: Case) -> tuple[set[str], set[str]]:
    """How the passages of a reply were found, and why its quotes were refused."""
    reply = StepReply("a", case.reply)
    evidence, unverified = collect([reply], Document(case.document))
    refused = {quote.reason for quote in unverified}
    return {each.match for each in evidence}, set(refused)


def strings(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict | list):
        for each in data.values() if isinstance(data, dict) else data:
            yield from strings(each)


def texts(path: Path) -> Iterator[str]:
    """The long texts of a file, or of all files of a folder."""
    if path.is_dir():
        for each in sorted(path.rglob("*")):
            if each.is_file():
                yield from texts(each)
        return
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".csv":
        csv.field_size_limit(sys.maxsize)
        rows: Any = list(csv.reader(text.splitlines(keepends=True)))
    elif text.lstrip()[:1] in {"{", "["}:
        try:
            rows = json.loads(text)
        except json.JSONDecodeError:
            rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    else:
        rows = text
    yield from (each for each in strings(rows) if len(each) >= MIN_DOCUMENT)


def shipped() -> Iterator[str]:
    """The documents of the project, and generated ones full of numbers."""
    for name in ("story.txt", "consultation.txt"):
        yield load(Path(pearl.__file__).parent / "documents/demo" / name).text
    rng = random.Random(0)
    for _ in range(2):
        yield "\n\n".join(
            " ".join(
                f"On day {rng.randint(10, 99)} the {rng.choice(['nurse', 'clerk', 'pilot'])} noted that {rng.randint(100, 900)} of the"
                f" {rng.choice(['long', 'old', 'well-known'])} {rng.choice(['boxes', 'reports', 'letters'])} had {rng.choice(['not ', 'never ', '', ''])}"
                f"been opened, which took {rng.randint(2, 9)}.{rng.randint(10, 99)} hours."
                for _ in range(6)
            )
            for _ in range(10)
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="a tenth of them")
    given = parser.parse_args()
    rng = random.Random(given.seed)
    found = [text for path in given.paths for text in texts(path)] or list(shipped())
    sources = [
        s for s in map(Source, rng.sample(found, min(len(found), 200))) if len(s.sentences) > 5
    ]
    share = 10 if given.quick else 1
    totals: Counter[str] = Counter()
    print(f"{'kind':<22}{'n':>6}{'exact':>7}{'normalised':>12}{'elided':>8}{'refused':>9}  why")
    for makes, n in ((TRUE, N_TRUE // share), (FALSE, N_FALSE // share)):
        what = "true" if makes is TRUE else "false"
        for make in makes:
            seen: Counter[str] = Counter()
            why: Counter[str] = Counter()
            for case in made(make, n, rng, sources):
                matches, refused = results(case)
                for name in ("exact", "normalised", "elided"):
                    seen[name] += name in matches and not refused
                if refused or not matches:
                    seen["refused"] += 1
                    why.update(refused or {"not read from the reply"})
                    if makes is TRUE:
                        print(
                            json.dumps(case.reply[:300], ensure_ascii=False),
                            refused,
                            file=sys.stderr,
                        )
                totals[f"{what} verified"] += bool(matches) and not refused
                totals[f"{what} exact"] += "exact" in matches and not refused
                totals[f"{what} refused"] += bool(refused) or not matches
                totals[what] += 1
            counts = "".join(
                f"{seen[name]:>{width}}"
                for name, width in (("exact", 7), ("normalised", 12), ("elided", 8), ("refused", 9))
            )
            print(f"{make.__name__:<22}{n:>6}{counts}  {dict(why) or ''}")
    print(json.dumps(dict(totals) | {"documents": len(sources), "seed": given.seed}))
    return 1 if totals["true refused"] or totals["false exact"] else 0


if __name__ == "__main__":
    sys.exit(main())
