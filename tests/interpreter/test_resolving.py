"""Names written in several ways that become one: by their spelling, and by a model's verdicts on pairs."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from itertools import combinations

import pytest

from pearl import Answer, Document, Pearl
from pearl.actions.resolving import MAX_PAIRS, MAX_PARTNERS, Resolution, same_key
from pearl.documents.rows import Row, Rows
from pearl.embedded import ExtractiveModel
from pearl.errors import ModelError
from pearl.llm import ItemsTask, Request
from pearl.runs.executors import Task
from pearl.runs.forecast import forecast
from tests.models import Reading, item_lines

PLAN = """\
1. rows = SPLIT(CTX, "entry") : The orders
2. firm = RESOLVE(rows, "Firm") : One name for each firm
3. firms = GROUP(firm, "firm") : The orders of each
4. n = COUNT(firms) : How many"""

Judge = Callable[[str, str], str]


class Model:
    """Judges pairs of names; counts what it is asked."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.pairs: list[tuple[str, str]] = []
        self.prompts: list[str] = []

    def __call__(self, request: Request) -> str:
        assert isinstance(request.task, ItemsTask)
        self.prompts.append(request.prompt)

        def verdict(item: str) -> str:
            a, b = item.removeprefix("A: ").split("\nB: ")
            self.pairs.append((a, b))
            return self.judge(a, b)

        return item_lines(request, verdict)


def orders(*firms: str) -> Document:
    return Document(
        "\n".join(f"Id: {i} || Firm: {firm} || Item: boat" for i, firm in enumerate(firms))
    )


def run(document: Document, judge: Judge | Model, plan: str = PLAN, **settings: object) -> Answer:
    model = judge if isinstance(judge, Model) else Model(judge)

    async def main() -> Answer:
        async with Pearl(Reading(model), **settings) as pearl:  # type: ignore[arg-type]
            said = forecast(pearl, [Task("", lambda: document, plan=plan)]).total.calls
            answer = await pearl.execute(plan, document)
            assert said.least <= len(model.prompts) <= said.upper
            return answer

    return asyncio.run(main())


def names(answer: Answer) -> list[str | None]:
    return [row.fields["firm"] for row in answer.row_evidence]


def by(table: Mapping[str, object]) -> Judge:
    """An honest judge that knows whose names these are."""
    return lambda a, b: "same" if table[a] == table[b] else "different"


def test_the_most_frequent_spelling_is_the_name_and_each_change_has_its_reason() -> None:
    whose = {"IBM": 1, "International Business Machines": 1, "Apple": 2}
    firms = ["ibm", "IBM", "International Business Machines", "IBM", "Apple", "“Apple”", "n/a"]
    document = orders(*firms)
    answer = run(document, by(whose))
    assert names(answer) == ["IBM", "IBM", "IBM", "IBM", "Apple", "Apple"]
    assert (answer.status, answer.value) == ("answered", 2)
    assert [row.fields["firm (why)"] for row in answer.row_evidence] == [
        "its spelling", "", "a model says that 'IBM' and 'International Business Machines' are the same", "", "",
        "its spelling",
    ]  # fmt: skip
    note = (
        "firm: 5 spellings are 2 names: IBM = ibm, International Business Machines; Apple = “Apple”"
    )
    assert note in answer.notes


@pytest.mark.parametrize(
    ("a", "b", "is_same"),
    [
        ("ACME  Corp.", "Acme corp", True), ("Cafe\u0301", "CAFÉ", True), ('"Yes"', "yes", True), ("C++", "C", False),
        (".5", "5", False), ("5'", '5"', False), ("A+", "A", False), ("U.S.", "US", False), ("...", "?", False),
    ],
)  # fmt: skip
def test_only_spellings_that_certainly_name_the_same_are_merged_by_rule(
    a: str, b: str, is_same: bool
) -> None:
    assert (same_key(a) == same_key(b)) == is_same


def test_names_that_contradict_each_other_and_undecided_ones_stay_apart_and_are_told() -> None:
    three, unlike = ["Ann Lee", "A. Lee", "Al Lee"], {"Ann Lee", "Al Lee"}
    answer = run(orders(*three), lambda a, b: "different" if {a, b} == unlike else "same")
    assert names(answer) == three
    assert answer.status == "degraded"
    assert "1 pair undecided or contradictory, kept apart: 'Al Lee' and 'Ann Lee'" in answer.why
    answer = run(orders(*three), lambda a, b: "cannot tell" if {a, b} == unlike else "same")
    assert (answer.value, answer.status) == (1, "answered")  # a third name joins them
    answer = run(orders("Ann Lee", "A. Lee"), lambda a, b: "cannot tell")
    assert (names(answer), answer.value, answer.status) == (["Ann Lee", "A. Lee"], 2, "degraded")

    def cut_off(a: str, b: str) -> str:
        raise ModelError("the reply was cut off", kind="truncated")

    for judge in (lambda a, b: "perhaps", cut_off):
        answer = run(orders("Ann Lee", "A. Lee"), judge)
        assert (names(answer), answer.status) == (["Ann Lee", "A. Lee"], "degraded")


def test_the_embedded_model_merges_by_spelling_only_and_says_so() -> None:
    async def main() -> Answer:
        async with Pearl(ExtractiveModel()) as pearl:
            return await pearl.execute(PLAN, orders("IBM", "ibm", "I.B.M.", "Apple"))

    answer = asyncio.run(main())
    assert (answer.value, answer.status) == (3, "degraded")
    assert "kept apart: " in answer.why


def test_a_selection_of_rows_or_another_order_changes_no_name() -> None:
    whose = {"IBM": 1, "International Business Machines": 1, "Apple": 2, "Aple": 2, "Orion": 3}
    long = "International Business Machines"
    document = orders("IBM", long, long, "Aple", "Apple", "Orion")
    plan, where = PLAN.rpartition("\n3.")[0], 'WHERE(firm, "Firm", "is", "IBM")'
    for last in (where, "LIMIT(firm, 1)"):
        answer = run(document, by(whose), f"{plan}\n3. some = {last} : Some")
        assert names(answer) == [long]
    asked = []
    for order in ("ascending", "descending"):
        model = Model(by(whose))
        sort = f'2. sorted = SORT(rows, "Firm", "{order}") : Another order'
        rest = PLAN.split("\n", 1)[1].replace("(rows,", "(sorted,")
        assert run(document, model, f"{PLAN.split(chr(10))[0]}\n{sort}\n{rest}").value == 3
        asked.append(model.prompts)
    assert asked[0] == asked[1]


FIRST = ["Anna", "Bert", "Carla", "Dieter", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas"]
SYLLABLES = [
    "ka",
    "lo",
    "mi",
    "ter",
    "son",
    "ba",
    "ri",
    "ven",
    "do",
    "lu",
    "sta",
    "ger",
    "ni",
    "po",
    "mar",
    "tel",
]
FORMS = [("Inc.", "Incorporated"), ("Ltd", "Limited"), ("GmbH", "Gesellschaft mbH"), ("& Co.", "and Company")]  # fmt: skip


def corpus(n: int, seed: int) -> dict[str, int]:
    """Spellings of the names of people and firms → which each is: with initials, other forms of company, misprints, other case."""
    draw = random.Random(seed)
    owners: dict[str, set[int]] = defaultdict(set)

    def word() -> str:
        return "".join(draw.choices(SYLLABLES, k=draw.randint(2, 4))).title()

    for i in range(n):
        if draw.random() < 0.5:
            first, last = draw.choice(FIRST), word()
            name, middle = f"{first} {last}", draw.choice("ABC")
            others = [f"{first[0]}. {last}", f"{last}, {first}", f"{first} {middle}. {last}"]
        else:
            words, (short, long) = [word() for _ in range(draw.randint(2, 4))], draw.choice(FORMS)
            name = " ".join([*words, short])
            initials = ".".join(w[0] for w in words)
            others = [" ".join([*words, long]), " ".join(words), f"{initials}."]
        at = draw.randrange(1, len(name) - 1)
        others.append(name[:at] + name[at + 1 :])
        for each in [name, *draw.sample(others, draw.randint(0, 3))]:
            sloppy = [each.upper(), f"{each}.", f'"{each}"', each.replace(" ", "  ")]
            for form in (each, draw.choice(sloppy)):
                owners[form].add(i)
    whose: dict[str, set[int]] = defaultdict(set)
    for form, own in owners.items():
        whose[same_key(form)] |= own
    return {form: min(own) for form, own in owners.items() if len(whose[same_key(form)]) == 1}


@pytest.mark.parametrize("seed", range(2))
def test_an_honest_judge_finds_the_names_of_a_corpus_and_rules_alone_merge_nothing_wrong(
    seed: int,
) -> None:
    of = corpus(200, seed)
    rows = Rows(tuple(Row(name, {"Name": name}, (), name) for name in of))
    resolution = Resolution(rows, "Name")
    pairs = [
        pair.value.removeprefix("A: ").split("\nB: ") for pair in resolution.pairs if pair.value
    ]
    together = {(a, b) for a, b in combinations(of, 2) if of[a] == of[b]}
    for replies, least in (
        (["different"] * len(pairs), 0.0), ([by(of)(a, b) for a, b in pairs], 0.95),
    ):  # fmt: skip
        named = {
            row.fields["Name"] or "": row.value
            for row in resolution.collect(resolution.pairs, replies, "n")
        }
        merged = {(a, b) for a, b in combinations(of, 2) if named[a] == named[b]}
        assert merged <= together
        assert len(merged) > least * len(together)


def test_thousands_of_names_are_compared_in_bounded_pairs() -> None:
    of = list(corpus(2_500, 5))[:5_000]
    assert len(of) == 5_000
    resolution = Resolution(Rows(tuple(Row(name, {"Name": name}, (), name) for name in of)), "Name")
    found = resolution.collect(resolution.pairs, ["different"] * len(resolution.pairs), "n")
    assert len(found) == 5_000
    n_partners = Counter(line for p in resolution.pairs for line in (p.value or "").split("\n"))
    assert 1_000 < len(resolution.pairs) <= MAX_PAIRS
    assert max(n_partners.values()) <= MAX_PARTNERS
