"""Answers that a model composes from the results of several steps."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Callable

import pytest

from pearl import Answer, Document, Pearl
from pearl.documents.document import join
from pearl.documents.tokens import estimate
from pearl.errors import ExecutionError, ModelError
from pearl.interpreter.composing import MAX_NAMED, ROW_TOKENS
from pearl.llm import CheckTask, ItemsTask, Request
from pearl.llm.backends.scripted import Scripted
from tests.models import Reading, item_lines, verdicts

LETTERS = "abcdefghijklmnopqrstuvwxyz"
STORY = Document(
    "It rained. Ada sold the boat for 1,200 crowns because it leaked. Ada had a boat called Maria, "
    "and another called Elsa. Her brother, aged 17, wept.",
    "boats.txt",
)
QUESTION = "Why did Ada sell the boat, and how many boats did she have?"
PLAN = f"""Question: {QUESTION}

New actions:
- None

1. reason = FIND_REASON(CTX, "the selling of the boat") : Find why Ada sold the boat
2. boats = LIST_ALL(CTX, "boats of Ada") : List the boats of Ada
3. n = COUNT(boats) : Count the boats
4. answer = ANSWER("{QUESTION}", reason, n) : Answer the question
"""
STEPS = {
    "FIND_REASON": "It leaked, so she took 1,200 crowns.\n> Ada sold the boat for 1,200 crowns because it leaked.",
    "LIST_ALL": "- Maria\n> Ada had a boat called Maria\n- Elsa\n> and another called Elsa.",
}


def replying(
    composed: str | Callable[[Request], str],
    verdict: Callable[[str, str], str] = lambda claim, passage: "supported",
    **steps: str,
) -> Reading:
    replies = {**STEPS, **steps}

    def reply(request: Request) -> str:
        if isinstance(request.task, CheckTask):
            return verdicts(*(verdict(*claim) for claim in request.task.claims))
        action = request.task.action.name  # type: ignore[union-attr]
        if action != "ANSWER":
            return replies[action]
        return composed if isinstance(composed, str) else composed(request)

    return Reading(reply)


def ask(model: Scripted, plan: str = PLAN, **settings: object) -> Answer:
    return asyncio.run(Pearl(model, first_wait_s=0.001, **settings).execute(plan, STORY))  # type: ignore[arg-type]


def test_sentences_cite_the_evidence_and_values_are_inserted() -> None:
    answer = ask(replying("She had {n} boats [2][3]. Ada sold one because it leaked. [1]"))
    assert answer.text == "She had 2 boats. Ada sold one because it leaked."
    assert answer.markdown == "She had 2 boats.[^2][^3] Ada sold one because it leaked.[^1]"
    assert answer.evidence[0].text.endswith("because it leaked.")
    assert answer.value == {"reason": STEPS["FIND_REASON"].partition("\n")[0], "n": 2}
    assert (answer.status, answer.outputs, answer.notes) == ("answered", ("reason", "n"), ())
    assert [part.evidence for part in answer.parts] == [(1,), (2, 3)]


@pytest.mark.parametrize(
    ("reply", "text", "note"),
    [
        ("It leaked [1]. She was rich [7].", "It leaked.", "1 sentence without a citation"),
        ("It leaked [1][9].", "It leaked.", "1 citation without a quote"),
        (
            "She took 1,200 crowns [1], “Ada sold the boat” [1].",
            "She took 1,200 crowns, “Ada sold the boat”.",
            "",
        ),
        (
            "It leaked [1].\n\nShe murdered Bob:\n\nIt leaked [1].",
            "It leaked.\n\nShe murdered Bob:\n\nIt leaked.",
            "",
        ),
        ("1. It leaked [1]\n2. {n} boats [2]", "1. It leaked\n2. 2 boats", ""),
        ("- It leaked [1]\n- {n} boats [2]", "- It leaked\n- 2 boats", ""),
        ("She had two boats [2].", "She had two boats.", ""),
        ("She had two boats:\n- Maria [2]\n- Elsa [3]", "She had two boats:\n- Maria\n- Elsa", ""),
        # The parts are shown instead:
        ("She had four boats:\n- Maria [2]\n- Elsa [3]", "", "it says '4'"),
        ("She had 3 boats [2].", "", "it says '3'"),
        ("She had {m} boats [2].", "", "it names '{m}'"),
        ("She had {n}**{n}** boats [2].", "", "it says '22'"),
        ("She had {n}\u200b{n} boats [2].", "", "it says '22'"),
        ('It leaked, "she drowned him" [1].', "", "it says 'she drowned him'"),
        ("> She drowned her brother. [1]", "", "it says 'She drowned"),
        ("[1] It leaked. [2] She had {n} boats.", "", "citations stand before"),
        ("Ada liked the sea.", "", "no sentence cites"),
        ("| a [1] |\n|---|\n| b [1] |", "", "or is a table"),
        ("".join(f"It {a}{b} leaked [1]. " for a in LETTERS for b in LETTERS), "", "characters"),
        ("I'm sorry, but I can't help with that.", "", "no sentence cites"),
        ("\x00\x1b[2J", "", "no composed answer"),
    ],
)
def test_citations_and_numbers_of_the_model_are_checked(reply: str, text: str, note: str) -> None:
    model = replying(reply)
    answer = ask(model)
    if text and not {"2", "two"} & {*text.split()}:  # a computed number is never lost
        text += f"\n\n{COUNTED}"
    assert answer.text == (text or PARTS)
    assert not text.endswith(COUNTED) or answer.markdown.endswith(f"{COUNTED}[^2][^3]")
    assert not answer.steps[-1].is_native
    assert note in " ".join(answer.notes)
    assert bool(answer.notes) == bool(note)
    # the labelled parts may leave some of the question open
    assert text or answer.status == "degraded"
    if note != "no composed answer":  # the client asks again after a refusal or an empty reply
        assert len(model.requests) == (4 if text else 3)  # two steps, the composer, the checker


WHOLE = "Ada sold the boat for 1,200 crowns because it leaked. [1] She had {n} boats [2][3]."
MIXED = "The boat leaked [1]. It did not leak [1]. She had {n} boats [2][3]."
COUNTED = "Count the boats: 2"
PARTS = f"Find why Ada sold the boat: It leaked, so she took 1,200 crowns.\n\n{COUNTED}"


def honest(claim: str, passage: str) -> str:
    return "contradicted" if " not " in claim else "not stated" if "Bob" in claim else "supported"


@pytest.mark.parametrize(("reply", "text", "note", "settings"), [
    (MIXED, "The boat leaked. […] She had 2 boats.", "say otherwise: 'It did not leak.'", {}),
    (MIXED.replace(" not leak", " leak on Bob"), "The boat leaked. […] She had 2 boats.",
     "say nothing of it: 'It did leak on Bob.'", {}),
    ("It did not leak [1]. She had {n} boats [2].", PARTS, "do not support 1 of its 2 sentences", {}),
    ("It leaked [1]. Ada sold it [1]. Bob had {n} boats [2].", f"It leaked. Ada sold it. […]\n\n{COUNTED}", "say nothing of it", {}),
    ("It did not leak [1]. Bob had {n} boats [2]. It leaked [1].", PARTS, "do not support 2 of its 3 sentences", {}),
    ("Bob sold it [1]. She had Maria [2]. She had {n} boats [3].",
     f"[…] She had Maria. She had 2 boats.\n\n{PARTS.partition(chr(10))[0]}", "of it: 'Bob sold it.'", {}),
    ("It did not leak [1].", PARTS, "do not support 1 of its 1 sentence", {}),
    ("Bob had two boats:\n- Maria [2]\n- Elsa of {n} [3]", "[…]\n- Maria\n- Elsa of 2", "say nothing of it: 'Bob had two boats:'", {}),
    ("It leaked [1].\nOf boats:\n- Bob [2]\n- {n} [3]", "It leaked.\nOf boats:\n- […]\n- 2", "of it: 'Bob'", {}),
    ("It leaked [1].\n{n} were there [2].\nOf boats:\n- Bob [2]", "It leaked.\n2 were there.\n- […]", "of it: 'Bob'", {}),
    (MIXED, MIXED.replace("{n}", "2"), "meaning was not checked", {"check": "off"}),
    (WHOLE, WHOLE.replace("{n}", "2"), "", {}),
    (WHOLE, WHOLE.replace("{n}", "2"), "", {"check": "all"}),
])  # fmt: skip
def test_sentences_that_their_quotes_do_not_say_are_left_out(
    reply: str, text: str, note: str, settings: dict[str, str]
) -> None:
    model = replying(reply, honest)
    answer = ask(model, **settings)
    assert answer.text == re.sub(r" ?\[\d\]", "", text)
    assert note in " ".join(answer.notes)
    assert bool(answer.notes) == bool(note)
    # what is left out may be a part of the answer, and what stands behind it may refer to it
    assert answer.status == ("degraded" if text == PARTS or "[…]" in text else "answered")
    asked = [each.task for each in model.requests if isinstance(each.task, CheckTask)]
    assert len(asked) == (settings != {"check": "off"})
    checks = answer.to_dict()["steps"][-1]["checks"]
    assert len(checks["sentences"]) == len(answer.steps[-1].checks.verdicts) > 0
    assert {each["verdict"] for each in checks["sentences"]} <= {
        "copied", "supported", "contradicted", "not stated", *(["not checked"] if not asked else []),
    }  # fmt: skip
    assert checks.get("by") == (model.name if asked else None)
    if reply is WHOLE:
        first, second = checks["sentences"]
        is_all = settings == {"check": "all"}
        assert (first["verdict"], second["verdict"]) == (
            "supported" if is_all else "copied",
            "supported",
        )
        assert len(asked[0].claims) == (2 if is_all else 1)
        assert answer.steps[-1].n_calls == 2


def test_a_claim_has_the_passage_of_its_own_quotes_and_what_is_computed() -> None:
    model = replying("Ada sold it as it leaked [1]. She had {n} boats [3]. Maria was a boat [2].")
    ask(model)
    (task,) = (each.task for each in model.requests if isinstance(each.task, CheckTask))
    assert task.question == QUESTION
    before, sold = "It rained.", "[[Ada sold the boat for 1,200 crowns because it leaked.]]"
    maria, elsa = "Ada had a boat called Maria", "and another called Elsa."
    assert task.claims == (
        ("Ada sold it as it leaked.", f"{before} {sold} {maria}, {elsa}"),
        ("She had 2 boats.", f"Count the boats: 2\n\n{sold[2:-2]} {maria}, [[{elsa}]] Her brother, aged 17, wept."),
        ("Maria was a boat.", f"Count the boats: 2\n\n{sold[2:-2]} [[{maria}]], {elsa} Her brother, aged 17, wept."),
    )  # fmt: skip


@pytest.mark.parametrize("reply", ["I think all of it is right.", verdicts("supported"), ""])
def test_an_answer_that_could_not_be_checked_says_so_and_is_degraded(reply: str) -> None:
    def silent(request: Request) -> str:
        return reply if isinstance(request.task, CheckTask) else talking(request)

    talking = replying(MIXED)._reply
    answer = ask(Reading(silent))
    assert answer.text == re.sub(r" \[\d\]|\[\d\]", "", MIXED.replace("{n}", "2"))
    assert answer.status == "degraded"
    assert answer.why.startswith("step 'answer' (ANSWER): meaning was not checked: ")
    assert "not checked" in {verdict for _, verdict in answer.steps[-1].checks.verdicts}


@pytest.mark.parametrize(
    ("reply", "evidence"),
    [
        ("- **Maria**\n> a boat called Maria\n- Elsa\n> another called Elsa", [(1,), (2,)]),
        ("- Maria\n- Elsa\n> another called Elsa\n> a boat called Maria", [(2,), (1,)]),
        ("> a boat called Maria\n- Maria\n> another called Elsa\n- Elsa", [(1,), (2,)]),
        ("- Maria\n- Ada\n> another called Elsa", [(), ()]),
    ],
)
def test_an_entry_owns_its_quotes(reply: str, evidence: list[tuple[int, ...]]) -> None:
    plan = '1. boats = LIST_ALL(CTX, "boats") : List them'
    for steps in (plan, f"{plan}\n2. same = UNIQUE(boats) : Drop repeats"):
        (part,) = ask(replying("unused", LIST_ALL=reply), steps).parts
        assert [entry.evidence for entry in part.entries] == evidence


@pytest.mark.parametrize(("reply", "value"), [
    ("- It leaked.\n- It was old.\n> it leaked.", ["It leaked.", "It was old."]),
    ("It leaked.\n> - it leaked.\n> - it was old.", "It leaked."),
])  # fmt: skip
def test_a_text_that_is_a_list_is_a_list_as_data(reply: str, value: object) -> None:
    answer = ask(replying("It leaked [1].", FIND_REASON=reply))
    assert answer.parts[0].value == value


def test_long_and_contradicting_results_fit_the_prompt_and_are_degraded() -> None:
    prompts: list[str] = []

    def compose(request: Request) -> str:
        prompts.append(request.prompt)
        return "One result says yes [1], another no [2]."

    plan = PLAN.replace(", reason, n)", ", reason, boats)")
    long = "No. " + "".join(
        f"It was {a}{b}{c} wet. " for a in LETTERS for b in LETTERS for c in LETTERS * 3
    )
    boats = [f"the boat x{a}{b}" for a in LETTERS for b in LETTERS]
    entries = json.dumps({"entries": boats, "quotes": ["Ada had a boat called Maria"]})
    reason = f"{long}\n> It rained."
    answer = ask(replying(compose, FIND_REASON=reason, LIST_ALL=entries), plan)
    assert answer.text == "One result says yes, another no.\n\nCount the boats: 676"
    assert estimate(prompts[0]) <= 1_500 + ROW_TOKENS * MAX_NAMED
    assert answer.status == "degraded"
    (note,) = answer.notes
    assert re.search(
        r"boat: [\d,]+ characters of [\d,]+ left out; .* of 676 entries left out", note
    )
    assert "composed without all of the results" in answer.why


def test_short_entries_leave_their_room_to_longer_ones() -> None:
    prompts: list[str] = []

    def compose(request: Request) -> str:
        prompts.append(request.prompt)
        return "There are boats [1]."

    boats = [f"boat {i}" for i in range(50)]
    boats += [f"The longest boat {'was wet and ' * 300}sank"]
    boats += ["It is told of the last boat that " + "it was seen by many who had no boat; " * 200]
    entries = json.dumps({"entries": boats, "quotes": ["Ada had a boat called Maria"]})
    plan = PLAN.replace(", reason, n)", ", reason, boats)")
    ask(replying(compose, FIND_REASON="It rained. " * 400, LIST_ALL=entries), plan)
    assert re.search(r"was wet and sank$", prompts[0], re.M)


def test_rows_that_do_not_fit_are_counted_in_the_prompt_and_degrade_the_answer() -> None:
    table = Document("id,kind\n" + "".join(f"ship{i},yes\n" for i in range(400)), "all.csv")
    prompts: list[str] = []

    def reply(request: Request) -> str:
        if isinstance(request.task, ItemsTask):
            return item_lines(request, lambda item: "yes")
        if isinstance(request.task, CheckTask):
            return verdicts(*["supported"] * len(request.task.claims))
        prompts.append(request.prompt)
        return "One is ship0 [1]."

    plan = """1. rows = SPLIT(CTX, "record") : Split
2. kept = FILTER(rows, "it is of the yard") : Of the yard
3. n = COUNT(rows) : Ships
4. answer = ANSWER("Which?", kept, n) : Answer"""
    answer = asyncio.run(Pearl(Reading(reply)).execute(plan, table))
    (prompt,) = prompts
    n_named = len(re.findall(r"^- ship\d+\b", prompt, re.M))
    assert 0 < n_named < 400
    assert "(400 in all)" in prompt
    assert f"({400 - n_named} more are not named here)" in prompt
    assert estimate(prompt) <= 1_600 + ROW_TOKENS * MAX_NAMED
    assert "Of the yard: 400 rows" in answer.text
    assert len(answer.row_evidence) == 400
    assert answer.status == "degraded"
    assert "composed without all of the results" in answer.why


@pytest.mark.parametrize(
    ("reply", "note"),
    [
        ("All grant much [1].", "composed without all"),
        ("All grant 77 rights [1].", "it says '77'"),  # stands in what is left out
        ("All grant {left} rights [1].", "it says"),  # the number of characters that are left out
    ],
)
def test_what_a_composer_does_not_see_supports_nothing(reply: str, note: str) -> None:
    files = [
        Document("Short.\n\n" + "It grants much. " * 400 + "It grants 77 rights.", f"{name}.txt")
        for name in "ab"
    ]
    prompts: list[str] = []

    def compose(request: Request) -> str:
        prompts.append(request.prompt)
        (left, *_) = re.findall(r"\(([\d,]+) more characters\)", request.prompt)
        return reply.replace("{left}", left)

    plan = """1. parts = SPLIT(CTX, "paragraph") : Split
2. n = COUNT(parts) : Count
3. answer = ANSWER("What is granted?", parts, n) : Answer"""
    answer = asyncio.run(Pearl(replying(compose)).execute(plan, join(files)))
    assert answer.status == "degraded"
    assert note in answer.notes[0]
    names = [f"- {name}.txt, row {i}: " for i, name in enumerate("aabb", start=1)]
    assert [name in prompts[0] for name in names] == [True] * 4
    assert estimate(prompts[0]) > 900  # what the short ones do not need is left to the others


def test_no_number_of_a_lying_composer_is_shown() -> None:
    """Replies with true and false numbers in many forms; a false one never reaches the answer."""
    draw = random.Random(24)
    numerals = (
        "two three four five seven eleven twelve nineteen twenty thirty-six fifty ninety-nine"
    )
    words = numerals.split()
    sentences = [
        "She had {} boats", "About {} crowns were paid", "It cost ${}", "It leaked {} % of the time",
        "On day {} she left", "There were {} million of them", "- {} of the boats", "It was {}.5 metres",
    ]  # fmt: skip
    n_composed = 0
    for _ in range(60):
        pieces = []
        for _ in range(draw.randint(1, 4)):
            number = draw.choice([
                "{n}", "2", "1,200", "17", str(draw.randint(0, 3_000)), f"{draw.randint(1, 9)},{draw.randint(100, 999)}",
                draw.choice(words), f"-{draw.randint(1, 20)}", f"{draw.random():.2f}",
            ])  # fmt: skip
            cites = "".join(f"[{draw.randint(1, 5)}]" for _ in range(draw.randint(0, 2)))
            pieces.append(f"{draw.choice(sentences).replace('{}', number)} {cites}.")
        answer = ask(replying(" ".join(pieces)))
        n_composed += bool(answer.composed)
        allowed = {"2", "two", "1,200"}
        shown = re.findall(r"\d[\d,.]*\d|\d|\b(?:" + "|".join(words) + r")\b", answer.text)
        assert set(shown) <= allowed, answer.text
        assert not re.search(r"million|%|\$|-\d", answer.text)
    assert n_composed > 2


def test_an_error_of_the_server_ends_the_run() -> None:
    def fail(request: Request) -> str:
        raise ModelError("no credit is left", kind="quota")

    with pytest.raises(ExecutionError, match="no credit"):
        ask(replying(fail))
