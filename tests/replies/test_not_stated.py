"""Texts that say that the document does not say it are nothing found; what says more is an answer."""

from __future__ import annotations

import pytest

from pearl.dsl.signatures import ValueType
from pearl.replies.typed import read_reply

NOT_STATED = """
The text does not say.
I cannot tell.
I don't know.
In the story, it is not specified how he left.
The ages of the characters are not mentioned or specified.
His age is not mentioned in the text, so it is not possible to give it.
The text does not say who did it.
The text does not mention the captain's name.
The document doesn't specify the amount.
The provided text does not contain any information about this.
The passage does not state this. It cannot be determined.
The text does not provide information about the age of Mr. Smith.
Not stated
Not stated.
Not mentioned in the document.
Not specified in the text
**Not stated**
No information is given about the captain.
No information provided.
No mention of a captain is made in the text.
No information about his age.
N/A
n.a.
Unknown
There is no information about his age in the document.
There is no mention of animals.
I'm sorry, but the text does not mention the captain.
Unfortunately, the document does not provide this information.
Based on the provided text, the captain's age is not mentioned.
Based on the text, it is not possible to determine his age.
His age is not stated in the text.
The captain's name is not mentioned.
The captain's age is not explicitly stated in the passage.
I cannot find any information about this in the text.
I cannot determine his age from the text.
I could not find the name in the document.
I can't answer this question based on the text.
The answer cannot be determined from the text.
It is impossible to tell from the text.
The text says nothing about it.
Keine Angabe
Keine Angaben
Keine Angabe im Text.
Nicht angegeben.
Nicht erwähnt
Der Text enthält keine Informationen darüber.
Der Text erwähnt das nicht.
Im Text wird dazu nichts gesagt.
Das wird im Text nicht erwähnt.
Leider enthält der Text keine Angaben dazu.
Non précisé
Non mentionné dans le texte.
Le texte ne précise pas son âge.
Le document ne contient aucune information à ce sujet.
Aucune information.
No se menciona en el texto.
No especificado
El texto no menciona su edad.
Não mencionado
O texto não menciona a idade.
Non specificato
Il testo non menziona l'età.
Niet vermeld
De tekst vermeldt dit niet.
Не указано
В тексте не указано.
未提及
文中未提及
文中没有提到船长的名字。
抱歉，文中没有提到船长的名字。
没有相关信息
不详
記載なし
本文には記載がありません。
言及されていません。
언급되지 않았습니다.
본문에 언급되어 있지 않습니다.
정보가 없습니다.
I don't have enough information to answer.
No explicit reason is provided for why he left.
No reason is given in the text.
Nothing is said about that.
Reason: not stated
According to the text, there's no explanation for his return.
Dazu enthält der Text keine Angaben.
В тексте об этом не говорится.
Nie podano.
Belirtilmemiş.
unanswerable
""".strip().split("\n")

ANSWERS = """
The text does not mention his age, but he is a father.
The captain does not mention the war.
The author does not say why he left; he stayed.
The text does not state it. However, he is likely 40.
He was not given food.
The prisoners were not given any reason.
No one knows his name.
No.
Not guilty
Nothing happened.
There is no evidence that he left.
There is no school in the village.
The document was signed in May.
The contract does not apply to tenants; it is void.
He did not find the letter.
He could not find his brother in the story room.
Nobody found it.
No details of the plan survived the fire.
unknown soldier
None of them left.
The report does not recommend a merger.
He was never named in public.
Kein Hund war da.
Er hat keine Angaben gemacht, aber er ging.
Il n'a pas mentionné la guerre.
No se fue.
El perro no ladra.
船长没有提到战争，而是回家了。
无锡
Her name is not known.
The ship has no crew.
The letter was not delivered.
The company provided no guidance and fell.
Not applicable to tenants
The text is about a captain.
A case of no information at all
The contract does not include rent.
The report does not mention losses.
He is not mentioned in the letter.
The reason is stated in the text.
His name is mentioned in the article.
The three conditions are listed in the document.
The letter was found in the file.
No information was given to the passengers.
There was no information exchange between the firms.
The cause of the fire could not be determined.
The text does not have a title.
Die Lieferung ist nicht enthalten.
Le document n'est pas signé.
El documento no está firmado.
La historia no termina bien.
他没有提供护照。
""".strip().split("\n")


@pytest.mark.parametrize("reply", NOT_STATED)
def test_what_is_not_stated(reply: str) -> None:
    read = read_reply(reply, ValueType.TEXT)
    assert (read.state, read.value) == ("nothing", reply)


@pytest.mark.parametrize("reply", ANSWERS)
def test_what_is_an_answer(reply: str) -> None:
    assert read_reply(reply, ValueType.TEXT).state == "found"
