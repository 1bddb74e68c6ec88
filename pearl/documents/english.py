"""Words of English that many modules read: months, weekdays, numbers and units of time, as patterns."""

from __future__ import annotations

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
WEEKDAY = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
YEAR = r"(?:19|20)[0-9]{2}"
TIME_UNIT = (
    r"(?:second|minute|hour|day|night|week|fortnight|month|quarter|season|year|decade|centur(?:y|ie)"
    r"|generation|morning|afternoon|evening)"
)
NUMBER_WORD = (
    r"(?:half|zero|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|(?:thir|four|fif|six|seven|eigh|nine)teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty"
    r"|(?:hundred|thousand|million|billion|dozen)s?)"
)
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")  # fmt: skip


def month_number(name: str) -> int:
    """1 to 12, by the first three letters of a month.

    Example:
        >>> month_number("Sept"), month_number("may")
        (9, 5)
    """
    return 1 + [month[:3] for month in MONTHS].index(name[:3].capitalize())
