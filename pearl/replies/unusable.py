"""Replies that are no reply: refusals, errors of a server, leftovers of a chat, calls of tools."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from operator import or_
from typing import Literal, NamedTuple

from pearl.documents.evidence import quoted_line

__all__ = ["Unusable", "unusable"]

MAX_REFUSAL = 1_500
"""Characters of a longer text, which is not only a refusal."""
MAX_JSON = 20_000


class Unusable(NamedTuple):
    """Why a reply cannot be used.

    Attributes:
        kind: `refused` if the model does not do what it is asked for, `empty` if it says nothing,
            `transport` if a server between writes its error in place of the reply.
        why: For people; goes on after the name of the model.
    """

    kind: Literal["refused", "empty", "transport"]
    why: str


def unusable(text: str, source: str = "") -> Unusable | None:
    """Why a whole reply cannot be used; None if it can.

    A reply that quotes passages, or that stands in the source word for word, is taken.

    Args:
        text: The reply without reasoning.
        source: What the model was shown.

    Example:
        >>> unusable("I'm sorry, but I can't help with that.").kind
        'refused'
        >>> unusable("He is sorry and cannot help.") is None
        True
    """
    lines = text.splitlines()
    if any(quoted_line(line) is not None for line in lines):
        return None
    if _is_garbage(text):
        return Unusable("empty", "sent no words")
    said = _normal(text)
    reason = _error(text, said) or _chatter(text, said)
    return None if reason is None or (said and said in _normal(source)) else reason


_TYPOGRAPHIC = str.maketrans(
    {"’": "'", "‘": "'", "ʼ": "'", "`": "", "*": "", "_": " ", "\u200b": ""}
)


def _normal(text: str) -> str:
    """A text in lower case, without emphasis, with single blanks."""
    return " ".join(text.translate(_TYPOGRAPHIC).casefold().split()).lstrip("-•#· ")


_NO_VALUE = frozenset({"null", "undefined", "nan", "nil", "[object object]"})
_INK = re.compile(
    r"\w|[^\x00-\x7f\u00a0-\u00bf\u2000-\u206f\u3000-\u303f\uff00-\uff0f]|[$%+=<>^|~&@#]"
)


def _is_garbage(text: str) -> bool:
    """Whether a text has nothing to read: dots, replacement characters, the word `null`."""
    n_lost = text.count("\ufffd")
    if n_lost > 2 and 4 * n_lost > len(text):
        return True
    if text.strip(" \n\t.'\"`").casefold() in _NO_VALUE:
        return True
    return text.strip() != "-" and (not _INK.search(text) or _LONE_TAG.fullmatch(text) is not None)


# ---------------------------------------------------------------------------------------------
# Errors of servers and gateways

_STATUS = (
    r"bad gateway|service (?:is )?(?:temporarily |currently )?unavailable|too many requests|"
    r"internal (?:server )?error|gateway time-?out|request time-?out|payload too large|server (?:is )?(?:currently )?overloaded|overloaded(?:[ _]error)?|"
    r"rate[ _-]limit(?:s|ed|ing)?(?:[ _]error)?(?: (?:was |is |has been )?(?:exceeded|reached|hit))?|"
    r"upstream connect error(?: or disconnect/reset before headers)?|"
    r"(?:connection|request|upstream|read|operation|call|response|model|server)(?: to [\w. ]{1,30})? (?:has |was |is )?(?:timed? ?out|refused|reset(?: by peer)?|aborted|closed)|"
    r"upstream (?:request timeout|error)|no healthy upstream|quota exceeded|"
    r"(?:insufficient|exceeded your current) quota|context length exceeded|"
    r"(?:the )?(?:model|server|engine) (?:is|has been|was) (?:not available|unavailable|not loaded|down|busy)|"
    r"the server had an error|something went wrong|an (?:unexpected |internal )?error (?:has )?occurred"
)
_ERROR = r"(?:(?:api|http|server|model|upstream|gateway|runtime|network)\s?)?(?:error|exception|status|fehler|https?)(?: code)?\b[\W_]*(?:\d\.\d )?"
_ERROR_LINE = re.compile(
    rf"[\W_]*(?:(?:{_ERROR})?(?:[45]\d\d\b[\W_]*)?(?:{_STATUS})"
    rf"|(?:{_ERROR})?[45]\d\d\b[\W_]*(?:error|not found|bad request|unauthori[sz]ed|forbidden)|{_ERROR}[45]\d\d)"
    r"(?:\s*[^\w\s].*| (?:please|try|for url|while|after \d).*)?",
    re.S,
)
_MARKED_ERROR = re.compile(
    rf"[\[(<{{]\s?(?:error|exception|fehler)\b.*"
    rf"|(?:\w{{0,20}}error|exception|fehler)\s?:.*(?:{_STATUS}|time-?out|timed out|upstream|quota|token|"
    r"api|connection|server|gateway|request|model|content|failed to|null|undefined|none ?type|\b[45]\d\d\b).*"
    r"|traceback \(most recent call last\).*",
    re.S,
)
_PAGE = re.compile(r"\s*(?:<\?xml[^>]{0,200}>\s*)?<(?:!doctype html|html|head|title)\b", re.I)
_ERROR_KEYS = frozenset({"error", "errors", "detail", "fault", "errormessage", "error_message"})


def _error(text: str, said: str) -> Unusable | None:
    """A reply that a server between writes."""
    is_short = len(said) <= MAX_REFUSAL
    is_error = any((
        _PAGE.match(text),
        is_short and _ERROR_LINE.fullmatch(said),
        is_short and _MARKED_ERROR.fullmatch(said),
    ))  # fmt: skip
    if not is_error:
        keys = {key.casefold() for data in _objects(text) for key in data}
        is_error = bool(keys & _ERROR_KEYS) and len(keys) <= 8
    if not is_error:
        return None
    if "filter" in said:
        return Unusable("refused", f"sent the message of a content filter: {_short(text)}")
    return Unusable("transport", f"sent the error of a server: {_short(text)}")


def _objects(text: str) -> Iterator[dict[str, object]]:
    """The JSON objects that a whole text is."""
    inner = text.strip().removeprefix("```json").strip("`\n ")
    if len(inner) > MAX_JSON or inner[:1] not in ("{", "["):
        return
    try:
        data = json.loads(inner)
    except (ValueError, RecursionError):
        return
    yield from (item for item in (data if isinstance(data, list) else [data]) if isinstance(item, dict))  # fmt: skip


# ---------------------------------------------------------------------------------------------
# Refusals, chatter, calls of tools

_FILTERED = re.compile(
    r"\W*(?:(?:error|blocked|filtered)\W+)?(?:content (?:was |has been )?(?:filter(?:ed)?|blocked|flagged)\W*"
    r"|(?:the |this |your )?(?:content|response|output|reply|prompt|request|message|text|generation)\b[^.!?]{0,40}"
    r"\b(?:filtered|blocked|flagged|removed|rejected|withheld|stopped)\b[^.!?]{0,80}"
    r"(?:polic|filter|safety|azure|openai|guideline|moderation).*)"
)

_DO = (
    r"help|assist|aid\b|support|comply|fulfil|satisfy|accommodate|do (?:that|this|so)|continu|engag|discuss|respond|"
    r"answer (?:that|this|your|it|the question|questions? (?:about|of this))|"
    r"(?:provide|give|offer|generate|create|produce|write|share|supply|process|complete|perform|carry out|participate|"
    r"execute|summari[sz]e|analy[sz]e|translate|transcribe|talk about|speak|access|open|read|view|see|browse|go into|"
    r"take part|reproduce|repeat|quote|be of)\b"
)
_CANNOT = (
    r"(?:can ?not|can't|could ?n[o']t|won't|will not|am not able to|'m not able to|am unable to|'m unable to|"
    r"am not allowed to|'m not allowed to|am not permitted to|'m not permitted to|am not programmed to|"
    r"'m not programmed to|'m not going to|am not going to|'m not comfortable|am not comfortable|"
    r"don't feel comfortable|do not feel comfortable|'m not in a position to|am not in a position to|"
    r"must|have to|need to|'d prefer not to|would prefer not to|prefer not to|'d rather not|would rather not|"
    r"don't have the ability to|do not have the ability to|am not designed to|'m not designed to|"
    r"(?:'m|am) not capable of|(?:'m|am) incapable of|(?:'m|am) prohibited from)"
)
_SORRY = (
    r"(?:oh,? |hello[!,.] |hi[!,.] )?(?:(?:i'm|i am|we're|we are|so|very|really|truly|deeply|terribly) ){0,3}"
    r"(?:sorry|my apologies|apologies|(?:i|we) (?:do |must |sincerely )?apologi[sz]e|unfortunately|regrettably|i'm afraid|"
    r"i am afraid|i regret|i understand|i appreciate|thank you|thanks|i see|while|as an? (?:\w+ ){0,2}(?:ai|language model|assistant))"
)
_REFUSAL = re.compile(
    rf"(?:{_SORRY}[^.!?]{{0,160}}?[\s,;:.!—–-]+(?:but |that |and |however,? |at this time,? )?)?"
    rf"i ?(?:{_CANNOT})(?: (?:\w+|,)){{0,3}} (?:{_DO}|declin\w*|refus\w*|be able to (?:{_DO}))"
    r"|i (?:respectfully |politely )?(?:decline|refuse)(?: to|\.|\Z)"
    r"|i(?:'m| am)? (?:don't feel|do not feel|not|not feeling) comfortable\b"
    rf"|(?:{_SORRY}[, ]+(?:but )?)?(?:that|this)(?:'s| is) (?:beyond|outside|out of)(?: of)? (?:my|the) (?:\w+ )?(?:scope|capabilit|abilit|knowledge)"
    rf"|{_SORRY}[^.!?]{{0,80}} (?:can't|cannot|won't|unable to|not able to) (?:{_DO})"
    r"|(?:as|i'm|i am) (?:just |only |merely )?an? (?:\w+ ){0,2}(?:ai|(?:large )?language model)(?: (?:language )?model| assistant)?\b[^.!?]{0,120}(?:\bnot\b|n't\b|cannot|unable|no (?:ability|access))"
    r"|(?:sorry|apologies|my apologies|i apologi[sz]e|i'm sorry|i am sorry)[.!]*\Z"
    r"|(?:i'm |i am )(?:really |so |very )?sorry (?:that |to hear (?:that )?)?(?:you're|you are) (?:feeling|going)"
    r"|(?:this|that|your|the) (?:request|question|prompt|query|content|topic|task)[^.!?]{0,60}"
    r"(?:violat|goes against|against (?:my|our)|cannot be (?:fulfilled|completed|processed|answered for)|is not something i|has been (?:blocked|declined|rejected|flagged)|was (?:blocked|rejected|declined|flagged)|not appropriate|inappropriate|harmful)"
    r"|(?:it|that|this|doing so|to do so)(?:'s| is| would be| goes| violates)?[^.!?]{0,40}against (?:my|our|the) (?:\w+ ){0,2}(?:guideline|polic|programming|principle)"
    # German, French, Spanish, Portuguese, Italian, Dutch, Swedish, Polish, Russian, Turkish
    r"|(?:(?:es )?tut mir (?:sehr )?leid|entschuldig|leider|ich bedau|ich bitte um|verzeih|sorry)[^.!?]{0,80}\b(?:nicht|keine?n?)\b[^.!?]{0,80}(?:helfen|weiterhelfen|unterstütz|behilflich|nachkommen|beantworten|antworten|erfüllen|bereitstellen|bearbeiten|geben\b|anbieten|ausführen|entsprechen)"
    r"|(?:dabei|damit|hierbei|bei dieser (?:anfrage|bitte)|diese (?:anfrage|bitte|frage)|ich) (?:kann|darf|möchte|werde) (?:ich )?[^.!?]{0,60}nicht (?:weiter)?(?:helfen|behilflich|unterstützen|nachkommen|beantworten|erfüllen|bearbeiten|dienen)"
    r"|als (?:ki|künstliche|sprachmodell|ai)\b[^.!?]{0,80}(?:nicht|keine)"
    r"|(?:je suis |nous sommes )?(?:vraiment |sincèrement |profondément )?(?:désolée?s?|navrée?|je regrette|je m'excuse|excusez|malheureusement|pardon)[^.!?]{0,80}\b(?:ne|n'|pas)\b ?[^.!?]{0,50}(?:aider|répondre|assister|fournir|accéder à (?:cette|votre)|traiter|satisfaire|donner suite|effectuer)"
    r"|je ne (?:peux|puis|suis pas en mesure|suis pas capable)[^.!?]{0,30}(?:aider|répondre à (?:cette|votre|ça)|vous assister|fournir (?:cela|ces|cette|de))"
    r"|(?:lo siento|lo lamento|disculp|perd[oó]n|lamentablemente|me temo|mis disculpas|lamento)[^.!?]{0,60}\bno (?:puedo|podré|podemos|me es posible|estoy)[^.!?]{0,50}(?:ayud|asist|respond|proporcion|cumpl|atend|ofrec|realiz|continu)"
    r"|no (?:puedo|me es posible) (?:ayudarte|ayudarle|ayudar con|asistir|cumplir|responder a (?:esa|esta|eso|tu|su))"
    r"|(?:desculp|sinto muito|lamento|infelizmente|perdão)[^.!?]{0,60}\bnão (?:posso|consigo|poderei|sou capaz)[^.!?]{0,50}(?:ajud|auxili|forne|atend|respond|assist)"
    r"|(?:mi dispiace|spiacente|sono spiacente|purtroppo|mi scuso|scusa)[^.!?]{0,60}\bnon (?:posso|sono in grado|mi è possibile)[^.!?]{0,50}(?:aiut|assist|forni|rispond|soddisf)"
    r"|(?:het spijt me|sorry|helaas|mijn excuses)[^.!?]{0,80}\b(?:niet|geen)\b[^.!?]{0,50}(?:helpen|assisteren|voldoen|beantwoorden|verstrekken|bieden)"
    r"|(?:jag är ledsen|tyvärr|ledsen|förlåt|beklagar)[^.!?]{0,60}\binte\b[^.!?]{0,50}(?:hjälpa|bistå|svara|tillhandahålla)"
    r"|(?:przepraszam|przykro mi|niestety)[^.!?]{0,60}\bnie (?:mogę|jestem w stanie)[^.!?]{0,50}(?:pomóc|odpowiedzieć|udzielić|spełnić)"
    r"|(?:извин|прост|к сожалению|мне (?:очень )?жаль|сожалею)[^.!?]{0,60}\bне (?:могу|смогу|в состоянии|буду)[^.!?]{0,50}(?:помо|ответ|предостав|выполн|обсужд|продолж)"
    r"|(?:üzgünüm|özür dilerim|maalesef)[^.!?]{0,80}(?:olamam|olamıyorum|yapamam|sağlayamam|yanıtlayamam|edemem)"
    # Chinese, Japanese, Korean, Arabic, Hindi
    r"|(?:非常|很|十分|实在)?(?:抱歉|对不起|對不起|很遗憾|不好意思)[^。！？]{0,30}(?:无法|無法|不能|不便|没办法|没有办法|拒绝)[^。！？]{0,14}(?:提供|回答|帮|幫|协助|協助|满足|完成|处理|讨论|继续|回应|生成|执行|支持)"
    r"|(?:你好，)?(?:这个问题)?我(?:暂时|目前|现在)?(?:无法|無法|不能|不便|拒绝)[^。！？]{0,8}(?:提供帮助|回答(?:这|该|你|您|，|\Z)|帮助|帮您|帮你|协助|满足|讨论)"
    r"|(?:作为|身为)(?:一个|一名|一款)?(?:ai|人工智能|大?语言模型|智能助手)"
    r"|(?:大変)?(?:申し訳|すみません|恐れ入り|残念ながら|ごめんなさい)[^。！？]{0,50}(?:手伝い|答え|応え|対応|支援|提供|回答|サポート|リクエスト|ご要望|助け|お力)[^。！？]{0,16}(?:できません|できかね|致しかね|いたしかね|しかねます|なれません)"
    r"|(?:そのリクエスト|ご要望|お手伝い)[^。！？]{0,12}(?:できません|できかね|致しかね|いたしかね)"
    r"|(?:죄송|미안)[^.!?]{0,60}(?:도와|도움|제공|답변|답해|응답|처리|수행|지원|응할)[^.!?]{0,20}(?:없|못|어렵|불가)"
    r"|(?:آسف|عذر|أعتذر|نأسف|أنا آسف)[^.!?؟]{0,60}(?:لا أستطيع|لا يمكنني|لا يمكننا|غير قادر)"
    r"|(?:क्षमा|माफ़|खेद)[^।.!?]{0,60}नहीं[^।.!?]{0,20}सक",
)
_NO_TEXT = re.compile(
    r"\b(?:the|this|that|your) (?:\w+ )?(?:text|document|passage|story|article|context|excerpt|source|report|transcript|file)\b"
    r"|\bmention|\bstate[sd]?\b|\bspecif|\bindicat"
)

_GIVEN = (
    r"(?:text|document|passage|content|context|article|story|transcript|conversation|details?|information|question|file|"
    r"input|data|instructions?|list|paragraph|excerpt|material|items?|more|them|it|what you|which)"
)
_OFFER = re.compile(
    rf"(?:(?:but|so|then|and|also|however|if so|once you do),? )?(?:(?:please|kindly|could you|can you|would you|will you|feel free to|you can|you may|don't hesitate to|do not hesitate to)(?: please| kindly| also)?"
    rf"(?: (?:provide|share|paste|send|upload|give|supply|attach|clarify|specify|rephrase|include|tell me|let me|ask|reach out|contact|call|try)\b[^.!?]{{0,40}}(?:{_GIVEN}|me|again|know|out|any|someone|help)\b| (?:ask|clarify|rephrase|try again|let me know))"
    r"|(?:how|what|where)(?: else)? (?:can|may|could|should|would you like me to|would you like|do you want|do you need)\b[^.!?]{0,30}(?:i|me|you|know|help|assist|do)\b"
    r"|is there (?:anything|something) (?:else|specific|in particular)"
    r"|(?:i'm|i am|we're) (?:ready|here|happy|glad|more than happy|always here)(?: to)?\b"
    r"|(?:i'd|i would|i'll|i will) (?:be (?:happy|glad|able) to|do my best|need (?:the|more|you|a)|help you|assist you|be here|carry out|follow|wait|answer your)"
    r"|let me know\b|hope (?:this|that) helps|i hope (?:this|that|it) (?:helps|answers|is)"
    rf"|(?:if|once|when) (?:you(?:'d| would|'ve| have| need| could| can| want| provide| share| paste)?|there(?:'s| is| are))\b"
    rf"[^.!?]{{0,120}}(?:let me know|feel free|please|i can|i'll|i'd|i will|i would|happy to|ask\b|help|assist)"
    rf"|(?:it (?:seems|looks|appears)|i (?:see|notice|think|believe))(?: like| that| as though| as if)?(?: that)? (?:you|no|the|your|there)\b"
    rf"[^.!?]{{0,60}}(?:provide|paste|share|attach|includ|empty|missing|cut off|incomplete|upload|forgot|input)"
    rf"|i (?:do not|don't|can't|cannot|couldn't) (?:see|find|have) (?:any|a|the|your|an) {_GIVEN}(?: (?:to|in your|here|attached|provided|included|that|from|you)\b[^.!?]*)?"
    rf"|(?:no|the) {_GIVEN} (?:was|were|is|are|has been|have been) (?:not )?(?:provided|given|attached|included|supplied|shared|empty|missing)"
    r"|(?:here|below) (?:is|are) (?:the|your|a|an|my|some) (?:\w+ ){0,3}(?:answers?|results?|list|summary|text|response|reply|information|passages?|analysis|entries|output)\b[^.!?]{0,60}:?\Z"
    r"|(?:bitte|gerne|gern)\b[^.!?]{0,20}(?:geben|stellen|senden|fügen|teilen|laden|nennen|mitteilen|übermitteln|gib|stell|schick)\b"
    r"|wie (?:kann|darf) ich (?:ihnen|dir|heute|euch)|womit kann ich"
    r"|(?:veuillez|merci de|pourriez-vous|pouvez-vous)\b[^.!?]{0,30}(?:fournir|partager|envoyer|coller|préciser|donner|reformuler)"
    r"|comment puis-je|en quoi puis-je|n'hésitez pas"
    r"|(?:por favor|podrías|podría|puedes)\b[^.!?]{0,20}(?:proporcion|compart|envi|peg|aclar|indi|facilit|forne|envie|cole)"
    r"|¿?(?:en qué|cómo|como|em que) (?:puedo|te puedo|le puedo|posso) (?:ayudar|ajudar|te|le|lhe)"
    r"|(?:per favore|per cortesia|potresti|potrebbe)\b[^.!?]{0,20}(?:forn|condivid|invi|incoll)|come posso aiutar"
    r"|(?:kunt u|kun je|graag)\b[^.!?]{0,30}(?:geven|delen|sturen)|hoe kan ik (?:u|je)"
    r"|(?:请|請)(?:您|你)?(?:提供|分享|发送|上传|粘贴|输入|告诉|补充|给出)|请问(?:有什么|您|你|需要)|有什么(?:可以|我可以|能)|(?:我|很高兴).{0,6}(?:为您|为你|帮您|帮你)"
    r"|(?:テキスト|文章|文書|本文|内容|情報|資料|詳細).{0,10}(?:提供|共有|入力|送|教え).{0,8}ください|どのように.{0,10}(?:手伝い|お役)|何か(?:お手伝い|ご質問)"
    r"|(?:텍스트|문서|본문|내용|정보).{0,10}(?:제공|입력|공유|알려).{0,6}(?:주세요|주십시오|주시)|무엇을 도와"
    r"|(?:пожалуйста|прошу)\b[^.!?]{0,30}(?:предостав|пришл|отправ|уточн|укаж)|(?:чем|как) (?:я )?могу (?:вам |тебе )?помочь)"
)
_FILLER = re.compile(
    r"(?:sure(?: thing)?|certainly|of course|absolutely|okay|ok|great|alright|hello|hi|hey|hi there|hello there|got it|understood|"
    r"noted|thank you(?: (?:for|so)\b.*)?|thanks(?: (?:for|a)\b.*)?|you're welcome|no problem|gladly|gerne|natürlich|selbstverständlich|hallo|verstanden|"
    r"bien sûr|d'accord|bonjour|claro|por supuesto|hola|entendido|certo|certamente|ciao|zeker|natuurlijk|конечно|здравствуйте|привет|"
    r"当然(?:可以)?|好的|没问题|您好|你好|明白了|はい|承知しました|かしこまりました|こんにちは|네|알겠습니다|물론입니다|안녕하세요|thank you|"
    r"(?:happy|glad) to help|i(?:'m| am) (?:an ai|a language model|here)[^.!?]*)"
)
_LEAD = re.compile(
    r"(?:sure(?: thing)?|certainly|of course|absolutely|okay|ok|great|alright|hello|hi|gerne|natürlich|bien sûr|claro)\s*[,!.:–—-]+\s*(?=\w)"
)
_ALONE = re.compile(
    r"understood|got it|you're welcome|how are you|noted|i (?:understand|will|'ll|shall) (?:now |only |the |your |follow|comply|carry|do|help|read|begin|start|reply)\b[^.!?]*"
)
"""Fillers that are no answer by themselves."""
_SENTENCE_END = re.compile(r"(?<=[.!?。！？؟।])\s*|(?<=:)\s+|\n+")

_TEMPLATE = re.compile(
    r"\s*(?:\[INST\]|<\|(?:im_start|user|system|start_header_id)\|>|<start_of_turn>|###? ?(?:Instruction|System|User)\b|<<SYS>>)",
    re.I,
)
_LONE_TAG = re.compile(r"\s*</?[a-z][\w :|-]{0,30}/?>\s*", re.I)
_TOOL_CALL = re.compile(
    r"\s*(?:```(?:\w+)?\s*)?(?:<(?:\w+:)?(?:tool_calls?|function_calls?|tool_code|tool_use|invoke|function)\b|<function=|<\|python_tag\|>|"
    r"\[TOOL_CALLS\]|<\|tool_call|<｜tool|<\|action_|functions?\.\w{1,60}\(|```tool_code)",
    re.I,
)
_CALL_KEYS = (
    frozenset({"name", "arguments"}), frozenset({"name", "parameters"}), frozenset({"function", "arguments"}),
    frozenset({"function", "parameters"}), frozenset({"tool", "arguments"}), frozenset({"tool", "args"}),
    frozenset({"tool", "input"}), frozenset({"tool", "parameters"}), frozenset({"action", "action_input"}),
    frozenset({"tool_calls"}), frozenset({"function_call"}), frozenset({"tool_name"}), frozenset({"type", "function"}),
)  # fmt: skip


def _chatter(text: str, said: str) -> Unusable | None:
    """A reply that does something else than what is asked for."""
    calls = (keys <= data.keys() for data in _objects(text) for keys in _CALL_KEYS)
    if _TOOL_CALL.match(text) or any(calls):
        return Unusable("refused", f"calls a tool in place of a reply: {_short(text)}")
    if _TEMPLATE.match(text):
        return Unusable("refused", f"copies the template of a prompt: {_short(text)}")
    if not said or len(said) > MAX_REFUSAL or said[0] in "\"'“„«»「『":
        return None
    if _FILTERED.fullmatch(said):
        return Unusable("refused", f"sent the message of a content filter: {_short(text)}")
    sentences = [part.strip(" .!?。！？") for part in _SENTENCE_END.split(_LEAD.sub("", said))]
    sentences = [part for part in sentences if part]
    while len(sentences) > 1 and _FILLER.fullmatch(sentences[0]):
        sentences.pop(0)
    if any(map(_refuses, (sentences[0], ", ".join(sentences[:2])) if sentences else ())):
        return Unusable("refused", f"refuses: {_short(text)}")
    kinds = [_OFFER.match(part) or _ALONE.fullmatch(part) for part in sentences]
    fillers = [_FILLER.fullmatch(part) or _REFUSAL.match(part) for part in sentences]
    if any(kinds) and all(map(or_, map(bool, kinds), map(bool, fillers))):
        return Unusable("refused", f"asks or announces in place of a reply: {_short(text)}")
    return None


def _refuses(text: str) -> bool:
    """Whether a sentence is a refusal; that the text does not say it, is none."""
    match = _REFUSAL.match(text)
    return match is not None and not _NO_TEXT.search(text, match.end())


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 80 else f"{words[:79]}…"
