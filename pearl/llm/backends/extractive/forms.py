"""The forms that a question may have, and how each is recognised.

A form is a pattern over the whole of one question; the first that fits is taken. Named groups are
what the question is about: the group `clause` still has its auxiliary verb in front, of the others
the first is the topic and the rest is the second thing, for forms about two.
"""

from __future__ import annotations

import re
from typing import Literal

__all__ = [
    "AUXILIARY",
    "BEFORE_WH",
    "DOCUMENT",
    "IS",
    "MAX_LENGTH",
    "NAME",
    "WH",
    "Form",
    "recognise",
]

MAX_LENGTH = 600
"""Characters of a question; what is longer has no form."""

Form = Literal[
    "advice", "change", "claim", "comparison", "definition", "duration", "effect", "emotion", "ending",
    "event", "exception", "hypothesis", "lesson", "list", "manner", "number", "person", "place",
    "reason", "relation", "summary", "thing", "time",
]  # fmt: skip
"""The form of a question."""

AUXILIARY = (
    r"(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should|shall|may|might"
    r"|must|ca|wo)(?:n['’]t|not)?"
)
WH = r"(?:who|whom|whose|what|which|when|where|why|how)"
BEFORE_WH = (
    r"(?:(?:in|at|on|by|for|since|until|till|to|from|with|of|about|under|after|before|during"
    r"|through|into|around|and|but|so|then|now)\s+){0,2}"
)
NAME = r"(?:(?-i:[A-Z])[\w.'’-]*(?:\s+(?:(?:of|de|van|von)\s+)?(?-i:[A-Z])[\w.'’-]*)*)"
DOCUMENT = (
    r"(?:the |this |that |a )?(?:whole |entire |following )?(?:story|text|article|document|report|essay"
    r"|book|passage|paper|transcript|conversation|consultation|note|letter|piece|tale|novel|visit"
    r"|dialogue|events of the story)s?"
)
_TIMES = (
    r"(?:time|day|date|year|month|week|hour|century|decade|season|weekday|period|age|era|night|morning"
    r"|evening)"
)
_PLACES = (
    r"(?:place|city|town|village|country|street|building|room|house|location|island|river|state|county"
    r"|region|part of the (?:world|country|body)|church|school|hospital|planet|port|station|shop|road"
    r"|valley|address|continent|province)"
)
_PERSONS = (
    r"(?:person|people|man|woman|boy|girl|character|doctor|nurse|author|artist|king|queen|president"
    r"|officer|family|company|organi[sz]ation|group|engineer|architect|scientist|teacher|relative"
    r"|player|member|name of the (?:person|man|woman|boy|girl))"
)
_AMOUNTS = (
    r"(?:number|percentage|proportion|amount|price|cost|sum|share|dose|dosage|weight|height|distance"
    r"|temperature|size|length|fee|fare|salary|total|speed|depth|width|population|rate|score|value|wage"
    r"|rent|budget|capacity|quantity)"
)
IS = r"(?:is|are|was|were|['’]s|['’]re)"
_DO = r"(?:do|does|did)"
_BE_OR_DO = r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|might|may)"

_FORMS: tuple[tuple[Form, str], ...] = (
    ("exception", r"(?:which|what|who)\b.*\b(?-i:NOT|EXCEPT)\b.*|.*\bexcept\W*|which(?: of .*| one)?"
                     r" (?:is|are|was|were|does|did|do) not\b.*|(?:all|each) of .* except\b.*"),
    ("hypothesis", r"(?:what|how)\b.*\b(?:would|could|might)\b.*\bif\b.*|if\b.*\b(?:would|could"
                      r"|might)\b.*|suppose\b.*"),
    ("summary", r".*\b(?:summari[sz]e[sd]?|sums? up|summated|summary|gist|overview|main (?:idea|point)s?)"
                   rf"\b(?:\s+of)?\s*(?P<topic>.*)|what {IS} (?P<about>{DOCUMENT})(?: all| mainly)? about"),
    ("lesson", rf"what(?: \w+)? {IS} (?:the |some of the |one of the )?(?:\w+ )?(?:lessons?|morals?|themes?|message|takeaway)\b"
                  rf"(?:\s+(?:of|in|from|behind)\s+(?P<topic>.+))?.*|(?:what|which) (?:lessons?|morals?|themes?)\b.*"
                  rf"|(?:the )?(?:moral|lesson|theme) of (?P<of>.+)"
                  rf"|what {_DO} (?P<who>.+) learn"),
    ("comparison", rf"(?:how (?:would|could|do|can) (?:you|we|one) )?(?:compare|contrast)(?: and contrast)?"
                      rf" (?P<topic>.+?) (?:and|with|to|against) (?P<other>.+)"
                      rf"|.*\b(?:differences?|similarit(?:y|ies)|comparison) between (?P<x>.+?) and (?P<y>.+)"
                      rf"|(?:how|in what ways?) {_BE_OR_DO} (?P<x2>.+?) (?:differ|differs|different|compare|similar"
                      rf"|compared)(?: (?:from|to|with|than) (?P<y2>.+))?"
                      rf"|what do (?P<x3>.+?) and (?P<y3>.+?) have in common"),
    ("relation", rf".*\b(?:relationship|relation|link|connection|bond|friendship)s?(?: like)? between"
                    rf" (?P<topic>.+?) and (?P<other>.+)"
                    rf"|how {IS} (?P<x>.+?) (?:related|connected|linked) (?:to|with) (?P<y>.+)"
                    rf"|how {IS} (?P<x2>.+?) and (?P<y2>.+?) (?:related|connected|linked)"),
    ("change", r"how (?:do|does|did|has|have|had)(?:n['’]t)? (?P<topic>.+?) (?:changed?|evolved?|develop(?:ed)?"
                  r"|transform(?:ed)?|grow|grown)\b(?P<rest>.*)|(?:what|which|how)\b.*\bchanges?\b(?: (?:in|to|of|for)"
                  r" (?P<of>.+))?.*"),
    ("emotion", rf"(?:how|what) {_BE_OR_DO} (?P<topic>.+?) (?:(?:feel|felt|feeling|react|respond)\b(?: (?:about|towards?"
                   rf"|to|of|on|regarding|with|that|when|at))?|(?:think|thought) (?:about|of)\b) ?(?P<other>.*)"
                   rf"|what {IS} (?P<x>.+?)['’]s? (?:feelings?|attitude|opinion|view|reaction|emotions?|thoughts?)"
                   rf"(?: (?:about|towards?|to|of|on|regarding|at))? ?(?P<y>.*)"
                   rf"|what (?:feelings?|emotions?) {_BE_OR_DO} (?P<x2>.+?) (?:have|feel|show|express)(?: (?:for|about"
                   rf"|towards?))? ?(?P<y2>.*)"),
    ("effect", rf"how {_BE_OR_DO} (?P<topic>.+?) (?:affect(?:s|ed|ing)?|influenc(?:e|ed|ing)|impact(?:s|ed|ing)?"
                  rf"|harm(?:s|ed|ing)?|hurt(?:ing)?|alter(?:s|ed|ing)?) (?P<other>.+)"
                  rf"|what (?:{IS} )?(?:the )?(?:\S+ )?(?:effects?|impacts?|influence|consequences?) (?:of|did|does|do"
                  rf"|has|will|can) (?P<x>.+?)(?: (?:on|for|have on|had on) (?P<y>.+))?"
                  rf"|what (?:can|does|did|will|would|may|might) (?P<x2>.+?) (?:lead to|result in|cause|bring about)"),
    ("advice", rf"(?:what|which|how(?! (?:long|many|much|often|old|soon|far|late)\b))\b(?P<topic>.*?\b(?:should|must"
                  rf"|ought to)\b(?! know).+)|what {_DO} (?P<who>.+?) (?:recommend|advise|suggest|want \w+ to)\b(?P<rest>.*)"
                  rf"|what {IS} (?P<told>.+?) (?:advised|told|supposed|recommended|urged|meant) to do\b.*"
                  rf"|(?:what|which) .*\b(?:advice|recommendations?)\b(?: (?:for|to|on|about) (?P<for>.+))?.*"),
    ("definition", rf"what {_DO} (?P<topic>.+?) (?:mean|stand for|signify|refer to)\b.*|what(?: exactly)? {IS} "
                      rf"(?:the )?(?:\w+ )?(?:meaning|definition|sense) of (?P<of>.+)|what {IS} meant by (?P<by>.+)"
                      rf"|defin(?:e|ition of) (?P<define>.+)|meaning of (?P<m>.+)"
                      rf"|(?:why|what) does (?P<doc>{DOCUMENT}) mean when (?P<when>.+)"),
    ("ending", rf"(?:how|in what way) {_DO} (?P<topic>.+?) (?:end|conclude|turn out|finish)(?: up)?"
                  rf"|what (?:happens|happened) (?:to (?P<to>.+?) )?(?:at|in) the (?:very )?end(?: of .*)?"),
    ("event", r"what (?:happens|happened|occurs|occurred|took place|takes place|goes? on|went on|went wrong"
                 r"|came of|became of|is happening|was happening|has happened)\b(?: to)?(?P<topic>.*)"),
    ("reason", r"(?:for what reason|what for|how come|why)\b(?P<clause>.*)"
                  rf"|what (?:else )?(?:{IS} )?(?:(?:the|a|one) )?(?:[\w'’-]+ ){{0,4}}(?:reasons?|causes?|motives?|motivation|explanation)"
                  rf"(?: (?:for|of|that|why|behind))?\b(?P<topic>.*)"
                  r"|(?:what|who) (?:makes?|made|causes?|caused|leads?|led|prompts?|prompted|drove|drives|convinces?|convinced"
                  r"|persuaded|motivate[sd]|pushed|allow(?:s|ed)|enable[sd]?)\b(?P<made>.*)"),
    ("duration", r"(?:for |since |after |about )?how (?:long|often|frequently|old|soon|late|early)\b(?P<clause>.*)"
                    r"|how many (?:more )?(?:years|months|weeks|days|hours|minutes|seconds|decades)\b(?P<unit>.*)"),
    ("number", r"(?:(?:in|by|to|for|at|of|with|into|about) )?how (?:many|much|few|far|tall|high|deep|wide|big|large|heavy|fast"
                  r"|low|strong|hot|cold|thick|expensive|small)\b(?P<clause>.*)"
                  rf"|(?:(?:in|by|to|for|at) )?(?:what|which)(?: {IS})?(?: the)?(?: (?!name)\w+)? {_AMOUNTS}\b(?P<topic>.*)"),
    ("time", rf"(?:since |until |till |by |from )?when\b(?P<clause>.*)|{BEFORE_WH}(?:what|which) (?:\w+ )?{_TIMES}\b"
                rf"(?P<topic>.*)|(?:what|which) (?:is|was) the (?:\w+ )?(?:date|year|time|day) (?:of|on which|when|that|in which)"
                rf"\b(?P<of>.*)"),
    ("place", rf"(?:from |to )?where\b(?P<clause>.*)|{BEFORE_WH}(?:what|which) (?:\w+ )?{_PLACES}\b(?P<topic>.*)"
                 rf"|what is the (?:location|place|address) (?:of|where)\b(?P<of>.*)"),
    ("person", rf"{BEFORE_WH}(?:who|whom|whose)(?:['’]s)?\b(?P<clause>.*)|(?:what|which) (?:\w+ )?{_PERSONS}\b(?P<topic>.*)"
                  rf"|{BEFORE_WH}(?:what|which) {_PERSONS}\b(?P<t2>.*)"),
    ("list", r"(?:list|enumerate|name|extract|identify|find)(?: me)? (?:all|every|each|the)?\s*(?P<topic>.+)"
                rf"|(?:what|which) {IS} (?:all|every) (?P<all>.+)"),
    ("definition", rf"what(?: exactly)? {IS} (?P<topic>(?:an? )?(?!the |his |her |its |their |my |your |our |this |that |these "
                      rf"|there\b|.* (?:about|with|for|in|on|to|from|wrong)\b)[\w'’-]+(?: [\w'’-]+){{0,3}})"),
    ("manner", r"(?:in what way|by what means|how)\b(?P<clause>.*)"),
    ("claim", rf"{AUXILIARY}\b(?!,).+"),
    ("thing", rf"{BEFORE_WH}(?:what|which)(?:['’]s)?\b(?P<clause>.*)"),
)  # fmt: skip
_PATTERNS = tuple((form, re.compile(rf"(?:{pattern})\Z", re.I | re.S)) for form, pattern in _FORMS)
_AT_END: tuple[tuple[Form, re.Pattern[str]], ...] = (
    ("person", re.compile(r"(?P<clause>.+?),?\s+(?:by|to|with|from|for)?\s*(?:who|whom)\Z", re.I | re.S)),
    ("reason", re.compile(r"(?P<clause>.+?),?\s+(?:for what reason|because|why)\Z", re.I | re.S)),
    ("time", re.compile(r"(?P<clause>.+?),?\s+(?:when|in (?:what|which) year|on (?:what|which) day)\Z", re.I | re.S)),
    ("place", re.compile(r"(?P<clause>.+?),?\s+where\Z", re.I | re.S)),
)  # fmt: skip


def recognise(question: str) -> tuple[Form, list[str]]:
    """The form of one question and the things it is about, the topic first.

    Args:
        question: On one line, without lead-in and question mark.

    Example:
        >>> recognise("How did Ada feel about the mill")
        ('emotion', ['Ada', 'the mill'])
    """
    if len(question) > MAX_LENGTH:
        return "thing", []
    for form, pattern in (*_PATTERNS, *_AT_END):
        if match := pattern.match(question):
            found = match.groupdict(default="")
            if found.get("clause"):
                return form, [_clause(found["clause"])]
            return form, [topic for value in found.values() if (topic := value.strip(" ,:"))]
    return "thing", []


_SUBJECT = re.compile(
    rf"\s*(?P<auxiliary>{AUXILIARY})\s+(?P<subject>(?>{NAME}|(?:there|i|you|he|she|it|we|they|this|that|these|those)\b)"
    r"(?<!['’]s))(?=\s|\Z)(?P<rest>.*)\Z",
    re.I | re.S,
)
_DROPPED = re.compile(rf"\s*(?!\S+n['’]t\b)(?:{AUXILIARY}|['’]s)\s+(?P<rest>.*)\Z", re.I | re.S)


def _clause(text: str) -> str:
    """What follows a question word, in the order of a statement, as far as its form tells.

    Example:
        >>> _clause(" did the crew leave"), _clause(" was Ada late"), _clause(" didn't Ada go")
        ('the crew leave', 'Ada was late', 'Ada not go')
    """
    if match := _SUBJECT.match(text):
        auxiliary, subject, rest = match["auxiliary"], match["subject"], match["rest"].strip()
        if re.search(r"n['’]t\Z", auxiliary):
            return f"{subject} not {rest}"
        if auxiliary.casefold() in ("do", "does", "did"):
            return f"{subject} {rest}"
        return f"{subject} {auxiliary} {rest}"
    if match := _DROPPED.match(text):
        return match["rest"].strip()
    return text.strip(" ,:")
