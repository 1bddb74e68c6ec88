"""Omitted text → the negations in it; and the negation right before a quote.

A quote that omits a "not" may reverse the meaning. That cannot be decided from words alone, so
every negation counts except those in brackets. A quote that begins right after a negation is shown
with it.
"""

from __future__ import annotations

import re

from pearl.documents.evidence.normal import normalise

_WORDS = (
    # English
    "not|no|never|nor|neither|none|nobody|nothing|nowhere|cannot|without|except|excepting|unless|hardly"
    r"|scarcely|barely|fail(?:s|ed|ing|ure)?|den(?:y|ies|ied|ying|ial)|refus(?:e|es|ed|ing|al)"
    r"|lack(?:s|ed|ing)?|absent|absence|negative|reject(?:s|ed|ing)?|instead of|rather than|far from"
    r"|free of|rul(?:e|es|ed|ing) out|opposite",
    # German, Dutch
    r"nicht|nichts|nie|niemals|niemand\w*|kein\w*|nirgend\w*|ohne|weder|außer|keinesfalls|kaum",
    "niet|geen|nooit|niets|zonder|behalve",
    # French, Spanish, Portuguese, Italian
    r"ne|n'\w+|pas|jamais|rien|aucun\w*|nul\w*|sans|ni|sauf|non",
    r"nunca|jamás|nadie|nada|ningun\w*|ningún|sin|tampoco|salvo|excepto",
    r"não|ninguém|nenhum\w*|sem|nem|exceto",
    r"mai|nessun\w*|niente|nulla|senza|né|neanche|neppure|tranne|eccetto",
    # Swedish, Danish, Norwegian; Finnish
    "inte|ej|ikke|ikkje|aldrig|aldri|ingen|inget|inga|ingenting|utan|uten|uden|varken|hverken|verken",
    "ei|eivät|eikä|ilman",
    # Polish, Czech, Turkish
    r"nie|nigdy|nikt|nic|żad\w+|bez|ani|není|nebyl\w*|nikdy|nikdo|žádn\w*|değil|yok|hiç|asla",
    # Russian, Ukrainian, Greek
    r"не|нет|ни|никогда|никто|ничего|ничто|нельзя|без|кроме|ні|немає|ніколи",
    r"δεν|δε|μη|μην|όχι|ποτέ|χωρίς|ούτε|κανένα\w*|κανείς|τίποτα",
    # Hebrew, Arabic, Hindi
    r"ו?(?:לא|אין|אינו|אינה|אינם|בלי|ללא|מעולם)",
    r"[وف]?(?:لا|لم|لن|ليس\w*|غير|بدون|دون|عدم|إلا)",
    "नहीं|न|मत|बिना|ना",
)
_PARTS = (
    "[不没沒未无無非否勿莫毋]|ない|なく|なかっ|なけれ|ません|ずに"  # Chinese, Japanese
    "|않|못|없|아니|아닌|말라|마세요|제외|ไม่|มิได้|ปราศจาก"  # Korean, Thai
)
_NEGATION = re.compile(
    rf"(?<![^\W_])(?:{'|'.join(_WORDS)})(?!\w)|(?<!\w)\w+n't\b|{_PARTS}", re.IGNORECASE
)
_REACH = 32
"""Characters inspected before a quote; the longest negation has fewer."""

_BEFORE = re.compile(
    rf"(?<![^\W_])(?:{'|'.join(_WORDS)}|\w+n['’]t)[^\S\n]?\n?[^\S\n]?\Z", re.IGNORECASE
)
_ASIDE = re.compile(r"[(\[（][^()\[\]（）]*[)\]）]")


def negations(omitted: str) -> tuple[str, ...]:
    """The negations in an omitted text, in normal form.

    Negation by inflection (Turkish, Czech, partly Finnish) is not detected.

    Example:
        >>> negations("did not, and couldn’t,"), negations("who knew nothing (of no one)")
        (('not', "couldn't"), ('nothing',))
    """
    return tuple(match[0] for match in _NEGATION.finditer(normalise(_ASIDE.sub(" ", omitted))))


def with_negation(text: str, start: int) -> int:
    """The start of a quote, moved back to include a negation right before it.

    Example:
        >>> text = "She denies chest pain."
        >>> text[with_negation(text, 11):]
        'denies chest pain.'
        >>> with_negation("He knows. Pain is there.", 10)
        10
    """
    found = _BEFORE.search(text, max(start - _REACH, 0), start)
    return start if found is None else found.start()
