"""The word lists hold what they promise."""

from __future__ import annotations

from pearl.actions.thesaurus import opposites, synonyms


def test_both_relations_go_both_ways() -> None:
    for relation in (synonyms(), opposites()):
        for term, others in relation.items():
            assert all(term in relation[other] for other in others), term


def test_no_word_is_its_own_opposite_or_a_synonym_of_it() -> None:
    for term, others in opposites().items():
        assert term not in others
        assert not others & synonyms().get(term, frozenset()), term
