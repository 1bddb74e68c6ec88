"""What is told of backends is what they are."""

from __future__ import annotations

import pytest

from pearl.llm.backends import abilities_of, create_model


@pytest.mark.parametrize("spec", ["extractive", "ollama:m"])
def test_what_is_told_of_constraints_is_what_models_say(spec: str) -> None:
    abilities = abilities_of(spec)
    assert abilities is not None
    assert abilities.constrains == create_model(spec).constrains
