"""A service with a directory (a table), rules (a corpus of Markdown) and reports (a folder): files, and readers that quote them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from pearl.llm import ActionTask, ItemsTask, LookupTask, Request
from tests.models import written

TOWNS = (
    "Arden",
    "Boscombe",
    "Corley",
    "Dunmore",
    "Esk",
    "Farrow",
    "Glenby",
    "Holt",
    "Ivel",
    "Jarrow",
)
TRADES = ("pharmacy", "dentist", "eye doctor", "physiotherapist")
SUBJECTS = {
    "animals": "Assistance dogs may be brought into every clinic of the service.",
    "refunds": "A fee is refunded if the visit is cancelled 48 hours before it begins.",
    "lateness": "A patient who arrives more than 20 minutes late loses the appointment.",
    "minors": "A patient below the age of 16 is seen only together with a guardian.",
    "interpreters": "An interpreter is free of charge and is booked three days ahead.",
    "records": "Records are kept for 10 years after the last visit.",
    "parking": "Parking is free for two hours with the stamp of the reception.",
    "vaccines": "Vaccines for travel are given on Tuesdays and need a referral.",
    "letters": "A medical letter costs 15 euros and is ready within five working days.",
    "complaints": "A complaint is answered in writing within 14 days.",
}  # fmt: skip
YEARS = tuple(range(2014, 2024))


def visits(year: int) -> int:
    """The number that the report of a year states."""
    return 1_000 + 37 * (year - 2000)


def write_service(folder: Path) -> dict[str, str]:
    """Write the files of the service; returns the path of each source."""
    rows = [
        f"{trade.title()} of {town},{town},{trade},555-{i:02}{k}"
        for i, town in enumerate(TOWNS)
        for k, trade in enumerate(TRADES)
    ]
    (folder / "providers.csv").write_text("\n".join(["name,town,trade,phone", *rows]) + "\n")
    for kind in ("rules", "reports"):
        (folder / kind).mkdir()
    for subject, rule in SUBJECTS.items():
        text = f"# {subject.title()}\n\n{rule}\n\nThis rule holds in all clinics.\n"
        (folder / "rules" / f"{subject}.md").write_text(text)
    for year in YEARS:
        text = f"Report of {year}\n\nIn {year} the clinics counted {visits(year):,} visits.\n\nThe staff is thanked.\n"
        (folder / "reports" / f"{year}.txt").write_text(text)
    return {
        "providers": str(folder / "providers.csv"),
        "rules": str(folder / "rules"),
        "reports": str(folder / "reports"),
    }


ABOUT: Mapping[str, str] = {
    "providers": "who provides services: names, towns, trades and telephone numbers",
    "rules": "the rules that patients and clinics follow: fees, dogs, minors, refunds",
    "reports": "the yearly reports with figures of visits",
}


def read(request: Request) -> str:
    """A reader that says only what stands in its prompt, word for word."""
    task, shown = request.task, request.prompt
    if isinstance(task, LookupTask):
        town = next(name for name in TOWNS if name in task.question)
        trade = next(name for name in TRADES if name in task.question)
        conditions = [
            {"column": "town", "op": "is", "value": town},
            {"column": "trade", "op": "is", "value": trade},
        ]
        return json.dumps({"select": ["name", "phone"], "where": {"all": conditions}})
    if isinstance(task, ItemsTask):
        (asked,) = (value for _, value in task.arguments)
        words = asked.split()
        said = ["yes" if all(word in item for word in words) else "no" for item in task.items]
        return written(task, said)
    assert isinstance(task, ActionTask)
    asked = " ".join(value for _, value in task.arguments)
    if task.document is None:  # the composer
        return "\n".join(
            f"{value.splitlines()[-1].removeprefix('> ').rstrip('.')} [{n}]."
            for n, (_, value) in enumerate(task.arguments, 1)
        )
    year = re.search(r"\b20\d\d\b", asked)
    wanted = (
        f"In {year[0]} the" if year else next((r for s, r in SUBJECTS.items() if s in asked), "-")
    )
    line = next((line for line in shown.splitlines() if line.startswith(wanted)), None)
    return "Nothing found." if line is None else f"{line}\n> {line}"
