"""A service directory of a health organisation, made up by a seed, with the traps of real ones.

Clinics bear the names of other cities than theirs, or the same name as others; cities have official
names that nobody says; what people ask for stands in prose, and prose mentions what is not there.
"""

from __future__ import annotations

import csv
import random
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

N_RECORDS = 23_000

CITIES = {
    "Tel Aviv-Yafo": "Tel Aviv", "Jerusalem": "Jerusalem", "Haifa": "Haifa", "Be'er Sheva": "Beer Sheva",
    "Rishon LeZion": "Rishon", "Petah Tikva": "Petach Tikva", "Ashdod": "Ashdod", "Netanya": "Netanya",
    "Bnei Brak": "Bnei Brak", "Holon": "Holon", "Ramat Gan": "Ramat Gan", "Rehovot": "Rehovot",
    "Ashkelon": "Ashkelon", "Bat Yam": "Bat Yam", "Herzliya": "Herzlia", "Hadera": "Hadera",
    "Kfar Saba": "Kfar Sava", "Modi'in-Maccabim-Re'ut": "Modiin", "Nazareth": "Nazareth", "Lod": "Lod",
    "Ramla": "Ramla", "Ra'anana": "Raanana", "Giv'atayim": "Givatayim", "Nahariya": "Nahariya",
    "Acre": "Acre", "Tiberias": "Tiberias", "Eilat": "Eilat", "Karmiel": "Carmiel", "Afula": "Afula",
    "Tel Sheva": "Tel Sheva", "Nof HaGalil": "Nof Hagalil", "Kiryat Gat": "Kiryat Gat", "Dimona": "Dimona",
    "Safed": "Safed", "Yavne": "Yavneh", "Sderot": "Sderot", "Arad": "Arad", "Rahat": "Rahat",
    "Fureidis": "Fureidis", "Zikhron Ya'akov": "Zichron Yaakov",
}  # fmt: skip
"""Official name → how people say it."""

SERVICES = {
    "Ophthalmology": "oculist", "Cardiology": "cardiologist", "Dermatology": "skin doctor",
    "Pediatrics": "children's doctor", "Family medicine": "family doctor", "Gynecology": "gynecologist",
    "Orthopedics": "orthopedist", "Otolaryngology": "ENT doctor", "Neurology": "neurologist",
    "Gastroenterology": "stomach doctor", "Nephrology": "kidney specialist", "Oncology": "oncologist",
    "Endocrinology": "endocrinologist", "Urology": "urologist", "Psychiatry": "psychiatrist",
    "Psychology": "psychologist", "Physiotherapy": "physical therapist", "Dietetics": "nutritionist",
    "Dentistry": "dentist", "Radiology": "x-ray", "Proctology": "proctologist", "Podiatry": "podiatrist",
}  # fmt: skip
"""Name in the directory → what people ask for."""

KINDS = (
    "Primary care clinic", "Private clinic", "Hospital clinic", "Pharmacy", "Laboratory", "Imaging centre",
)  # fmt: skip
LANGUAGES = ("Hebrew", "Arabic", "Russian", "English", "French", "Amharic", "Spanish")
STREETS = (
    "Herzl", "Weizmann", "Ben Gurion", "Rothschild", "Bialik", "Jabotinsky", "HaNassi", "HaPalmach",
    "Dizengoff", "Allenby",
)  # fmt: skip
FIRST = (
    "Dana", "Yossi", "Miriam", "Avi", "Noa", "Ahmad", "Layla", "Igor", "Tatiana", "Ruth", "Eli", "Sara",
    "Omar", "Hila",
)  # fmt: skip
LAST = (
    "Levi", "Cohen", "Mizrahi", "Peretz", "Haddad", "Friedman", "Katz", "Volkov", "Nasser", "Azoulay",
    "Shapira", "Biton",
)  # fmt: skip
ANIMALS = (
    "Service animals are welcome.", "No animals, guide dogs excepted.", "Animals are not allowed.", "",
)  # fmt: skip
ACCESS = (
    "Step-free entrance", "Lift to all floors", "Accessible toilet", "Hearing loop at the desk",
    "Entrance over three steps",
)  # fmt: skip
REMARKS = (
    "Free parking behind the building.", "No parking nearby.", "Entrance from the back yard.", "Moved here in spring.",
    "Appointments by telephone only.", "Walk-in until an hour before closing.", "Bring your referral.",
    "Formerly in {city}.", "Patients from {city} are seen on request.", "Closed on holidays.", "",
)  # fmt: skip
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
WORKING = (6, 0, 1, 2, 3)
"""Sunday to Thursday, as numbers from Monday."""

COLUMNS = (
    "Clinic name", "Clinic type", "City", "Address", "Phone", "Services", "Staff", "Languages", "Opening hours",
    "Accessibility", "Remarks", "Website", "Waiting days", "Opened",
)  # fmt: skip


@dataclass(frozen=True)
class Record:
    """One entry, as what it is and not as it is written."""

    name: str
    kind: str
    city: str
    address: str
    phone: str
    services: tuple[str, ...]
    staff: tuple[str, ...]
    languages: tuple[str, ...]
    hours: dict[int, tuple[int, int]] = field(hash=False)
    access: str
    remarks: str
    website: str
    waiting_days: int | None
    opened: date

    def cells(self) -> dict[str, str]:
        """As the table has it."""
        values = (
            self.name, self.kind, self.city, self.address, self.phone, "; ".join(self.services),
            "; ".join(self.staff), "; ".join(self.languages), _hours(self.hours), self.access, self.remarks,
            self.website, "" if self.waiting_days is None else str(self.waiting_days), self.opened.isoformat(),
        )  # fmt: skip
        return dict(zip(COLUMNS, values, strict=True))


def records(n: int = N_RECORDS, seed: int = 0) -> list[Record]:
    """A directory."""
    rng = random.Random(seed)
    return [_record(rng, i) for i in range(n)]


def write(path: Path, found: list[Record]) -> None:
    """The directory as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(record.cells() for record in found)


def _record(rng: random.Random, i: int) -> Record:
    cities = list(CITIES)
    city = rng.choice(cities[:12] if rng.random() < 0.5 else cities)
    other = rng.choice([one for one in cities if one != city])
    kind = rng.choice(KINDS)
    street = rng.choice(STREETS) if rng.random() < 0.8 else other
    number = rng.randrange(1, 160)
    services = tuple(rng.sample(list(SERVICES), rng.randrange(1, 4))) if "linic" in kind else ()
    staff = tuple(f"Dr {rng.choice(FIRST)} {rng.choice(LAST)}" for _ in range(len(services)))
    return Record(
        _name(rng, i, kind, city, other, street),
        kind,
        city,
        f"{street} {'Road' if street in cities else 'Street'} {number}",
        f"0{rng.choice('23489')}-{rng.randrange(5_000_000, 9_999_999)}",
        services,
        staff,
        tuple(sorted(rng.sample(LANGUAGES, rng.randrange(1, 4)))),
        _week(rng),
        " ".join(filter(None, [f"{rng.choice(ACCESS)}.", rng.choice(ANIMALS)])),
        " ".join(rng.sample(REMARKS, 2)).format(city=other).strip(),
        f"https://clinic{i}.example" if rng.random() < 0.7 else "",
        rng.randrange(0, 120) if services and rng.random() < 0.95 else None,
        date(1980, 1, 1) + timedelta(days=rng.randrange(16_000)),
    )


def _name(rng: random.Random, i: int, kind: str, city: str, other: str, street: str) -> str:
    word = {"Pharmacy": "Pharmacy", "Laboratory": "Laboratory", "Imaging centre": "Imaging"}.get(
        kind, "Clinic"
    )
    draw = rng.random()
    if draw < 0.15:
        return f"{other} {word}"  # of another city: the trap
    if draw < 0.3:
        return f"{city} {word}"
    if draw < 0.4:
        return f"{street} {word}"  # the same name in many cities
    if draw < 0.5:
        return f"{rng.choice(LAST)} & {rng.choice(LAST)} {word}"
    return f"{rng.choice(LAST)} {word} {i}"


def _week(rng: random.Random) -> dict[int, tuple[int, int]]:
    opens, closes = rng.choice((7, 8, 9)) * 60, rng.choice((14, 16, 18, 20)) * 60
    week = dict.fromkeys(WORKING, (opens, closes))
    if rng.random() < 0.5:
        week[4] = (8 * 60, rng.choice((11, 12, 13)) * 60)
    if rng.random() < 0.05:
        week[5] = (20 * 60, 23 * 60)
    return week


def _hours(week: dict[int, tuple[int, int]]) -> str:
    opens, closes = week[0]
    parts = [f"Sun-Thu {_clock(opens)}-{_clock(closes)}"]
    parts += [
        f"{DAYS[day]} {_clock(week[day][0])}-{_clock(week[day][1])}"
        for day in (4, 5)
        if day in week
    ]
    return "; ".join(parts)


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"
