"""Everyone who labels the entries of a window, each in a process of its own: run by `rows.py`.

    python experiments/bench/labellers.py NAME < JSON

The JSON says where the server is, where the window, its texts and a folder for what is kept are, the
labels, and how many texts go into a call. Printed is the label of each entry, in order, or null. Each
imports what it needs: those of other libraries run under the Python that has them, as they are
configured when installed, caches included.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

PLAN = """\
New actions:
- None

1. entries = SPLIT(CTX, "entry") : One row for each entry
2. texts = FIELD(entries, "Instance") : The text alone
3. ans = CLASSIFY(texts, {labels}, "the kind of thing asked for") : Label each
"""

ASK = """\
Which of these labels is the kind of thing that each item asks for? {labels}

{items}

Reply with {form}."""

LINES = "one line for every item: its number, a colon and its label"

ITEM = "<item {number}>{text}</item {number}>"

Labels = list[str | None]


def pearl(said: dict[str, Any]) -> Labels:
    """The whole of `pearl execute`, with its store."""
    from pearl.cli import run

    kept = Path(said["kept"])
    plan, table = kept / "label.plan", kept / "rows.csv"
    plan.write_text(PLAN.format(labels=json.dumps(said["labels"])))
    code = run(
        ["execute", str(plan), said["window"], "--rows", str(table), "--store", f"{kept}/store",
         "--model", "openai:oracle", "--base-url", f"{said['url']}/v1",
         "--items-per-call", str(said["per_call"])]
    )  # fmt: skip
    assert code in (0, 1), code
    with table.open(newline="") as rows:
        return [row["ans"] or None for row in csv.DictReader(rows)]


def dspy_rlm(said: dict[str, Any]) -> Labels:
    """`dspy.RLM`, whose root the server plays: `root_turns` are its replies."""
    os.environ["DSPY_CACHEDIR"] = said["kept"]
    import dspy

    lm = dspy.LM("openai/oracle", api_base=f"{said['url']}/v1", api_key="none")
    with dspy.context(lm=lm):
        rlm = dspy.RLM("context, query -> answer: str", interpreter_factory=dspy.LocalInterpreter)
        found = rlm(context=Path(said["window"]).read_text(), query="Label every entry.")
    labels: Labels = json.loads(found.answer)
    return labels


def root_turns(labels: list[str], per_call: int) -> list[str]:
    """The code of an ideal root: it looks, asks about all entries in batches, and submits.

    Args:
        labels: All labels.
        per_call: Entries of a question.
    """
    ask = ASK.format(labels=", ".join(labels), items="ITEMS", form=LINES)
    label = f"""\
import json
texts = [line.partition("Instance: ")[2] for line in context.splitlines() if line.startswith("Date: ")]
starts = range(0, len(texts), {per_call})
prompts = [
    {ask!r}.replace("ITEMS", "\\n".join(
        {ITEM!r}.format(number=i, text=text) for i, text in enumerate(texts[start : start + {per_call}], 1)
    ))
    for start in starts
]
labels = [None] * len(texts)
for start, reply in zip(starts, llm_query_batched(prompts)):
    for line in reply.splitlines():
        number, _, label = line.partition(": ")
        labels[start + int(number) - 1] = label
print(len(labels), "entries,", labels.count(None), "without a label")"""
    return ["print(len(context))\nprint(context[:300])", label, "SUBMIT(json.dumps(labels))"]


def docetl_batch(said: dict[str, Any]) -> Labels:
    """DocETL's map with `batch_prompt`."""
    return _docetl(said, is_batched=True)


def docetl_single(said: dict[str, Any]) -> Labels:
    """DocETL's map, an entry a call."""
    return _docetl(said, is_batched=False)


def _docetl(said: dict[str, Any], *, is_batched: bool) -> Labels:
    kept = Path(said["kept"])
    os.environ["DOCETL_HOME_DIR"] = said["kept"]
    _count_without_download()
    from docetl.runner import DSLRunner

    texts = json.loads(Path(said["texts"]).read_text())
    data, out = kept / "texts.json", kept / "labels.json"
    data.write_text(json.dumps([{"id": i, "text": text} for i, text in enumerate(texts)]))
    asked = {"labels": ", ".join(said["labels"]), "form": "the label"}
    operation: dict[str, Any] = {
        "name": "label",
        "type": "map",
        "prompt": ASK.format(items=ITEM.format(number=1, text="{{ input.text }}"), **asked),
        "output": {"schema": {"label": "string"}},
        "litellm_completion_kwargs": {"api_base": f"{said['url']}/v1", "api_key": "none"},
    }
    if is_batched:
        item = ITEM.format(number="{{ loop.index }}", text="{{ input.text }}")
        items = f"{{% for input in inputs %}}{item}\n{{% endfor %}}"
        operation["batch_prompt"] = ASK.format(items=items, **asked)
        operation["max_batch_size"] = said["per_call"]
    config = {
        "default_model": "openai/oracle",
        "datasets": {"texts": {"type": "file", "path": str(data)}},
        "operations": [operation],
        "pipeline": {
            "steps": [{"name": "all", "input": "texts", "operations": ["label"]}],
            "output": {"type": "file", "path": str(out), "intermediate_dir": str(kept / "steps")},
        },
    }
    DSLRunner(config).load_run_save()
    found = {row["id"]: row.get("label") for row in json.loads(out.read_text())}
    return [found.get(i) for i in range(len(texts))]


def _count_without_download() -> None:
    """DocETL counts with a vocabulary of tiktoken's, which is loaded from the network: count bytes."""
    import tiktoken

    plain = tiktoken.Encoding(
        "bytes", pat_str=r"[\s\S]", mergeable_ranks={bytes([i]): i for i in range(256)},
        special_tokens={},
    )  # fmt: skip
    tiktoken.encoding_for_model = lambda name: plain


LABELLERS: dict[str, Callable[[dict[str, Any]], Labels]] = {
    each.__name__: each for each in (pearl, dspy_rlm, docetl_batch, docetl_single)
}


if __name__ == "__main__":
    found = LABELLERS[sys.argv[1]](json.load(sys.stdin))
    print(f"\n{json.dumps(found)}")
