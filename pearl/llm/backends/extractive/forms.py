"""The forms of questions, and their patterns.

The first pattern that matches a whole question is its form. Its named groups are the topics; the
group `clause` still begins with the auxiliary verb. A pattern matches where the form is sure, and has a
topic only where that can stand on its own: any other question is a `thing`, which is asked as it is.
"""

from __future__ import annotations

import re
from typing import Literal

MAX_LENGTH = 600
"""Maximum characters of a question with a form."""

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
_NO_VERB = (
    rf"(?!(?:who|whom|whose|why|when|where|how (?:many|much|often|long))\b)(?:(?!\b(?:{_DO}|has|have|had|can|could"
    r"|will|would|should|might|may)\b).)*?"
)
"""What may stand in front of a noun that is asked for: another verb would make it a part of another question."""
_ITSELF = rf"(?=\W*\Z| (?:{AUXILIARY}|of|in|who|whom|that|which|when|where)\b| [\w'’-]+ed\b)"
"""What follows a noun that is asked for, and not the first word of another one (`school bus`)."""
_WHILE = (
    r"(?: (?:over|during|through|throughout|across|after|since|from|between|by|in|as|when)\b.*)?"
)

_FORMS: tuple[tuple[Form, str], ...] = (
    ("exception", rf"(?:which|what)(?: of (?:the following|these|those)(?: [\w'’-]+)?| one)? {IS} not"
                     r" (?P<topic>(?!the one\b)[^,:(]+)(?:[:(].*)?"
                     rf"|(?:which|what|who)\b.*\b(?-i:NOT|EXCEPT)\b.*|.*\bexcept\W*"
                     rf"|which(?: of .*| one)? (?:{IS}|{_DO}) not\b.*|(?:all|each) of .* except\b.*"),
    ("hypothesis", r"(?:what|how)\b.*\b(?:would|could|might)\b.*\bif\b.*|if\b.*\b(?:would|could"
                      r"|might)\b.*|suppose\b.*"),
    ("summary", rf"how {IS} (?P<summed>.+?) best (?:summari[sz]ed|summed up|summated)|{_NO_VERB}\b(?:summari[sz]e[sd]?|sums? up|summated|summary|gist|overview|main (?:idea|point)s?)"
                   rf"\b(?:\s+of)?\s*(?P<topic>.*)|what {IS} (?P<about>{DOCUMENT})(?: all| mainly)? about"),
    ("lesson", rf"what(?: \w+)? {IS} (?:the |some of the |one of the )?(?:\w+ )?(?:lessons?|morals?|themes?|message|takeaway)"
                  rf"(?:\s+(?:of|in|from|behind)\s+(?P<topic>.+))?"
                  rf"|(?:the )?(?:moral|lesson|theme) of (?P<of>.+)"
                  rf"|what {_DO} (?P<who>.+) learn"),
    ("comparison", rf"(?:how (?:would|could|do|can) (?:you|we|one) )?(?:compare|contrast)(?: and contrast)?"
                      rf" (?P<topic>.+?) (?:and|with|to|against) (?P<other>.+)"
                      rf"|{_NO_VERB}\b(?:differences?|similarit(?:y|ies)|comparison) between (?P<x>.+?) and (?P<y>.+)"
                      rf"|(?:how|in what ways?) {_BE_OR_DO} (?P<x2>.+?) (?:differ|differs|different|compare|similar"
                      rf"|compared)(?: (?:from|to|with|than) (?P<y2>.+))?"
                      rf"|what do (?P<x3>.+?) and (?P<y3>.+?) have in common"),
    ("relation", rf"{_NO_VERB}\b(?:relationship|relation|link|connection|bond|friendship)s?(?: like)? between"
                    rf" (?P<topic>.+?) and (?P<other>.+)"
                    rf"|how {IS} (?P<x>.+?) (?:related|connected|linked) (?:to|with) (?P<y>.+)"
                    rf"|how {IS} (?P<x2>.+?) and (?P<y2>.+?) (?:related|connected|linked)"),
    ("change", r"how (?:do|does|did|has|have|had)(?:n['’]t)? (?P<topic>.+?) (?:changed?|evolved?|develop(?:ed)?"
                  rf"|transform(?:ed)?|grow|grown)(?P<rest>{_WHILE})"
                  rf"|(?:what|which) (?:{IS} )?(?:the )?(?:\w+ )?changes?(?: (?:in|to|of|for) (?P<of>.+))?"),
    ("emotion", rf"(?:how|what) {_BE_OR_DO} (?P<topic>(?:(?!\b{WH}\b).)+?) (?:(?:feel|felt|feeling|react|respond)\b(?: (?:about|towards?"
                   rf"|to|of|on|regarding|with|that|when|at))?|(?:think|thought) (?:about|of)\b) ?(?P<other>.*)"
                   rf"|what {IS} (?P<x>.+?)['’]s? (?:feelings?|attitude|opinion|view|reaction|emotions?|thoughts?)"
                   rf"(?: (?:about|towards?|to|of|on|regarding|at) (?P<y>.+))?"
                   rf"|what (?:feelings?|emotions?) {_BE_OR_DO} (?P<x2>.+?) (?:have|feel|show|express)(?: (?:for|about"
                   rf"|towards?))? ?(?P<y2>.*)"),
    ("effect", rf"how {_BE_OR_DO} (?P<topic>.+?) (?:affect(?:s|ed|ing)?|influenc(?:e|ed|ing)|impact(?:s|ed|ing)?"
                  rf"|harm(?:s|ed|ing)?|hurt(?:ing)?|alter(?:s|ed|ing)?) (?P<other>.+)"
                  rf"|what (?:{IS} )?(?:the )?(?:\S+ )?(?:effects?|impacts?|influence|consequences?) of"
                  rf" (?P<x>.+?)(?: (?:on|for) (?P<y>.+))?"
                  rf"|what (?:effects?|impacts?|influence|consequences?) (?:{_DO}|has|will|can) (?P<x3>.+?) (?:have|had)(?: on (?P<y3>.+))?"
                  rf"|what (?:can|does|did|will|would|may|might) (?P<x2>.+?) (?:lead to|result in|cause|bring about)"),
    ("advice", rf"(?:what|how)(?P<topic> (?:should|must|ought)\b(?!.*\bknow\b).+)|what {_DO} (?P<who>.+?) (?:recommend|advise|suggest|want \w+ to)\b(?P<rest>.*)"
                  rf"|what {IS} (?P<told>.+?) (?:advised|told|supposed|recommended|urged|meant) to do\b.*"
                  rf"|(?:what|which) .*\b(?:advice|recommendations?)\b(?: (?:for|to|on|about) (?P<for>.+))?.*"),
    ("definition", rf"what {_DO} (?P<topic>.+?) (?:mean|stand for|signify|refer to)(?: (?:in|here)\b.*)?"
                      rf"|what {_DO} .+? mean by (?P<said>.+)|what(?: exactly)? {IS} "
                      rf"(?:the )?(?:\w+ )?(?:meaning|definition|sense) of (?P<of>.+)|what {IS} meant by (?P<by>.+)"
                      rf"|defin(?:e|ition of) (?P<define>.+)|meaning of (?P<m>.+)"
                      rf"|(?:why|what) does (?P<doc>{DOCUMENT}) mean when (?P<when>.+)"),
    ("ending", rf"(?:how|in what way) {_DO} (?P<topic>.+?) (?:end|conclude|turn out|finish)(?: up)?"
                  rf"|what (?:happens|happened) (?:to (?P<to>.+?) )?(?:at|in) the (?:very )?end(?: of .*)?"),
    ("event", r"what (?:happens|happened|occurs|occurred|took place|takes place|goes? on|went on|went wrong"
                 r"|came of|became of|is happening|was happening|has happened)\b(?!(?: to .+)? if\b)(?: to(?P<topic> .+)|.*)"),
    ("reason", r"(?:for what reason|what for|how come|why)\b(?P<clause>.*)"
                  rf"|what (?:else )?{IS} (?:(?:the|a|one) )?(?:[\w'’-]+ ){{0,4}}(?:reasons?|causes?|motives?|motivation|explanation)"
                  rf" (?:for|of|that|why|behind)\b(?P<topic>.*)"
                  rf"|what (?:else )?(?:(?:can|could|may|might) )?(?:causes?|caused)\b(?P<caused> (?:(?! to\b).)+)"
                  r"|what (?:[\w'’-]+ )?(?:reasons?|causes?|motives?|motivation|explanation)\b.*"
                  r"|(?:what|who) (?:makes?|made|causes?|caused|leads?|led|prompts?|prompted|drove|drives|convinces?|convinced"
                  r"|persuaded|motivate[sd]|pushed|allow(?:s|ed)|enable[sd]?)\b.*"),
    ("duration", r"(?:for |since |after |about )?how (?:long|often|frequently|old|soon|late|early)\b(?P<clause>.*)"
                    r"|how many (?:more )?(?:years|months|weeks|days|hours|minutes|seconds|decades)\b(?P<unit>.*)"),
    ("number", r"(?:(?:in|by|to|for|at|of|with|into|about) )?how (?:many|much|few|far|tall|high|deep|wide|big|large|heavy|fast"
                  r"|low|strong|hot|cold|thick|expensive|small)\b(?P<clause>.*)"
                  rf"|(?:(?:in|by|to|for|at) )?(?:what|which)(?: {IS})?(?: the)?(?: (?!name)\w+)? {_AMOUNTS}\b(?P<topic>.*)"),
    ("time", rf"(?:since |until |till |by |from )?when\b(?P<clause>(?!.*, {WH}\b).*)"
                rf"|{BEFORE_WH}(?:what|which) (?:\w+ )?{_TIMES}{_ITSELF}.*|(?:what|which) (?:is|was) the (?:\w+ )?(?:date|year|time|day) (?:of|on which|when|that|in which)"
                rf"\b(?P<of>.*)"),
    ("place", rf"(?:from |to )?where\b(?P<clause>(?!.*, {WH}\b).*)|{BEFORE_WH}(?:what|which) (?:\w+ )?{_PLACES}{_ITSELF}.*"
                 rf"|what is the (?:location|place|address) (?:of|where)\b(?P<of>.*)"),
    ("person", rf"{BEFORE_WH}(?:who|whom|whose)(?:['’]s)?\b(?P<clause>.*)|{BEFORE_WH}(?:what|which) (?:\w+ )?{_PERSONS}{_ITSELF}.*"),
    ("list", r"(?:list|enumerate|extract)(?: me)? (?:(?:all|every|each|the)\b)?\s*(?P<topic>.+)"
                r"|(?:name|identify|find)(?: me)? (?:all|every|each)\s+(?P<each>.+)"
                rf"|(?:what|which) {IS} (?:all|every) (?P<all>.+)"),
    ("definition", r"what(?: exactly)? (?:is|are) (?P<topic>(?!the |his |her |its |their |my |your |our |this |that |these "
                      r"|there\b|.*\b(?:about|with|for|of|in|on|to|from|wrong)\b|.*(?:ed|en|ing)\Z)(?-i:an? [a-z-]+(?: [a-z-]+){0,2}|[a-z-]{2,}))"),
    ("manner", rf"(?:in what way|by what means|how)\b(?!.*\b{WH}\b)(?P<clause> (?:{_DO}|has|have|had|can|to)\b.*| {IS} .+e[dn])"),
    ("claim", rf"{AUXILIARY}\b(?!,|.*\bor\b).+"),
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
    """The form of one question and its topics.

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
                return form, [topic for topic in (_clause(found["clause"]),) if topic]
            return form, [topic for value in found.values() if (topic := value.strip(" ,:"))]
    return "thing", []


_PRONOUN = r"(?:there|i|you|he|she|it|we|they)"
_SUBJECT = re.compile(
    rf"\s*(?P<auxiliary>{AUXILIARY})\s+(?P<subject>{_PRONOUN}|(?>{NAME})(?<!['’]s)"
    r"(?=\s+\S+\s*\Z|\s+(?:not|never|so|such|too|very|been|being|a|an|the|in|at|on|to|from)\b))"
    r"(?=\s)(?!\s+(?:and|or)\b)(?P<rest>.*)\Z",
    re.I | re.S,
)
"""A pronoun, or a name of which it is sure that it has ended: `Usher` may go on (`syndrome`)."""
_DROPPED = re.compile(rf"\s*(?!\S+n['’]t\b)(?:{AUXILIARY}|['’]s)\s+(?P<rest>.*)\Z", re.I | re.S)
_INSIDE = re.compile(rf"\s{AUXILIARY}\s", re.I)


def _clause(text: str) -> str:
    """The text after a question word, in the order of a statement; blank if that order is not sure.

    Example:
        >>> _clause(" did the crew leave"), _clause(" was Ada late"), _clause(" didn't Ada go")
        ('the crew leave', 'Ada was late', 'Ada not go')
        >>> _clause(" is Usher syndrome rare"), _clause(" in the mill did Ada sleep")
        ('Usher syndrome rare', '')
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
    return "" if _INSIDE.search(text) else text.strip(" ,:")
