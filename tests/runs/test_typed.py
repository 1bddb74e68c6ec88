"""`pearl.extract` and typed answers: instances of a model, each with its evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, Field

import pearl
from pearl.errors import DataError, UsageError
from pearl.llm import Request
from pearl.llm.backends.scripted import Scripted
from pearl.llm.prices import Price


class Drug(BaseModel):
    name: str
    dose_mg: float | None = None


class Letter(BaseModel):
    patient: str
    age: int | None = Field(default=None, lt=120)
    drugs: list[Drug]


TEXTS = {
    "a.txt": "Maria Keller is 54 years old. She takes ibuprofen 400 mg.",
    "b.txt": "Georg Brandt, 61 years. This 67-year-old man takes no medicine.",
    "c.txt": "Ngozi Okafor is 154 years old.",
}


DOSE = "takes ibuprofen 400 mg"


def value(said: object, quote: str) -> dict[str, object]:
    return {"value": said, "quote": quote}


REPLIES = {
    "Keller": {
        "patient": value("Maria Keller", "Maria Keller is 54"), "age": value(54, "54 years"),
        "drugs": [{"name": value("ibuprofen", DOSE), "dose_mg": value(400, DOSE)}],
    },
    "Brandt": {
        "patient": value("Georg Brandt", "Georg Brandt, 61"),
        "age": [value(61, "61 years"), value(67, "67-year-old man")], "drugs": [],
    },
    "Okafor": {
        "patient": value("Ngozi Okafor", "Ngozi Okafor is"), "age": value(154, "154 years old"), "drugs": [],
    },
}  # fmt: skip


def reply(request: Request) -> str:
    prompt = request.messages[-1].content
    return next(json.dumps(said) for name, said in REPLIES.items() if name in prompt)


@pytest.fixture
def letters(tmp_path: Path) -> list[Path]:
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return [tmp_path / name for name in (*TEXTS, "missing.txt")]


def test_every_document_has_a_result(letters: list[Path]) -> None:
    a, b, c, missing = pearl.run(pearl.extract(Letter, letters, model=Scripted(reply)))
    assert a.value == Letter(
        patient="Maria Keller", age=54, drugs=[Drug(name="ibuprofen", dose_mg=400)]
    )
    assert a.fields["drugs[0].dose_mg"].evidence[0].text == DOSE
    # the ages are contradictory, and beyond the bound; both are optional
    assert [each.status for each in (a, b, c)] == ["answered", "degraded", "degraded"]
    assert [each.value and each.value.age for each in (a, b, c)] == [54, None, None]
    assert "61" in b.reasons[0]
    assert (b.partial["age"], b.undecided, a.undecided) == (None, ("age",), ())
    assert a.partial["drugs"] == [{"name": "ibuprofen", "dose_mg": 400}]
    assert '"exclusiveMaximum": 120' in c.reasons[0]
    assert (missing.status, missing.value, missing.fields) == ("failed", None, {})
    assert "no such file" in missing.reasons[0]
    assert [Path(each.document).name for each in (a, b, c, missing)] == [p.name for p in letters]


class Patient(BaseModel):
    class Address(BaseModel):
        city: str
        zip: str

    name: str
    smoker: Literal["yes", "no", "unknown"]
    home: Address | None = None
    drugs: list[Drug]


PATIENT = "Patient Maria Keller of 50667 Cologne takes ibuprofen 400 mg and cobalt 5 mg."


@pytest.mark.parametrize(
    ("changed", "status", "value"),
    [
        ({}, "answered", {}),
        ({"smoker": ("unknown", "")}, "answered", {"smoker": "unknown"}),
        ({"smoker": None}, "undecided", None),  # required
        ({"home.city": None}, "degraded", {"home": None}),
        ({"home.city": None, "home.zip": None}, "answered", {"home": None}),
        ({"drugs.0.name": None}, "degraded", {"drugs": [Drug(name="cobalt", dose_mg=5)]}),
        ({"drugs.0.dose_mg": (7, "cobalt 5 mg")}, "degraded", {"drugs": [Drug(name="ibuprofen"), Drug(name="cobalt", dose_mg=5)]}),
        ({"name": ("Max", "Max of 50667")}, "undecided", None),
    ],
)  # fmt: skip
def test_answered_means_that_nothing_is_missing(
    changed: dict[str, tuple[object, str] | None], status: str, value: dict[str, object] | None
) -> None:
    said = {
        "name": ("Maria Keller", "Patient Maria Keller"), "smoker": ("no", "takes no tobacco"),
        "home.city": ("Cologne", "of 50667 Cologne"), "home.zip": ("50667", "of 50667 Cologne"),
        "drugs.0.name": ("ibuprofen", "takes ibuprofen"), "drugs.0.dose_mg": (400, "ibuprofen 400 mg"),
        "drugs.1.name": ("cobalt", "and cobalt 5 mg"), "drugs.1.dose_mg": (5, "cobalt 5 mg"),
    } | changed  # fmt: skip
    text = PATIENT.replace(" takes", " takes no tobacco. She takes")
    claims = {path: one and {"value": one[0], "quote": one[1]} for path, one in said.items()}
    drugs = [{k: claims[f"drugs.{i}.{k}"] for k in ("name", "dose_mg")} for i in (0, 1)]
    reply = json.dumps({k: v for k, v in claims.items() if "drugs" not in k} | {"drugs": drugs})
    (result,) = pearl.run(
        pearl.extract(Patient, [pearl.Document(text)], model=Scripted(lambda request: reply))
    )
    whole = Patient(
        name="Maria Keller", smoker="no", home=Patient.Address(city="Cologne", zip="50667"),
        drugs=[Drug(name="ibuprofen", dose_mg=400), Drug(name="cobalt", dose_mg=5)],
    )  # fmt: skip
    assert (result.status, bool(result.reasons)) == (status, status != "answered")
    assert result.value == (None if value is None else whole.model_copy(update=value))


def test_a_limit_leaves_the_other_documents_without_a_value(letters: list[Path]) -> None:
    model = Scripted(reply)
    results = pearl.run(
        pearl.extract(
            Letter, letters[:2], model=model, max_cost_usd=0, price=Price(input_usd=1, output_usd=1)
        )
    )
    assert not model.requests
    assert [each.value for each in results] == [None, None]


def test_one_document_and_a_question() -> None:
    model = Scripted(reply)
    asker = pearl.Pearl(model)
    letter = pearl.Document(TEXTS["a.txt"], "a.txt")
    answer = pearl.run(asker.extract("patient: str, age: int?", letter))
    assert answer.value == {"patient": "Maria Keller", "age": 54}
    question = "Who takes a painkiller?"
    answer = pearl.run(asker.ask(question, letter, answer=Letter))
    assert isinstance(answer.value, Letter)
    assert (answer.question, answer.status) == (question, "answered")
    assert answer.to_dict()["value"]["drugs"] == [{"name": "ibuprofen", "dose_mg": 400.0}]
    assert question in model.requests[-1].messages[-1].content
    assert len(model.requests) == 2


def test_wrong_arguments_are_refused_before_a_call(letters: list[Path]) -> None:
    model = Scripted(reply)
    with pytest.raises(UsageError, match="several documents"):
        pearl.run(pearl.extract(Letter, str(letters[0]), model=model))
    with pytest.raises(DataError):
        pearl.run(pearl.extract({"type": "object"}, letters, model=model))
    assert not model.requests
