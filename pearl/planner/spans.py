"""Question → its words as strings of a plan may copy them; any text → the span of the question that it is about."""

from __future__ import annotations

from collections.abc import Sequence

from pearl.documents.passages import terms
from pearl.dsl.decoding.weak import MAX_SPAN_WORDS, Word
from pearl.dsl.literals import UNTYPED

_OPENING = frozenset({
    "a", "an", "the", "his", "her", "its", "their", "my", "our", "your", "this", "that", "these",
    "those", "no", "not", "never",
})  # fmt: skip
_EDGES = "()[]{}<>\"'“”„‘’«».,;:?!¿¡…-–—*_"
_QUOTES = frozenset("\"'“”„‘’«»*_")


def question_words(question: str) -> tuple[Word, ...]:
    """The words of a question, without the punctuation around them.

    Example:
        >>> [word.text for word in question_words("Who is Ada, the 'old' captain?") if word.is_content]
        ['Ada', 'old', 'captain']
    """
    found: list[Word] = []
    for text in UNTYPED.sub(" ", question).split():
        word = text.strip(_EDGES)
        begins = text[: len(text) - len(text.lstrip(_EDGES))]
        ends = text[len(text.rstrip(_EDGES)) :]
        if found and set(begins) - _QUOTES:  # a dash by itself is all edge
            found[-1] = found[-1]._replace(is_last=True)
        if word:
            is_content = bool(terms(word, drop_stop_words=True))
            is_opening = word.lower() in _OPENING
            found.append(Word(word, is_content, is_opening, bool(set(ends) - _QUOTES)))
    return tuple(found)


def nearest_span(text: str, question: str) -> str:
    """A text whose terms are all those of the question as it is, another as its `covering_span`.

    Example:
        >>> nearest_span("the founding of the bank", "Who set up the bank?")
        'the bank'
        >>> nearest_span("the setting of the bank", "Who set up the bank?")
        'the setting of the bank'
    """
    wanted = set(terms(text, drop_stop_words=True))
    is_borne_out = bool(wanted) and wanted <= set(terms(question, drop_stop_words=True))
    return text if is_borne_out else covering_span(text, question)


def covering_span(text: str, question: str) -> str:
    """The shortest words in a row of a question that have as many terms of a text as any.

    Example:
        >>> question = "Who set up the seed bank in the valley, and why?"
        >>> covering_span("the setting up of the seed bank", question), covering_span("a dog", "Who?")
        ('set up the seed bank', 'Who?')
    """
    wanted = set(terms(text, drop_stop_words=True))
    words = question_words(question)
    said = [set(terms(word.text, drop_stop_words=True)) for word in words]
    best, best_rank = question, (0, 0)
    for start, first in enumerate(said):
        if not first & wanted:
            continue
        found: set[str] = set()
        for end in range(start, min(start + MAX_SPAN_WORDS, len(words))):
            found |= said[end] & wanted
            rank = (len(found), start - end)
            if rank > best_rank:
                best, best_rank = _joined(words, start, end), rank
            if words[end].is_last:
                break
    return best


def _joined(words: Sequence[Word], start: int, end: int) -> str:
    """Words in a row, with the one before them that only leads to them."""
    before = words[start - 1] if start else None
    is_led = before is not None and before.is_opening and not before.is_last
    return " ".join(word.text for word in words[start - is_led : end + 1])
