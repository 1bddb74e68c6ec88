"""Nested values against gold values: what is changed in a known way is counted so."""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pearl.dsl.fields import parse_fields
from pearl.evals.fields import Comparison, read_gold
from pearl.runs.reviewing import wilson

NAMES = ["Ada", "Bo", "Cleo", "Dov", "Ece", "Fay", "Gil", "Hana"]
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "day": {"type": ["string", "null"], "format": "date"},
        "total": {"type": "number"},
        "is_paid": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "grid": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        "address": {"$ref": "#/$defs/address"},
        "parts": {"type": "object", "additionalProperties": {"type": "number"}},
        "orders": {"type": "array", "items": {
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "price": {"type": "number"},
                "lines": {"type": "array", "items": {
                    "type": "object",
                    "properties": {"sku": {"type": "string"}, "n": {"type": "integer"}},
                }},
            },
        }},
    },
    "$defs": {"address": {"type": "object", "properties": {"city": {"type": "string"}, "zip": {"type": "string"}}}},
}  # fmt: skip


def gold_of(rng: random.Random, n: int = 0) -> dict[str, Any]:
    """A document, in which no value is there twice within a list."""
    number = itertools.count(1000 * n)
    word = lambda: f"{rng.choice(NAMES)} {next(number)}"  # noqa: E731
    return {
        "name": word(), "day": f"2024-0{rng.randint(1, 9)}-1{rng.randint(0, 9)}",
        "total": next(number) + 0.25, "is_paid": rng.random() < 0.5,
        "tags": [word() for _ in range(rng.randint(1, 4))],
        "grid": [[next(number) for _ in range(rng.randint(1, 3))] for _ in range(rng.randint(1, 3))],
        "address": {"city": word(), "zip": word()},
        "parts": {word(): next(number) for _ in range(rng.randint(1, 3))},
        "orders": [
            {
                "id": word(), "price": next(number) + 0.5,
                "lines": [{"sku": word(), "n": next(number)} for _ in range(rng.randint(1, 3))],
            }
            for _ in range(rng.randint(1, 6))
        ],
    }  # fmt: skip


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [p for key, each in value.items() for p in leaves(each, (*path, key))]
    if isinstance(value, list):
        return [p for i, each in enumerate(value) for p in leaves(each, (*path, i))]
    return [path]


def told(path: Sequence[Any]) -> str:
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).removeprefix(".")


def field_of(path: Sequence[Any]) -> str:
    keys = ["*" if i and path[i - 1] == "parts" else p for i, p in enumerate(path)]
    return "".join("[]" if isinstance(p, int) else f".{p}" for p in keys).removeprefix(".")


def put(value: Any, path: Sequence[Any], new: Any) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = new


def shuffled(rng: random.Random, data: dict[str, Any]) -> dict[str, Any]:
    """The data with its keys and the entries of its lists in another order."""
    keys = rng.sample(list(data), len(data))
    return {key: rng.sample(data[key], len(data[key])) if key in ("orders", "tags") else data[key] for key in keys}  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_changed_leaves_are_counted_as_they_were_changed(seed: int) -> None:
    rng = random.Random(seed)
    compared, expected = Comparison(SCHEMA), dict[str, Counter[str]]()
    for n in range(20):
        gold = gold_of(rng, n)
        said = copy.deepcopy(gold)
        undecided = []
        # One value of an entry is changed at most, so that its other values tell which entry it is.
        chosen: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        for path in rng.sample(leaves(gold), len(leaves(gold))):
            entry = path[:2] if path[0] == "orders" else path
            chosen.setdefault(entry if entry[0] not in ("tags", "grid") else path[:1], path)
        fates = {path: rng.choice(["wrong", "missing", "undecided", "invented"]) for path in rng.sample(sorted(chosen.values(), key=str), 3)}  # fmt: skip
        for path in leaves(gold):
            fate = fates.get(path, "right")
            if fate == "invented":  # the gold has none
                put(gold, path, None)
            elif fate == "wrong":
                put(said, path, "another" if not isinstance(said_at(said, path), bool) else not said_at(said, path))  # fmt: skip
            elif fate != "right":
                put(said, path, None)
                undecided += [told(path)] * (fate == "undecided")
            expected.setdefault(field_of(path), Counter())[fate] += 1
        compared.add(f"{n}.txt", gold, said if undecided else shuffled(rng, said), undecided)
    asyncio.run(compared.judge(None))
    assert {name: score.outcomes for name, score in compared.fields.items()} == expected
    n_right, n = compared.all.outcomes["right"], compared.all.n_gold
    right = compared.fields["name"].right
    assert right is not None
    assert (right.low, right.high) == wilson(compared.fields["name"].outcomes["right"], compared.fields["name"].n_gold)  # fmt: skip
    assert len(compared.differences) == sum(sum(c.values()) for c in expected.values()) - n_right
    assert n == n_right + sum(c[fate] for c in expected.values() for fate in ("wrong", "missing", "undecided"))  # fmt: skip


def said_at(value: Any, path: Sequence[Any]) -> Any:
    for key in path:
        value = value[key]
    return value


def outcomes(schema: Any, gold: Any, said: Any, undecided: Sequence[str] = ()) -> dict[str, dict[str, int]]:  # fmt: skip
    compared = Comparison(schema)
    compared.add("a.txt", gold, said, undecided)
    asyncio.run(compared.judge(None))
    return {name: dict(+score.outcomes) for name, score in compared.fields.items()}


def of_value(about: dict[str, Any], gold: Any, said: Any) -> str:
    (counts,) = outcomes({"properties": {"x": about}}, {"x": gold}, {"x": said}).values()
    (outcome,) = counts
    return outcome


TEXT: dict[str, Any] = {"type": "string"}


@pytest.mark.parametrize(
    ("about", "gold", "said", "outcome"),
    [
        (TEXT, "Ada  Byron\n", "Ada\u00a0Byron", "right"),
        (TEXT, "caf\u00e9 “A”", 'cafe\u0301 "A"', "right"),
        (TEXT, "10²", "102", "wrong"),
        (TEXT, "Ada", "ada", "wrong"),
        (TEXT, "007", "7", "wrong"),
        (TEXT, 7, "7", "right"),
        ({"type": "number"}, 0.1, "0.10", "right"),
        ({"type": "number"}, "0.10", "0.1", "right"),
        ({"type": "number"}, 1, 1.0, "right"),
        ({"type": "number"}, 10**23 + 1, 10**23 + 2, "wrong"),
        ({"type": "number"}, 1, True, "wrong"),
        ({"type": "boolean"}, False, 0, "wrong"),
        ({"type": "string", "format": "date"}, "March 5, 2024", "2024-03-05", "right"),
        ({"type": "string", "format": "date"}, "3/4/2024", "2024-03-04", "wrong"),
        ({"type": "string", "evaluation_config": "string_case_insensitive"}, "USD", "usd", "right"),
        ({"type": "string", "evaluation_config": "string_fuzzy"}, "Bank of Amerika", "BANK OF AMERICA", "right"),
        ({"type": "string", "evaluation_config": "string_fuzzy"}, "Acme", "Umbrella", "wrong"),
        ({"type": "string", "evaluation_config": {"metrics": [{"metric_id": "string_fuzzy", "params": {"threshold": 0.99}}]}},
         "Bank of Amerika", "Bank of America", "wrong"),
        ({"type": "string", "format": "uri", "evaluation_config": "string_exact"}, "http://www.a.de/", "https://a.de", "right"),
        ({"type": "number", "evaluation_config": "number_tolerance"}, 1.5, 1.501, "right"),
        ({"type": "number", "evaluation_config": "number_tolerance"}, 1.5, 1.502, "wrong"),
        ({"evaluation_config": {"metrics": [{"metric_id": "number_tolerance", "params": {"tolerance": 2}}]}}, 10, "8", "right"),
        ({"evaluation_config": "number_tolerance"}, "33-37", "33\u201337", "right"),
        ({"evaluation_config": "number_tolerance"}, "33-37", 33, "wrong"),
        ({"type": "string", "evaluation_config": "string_semantic"}, "New York", "NEW YORK", "right"),
        ({"type": "string", "evaluation_config": "string_semantic"}, "New York", "NYC", "not compared"),
        ({"type": "string", "evaluation_config": "no_such_rule"}, "a", "b", "not compared"),
        ({"type": "string", "evaluation_config": 7}, "a", "b", "not compared"),
        ({"anyOf": [{"type": "string", "evaluation_config": "string_case_insensitive"}, {"type": "integer"}]}, "X", "x", "right"),
        ({"anyOf": [{"type": "integer", "evaluation_config": "number_tolerance"}, {"type": "string"}]}, "X", "x", "wrong"),
        ({"type": "string", "format": "decimal"}, "0.10", "0.1", "right"),
        ({"type": ["number", "null"]}, "0.10", "0.1", "right"),
        ({"anyOf": [{"type": "number"}, {"type": "string"}]}, "0.10", "0.1", "right"),
        ({"anyOf": [{"type": "number"}, {"type": "string"}]}, "33-37", "33-38", "wrong"),
        ({"type": ["string", "null"], "evaluation_config": "string_case_insensitive"}, "A", "a", "right"),
        ({"type": "string", "format": "date-time"}, "2024-03-05T10:00:00Z", "2024-03-05T12:00:00+02:00", "right"),
        ({"type": "string", "format": "date-time"}, "2024-03-05T10:00:00", "2024-03-05T10:00:00Z", "wrong"),
        ({"anyOf": [TEXT, {"type": "array", "items": TEXT}]}, ["a"], "a", "right"),
        ({"anyOf": [TEXT, {"type": "array", "items": TEXT}]}, "a", ["a"], "right"),
        ({"type": "number", "evaluation_config": {"metrics": [{"metric_id": "number_tolerance", "params": {"tolerance": float("nan")}}]}}, 1, 2, "wrong"),
        ({"type": "number", "evaluation_config": "number_tolerance"}, "1e999999", "-1e999999999", "wrong"),
        (TEXT, "x", "", "missing"),
        (TEXT, "x", None, "missing"),
        (TEXT, "", "x", "invented"),
    ],
)  # fmt: skip
def test_a_rule(about: dict[str, Any], gold: Any, said: Any, outcome: str) -> None:
    assert of_value(about, gold, said) == outcome


def test_fields_in_short_compare_by_their_types() -> None:
    fields = parse_fields("id: str, n: decimal, day: date, at: {city: str}, drugs: [{name: str, mg: [number]}], grid: [[int]]")  # fmt: skip
    gold = {"id": "01", "n": "0.10", "day": "5 March 2024", "at": {"city": "Ulm"},
            "drugs": [{"name": "a", "mg": [1, 2.50]}], "grid": [[1], [2, 3]]}  # fmt: skip
    said = {"id": "1", "n": "0.1", "day": "2024-03-05", "at": {"city": "Ulm"},
            "drugs": [{"name": "a", "mg": [2.5, 1]}], "grid": [[2, 3], [1]]}  # fmt: skip
    assert outcomes(fields, gold, said) == {
        "id": {"wrong": 1}, "n": {"right": 1}, "day": {"right": 1}, "at.city": {"right": 1},
        "drugs[].name": {"right": 1}, "drugs[].mg[]": {"right": 2}, "grid[][]": {"right": 3},
    }  # fmt: skip


def test_entries_are_matched_by_most_equal_values_and_counted() -> None:
    schema = {"properties": {"o": {"type": "array", "items": {"properties": {"a": TEXT, "b": TEXT}}}}}  # fmt: skip
    compared = Comparison(schema)
    gold = {"o": [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}, {"a": "5", "b": "6"}]}
    said = {"o": [{"a": "5", "b": "x"}, {"a": "1", "b": "2"}]}
    compared.add("a.txt", gold, said)
    assert dict(+compared.lists["o[]"]) == {"gold": 3, "predicted": 2, "missing": 1}
    assert dict(compared.all.outcomes) == {"right": 3, "wrong": 1, "missing": 2}
    (wrong,) = [each for each in compared.differences if each.outcome == "wrong"]
    assert (wrong.path, wrong.gold, wrong.predicted) == ("o[0].b", "6", "x")


def test_an_undecided_list_or_object_has_undecided_values() -> None:
    gold = {"address": {"city": "Ulm", "zip": "1"}, "tags": ["a", "b"], "grid": [[1, 2]]}
    said = {"address": None, "tags": ["b", None], "grid": None}
    found = outcomes(SCHEMA, gold, said, ["address", "tags[1]", "grid"])
    assert found == {
        "address.city": {"undecided": 1}, "address.zip": {"undecided": 1},
        "tags[]": {"right": 1, "undecided": 1}, "grid[][]": {"undecided": 2},
    }  # fmt: skip


def test_values_of_another_shape_are_missing_and_invented() -> None:
    assert outcomes(SCHEMA, {"address": {"city": "Ulm"}}, {"address": "Ulm"}) == {
        "address.city": {"missing": 1}, "address": {"invented": 1},
    }  # fmt: skip


def test_what_the_schema_has_not_is_left_out_and_told() -> None:
    compared = Comparison(SCHEMA)
    compared.add("a.txt", {"name": "Ada", "split": "dev", "address": {"street": "x"}}, {"name": "Ada"})  # fmt: skip
    assert compared.unknown == {"split", "address.street"}
    assert compared.all.outcomes.total() == 1


def test_skipped_values_do_not_count() -> None:
    schema = {"properties": {"a": {"type": "array", "evaluation_config": "skip", "items": TEXT}, "b": TEXT}}  # fmt: skip
    assert outcomes(schema, {"a": ["x"], "b": "y"}, {"a": [], "b": "y"}) == {"b": {"right": 1}}


def test_a_recursive_schema_and_tuples() -> None:
    schema = {
        "$ref": "#/$defs/node",
        "$defs": {"node": {
            "type": "object",
            "properties": {"v": {"type": "number"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
                           "pair": {"type": "array", "prefixItems": [TEXT, {"type": "number"}]}},
        }},
    }  # fmt: skip
    gold = {"v": 1, "next": {"v": "2.0", "next": {"v": 3}}, "pair": ["1", "1"]}
    said = {"v": 1.0, "next": {"v": 2, "next": {"v": 4}}, "pair": ["1.0", "1.0"]}
    assert outcomes(schema, gold, said) == {
        "v": {"right": 1}, "next.v": {"right": 1}, "next.next.v": {"wrong": 1},
        "pair[0]": {"wrong": 1}, "pair[1]": {"right": 1},
    }  # fmt: skip


def test_a_model_says_whether_texts_mean_the_same_both_ways() -> None:
    semantic = {"type": "string", "evaluation_config": "string_semantic"}
    compared = Comparison({"properties": {"city": semantic, "law": semantic, "who": semantic}})
    gold = {"city": "New York City", "law": "State of New York", "who": "Ada"}
    compared.add("a.txt", gold, {"city": "NYC", "law": "a state", "who": "Bo"})
    asked: list[tuple[str, str]] = []

    async def judge(claims: Sequence[tuple[str, str]]) -> list[bool | None]:
        asked.extend(claims)
        return [True, True, True, False, None, None]

    asyncio.run(compared.judge(judge))
    assert asked[:2] == [("city: NYC", "city: New York City"), ("city: New York City", "city: NYC")]
    assert [dict(score.outcomes) for score in compared.fields.values()] == [
        {"right": 1}, {"wrong": 1}, {"not compared": 1},
    ]  # fmt: skip
    assert compared.all.n_gold == 3
    assert compared.all.right is not None
    assert compared.all.right.estimate == 1 / 2


@pytest.mark.parametrize("seed", range(60))
def test_entries_are_matched_as_well_as_can_be(seed: int) -> None:
    """Every value is counted once, and no order of the entries makes more of them right."""
    rng = random.Random(seed)
    schema = {"properties": {"o": {"type": "array", "items": {"properties": {key: {"type": "integer"} for key in "abc"}}}}}  # fmt: skip

    def entries() -> list[dict[str, int]]:
        return [{key: rng.randint(0, 2) for key in "abc" if rng.random() < 0.8} for _ in range(rng.randint(0, 5))]  # fmt: skip

    gold, said = entries(), entries()
    found = Counter[str]()
    for counts in outcomes(schema, {"o": gold}, {"o": said}).values():
        found.update(counts)
    assert found.total() - found["invented"] == sum(map(len, gold))
    assert found["right"] + found["wrong"] + found["invented"] == sum(map(len, said))
    short, long = sorted((gold, said), key=len)
    assert found["right"] == max(
        sum(len(one.items() & other.items()) for one, other in zip(short, order, strict=False))
        for order in itertools.permutations(long, len(short))
    )


@pytest.mark.parametrize("n", [500, 1100])
def test_long_lists(n: int) -> None:
    rng = random.Random(n)
    schema = {"properties": {"o": {"type": "array", "items": {"properties": {"a": TEXT, "b": TEXT, "c": TEXT}}}}}  # fmt: skip
    gold = {"o": [{"a": f"a{i}", "b": f"b{i % 7}", "c": f"c{i % 11}"} for i in range(n)]}
    said = {"o": [{**each, rng.choice("bc"): "z"} for each in rng.sample(gold["o"], n)]}
    compared = Comparison(schema)
    compared.add("a.txt", gold, said)
    assert dict(compared.all.outcomes) == {"right": 2 * n, "wrong": n}


def test_gold_files(tmp_path: Path) -> None:
    rows: list[Any] = [
        {"document": "letters/a.txt", "value": {"name": "Ada"}}, {"id": "b", "name": "Bo"},
        {"id": "b", "name": "Bo"}, {"name": "nobody"}, {"document": "c.txt"},
    ]  # fmt: skip
    path = tmp_path / "gold.jsonl"
    path.write_text(
        "\n".join([*map(json.dumps, rows), "{", f'{{"id": "d", "value": {"[" * 70}1{"]" * 70}}}']),
        encoding="utf-8",
    )
    gold = read_gold(path)
    assert "nested more than 64 deep" in str(gold.problems.pop())
    assert gold.values == {"letters/a.txt": {"name": "Ada"}, "b": {"name": "Bo"}}
    assert [str(p).split(": ")[0].rpartition(":")[2] for p in gold.problems] == ["3", "4", "5", "6"]
    assert "help: " in str(gold.problems[1])
    assert gold.by_document(["a.txt", "x/b.txt", "c.txt"]) == {"a.txt": "letters/a.txt", "x/b.txt": "b"}  # fmt: skip
    assert gold.by_document(["x/b.txt", "y/b.txt"]) == {}


def test_a_folder_of_gold_files(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one/a.gold.json").write_text(
        '{\n  "name": "Ada",\n  "rows": []\n}\n', encoding="utf-8"
    )
    (tmp_path / "b.gold.json").write_text("{", encoding="utf-8")
    gold = read_gold(tmp_path)
    assert "b.gold.json: no gold value: " in str(gold.problems[0])
    assert gold.by_document(["docs/a.pdf", "docs/b.pdf"]) == {"docs/a.pdf": "a.gold.json"}


def test_a_constant_is_not_counted_as_right() -> None:
    """Nothing is extracted for it; of an entry, of which there may be none, it is."""
    one = {"$ref": "#/$defs/one"}
    schema = {
        "properties": {
            "currency": {"const": "EUR"}, "unit": one, "total": {"type": "number"},
            "kind": {"anyOf": [{"const": "open"}, {"type": "null"}]}, "marks": {"items": {"const": "x"}},
            "pet": {"anyOf": [
                {"properties": {"is": {"const": "cat"}}}, {"properties": {"is": {"const": "dog"}}},
            ]},
        },
        "$defs": {"one": {"type": "string", "enum": ["m"]}},
    }  # fmt: skip
    gold = {"currency": "EUR", "unit": "m", "total": 5, "kind": "open", "marks": ["x"], "pet": {"is": "dog"}}  # fmt: skip
    scores = Comparison(schema)
    scores.add("a", gold, gold)
    assert sorted(scores.fields) == ["kind", "marks[]", "pet.is", "total"]
    assert (scores.all.n_gold, scores.unknown) == (4, set())
