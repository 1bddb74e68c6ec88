"""Generated documents with one fact planted in filler that shares its names and its words.

A document is filler of one of several worlds, near misses of the fact (the same person doing
something else, another person doing the same) and the fact itself, anywhere. The question asks for
the fact in another form than it is told in: voice, tense, order and some of the words differ.
"""

from __future__ import annotations

import random
from dataclasses import dataclass


def words(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


FIRST = words(
    """
    Adela Bruno Carla Dmitri Elsa Fergus Greta Hakim Ines Jonas Katya Lorenz Mabel Nikhil
    Olga Pavel Quentin Rosa Stefan Thea Ulrich Vera Wanda Xavier Yusuf Zelda Amos Birgit
    Cyrus Dora
    """
)
LAST = words(
    """
    Abbott Brandt Castellan Dubrow Eklund Farkas Gallo Hartmann Ibsen Jankovic Kowal
    Lindqvist Mercer Novak Okafor Petrov Quill Rossi Sandoval Thorne Ulman Varga Whitlock
    Xu Yates Zeller
    """
)
TOWNS = words(
    """
    Averton Brackley Corvale Dunmere Eastwick Farrowgate Glenholm Harsted Ilkwood Jarrow
    Kelverton Lowmoor Marlhaven Netherby Orrin Penwith Quarley Ravensea Stormont Tolvern
    """
)
THINGS = words(
    """
    bakery mill lighthouse observatory printing-press chapel orchard brewery theatre
    tannery quarry library ferry clinic museum greenhouse foundry pottery academy bell-
    tower
    """
)
MONTHS = words(
    """
    January February March April May June July August September October November December
    """
)
NUMBERS = words(
    """
    eleven fourteen seventeen nineteen twenty-three thirty-one forty-two fifty-six sixty-
    eight ninety
    """
)

WORLDS = {
    "harbour": (
        words(
            "sailor captain rope anchor cargo tide gull deck mast harbour net storm "
            "customs-house crane"
        ),
        words(
            "hauled mended watched loaded unloaded painted counted inspected forgot "
            "repaired carried"
        ),
        words("wet grey salty heavy narrow rusty patient late cold quiet"),
    ),
    "council": (
        words(
            "budget committee mayor motion clerk hearing ordinance petition ward tax "
            "minutes chamber vote"
        ),
        words(
            "discussed approved delayed reviewed amended questioned read signed filed "
            "rejected praised"
        ),
        words("public lengthy formal annual disputed minor local overdue printed careful"),
    ),
    "ward": (
        words(
            "nurse patient chart dose fever bandage corridor physician ward tray blanket "
            "symptom trolley"
        ),
        words(
            "checked measured changed noted washed examined discussed recorded brought explained"
        ),
        words("mild quiet early routine clean pale steady restless gentle brief"),
    ),
    "vineyard": (
        words("vine cellar barrel harvest slope cork grape press ladder frost picker basket wagon"),
        words("pruned tasted crushed stored rinsed rolled sold carried weighed tied cleared"),
        words("ripe sour dusty sunny old sweet steep late broken early"),
    ),
    "sky": (
        words(
            "telescope comet lens catalogue plate star orbit dome eclipse signal mirror "
            "notebook clock"
        ),
        words(
            "observed adjusted polished recorded compared tracked calibrated sketched "
            "photographed lost"
        ),
        words("faint distant bright blurred northern double clear unusual silver slow"),
    ),
}
GLUE = (
    "The {a} {n} {v} the {m} near {town}.",
    "{p} {v} a {a} {n} and said nothing about the {m}.",
    "Nobody in {town} remembered why the {n} had been so {a}.",
    "In {month} the {n} was {v} again, and {p} went home.",
    '"The {n} is {a}," said {p}, "and the {m} will have to wait."',
    "{p} and {q} talked about the {thing} and the {a} {m} for an hour.",
    "By {year} the {n} had been {v} by everyone who lived near the {thing}.",
    "It was a {a} day, and the {m} stood beside the {n}.",
    "{q} had {num} of the {n}s and wanted no more.",
    "Was the {n} still {a}?",
    "She {v} the {m} because the {n} was {a}.",
    "They walked from {town} to the {thing} with a {n} and a {a} {m}.",
)


@dataclass(frozen=True)
class Frame:
    """One kind of fact: how it is told, how it is asked for, and what is almost it."""

    told: tuple[str, ...]
    asked: tuple[str, ...]
    same_subject: tuple[str, ...]
    same_predicate: tuple[str, ...]


FRAMES = (
    Frame(
        ("{P} founded the {thing} at {town} in {year} with money from an aunt.",
         "In {year} the {thing} at {town} was founded by {P}, who had inherited a little money."),
        ("Who was the founder of the {thing} at {town}?", "When was the {thing} at {town} founded?",
         "In which year did {P} found the {thing} at {town}?"),
        ("{P} visited the {thing} at {town} every spring.", "{P} disliked the bells of {town}."),
        ("{Q} founded the {other} at {town2} in {year2}.", "The {other} at {town2} was founded by {Q}."),
    ),
    Frame(
        ("{P} sold the {thing} because the roof had begun to leak and no bank would lend a penny.",
         "The {thing} was sold by {P}, since the roof had begun to leak and no bank would lend a penny."),
        ("Why did {P} sell the {thing}?", "Why was the {thing} sold by {P}?",
         "What was {P}'s reason for selling the {thing}?"),
        ("{P} painted the {thing} green one summer.", "{P} often walked past the {thing} in the rain."),
        ("{Q} sold the {other} because the rent was too high.", "{Q} sold three horses at {town2}."),
    ),
    Frame(
        ("{P} hid the brass key under a loose flagstone in the cellar of the {thing}.",
         "The brass key was hidden by {P} beneath a loose flagstone in the cellar of the {thing}."),
        ("Where did {P} hide the brass key?", "Where was the brass key hidden?", "Who hid the brass key?"),
        ("{P} had a key to every door in {town}.", "{P} never spoke about the {thing}."),
        ("{Q} hid the letters in the attic.", "{Q} lost a silver key on the road to {town2}."),
    ),
    Frame(
        ("At the siege of {town} {P} lost {num} cattle and a barn.",
         "{num} cattle and a barn were lost by {P} during the siege of {town}."),
        ("How many cattle did {P} lose at the siege of {town}?",
         "How many cattle were lost by {P} during the siege of {town}?"),
        ("{P} bred cattle for most of a long life.", "{P} lost a hat at the fair."),
        ("{Q} lost {num2} sheep in the flood at {town2}.", "{Q} lost nine cattle to a fever."),
    ),
    Frame(
        ("The portrait of {Q} that hangs in the {thing} was painted by {P} in a single night.",
         "{P} painted the portrait of {Q} that hangs in the {thing} in a single night."),
        ("Who painted the portrait of {Q} in the {thing}?", "Which artist made the portrait of {Q}?",
         "By whom was the portrait of {Q} painted?"),
        ("{P} admired the ceiling of the {thing}.", "{P} owed {Q} a small sum."),
        ("The portrait of the mayor was painted by a pupil.", "{R} painted the doors of the {other}."),
    ),
    Frame(
        ("{P} taught {Q} to play the cello over two winters in {town}.",
         "{Q} was taught the cello by {P} over two winters in {town}."),
        ("Who taught {Q} the cello?", "What instrument did {P} teach {Q}?",
         "Where did {Q} learn the cello from {P}?"),
        ("{P} played cards with {R} on Sundays.", "{Q} kept a cello in the hall for show."),
        ("{R} taught the children of {town2} to swim.", "{Q} taught {R} to skate."),
    ),
    Frame(
        ("The expedition to {town} failed because {P} had misread the tide tables.",
         "Because {P} had misread the tide tables, the expedition to {town} failed."),
        ("Why did the expedition to {town} fail?", "What caused the failure of the expedition to {town}?"),
        ("The expedition to {town} set out with twelve mules.", "{P} wrote a song about the expedition."),
        ("The expedition to {town2} failed for want of water.", "The concert at {town2} was a failure."),
    ),
    Frame(
        ("On {day} {month} {year} {P} was elected president of the {thing} society.",
         "{P} became president of the {thing} society by election on {day} {month} {year}."),
        ("When was {P} elected president of the {thing} society?",
         "On which date did {P} become president of the {thing} society?",
         "Who was elected president of the {thing} society?"),
        ("{P} read a paper to the {thing} society on moss.", "{P} resigned from the choir of {town}."),
        ("{Q} was elected treasurer of the {other} club.", "{Q} was president of the skating club."),
    ),
    Frame(
        ("{P} refused the medal, for it had been struck from stolen silver.",
         "The medal was refused by {P} because it had been struck from stolen silver."),
        ("Why did {P} refuse the medal?", "Why was the medal refused by {P}?"),
        ("{P} polished the silver of {Q} on Fridays.", "{P} wore no rings."),
        ("{Q} refused the soup at the {thing}.", "A medal was given to {R} for rowing."),
    ),
    Frame(
        ("{P} buried the old dog on the hill behind the {thing} in {town}.",
         "The old dog was buried by {P} on the hill behind the {thing} in {town}."),
        ("Where was the old dog buried?", "Where did {P} bury the dog?", "Who buried the old dog?"),
        ("{P} fed a stray dog near {town}.", "{P} climbed the hill every morning."),
        ("{Q} buried the coins by the river.", "{R} had an old dog with one ear."),
    ),
    Frame(
        ("{P} paid {num} crowns for the map of {town} at an auction.",
         "The map of {town} cost {P} {num} crowns at an auction."),
        ("How much did {P} pay for the map of {town}?", "What price did {P} pay for the map of {town}?",
         "How many crowns did the map of {town} cost {P}?"),
        ("{P} drew a map of the {thing} from memory.", "{P} paid the cook every month."),
        ("{Q} paid {num2} crowns for a saddle.", "{R} bought a map of {town2} for a friend."),
    ),
    Frame(
        ("{P} swam across the strait at {town} in {num} minutes to win a bet with {Q}.",
         "To win a bet with {Q}, {P} crossed the strait at {town} by swimming in {num} minutes."),
        ("Why did {P} swim across the strait at {town}?",
         "How long did {P} take to swim the strait at {town}?"),
        ("{P} was afraid of the strait at {town} as a child.", "{P} lost a bet about the weather."),
        ("{R} swam in the river at {town2} each morning.", "{Q} crossed the strait in a rowing boat."),
    ),
    Frame(
        ("What {P} invented in {year} was a lamp that burned fish oil without smoke.",
         "In {year} {P} invented a lamp that burned fish oil without smoke."),
        ("What did {P} invent in {year}?", "What was invented by {P}?", "When did {P} invent the lamp?",
         "Who was the inventor of the lamp that burned fish oil?"),
        ("{P} bought a lamp from {Q} at the market.", "{P} sold fish in {town}."),
        ("{Q} invented a knot for tying boats.", "{R} invented excuses all year long."),
    ),
    Frame(
        ("{P} married {Q} in the {thing} at {town} on the last day of {month}.",
         "The marriage of {P} and {Q} took place in the {thing} at {town} on the last day of {month}."),
        ("Where did {P} marry {Q}?", "Whom did {P} marry?", "When did {P} and {Q} get married?"),
        ("{P} quarrelled with {Q} about a fence.", "{Q} sang in the {thing} at {town}."),
        ("{R} married a baker from {town2}.", "{R} was married twice and regretted both."),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Planted:
    """A generated document.

    Attributes:
        fact: The planted sentence; it stands in `text` once.
        place: Where it was planted, 0 (beginning) to 1 (end).
    """

    text: str
    question: str
    fact: str
    place: float


def plant(seed: int, *, n_words: tuple[int, int] = (5_000, 20_000)) -> Planted:
    """One document with one fact; the same seed gives the same one."""
    rng = random.Random(f"planted {seed}")
    frame = FRAMES[seed % len(FRAMES)]
    firsts, lasts = rng.sample(FIRST, 8), rng.sample(LAST, 8)
    people = [f"{first} {last}" for first, last in zip(firsts, lasts, strict=True)]
    towns, things = rng.sample(TOWNS, 4), rng.sample(THINGS, 4)
    slots = {
        "P": people[0],
        "Q": people[1],
        "R": people[2],
        "town": towns[0],
        "town2": towns[1],
        "thing": things[0],
        "other": things[1],
        "year": str(rng.randint(1780, 1990)),
        "year2": str(rng.randint(1780, 1990)),
        "month": rng.choice(MONTHS),
        "day": str(rng.randint(1, 28)),
        "num": rng.choice(NUMBERS[:5]),
        "num2": rng.choice(NUMBERS[5:]),
    }
    fact = _sentence(rng.choice(frame.told), slots)
    misses = [_sentence(m, slots) for m in (*frame.same_subject, *frame.same_predicate)] * 2
    goal = rng.randint(*n_words)
    worlds = [WORLDS[name] for name in rng.sample(sorted(WORLDS), 2)]
    filler: list[str] = []
    size = 0
    while size < goal:
        filler.append(_filler(rng, rng.choice(worlds), people, towns, things))
        size += len(filler[-1].split())
    for miss in misses:
        filler.insert(rng.randrange(len(filler)), miss)
    place = (0.0, 0.5, 1.0, rng.random())[seed // len(FRAMES) % 4]
    filler.insert(round(place * len(filler)), fact)
    return Planted(_paragraphs(rng, filler), _sentence(rng.choice(frame.asked), slots), fact, place)


def _sentence(template: str, slots: dict[str, str]) -> str:
    text = template.format(**slots)
    return text[0].upper() + text[1:]


def _filler(
    rng: random.Random,
    world: tuple[list[str], list[str], list[str]],
    people: list[str],
    towns: list[str],
    things: list[str],
) -> str:
    nouns, verbs, adjectives = world
    n, m = rng.sample(nouns, 2)
    p, q = rng.sample(people, 2)
    return _sentence(
        rng.choice(GLUE),
        {
            "n": n,
            "m": m,
            "v": rng.choice(verbs),
            "a": rng.choice(adjectives),
            "p": rng.choice([p, p.split()[0], p.split()[1]]),
            "q": q,
            "town": rng.choice(towns),
            "thing": rng.choice(things),
            "month": rng.choice(MONTHS),
            "year": str(rng.randint(1780, 1990)),
            "num": rng.choice(NUMBERS),
        },
    )


def _paragraphs(rng: random.Random, rows: list[str]) -> str:
    """Sentences in paragraphs of random length, in half of the documents with wrapped lines."""
    wraps = rng.random() < 0.5
    paragraphs: list[str] = []
    while rows:
        n = rng.randint(2, 9)
        taken, rows = rows[:n], rows[n:]
        text = " ".join(taken)
        paragraphs.append(_wrapped(text) if wraps else text)
    return "\n\n".join(paragraphs) + "\n"


def _wrapped(text: str, width: int = 72) -> str:
    lines, line = [], ""
    for word in text.split(" "):
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return "\n".join([*lines, line])
