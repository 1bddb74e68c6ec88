"""Sentences, chunks and terms: every span is a range of the text, and the time is linear."""

from __future__ import annotations

import unicodedata
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.documents.passages import chunks, paragraphs, sentences, sentences_near, terms
from pearl.errors import Span
from tests.examples import times

TEXTS = st.text(
    st.one_of(
        st.characters(codec="utf-8"),
        st.sampled_from(" \n\t.?!\"'“”:,()-*>#aB1é他。"),
    ),
    max_size=300,
)


def cut(text: str) -> list[str]:
    return [text[span.start : span.end] for span in sentences(text)]


def test_the_splitter_knows_abbreviations_and_numbers() -> None:
    text = "Dr. Ray paid $3.50 at 5 p.m. on 4 May 1911. Mr. J. R. Lee left. Was it 3.5 km? Yes!"
    assert cut(text) == [
        "Dr. Ray paid $3.50 at 5 p.m. on 4 May 1911.",
        "Mr. J. R. Lee left.",
        "Was it 3.5 km?",
        "Yes!",
    ]


@pytest.mark.parametrize("word", ["May", "me", "no", "ill", "etc"])
def test_whole_words_that_look_like_abbreviations_end_a_sentence(word: str) -> None:
    assert cut(f"It was {word}. Robert left.") == [f"It was {word}.", "Robert left."]


def test_wrapped_lines_are_one_sentence() -> None:
    text = (
        "The ferry stopped running in the autumn of that year because the new\n"
        "bridge had been opened. Nobody was sorry for it, not even in the Upper\n"
        "Town, where they had always paid the fare and had never once used it\n"
        "twice.\n"
    )
    assert cut(text) == [
        "The ferry stopped running in the autumn of that year because the new\n"
        "bridge had been opened.",
        "Nobody was sorry for it, not even in the Upper\n"
        "Town, where they had always paid the fare and had never once used it\ntwice.",
    ]


@given(text=TEXTS)
def test_paragraphs_cover_all_words_and_contain_no_blank_lines(text: str) -> None:
    spans = paragraphs(text)
    words = [word for span in spans for word in text[span.start : span.end].split()]
    assert words == text.split()
    for span in spans:
        lines = text[span.start : span.end].split("\n")
        assert all(line.strip() for line in lines)
    assert all(one.end < other.start for one, other in pairwise(spans))


def test_headings_lists_and_paragraphs_begin_anew() -> None:
    text = "The Report\n\n# Findings\nThe roof leaks\n- one tile is gone\n- two are loose\n1. Buy tiles\n"
    assert cut(text) == [
        "The Report",
        "# Findings",
        "The roof leaks",
        "- one tile is gone",
        "- two are loose",
        "1. Buy tiles",
    ]


def test_turns_of_a_dialogue_begin_anew() -> None:
    text = "Dr. Noor: How are you?\nMr. Bielak: Tired\nDr. Noor: Since when? [doctor] ok"
    assert cut(text)[:3] == ["Dr. Noor: How are you?", "Mr. Bielak: Tired", "Dr. Noor: Since when?"]
    assert cut("[doctor] hi , martha . how are you ?\n[patient] okay .") == [
        "[doctor] hi , martha .",
        "how are you ?",
        "[patient] okay .",
    ]


def test_lost_line_breaks_still_divide_sentences() -> None:
    text = "DIAGNOSES:,1.  Old tear.,2.  Knee pain.,PROCEDURE: , Repair. FINDINGS: None."
    assert cut(text) == [
        "DIAGNOSES:",
        "1.  Old tear.",
        "2.  Knee pain.",
        "PROCEDURE: , Repair.",
        "FINDINGS: None.",
    ]


def test_a_short_speech_stays_whole_and_a_long_one_does_not() -> None:
    assert cut('"I am. You are," he said. She left.') == ['"I am. You are," he said.', "She left."]
    speech = '"I came here to go through the accounts, all of them. Nobody told me of a boat. Where is it now, please?"'
    assert cut(speech + " She left.")[:2] == [
        '"I came here to go through the accounts, all of them.',
        "Nobody told me of a boat.",
    ]


def test_a_text_without_full_stops_is_cut_between_words() -> None:
    text = "so he said well " * 2_000 + "and then the warfarin was stopped"
    found = [text[span.start : span.end] for span in sentences(text)]
    assert max(map(len, found)) <= 4_000
    assert " ".join(found) == text
    unbroken = "x" * 10_000
    assert sentences(unbroken) == (Span(0, 10_000),)


def test_scripts_without_blanks_are_cut() -> None:
    assert cut("他来了。她走了！好吗？") == ["他来了。", "她走了！", "好吗？"]
    assert cut("А. П. Чехов умер. Он жил в Ялте.") == ["А. П. Чехов умер.", "Он жил в Ялте."]


@given(TEXTS)
def test_sentences_are_trimmed_ordered_and_leave_nothing_out(text: str) -> None:
    at = 0
    left_out = ""
    for span in sentences(text):
        assert at <= span.start < span.end
        sentence = text[span.start : span.end]
        assert sentence == sentence.strip()
        left_out += text[at : span.start]
        at = span.end
    # A comma in the place of a line break belongs to no sentence.
    assert not (left_out + text[at:]).replace(",", "").strip()


def test_sentences_near_a_range_are_those_of_the_whole_text() -> None:
    text = "It rained.\n- a\n- b\n\nMs. Ray left. He\nstayed (3. May) here.\nTom: So?\n3. End"
    every = [(span.start, span.end) for span in sentences(text)]
    assert len(every) == 7
    for start, length in product(range(len(text) + 1), (1, 9, 40)):
        end = start + length
        inside = [i for i, (begin, stop) in enumerate(every) if begin < end and stop > start]
        for before, after in product(range(4), repeat=2):
            wanted = every[max(inside[0] - before, 0) : inside[-1] + 1 + after] if inside else []
            assert sentences_near(text, start, end, (before, after)) == wanted
    assert sentences_near("", 0, 1, (1, 1)) == []


LONG = times(400_000)  # in the gate, what takes quadratic time does not end


@pytest.mark.parametrize(
    "text",
    [
        "a" * LONG,
        "." * LONG,
        "“" * LONG + "a. b",
        "Dr. " * (LONG // 4),
        '"a. ' * (LONG // 4),
        "A\n" * (LONG // 2),
        "Aa " * (LONG // 2) + ":",
        " " * LONG + "a",
    ],
    ids=["word", "stops", "quotes", "titles", "speech", "lines", "capitals", "blanks"],
)
def test_odd_texts_are_read_to_their_end(text: str) -> None:
    assert sentences(text)[-1].end == len(text.rstrip())
    assert len(terms(text)) <= len(text)


def count_words(text: str) -> int:
    return len(text.split())


def count_bytes(text: str) -> int:
    return len(text.encode())


@given(TEXTS, st.integers(1, 40), st.sampled_from([count_words, count_bytes, len]))
def test_chunks_cover_the_text_and_fit(text: str, max_tokens: int, count: object) -> None:
    assert callable(count)
    spans = chunks(text, max_tokens, count)
    assert "".join(text[span.start : span.end] for span in spans) == text
    assert all(before.end == after.start for before, after in pairwise(spans))
    for span in spans:
        assert span.end > span.start
        assert count(text[span.start : span.end]) <= max_tokens or span.end - span.start == 1


def test_chunks_end_at_the_largest_unit_that_fits() -> None:
    text = "One two. Three four.\n\nFive six seven. Eight nine ten eleven twelve."
    shown = [text[span.start : span.end] for span in chunks(text, 4, count_words)]
    assert shown == [
        "One two. Three four.\n\n",
        "Five six seven. ",
        "Eight nine ten eleven ",
        "twelve.",
    ]


def test_a_chunk_size_of_0_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        chunks("a", 0, len)


def test_tokens_that_do_not_add_up_are_counted_together() -> None:
    def more_together(text: str) -> int:
        return len(text.split()) + text.count("\n\n")

    text = "a b\n\nc d\n\ne"
    assert all(
        more_together(text[span.start : span.end]) <= 3 for span in chunks(text, 3, more_together)
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("kept", "keeping"),
        ("children", "child"),
        ("Café", "cafe"),
        ("sold", "selling"),
        ("Nora’s", "nora"),
        ("1,200", "1200"),
        ("women", "woman"),
        ("colour", "colors"),
        ("died", "death"),
        ("soft\u00adhy\u00adphens", "softhyphen"),
        ("２００５", "2005"),
        ("İstanbul", "istanbul"),
        ("كتـاب", "كتاب"),
        ("x\u030cy", "xy"),
    ],
)
def test_forms_of_a_word_are_one_term(one: str, other: str) -> None:
    assert terms(one) == terms(other)


def test_stop_words_are_dropped_on_request() -> None:
    question = "Who didn't keep the keys?"
    assert terms(question, drop_stop_words=True) == ["keep", "key"]
    assert "who" in terms(question)


@pytest.mark.parametrize(
    "text",
    [
        "Résumés of Ångström, naïve façade",
        "Việt Nam",
        "नमक का स्वाद",
        "שָׁלוֹם",
        "한국어",
        "がぎ ガギ",
        "ǰ",
    ],
)
def test_composed_and_decomposed_letters_give_the_same_terms(text: str) -> None:
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    assert terms(composed) == terms(decomposed)
    assert len(terms(composed, stem="none")) >= len(text.split())


def test_a_word_is_not_cut_at_its_vowel_signs() -> None:
    assert len(terms("नमक का स्वाद", stem="none")) == 3
    assert terms("\u00ad \u0301") == []


def test_cjk_gives_bigrams() -> None:
    assert terms("北京大学 abc") == ["北京", "京大", "大学", "abc"]
    assert terms("图") == ["图"]
