"""Which words of a reply are quotes."""

from __future__ import annotations

import pytest

from pearl.documents.evidence import find_quotes

# find_quotes


@pytest.mark.parametrize(
    ("reply", "quotes"),
    [
        ("Nothing is quoted here.", []),
        ('He says "it was a dark night" there.', ["it was a dark night"]),
        ("He says “it was a dark night” there.", ["it was a dark night"]),
        ("Er sagt: „es war eine dunkle Nacht“.", ["es war eine dunkle Nacht"]),
        ("Il dit « c'était une nuit noire ».", ["c'était une nuit noire"]),
        ("彼は「名前はまだ無い猫である」と言う。", ["名前はまだ無い猫である"]),
        ("他说“今天天气非常好啊”。", ["今天天气非常好啊"]),
        ('The "three word title", or 「猫である」.', ["three word title", "猫である"]),
        ("彼は『我輩は猫』と", ["我輩は猫"]),
        ("The dog's bowls, the dogs' beds, the cats' home.", []),
        ("'Tis the boys' turn, rock 'n' roll of the '90s, let 'em.", []),
        ("It is 5' 4' tall, or 5″.", []),
        ('He said "it was dark": so it was.', ["it was dark"]),
        ('The mark "…" and " - " are none.', []),
        ('It is 5" by 4", "a very small picture", she said.', ["a very small picture"]),
        ("“He said ‘I will not go’ and left.”", ["He said ‘I will not go’ and left."]),
        ('"The line was\nbroken here today"', ["The line was\nbroken here today"]),
        ('An open " mark in this\n\nparagraph " ends with it.', []),
        ("> One.", ["One."]),
        ("  > One\n> two.\n\n> Three.\nFour.", ["One\ntwo.", "Three."]),
        ("> One.\n>\n> Two.", ["One.\n\nTwo."]),
        ("> > Nested.", ["Nested."]),
        ('> He said "it was a dark night".', ['He said "it was a dark night".']),
        (">5 mg\n>= 5 mg\n>−5\n> ", []),
        (">One\n>two.", ["One\ntwo."]),
        ("- > One.\n2. >Two.", ["One.\nTwo."]),
        (">> >Nested.", ["Nested."]),
        ('"a b c d" then\n> e\nthen “f g h i”', ["a b c d", "e", "f g h i"]),
    ],
)
def test_find_quotes(reply: str, quotes: list[str]) -> None:
    assert find_quotes(reply) == quotes
