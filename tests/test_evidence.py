"""Quotes of replies, and where a document has them."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.errors import Span
from pearl.evidence import Quote, Verifier, find_quotes, normalise
from tests.examples import examples


def check(document: str, quote: str) -> tuple[str, list[str]]:
    """How a quote is found, and what of the document is shown for it."""
    found = Verifier(document).verify(quote)
    assert found.is_verified == (found.match != "missing") == bool(found.spans)
    return found.match, [document[span.start : span.end] for span in found.spans]


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
        ('The "three word title" is no quote, nor is 「猫である」.', []),
        ('It is 5" by 4", "a very small picture", she said.', ["a very small picture"]),
        ("“He said ‘I will not go’ and left.”", ["He said ‘I will not go’ and left."]),
        ('"The line was\nbroken here today"', ["The line was\nbroken here today"]),
        ('An open " mark in this\n\nparagraph " ends with it.', []),
        ("> One.", ["One."]),
        ("  > One\n> two.\n\n> Three.\nFour.", ["One\ntwo.", "Three."]),
        ("> One.\n>\n> Two.", ["One.\n\nTwo."]),
        ("> > Nested.", ["Nested."]),
        ('> He said "it was a dark night".', ['He said "it was a dark night".']),
        (">>> print(1)\n>5 mg\n> ", []),
        ('"a b c d" then\n> e\nthen “f g h i”', ["a b c d", "e", "f g h i"]),
    ],
)
def test_find_quotes(reply: str, quotes: list[str]) -> None:
    assert find_quotes(reply) == quotes


@given(st.text(st.sampled_from('ab \n>"“”„«»「」猫')))
def test_every_quote_is_in_the_reply(reply: str) -> None:
    for quote in find_quotes(reply):
        for line in quote.splitlines():
            assert line in reply


# Verifier


def test_a_quote_as_it_stands() -> None:
    verifier = Verifier("The lamp failed. Ines lit a fire.")
    assert verifier.verify("Ines lit a fire.") == Quote(
        "Ines lit a fire.", (Span(17, 33),), "exact"
    )
    assert verifier.verify("Ines put out a fire.") == Quote("Ines put out a fire.", (), "missing")


@pytest.mark.parametrize(
    ("document", "quote", "shown"),
    [
        ("It was\n  a  dark\tnight.", "It was a dark night.", "It was\n  a  dark\tnight."),
        ("“Don’t,” he said.", '"Don\'t," he said.', "“Don’t,” he said."),
        ("„Nein“, sagte er.", "«Nein», sagte er.", "„Nein“, sagte er."),
        ("« Non », dit-il.", '"Non", dit-il.', "« Non », dit-il."),
        ("He said “‘No’ is no.”", 'He said ‘"No" is no.’', "He said “‘No’ is no.”"),
        (
            "He came — and went — at ten.",
            "He came--and went - at ten",
            "He came — and went — at ten",
        ),
        ("mother–daughter talk", "mother-daughter talk", "mother–daughter talk"),
        ("This is an exam-\nple of it.", "an example of it", "an exam-\nple of it"),
        ("This is a well-\nknown fact.", "a well-known fact", "a well-\nknown fact"),
        ("This ex\xadam\xad\nple of it", "This example of it", "This ex\xadam\xad\nple of it"),
        ("pages 12-\n15 and on", "pages 12–15 and on", "pages 12-\n15 and on"),
        ("Le cafe\u0301 noir ici", "Le café noir ici", "Le cafe\u0301 noir ici"),
        ("Le café noir ici", "Le cafe\u0301 noir ici", "Le café noir ici"),
        (
            "한국어 문장입니다",
            unicodedata.normalize("NFD", "한국어 문장입니다"),
            "한국어 문장입니다",
        ),
        ("ＡＢＣ１２３です。", "ABC123です。", "ＡＢＣ１２３です。"),
        ("ｶﾞﾗｽを割った。", "ガラスを割った。", "ｶﾞﾗｽを割った。"),
        ("天气很好，他说。\n真的吗？", "天气很好,他说。真的吗?", "天气很好，他说。\n真的吗？"),
        ("吾輩は\n猫である。", "吾輩は猫である", "吾輩は\n猫である"),
        ("قال إن\u00a0الكـــتاب جديد.", "قال إن الكتاب جديد", "قال إن\u00a0الكـــتاب جديد"),
        ("The ofﬁce was ﬁne.", "The office was fine.", "The ofﬁce was ﬁne."),
        ("Well… he left.", "Well... he left.", "Well… he left."),
        ("so it goes", "...so it goes, ", "so it goes"),
        ("zero\u200bwidth here", "zerowidth here", "zero\u200bwidth here"),
        ("It rose 5%.", "**It rose 5%**", "It rose 5%"),
    ],
)
def test_what_may_differ(document: str, quote: str, shown: str) -> None:
    for text, begin in ((document, 0), (f"Start. {document} End.", 7)):
        verified = Verifier(text).verify(quote)
        assert verified.match == "normalised"
        assert verified.spans[0].start >= begin
        assert check(text, quote) == ("normalised", [shown])


@pytest.mark.parametrize(
    ("document", "quote"),
    [
        ("She left home.", "he left home"),  # begins within a word
        ("He left homeward.", "He left home"),
        ("He left home.", "he left home."),  # case
        ("He left home.", "He left hope."),
        ("He left home.", "He  lefthome."),
        ("nowhere to go", "now here to go"),
        ("It takes 1.5 mg a day.", "5 mg a day"),
        ("It takes 1.5 mg a day.", "It takes 1"),
        ("It takes 15 mg a day.", "5 mg a day"),
        ("It takes 3-4 mg a day.", "takes 34 mg a day"),
        ("It rose by 10² or so.", "It rose by 10"),
        ("It rose by 5 points.", "It rose by 5%"),
        ("Le cafe\u0301 noir", "Le cafe"),
        ("Le café noir", "Le cafe noir"),
        ("The ﬁsh swam.", "ish swam"),
        ("we're here now", "were here now"),
        ("他们昨天去了北京。", "他们昨天去了南京"),
        ("कि वह गया था", "क वह गया था"),
        ("Anything.", ""),
        ("Anything.", "…"),
        ("", "Anything."),
    ],
)
def test_what_may_not_differ(document: str, quote: str) -> None:
    assert check(document, quote) == ("missing", [])


def test_a_match_within_a_word_does_not_hide_a_later_one() -> None:
    assert check("She left. But he left.", "he left") == ("exact", ["he left"])
    assert Verifier("She left. But he left.").verify("he left").spans == (Span(14, 21),)
    assert Verifier("She\nleft. But he\nleft.").verify("he left").spans == (Span(14, 21),)


@pytest.mark.parametrize("omission", ["...", "…", " … ", "[…]", " [...] ", "(...)", " . . . "])
def test_omissions_divide_a_quote(omission: str) -> None:
    document = "The dog saw the cat and, after all was said, ran far away home."
    assert check(document, f"The dog saw{omission}was said,{omission}far away home.") == (
        "exact",
        ["The dog saw", "was said,", "far away home."],
    )
    assert check(document, f"far away home{omission}The dog saw")[0] == "missing"
    assert check(document, f"The dog saw{omission}a bone")[0] == "missing"
    assert check(document, f"{omission}The dog saw{omission}")[1] == ["The dog saw"]


def test_pieces_are_shown_where_they_are_close() -> None:
    document = "He said no. He said yes. He ran. And they went home. He ran."
    spans = Verifier(document).verify("He said … they went home").spans
    assert spans == (Span(12, 19), Span(37, 51))


def test_an_ellipsis_of_the_document_is_no_omission() -> None:
    assert check("Well ... he left us.", "Well ... he left us.") == (
        "exact",
        ["Well ... he left us."],
    )


@pytest.mark.parametrize(
    "quote",
    [
        "The dog ran home (chapter 2)",
        "The dog ran home. (Smith, p. 7).",
        "The dog ran home. [3]",
        "“The dog ran home.” — The Author",
        "The dog ran home.\n— the author, chapter 2",
        "The dog ran home.\n-- chapter 2",
        "The dog ran home（第二章）",
        "The dog ran home. (on the last page)",
    ],
)
def test_an_attribution_is_left_out(quote: str) -> None:
    verified = Verifier("At ten\nThe dog ran home. The end.").verify(quote)
    assert verified.is_verified
    assert verified.text.strip("“”.") == "The dog ran home"
    assert quote.startswith(verified.text)


@pytest.mark.parametrize(
    "quote",
    [
        "The dog ran home (who was cold)",
        "The dog ran home — and The cat",
        "The dog ran home - the cat did not",
        "The dog ran home (" + "A" * 100 + ")",
    ],
)
def test_what_is_added_to_a_sentence_is_no_attribution(quote: str) -> None:
    assert check("The dog ran home. The end.", quote)[0] == "missing"


def test_an_aside_of_the_document_is_kept() -> None:
    document = "The dog ran home (chapter 2 says so)."
    assert check(document, "The dog ran home (chapter 2 says so).") == ("exact", [document])


def test_lines_of_a_block_quote_may_be_quotes() -> None:
    document = "The dog ran home at ten. It rained. Nobody saw it but me."
    quote = "Nobody saw it but me. (p. 2)\nThe dog ran  home at ten."
    verified = Verifier(document).verify(quote)
    assert verified.match == "normalised"
    assert verified.text == "Nobody saw it but me.\nThe dog ran  home at ten."
    assert [document[s.start : s.end] for s in verified.spans] == [
        "Nobody saw it but me.",
        "The dog ran home at ten.",
    ]
    assert check(document, "Nobody saw it but me.\nThe dog ran off at ten.")[0] == "missing"
    assert check(document, "It\nrained. Nobody ran home.")[0] == "missing"


# Properties

WORDS = st.text("abcdéghijkłmnõpqrstuvwxy", min_size=1, max_size=8)
CHINESE = st.text("的一是不了人我在有他这为之大来以个中上们", min_size=1, max_size=8)
SENTENCES = st.one_of(
    st.lists(WORDS, min_size=4, max_size=12).map(lambda words: " ".join(words) + "."),
    st.lists(CHINESE, min_size=3, max_size=6).map(lambda words: "，".join(words) + "。"),
    st.lists(WORDS, min_size=3, max_size=6).map(lambda words: "“" + "’s ".join(words) + "!”"),
)
DOCUMENTS = st.lists(SENTENCES, min_size=1, max_size=8)
BLANKS = st.sampled_from([" ", "\n", "  ", " \n ", "\u00a0", "\t", "\u3000"])
MARKS = "\"'“”‘’„«»′`"


@st.composite
def settings_of(draw: st.DrawFn, sentence: str) -> str:
    """The same wording, set in another way."""
    pieces = []
    for before, character in zip(" " + sentence, sentence, strict=False):
        if before.isalpha() and character.isalpha() and draw(st.integers(0, 9)) == 0:
            pieces.append(draw(st.sampled_from(["-\n", "\xad", "\u2010\n  "])))
        if character == " ":
            pieces.append(draw(BLANKS))
        elif character in MARKS:
            pieces.append(draw(st.sampled_from(MARKS)))
        else:
            pieces.append(character)
    form = draw(st.sampled_from(["NFC", "NFD"]))
    return unicodedata.normalize(form, "".join(pieces))


@given(st.data(), DOCUMENTS)
def test_a_sentence_is_found_however_it_is_set(data: st.DataObject, sentences: list[str]) -> None:
    document = " ".join(data.draw(settings_of(sentence)) for sentence in sentences)
    sentence = data.draw(st.sampled_from(sentences))
    quote = data.draw(settings_of(sentence))
    verified = Verifier(document).verify(quote)
    assert verified.is_verified
    (span,) = verified.spans
    shown = normalise(document[span.start : span.end]).strip("'.!。")
    assert shown == normalise(quote).strip("'.!。")


@given(st.data(), DOCUMENTS)
def test_a_sentence_with_another_letter_is_missing(
    data: st.DataObject, sentences: list[str]
) -> None:
    document = " ".join(data.draw(settings_of(sentence)) for sentence in sentences)
    quote = data.draw(settings_of(data.draw(st.sampled_from(sentences))))
    at = data.draw(st.sampled_from([i for i, c in enumerate(quote) if c.isalpha()]))
    changed = quote[:at] + ("z" if quote[at].isascii() else "龍") + quote[at + 1 :]
    assert check(document, changed) == ("missing", [])


ODD = st.text(st.sampled_from("ab\u0301é-–\xad'“ \n.,1٣ﬁ…かｶﾞ\u200b猫%ᄀ가ᅡᆨ\u0958กิ\U0001f600"))


@examples(500)
@given(ODD, st.data())
def test_a_verified_span_has_the_normal_form_of_the_quote(
    document: str, data: st.DataObject
) -> None:
    if data.draw(st.booleans()) and document:
        start = data.draw(st.integers(0, len(document) - 1))
        quote = document[start : data.draw(st.integers(start, len(document)))]
    else:
        quote = data.draw(ODD)
    verified = Verifier(document).verify(quote)
    if len(verified.spans) == 1 and "…" not in quote:
        (span,) = verified.spans
        assert 0 <= span.start < span.end <= len(document)
        shown = normalise(document[span.start : span.end])
        edges = " '-.,…"
        assert shown.strip(edges) == normalise(verified.text).strip(edges)


@given(ODD)
def test_normalising_is_blind_to_composition(text: str) -> None:
    assert normalise(unicodedata.normalize("NFD", text)) == normalise(
        unicodedata.normalize("NFC", text)
    )


@pytest.mark.slow
def test_ten_megabytes_and_a_hundred_quotes() -> None:
    sentence = (
        "“Where’s the well-\nknown house?” he asked, number {}, and nobody — nobody! — knew. "
    )
    document = "".join(sentence.format(i) for i in range(10_000_000 // len(sentence)))
    verifier = Verifier(document)
    for i in range(0, 1000, 20):
        assert verifier.verify(f"he asked, number {i}, and nobody--nobody!--knew").is_verified
        assert not verifier.verify(f"he asked, number {i}, and somebody--nobody!--knew").is_verified
