"""Results on ConvFinQA beside published ones.

Only what is comparable stands in one table: systems that are given the right page, and systems that have to find it.
"""

from __future__ import annotations

from collections.abc import Mapping

from convfinqa_rules import Rules

__all__ = ["beside_published"]

WITH_PAGE = (
    ("human experts", "200 questions", 89.44, "Chen et al. 2022"),
    ("human crowd", "200 questions", 46.90, "Chen et al. 2022"),
    ("GPT-3, answer only", "test", 24.09, "Chen et al. 2022"),
    ("GPT-3, chain of thought", "test", 40.63, "Chen et al. 2022"),
    ("GPT-3, program", "test", 45.15, "Chen et al. 2022"),
    ("FinQANet, RoBERTa-large", "test", 68.90, "Chen et al. 2022"),
    ("BloombergGPT 50B", "its own few-shot setup", 43.41, "Wu et al. 2023"),
    ("APOLLO", "test", 78.76, "Sun et al. 2022"),
    ("Qwen3.5-4B, LoRA and tools", "dev", 82.35, "its model card"),
    ("retrieval-augmented system, given the page", "not said", 79.58, "its report"),
)
WITHOUT_PAGE = (("retrieval-augmented system, over the corpus", "not said", 41.42, "its report"),)
"""Name, questions, accuracy in percent, source."""


def beside_published(gold: float, rules: Mapping[str, Rules]) -> str:
    """Two tables in Markdown; splits and metrics of the published rows differ, so they are no ranking.

    Args:
        gold: Share of turns whose gold program comes to its result.
        rules: Settings of `convfinqa_rules`.
    """
    given = [
        ("PEARL, gold programs: how far the arithmetic can go", gold),
        *((f"PEARL, rules alone, {name}", one.accuracy) for name, one in rules.items() if name.startswith("page")),
    ]  # fmt: skip
    found = [
        (f"PEARL, rules alone, {name}", one.accuracy)
        for name, one in rules.items()
        if name.startswith("corpus")
    ]
    return "\n".join([
        *_table("given the right page", WITH_PAGE, given), "",
        *_table("over all pages", WITHOUT_PAGE, found), "",
        "A row for a model is what `pearl eval --domain finance --model ...` prints; without one there is none.",
    ])  # fmt: skip


def _table(
    name: str, published: tuple[tuple[str, str, float, str], ...], own: list[tuple[str, float]]
) -> list[str]:
    return [
        f"| {name} | questions | accuracy % | source |",
        "|---|---|---|---|",
        *(f"| {system} | {split} | {share:.2f} | {source} |" for system, split, share, source in published),
        *(f"| {system} | this file | {100 * share:.2f} | this run |" for system, share in own),
    ]  # fmt: skip
