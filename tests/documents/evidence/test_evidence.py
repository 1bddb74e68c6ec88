"""Quotes of replies, and where a document has them."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from pearl.documents.document import Document
from pearl.documents.evidence import StepReply, Verifier, collect, normal
from pearl.documents.evidence.finding import TableRowFinder
from tests.documents.evidence.checking import check

# Verifier


@pytest.mark.parametrize(
    ("document", "quote", "shown"),
    [
        ("“Don’t,” he said.", '"Don\'t," he said.', "“Don’t,” he said."),
        ("„Nein“, sagte er.", "«Nein», sagte er.", "„Nein“, sagte er."),
        ("« Non », dit-il.", '"Non", dit-il.', "« Non », dit-il."),
        ("He said “‘No’ is no.”", 'He said ‘"No" is no.’', "He said “‘No’ is no.”"),
        (
            "He came — and went — at ten.",
            "He came--and went - at ten",
            "He came — and went — at ten",
        ),
        ("mother–daughter talk", "mother-daughter talk", "mother–daughter talk"),
        ("This is a well-\nknown fact.", "a well-known fact", "a well-\nknown fact"),
        ("pages 12-\n15 and on", "pages 12–15 and on", "pages 12-\n15 and on"),
        ("ＡＢＣ１２３です。", "ABC123です。", "ＡＢＣ１２３です。"),
        ("ｶﾞﾗｽを割った。", "ガラスを割った。", "ｶﾞﾗｽを割った。"),
        ("天气很好，他说。\n真的吗？", "天气很好,他说。真的吗?", "天气很好，他说。\n真的吗？"),
        ("吾輩は\n猫である。", "吾輩は猫である", "吾輩は\n猫である"),
        ("قال إن\u00a0الكـــتاب جديد.", "قال إن الكتاب جديد", "قال إن\u00a0الكـــتاب جديد"),
        ("The ofﬁce was ﬁne.", "The office was fine.", "The ofﬁce was ﬁne."),
        ("He swam oﬀ", "He swam off", "He swam oﬀ"),
        ("le caﬁ\u0301 noir", "le cafí noir", "le caﬁ\u0301 noir"),
        ("Il dit : non merci.", "Il dit: non merci", "Il dit : non merci"),
        ("Well… he left.", "Well... he left.", "Well… he left."),
        ("so it goes", "...so it goes, ", "so it goes"),
        ("zero\u200bwidth here", "zerowidth here", "zero\u200bwidth here"),
        ("It rose 5%.", "**It rose 5%**", "It rose 5%"),
        ("ANESTHESIA: , General", "ANESTHESIA: General.", "ANESTHESIA: , General"),
        (
            "The “Seller” (as amended) sold it",
            "The Seller, as amended, sold it",
            "The “Seller” (as amended) sold it",
        ),
        ("**Age**: 54 years", "Age 54 years", "Age**: 54 years"),
    ],
)
def test_typographic_differences_are_accepted(document: str, quote: str, shown: str) -> None:
    for text, begin in ((document, 0), (f"{'Start. ' * 50}{document} End.", 350)):
        verified = Verifier(text).verify(quote)
        assert verified.result == "normalised"
        assert verified.spans[0].start >= begin
        assert check(text, quote) == ("normalised", [shown])


@pytest.mark.parametrize(
    ("document", "quote"),
    [
        ("She left home.", "he left home"),  # begins within a word
        ("He left homeward.", "He left home"),
        ("He left home.", "he left home."),  # case
        ("He left home.", "He left hope."),
        ("He left home.", "He  lefthome."),
        ("Was it right? No. He went", "Was it right. No. He went"),  # a mark that is said
        ("He took .5 mg a day", "He took 5 mg a day"),
        ("Room 12, 345 of them", "Room 12 345 of them"),
        ("He went to e.g. Bonn", "He went to eg Bonn"),
        ("nowhere to go", "now here to go"),
        ("It takes 1.5 mg a day.", "5 mg a day"),
        ("It takes 1.5 mg a day.", "It takes 1"),
        ("It takes 15 mg a day.", "5 mg a day"),
        ("It takes 3-4 mg a day.", "takes 34 mg a day"),
        ("It rose by 10² or so.", "It rose by 10"),
        ("It rose by 5 points.", "It rose by 5%"),
        ("Le cafe\u0301 noir", "Le cafe"),
        ("Le café noir", "Le cafe noir"),
        ("The ﬁsh swam.", "ish swam"),
        ("He swam oﬀ.", "He swam of"),
        ("we're here now", "were here now"),
        ("他们昨天去了北京。", "他们昨天去了南京"),
        ("कि वह गया था", "क वह गया था"),
        ("Anything.", ""),
        ("Anything.", "…"),
        ("", "Anything."),
    ],
)
def test_other_differences_are_not_accepted(document: str, quote: str) -> None:
    assert check(document, quote) == ("missing", [])


@pytest.mark.parametrize("omission", ["...", "…", " … ", "[…]", " [...] ", "(...)", " . . . "])
def test_omissions_divide_a_quote(omission: str) -> None:
    document = "The dog saw the cat and, after all was said, ran far away home."
    assert check(document, f"The dog saw{omission}was said,{omission}far away home.") == (
        "elided",
        ["The dog saw", "was said,", "far away home."],
    )
    assert check(document, f"far away home{omission}The dog saw")[0] == "apart"
    assert check(document, f"The dog saw{omission}a bone")[0] == "missing"
    assert check(document, f"{omission}The dog saw{omission}") == ("normalised", ["The dog saw"])


def test_pieces_stand_in_one_passage() -> None:
    apart = "The lamp was lit at ten. It rained. The men went home to sleep."
    assert check(apart, "The lamp was … went home to sleep")[0] == "apart"
    assert check(apart, "The lamp was … The men went home")[0] == "elided"
    for end, match in (("\n", "elided"), ("\n\n", "apart"), ("\n \t\n", "apart")):
        divided = f"The lamp was lit at ten.{end}The men went home to sleep."
        assert check(divided, "The lamp was … The men went home")[0] == match
    assert check(apart, "The lamp was lit at ten. … The men went home")[0] == "elided"
    assert check(apart, "The lamp was … It rained. The men")[0] == "elided"
    assert (
        check(
            f"The lamp was cold.\n\nThe men went home. {apart}", "The lamp was … The men went home"
        )[0]
        == "elided"
    )
    assert (
        check(
            f"The lamp was {'x ' * 300}The lamp was {'x ' * 100}{apart[13:]}",
            "The lamp was … The men went home",
        )[0]
        == "elided"
    )
    for between, result in (("x " * 200, "elided"), ("x " * 300, "apart"), ("x \n\n", "apart")):
        assert (
            check(f"The lamp was {between}and the men went.", "The lamp was … the men went")[0]
            == result
        )


@pytest.mark.parametrize(
    ("document", "quote"),
    [
        ("It takes .5 mg a day.", "5 mg a day"),
        ("It takes 1/2 tablet a day.", "2 tablet a day"),
        ("It takes 10-20 mg a day.", "20 mg a day"),
        ("It takes 10–20 mg a day.", "It takes 10"),
        ("It takes 10 - 20 mg a day.", "20 mg a day"),
        ("It takes 1 250 mg a day.", "250 mg a day"),
        ("It takes 1\u202f250 mg a day.", "It takes 1"),
        ("It takes 1 1/2 tablets a day.", "1/2 tablets a day"),
        ("It takes 1½ tablets a day.", "½ tablets a day"),
        ("It fell by -12.4 percent.", "12.4 percent"),
        ("It fell by −12.4 percent.", "12.4 percent"),
        ("It takes < 5 mg a day.", "5 mg a day"),
        ("It takes ≥5 mg a day.", "5 mg a day"),
        ("It takes >5 mg a day.", "5 mg a day"),
        ("It costs $5 a day now.", "5 a day now"),
        ("It rose by 5% in May.", "It rose by 5"),
        ("It was 5 ± 2 in May.", "It was 5"),
        ("It was 10:30 in May.", "30 in May"),
        ("It has 5 mg/dL of it.", "It has 5 mg"),
        ("They re-sign the treaty.", "They resign the treaty"),
        ("They resign the treaty.", "They re-sign the treaty"),
        ("They re-sign the treaty.", "sign the treaty"),
        ("The un-ionized form is here.", "The unionized form is here"),
        ("They re-\nsign the treaty.", "sign the treaty"),
        ("It is well-known to us.", "It is well"),
        ("He can't go home now.", "He can"),
        ("他有二十五个苹果了。", "五个苹果了"),
        ("It is 1, 250 mg a day.", "It is 1,250 mg a day"),
        ("A dose. 5 mg a day.", "A dose .5 mg a day"),
        ("A dose. 5 mg a day.", ".5 mg a day"),
        ("It was 12.4 percent.", "-12.4 percent"),
        ("It was - 5 degrees.", "It was -5 degrees"),
        ("It is 5 mg a day.", ">5 mg a day"),
        ("He took aspirin (10 mg) at ten.", "He took aspirin (5 mg)"),
        ("He died (1998) at home.", "He died (1999)"),
    ],
)
def test_numbers_and_words_are_not_cut(document: str, quote: str) -> None:
    assert check(document, quote) == ("missing", [])


@pytest.mark.parametrize(
    "quote",
    [
        "The dog ran home. (chapter 2)",
        "The dog ran home. (Smith, p. 7).",
        "The dog ran home. [3]",
        "“The dog ran home.” — The Author",
        "The dog ran home.\n— the author, chapter 2",
        "The dog ran home.\n-- chapter 2",
        "The dog ran home.（第二章）",
        "The dog ran home. (on the last page)",
    ],
)
def test_an_attribution_is_left_out(quote: str) -> None:
    verified = Verifier("At ten\nThe dog ran home. The end.").verify(quote)
    assert verified.result == "normalised"
    assert verified.text.strip("“”.") == "The dog ran home"
    assert quote.startswith(verified.text)


@pytest.mark.slow
def test_ten_megabytes_and_a_hundred_quotes() -> None:
    sentence = (
        "“Where’s the well-\nknown house?” he asked, number {}, and nobody — nobody! — knew. "
    )
    document = "".join(sentence.format(i) for i in range(10_000_000 // len(sentence)))
    verifier = Verifier(document)
    for i in range(0, 1000, 20):
        assert verifier.verify(f"he asked, number {i}, and nobody--nobody!--knew").is_verified
        assert not verifier.verify(f"he asked, number {i}, and somebody--nobody!--knew").is_verified


def test_a_text_that_is_one_word_is_not_searched_place_by_place() -> None:
    verifier = Verifier("ab" * 20_000 + ". She left at noon, and never came back.")
    with patch.object(normal, "_beside", side_effect=normal._beside) as seen:
        assert verifier.verify("ab" * 1_000).result == "missing"
        assert seen.call_count < 30_000
    assert verifier.verify("She left at noon, and never came back.").is_verified


def test_a_row_of_a_table_is_quoted_without_its_bars() -> None:
    document = Document(
        "Discharge.\n\n| Drug | Dose | Since |\n|---|---|---|\n| Bisoprolol | 2.5 mg | 2019 |\n| Apixaban | 5 mg | 2021 |\n"
    )
    reply = "> Bisoprolol 2.5 mg 2019\n\n> Bisoprolol 5 mg 2021\n\n> Bisoprolol 2.5 mg"
    evidence, unverified = collect([StepReply("drug", reply)], document)
    assert [passage.text for passage in evidence] == ["| Bisoprolol | 2.5 mg | 2019 |"]
    assert [quote.text for quote in unverified] == ["Bisoprolol 5 mg 2021", "Bisoprolol 2.5 mg"]


CELLS = "name,2008,2009,2010\nsales,$5,$6,$8\ncosts,$4,$6,3–5\nGout,,2020,\nrent,,1,\nrent,,1,\n"


@pytest.mark.parametrize(
    ("quote", "result", "row"),
    [
        ("| sales | $5 | $6 |", "normalised", "sales,$5,$6,$8"),
        ("| $4 | $6 |", "normalised", "costs,$4,$6,3–5"),
        ("| $6 | 3-5 |", "normalised", "costs,$4,$6,3–5"),
        ("| $4 | $5 |", "missing", ""),
        ("| sales | $6 |", "missing", ""),  # not adjacent
        ("| sales | $5 | $6 | $7 |", "missing", ""),
        ("| ales | $5 |", "missing", ""),
        ("| sales |", "missing", ""),
        ("| sales |\n$5 |", "missing", ""),
        ("| | |", "missing", ""),
        ("Gout 2020", "normalised", "Gout,,2020,"),
        ("rent 1", "short", ""),  # stands twice
    ],
)
def test_a_row_is_found_by_its_cells(quote: str, result: str, row: str) -> None:
    found = Verifier(CELLS, TableRowFinder(Document(CELLS))).verify(quote)
    assert (found.result, [CELLS[s.start : s.end] for s in found.spans]) == (
        result,
        [row] if row else [],
    )


@pytest.mark.parametrize(
    ("document", "quote", "result", "places"),
    [
        ("He sold one boat. He sold one boat.", "He sold one boat.", "normalised", ["He sold one boat."] * 2),
        ("He sold one boat.", "He sold one boat", "exact", ["He sold one boat"]),
        ("A boat, a boat, a 2 mg boat", "boat", "short", ["boat"] * 3),
        ("It is 2 mg or 2 mg.", "2", "short", ["2"] * 2),
        ("Her dog saw, at ten, the man. Her dog saw, at two, the man.", "Her dog saw ... the man", "elided",
         ["Her dog saw, at ten, the man", "Her dog saw, at two, the man"]),
        ("Her dog saw – the man. Her dog saw - the man.", "Her dog saw ... the man", "normalised", ["Her dog saw – the man", "Her dog saw - the man"]),
        ("He sold one boat.", "He sold two boats", "missing", [""]),
        (CELLS, "| $4 | $6 |", "normalised", ["costs,$4,$6,3–5"]),
        (CELLS, "rent 1", "short", ["rent,,1,"] * 2),
    ],
)  # fmt: skip
def test_every_place_of_a_quote(document: str, quote: str, result: str, places: list[str]) -> None:
    found = Verifier(document, TableRowFinder(Document(document))).every(quote)
    spans = [(q.spans[0].start, q.spans[-1].end) if q.spans else (0, 0) for q in found]
    assert [document[start:end] for start, end in spans] == places
    assert spans == sorted(set(spans))
    assert {each.result for each in found} == {result}


SHORT = "A liar and a dog. The dog saw B, and the dog ran away."
PIECES = "The dog of the man ran to the house with a bone and then to the wood."
HOME = "The dog ran home. The end."


@pytest.mark.parametrize(
    ("document", "quote", "result", "shown"),
    [  # shown: the passages; None for the quote itself
        # a quote that ends between tokens
        ("They re-\nsign the treaty.", "They resign the treaty", "normalised", ["They re-\nsign the treaty"]),
        ("They re-\nsign the treaty.", "They re-sign the treaty", "normalised", ["They re-\nsign the treaty"]),
        ("An exam- ple of it.", "An example of it", "normalised", ["An exam- ple of it"]),
        ("It takes 5 mg a day.", "It takes 5", "exact", None),
        ("Il lit l’homme de paille.", "l'homme de paille", "normalised", ["l’homme de paille"]),
        ("It was −12.4 percent.", "It was -12.4 percent", "normalised", ["It was −12.4 percent"]),
        ("It was −12.4 percent.", "–12.4 percent", "normalised", ["−12.4 percent"]),
        ("problems:,1. Gout is bad.", "1. Gout is bad!", "normalised", ["1. Gout is bad"]),
        ("- 5 mg a day.\n- 6 mg", "5 mg a day!", "normalised", ["5 mg a day"]),
        ("> 5 men came\nby.", "5 men came by", "normalised", ["5 men came\nby"]),
        ("He left—5 men came.", "“5 men came”", "normalised", ["5 men came"]),
        ("The dog's bowl is full.", "The  dog", "normalised", ["The dog"]),
        # what stands around a quote, a "no" too, is for the reader of its passage
        ("There is no evidence of fever today.", "evidence of fever today", "exact", None),
        # a short one needs one place
        (SHORT, "liar", "exact", None),
        (SHORT, "dog", "short", []),
        (SHORT, "B", "short", []),
        (SHORT, "cat", "missing", []),
        (SHORT, "the dog ran away", "exact", None),
        ("他们昨天去。他们昨天去。", "他们昨天去", "short", []),
        ("他们昨天去了北京。他们昨天去了北京。", "他们昨天去了北京", "exact", None),
        ("He left us. He left us.", "He left us", "short", []),
        ("He left us all now. He left us all now.", "He left us all now", "exact", None),
        ("It takes .5 mg.", ".5 mg", "exact", None),
        # short pieces, empty omissions, an ellipsis of the document
        (PIECES, "the ... to ... with ... and ... then", "short", []),
        (PIECES, "The dog ... a ... to the wood", "short", []),
        (PIECES, "The dog ... a bone ... the wood", "short", []),
        (PIECES, "The dog ... to the wood", "elided", ["The dog", "to the wood"]),
        (PIECES, "The dog of the ... bone", "elided", ["The dog of the", "bone"]),
        (PIECES, "The dog of the ... ran", "short", []),
        ("He left – for good.", "He left ... for good", "normalised", ["He left – for good"]),
        ("Well ... he left us.", "Well ... he left us.", "exact", None),
        # words that are added within a sentence are no attribution
        ("The committee (which had never met before) approved the merger.", "The committee ... approved the merger", "elided",
         ["The committee", "approved the merger"]),
        ("The dog ran home (chapter 2 says so).", "The dog ran home (chapter 2 says so).", "exact", None),
        (HOME, "The dog ran home (who was cold)", "missing", []),
        (HOME, "The dog ran home (chapter 2)", "missing", []),
        (HOME, "The dog ran home. (Not at all)", "normalised", ["The dog ran home."]),
        (HOME, "The dog ran home — and The cat", "missing", []),
        (HOME, "The dog ran home - the cat did not", "missing", []),
        (HOME, "The dog ran home. -30.2", "missing", []),
        (HOME, "The dog ran home (" + "A" * 100 + ")", "missing", []),
    ],
)  # fmt: skip
def test_what_a_quote_is_found_as(
    document: str, quote: str, result: str, shown: list[str] | None
) -> None:
    assert check(document, quote) == (result, [quote] if shown is None else shown)
