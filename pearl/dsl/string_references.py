"""A step → diagnostics for strings that name an output or a step, which would be sent literally."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from pearl.dsl.nodes import ListLiteral, Step, String
from pearl.dsl.signatures import CTX, Action
from pearl.errors import Diagnostic, Fix, did_you_mean

CODE = "reference-in-string"

_NAME = r"[^\W\d]\w{0,79}+"
_MARKED = re.compile(
    rf"\$?+(?P<braces>\{{++)\s{{0,8}}+(?P<braced>{_NAME})\s{{0,8}}+(?P<tail>[.:!|(\[][^{{}}]{{0,80}}+)?\}}++"
    rf"|\$(?P<dollar>{_NAME})|(?P<mark><<?+|\[\[?+|%\(?+|`)(?P<marked>{_NAME})(?:>>?+|\]\]?+|\)s|%|`)"
)
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_STEP = re.compile(
    rf"\b(?:steps?|outputs?|schritt|étape|paso|passo)[ _]?(?:(?:no\. ?|number |#)?+"
    rf"(?P<digits>\d{{1,2}}+)|(?P<word>{'|'.join(_NUMBERS)}))\b(?! of\b)"
    rf"|\b(?P<ordinal>{'|'.join(_ORDINALS)}) (?:step|output)\b(?! (?:of|in|to|towards?|for)\b)",
    re.I,
)
_BEFORE = re.compile(
    r"\b(?:the (?:previous|prior|preceding|earlier) steps?|(?:previous|prior|preceding) step|steps? above"
    r"|the (?:previous|prior|preceding) (?:results?|answers?|actions?|calls?)|(?:previous|prior|preceding) outputs?"
    r"|(?:outputs?|\w{2,20}ed|found) above|the above|the aforementioned)\b"
    # "hung above the door", "the above average price" are text.
    r"(?!-| (?:of|the|an?|his|her|its|their|my|our|your|average|all|ground|sea|water|zero|\d+)\b)",
    re.I,
)


def string_references(
    step: Step,
    action: Action | None,
    fitting: Sequence[Sequence[str]],
    above: Sequence[str],
    question: str,
) -> Iterator[Diagnostic]:
    """Diagnose the strings of a step."""
    bare: set[str] = set()  # of outputs, where these are no names of fields and no labels
    if action and not (action.is_native or action.reads_rows or action.asks_table):
        bare = {name for name in above if "_" in name} - {each.name for each in step.references()}
    for argument, names in zip(step.arguments, fitting, strict=False):
        is_list = isinstance(argument, ListLiteral)
        for item in argument.items if isinstance(argument, ListLiteral) else (argument,):
            if isinstance(item, String) and (
                named := _reference(item.value, above, bare, question)
            ):
                text, name = named
                takes = name in ((*above, CTX) if is_list else names)
                is_all = item.value.strip() == text and text.strip("${<[%(` )>]}") in (
                    name,
                    f"{name})s",
                )
                yield Diagnostic(
                    CODE,
                    f"'{_shortened(text)}' in a string is sent as it stands"
                    + ("" if name else "; it is no output of an earlier step"),
                    item.span,
                    help=_help(text, name, above),
                    fix=Fix(item.span, name) if is_all and name and takes else None,
                )


def _reference(
    value: str, above: Sequence[str], bare: Collection[str], question: str
) -> tuple[str, str] | None:
    """What a string refers to, as it says it, and the output's name; "" for an unknown one."""
    asked = " ".join(question.split()).casefold()
    for match in _MARKED.finditer(value):
        name = match["braced"] or match["dollar"] or match["marked"]
        is_known = name in above or name == CTX
        is_placeholder = match["braces"] == "{" and not match["tail"]
        if (is_known or is_placeholder) and match[0].casefold() not in asked:
            return match[0], name if is_known else ""
    for word in re.findall(r"\w+", value) if bare else ():
        if word in bare and word.casefold() not in asked:
            return word, word
    if not above:
        return None
    for match in _STEP.finditer(value):
        word = (match["word"] or match["ordinal"] or "").casefold()
        number = int(match["digits"] or (*_NUMBERS, *_ORDINALS).index(word) % len(_NUMBERS) + 1)
        if 0 < number <= len(above) and " ".join(match[0].split()).casefold() not in asked:
            return match[0], above[number - 1]
    before = _BEFORE.search(value)
    if before and " ".join(before[0].split()).casefold() not in asked:
        return before[0], above[-1]
    return None


def _help(text: str, name: str, above: Sequence[str]) -> str:
    if name:
        help = f'pass the output itself, beside the text: ["...", {name}]'
        return (
            help
            if text[0] in "{$<[%`" or text == name
            else f'{help}; a step of the document: "step 2 of the ..."'
        )
    close = did_you_mean(text.strip("${ }"), above)
    meant = f"did you mean {close}? " if close else ""
    return f'{meant}pass an output beside the text: ["...", output]; plain braces are doubled: {{{{'


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"
