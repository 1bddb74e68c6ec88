"""What is told of backends is what they are."""

from __future__ import annotations

import pytest

from pearl.llm.backends import abilities_of, create_model
from pearl.llm.overview import backend_rows
from pearl.plugins.extras import extras
from tests.skips import needs_contrib


@pytest.mark.parametrize(
    "name",
    [
        "extractive",
        pytest.param("llamacpp", marks=needs_contrib),
        "ollama",
        "openai",
        "recorded",
        "scripted",
    ],
)
def test_every_shipped_backend_says_what_it_takes(name: str) -> None:
    abilities = abilities_of(name)
    assert abilities is not None
    assert not abilities.extra or abilities.extra in extras()
    (row,) = [row for row in backend_rows() if row.name == name]
    assert row.abilities == abilities
    assert row.is_installed is not bool(extras().get(abilities.extra))


@pytest.mark.parametrize("spec", ["extractive", "ollama:m"])
def test_what_is_told_of_constraints_is_what_models_say(spec: str) -> None:
    abilities = abilities_of(spec)
    assert abilities is not None
    assert abilities.constrains == create_model(spec).constrains
