"""Compare forms of reply for one reading step.

    python -m experiments.reader.prompts requests [--variants a,b] [--half dev] > requests.jsonl
    python -m experiments.reader.prompts score RESULTS.jsonl
    python -m experiments.reader.prompts ask --model llamacpp:FILE --out RESULTS.jsonl [--variants a,b] [--every N]

The request is the one that `pearl execute` sends for a question whose plan is one reading step; a variant has
another form of reply in it. `requests` writes {"id", "group", "messages", "schema", "max_tokens"}; `score` reads
{"id", "text", "n_input_tokens", "n_output_tokens"}, as `ask` appends them to a file.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import click

from experiments.reader.questions import HALVES, Question, read_questions, text_of
from experiments.reader.rules import outcome
from pearl import Pearl
from pearl.documents.document import Document
from pearl.documents.evidence.verifying import Verifier
from pearl.documents.passages import sentences
from pearl.dsl.decoding.constraint import Constraint, JsonForm, closed_object
from pearl.llm import ChooseTask, Message, Model, Request
from pearl.llm.backends.scripted import Scripted
from pearl.llm.client import Client, ClientSettings
from pearl.runs.reviewing import wilson

MAX_TOKENS = 400
ASKED = "Reply with one JSON object and nothing else:\n"

_STRING = {"type": "string"}
_OR_NULL = {"anyOf": [_STRING, {"type": "null"}]}
_STRINGS = {"type": "array", "items": _STRING, "maxItems": 8}
_MANY = {**_STRINGS, "maxItems": 40}
_SOME = {"anyOf": [_STRING, _STRINGS]}
_VERDICTS = {"enum": ["yes", "no", "not stated"]}

VALUES: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "text": ("answer", "the result, in a few words or sentences; null if the text does not tell.", _OR_NULL),
    "number": (
        "value", "one number in digits as the text has it, with its minus, its unit and its scale, such as "
        '"million"; null if the text does not tell.', _OR_NULL,
    ),
    "yesno": ("verdict", '"yes", "no", or "not stated" if the text does not tell.', _VERDICTS),
}  # fmt: skip
"""The key of a value, what a prompt says of it, and its schema; of lists, see `LISTS`."""

QUOTES: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "quotes": ("quotes", "the decisive passages, copied word for word.", _STRINGS),
    "sentences": ("quotes", "one to three sentences of the text that tell it, copied word for word.", _STRINGS),
    "one quote": ("quote", "the one sentence of the text that tells it, copied word for word.", _OR_NULL),
    "one or some": (
        "quote", "the sentence of the text that tells it, copied word for word; a list of sentences if one is "
        "not enough.", _SOME,
    ),
}  # fmt: skip

_ENTRIES = '"entries": every entry once, and nothing else; [] if the text has none.\n'
_PAIR = '{"entry": "...", "quote": "..."}'
_PAIRS = {"entries": {**_MANY, "items": closed_object({"entry": _STRING, "quote": _STRING})}}
_QUOTED = '"quote": the passage that has the entry, copied word for word.'
LISTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "pairs": (f'{{"entries": [{_PAIR}]}}\n{_ENTRIES}{_QUOTED}', _PAIRS),
    "two pairs shown": (f'{{"entries": [{_PAIR}, {_PAIR}]}}\n{_ENTRIES}{_QUOTED}', _PAIRS),
    "entries, quotes": (
        f'{{"entries": ["...", "..."], "quotes": ["..."]}}\n{_ENTRIES}"quotes": the sentences that tell them, copied '
        "word for word.", {"entries": _MANY, "quotes": _STRINGS},
    ),
    "entries, a quote of each": (
        f'{{"entries": ["...", "..."], "quotes": ["...", "..."]}}\n{_ENTRIES}"quotes": for every entry, in the same order, the sentence that has it, copied word for '
        "word.", {"entries": _MANY, "quotes": _MANY},
    ),
}  # fmt: skip

EXAMPLE = """
Example: of the text "The mill burnt down in May, because the miller slept. It was rebuilt of stone." and \
the task "Find the reasons for this: the mill burnt down." the reply is
{"answer": "The miller slept", "quotes": ["The mill burnt down in May, because the miller slept."]}"""


class Variant(NamedTuple):
    """A form of reply: the kinds of questions that are asked in it, and what differs."""

    kinds: frozenset[str]
    quotes: str = "quotes"
    of_list: str = "pairs"
    is_quote_first: bool = False
    as_text: bool = False
    has_example: bool = False
    is_choosing: bool = False
    """Whether a quote can only be a whole sentence of the text: the schema lists them."""


_ALL = frozenset({"text", "number", "yesno", "list"})
_ONE = _ALL - {"list"}
VARIANTS: Mapping[str, Variant | None] = {
    "bare": None,
    "quotes": Variant(_ALL),
    "text form for all": Variant(_ALL - {"text"}, as_text=True),
    "sentences": Variant(_ONE, "sentences"),
    "quotes first": Variant(_ONE, "sentences", is_quote_first=True),
    "example": Variant(frozenset({"text"}), "sentences", has_example=True),
    "choosing": Variant(_ALL, is_choosing=True),
    "one quote": Variant(_ONE, "one quote"),
    "one or some": Variant(_ONE, "one or some"),
    "one or some, quote first": Variant(_ONE, "one or some", is_quote_first=True),
    **{name: Variant(frozenset({"list"}), of_list=name) for name in LISTS if name != "pairs"},
}  # fmt: skip


def kind_of(question: Question) -> str:
    """The kind of the form in which a question is asked."""
    return question["kind"] if question["kind"] in _ALL else "text"


def form_of(variant: Variant, kind: str) -> tuple[str, dict[str, Any]]:
    """What a prompt says of a form, and its schema."""
    if kind == "list" and not variant.as_text:
        said, properties = LISTS[variant.of_list]
        return said, closed_object(properties)
    pair = [VALUES["text" if variant.as_text else kind], QUOTES[variant.quotes]]
    parts = pair[::-1] if variant.is_quote_first else pair
    keys = ", ".join(
        f'"{key}": ["..."]' if schema is _STRINGS else f'"{key}": "..."' for key, _, schema in parts
    )
    said = "\n".join([f"{{{keys}}}", *(f'"{key}": {words}' for key, words, _ in parts)])
    return said + EXAMPLE * variant.has_example, closed_object(
        {key: schema for key, _, schema in parts}
    )


@cache
def _asked(half: str) -> Mapping[str, tuple[Message, ...]]:
    """The messages of PEARL for the questions that one reading step answers, up to the form of reply."""
    return {
        question["id"]: messages
        for question in read_questions(half)
        if (messages := _first_request(question)) is not None
    }


def _first_request(question: Question) -> tuple[Message, ...] | None:
    sent: list[Request] = []

    def reply(request: Request) -> str:
        sent.append(request)
        return (
            '{"answer": null, "entries": [], "value": null, "verdict": "not stated", "quotes": []}'
        )

    if len(re.findall(r"^\d+\. ", question["plan"], re.M)) != 1 or "EXTRACT" in question["plan"]:
        return None
    pearl = Pearl(Scripted(reply), domain=question["domain"])
    document = Document(text_of(question["text"]), question["text"])
    asyncio.run(pearl.execute(question["plan"], document))
    system, user = sent[0].messages
    return system, Message("user", user.content[: user.content.index(ASKED)])


def single_steps(half: str) -> list[Question]:
    """The questions whose plan is one step that reads the text."""
    return [each for each in read_questions(half) if each["id"] in _asked(half)]


def request(name: str, question: Question) -> dict[str, Any] | None:
    """The request of a variant for a question; None for a kind of question that it leaves out."""
    variant, text = VARIANTS[name], text_of(question["text"])
    if variant is None:
        schema = None
        parts = [text, question["question"], "Answer in a few words, from the text above only."]
        messages = [Message("user", "\n\n".join(parts))]
    elif kind_of(question) not in variant.kinds:
        return None
    else:
        said, schema = form_of(variant, kind_of(question))
        system, user = _asked(question["half"])[question["id"]]
        messages = [system, Message("user", f"{user.content}{ASKED}{said}")]
        schema = _choosing(schema, text) if variant.is_choosing else schema
    return {
        "id": f"{name}/{question['id']}",
        "group": name,
        "messages": [{"role": each.role, "content": each.content} for each in messages],
        "schema": schema,
        "max_tokens": MAX_TOKENS,
    }


def _choosing(schema: Any, text: str) -> Any:
    """The schema with the sentences of the text in place of free quotes."""
    cut = dict.fromkeys(text[span.start : span.end].strip() for span in sentences(text))
    one = {"enum": list(cut)}

    def replaced(key: str, value: Any) -> Any:
        if key == "quote":
            return one
        if key == "quotes":
            return {**value, "items": one}
        if isinstance(value, dict):
            return {name: replaced(name, each) for name, each in value.items()}
        return value

    return replaced("", schema)


def read(name: str, reply: str) -> tuple[str | None, list[str]]:
    """The answer of a reply, None if there is none, and its quotes."""
    return (reply.strip(), []) if VARIANTS[name] is None else read_json(reply)


def read_json(reply: str) -> tuple[str | None, list[str]]:
    """The answer and the quotes of a JSON object, whatever its form is called."""
    try:
        data = json.loads(reply[reply.find("{") : reply.rfind("}") + 1], strict=False)
    except json.JSONDecodeError:
        return reply.strip(), []  # it is judged as it stands, without quotes
    given = data.get("quotes") or data.get("quote") or []
    quotes = [given] if isinstance(given, str) else list(given)
    if (entries := data.get("entries")) is not None:
        pairs = [each for each in entries if isinstance(each, dict)]
        quotes += [pair.get("quote", "") for pair in pairs]
        words = [pair.get("entry", "") for pair in pairs] or list(entries)
        return "\n".join(f"- {word}" for word in words) or None, quotes
    value = next((data[key] for key in ("answer", "value", "verdict") if key in data), None)
    return None if value is None else str(value), [str(quote) for quote in quotes]


def are_true(quotes: Sequence[str], text: str) -> bool:
    """Whether there are quotes and all stand in the text."""
    verifier = Verifier(text)
    return bool(quotes) and all(verifier.verify(quote).is_verified for quote in quotes)


@dataclass
class Score:
    """The figures of a variant."""

    right: int = 0
    n: int = 0
    not_found: int = 0
    answerable: int = 0
    silent_right: int = 0
    silent: int = 0
    quoted: int = 0
    answers: int = 0
    n_in: int = 0
    n_out: int = 0
    by_kind: dict[str, list[int]] | None = None


def score(results: Iterable[Mapping[str, Any]]) -> dict[str, Score]:
    """The figures of every variant in the results."""
    asked = {question["id"]: question for question in read_questions()}
    made: dict[str, Score] = defaultdict(Score)
    for each in results:
        name, _, id = each["id"].rpartition("/")
        question = asked[id]
        answer, quotes = read(name, each["text"])
        found = outcome(answer, question)
        own = made[name]
        own.by_kind = own.by_kind or defaultdict(lambda: [0, 0])
        own.by_kind[question["kind"]][0] += found == "right"
        own.by_kind[question["kind"]][1] += 1
        own.n += 1
        own.right += found == "right"
        if question["kind"] == "not stated":
            own.silent += 1
            own.silent_right += found == "right"
        else:
            own.answerable += 1
            own.not_found += found == "not found"
            if found != "not found":
                own.answers += 1
                own.quoted += are_true(quotes, text_of(question["text"]))
        own.n_in += each.get("n_input_tokens") or 0
        own.n_out += each.get("n_output_tokens") or 0
    return made


def shown(scores: Mapping[str, Score]) -> list[str]:
    """The table of the figures, best first."""
    kinds = dict.fromkeys(kind for each in scores.values() for kind in each.by_kind or ())
    head = f"{'variant':30}{'right':>17}{'not found':>11}{'silent':>8}{'true quotes':>13}{'in':>6}{'out':>5}"
    lines = [head + "".join(f"{kind:>11}" for kind in kinds)]
    for name, each in sorted(scores.items(), key=lambda item: -item[1].right):
        low, high = wilson(each.right, each.n)
        by_kind = ("{}/{}".format(*(each.by_kind or {}).get(kind, (0, 0))) for kind in kinds)
        lines.append(
            f"{name:30}{f'{each.right}/{each.n} [{low:.0%}, {high:.0%}]':>17}"
            f"{f'{each.not_found}/{each.answerable}':>11}{f'{each.silent_right}/{each.silent}':>8}"
            f"{f'{each.quoted}/{each.answers}':>13}{each.n_in // each.n:6}{each.n_out // each.n:5}"
            + "".join(f"{cell:>11}" for cell in by_kind)
        )
    return lines


def _requests(variants: str | None, half: str, every: int) -> list[dict[str, Any]]:
    """The requests, those over one text one behind the other: its state is read once."""
    names = re.split(r",(?! )", variants) if variants else list(VARIANTS)
    if unknown := [name for name in names if name not in VARIANTS]:
        raise click.BadParameter(f"no variant {unknown[0]!r}; there are: {', '.join(VARIANTS)}")
    asked = single_steps(half)[::every]
    return [
        found
        for text in dict.fromkeys(each["text"] for each in asked)
        for name in names
        for question in asked
        if question["text"] == text and (found := request(name, question))
    ]


async def ask_all(model: str | Model, requests: Iterable[Mapping[str, Any]], out: Path) -> None:
    """Append the replies to a file."""
    client = Client(ClientSettings(model))
    for each in requests:
        form = JsonForm(each["schema"], json.dumps, "") if each["schema"] else None
        messages = tuple(Message(one["role"], one["content"]) for one in each["messages"])
        reply = await client.complete(
            Request(
                messages,
                ChooseTask("", ()),
                each["max_tokens"],
                constraint=form and Constraint("reply", "", form),
                constrain_by="json",
            )
        )
        used = {key: getattr(reply.usage, key) for key in ("n_input_tokens", "n_output_tokens")}
        with out.open("a", encoding="utf-8") as file:
            result = {"id": each["id"], "text": reply.text, **used}
            file.write(json.dumps(result, ensure_ascii=False) + "\n")
    await client.aclose()


VARIANT = click.option(
    "--variants", help="Their names, with commas and no blanks between; all without it."
)
HALF = click.option("--half", type=click.Choice(HALVES), default="dev", show_default=True)
EVERY = click.option(
    "--every", type=click.IntRange(min=1), default=1, help="Every N-th question only."
)


@click.group()
def main() -> None:
    """Compare forms of reply for one reading step."""


@main.command("requests")
@VARIANT
@HALF
@EVERY
def write_requests(variants: str | None, half: str, every: int) -> None:
    """Write the requests as JSON lines."""
    for each in _requests(variants, half, every):
        click.echo(json.dumps(each, ensure_ascii=False))


@main.command("ask")
@click.option("--model", required=True, help="llamacpp:FILE")
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path))
@VARIANT
@HALF
@EVERY
@click.option("--limit", type=click.IntRange(min=1), help="The first N requests only.")
def ask(
    model: str, out: Path, variants: str | None, half: str, every: int, limit: int | None
) -> None:
    """Send the requests that are not in the file of replies yet, and print the figures."""
    lines = out.read_text("utf-8").splitlines() if out.exists() else []
    done = {json.loads(line)["id"] for line in lines}
    wanted = _requests(variants, half, every)[:limit]
    asyncio.run(ask_all(model, [each for each in wanted if each["id"] not in done], out))
    _show(out)


@main.command("score")
@click.argument("results", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def show_score(results: Path) -> None:
    """Print the figures of replies."""
    _show(results)


def _show(results: Path) -> None:
    lines = results.read_text("utf-8").splitlines()
    click.echo("\n".join(shown(score(map(json.loads, lines)))))


if __name__ == "__main__":
    main()
