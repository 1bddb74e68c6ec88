"""Numbers, dates and quotations of a composed answer: each rule with a sentence that it refuses and one that it must not."""

from __future__ import annotations

import pytest

from pearl.replies.composed import read_composed

PAIRS = [
    # what the results have | a sentence that agrees | a sentence that does not
    ("It cost $3.2 million.", "It cost 3,200,000 dollars", "It cost $3.2 billion"),
    ("It cost $3.2 million.", "It cost $3.20m", "It cost 3.2 million"),
    ("Das Bild kostete 65,5 Mio. €.", "It cost 65.5 million euros", "It cost 65,5 Millionen $"),
    ("Le prêt est de 39 millions d'euros.", "It is €39 million", "It is 39 milliards d'euros"),
    ("Es waren 18.888.383 Euro.", "It was 18,888,383 euros", "It was 18,888,383 kroner and 18 euros"),
    ("Il y en a 26 151 997.", "There are 26,151,997", "There are 151 997"),
    ("The dose is 1.250 mg.", "It is 1.250 mg", "It is 1,250 mg"),
    ("The dose is 5 mg.", "It is 5 a day", "It is 5 kg"),
    ("The 12-month lease ended.", "It was of 12 months", "It was of 13 months"),
    ("48 % of them agreed.", "48 per cent agreed", "48 of them agreed"),
    ("48 of them agreed.", "48 agreed", "48 % agreed"),
    ("48 Prozent stimmten zu.", "48% agreed", "48 ‰ agreed"),
    ("It fell to -5 °C.", "It fell to minus 5", "It fell to 5 °C"),
    ("夜里很冷，气温为−56°C。", "It was −56 °C", "It was 56 °C"),
    ("On 22 February 1967 it sank.", "It sank on 1967-02-22", "It sank on 22 March 1967"),
    ("On 22 February 1967 it sank.", "It sank in 1967", "It sank in 1968"),
    ("On 05/06/2021 it sank.", "It sank on 05/06/2021", "It sank on 05/07/2021"),
    ("合同于1958年2月8日签署。", "Signed on 8 February 1958", "Signed on 2 August 1958"),
    ("Der Vertrag ist vom 25. Mai 1950.", "Er ist vom 25. Mai 1950", "Er ist vom 25. November 1950"),
    ("Twenty-three boats sank.", "23 boats sank", "24 boats sank"),
    ("They had 3 dozen.", "They had three dozen", "They had 3"),
    ("It is 1,200½ feet.", "It is 1200½ feet", "It is 1,200 feet"),
    ("It is 3 1/2 feet.", "It is 3.5 feet", "It is 3 feet or 1"),
    ("On the 5th he left.", "On day 5 he left", "On the 6th he left"),
    ("Aged 23 he left.", "Aged ２３ he left", "Aged ２４ he left"),
    ("99 boats sank.", "99 boats sank", "98. boats sank"),
    ("He ran 5k.", "He ran 5k", "He ran 5"),
    ("Nothing.", "One of them left", "One of the 2 left"),
    ('He said "we will not sell".', 'He said "we will not sell."', 'He said "we will sell"'),
    ("他写道：“我们不会出售。”", "他写道：“我们不会出售。”", "他写道：“我们会出售。”"),
    ("He sold it.", 'The "sale" was his', 'The "great sale" was his'),
]  # fmt: skip


@pytest.mark.parametrize(("support", "right", "wrong"), PAIRS)
def test_numbers_dates_and_quotations_are_those_of_the_results(
    support: str, right: str, wrong: str
) -> None:
    assert read_composed(f"{right} [1].", [support], {}, "").why == ""
    assert "which the results that it cites do not have" in (
        read_composed(f"{wrong} [1].", [support], {}, "").why
    )
    # What another result or the question has, is known or not.
    items = ["Something else.", support]
    assert read_composed(f"{right} [2].", items, {}, "").why == ""
    if any(map(str.isdigit, right)) and right != "On day 5 he left":
        assert read_composed(f"{right} [1].", items, {}, "").why
    assert read_composed(f"{right} [1].", items, {}, support).why == ""


def test_an_introduction_rests_on_what_follows_it() -> None:
    found = read_composed(
        "It rained [2]. So:\n\nTwo left:\n  - Ada [1]\n- Bob [3]\n\nAll others:",
        ["2", "x", "y"],
        {},
        "",
    )
    assert [(s.said, s.cites, s.rests_on) for s in found.sentences] == [
        ("It rained.", (1,), (1,)), ("Two left:", (), (0, 2)), ("Ada", (0,), (0,)), ("Bob", (2,), (2,)),
    ]  # fmt: skip
    assert [s.text for s in found.sentences] == ["It rained.", "Two left:", "  - Ada", "- Bob"]
    assert found.n_uncited == 2


@pytest.mark.parametrize(("text", "flaw", "n_bad"), [
    ("It leaked [1][2].", "", 0),
    ("It leaked [1][2][7].", "", 1),
    ("It leaked [1, 7, 8]. It sank [9].", "", 3),
    # the numbers of a list are no numbers of its sentences, others are
    ("- Ada left [1].\n1. Bob left [1].\n2. Karl left [2].", "", 0),
    ("1. Bob left [1].\n3. Karl left [2].", "it says '3'", 0),
])  # fmt: skip
def test_citations_of_no_result_are_counted(text: str, flaw: str, n_bad: int) -> None:
    found = read_composed(text, ["It leaked.", "All left."], {}, "")
    assert (found.why.partition(",")[0], found.n_bad_cites) == (flaw, n_bad)


SENTENCE = "It leaked so [1]. "


@pytest.mark.parametrize(("reply", "said", "why"), [
    ("It leaked [1]. {n} sank.", ["It leaked.", "2 sank."], ""),
    ("It leaked [1]. Who cares? It sank. [2][9]", ["It leaked.", "It sank."], ""),
    ("1. It leaked [1]\n2. {n} sank", ["It leaked", "2 sank"], ""),
    ("- It leaked [1]\n- {n} sank", ["It leaked", "2 sank"], ""),
    (SENTENCE * 40, ["It leaked so."] * 40, ""),
    (SENTENCE * 41, [], "it has 41 sentences"),
    (f"It leaked{' ' * 6_000}so [1].", [], "it has 6,016 characters"),
    ("1. It leaked [1]\n3. It sank [1]", [], "it says '3'"),
    ("It is 5 kg [1]", [], "it says '5 kg'"),
    ("{m} and {k} sank [1].", [], "it names '{m}'"),
    ("It leaked [1]\n| It leaked [1] |", [], "or is a table"),
    ("[1] It leaked.", [], "its citations stand before"),
    ("It sank [1].\n\u00a0[1] It leaked. [2] It rained.", [], "its citations stand before"),
    ("It leaked.", [], "no sentence cites a result"),
    ("It leaked:", [], "no sentence cites a result"),
    ("It leaked: [9]", [], "no sentence cites a result"),
    ("It leaked [0]", [], "no sentence cites a result"),
])  # fmt: skip
def test_a_reply_is_sentences_that_cite(reply: str, said: list[str], why: str) -> None:
    found = read_composed(reply, ["It leaked.", "n = 2"], {"n": (1, "2")}, "")
    assert [sentence.said for sentence in found.sentences] == said
    assert why in found.why
    assert bool(found.why) == (not said)
    assert found.n_bad_cites == ("[9]" in reply or "[0]" in reply)
    assert found.n_uncited == ("Who" in reply or "no sentence" in why)
