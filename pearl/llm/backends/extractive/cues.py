"""Kinds of answers, and signs that a sentence contains one, whatever the topic of the question."""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Literal

from pearl.documents.passages import terms

Kind = Literal[
    "advice", "age", "change", "comparison", "definition", "duration", "effect", "emotion", "lesson",
    "manner", "number", "person", "place", "reason", "speech", "thing", "time",
]  # fmt: skip
"""What kind of thing is asked for."""

_MONTHS = (
    "january|february|march|april|may|june|july|august|september|october|november|december"
    "|jan|feb|mar|apr|aug|sept|oct|nov|dec"
)
_WEEKDAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_NUMBER_WORDS = (
    "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen"
    "|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred"
    "|thousand|million|billion|dozen|dozens|hundreds|thousands|half|twice|thrice|both|none"
)
_ORDINALS = (
    "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth"
    "|fourteenth|fifteenth|sixteenth|seventeenth|eighteenth|nineteenth|twentieth|thirtieth"
)
_UNITS = (
    "second|minute|hour|day|night|week|fortnight|month|year|decade|century|centuries|generation"
    "|morning|afternoon|evening|season|summer|winter|lifetime|quarter"
)
_PLACES = (
    "abbey|airport|alley|attic|avenue|bank|barn|barracks|basement|bay|beach|bedroom|bridge|building"
    "|cabin|cafe|camp|capital|castle|cathedral|cave|cellar|cemetery|chapel|church|city|clinic|coast"
    "|college|corner|corridor|cottage|country|court|courtyard|cupboard|desert|desk|district|dock"
    "|door|drawer|east|factory|farm|field|floor|forest|garage|garden|gate|gulf|hall|harbou?r|hill"
    "|hospital|hotel|house|hut|inn|island|kitchen|laboratory|lake|library|market|meadow|mill|mine"
    "|monastery|mountain|museum|north|ocean|office|orchard|palace|park|peninsula|pier|planet|port"
    "|prison|province|quay|region|restaurant|river|road|roof|room|sea|school|shed|shelf|shop|shore"
    "|south|square|station|store|street|studio|table|tavern|temple|theat(?:re|er)|tower|town|tree"
    "|university|valley|vault|village|wall|ward|warehouse|west|wood|workshop|yard"
)
_PERSONS = (
    "man|men|woman|women|boy|girl|child|children|mother|father|brother|sister|son|daughter|wife"
    "|husband|uncle|aunt|cousin|nephew|niece|grandmother|grandfather|grandson|granddaughter|widow"
    "|widower|friend|neighbou?r|king|queen|prince|princess|president|mayor|captain|lieutenant"
    "|sergeant|colonel|general|admiral|chief|guard|guide|judge|clerk|priest|monk|nun|nurse|doctor"
    "|surgeon|physician|patient|student|pupil|master|cook|maid|smith|thief|pilot|crew|family"
    "|committee|council|company|society|board|government|army|team|couple|twins|parents|people"
    "|somebody|someone|nobody|everyone|bishop|monks|nuns|students|volunteers|apprentice|merchant"
)

_NUMBER = re.compile(rf"(?<![\w.])\$?\d[\d,]*(?:\.\d+)?|\b(?:{_NUMBER_WORDS})\b", re.I)
_LOOSE_NUMBER = re.compile(r"\b(?:one|single|several|few|many|most|all|every|no|once|pair)\b", re.I)
_YEAR = re.compile(r"\b(?:1[0-9]|20)\d\d\b")
_DATE = re.compile(
    rf"\b(?:(?:1[0-9]|20)\d\ds?|(?:{_WEEKDAYS})s?|\d{{1,2}}:\d\d|\d{{1,2}} ?[ap]\.?m\b"
    r"|o['’]clock|noon|midnight|christmas|easter|new year"
    rf"|(?:{_MONTHS})\b\.? (?:the )?(?:\d|{_ORDINALS}|twenty|thirty)"
    rf"|(?:\d{{1,2}}(?:st|nd|rd|th)?|{_ORDINALS})(?: day)? (?:of )?(?:{_MONTHS})"
    rf"|(?:in|since|by|until|till|during|last|this|next|early|late|mid|of|from|every|each)[ -]"
    rf"(?:early |late |mid-?)?(?:{_MONTHS}))\b",
    re.I,
)
_RELATIVE_TIME = re.compile(
    rf"\b(?:yesterday|today|tomorrow|tonight|ago|century|eve|dawn|dusk|sunrise|sunset|spring|summer"
    rf"|autumn|winter|morning|evening|afternoon|night|(?:last|next|that|same|following|previous"
    rf"|first|second|third) (?:{_UNITS})|(?:{_UNITS})s? (?:later|earlier|before|after|old)"
    rf"|age of|aged)\b",
    re.I,
)
_CLAUSE_TIME = re.compile(
    r"\b(?:when|after|before|until|till|while|during|since|once|as soon as|at the (?:age|time|end)"
    r"|the day|the moment)\b",
    re.I,
)
_SPAN_OF_TIME = re.compile(
    rf"\b(?:\d[\d,.]*|{_NUMBER_WORDS}|an?|one|several|few|many|some|whole|all|every|each|per|quarters"
    rf" of an)[ -](?:\w+[ -]){{0,2}}?(?:{_UNITS})s?\b",
    re.I,
)
_FREQUENCY = re.compile(
    r"\b(?:daily|weekly|monthly|yearly|hourly|nightly|once|twice|times|always|never|often|rarely"
    r"|seldom|usually)\b",
    re.I,
)
_PLACE_PREPOSITION = (
    r"\b(?:in|at|on|near|under|behind|beneath|inside|into|from|to|by|beside|between|outside|above"
    r"|below|across|over|through|along|opposite|onto|against|within|around|off|towards?|next to)"
)
_PLACE_NAME = re.compile(rf"{_PLACE_PREPOSITION}\s+(?:the\s+)?((?-i:[A-Z])[\w'’-]+)", re.I)
_PLACE_NOUN = re.compile(rf"{_PLACE_PREPOSITION}\s+(?:\w+['’]?s?\s+){{0,4}}?({_PLACES})s?\b", re.I)
_PLACE_PHRASE = re.compile(
    rf"{_PLACE_PREPOSITION}\s+(?:the|an?|his|her|their|its|my|our)\s+((?:\w+[ -])?\w+)", re.I
)
_REASON = re.compile(
    r"\b(?:because|so that|in order (?:to|that)|so as to|since (?!then|(?:the|last|\d))|reasons?|due to"
    r"|owing to|thanks to|on account of|as a result|result of|for fear|lest|caused?|out of (?!the\b)"
    r"|led (?:to|him|her|them)|therefore|hence|that (?:is|was) why|for the sake|in case|thus"
    r"|made (?:him|her|them|it)|forced|persuaded|prompted|drove)\b",
    re.I,
)
_WEAK_REASON = re.compile(
    r"\b(?:so|for (?:he|she|they|it|the|his|her)|as (?:he|she|they|it|the)|wanted|hoped|feared"
    r"|afraid|needed|wished|hoping|wanting|fearing|to (?:avoid|make|keep|get|save|protect|see|find"
    r"|be|have|pay|prevent|help|show|prove|escape|please|honou?r|raise|let|give|learn)|needed"
    r"|intended|explained|trying)\b|\bto\s+[a-z]+\s+(?:the|an?|his|her|their|its|it|him|them)\b",
    re.I,
)

_CUES: dict[Kind, str] = {
    "advice": r"\b(?:should\w*|ought|must\w*|need(?:s|ed)? to|advis\w+|advice|recommend\w+|suggest\w+|stop"
    r"|tr(?:y|ies)|avoid|cut (?:down|back|out)|start|make sure|have to|has to|had better|i(?:['’]d)?"
    r" (?:want|like) (?:you|him|her|them) to|i['’]ll ask|please|do not|don['’]t|never|always|instead"
    r"|reduce|limit|increase|continue|take|keep|switch|quit|give up|let['’]s|we['’]ll|plan|goal"
    r"|follow[ -]?up|encourag\w+|remember to|at least|no more than)\b",
    "age": rf"\b(?:\d+|(?:{_NUMBER_WORDS})(?:[ -](?:one|{_NUMBER_WORDS}))*)[ -](?:years?|months?|weeks?)[ -]?(?:old|of age)\b"
    rf"|\baged? (?:of )?(?:\d|{_NUMBER_WORDS})|\b(?:is|was|am|turned|were|be) (?:now |only |just )?(?:\d{{1,3}}|(?:{_NUMBER_WORDS})"
    rf"(?:-\w+)?)(?=[,.;!?]| and| when| at| years?)|\bin (?:his|her|their|my) (?:early |late |mid-?)?"
    r"(?:teens|twenties|thirties|forties|fifties|sixties|seventies|eighties|nineties)|\bborn in\b",
    "change": r"\b(?:chang\w+|becom\w+|became|turn(?:ed|s)? (?:into|out)|grew|grow(?:n|s)|no longer|used to"
    r"|any ?more|now|since then|from then|afterwards?|instead|improv\w+|wors\w+|better|rose|fell"
    r"|increas\w+|decreas\w+|earlier|later|at first|in the end|by the end|once|previously|formerly"
    r"|until then|began to|start(?:ed|s)? to|stopped|more and more|less and less)\b",
    "comparison": r"\b(?:than|whereas|while|unlike|like|both|but|more|less|however|although|though|compared"
    r"|comparison|contrast|differ\w*|similar\w*|same|on the other hand|instead|neither|either"
    r"|equal\w*|alike|rather|\w+er than|yet)\b",
    "definition": r"\b(?:is|are|was|were) (?:an?|the|called|known|defined|one of|when|any)\b|\b(?:means?|meant"
    r"|meaning|refers? to|defin\w+|known as|called|that is|i\.e\.|in other words|namely|stands? for"
    r"|consists? of|which is|term|signif\w+)\b|[:(–—=]",
    "effect": r"\b(?:as a result|result(?:s|ed|ing)?|caus\w+|led to|lead(?:s|ing)? to|so|therefore|thus|hence"
    r"|consequen\w+|affect\w*|effects?|impact\w*|made|makes?|making|mean(?:s|t)|wors\w+|better"
    r"|harm\w*|damag\w+|hurts?|helps?|improv\w+|increas\w+|reduc\w+|rais\w+|lower\w*|pushes|brings?"
    r"|brought|because of|from then|can|could|keeps?|disturb\w*|prevent\w*)\b",
    "emotion": r"\b(?:feel|feels|felt|feelings?|emotions?|afraid|fear\w*|anger|angry|furious|rage|annoy\w*"
    r"|irritat\w*|happy|happiness|unhapp\w+|glad|joy\w*|delight\w*|pleas(?:ed|ure)|sad\w*|sorrow\w*"
    r"|grief|griev\w*|sorry|regret\w*|ashamed|shame|guilt\w*|proud|pride|jealous\w*|env(?:y|ious)"
    r"|love[ds]?|loving|hat(?:e|es|ed|red)|dislike\w*|like[ds]?|fond\w*|ador\w+|admir\w+|resent\w*"
    r"|bitter\w*|hop(?:e|ed|es|eful)|despair\w*|lonel\w+|embarrass\w*|surpris\w+|astonish\w*"
    r"|amaz\w+|shock\w*|disgust\w*|contempt|respect\w*|trust\w*|distrust\w*|worr(?:y|ied|ies)"
    r"|anxi\w+|nervous\w*|relie(?:f|ved)|calm|grateful|gratitude|disappoint\w*|frustrat\w*|upset"
    r"|miser\w+|cr(?:y|ied|ying)|wept|weep\w*|tears|smil\w+|laugh\w*|troubled|tired|suspicio\w+"
    r"|enjoy\w*|excit\w+|thrill\w*|bored|curious|car(?:es?|ed) (?:about|for)|mind(?:ed)?)\b",
    "lesson": r"\b(?:learn(?:ed|t|s)?|reali[sz]ed?|understood|understands?|lesson|moral|truth|always|never"
    r"|remember|everyone|nobody|people|life|love|after all|in the end|mistake|wrong|right|worth"
    r"|matters?|means?|better|should|must|only|knew|true)\b",
    "manner": r"\b(?:by (?:\w+ly )?\w+ing|using|with (?:the|an?|his|her|their)|through|by means of|means"
    r"|thanks to|with the help|via|step|first|then|finally|so that|used)\b",
    "speech": r"[\"“”«»]|\b(?:said|says?|told|tells?|asked|answered|replied|wrote|writes?|promised|explained"
    r"|claim(?:ed|s)?|announced|declared|warned|shouted|whispered|according to|stated?|insisted"
    r"|reported|admitted|added|suggested)\b",
}
"""Patterns of the kinds that single words indicate."""

_CAPITALISED = re.compile(r"(?<![\w'’])([A-Z][\w'’-]*[\w]|[A-Z](?=\.? ))")
_PERSON_NOUN = re.compile(
    rf"\b(?:the|an?|his|her|their|my|our|its|two|three|some)\s+(?:[\w'’-]+\s+){{0,3}}?"
    rf"(?:{_PERSONS}|\w{{3,}}(?:ers?|ors?|ists?|ians?|m[ae]n|women|wives|smiths?|keepers?|eers?))\b",
    re.I,
)
_NOT_NAMES = frozenset(
    f"{_MONTHS}|{_WEEKDAYS}|i|i'm|i'd|i'll|i've|mr|mrs|ms|dr|the|a|an|oh|yes|no|ok".split("|")
)
_FIRST_WORD = re.compile(r"[\W_]*([\w'’-]+)")


def sign(
    kind: Kind, sentence: str, asked: Set[str], common: Set[str], counted: Set[str] = frozenset()
) -> float:
    """How likely a sentence contains an answer of a kind, 0 to 1.

    Example:
        >>> sign("time", "It opened on 4 May 1911.", frozenset(), frozenset())
        1.0
        >>> sign("person", "Ada sold it.", frozenset({"ada"}), frozenset())
        0.0
    """
    match kind:
        case "person":
            return _person(sentence, asked, common)
        case "place":
            return _place(sentence, asked)
        case "number":
            return _number(sentence, asked, counted)
        case "time":
            return _time(sentence, asked)
        case "duration":
            if any(_is_new(m[0], asked) for m in _SPAN_OF_TIME.finditer(sentence)):
                return 1.0
            return 0.6 if _FREQUENCY.search(sentence) else 0.5 * _number(sentence, asked, counted)
        case "reason":
            return (
                1.0 if _REASON.search(sentence) else 0.5 if _WEAK_REASON.search(sentence) else 0.0
            )
        case "thing":
            return 0.0
        case _:
            found = {match.casefold() for match in re.findall(_CUES[kind], sentence, re.I)}
            return min(1.0, 0.7 * len(found))


def _is_new(text: str, asked: Set[str]) -> bool:
    """Whether a phrase has a term that the question does not have."""
    found = terms(text, drop_stop_words=True)
    return not found or any(term not in asked for term in found)


def _person(sentence: str, asked: Set[str], common: Set[str]) -> float:
    first = _FIRST_WORD.match(sentence)
    for match in _CAPITALISED.finditer(sentence):
        name = match[1].casefold().removesuffix("'s").removesuffix("’s")
        opens = first is not None and match.start() == first.start(1)
        if name in _NOT_NAMES or (opens and (name in common or len(name) < 3)):
            continue
        if _is_new(name, asked):
            return 1.0
    if any(_is_new(match[0], asked) for match in _PERSON_NOUN.finditer(sentence)):
        return 0.6
    return 0.0


def _place(sentence: str, asked: Set[str]) -> float:
    for match in _PLACE_NAME.finditer(sentence):
        name = match[1].casefold()
        if name not in _NOT_NAMES and _is_new(name, asked):
            return 1.0
    if any(_is_new(match[1], asked) for match in _PLACE_NOUN.finditer(sentence)):
        return 0.9
    for match in _PLACE_PHRASE.finditer(sentence):
        if _is_new(match[1], asked) and not _RELATIVE_TIME.search(match[1]):
            return 0.4
    return 0.0


def _number(sentence: str, asked: Set[str], counted: Set[str]) -> float:
    best = 0.0
    for match in _NUMBER.finditer(sentence):
        if not _is_new(match[0], asked):
            continue
        following = terms(sentence[match.end() : match.end() + 60])[:5]
        if not counted.isdisjoint(following):
            return 1.0
        best = max(best, 0.3 if _YEAR.fullmatch(match[0]) else 0.7)
    return best or (0.2 if _LOOSE_NUMBER.search(sentence) else 0.0)


def _time(sentence: str, asked: Set[str]) -> float:
    signs: tuple[tuple[re.Pattern[str], float], ...] = (
        (_DATE, 1.0), (_RELATIVE_TIME, 0.7), (_SPAN_OF_TIME, 0.5), (_CLAUSE_TIME, 0.4)
    )  # fmt: skip
    for pattern, strength in signs:
        if any(_is_new(match[0], asked) for match in pattern.finditer(sentence)):
            return strength
    return 0.0
