"""The requests that a store holds of runs: what numbers they may have, and what they may name."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import ValidationError, convert

from pearl.runs.request import EvalRequest, ExecuteRequest, ExtractRequest, FewshotRequest

REQUIRED: dict[Any, dict[str, Any]] = {
    ExecuteRequest: {"out": "a.jsonl"},
    ExtractRequest: {"out": "a.csv", "fields": "name"},
    EvalRequest: {"methods": "plan", "seeds": 1, "part_tokens": 256},
    FewshotRequest: {"out": "bank", "retries": 0, "max_examples": 1},
}


def made(kind: Any, **options: Any) -> Any:
    return convert({"executor": "local", **REQUIRED[kind], **options}, kind)


@pytest.mark.parametrize(
    ("kind", "name", "least", "below"),
    [
        (ExecuteRequest, "limit", 1, 0),
        (ExecuteRequest, "max_calls", 0, -1),
        (ExecuteRequest, "max_tokens", 0, -1),
        (ExecuteRequest, "max_cost", 0.0, -0.01),
        (ExecuteRequest, "max_time", 0.01, 0.0),
        (ExecuteRequest, "max_errors", 0, -1),
        (ExecuteRequest, "batch_threshold", 0, -1),
        (ExecuteRequest, "concurrency", 1, 0),
        (EvalRequest, "seeds", 1, 0),
        (EvalRequest, "temperature", 0.0, -0.01),
        (EvalRequest, "token_budget", 256, 255),
        (EvalRequest, "part_tokens", 256, 255),
        (FewshotRequest, "retries", 0, -1),
        (FewshotRequest, "max_examples", 1, 0),
    ],
)
def test_each_number_has_a_least_value(kind: Any, name: str, least: float, below: float) -> None:
    assert getattr(made(kind, **{name: least}), name) == least
    with pytest.raises(ValidationError, match=name):
        made(kind, **{name: below})


@pytest.mark.parametrize(
    ("kind", "options", "told"),
    [
        (ExecuteRequest, {"out": "s3://bucket/a.jsonl"}, "out: an address"),
        (ExecuteRequest, {"set": ["a=b\0c"]}, "set: no text"),
        (
            ExecuteRequest,
            {"plan_and_documents": ["a.txt", "b\0.txt"]},
            "plan_and_documents: no text",
        ),
        (ExecuteRequest, {"executor": "evil"}, "executor: no executor"),
        (ExtractRequest, {"executor": "evil"}, "executor: no executor"),
        (ExtractRequest, {"fields": "a, a"}, "fields: "),
        (ExtractRequest, {"fields": "{}"}, "fields: "),
    ],
)
def test_what_a_request_may_not_name(kind: Any, options: dict[str, Any], told: str) -> None:
    assert made(kind)
    with pytest.raises(ValidationError, match=told):
        made(kind, **options)
