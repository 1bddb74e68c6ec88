"""Row S24: no source is missing from the provenance of a value, whatever the plan."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Sequence

import pytest

from pearl import Document, Pearl
from pearl.actions.values import Value, as_text, behind
from pearl.documents.document import join
from pearl.errors import PearlError
from pearl.interpreter.answer import Answer
from pearl.interpreter.provenance import Provenance
from pearl.llm import ItemsTask, LookupTask, Request
from pearl.llm.backends.scripted import Scripted
from pearl.retrieval.corpus import CorpusDocument
from pearl.retrieval.index import Index
from tests.models import MemoryReplies, Reading, item_lines
from tests.suite import Trial

MARKER = re.compile("qx[a-z]{6}")
LABELS = '["fruit", "root"]'
UNITS = ("record", "entry", "section", "sentence", "paragraph", "line")


class Drawn:
    """Random documents of words that occur once, and random plans over them."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.document = self._document()
        self.steps = [f'1. v1 = SPLIT(CTX, "{draw.choice(UNITS[:3])}") : Rows']
        self.rows = ["v1"]
        self.texts: list[str] = []
        self.plan, self.sql_share = "", 0.5
        for _ in range(draw.randint(2, 9)):
            self._add()
        if draw.random() < 0.3 and len(self.rows + self.texts) > 1:
            last = self.draw.sample(self.rows + self.texts, min(3, len(self.rows + self.texts)))
            self.steps.append(
                f'{len(self.steps) + 1}. v = ANSWER("What?", {", ".join(last)}) : All'
            )
        self.plan = "\n".join(self.steps)

    def marker(self) -> str:
        return "qx" + "".join(self.draw.choices("abcdefghijklmnoprstuvwyz", k=6))

    def _document(self) -> Document:
        draw, mark = self.draw, self.marker
        n = draw.randint(3, 25)
        table = [
            f"item,{mark()},n",
            *(f"{mark()},{draw.choice(('tea', 'oak'))},{i}" for i in range(n)),
        ]
        prose, more = (
            "\n\n".join(f"The {mark()} is of tea. It has {i} {mark()} now." for i in range(n))
            for _ in range(2)
        )
        lines = [f"Item: {mark()} || n: {i % 3} || Kind: tea" for i in range(n)]
        marked = [f"The {mark()} in millions:", "", f"| item | {mark()} | n |", "|---|---|---|",
                  *(f"| {mark()} | {draw.choice(('tea', 'oak'))} | {i} |" for i in range(n))]  # fmt: skip
        texts = ["\n".join(table), prose, "\n".join(lines), f"{more}\n\n" + "\n".join(marked),
                 "\n\n".join(f"## Of {mark()}\n\nThe tea is {mark()}. It is {mark()}." for i in range(n))]  # fmt: skip
        draw.shuffle(texts)
        files = [(f"file{i}.txt", text) for i, text in enumerate(texts[: draw.randint(1, 5)])]
        if len(files) == 1:
            return Document(files[0][1], "one.txt")
        if draw.random() < 0.5:
            return Index.build([CorpusDocument(*file) for file in files]).document()
        return join([Document(text, name) for name, text in files])

    def _add(self) -> None:
        draw, name = self.draw, f"v{len(self.steps) + 1}"
        one, two = draw.choice(self.rows), draw.choice(self.rows)
        text = draw.choice([*self.texts, '"the tea"'])
        given = draw.choice(["CTX", "CTX", one, *self.texts])
        ways = [
            (f'SPLIT({draw.choice(["CTX", one])}, "{draw.choice(UNITS)}")', True),
            (f"RETRIEVE({draw.choice(['CTX', one])}, {text}, {draw.randint(1, 4)})", True),
            (f'WHERE({one}, "n", "at most", "{draw.randint(0, 5)}")', True),
            (f'WHERE({one}, "text", "contains", {text})', True),
            (f'FIELD({one}, "{draw.choice(("item", "Item", "n", "text", "Document"))}")', True),
            (f'GROUP({one}, "{draw.choice(("item", "n", "Document"))}")', True),
            (f"UNIQUE({one})", True), (f'SORT({one}, "n", "ascending")', True), (f"LIMIT({one}, 2)", True), (f'WHERE({one}, "count", "at least", 1)', True),
            *((f'AGGREGATE({one}, "item", "{way}", "n")', True) for way in ("mean", "sum", "min", "max", "mode")),
            *((f"{way}({one})", False) for way in ("LAST", "MAX", "MIN", "SUM")),
            *((f'NTH({one}, "{name}", {k})', False) for name in ("n", "count", "item") for k in (1, -1, 2)),
            (f"SHARE({one}, {two})", False), (f"RELATION({text}, {one})", False), (f"FIRST({one})", False), (f"COUNT({one})", False),
            (f"CONCAT({one}, {text})", False), (f"SHOW({one}, {two})", True),
            (f"UNION({one}, {two})", True), (f"DIFFERENCE({one}, {two})", True),
            (f"INTERSECT({one}, {two})", True), (f"PAIRS({one}, {two})", True),
            (f'JOIN({one}, {two}, "n")', True),
            (f"FILTER({one}, {text})", True), (f'MAP({one}, "its kind")', True),
            (f'CLASSIFY({one}, {draw.choice([LABELS, two])}, "its kind")', True),
            (f"TOP({one}, {text}, 2)", True),
            (f"EACH_SUMMARIZE({one})", True), (f"EACH_FIND({one}, {text})", True),
            (f'EACH_EXTRACT({one}, "item: str, n: int")', True),
            (f'EXTRACT({given}, "item: str, n: int")', False),
            (f'EXTRACT_ALL({given}, "item: str")', True),
            *[(f'LOOKUP({draw.choice(["CTX", one])}, "How many tea?")', True)] * 3,
            (f"FIND({given}, {text})", False), (f"LIST_ALL({given}, {text})", False),
            (f"COMPARE({given}, {text}, {one})", False), *[(f"SUMMARIZE({given})", False)] * 3,
        ]  # fmt: skip
        if any("JOIN" in step or "PAIRS" in step for step in self.steps):
            ways = [way for way in ways if way[0][:4] not in ("PAIR", "JOIN")]  # of millions
        call, is_rows = draw.choice(ways)
        self.steps.append(f"{len(self.steps) + 1}. {name} = {call} : Step")
        (self.rows if is_rows else self.texts).append(name)

    def reply(self, request: Request) -> str:
        """All markers of the prompt, in the form of the reply."""
        draw, task, prompt = self.draw, request.task, request.prompt
        markers = list(dict.fromkeys(MARKER.findall(prompt)))
        if isinstance(task, ItemsTask):
            if task.kind == "pick":
                return "\n".join(map(str, draw.sample(range(1, len(task.items) + 1), task.n_picks)))
            values = {"yes_no": ("yes", "no"), "label": task.labels,
                      "line": (" ".join(markers[:30]) or "x",)}  # fmt: skip
            return item_lines(request, lambda item: draw.choice(values[task.kind]))
        if isinstance(task, LookupTask):
            columns = re.findall(r"^- (.+?): \w+, \d", prompt, re.M)
            if draw.random() < self.sql_share:
                return f"SELECT '{' '.join(markers[:20])}' AS a, row_id FROM rows LIMIT 2"
            where = {"column": draw.choice(columns), "op": "contains", "value": ["tea"]}
            shown = {"select": [draw.choice(columns)], "where": where}
            counted = {
                "aggregate": [{"function": "count", "column": draw.choice(columns)}],
                "group": [columns[0]],
            }
            return json.dumps(draw.choice([shown, counted, {"where": where}, {"limit": 2}]))
        if getattr(task, "action", None) is not None and task.action.extracts:  # type: ignore[union-attr]
            claims = [{"value": word, "quote": word} for word in markers]
            if task.action.extracts_all:  # type: ignore[union-attr]
                return json.dumps({"rows": [{"item": claim} for claim in claims]})
            return json.dumps({"item": claims[0] if claims else None, "n": None})
        said = " ".join(markers) or "Nothing."
        form = request.task.gives.name if hasattr(request.task, "gives") else ""
        if form == "LIST":
            return "\n".join(f"- {word}" for word in markers) or "Nothing found."
        return {"NUMBER": "7", "BOOL": "yes"}.get(form, f"It says {said} [1].")


def told(value: Value) -> str:
    """Every text that a value holds."""
    rows = behind([value])
    return f"{as_text(value)} {rows and rows.every}"


def texts_of(provenance: Provenance, document: Document) -> dict[str, list[str]]:
    """The texts of the sources of a value, by the name of their document."""
    texts: dict[str, list[str]] = {}
    for source in provenance["sources"]:
        starts = dict(document.parts) if "documents" not in source else {}
        at = starts.get(source["document"], 0)
        texts[source["document"]] = [
            document.text[at + span["start"] : at + span["end"]] for span in source["spans"]
        ]
    return texts


def run(drawn: Drawn, **settings: object) -> Answer:
    pearl = Pearl(Scripted(drawn.reply), prefix="off", attempts=1, **settings)  # type: ignore[arg-type]
    return asyncio.run(pearl.execute(drawn.plan, drawn.document))


SMALL = {"window": 900, "max_output_tokens": 200}
SETTINGS: Sequence[dict[str, object]] = (
    {}, SMALL, {"items_per_call": 2}, {"context": "retrieve", **SMALL},
)  # fmt: skip


MILLIONS = "In millions:\n\n| boat | qxaaaaaa |\n|---|---|\n| oak | qxbbbbbb |\n| elm | qxcccccc |"
RARE: Sequence[tuple[str, dict[str, str]]] = (
    # A table that is shown beside a passage.
    ('1. v = RETRIEVE(CTX, "the old harbour", 1) : Rows\n2. w = FIND(v, "the boat elm") : Say',
     {"a": f"The old harbour of qxdddddd is full.\n\n{MILLIONS}", "b": "Nothing."}),
    # A part of a row, with a field whose text is in another part.
    ('1. r = SPLIT(CTX, "section") : Rows\n2. s = SPLIT(r, "sentence") : Rows\n'
     '3. v = WHERE(s, "text", "contains", "leak") : Rows\n4. w = FIELD(v, "Section") : Names',
     {"a": "## Of qxaaaaaa\n\nIt is old. It has a leak.\n\n## Of qxbbbbbb\n\nIt is new."}),
    # A note that names a column of another table, in the prompt of a query.
    ('1. r = SPLIT(CTX, "record") : Rows\n2. v = WHERE(r, "boat", "is", "fir") : Rows\n'
     '3. w = LOOKUP(v, "What of the boat?") : Ask', {"a": "boat,port\nfir,Oslo\nfir,Bergen", "b": MILLIONS}),
)  # fmt: skip
"""Plans and corpora with a source that is easily missed."""


def rare(plan: str, files: dict[str, str]) -> Drawn:
    """A plan that is not drawn."""
    drawn = Drawn(random.Random(1))
    drawn.plan, drawn.sql_share = plan, 1.0
    drawn.document = Index.build([CorpusDocument(*file) for file in files.items()]).document()
    return drawn


@pytest.mark.row("S24", "provenance by value")
def test_no_source_is_missing(trial: Trial) -> None:
    n_plans = trial.n(ci=200, nightly=1_000, release=20_000)
    n_values = n_markers = n_drawn = n_done = n_narrow = 0
    first = [rare(*each) for each in RARE]
    lost: list[str] = []
    while n_done < n_plans:
        n_drawn += 1
        settings = {} if first else trial.random.choice(SETTINGS)
        drawn = first.pop() if first else Drawn(random.Random(f"{trial.seed} {n_drawn}"))
        try:
            answer = run(drawn, **settings)
        except PearlError:  # a step has no rows, or not the field
            continue
        n_done += 1
        values = [(told(step.value), step.provenance) for step in answer.steps]
        for text, provenance in [*values, (answer.text, answer.provenance)]:
            assert provenance is not None
            markers, sources = set(MARKER.findall(text)), texts_of(provenance, drawn.document)
            n_values += 1
            n_markers += len(markers)
            n_narrow += "chosen_from" in provenance
            if gone := markers - set(MARKER.findall(str(sources))):
                lost.append(f"{n_drawn}: {gone} {drawn.plan}")
    trial.figure("plans", n_done)
    trial.figure("plans drawn", n_drawn)
    trial.figure("values", n_values)
    trial.figure("marker words in values", n_markers)
    trial.figure("values with a part of the document", n_narrow, at_least=n_values / 10)
    trial.figure("values with a missing source", len(lost), at_most=0)
    assert not lost, lost[0]


FILES = join([
    Document("boat,port\noak,Bergen\ntea,Oslo\nash,Bergen", "a.csv"),
    Document("boat,port\nelm,Narvik\nfir,Narvik", "b.csv"),
    Document("The ash was sold in May. It had a leak.", "c.txt"),
])  # fmt: skip
ROWS = '1. r = SPLIT(CTX, "record") : Rows\n'


PLANS: Sequence[tuple[str, dict[str, list[str] | None], bool]] = (
    ('1. v = CONCAT("a", "b") : Texts', {}, False),
    ("1. v = SUMMARIZE(CTX) : All", {"documents": None}, False),
    ('1. v = RETRIEVE(CTX, "the leak of the ash in May", 1) : Search\n2. w = SUMMARIZE(v) : Say', {"c.txt": None}, True),
    (ROWS + '2. v = WHERE(r, "port", "is", "Bergen") : Rows\n3. w = COUNT(v) : Number',
     {"a.csv": ["boat,port\noak,Bergen", "ash,Bergen"]}, True),
    (ROWS + '2. v = FILTER(r, "the elm") : Rows\n3. w = FIELD(v, "port") : Ports\n4. x = FIND(w, "it") : Say',
     {"b.csv": ["boat,port\nelm,Narvik"]}, True),
    (ROWS + '2. v = MAP(r, "its age") : Batch\n3. w = LIMIT(v, 1) : Rows',
     {"a.csv": None, "b.csv": None}, True),
    (ROWS + '2. v = EACH_FIND(r, "its age") : Alone\n3. w = WHERE(v, "port", "is", "Oslo") : Rows',
     {"a.csv": ["boat,port", "tea,Oslo"]}, True),
    (ROWS + '2. v = WHERE(r, "port", "is", "Oslo") : Rows\n3. w = FIND(CTX, v) : Say',
     {"documents": None}, False),
    ('1. v = LOOKUP(CTX, "Which boat is in Oslo?") : Query', {"a.csv": ["boat,port", "tea,Oslo"]}, True),
)  # fmt: skip
"""A plan, the texts of its sources by document (None: any), and whether other text decided which are used."""


@pytest.mark.row("S24", "the documents of a corpus that a value names")
def test_sources_are_the_text_that_was_used(trial: Trial) -> None:
    query = {"where": {"column": "port", "op": "is", "value": ["Oslo"]}}

    def reply(request: Request) -> str:
        if isinstance(request.task, ItemsTask):
            return item_lines(request, lambda item: "yes" if "elm" in item else "no")
        return json.dumps(query) if isinstance(request.task, LookupTask) else "It says so."

    n_extra = 0
    for plan, wanted, is_chosen in PLANS:
        pearl = Pearl(Reading(reply), prefix="off", replies=MemoryReplies())
        first, again = (asyncio.run(pearl.execute(plan, FILES)) for _ in range(2))
        made = [
            [each.provenance, *(step.provenance for step in each.steps)] for each in (first, again)
        ]
        assert made[0] == made[1], plan  # of replies that are kept, too
        texts = texts_of(first.provenance, FILES)
        n_extra += len(texts.keys() - wanted.keys())
        assert texts.keys() >= wanted.keys(), plan
        for name, expected in wanted.items():
            assert expected is None or expected == [text.strip() for text in texts[name]], plan
        assert ("chosen_from" in first.provenance) is is_chosen, plan
    trial.figure("chosen plans", len(PLANS))
    trial.figure("documents listed that a step did not read", n_extra, at_most=0)
