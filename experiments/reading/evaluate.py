"""How often the sentence that answers a question is found, of 240 questions worded unlike their documents.

    python -m experiments.reading.evaluate [--half open|frozen] [--embeddings openai:MODEL] [--ask] [--json]

Methods: `bm25` and, with embeddings, `vectors` (cosine) as `pearl search` ranks sentences; `words` and
`words+vectors` as the embedded model does. Intervals are 95 %, of resampled documents. With --ask each
question is asked as `pearl ask` does, those that the document does not answer, too. What could be
refused by a threshold is shown of the open half only, where it may be set.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.reading.questions import HALVES, SHIPPED, SORTS, Question, read_questions
from experiments.reading.rankings import (
    OUTCOMES,
    Ranked,
    ask_all,
    counts,
    methods,
    rank_all,
    right_of,
)
from pearl.evals.stats import accuracy, difference, mcnemar
from pearl.llm.embedders import create_embedder

TOPS = (1, 3, 5)
PAIRS = (("words", "bm25"), ("words+vectors", "words"), ("words+vectors", "vectors"))
N_THRESHOLDS = 10

Found = Mapping[str, Sequence[bool]]
"""By method, whether it found a right sentence, question by question."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--half", choices=HALVES, default="open")
    parser.add_argument("--embeddings", help="as of `pearl ask`; none without it")
    parser.add_argument("--ask", action="store_true")
    parser.add_argument("--json", action="store_true")
    said = parser.parse_args()
    result = asyncio.run(evaluate(read_questions(said.half), said.embeddings, is_asked=said.ask))
    print(json.dumps(result) if said.json else "\n".join(shown(said.half, result)))


async def evaluate(
    asked: Sequence[Question], embeddings: str | None, *, is_asked: bool
) -> dict[str, Any]:
    """All figures of the questions, as they are printed."""
    stated = [question for question in asked if question.sentences]
    right = right_of(asked)
    embedder = None if embeddings is None else create_embedder(embeddings)
    rankings = {name: await rank_all(asked, method) for name, method in methods(embedder).items()}
    if embedder is not None:
        await embedder.aclose()
    found = {
        k: {
            name: [ranked[q.id].has(right[q.id], k) for q in stated]
            for name, ranked in rankings.items()
        }
        for k in TOPS
    }
    result: dict[str, Any] = {
        "questions": len(stated),
        "top": {k: shares(stated, each) for k, each in found.items()},
        "paired": {k: paired(stated, each) for k, each in found.items()},
        "by document": by_group(stated, found[3]),
    }
    if all(question.half == "open" for question in asked):
        result["thresholds"] = {
            name: told for name in rankings if (told := signals(asked, rankings[name], right))
        }
    if is_asked:
        named = dict.fromkeys(("", embeddings or ""))
        result["answers"] = {
            f"words{'+vectors' * bool(each)}": {
                ("stated" if is_stated else "not stated"): dict(count)
                for is_stated, count in counts(asked, await ask_all(asked, each or None)).items()
            }
            for each in named
        }
    return result


def shares(stated: Sequence[Question], found: Found) -> dict[str, list[float]]:
    """The share of each method, with the ends of its interval."""
    documents = [question.document for question in stated]
    intervals = {name: accuracy(each, clusters=documents) for name, each in found.items()}
    return {name: [each.estimate, each.low, each.high] for name, each in intervals.items()}


def paired(stated: Sequence[Question], found: Found) -> dict[str, dict[str, float]]:
    """How many questions the first of each pair won and lost, the exact p, the difference."""
    documents = [question.document for question in stated]
    made = {}
    for first, second in PAIRS:
        if first in found and second in found:
            test = mcnemar(found[first], found[second])
            gain = difference(found[first], found[second], clusters=documents)
            made[f"{first} beside {second}"] = {
                "won": test.n_first_only,
                "lost": test.n_second_only,
                "p": test.p_value,
                "difference": gain.estimate,
                "low": gain.low,
                "high": gain.high,
            }
    return made


def by_group(stated: Sequence[Question], found: Found) -> dict[str, dict[str, list[int]]]:
    """Right and all, by the sort of document, and whether the embedded model was developed with it."""
    groups = {sort: set(names) for sort, names in SORTS.items()}
    groups["shipped"] = set(SHIPPED)
    groups["the ten others"] = {q.document for q in stated} - set(SHIPPED)
    return {
        group: {
            name: [
                sum(each)
                for each in (
                    [f for q, f in zip(stated, all_found, strict=True) if q.document in names],
                    [q.document in names for q in stated],
                )
            ]
            for name, all_found in found.items()
        }
        for group, names in groups.items()
    }


def signals(
    asked: Sequence[Question], ranked: Mapping[str, Ranked], right: Mapping[str, set[int]]
) -> dict[str, dict[str, Any]]:
    """For each signal how well it tells the two kinds of question apart, and what thresholds do."""
    stated = [q.id for q in asked if q.sentences]
    others = [q.id for q in asked if not q.sentences]
    good = [id for id in stated if ranked[id].has(right[id], 3)]
    made = {}
    for name in ranked[asked[0].id].signals:
        value = {id: ranked[id].signals[name] for id in ranked}
        levels = sorted(value.values())
        steps = [levels[n * len(levels) // N_THRESHOLDS] for n in range(N_THRESHOLDS)]
        made[name] = {
            "auc": auc([value[id] for id in stated], [value[id] for id in others]),
            "thresholds": [
                {
                    "at least": level,
                    "right kept": sum(value[id] >= level for id in good),
                    "right": len(good),
                    "not stated refused": sum(value[id] < level for id in others),
                    "not stated": len(others),
                }
                for level in dict.fromkeys(steps)
            ],
        }
    return made


def auc(higher: Sequence[float], lower: Sequence[float]) -> float:
    """How often one of `higher` is above one of `lower`, ties half: 0.5 if nothing tells them apart."""
    wins = sum((one > other) + (one == other) / 2 for one in higher for other in lower)
    return wins / (len(higher) * len(lower))


def shown(half: str, result: Mapping[str, Any]) -> list[str]:
    """The figures as lines of text."""
    lines = [f"{half} half: {result['questions']} questions that their documents answer", ""]
    lines.append(f"{'right sentence in the':24}" + "".join(f"{f'top {k}':>20}" for k in TOPS))
    for name in result["top"][1]:
        cells = (result["top"][k][name] for k in TOPS)
        lines.append(
            f"{name:24}"
            + "".join(f"{f'{s:.1%} [{low:.0%}, {high:.0%}]':>20}" for s, low, high in cells)
        )
    lines += ["", f"{'paired':34}{'won':>5}{'lost':>5}{'p':>8}   difference"]
    for k in TOPS:
        for pair, test in result["paired"][k].items():
            lines.append(
                f"{f'top {k}: {pair}':34}{test['won']:5}{test['lost']:5}{_p(test['p']):>8}"
                f"   {test['difference']:+.1%} [{test['low']:+.0%}, {test['high']:+.0%}]"
            )
    lines += ["", "right in the top 3, of"]
    for group, cells in result["by document"].items():
        lines.append(
            f"{group:24}" + "".join(f"{name} {n}/{of}   " for name, (n, of) in cells.items())
        )
    for method, each in result.get("answers", {}).items():
        lines += ["", f"asked, {method:17}" + "".join(f"{outcome:>12}" for outcome in OUTCOMES)]
        lines += [
            f"{kind:24}" + "".join(f"{count.get(outcome, 0):12}" for outcome in OUTCOMES)
            for kind, count in each.items()
        ]
    for method, each in result.get("thresholds", {}).items():
        for signal, told in each.items():
            lines += ["", f"{method}, {signal} of the best five: AUC {told['auc']:.2f}"]
            lines += [
                f"  at least {row['at least']:.3f}   right kept {row['right kept']:3} of {row['right']}"
                f"   not stated, refused {row['not stated refused']:3} of {row['not stated']}"
                for row in told["thresholds"]
            ]
    return lines


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


if __name__ == "__main__":
    main()
