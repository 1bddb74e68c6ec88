"""Encodings of plain text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.documents.readers.text import decode
from pearl.errors import DataError

SENTENCES = {
    "latin-1": "Le café est fermé, dit-elle à la fenêtre ; l'été fut très long.",
    "cp1252": "“Don’t go,” she said — and he didn’t. It cost €5.",
    "cp1251": "Привет, как дела? Это русский текст, он пошёл домой и лёг спать.",
    "koi8_r": "Привет, как дела? Это русский текст, он пошёл домой и лёг спать.",
    "cp1250": "Příliš žluťoučký kůň úpěl ďábelské ódy. Byl krásný den a všichni šli domů.",
    "cp1253": "Καλημέρα σας, τι κάνετε σήμερα; Ο άνθρωπος πήγε στο σπίτι του και έφαγε.",
    "cp1256": "مرحبا كيف حالك اليوم",
    "shift_jis": "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。",
    "euc_jp": "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。",
    "gb18030": "我们今天去北京，天气很好。他说这不是问题。",
    "big5": "我們今天去北京，天氣很好。他說這不是問題。",
    "cp1254": "Bugün hava çok güzel, değil mi? Yarın İstanbul'a gideceğiz.",
    "euc_kr": "안녕하세요 오늘은 날씨가 좋습니다. 나는 학교에 갑니다.",
}


@pytest.mark.parametrize("encoding", SENTENCES)
def test_legacy_encodings_are_distinguished(encoding: str) -> None:
    text = SENTENCES[encoding]
    assert decode(text.encode(encoding), "a.txt") == text
    long = f"{text}\n" * 200
    assert decode(long.encode(encoding), "a.txt") == long


@pytest.mark.parametrize("text", ["café", "naïve", "a £5 note", "Temperature 38°C. " * 40])
def test_a_single_accent_is_western(text: str) -> None:
    assert decode(text.encode("latin-1"), "a.txt") == text


ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-32"]


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])), st.sampled_from(ENCODINGS))
def test_unicode_is_never_guessed(text: str, encoding: str) -> None:
    if not text.startswith("\ufeff"):
        assert decode(text.encode(encoding), "a.txt") == text


def test_big_endian_utf_16() -> None:
    assert decode(b"\xfe\xff\0a\0b", "a.txt") == "ab"


def test_a_few_controls_do_not_make_text_binary() -> None:
    assert decode(b"a\0b and more", "a.txt") == "a\0b and more"


@pytest.mark.parametrize(
    ("data", "declared", "text"),
    [
        ("日本語".encode("iso-2022-jp"), "iso-2022-jp", "日本語"),
        ("日本".encode("shift_jis"), "Shift_JIS", "日本"),
        ("“é”".encode("cp1252"), "iso-8859-1", "“é”"),
        ("“é”".encode(), "iso-8859-1", "“é”"),  # the bytes know better
        (SENTENCES["latin-1"].encode("latin-1"), "utf-8", SENTENCES["latin-1"]),
        (b"plain", "utf-16", "plain"),
        (b"plain", "no-such-encoding", "plain"),
        (b"plain", "hex", "plain"),  # a codec of Python's, and none of text
    ],
)
def test_a_declaration_is_a_hint(data: bytes, declared: str, text: str) -> None:
    assert decode(data, "a.html", declared=declared) == text


GUESSED = "the encoding is not stated and guessed to be {}"


@pytest.mark.parametrize(
    ("data", "text", "note"),
    [
        *((SENTENCES["latin-1"].encode(each), SENTENCES["latin-1"], GUESSED.format(each))
          for each in ("cp1252", "cp437", "mac_roman")),
        (SENTENCES["koi8_r"].encode("koi8_r"), SENTENCES["koi8_r"], GUESSED.format("koi8_r")),
        (SENTENCES["koi8_r"].encode(), SENTENCES["koi8_r"], None),
        ("Zoë,Bern\n".encode() + "André,Genève\n".encode("cp1252"), "Zoë,Bern\nAndré,Genève\n",
         "not UTF-8 and read as cp1252 (a guess): lines 2"),
        ("é\n".encode("cp1252") * 7 + "ß".encode(), "é\n" * 7 + "ß",
         "not UTF-8 and read as cp1252 (a guess): lines 1, 2, 3, 4, 5, ..."),
    ],
)  # fmt: skip
def test_a_guess_is_noted(data: bytes, text: str, note: str | None) -> None:
    found = decode(data, "a.txt")
    assert (found, found.notes) == (text, (note,) if note else ())


@pytest.mark.parametrize(
    "data", ["Zoë é\n".encode() + b"caf\xc3", "é\n".encode() + "é".encode()[:1]]
)
def test_damaged_utf_8_is_no_mixture(data: bytes) -> None:
    with pytest.raises(DataError, match="is not UTF-8"):
        decode(data, "a.txt")
