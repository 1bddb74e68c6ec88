"""The rules about values of fields: each row of the table in docs/answers.md, and every pattern by the row that it serves."""

from __future__ import annotations

import asyncio
import json
import re
from itertools import cycle
from typing import Any, NamedTuple

import pytest

from pearl import Document, Pearl
from pearl.documents.record import FieldResult
from pearl.llm import CheckTask, Request
from tests.models import Reading, verdicts
from tests.root import ROOT


class Rule(NamedTuple):
    """A row of the table; a value with its quote, or without one if the quote is the text."""

    name: str
    field: str
    text: str
    accepted: tuple[Any, str | None]
    refused: tuple[Any, str | None]


def rules() -> list[Rule]:
    lines = (ROOT / "docs/answers.md").read_text("utf-8").splitlines()
    start = lines.index("| rule | field | text | accepted | refused |") + 2
    found: list[Rule] = []
    for line in lines[start:]:
        if not line.startswith("|"):
            return found
        name, field, text, *values = (
            cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]
        )
        field, text = field.strip("`"), text.strip("`").replace("⏎", "\n")
        found.append(Rule(name, field, text, *(_said(field, text, each) for each in values)))
    raise AssertionError("the table has no end")


def _said(field: str, text: str, cell: str) -> tuple[Any, str | None]:
    value, _, quote = cell.partition(" from ")
    value = value.strip("`")
    is_text = re.search(r": (?:str|text|date|'|yes)", field)
    given = value if is_text else json.loads(value) if value not in ("often",) else value
    return given, None if quote == "nothing" else quote.strip("`") or text


RULES = rules()


def result_of(
    rule: Rule, said: tuple[Any, str | None], verdict: str, **settings: Any
) -> FieldResult:
    """The result of a field whose value a model gives and a checker judges."""
    name, (value, quote) = rule.field.partition(":")[0], said
    values = value if isinstance(value, list) else [value]
    claims = [
        {"value": each, "quote": "- " + each if rule.name == "entries" else quote}
        for each in values
    ]

    def reply(request: Request) -> str:
        if isinstance(request.task, CheckTask):
            return verdicts(*[verdict] * len(request.task.claims))
        return json.dumps({name: claims if isinstance(value, list) else claims[0]})

    plan = f'1. record = EXTRACT(CTX, "{rule.field}") : Extract'
    document = Document(f"The letter begins.\n{rule.text}\nThe letter ends.", "letter.txt")
    answer = asyncio.run(Pearl(Reading(reply), **settings).execute(plan, document))
    assert answer.record is not None
    return answer.record.fields[name]


def told(result: FieldResult) -> Any:
    return result.plain if result.entries else result.value


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.name}: {rule.accepted[0]}")
def test_a_rule_accepts_and_refuses_its_examples_whatever_the_checker_says(rule: Rule) -> None:
    found = result_of(rule, rule.accepted, "supported")
    assert (found.state, told(found), found.why) == ("found", rule.accepted[0], "")
    leaves = [f for entry in found.entries for f in entry.values()] or [found]
    wanted = {"judged"} if rule.name == "unknown" else {"copied", "normalised", "checked"}
    assert {leaf.basis for leaf in leaves} <= wanted
    refused = result_of(rule, rule.refused, "supported")
    assert (refused.state, refused.value) == ("undecided", None)
    assert refused.why


@pytest.mark.parametrize(
    ("rule", "verdict"), [*zip(RULES, cycle(["not stated", "contradicted", "silence", "off"]))]
)
def test_no_value_is_certain_without_a_checker(rule: Rule, verdict: str) -> None:
    settings = {"check": "off"} if verdict == "off" else {}
    result = result_of(rule, rule.accepted, verdict, **settings)
    leaves = [f for entry in result.entries for f in entry.values()] or [result]
    if verdict in ("silence", "off") or rule.name == "unknown":
        assert {(leaf.state, leaf.basis) for leaf in leaves} == {("found", "judged")}
    else:
        assert {leaf.state for leaf in leaves} == {"undecided"}
        assert all(("else" in leaf.why) == (verdict == "contradicted") for leaf in leaves)


NO = object()  # undecided

NEIGHBOURS = [
    # field, text (with the quote behind `|` if it is another), value in the reply, value of the result, and its
    # basis, or a part of the reason why it has none
    ("patient: str", "Maria Keller was seen", "Maria Keller", "Maria Keller", "copied"),
    ("patient: str", "MARIA KELLER was seen", "Maria Keller", "Maria Keller", "normalised"),
    ("patient: str", "MARIA KELLER was seen", ["Maria Keller", "maria keller"], "Maria Keller", "normalised"),
    ("patient: str", "Patient: Keller, Maria", "Maria Keller", "Maria Keller", "checked"),
    ("patient: str", "Anna Keller-Braun was seen", "Anna Keller", NO, ""),
    ("patient: str", "Wir sahen Annas Haus", "Anna", "Anna", "checked"),
    ("city: str", "서울에서 태어났다", "서울", "서울", "checked"),
    ("city: str", "서울에서 태어났다", "울", NO, ""),
    ("city: str", "İstanbul'da yaşıyor", "İstanbul", "İstanbul", "checked"),
    ("city: str", "Ankara’dan geldi", "Ankara", "Ankara", "checked"),
    ("city: str", "Ankara’dan geldi", "kara", NO, ""),
    ("dose: str", "the 'A5'", "A", NO, ""),
    ("account: str", "from DE89 3704 0044 05 on", "DE89 3704", NO, ""),
    ("account: str", "from DE89 3704 0044 05 on", "3704 0044 05", NO, "part of a longer number"),
    ("account: text", "from DE89 3704 0044 05 on", "3704 0044", NO, ""),
    ("mail: str", "write to lee@example.org.uk", "lee@example.org", NO, ""),
    ("smoker: yes|no", "a pack a day", True, "yes", "checked"),
    ("smoker: yes|no", "a pack a day", False, "no", "checked"),
    ("smoker: bool", "a pack a day", "Yes", True, "checked"),
    ("smoker: bool", "a pack a day", "no", False, "checked"),
    ("smoker: bool", "a pack a day", "false", False, "checked"),
    ("smoker: bool", "a pack a day", [True, False], NO, "the document says yes (letter.txt"),
    ("grade: mild|severe", "a SEVERE case", "severe", "severe", "copied"),
    ("grade: mild|severe", "she nearly died", "severe", "severe", "checked"),
    ("day: date", "on 2021-03-05", "5 March 2021", "2021-03-05", "copied"),
    ("day: date", "am 05.03.2021", "2021-03-05", "2021-03-05", "normalised"),
    ("day: date", "on 5 March 2021", "2021-03", NO, "no date"),
    ("day: date", "on 5 March 2021", "2021-03-06", NO, "the quote has the date 5 March 2021"),
    ("day: date", "from 5 March 2021 to 7 March 2021", "2021-03-06", NO, "2 dates stand in the quote: 5 March 2021, 7 March 2021"),
    ("day: date", "on Monday", "2021-03-06", NO, "the quote has no date"),
    ("n: int", "1, 2, 3 or 4", 5, NO, "4 numbers stand in the quote: 1, 2, 3, ..."),
    ("day: date", "on 03/05/2021", "2021-03-05", NO, "may be swapped"),
    ("day: date", "on 5 and 6 March 2021", "2021-03-05 or 2021-03-06", NO, ""),
    ("day: date", "on 6 March 2021", "seen 6 March 2021", NO, ""),
    ("day: date", "on 03/05/2021", "03/05/2021", NO, ""),
    ("finding: text", "a sum of 1.250 in all", "1.250 in sum", "1.250 in sum", "checked"),
    ("finding: text", "a sum of 1.250 in all", "1.350 in sum", NO, ""),
    ("finding: text", "12\u00a0boats left", "left: 12 boats", "left: 12 boats", "checked"),
    ("finding: text", "5 mg of aspirin a day", "aspirin, 5 mg", "aspirin, 5 mg", "checked"),
    ("finding: text", "5 mg of aspirin a day", "aspirin, 5 g", NO, ""),
    ("finding: text", "The release is 1.2.3", "Release 1.2.3", "Release 1.2.3", "checked"),
    ("finding: text", "The release is 1.2.3", "Release 1.2.4", NO, "'1.2.4' is not in the quote"),
    ("finding: text", "5-10 mg daily", "5 mg a day", NO, ""),
    ("finding: text", "5-10 mg daily", "5-10 mg a day", "5-10 mg a day", "checked"),
    ("n: int", "one boat", 1, 1, "normalised"),
    ("n: int", "twenty-one boats", 21, 21, "normalised"),
    ("n: int", "einundzwanzig Boote", 21, NO, ""),
    ("n: int", "fifty-odd boats", 50, NO, ""),
    ("n: int", "about thirty nine boats", 39, 39, "normalised"),
    ("n: int", "Age 54, weight 70|weight 70", 54, NO, ""),
    ("n: int", "Age 54, weight 70|weight 70", 70, 70, "copied"),
    ("n: int", "Age 54, weight 70|Age 54", 70, NO, ""),
    ("n: int", "Age 54, weight 70|Age 54", 54, 54, "copied"),
    ("year: int", "founded on 5 March 2021", 2021, 2021, "copied"),
    ("start_year: int", "in 2021 Acme was founded", 2021, 2021, "copied"),
    ("n: int", "founded on 5 March 2021", 5, NO, ""),
    ("n: int", "2万5千", 2, NO, ""),
    ("n: int", "in room 12-A", 12, NO, ""),
    ("n: int", "10-20 mg", 20, NO, ""),
    ("n: int", "10 ± 2 mg", 10, NO, ""),
    ("n: int", "version 2.15", 15, NO, ""),
    ("n: int", "version 1.2.3 has 12 parts", 12, 12, "copied"),
    ("n: number", "version 1.2.3 has 12 parts", 1.2, NO, "more than one number"),
    ("n: int", "共2万人", "2万", 20_000, "normalised"),
    ("temp_c: number", "38 Celsius", 38, 38, "copied"),
    ("loss_usd: number", "a loss of ($1,250)", -1_250, -1_250, "normalised"),
    ("n: number", "1.250 of them", 1.25, NO, "may group thousands"),
    ("n: number", "1.25 of them", 1.25, 1.25, "copied"),
    ("price_usd: number", "code 1-2-3-4-5-6-7, with then a fee of $25", 25, 25, "copied"),
    ("n: int", "at 12:30 today", 30, NO, ""),
    ("n: int", "3 boats, 3.5 t", 3.5, NO, ""),
    ("n: int", "3 boats", True, NO, ""),
    ("n: number", "9 boats", 9e45, NO, ""),
    ("age: int", "Age: 54岁", 54, 54, "copied"),
    ("share: number", "12.5% of it", 12.5, 12.5, "copied"),
    ("share: number", "12.5 % of it", 0.125, 0.125, "normalised"),
    ("share: number", "12.5 kg of it", 0.125, NO, ""),
    ("dose_mg: number", "12.5 % of it", 0.125, NO, ""),
    ("price_eur: number", "5€ each", 5, 5, "copied"),
    ("price_eur: number", "$5 each", 5, NO, "the quote gives"),
    ("price_sek: number", "500 SEK", 500, 500, "copied"),
    ("price_sek: number", "500 NOK", 500, NO, ""),
    ("price_usd: number", "Price (in USD): 500", 500, 500, "copied"),
    ("price_eur: number", "Price (in USD): 500", 500, NO, ""),
    ("weight_kg: number", "weight (70 kg)", 70, 70, "copied"),
    ("weight_kg: number", "She weighed 60|60", 60, 60, "copied"),
    ("weight_kg: number", "She took 60 tablets|60", 60, NO, ""),
    ("loss: number", "5 EUR, 3 thousand", 3, NO, ""),
    ("revenue: number (in millions)", "Revenue: 3.2", 3.2, NO, "no caption names the scale of '3.2'"),
    ("revenue: number (in millions)", "EUR million, 2024\nRevenue: 3.2|Revenue: 3.2", 3.2, 3.2, "copied"),
    ("revenue: number (in millions)", "1. Results (EUR million unless stated)\n\n2024 2023\nRevenue 3.2 3.1|Revenue 3.2 3.1", 3.2, 3.2, "copied"),
    ("revenue: number (in millions)", "Debt (in millions) 5\nRevenue: 3.2|Revenue: 3.2", 3.2, NO, "no caption"),
    ("revenue: number (in millions)", "It has millions of users.\nRevenue: 3.2|Revenue: 3.2", 3.2, NO, "no caption"),
    ("revenue: number (in millions)", "£m\nDebt 5\nRevenue: 3.2|Revenue: 3.2", 3.2, 3.2, "copied"),
    ("revenue: number (in millions)", "In 2024, in millions and in thousands: 3.2", 3.2, NO, "another scale"),
    ("revenue: number (in millions)", "Revenue was EUR 412,700,000", 412.7, 412.7, "normalised"),
    ("revenue: number (in millions)", "Revenue (in thousands) was 412,700,000", 412.7, NO, ""),
    ("revenue: number", "Revenue (in thousands) was 412,700", 412_700, NO, "another scale"),
    ("revenue: number", "EUR thousand\nDebt 5\nSites, staff and all else\nStaff 412|Staff 412", 412, 412, "copied"),
    ("revenue: number (in millions)", "Results (millions)\nRevenue: 3.2|Revenue: 3.2", 3.2, 3.2, "copied"),
    ("revenue: number (in millions)", "Sites sold for 2 millions of EUR\nRevenue: 3.2|Revenue: 3.2", 3.2, NO, "no caption"),
    ("revenue: number", "(in thousands)\n" + "\xad" * 50 + "Revenue: 412,700|Revenue: 412,700", 412_700, NO, "another scale"),
    ("age: int (in years)", "Fees in thousands of EUR, aged 54", 54, 54, "copied"),
    ("year: int", "Fees in thousands of EUR, 2024", 2024, 2024, "copied"),
    ("age: int (in years)", "aged 18 months", 18, NO, "the quote gives '18 months', the field is in years"),
    ("price_eur: number (in millions)", "USD 161.5 million", 161.5, NO, "the quote gives '161.5 million $'"),
    ("length_m: number (of a million boats, in metres)", "12 m long", 12, NO, "no caption"),
    ("doses_per_day: int", "3 tablets a day", 3, 3, "copied"),
    ("price_eur_per_kg: number", "EUR 3.20 per kg", 3.2, 3.2, "normalised"),
    ("price_eur_per_kg: number", "USD 3.20 per kg", 3.2, NO, "the field is in €"),
    ("dose_mg_per_kg: number", "5 mg/kg", 5, 5, "copied"),
    ("dose_mg_per_kg: number", "5 g", 5, NO, "in mg/kg"),
    ("floor: int", "2nd floor", 2, NO, "'2' is unclear: a number that is not written out"),
    ("revenue: number", "3.2 thousand, 3 billion", 3_200, 3_200, "normalised"),
    ("age: int", "aged 54", "54", 54, "copied"),
    ("age: int", "aged 54 or 55", "54 or 55", NO, ""),
    ("age: int", "aged 54", "not known to me", NO, ""),
    ("dose_mg: number", "0.5 g daily", "500 mg", 500, "normalised"),
    ("dose_mg: number", "0.5 g daily", "0.5 g", 500, "normalised"),
    ("dose_mg: number", "5 ml daily", "5 ml", NO, ""),
    ("dose_mg: number", "She took 50 mg, then 60 mg|60 mg", 60, 60, "copied"),
    ("dose_mg: number", "Dose:\n- 60 mg|60 mg", 60, 60, "copied"),
    ("dose_mg: number", "Dose (60 mg) a day|60 mg", 60, 60, "copied"),
    ("dose_mg: number", "Dose\u200b\u200b\u200b\u200b\u200b\u200b open: 6, then 60 mg|open: 6, then", 60, NO, ""),
    ("page: int", "54 and 54|54", 54, 54, "copied"),
    ("dose_mg: number", "5 mg daily", "5-10 mg", NO, ""),
    ("seen: text", "on 5 May 2024 at 14:30", "2024-05-05T14:30:00", "2024-05-05T14:30:00", "checked"),
    ("seen: text", "on 5 May 2024 at 2:30 pm", "2024-05-05T14:30", "2024-05-05T14:30", "checked"),
    ("seen: text", "on 5 May 2024 at 14:30", "2024-05-05T15:30:00", NO, "the time 15:30:00 is not in the quote"),
    ("seen: text", "on 5 May 2024 at 14:30", "2024-05-06T14:30:00", NO, "is not in the quote"),
    ("seen: text", "on 5 May 2024 at 14:30", "2024-05-05T14:30:00Z", NO, "the offset +00:00 is not in the quote"),
    ("seen: text", "on 5 May 2024, 14:30 UTC", "2024-05-05T14:30:00Z", "2024-05-05T14:30:00Z", "checked"),
    ("seen: text", "on 5 May 2024", "2024-05-05T09:00:00", NO, "the time 09:00:00 is not in the quote"),
    ("at: text", "at 14:30", "14:30:00", "14:30:00", "checked"),
    ("at: text", "at 9:30 am", "09:30", "09:30", "checked"),
    ("took: text", "for 90 minutes", "PT90M", "PT90M", "checked"),
    ("took: text", "for 90 minutes", "PT80M", NO, "'80' is not in the quote"),
]  # fmt: skip


@pytest.mark.parametrize(("field", "text", "value", "wanted", "basis"), NEIGHBOURS)
def test_a_value_has_the_basis_of_its_rule(
    field: str, text: str, value: Any, wanted: Any, basis: str
) -> None:
    text, _, quote = text.partition("|")
    rule = Rule("", field, text, (None, ""), (None, ""))
    result = result_of(rule, (value, quote or text), "supported")
    if wanted is NO:
        assert (result.state, result.value) == ("undecided", None)
        assert basis in result.why
    else:
        assert (result.state, result.value, result.basis) == ("found", wanted, basis)
