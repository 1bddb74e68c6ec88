"""Terms are found where they lie, those that begin alike too."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pearl.retrieval.postings import Vocabulary

terms = st.text(st.sampled_from("ab\u00e9\u6771\ud800\x00\U0010ffff"), max_size=12)


@given(st.sets(terms, max_size=30), st.lists(terms, max_size=10))
def test_every_term_is_found_at_its_place_and_no_other(known: set[str], asked: list[str]) -> None:
    names = sorted(term.encode("utf-8", "surrogatepass") for term in known)
    vocabulary = Vocabulary.of(names)
    assert list(vocabulary) == names
    assert len(vocabulary) == len(names)
    for term in (*known, *asked):
        name = term.encode("utf-8", "surrogatepass")
        assert vocabulary.find(term) == (names.index(name) if name in names else None)
