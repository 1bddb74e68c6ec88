"""Runs ExtractBench (arXiv 2602.12247): the values of PDFs by JSON Schemas, compared with gold values, per schema.

    python experiments/extractbench.py FOLDER --forecast
    python experiments/extractbench.py FOLDER [--model NAME] [--limit N] [--store FOLDER] [--out FOLDER] [-- OPTIONS]

FOLDER is the downloaded benchmark (github.com/ContextualAI/extract-bench), or another one of its layout:

    .../NAME-schema.json        a JSON Schema, also within "schema_definition", with `evaluation_config` at fields
    .../pdf+gold/DOC.pdf        a document, with or without a folder in between
    .../pdf+gold/DOC.gold.json  its gold values; a PDF without them is left out

Each schema is one `pearl extract --evaluate`; OPTIONS are more of its options (--checker-model, --max-cost, --max-calls). The
forecast comes first. Replies and rows are kept in the store: the same command resumes after a stop, and a finished one costs nothing.

Values are compared by the rules of the schema; texts without a rule by their meaning and numbers within 0.001, which are its
defaults. Two differences from the benchmark's own scores: a list is matched entry by entry and counts by its values, not by one
verdict of a model (`array_llm`), and values that are null in the gold and in the prediction do not count as right. `valid` is the
share of documents whose whole value conforms to the schema, by a second validator; failed documents are not.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from pearl.data.schemas import Schema, load_schema
from pearl.evals.fields import CONFIG, OUTCOMES, SEMANTIC
from pearl.interpreter.row import restored_record
from pearl.runs.reviewing import wilson

DEFAULTS = {"string": SEMANTIC, "number": "number_tolerance"}


@dataclass(frozen=True)
class Part:
    """A schema with its documents."""

    name: str
    schema: dict[str, Any]
    gold: Path
    documents: tuple[str, ...]


def parts_of(folder: Path, limit: int | None = None) -> Iterator[Part]:
    """The schemas of a folder, each with at most `limit` documents."""
    for path in sorted(folder.rglob("*-schema.json")):
        read = json.loads(path.read_bytes())
        schema = read.get("schema_definition", read)
        golds = {file.name.removesuffix(".gold.json") for file in path.parent.rglob("*.gold.json")}
        pdfs = [str(pdf) for pdf in sorted(path.parent.rglob("*.pdf")) if pdf.stem in golds]
        name = path.name.removesuffix("-schema.json")
        if absent := golds - {Path(pdf).stem for pdf in pdfs}:
            print(f"{name}: no PDF for {', '.join(sorted(absent))}", file=sys.stderr)
        if pdfs:
            yield Part(name, with_defaults(schema), path.parent, tuple(pdfs[:limit]))


def with_defaults(schema: Any, has_rule: bool = False) -> Any:
    """A schema with the rules that the benchmark has for types without one."""
    if isinstance(schema, list):
        return [with_defaults(each, has_rule) for each in schema]
    if not isinstance(schema, dict):
        return schema
    has_rule |= CONFIG in schema
    found = {
        # A rule of a union is that of its members, but not of the entries of a list.
        key: {name: with_defaults(each) for name, each in value.items()}
        if key in ("properties", "$defs", "definitions", "patternProperties") and isinstance(value, dict)
        else with_defaults(value, has_rule and key in ("anyOf", "oneOf", "allOf"))
        if key in ("anyOf", "oneOf", "allOf", "items", "prefixItems", "additionalProperties")
        else value
        for key, value in schema.items()
    }  # fmt: skip
    kinds = schema.get("type")
    rules = [DEFAULTS[k] for k in (kinds if isinstance(kinds, list) else [kinds]) if k in DEFAULTS]
    return found | ({CONFIG: rules[0]} if rules and not has_rule and "enum" not in schema else {})


def pearl(part: Part, said: argparse.Namespace, *options: str) -> Any:
    """What `pearl extract` prints about the documents of a part."""
    schema = said.out / f"{part.name}.schema.json"
    schema.write_text(json.dumps(part.schema, ensure_ascii=False), encoding="utf-8")
    model = ["--model", said.model] if said.model else []
    store = ["--store", str(said.store or said.out / "store")]
    command = [sys.executable, "-m", "pearl", "extract", str(schema), *part.documents]
    ran = subprocess.run(
        [*command, *model, *store, *said.options, *options, "--json"],
        stdout=subprocess.PIPE, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    if ran.returncode not in (0, 1) or not ran.stdout.strip():
        sys.exit(
            f"{part.name}: pearl extract ended with {ran.returncode}; the same command goes on"
        )
    return json.loads(ran.stdout)


def is_valid(row: Mapping[str, Any], schema: Schema, validator: Draft202012Validator) -> bool:
    """Whether a row has a whole value, which conforms to the schema."""
    record = restored_record(row)
    value = None if record is None else schema.read(record).value
    return value is not None and validator.is_valid(value)


def forecast(parts: list[Part], said: argparse.Namespace) -> None:
    """Print the expected calls, tokens and cost of each part."""
    print(f"{'schema':<24}{'PDFs':>6}{'calls':>16}{'input tokens':>24}{'output tokens':>22}{'US dollars':>18}")  # fmt: skip
    total: Counter[str] = Counter()
    for part in parts:
        found = pearl(part, said, "--dry-run")["total"]
        cells = []
        for name in ("calls", "input_tokens", "output_tokens", "cost_usd"):
            between = found[name] or {"least": None, "most": None}
            for end in ("least", "most"):
                value = between[end]
                total[f"{name} {end}"] += float("nan") if value is None else value
            cells.append(
                _between(between["least"], between["most"], 2 if name == "cost_usd" else 0)
            )
        print(f"{part.name:<24}{len(part.documents):>6}{cells[0]:>16}{cells[1]:>24}{cells[2]:>22}{cells[3]:>18}")  # fmt: skip
    ends = [
        _between(total[f"{n} least"], total[f"{n} most"], 2 if n == "cost_usd" else 0)
        for n in ("calls", "input_tokens", "output_tokens", "cost_usd")
    ]
    n = sum(len(part.documents) for part in parts)
    print(f"{'all':<24}{n:>6}{ends[0]:>16}{ends[1]:>24}{ends[2]:>22}{ends[3]:>18}\n")


def _between(least: float | None, most: float | None, digits: int) -> str:
    shown = ["unknown" if x is None or x != x else f"{x:,.{digits}f}" for x in (least, most)]
    return shown[0] if shown[0] == shown[1] else " - ".join(shown)


def report(parts: list[Part], said: argparse.Namespace) -> list[dict[str, Any]]:
    """Run each part and print its scores."""
    rows: list[dict[str, Any]] = []
    print(f"{'schema':<18}{'PDFs':>5}{'valid':>6}{'gold':>8}{'right':>8}{'wrong':>7}{'missing':>8}{'undec.':>7}{'invent.':>8}{'not c.':>7}{'right %':>9}  95 %")  # fmt: skip
    for part in parts:
        out = said.out / f"{part.name}.jsonl"
        found = pearl(part, said, "-o", str(out), "--evaluate", str(part.gold))
        (said.out / f"{part.name}.scores.json").write_text(json.dumps(found, indent=1, ensure_ascii=False), encoding="utf-8")  # fmt: skip
        schema, validator = load_schema(part.schema), Draft202012Validator(part.schema)
        lines = map(json.loads, out.read_text("utf-8").splitlines())
        n_valid = sum(is_valid(row, schema, validator) for row in lines)
        rows.append({"schema": part.name, "documents": len(part.documents), "valid": n_valid, **found["all"]})  # fmt: skip
        _print_row(rows[-1])
    names = ("documents", "valid", "gold", *(each.replace(" ", "_") for each in OUTCOMES))
    total = {"schema": "all", **{name: sum(row[name] for row in rows) for name in names}}
    n = total["gold"] - total["not_compared"]
    low, high = wilson(total["right"], n) if n else (0, 0)
    total["right_share"] = {"share": total["right"] / n, "low": low, "high": high} if n else None
    _print_row(total)
    return [*rows, total]


def _print_row(row: Mapping[str, Any]) -> None:
    share = row["right_share"]
    told = f"{'-':>9}" if share is None else f"{100 * share['share']:>9.1f}  {100 * share['low']:.1f}-{100 * share['high']:.1f}"  # fmt: skip
    print(
        f"{row['schema']:<18}{row['documents']:>5}{row['valid']:>6}{row['gold']:>8,}{row['right']:>8,}{row['wrong']:>7,}"
        f"{row['missing']:>8,}{row['undecided']:>7,}{row['invented']:>8,}{row['not_compared']:>7,}{told}", flush=True,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--forecast", action="store_true", help="print the forecast only")
    parser.add_argument("--model", help="as of pearl extract")
    parser.add_argument("--limit", type=int, help="documents of each schema")
    parser.add_argument("--schemas", help="names, separated by commas")
    parser.add_argument("--store", type=Path, help="default: OUT/store")
    parser.add_argument("--out", type=Path, default=Path("extractbench"), help="rows and scores")
    own = sys.argv[1:]
    at = own.index("--") if "--" in own else len(own)
    said = parser.parse_args(own[:at])
    said.options = own[at + 1 :]
    wanted = said.schemas and said.schemas.split(",")
    parts = [p for p in parts_of(said.folder, said.limit) if not wanted or p.name in wanted]
    if not parts:
        sys.exit(f"{said.folder}: no NAME-schema.json with PDFs and DOC.gold.json beside it")
    said.out.mkdir(parents=True, exist_ok=True)
    forecast(parts, said)
    if not said.forecast:
        scores = report(parts, said)
        (said.out / "scores.json").write_text(json.dumps(scores, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
