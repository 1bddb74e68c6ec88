"""What does a row cost beside the model, in PEARL and in a loop of one's own that counts, too? Prints one JSON line.

    python experiments/bench/rows.py [CALLER...]

`pearl execute` classifies the lines of a file and counts the labels, or filters them and counts those that are left, with its
store. The loop sends the same lines in batches of the same size with the official client, reads every line of the
reply, and counts. A server in another process reads the prompts and replies; 4 calls at once. Measured is a row: the
difference between 320 and 1,920 of them; in thousand instructions, or without valgrind in microseconds of the processor.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

from callers import gathered
from instructions import VALGRIND, millions
from quick_server import ANSWER, Connection, answer_of, serve

FEW, MANY = 320, 1_920
BATCH, AT_ONCE = 32, 4
LABELS = ["praise", "complaint", "question", "other"]
VERDICTS = ["yes", "no"]
PLANS = {
    "classify": """Question: How many lines are of each kind?

1. lines = SPLIT(CTX, "line") : Split
2. kinds = CLASSIFY(lines, ["praise", "complaint", "question", "other"], "its kind") : Classify
3. answer = GROUP(kinds, "kinds") : Count
""",
    "filter": """Question: How many lines are complaints?

1. lines = SPLIT(CTX, "line") : Split
2. kept = FILTER(lines, "the line is a complaint") : Filter
3. answer = COUNT(kept) : Count
""",
}
CALLERS = [f"{who}_{what}" for what in PLANS for who in ("pearl", "loop")]

_ITEM = re.compile(r"<item (\d+)>\n(.*?(\d+)\.)\n</item")


def lines(n: int) -> list[str]:
    """Lines that end with their number, by which the server decides."""
    from extraction import WORDS

    draw = Random(1)
    return [" ".join(draw.choices(WORDS, k=draw.randrange(8, 24))) + f" {i}." for i in range(n)]


class Judge(Connection):
    """A server that says of each item what its number says."""

    def answer(self, body: bytes) -> bytes:
        """The answer to a prompt with items; to a question without a body, any."""
        if not body:
            return ANSWER
        # Only here: what is measured imports nothing else
        from pearl.replies.items import item_names

        prompt = json.loads(body)["messages"][-1]["content"]
        is_label = LABELS[0] in prompt
        values = LABELS if is_label else VERDICTS
        found = _ITEM.findall(prompt)
        names = item_names(tuple(text for _, text, _ in found), "label" if is_label else "yes_no")
        said = []
        for i, (number, _, own) in enumerate(found):
            # The loop has other numbers: it asks for no words, and gets none
            is_checked = i in names.checked and str(names.numbers[i]) == number
            shown = [names.words_of(i)] if is_checked else []
            said.append(" ".join([number, *shown, values[int(own) % len(values)]]))
        return answer_of("\n".join(said))


def pearl(what: str, url: str, folder: Path) -> None:
    """`pearl execute PLAN FILE --store DIR --out FILE`."""
    from pearl.cli import run

    with contextlib.redirect_stderr(io.StringIO()):
        code = run(
            ["execute", str(folder / f"{what}.plan"), str(folder / "lines.txt"), "--model", "openai:sim",
             "--base-url", url, "--window", "128000", "--constrain", "off", "--concurrency", str(AT_ONCE),
             "--items-per-call", str(BATCH), "--store", f"{folder}/store", "--out", f"{folder}/rows.jsonl"]
        )  # fmt: skip
    row = json.loads((folder / "rows.jsonl").read_text())
    assert code == 0, row
    counted = [int(n) for n in re.findall(r"\d+", row["answer"])]
    values = LABELS if what == "classify" else VERDICTS
    n = len((folder / "lines.txt").read_text().splitlines())
    assert counted == [n // len(values)] * (len(values) if what == "classify" else 1), row


def loop(what: str, url: str, folder: Path) -> None:
    """A loop with the official client."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(api_key="none", base_url=url, max_retries=0)
    texts = (folder / "lines.txt").read_text().splitlines()
    values = LABELS if what == "classify" else VERDICTS
    counts: Counter[str] = Counter()

    async def call(messages: list[dict[str, str]]) -> object:
        reply = await client.chat.completions.create(
            model="sim",
            temperature=0.0,
            messages=messages,  # type: ignore[arg-type]
        )
        said = reply.choices[0].message.content or ""
        found = dict(line.split(None, 1) for line in said.splitlines())
        assert found.keys() == set(map(str, range(1, BATCH + 1))), said
        assert all(value in values for value in found.values()), said
        counts.update(found.values())
        return said

    def prompt(batch: list[str]) -> list[dict[str, str]]:
        items = "\n".join(
            f"<item {i}>\n{text}\n</item {i}>" for i, text in enumerate(batch, start=1)
        )
        asked = f"Say of each item which of these it is: {', '.join(values)}. One line for each, its number and its value."
        return [
            {"role": "system", "content": asked},
            {"role": "user", "content": f"{', '.join(values)}\n{items}"},
        ]

    prompts = [prompt(texts[at : at + BATCH]) for at in range(0, len(texts), BATCH)]
    asyncio.run(gathered(prompts, call, AT_ONCE))
    assert counts == dict.fromkeys(values, len(texts) // len(values)), counts


def cost(caller: str, url: str, n: int, *, is_first: bool = False) -> float:
    """Thousand instructions of a run over so many rows, or microseconds of the processor; a first run is not counted."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "lines.txt").write_text("\n".join(lines(n)))
        for what, plan in PLANS.items():
            (folder / f"{what}.plan").write_text(plan)
        words = [__file__, "--run", caller, url, name]
        if VALGRIND and not is_first:
            return 1e3 * millions(words)
        run = [sys.executable, *words]
        done = subprocess.run(run, stdout=subprocess.PIPE, text=True, check=True)
        return 1e6 * float(done.stdout.splitlines()[-1])


def slope(caller: str, url: str) -> float:
    """The cost of a row."""
    cost(caller, url, FEW, is_first=True)
    few, many = (cost(caller, url, n) for n in (FEW, MANY))
    return round((many - few) / (MANY - FEW), 1)


def ran(caller: str, url: str, folder: str) -> None:
    """A run in this process; prints the seconds of the processor."""
    who, _, what = caller.partition("_")
    (pearl if who == "pearl" else loop)(what, url, Path(folder))
    print(time.process_time())


def main() -> None:
    match sys.argv[1:]:
        case ["--serve"]:
            asyncio.run(serve(Judge))
            return
        case ["--run", *given]:
            ran(*given)
            return
    names = sys.argv[1:] or CALLERS
    with subprocess.Popen(
        [sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
            found = {name: slope(name, url) for name in names}
        finally:
            server.terminate()
    unit = "thousand instructions" if VALGRIND else "µs of the processor"
    print(json.dumps({"bench": "rows", "unit": unit, "a row": found}, ensure_ascii=False))


if __name__ == "__main__":
    main()
