"""What holds for any text: a sentence of it is found however it is set, another one is not."""

from __future__ import annotations

import re
import unicodedata

from hypothesis import assume, given
from hypothesis import strategies as st

from pearl.documents.evidence import Verifier, normalise
from tests.documents.evidence.checking import check
from tests.examples import examples

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
    assume(verified.result != "short")  # of a few characters, and said twice
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
        edges = " '-.,…"
        texts = document[span.start : span.end], verified.text
        shown, quoted = (normalise(text).strip(edges) for text in texts)
        # also in words alone, where the punctuation between them differs
        assert shown == quoted or re.findall(r"\w+", shown) == re.findall(r"\w+", quoted)


@given(ODD)
def test_normalising_is_blind_to_composition(text: str) -> None:
    assert normalise(unicodedata.normalize("NFD", text)) == normalise(
        unicodedata.normalize("NFC", text)
    )
