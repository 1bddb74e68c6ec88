"""Reading a long text: processor time and memory of whole commands, a megabyte, as the slope between two lengths.

    python experiments/bench/long_text.py [--megabytes N]

Sentences of 8 to 24 made-up words by the law of `corpus.py`, in paragraphs of about 80 words. `ask` reads all of the
text with the embedded model; `retrieve` shows it the best passages. Each command has a folder of its own. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from corpus import Corpus

PLAN = 'New actions:\n- None\n\n1. answer = FIND(CTX, "{question}") : Find it\n'
MEGABYTE = 1_000_000
MEASURED = (
    "import resource, sys\n"
    "from importlib.metadata import entry_points\n"
    "(found,) = entry_points(group='console_scripts', name='pearl')\n"
    "try:\n"
    "    found.load()()\n"
    "finally:\n"
    "    used = resource.getrusage(resource.RUSAGE_SELF)\n"
    "    print(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, file=open('used', 'w'))\n"
)


def text_of(corpus: Corpus, n_bytes: int) -> str:
    """The first paragraphs, with so many bytes, divided into sentences."""
    rng = random.Random(corpus.seed)
    paragraphs: list[str] = []
    size = 0
    for each in corpus.texts():
        words = each.split()
        at = 0
        while at < len(words):
            words[at] = words[at].capitalize()
            at += rng.randint(8, 24)
            words[min(at, len(words)) - 1] += "."
        paragraphs.append(" ".join(words))
        size += len(paragraphs[-1]) + 2
        if size >= n_bytes:
            break
    return "\n\n".join(paragraphs)


def used(arguments: list[str], folder: Path) -> tuple[float, float]:
    """Processor seconds and bytes of memory of a command."""
    home = Path(tempfile.mkdtemp(dir=folder))
    environment = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    command = [sys.executable, "-c", MEASURED, *arguments]
    subprocess.run(command, cwd=home, env=environment, check=True, capture_output=True)
    seconds, size = (home / "used").read_text().split()
    return float(seconds), float(size)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=50)
    most = parser.parse_args().megabytes
    corpus = Corpus.of(most * 2_000, seed=14)
    (question,) = corpus.queries(1, 0)
    row: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "find.plan").write_text(PLAN.format(question=question))
        found: dict[str, list[tuple[float, float]]] = {"ask": [], "retrieve": []}
        sizes = (most * MEGABYTE // 5, most * MEGABYTE)
        for size in sizes:
            text = folder / f"{size}.txt"
            text.write_text(text_of(corpus, size), encoding="ascii")
            plan = [str(folder / "find.plan"), str(text), "--context", "retrieve"]
            found["ask"].append(used(["ask", question, str(text)], folder))
            found["retrieve"].append(used(["execute", *plan], folder))
        for what, ((few_s, few), (many_s, many)) in found.items():
            n = (sizes[1] - sizes[0]) / MEGABYTE
            row |= {
                f"{what}_cpu_s": (many_s - few_s) / n,
                f"{what}_mb": (many - few) / n / MEGABYTE,
            }
    print(json.dumps({name: round(value, 3) for name, value in row.items()}))


if __name__ == "__main__":
    main()
