"""Generated documents with gold records: their schemas are accepted, and they are the same each time."""

from __future__ import annotations

import pytest

from pearl.data.schemas import load_schema
from tests.extraction.documents import case, leaves
from tests.extraction.shapes import SHAPES, schema_of


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_is_accepted(name: str) -> None:
    assert load_schema(schema_of(SHAPES[name])).fields


def test_the_same_seed_makes_the_same_document() -> None:
    for name, shape in SHAPES.items():
        one, again, other = (case(name, shape, seed) for seed in (1, 1, 2))
        assert one.text == again.text != other.text
        for _, told in leaves(one.gold):
            assert told.places
            assert any(told.shown in one.text[a:b] for a, b in told.places)
