"""Replies without an answer: refusals, server errors, leftovers of a chat, tool calls."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice, zip_longest
from operator import or_
from typing import Literal, NamedTuple

from pearl.documents.evidence import quoted_line
from pearl.documents.rows import shortened
from pearl.errors.patterns import lazy_pattern


class Split(NamedTuple):
    """A reply and the reasoning in it."""

    text: str
    reasoning: str = ""
    is_unclosed: bool = False


_NAMES = (
    r"(?:[\w-]{1,20}:)?(?:think|thinking|thoughts?|thought_process|reasoning|reflection|scratchpad)"
)
_TAG = lazy_pattern(
    rf"(?P<open><\s?{_NAMES}(?:\s[^<>\n]{{0,80}})?>|\[THINK\]|◁think▷|<\|START_THINKING\|>"
    r"|<\|begin_of_thought\|>|<\|channel>\s?thought\b|<unused94>(?:thought\b)?)"
    rf"|(?P<close><\s?/\s?{_NAMES}\s?>|\[/THINK\]|◁/think▷|<\|END_THINKING\|>"
    r"|<\|end_of_thought\|>|<channel\|>|<unused95>)",
    re.I,
)
"""Marks of DeepSeek, Qwen, Magistral, Kimi, Cohere, Gemma, Seed, OpenThinker and their kin."""
_BEFORE_BLOCK = lazy_pattern(r"\s*+(?:(?:\d{1,4}\s?[.:)]|[-*•]|(?:final )?answer\s?:)\s*)?", re.I)
"""Texts that may precede a block on its line."""
_CHANNEL = lazy_pattern(
    r"(?:<\|start\|>(?:assistant)?)?<\|channel\|>\s*(?P<name>\w{1,20})[^<]{0,80}"
    r"(?:<\|constrain\|>[^<]{0,40})?<\|message\|>"
    r"|\Aanalysis(?=.*assistantfinal)|assistant(?P<last>final)",
    re.S,
)
"""Channels of gpt-oss, also with their special tokens removed."""
_CHANNEL_END = lazy_pattern(r"<\|(?:end|return|call)\|>")
_MAY_HAVE_MARKS = lazy_pattern(r"[<◁\[]|assistantfinal|\A\s*(?:assistant|Thinking\.\.\.)\s")
_LINE_END = lazy_pattern(r"[ \t\r]*+(?:\n|\Z)")
_QUOTES = frozenset("`\"'“”‘’«»()[]{}")
_SENTENCE_ENDS = ".!?…。！？"
_CONTEXT = 24
"""Characters around a mark that are compared with the source to detect copies."""
_BULLETS = ("-", "*", "•")
_MAX_LINE = 200
_MAX_MARKS = 500

_TOKEN = (
    r"(?:</?s>|<\|(?!tool)[\w▁-]{1,40}\|>|<｜(?!tool)[\w▁-]{1,40}｜>|<(?:(?:end|start)_of_turn|eos|bos|pad|unk)>"
    r"|\[(?:EOS|BOS|PAD|/INST|end of text)\])"
)
_ROLE = r"(?:<\|start_header_id\|>|<\|im_start\|>|<start_of_turn>)\s?(?:assistant|model)\b(?:<\|end_header_id\|>)?"
_TOKENS = lazy_pattern(rf"(?:\s*+(?:{_ROLE}|{_TOKEN}))++\s*+|\s*assistant[ \t]*\n\s*+", re.I)
_FOLDED = lazy_pattern(
    r"\s*(?:<details[^>]{0,60}>\s*<summary>[^<]{0,30}(?:think|reason|thought)[^<]{0,60}</summary>(?P<details>.*?)</details>"
    r"|Thinking\.\.\.[ \t]*\n(?P<told>.*?)\n\.\.\.done thinking\.)",
    re.S | re.I,
)
"""Reasoning as web pages and Ollama's terminal display it."""
_LAST_TOKEN = lazy_pattern(rf"\s*{_TOKEN}\s*\Z", re.I)
_NEXT_TURN = lazy_pattern(
    r"(?:</s>|<\|(?:im_end|eot_id|end|endoftext|end_of_text|return)\|>|<end_of_turn>)\s{0,20}"
    r"(?:<\|(?:im_start|start_header_id|user|assistant)\|>|<start_of_turn>|\[INST\]).*",
    re.S | re.I,
)
"""A turn that the model makes up after the end of its own."""
_ANSWER = lazy_pattern(r"^[ \t]*+<(answer|final_answer|final|response|output|result)>", re.M | re.I)


def without_reasoning(text: str, source: str = "") -> Split:
    r"""Separate the reasoning of a reply from the reply.

    A mark in the middle of a sentence or on a quoted line ("> ") is text, as is one that is copied
    from the source.

    Example:
        >>> without_reasoning("<think>Hm, 3?</think>\n\n2</s>")
        Split(text='2', reasoning='Hm, 3?', is_unclosed=False)
        >>> without_reasoning("The tags <think> and </think> enclose it.").reasoning
        ''
    """
    if not _MAY_HAVE_MARKS.search(text):
        return Split(text)
    if folded := _FOLDED.match(text):
        thoughts = (folded["details"] or folded["told"] or "").strip()
        return Split(text[folded.end() :].strip(), thoughts)
    split = _of_channels(text, source) or _of_blocks(_NEXT_TURN.sub("", text), source)
    return _unwrapped(split._replace(text=_without_tokens(split.text)))


def _unwrapped(split: Split) -> Split:
    """A reply without the tag around its answer; the text before the tag is reasoning."""
    text = split.text.rstrip()
    start = _ANSWER.search(text)
    end = f"</{start[1]}>" if start else ""
    if start is None or not text.endswith(end):
        return split
    before = text[: start.start()].strip()
    if before and "answer" not in end.casefold():
        return split
    answer = text[start.end() : -len(end)].strip()
    return split._replace(text=answer, reasoning=_joined((split.reasoning, before)))


def _without_tokens(text: str) -> str:
    """A text without special tokens at its ends."""
    if "<s>" in text and "</s>" in text[:-4]:  # struck-out text
        return text
    start = _TOKENS.match(text)
    at, end = start.end() if start else 0, len(text.rstrip())
    while (last := _LAST_TOKEN.search(text, max(at, end - _MAX_LINE), end)) is not None:
        if text[max(0, last.start() - 1) : last.start()] in _BULLETS:
            break  # an entry of a list: the reader of lists decides
        end = last.start()
    return text[at:end] if (at, end) != (0, len(text.rstrip())) else text


def _of_channels(text: str, source: str) -> Split | None:
    """A reply whose channels have names; None for another one."""
    marks = [mark for mark in _CHANNEL.finditer(text) if not _is_copied(text, mark, source)]
    if not marks:
        return None
    parts, final = [text[: marks[0].start()]], None
    for mark, after in zip_longest(marks, marks[1:]):
        part = text[mark.end() : after.start() if after else len(text)]
        part = _CHANNEL_END.split(part, maxsplit=1)[0].strip()
        if "final" in (mark["name"], mark["last"]):
            final = part
        else:
            parts.append(part)
    return Split(final or "", _joined(parts), is_unclosed=final is None)


def _of_blocks(text: str, source: str) -> Split:
    """A reply with blocks between marks."""
    kept: list[str] = []
    reasoning: list[str] = []
    at, end, is_open, mentioned = 0, len(text.rstrip()), False, -1
    for mark in islice(_TAG.finditer(text), _MAX_MARKS):
        before = _line_before(text, mark)
        if is_open:
            if mark["close"] and not _is_mentioned(text, mark):
                reasoning.append(text[at : mark.start()])
                at, is_open = mark.end(), False
        elif _is_copied(text, mark, source):
            continue
        elif mark["open"]:
            is_end = before[-1:] in _SENTENCE_ENDS and bool(before)
            if is_end or _BEFORE_BLOCK.fullmatch(before) or _LINE_END.match(text, mark.end()):
                kept.append(text[at : mark.start()])
                at, is_open = mark.end(), True
            else:
                mentioned = mark.end()
        elif mentioned >= 0 and "\n" not in text[mentioned : mark.start()]:
            mentioned = -1
        elif _closes_alone(text, mark, before, end):
            kept.append(text[at : mark.start()])
            at = mark.end()
            if at < end or not reasoning:
                reasoning += kept
                kept = []
    if is_open:
        return Split("", _joined([*reasoning, text[at:]]), is_unclosed=True)
    return Split("".join((*kept, text[at:])).strip(), _joined(reasoning)) if at else Split(text)


def _joined(parts: Iterable[str]) -> str:
    return "\n".join(part for part in map(str.strip, parts) if part)


def _line_before(text: str, mark: re.Match[str]) -> str:
    """The line before a mark, or its end."""
    start = max(0, mark.start() - _MAX_LINE)
    return text[text.rfind("\n", start, mark.start()) + 1 or start : mark.start()]


def _is_copied(text: str, mark: re.Match[str], source: str) -> bool:
    """Whether a mark is on a quoted line, or in the source with the same text beside it."""
    beside = text[max(0, mark.start() - _CONTEXT) : mark.end() + _CONTEXT].strip()
    is_quoted = _line_before(text, mark).lstrip().startswith(">")
    return is_quoted or (beside != mark[0] and beside in source)


def _is_mentioned(text: str, mark: re.Match[str]) -> bool:
    """Whether a mark is between quotation marks."""
    return text[mark.start() - 1 : mark.start()] in _QUOTES and text[mark.end() : mark.end() + 1] in _QUOTES  # fmt: skip


def _closes_alone(text: str, mark: re.Match[str], before: str, end: int) -> bool:
    """Whether a closing mark without an opening one ends reasoning, and is not merely mentioned."""
    if not before.strip():
        return True
    last = before[-1]
    if not last.isspace():
        return last not in _QUOTES
    ends_sentence = before.rstrip()[-1] in _SENTENCE_ENDS
    return ends_sentence or (mark.end() < end and bool(_LINE_END.match(text, mark.end())))


MAX_REFUSAL = 1_500
"""Maximum characters of a refusal; a longer text says more."""
MAX_JSON = 20_000
MAX_HEADING = 80


class Unusable(NamedTuple):
    """Why a reply cannot be used."""

    kind: Literal["refused", "empty", "transport"]
    why: str


def unusable(text: str, source: str = "") -> Unusable | None:
    """Why a whole reply cannot be used; None if it can.

    A reply that quotes passages, or that the source contains word for word, is usable.

    Example:
        >>> unusable("I'm sorry, but I can't help with that.").kind
        'refused'
        >>> unusable("He is sorry and cannot help.") is None
        True
    """
    lines = text.splitlines()
    if any(quoted_line(line) is not None for line in lines):
        return None
    if len(lines) > 1 and all(line.startswith("- ") for line in lines):  # a list, of errors, say
        return None
    said = _normal(text)
    reason = _error(text, said)
    if reason is None and _is_empty(text, said):
        return Unusable("empty", f"sent no words: {shortened(text, 80)}")
    reason = reason or _no_answer(text, said)
    return None if reason is None or (said and said in _normal(source)) else reason


_TYPOGRAPHIC = str.maketrans(
    {"’": "'", "‘": "'", "ʼ": "'", "`": "", "*": "", "_": " ", "\u200b": ""}
)


def _normal(text: str) -> str:
    """A text in lower case, without emphasis, with single blanks."""
    return " ".join(text.translate(_TYPOGRAPHIC).casefold().split()).lstrip("-•#· ")


_NO_VALUE = frozenset({"null", "undefined", "nan", "nil", "[object object]"})
_INK = lazy_pattern(
    r"\w|[^\x00-\x7f\u00a0-\u00bf\u2000-\u206f\u3000-\u303f\uff00-\uff0f]|[$%+=<>^|~&@#]"
)
_TAGS = lazy_pattern(r"(?:\s*</?[a-z][\w :|-]{0,30}/?>)+\s*", re.I)
_PLACEHOLDER = lazy_pattern(
    r"[\[({<]{1,2}\W?(?:(?:your|the|insert|no|an?|enter) )*(?:answers?|response|reply|result|output|content|text|summary|reason|"
    r"value|placeholder)(?: (?:here|removed|blocked|omitted|goes here))?\W?[\])}>]{1,2}|\W*no (?:response|output|reply)\W*"
    r"|(?:assistant|user|system|human)\s?:?|todo|(?:### )?(?:response|answer)\s?:?",
)


def _is_empty(text: str, said: str) -> bool:
    """Whether a text has no content: dots, replacement characters, the word `null`."""
    n_lost = text.count("\ufffd")
    if n_lost > 2 and 4 * n_lost > len(text):
        return True
    if text.strip(" \n\t.'\"`").casefold() in _NO_VALUE or _PLACEHOLDER.fullmatch(said):
        return True
    if text.strip() == "-":
        return False
    values = [value for data in _objects(text) for value in data.values()]
    return (
        not _INK.search(text) or bool(_TAGS.fullmatch(text)) or (bool(values) and not any(values))
    )


# ---------------------------------------------------------------------------------------------
# Errors of servers and gateways

_ERROR = (
    r"(?:\w{1,20}\W{1,3})?(?:api |http |server |model |internal |network |connection )?"
    r"(?:error|exception|status|fehler|https?)(?: code)?\b[\W_]*(?:\d\.\d )?"
)
_STATUS = (
    r"bad gateway|(?:the )?service (?:is )?(?:temporarily |currently )?unavailable|too many requests|gateway time-?out|"
    r"(?:api|connection|internal(?: server)?|network|server|request) error|(?:request )?timed out|request time-?out|"
    r"payload too large|rate[ _-]limit(?:s|ed|ing)?(?: error)?(?: (?:was |is |has been )?(?:exceeded|reached|hit))?|"
    r"upstream connect error(?: or disconnect/reset before headers)?|upstream (?:request )?(?:timeout|error)|no healthy upstream|"
    r"(?:connection|request|upstream|read|operation|response|server)(?: to [\w. ]{1,30})? (?:has |was |is )?(?:timed? ?out|refused|reset(?: by peer)?|aborted|closed)|"
    r"(?:(?:insufficient|exceeded your current) quota|quota exceeded)|context length exceeded|(?:cuda )?out of memory|"
    r"(?:the )?(?:model|server|engine|service|system) (?:is |has been |was )?(?:currently |temporarily )?(?:not available|unavailable|not loaded|overloaded|down|busy)|"
    r"(?:fetch failed|failed to fetch|socket hang up)\b|econn(?:refused|reset|aborted)|err [a-z]+ [a-z ]+|resource exhausted|"
    r"(?:insufficient (?:balance|credits)|payment required|unauthorized|model not found)\Z|(?:invalid|incorrect|your) api key\b|you exceeded your current quota|this model's maximum context length|"
    r"the model \S+ does not exist|please reduce the length of the messages|model is (?:currently )?loading|rate limit reached for \S+ in|"
    r"the server had an error|(?:oops\W+)?something went wrong|an (?:unexpected |internal |unknown )?error (?:has )?occurred"
)
_ERROR_LINE = lazy_pattern(
    rf"[\W_]*(?:(?:{_ERROR})?(?:[45]\d\d\b[\W_]*)?(?:{_STATUS})"
    rf"|(?:{_ERROR})?[45]\d\d\b[\W_]*(?:error|not found|bad request|unauthori[sz]ed|forbidden)|{_ERROR}[1345]\d\d\d?|(?:error|exception|time-?out)\W*\Z)"
    r"(?:\s*[^\w\s].*| (?:please|try|for url|while|after \d|nginx|is|provided|has expired|or (?:not|you)|organization|on tokens).*)?",
    re.S,
)
_MARKED_ERROR = lazy_pattern(
    rf"[\[(<{{]\s?(?:error|exception|fehler)\b.*"
    rf"|(?:error|exception|fehler)\s?:.*(?:{_STATUS}|upstream|quota|token|api|connection|server|gateway|request|model|content|"
    r"failed to|null|undefined|internal|\b[45]\d\d\b).*|traceback \(most recent call last\).*",
    re.S,
)
_EXCEPTION = lazy_pattern(r"\s*[A-Za-z_.]+(?:Error|Exception)\b\s?(?::|\()")
_PAGE = lazy_pattern(
    r"\s*(?:<\?xml[^>]{0,200}>\s*)?<(?:!doctype html|html|head|title|error>)|\s*(?:data: ?(?:\{|\[DONE)|\[DONE\]\Z|event: ?error)",
    re.I,
)
_ERROR_KEYS = frozenset({"error", "errors", "detail", "fault", "errormessage", "error_message"})
_STATUS_KEYS = frozenset({
    "code", "message", "msg", "status", "statuscode", "status_code", "type", "request_id", "success", "object", "param", "reason",
})  # fmt: skip


def _error(text: str, said: str) -> Unusable | None:
    """An error that a server or a gateway sent in place of a reply."""
    is_short = len(said) <= MAX_REFUSAL
    is_error = any((
        _PAGE.match(text),
        is_short and _ERROR_LINE.fullmatch(said),
        is_short and _MARKED_ERROR.fullmatch(said),
        is_short and _EXCEPTION.match(text),
    ))  # fmt: skip
    if not is_error:
        keys = {key.casefold() for data in _objects(text) for key in data}
        is_status = bool({"message", "msg"} & keys) and len(keys) > 1 and keys <= _STATUS_KEYS
        is_error = is_status or (bool(keys & _ERROR_KEYS) and len(keys) <= 8)
        is_error = is_error or (
            keys == {"message"} and bool(re.search(rf"{_STATUS}|forbidden|unauthorized", said))
        )
    if not is_error:
        return None
    if "filter" in said:
        return Unusable("refused", f"sent the message of a content filter: {shortened(text, 80)}")
    return Unusable("transport", f"sent the error of a server: {shortened(text, 80)}")


def _objects(text: str) -> Iterator[dict[str, object]]:
    """The JSON objects that make up a whole text."""
    inner = text.strip().removeprefix("```json").strip("`\n ")
    if len(inner) > MAX_JSON or inner[:1] not in ("{", "["):
        return
    try:
        data = json.loads(inner)
    except (ValueError, RecursionError):
        return
    for item in data if isinstance(data, list) else [data]:
        if isinstance(item, dict):
            yield item


# ---------------------------------------------------------------------------------------------
# Refusals

_FILTERED = lazy_pattern(
    r"\W*(?:(?:error|blocked|filtered)\W+)?(?:(?:this )?content (?:was |has been |is )?(?:filter(?:ed)?|blocked|flagged)\W*"
    r"|(?:the |this |your )?(?:content|response|output|reply|prompt|request|message|text|generation)\b[^.!?]{0,40}"
    r"\b(?:filtered|blocked|flagged|removed|rejected|withheld|stopped)\b[^.!?]{0,80}"
    r"(?:polic|filter|safety|azure|openai|guideline|moderation).*)"
)
_SORRY = (
    r"(?:(?:i'm|i am|we're|we are|so|very|really|truly|deeply) ){0,3}(?:sorry|my apologies|apologies|(?:i|we) (?:do |must |sincerely )?"
    r"apologi[sz]e|unfortunately|regrettably|i'm afraid|i am afraid|i regret|i understand|i appreciate|thank you|thanks)"
)
_I_NOT = (
    r"(?:(?:can ?not|can't|could(?: not|n't)|won't|will not|do not|don't|did not|didn't) (?!think|believe|recall|remember|tell|determin|find|say\b|decid|judge|know|be (?:sure|certain)|conclud|infer|identif)\w"
    r"|(?:'m|am)(?: \w+ly)? (?:not (?!sure|certain)\w|unable|incapable|prohibited|forbidden)"
    r"|(?:(?:'m|am) going to )?(?:respectfully |politely |must |have to |need to |will ){0,3}(?:decline|refuse)\b"
    r"|(?:'d |would )?(?:prefer not to|rather not) \w|have no (?:access|ability|way))"
)
_REQUEST = r"(?:this|your) (?:\w+ )?(?:request|question|prompt|query|content|topic|task|instruction|conversation)s?"
_REFUSAL = lazy_pattern(
    rf"(?:{_SORRY}[^.!?]{{0,160}}?[\s,;:.!—–-]+(?:but |that |and |however,? |at this time,? |so )?|however,? |but )?i ?{_I_NOT}"
    rf"|(?:{_SORRY}[, ]+(?:but )?)?(?:that|this)(?:'s| is) (?:beyond|outside|out of)(?: of)? (?:my|the scope of my|what i) (?:\w+ )?(?:do|scope|capabilit|abilit|knowledge)"
    rf"|{_SORRY}[^.!?]{{0,80}} (?:can't|cannot|won't|unable to|not able to) (?:help|assist|do|answer|comply|provide|process|continue)"
    rf"|(?:(?:i'm |i am )?(?:so |very )?sorry|(?:my )?apologies|i apologi[sz]e)(?:[.!]*\Z| (?:for|about) (?:the|any|this|that|my)\b|[,.!]* (?:but )?(?:i\b|{_REQUEST}))"
    r"|(?:as|i'm|i am) (?:just |only |merely )?an? (?:\w+ ){0,2}(?:ai|(?:large )?language model)\b(?! (?:startup|company|firm))"
    r"|i can only (?:answer|help|assist|discuss)\b|my (?:\w+ ){0,2}(?:guidelines|polic\w+|programming|instructions) (?:do not|don't|prevent|prohibit|forbid)\b"
    r"|(?:apologies|sorry)\b[^.!?]{0,60}\b(?:able to help|no can do)"
    rf"|{_REQUEST}[^.!?]{{0,60}}(?:violat|goes against|against (?:my|our)|cannot be (?:fulfilled|completed|processed)|is not something i|(?:has been|was|is|were) (?:\w+ )?(?:blocked|declined|rejected|flagged)\W|cannot continue)"
    r"|(?:it|that|this|doing so)\b[^.!?]{0,40}against (?:my|our) (?:\w+ ){0,2}(?:guideline|polic|programming|principle)"
    r"|(?:i'm |i am )(?:really |so |very )?sorry (?:that |to hear (?:that )?)?(?:you're|you are) (?:feeling|going)"
    r"|the (?:model|assistant) (?:refused|declined) to (?:answer|respond|reply)"
    # German, French, Spanish, Portuguese, Italian, Dutch, the Nordic languages, Polish, Russian, Turkish
    r"|(?:(?:es )?tut mir (?:sehr )?leid|entschuldig\w*|leider|ich bedau\w*|verzeih\w*|sorry)\b[^.!?]{0,60}\bich\b[^.!?]{0,60}\b(?:nicht|keine?n?)\b"
    r"|(?:\w+ ){0,3}(?:kann|darf|möchte|werde|bin) ich (?:\w+ ){0,5}(?:nicht|keine?)\b|ich (?:kann|darf|möchte|werde|bin) (?:\w+ ){0,4}(?:nicht|keine?)\b"
    r"|als (?:ki|künstliche|sprachmodell|ai)\b"
    r"|(?:(?:je suis |nous sommes )?(?:\w+ment )?(?:désolée?s?|navrée?)|je regrette|je m'excuse|excusez|malheureusement|pardon)?[^.!?]{0,30}\bje (?:ne |n')(?:peux|puis|suis|veux|comprends|ai pas)\b"
    r"|(?:lo siento|lo lamento|disculp\w*|perd[oó]n|lamentablemente|me temo que|lamento)?[, ]*(?:pero )?(?:yo )?no (?:puedo|podré|podemos|me es posible|entiendo|estoy en condiciones)\b"
    r"|(?:desculp\w*|sinto muito|lamento|infelizmente|perdão)?[, ]*(?:mas )?(?:eu )?não (?:posso|consigo|poderei|entendo|sou capaz)\b"
    r"|(?:mi dispiace|spiacente|sono spiacente|purtroppo|mi scuso|scusa)?[, ]*(?:ma )?(?:io )?non (?:posso|sono in grado|mi è possibile|capisco)\b"
    r"|(?:het spijt me|sorry|helaas|mijn excuses)?[^.!?]{0,30}\b(?:kan|mag|wil|begrijp) ik (?:\w+ ){0,4}(?:niet|geen)\b|ik (?:kan|mag) (?:\w+ ){0,4}(?:niet|geen)\b"
    r"|(?:[\w ]{1,30}, )?(?:men )?(?:jeg|jag) kan (?:\w+ )?(?:ikke|inte)\b|(?:tyvärr|beklager|desværre)[^.!?]{0,30}\b(?:ikke|inte)\b|(?:anteeksi|valitettavasti)[^.!?]{0,30}\ben (?:voi|pysty)"
    r"|(?:przepraszam|przykro mi|niestety)?[, ]*(?:ale )?nie (?:mogę|jestem w stanie)\b"
    r"|(?:извин\w*|прост\w*|к сожалению|мне (?:очень )?жаль|сожалею)?[, ]*(?:но )?я? ?не (?:могу|смогу|в состоянии|понимаю)\b"
    r"|(?:üzgünüm|özür dilerim|maalesef)[^.!?]{0,80}(?:olamam|olamıyorum|yapamam|sağlayamam|yanıtlayamam|edemem)"
    # Chinese, Japanese, Korean, Arabic, Hindi
    r"|(?:你好，?)?(?:非常|很|十分|实在)?(?:抱歉|对不起|對不起|很遗憾|不好意思)[^。！？]{0,16}(?:我|无法|無法|不能|不会|不便|没办法|拒绝)(?![^。！？]{0,12}(?:文|原|提到|找到|确定))"
    r"|(?:你好，?)?(?:这个(?:问题|话题))?我(?:暂时|目前|现在|还)?(?:无法|無法|不能|不便|不会|没有学会|拒绝)(?![^。！？]{0,12}(?:文|找到|确定))"
    r"|(?:作为|身为)(?:一个|一名|一款)?(?:ai|人工智能|大?语言模型|智能助手)"
    r"|[^。！？]{0,40}(?:お手伝い|お答え|お応え|ご?対応|ご?支援|ご?提供|回答|サポート|お助け)[^。！？]{0,12}(?:できません|できかね|致しかね|いたしかね|しかねます|なれません)"
    r"|[^.!?]{0,40}(?:도와|도움|제공|답변|답해|응답|처리|수행|지원|응할)[^.!?]{0,20}(?:없습니다|없어요|못합니다|어렵습니다|불가합니다)"
    r"|(?:آسف|عذر|أعتذر|نأسف|أنا آسف)[^.!?؟]{0,60}(?:لا أستطيع|لا يمكنني|لا يمكننا|غير قادر)"
    r"|(?:maaf|xin lỗi|tôi)\b[^.!?]{0,60}(?:tidak (?:bisa|dapat)|không thể)|(?:omlouvám se|bohužel)[^.!?]{0,60}nemohu|sajnálom[^.!?]{0,60}nem tudok"
    r"|îmi pare rău[^.!?]{0,60}nu pot|λυπάμαι[^.!?]{0,60}δεν μπορώ|ขออภัย.{0,60}ไม่สามารถ|(?:bu konuda )?yardımcı olam\w+|[^.!?]{0,40}אני לא יכול"
    r"|(?:क्षमा|माफ़|खेद)[^।.!?]{0,60}नहीं[^।.!?]{0,20}सक",
)
_OF_TEXT = lazy_pattern(
    r"\b(?:in|from|on|that|by|within) (?:the|this|that|your) (?:\w+ )?(?:text|document|passage|story|article|context|excerpt|source|transcript|file)\b"
    r"|\b(?:enough|sufficient) (?:information|context|details|data)\b|\bmention|\bstate[sd]?\b|\bspecif|\bindicat|\b(?:im|in dem) (?:text|dokument)|\b(?:dans|nel|en el|no) (?:le )?(?:texte|testo|texto|documento?)\b|\bin de tekst|в тексте"
)
"""Words of sentences about missing information in the document."""

# ---------------------------------------------------------------------------------------------
# Chatter, calls of tools

_GIVEN = (
    r"(?:text|document|passage|content|context|article|story|transcript|conversation|details?|information|question|file|"
    r"input|data|instructions?|list|paragraph|excerpt|material|items?|more|them|it|what you|which)"
)
_OFFER = lazy_pattern(
    r"(?:(?:but|so|then|and|also|however|if so|once you do),? )?(?:"
    r"(?:please|kindly|could you|can you|would you|will you|feel free to|don't hesitate to|do not hesitate to)(?: please| kindly| also)?"
    rf"(?: (?:provide|share|paste|send|upload|give|supply|attach|clarify|specify|rephrase|tell me|let me|ask|reach out|try)\b[^.!?]{{0,40}}(?:{_GIVEN}|me|again|know|any|someone|help|mean)\b| (?:ask|clarify|rephrase|try again|let me know))"
    r"|(?:how|what|where)(?: else)? (?:can|may|could|should|would you like|do you want|do you need)\b[^.!?]{0,40}\b(?:know|help|assist|do (?:for|with))\b"
    r"|is there (?:anything|something) (?:else|specific|in particular)"
    r"|(?:i'm|i am|we're) (?:ready|here|happy|glad|more than happy|always here)(?: to)?\b"
    r"|(?:i'd|i would|i'll|i will|i shall|i have|i've) (?:now |only )?(?:be (?:happy|glad|able) to|do my best|need (?:the|more|you|a)|help you|assist you|"
    r"be here|carry out|follow|wait|answer|read|analy[sz]e|comply|begin|start)\b"
    r"|let me (?:know|think|read|check|analy[sz]e|look)\b|let's (?:think|read|talk|analy[sz]e|look|start)\b|hope (?:this|that) helps|i hope (?:this|that|it) (?:helps|answers|is)"
    rf"|(?:if|once|when) (?:you(?:'d| would|'ve| have| need| could| can| want| provide| share| paste)?|there(?:'s| is| are))\b"
    r"[^.!?]{0,120}(?:let me know|feel free|i can|i'll|i'd|happy to)\b"
    rf"|(?:it (?:seems|looks|appears)|i (?:see|notice|think|believe))(?: like| that| as though| as if)?(?: that)? (?:you|no|the|your|there)\b"
    r"[^.!?]{0,60}(?:provide|paste|share|attach|includ|empty|missing|cut off|incomplete|upload|forgot|input)"
    rf"|you (?:haven't|have not|didn't|did not) (?:provided?|shared?|given?|pasted?|attach(?:ed)?|upload(?:ed)?) (?:me |us )?(?:with )?(?:the|an?|any|enough) (?:\w+ )?{_GIVEN}\b"
    rf"|(?:there (?:is|was) )?no {_GIVEN} (?:(?:was|were|is|are|has been|have been) )?(?:provided|given|attached|included|supplied|shared)\Z"
    r"|the (?:text|document|passage|content|context) (?:(?:is|was) )?(?:not provided|empty|missing)\Z"
    r"|(?:bitte|gerne|gern)\b[^.!?]{0,20}(?:geben|stellen|senden|fügen|teilen|laden|nennen|mitteilen|übermitteln|gib|stell|schick)\b"
    r"|wie (?:kann|darf) ich (?:ihnen|dir|heute|euch)|womit kann ich"
    r"|(?:veuillez|merci de|pourriez-vous|pouvez-vous)\b[^.!?]{0,30}(?:fournir|partager|envoyer|coller|préciser|donner|reformuler)"
    r"|comment puis-je|en quoi puis-je|n'hésitez pas"
    r"|(?:por favor|podrías|podría|puedes)\b[^.!?]{0,20}(?:proporcion|compart|envi|peg|aclar|indi|facilit|forne|cole)"
    r"|¿?(?:en qué|cómo|como|em que) (?:puedo|te puedo|le puedo|posso) (?:ayudar|ajudar|te|le|lhe)"
    r"|(?:per favore|per cortesia|potresti|potrebbe)\b[^.!?]{0,20}(?:forn|condivid|invi|incoll)|come posso aiutar"
    r"|(?:kunt u|kun je|graag)\b[^.!?]{0,30}(?:geven|delen|sturen)|hoe kan ik (?:u|je)"
    r"|(?:请|請)(?:您|你)?(?:提供|分享|发送|上传|粘贴|输入|告诉|补充|给出)|请问(?:有什么|您|你|需要)|有什么(?:可以|我可以|能)|(?:我|很高兴).{0,6}(?:为您|为你|帮您|帮你)"
    r"|(?:テキスト|文章|文書|本文|内容|情報|資料|詳細).{0,10}(?:提供|共有|入力|送|教え).{0,8}ください|どのように.{0,10}(?:手伝い|お役)|何か(?:お手伝い|ご質問)"
    r"|(?:텍스트|문서|본문|내용|정보).{0,10}(?:제공|입력|공유|알려).{0,6}(?:주세요|주십시오|주시)|무엇을 도와"
    r"|(?:пожалуйста|прошу)\b[^.!?]{0,30}(?:предостав|пришл|отправ|уточн|укаж)|(?:чем|как) (?:я )?могу (?:вам |тебе )?помочь"
    r"|(?:(?:thinking|loading|processing|generating|reading) (?:about )?(?:your|the) (?:request|text|document|question|answer|response)|please wait|one moment)\b[^.!?]{0,30}\Z"
    r"|(?:(?:i can|happy to) (?:certainly |definitely )?help(?: you)? with (?:that|this)|understood|got it|you're welcome|how are you|noted|sure(?: thing)?|certainly)\Z)"
)
_FILLER = lazy_pattern(
    r"(?:of course|absolutely|okay|great|alright|hello|hi|hey|hi there|hello there|thank you(?: (?:for|so)\b.*)?|thanks(?: (?:for|a)\b.*)?|"
    r"no problem|gladly|i(?:'m| am) \w+, (?:an ai|a large|created|developed|trained)\b.*|gerne|natürlich|selbstverständlich|hallo|verstanden|bien sûr|d'accord|bonjour|claro|por supuesto|hola|entendido|certo|"
    r"certamente|ciao|zeker|natuurlijk|конечно|здравствуйте|привет|当然(?:可以)?|好的|没问题|您好|你好|明白了|はい|承知しました|かしこまりました|"
    r"こんにちは|네|알겠습니다|물론입니다|안녕하세요|(?:happy|glad) to help)"
)
"""Fillers beside an offer, which then are not an answer."""
_LEAD = lazy_pattern(r"(?:sure(?: thing)?|certainly|of course|absolutely|okay|ok|great|alright|hello|hi|gerne|natürlich|bien sûr|claro)\s*[,!.:–—-]+\s*(?=\w)")  # fmt: skip
_SENTENCE_END = lazy_pattern(r"(?<=[.!?。！？؟।])\s*|\n+")

_TEMPLATE = lazy_pattern(
    r"\s*(?:\[INST\]|<\|(?:im_start|user|system|start_header_id)\|>|<start_of_turn>|###? ?(?:Instruction|System|User)\b|<<SYS>>)",
    re.I,
)
_TOOL_CALL = lazy_pattern(
    r"\s*(?:```(?:\w+)?\s*)?(?:(?:<(?:\w+:)?(?:tool_calls?|function_calls?|tool_code|tool_use|invoke|function)\b|<function=|<\|python_tag\|>|"
    r"\[TOOL_CALLS\]|<\|tool_call|<｜tool|<\|action_|functions?\.\w{1,60}\()|Action:[^\n]{1,80}\nAction Input:|[A-Za-z_]\w{0,60}\((?:CTX\b|[^()\n]{0,200}[\"'])[^()\n]{0,400}\)[\s`]*\Z)",
    re.I,
)
_CALL_KEYS = (
    frozenset({"name", "arguments"}), frozenset({"name", "parameters"}), frozenset({"function", "arguments"}),
    frozenset({"function", "parameters"}), frozenset({"tool", "arguments"}), frozenset({"tool", "args"}),
    frozenset({"tool", "input"}), frozenset({"tool", "parameters"}), frozenset({"action", "action_input"}),
    frozenset({"tool_calls"}), frozenset({"function_call"}), frozenset({"tool_name"}), frozenset({"type", "function"}),
)  # fmt: skip


def _no_answer(text: str, said: str) -> Unusable | None:
    """Detects refusals, offers and tool calls in place of an answer."""
    calls = (keys <= data.keys() for data in _objects(text) for keys in _CALL_KEYS)
    if _TOOL_CALL.match(text) or any(calls):
        return Unusable("refused", f"calls a tool in place of a reply: {shortened(text, 80)}")
    if _TEMPLATE.match(text):
        return Unusable("refused", f"copies the template of a prompt: {shortened(text, 80)}")
    if not said or len(said) > MAX_REFUSAL or said[0] in "\"'“„«»「『":
        return None
    if _FILTERED.fullmatch(said):
        return Unusable("refused", f"sent the message of a content filter: {shortened(text, 80)}")
    if said.endswith(":") and len(said) <= MAX_HEADING and "\n" not in text.strip():
        return Unusable("empty", f"announces a reply and sends none: {shortened(text, 80)}")
    sentences = [
        part.strip(" .!?。！？…") for part in _SENTENCE_END.split(_LEAD.sub("", said, count=1))
    ]
    sentences = [part for part in sentences if part]
    while len(sentences) > 1 and _FILLER.fullmatch(sentences[0]):
        sentences.pop(0)
    if any(map(_refuses, (sentences[0], ", ".join(sentences[:2])) if sentences else ())):
        return Unusable("refused", f"refuses: {shortened(text, 80)}")
    offers = [_OFFER.match(part) is not None for part in sentences]
    others = [bool(_FILLER.fullmatch(part) or _REFUSAL.match(part)) for part in sentences]
    if any(offers) and all(map(or_, offers, others)):
        return Unusable("refused", f"asks or announces in place of a reply: {shortened(text, 80)}")
    return None


def _refuses(text: str) -> bool:
    """Whether a sentence is a refusal; a statement about missing information is not."""
    match = _REFUSAL.match(text)
    return match is not None and ("have access" in text or not _OF_TEXT.search(text))
