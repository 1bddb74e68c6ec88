"""Detects replies which say in free words that the document does not state the answer."""

from __future__ import annotations

import re

from pearl.errors.patterns import lazy_pattern

MAX_LENGTH = 600
"""Maximum characters of such a text; longer ones say more."""

_TEXT = (
    r"(?:(?:provided |given |supplied |available )(?:\w+ ){0,2}?\w+|(?:\w+ )?(?:texts?|documents?|passages?|story|article|context|excerpts?|"
    r"sources?|transcript|files?|content|information|conversation|dialogue|inputs?|material|paragraph|item|entry|row|record))"
)
_IN = rf"(?:(?:anywhere )?(?:in|by|within|from|on|based on|according to) (?:the|this|these|that|any of the) {_TEXT}\b(?: (?:itself|provided|given|above))?)"
_SAYING = (
    r"(?:\w+ly )?(?:stated|mentioned|specified|indicated|disclosed|given|provided|described|discussed|explained|addressed|named|"
    r"reported|listed|identified|included|found|covered|revealed|noted|available|shown|recorded|documented|determinable|clear|known|present)"
)
_ABOUT = r"(?:information(?! exchange)|mention|reference|indication|explanation (?:for|of|as to|given|provided))"
_ROMANCE = (
    r"(?:men[cztg]i|indi[cq]|e?sp[eé]cif|pr[eé]ci[sz]|di[ctzr]|propor|fo?u?rn|cont[ieé]|e?xpli|spieg|inclu|d?e[sc]+ri|décri|inform|aclar|"
    r"d[eé]tai?ll|d[aàá]\b|donn|ofr|offr|fa[iz]|parl|habl|perm[ie]|r[ie]v[eèé]l|répond|respond|rispond)\w*"
)
"""French, Spanish, Portuguese and Italian verbs for stating."""
_OUT_OF = (
    r"(?:determin|find|tell|infer|say|establish|identif|ascertain|conclude|locat|extract|answer)"
)
_ENGLISH = (
    rf"(?:the|this|that|these) {_TEXT} (?:provided |given |above )?(?:(?:does|do|did)(?: not|n't)|never) (?:\w+ly |actually )?"
    r"(?:say|mention|state|specif|provid|give|contain|includ|indicat|describ|discuss|address|reveal|disclos|tell|explain|nam|identif|list|"
    r"report|offer|clarif|cover|refer|note|make (?:it )?clear|present|answer|elaborate|detail|talk|touch|go into|show|record|have (?:any|enough|information))\w*\b.*",
    rf"(?:the|this|that|these) {_TEXT} (?:has|have|contains?|provides?|gives?|includes?|offers?|makes?) (?:no|nothing|neither) (?:\w+ ){{0,2}}?(?:{_ABOUT}|about|on|data|answer)\b.*",
    rf"(?:the|this|that|these) {_TEXT} (?:provides?|gives?|offers?|states?|mentions?|names?|specif(?:y|ies)) no [\w ]{{1,40}}",
    rf"(?:the|this|that|these) {_TEXT} (?:says?|states?) nothing\b.*",
    rf"(?:the|this|that|these) {_TEXT} (?:is|are) silent\b.*",
    rf"there(?: is|'s| are| was| were) (?:no|not any) (?:\w+ ){{0,2}}?{_ABOUT}\b.*",
    rf"(?:there is )?nothing (?:is |was )?(?:\w+ )?(?:{_SAYING}|about \w+(?: \w+){{0,6}}) ?{_IN}",
    rf"no (?:\w+ ){{0,2}}?(?:details?|description|explanation|(?:\w+ )?reason) (?:(?:is|are|was|were) {_SAYING}(?: (?:for|as to)\b.*)?|{_IN})",
    r"nothing (?:is|was) (?:said|mentioned|stated) about \w+(?: \w+){0,6}",
    rf"no (?:\w+ ){{0,2}}?{_ABOUT}(?: (?:(?:is|are|was|were|has been|have been) )?(?:{_SAYING}|made|of|about|on|regarding|concerning|as to)\b(?! to (?:the|his|her|their)\b).*| {_IN})?",
    rf"(?:it is |it's |this is |that is )?(?:not|never|nowhere|none) {_SAYING}(?: {_IN})?(?: (?:how|why|when|where|who|whose|what|which|whether|if)\b.*)?",
    rf".{{1,160}} (?:(?:is|are|was|were|has|have) (?:not|never|nowhere)|isn't|aren't|wasn't|weren't)(?: been)? {_SAYING} {_IN}",
    rf"no\b.{{1,160}} (?:is|are|was|were|has been|have been) {_SAYING} {_IN}",
    r".{1,160} (?:(?:is|are|was|were) (?:not|never|nowhere)|(?:has|have) (?:not|never) been|isn't|aren't|wasn't|weren't) (?:\w+ly )?(?:stated|mentioned|specified|indicated|explained)(?: or (?:\w+ly )?\w+ed)?",
    rf"(?:i |we |one )(?:can ?not|can't|could not|couldn't|was unable to|am unable to|'m unable to|was not able to|am not able to|did not|do not|don't) (?:\w+ly )?{_OUT_OF}\w*\b(?:.*{_IN}|(?: (?:this|that|it|so))?)",
    r"(?:i |we )(?:do not|don't) (?:really )?know|i'?\s?a?m not (?:sure|certain)",
    rf"(?:.{{1,120}} )?(?:can ?not|can't) be (?:determined|established|inferred|ascertained|answered|identified)(?: {_IN})?",
    rf"(?:.{{1,120}} )?could not be (?:determined|established|inferred|ascertained|answered|identified) {_IN}",
    rf"(?:it is|it's) (?:not possible|impossible) to (?:provide|evaluate|give|know|{_OUT_OF})\w*\b.*",
    r"(?:i |we )(?:do not|don't) have (?:enough|sufficient) (?:information|context|details|data)\b.*",
    r"n/?\.?a\.?|n\. a\.|none|unknown|unspecified|undisclosed|unanswerable|not applicable|not known|no answer|no data|not clear|unclear",
)
_OTHERS = (
    # German
    r"k\. ?a|(?:dazu |hierzu |darüber )?(?:gibt es |liegen |werden |es gibt |finden sich )?(?:im (?:text|dokument) )?keine? (?:\w+ ){0,2}?(?:angaben?|informationen?|hinweise?|erwähnung|auskunft|aussagen?|daten)\b.*",
    r"(?:.{1,120} )?(?:wird|werden|ist|sind|wurde) (?:\w+ ){0,6}?nicht (?:\w+ )?(?:angegeben|erwähnt|genannt|spezifiziert|beschrieben|ersichtlich|aufgeführt|thematisiert)|(?:im (?:text|dokument) )?nicht (?:angegeben|erwähnt|genannt|spezifiziert|ersichtlich|aufgeführt|bekannt|verfügbar|vorhanden)(?: im (?:text|dokument))?|unbekannt",
    r"(?:dazu |hierzu |darüber )?(?:enthält|nennt|erwähnt|macht|gibt|sagt|liefert) (?:der|dieser|das|dieses|die|diese) (?:\w+ )?(?:text|dokument|passage|abschnitt|artikel|auszug)\b.*\b(?:nicht|nichts|keine?\w*)\b.*",
    r"(?:der|dieser|das|dieses|die|diese) (?:\w+ )?(?:text|dokument|passage|abschnitt|artikel|auszug|bericht|geschichte) (?:enthält|nennt|erwähnt|sagt|gibt|macht|liefert|beschreibt|erklärt)\b.*\b(?:nicht|nichts|keine?\w*)\b.*",
    r"(?:im|in diesem|in dem) (?:\w+ )?(?:text|dokument|abschnitt|artikel|auszug|bericht) (?:wird|steht|ist|gibt es|findet sich|werden|sind|finden sich)\b.*\b(?:nicht|nichts|keine?\w*)\b.*",
    # French, Spanish, Portuguese, Italian, Dutch
    r"(?:cela |ce |il )?(?:n'est |ne sont )?(?:non|pas) (?:précisé|mentionné|indiqué|spécifié|communiqué|renseigné|disponible|connu)\w*(?: dans (?:le|ce) (?:texte|document|passage))?|inconnu\w?",
    r"(?:le|ce|la|cette|l') ?(?:texte|document|passage|extrait|article|histoire|rapport) (?:ne |n')(?:le |la |en |y |nous )?"
    + _ROMANCE
    + r"\b.*\b(?:pas|rien|aucune?)\b.*|(?:il n'y a )?aucune? (?:information|mention|indication|précision|donnée|détail)\w*\b.*|.{1,120} n'(?:est|sont) pas (?:précisé|mentionné|indiqué|spécifié)\w*(?: dans (?:le|ce) (?:texte|document|passage))?",
    r"(?:el|este|la|esta) (?:texto|documento|pasaje|fragmento|artículo|historia|informe) no (?:lo |la |le |se |nos )?"
    + _ROMANCE
    + r"\b.*|(?:en el (?:texto|documento) )?no se (?:menciona|indica|especifica|dice|precisa|proporciona|informa|detalla)\b.*|no (?:mencionad|especificad|indicad|proporcionad)[oa]s?(?: en el (?:texto|documento))?|no (?:disponible|consta)|(?:no hay |sin |ninguna )(?:información|mención|datos)\b.*|desconocido",
    r"(?:o|este) (?:texto|documento|trecho|artigo) não (?:o |a |se |nos )?"
    + _ROMANCE
    + r"\b.*|não (?:é |foi |está )?(?:mencionad|especificad|informad|indicad)[oa]s?(?: no (?:texto|documento))?|não (?:consta|disponível)|(?:não há |sem |nenhuma )(?:informaç|menção)\w*\b.*",
    r"(?:il|questo) (?:testo|documento|brano|passaggio) non (?:lo |la |li |ne |ci )?"
    + _ROMANCE
    + r"\b.*|non (?:è |viene )?(?:specificat|menzionat|indicat|precisat)[oa](?: nel (?:testo|documento))?|non disponibile|(?:non ci sono |nessuna )(?:informazion|menzion)\w*\b.*",
    r"(?:de tekst|het document|de passage) \w+\b.*\b(?:niet|geen|niets)\b.*|niet (?:vermeld|genoemd|gespecificeerd|aangegeven|bekend)(?: in (?:de tekst|het document))?|(?:er is )?geen (?:informatie|vermelding|gegevens)\b.*",
    # Russian, Chinese, Japanese, Korean
    r"(?:в тексте |в документе )?(?:об этом |это )?не (?:говор|указан|упомянут|упомина|сказано|сообщ|уточня)\w*(?: в (?:тексте|документе))?|(?:текст|документ) не \w+\b.*|(?:в тексте |в документе )?нет (?:информации|данных|сведений|упоминан)\w*\b.*|неизвестно",
    r"(?!他|她|我|你)[^，,；;但]{0,24}(?:并未|并没有|没有|沒有|未)(?:明确|直接|具体|被)?(?:提及|提到|说明|說明|提供|注明|指出|给出|记载|记录|描述|披露)[^，,；;但]{0,40}|[^，,；;但]{0,24}(?:无|没有)(?:任何|相关)?(?:信息|资料|记载|说明)|不详|未知|不明|无",
    r"[^、。]{0,60}(?:記載|言及|明記|説明|記述|情報)(?:は|が|されて|も)?(?:特に)?(?:ありません|なし|ない|いません|おりません|ございません)|[^、。]{0,60}(?:書かれて|述べられて|触れられて|示されて|明らかにされて)いません|記載なし",
    r"nie (?:podano|określono|wspomniano)|brak (?:informacji|danych)|belirtilmemiş|bahsedilmiyor|ikke (?:nevnt|oppgitt|angivet)|(?:ej|inte) (?:angivet|nämnt)|tidak (?:disebutkan|dinyatakan)",
    r".{0,60}(?:언급|명시|기재|제시|설명)(?:되지|되어 있지|하지|하고 있지) 않.{0,12}|.{0,60}(?:정보|언급|내용|기록)(?:가|는|이|은)? ?없.{0,10}|.{0,60}나와 ?있지 않.{0,10}|알 수 없.{0,6}|미상",
)
_NOT_STATED = lazy_pattern("|".join((*_ENGLISH, *_OTHERS)), re.I)
_LEAD = lazy_pattern(
    rf"\A(?:(?:i'm |i am |we're |es tut mir |je suis )?(?:very |so )?(?:sorry|apologies|i apologi[sz]e|unfortunately|i'm afraid|regrettably|leider|leid|"
    r"désolé\w?|malheureusement|lo siento|lamentablemente|infelizmente|purtroppo|helaas|к сожалению|很?抱歉|对不起|申し訳(?:ございません|ありません)が|죄송(?:합니다|하지만))"
    rf"\s*[,.:，。、]?\s*(?:but |aber |mais |pero |that |et )?|(?:answer|result|antwort)\s*:\s*|[a-z ]{{1,30}}: (?=not\b)|(?:based on|according to|from|in) (?:the|this) {_TEXT}(?: \w+)?,? )+",
    re.I,
)
_END = lazy_pattern(
    r"(?<=\w{3}[.!?])(?<!\bMrs\.)(?<!\bProf\.)(?<!\bInc\.)(?<!\bLtd\.)\s+|(?<=[。！？])\s*|\n+|(?:;|, so|, therefore|, and)\s+(?=(?:it|the|this|there|no|so|therefore|i)\b)"
)
_SO = lazy_pattern(r"(?:so|therefore|thus|hence|as such|consequently|as a result)[, ]+", re.I)
_BUT = lazy_pattern(
    r"\b(?:but|however|except(?:ing)?|although|though|yet|only|unless|save for|apart from|aside from|other than|besides|instead|still|"
    r"otherwise|while|whereas|aber|jedoch|außer|nur|sondern|mais|sauf|cependant|seulement|pero|salvo|excepto|sino|sólo|solo|mas|exceto|"
    r"ma|tranne|maar|но|кроме)\b|但|而是|只|しかし|ただし|하지만|그러나",
    re.I,
)


def says_not_stated(text: str) -> bool:
    """Whether a text says only that the document does not state the answer.

    Example:
        >>> texts = "The text does not mention his age.", "N/A", "Keine Angabe", "He is not mentioned."
        >>> all(map(says_not_stated, texts))
        True
        >>> says_not_stated("The text does not mention his age, but he is a father.")
        False
    """
    said = re.sub(r"[*_`’]+", lambda mark: "'" if mark[0] == "’" else "", text).strip()
    if len(said) > MAX_LENGTH:
        return False
    said = _LEAD.sub("", said.strip("-•()[]\"' "), count=1)
    parts = [_SO.sub("", part, count=1).strip(" .!?。！？)(\"'-") for part in _END.split(said)]
    parts = [part for part in parts if part]
    return bool(parts) and not _BUT.search(said) and all(map(_NOT_STATED.fullmatch, parts))
