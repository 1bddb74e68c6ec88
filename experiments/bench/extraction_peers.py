"""What does an extraction by instructor and by langextract cost this process, where they are installed? Prints one JSON line.

    python experiments/bench/extraction_peers.py [--documents N]

The documents, the fields and the oracle of `extraction.py`; replies come from this process, so no client
is part of it. Processor time of a document, the median.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from datetime import date
from importlib.util import find_spec
from statistics import median
from typing import Any, Literal

from extraction import SCALARS, Made, made, reply_of
from pydantic import BaseModel, create_model


def values_of(doc: Made) -> dict[str, Any]:
    """What the oracle says, without its quotes: of values that contradict each other, the first."""

    def plain(said: Any) -> Any:
        if isinstance(said, list):
            return [plain(each) for each in said]
        if isinstance(said, dict):
            return said["value"] if "quote" in said else {k: plain(v) for k, v in said.items()}
        return said

    found: dict[str, Any] = plain(json.loads(reply_of(doc)))
    return {k: v[0] if k in SCALARS and isinstance(v, list) else v for k, v in found.items()}


def with_instructor() -> Callable[[Made], object]:
    """Fields as a pydantic model; the completion is made here."""
    import instructor
    from openai.types.chat import ChatCompletion

    class Drug(BaseModel):
        name: str
        dose_mg: float | None = None

    kinds: dict[str, Any] = {
        "born": date, "admitted": date, "age": int, "weight_kg": float, "creatinine": float,
        "invoice_eur": float, "consent": bool, "smoker": Literal["yes", "no", "unknown"],
        "severity": Literal["mild", "moderate", "severe"],
    }  # fmt: skip
    fields: dict[str, Any] = {name: (kinds.get(name, str) | None, None) for name in SCALARS}
    record = create_model("Record", **fields, drugs=(list[Drug], []), allergies=(list[str], []))
    reply = ""

    def create(**_: Any) -> ChatCompletion:
        message = {"role": "assistant", "content": reply}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        said = {"id": "a", "object": "chat.completion", "created": 1, "model": "m"}
        return ChatCompletion.model_validate(said | {"choices": [choice]})

    ask = instructor.patch(create=create, mode=instructor.Mode.JSON)

    def extract(doc: Made) -> object:
        nonlocal reply
        reply = json.dumps(values_of(doc), ensure_ascii=False)
        text = f"Which values does the document state?\n\n{doc.text}"
        return ask(response_model=record, messages=[{"role": "user", "content": text}])

    return extract


def with_langextract() -> Callable[[Made], object]:
    """Fields as extractions of a text, with the value as an attribute."""
    import langextract
    from langextract.core.base_model import BaseLanguageModel
    from langextract.core.data import ExampleData, Extraction
    from langextract.core.types import ScoredOutput

    reply = ""

    class Oracle(BaseLanguageModel):
        def infer(self, batch_prompts: Any, **_: Any) -> Iterator[list[ScoredOutput]]:
            for _prompt in batch_prompts:
                yield [ScoredOutput(1.0, reply)]

    shown = Extraction("age", "Age: 70", attributes={"value": "70"})
    example = ExampleData("Age: 70. The ward was quiet.", [shown])

    def extract(doc: Made) -> object:
        nonlocal reply
        stated = [(name, each) for name, found in doc.fields.items() for each in found]
        stated += [("allergies", each) for each in doc.allergies]
        stated += [
            (name, each)
            for pair in doc.drugs
            for name, each in zip(("drug", "dose"), pair, strict=True)
        ]
        found = [{n: s.quote, f"{n}_attributes": {"value": str(s.value)}} for n, s in stated]
        reply = json.dumps({"extractions": found}, ensure_ascii=False)
        return langextract.extract(
            doc.text, prompt_description="Which values does the document state?", examples=[example],
            model=Oracle(), max_char_buffer=20_000, show_progress=False, use_schema_constraints=False,
            fence_output=False,
        )  # fmt: skip

    return extract


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--documents", type=int, default=20)
    n = parser.parse_args().documents
    found: dict[str, Any] = {"bench": "extraction_peers", "documents": n}
    for name, peer in (("instructor", with_instructor), ("langextract", with_langextract)):
        if find_spec(name) is None:
            continue
        extract, times = peer(), []
        for seed in range(n + 1):
            doc = made(seed)
            began = time.process_time()
            extract(doc)
            times.append(1_000 * (time.process_time() - began))
        found[name] = round(median(times[1:]), 2)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
