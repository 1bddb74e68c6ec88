"""Compare nested values with gold values, by the rules of a schema, and count the right ones by field.

Every gold value is right, wrong, missing, undecided or not compared; where the gold has none, a value is invented. Indices
of lists and keys of maps do not count as fields: `orders[].price`, `parts.*`. Texts are the same if they differ in blanks and
typography alone, numbers as decimals, days as days; a field of the schema may say otherwise in its `evaluation_config`:
`string_fuzzy`, or `{"metrics": [{"metric_id": "number_tolerance", "params": {"tolerance": 0.01}}]}`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from msgspec import Struct, field

from pearl.data.rows import Row, read_file
from pearl.documents.dates import find_dates
from pearl.documents.evidence import normalise
from pearl.dsl.fields import ENTRY, Field
from pearl.errors import DataError, PearlError
from pearl.evals.stats import Interval
from pearl.runs.reviewing import wilson

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pearl.pipeline import Pearl

Outcome = Literal["right", "wrong", "missing", "undecided", "invented", "not compared"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

CONFIG = "evaluation_config"
"""The keyword of a schema with the rule for comparing a field's values, as in ExtractBench."""
EXACT, SEMANTIC, SKIP = "string_exact", "string_semantic", "skip"
SIMILAR, TOLERANCE = 0.8, 0.001
"""Defaults of ExtractBench: minimum similarity of fuzzy texts, maximum distance of numbers."""
_BY_TYPE = frozenset({
    EXACT, "number_exact", "integer_exact", "boolean_exact", "array_llm", "string_case_insensitive", "string_url",
})  # fmt: skip
_BY_MODEL = (SEMANTIC, "string_llm")

MAX_CELLS = 4_000_000
"""Maximum pairs of unequal list entries to match optimally; with more, entries are paired in order."""
MAX_WORDS = 20  # First words of a text, which decide between entries with equally many equal values
EQUAL = 1_000  # Weight of an equal value in a match; a common word has weight 1


class FieldScore(Struct):
    """The outcomes of the values of a field; `rule` is the rule of the schema."""

    rule: str = ""
    outcomes: Counter[Outcome] = field(default_factory=Counter)

    @property
    def n_gold(self) -> int:
        """The number of gold values."""
        return self.outcomes.total() - self.outcomes["invented"]

    @property
    def right(self) -> Interval | None:
        """The share of right values among the gold values that were compared; None without any."""
        return _share(self.outcomes["right"], self.n_gold - self.outcomes["not compared"])

    @property
    def precision(self) -> Interval | None:
        """The share of right values among the predicted ones; None without any."""
        of = self.outcomes
        return _share(of["right"], of["right"] + of["wrong"] + of["invented"])

    def to_dict(self) -> dict[str, Any]:
        """The score as JSON data."""
        counts = {each.replace(" ", "_"): self.outcomes[each] for each in OUTCOMES}
        shares = {"right": self.right, "precision": self.precision}
        return {
            **({"rule": self.rule} if self.rule else {}), "gold": self.n_gold, **counts,
            **{f"{name}_share": of and {"share": of.estimate, "low": of.low, "high": of.high} for name, of in shares.items()},
        }  # fmt: skip


def _share(n_right: int, n: int) -> Interval | None:
    return Interval(n_right / n, *wilson(n_right, n)) if n else None


class Difference(NamedTuple):
    """A value that is not right, with its path in the prediction."""

    document: str
    path: str
    field: str
    outcome: Outcome
    gold: Any
    predicted: Any


Judge = Callable[[Sequence[tuple[str, str]]], Awaitable[list[bool | None]]]
"""Takes pairs (claim, passage); returns whether each passage supports its claim, None if undecided."""


class Comparison:
    """Compares documents by a JSON Schema, or by fields, and keeps the scores."""

    def __init__(self, schema: Mapping[str, Any] | Sequence[Field]) -> None:
        root = schema if isinstance(schema, Mapping) else _schema_of(schema)
        wrapped = root.get("schema_definition")  # of ExtractBench
        root = wrapped if isinstance(wrapped, Mapping) and "properties" not in root else root
        self._root = _Place(root).made([root])
        self.asked: list[Difference] = []
        """Pairs of texts whose meanings `judge` will compare."""
        self.fields: dict[str, FieldScore] = {}
        self.lists: dict[str, Counter[str]] = {}
        """Counts of list entries: `gold`, `predicted`, and the unmatched ones of each, `missing` and `extra`."""
        self.differences: list[Difference] = []
        self.unknown: set[str] = set()
        """Fields of the gold data that the schema lacks; they are not compared."""
        self.n_documents = 0

    @property
    def all(self) -> FieldScore:
        """The score of all fields."""
        outcomes = (score.outcomes for score in self.fields.values())
        return FieldScore(outcomes=sum(outcomes, Counter[Outcome]()))

    def add(self, document: str, gold: Any, predicted: Any, undecided: Iterable[str] = ()) -> None:
        """Compare the values of a document; `undecided` are paths in the prediction: `drugs[0].dose`."""
        self.n_documents += 1
        _Document(self, document, frozenset(undecided)).value(self._root, "", "", gold, predicted)

    async def judge(self, ask: Judge | None) -> None:
        """Let a model compare texts by meaning: they are equal if each supports the other."""
        asked, self.asked = self.asked, []
        claims = [
            (f"{each.field}: {said}", f"{each.field}: {shown}")
            for each in asked
            for said, shown in ((each.predicted, each.gold), (each.gold, each.predicted))
        ]
        unlike = list(dict.fromkeys(claims))
        said = await ask(unlike) if ask and unlike else [None] * len(unlike)
        verdicts = dict(zip(unlike, said, strict=True))
        for i, each in enumerate(asked):
            both = [verdicts[claim] for claim in claims[2 * i : 2 * i + 2]]
            self.count(each._replace(outcome="wrong" if False in both else "right" if all(both) else each.outcome))  # fmt: skip

    def count(self, value: Difference) -> None:
        """Count a value."""
        self.fields[value.field].outcomes[value.outcome] += 1
        if value.outcome != "right":
            self.differences.append(value)

    def to_dict(self) -> dict[str, Any]:
        """The scores as JSON data."""
        return {
            "documents": self.n_documents, "confidence": 0.95, "interval": "Wilson",
            "all": self.all.to_dict(),
            "fields": {name: score.to_dict() for name, score in self.fields.items()},
            "lists": {name: dict(counts) for name, counts in self.lists.items()},
            "not_in_schema": sorted(self.unknown),
            "differences": [each._asdict() for each in self.differences],
        }  # fmt: skip


class _Document(Struct, frozen=True):
    """The comparison of one document."""

    scores: Comparison
    name: str
    undecided: frozenset[str]

    def value(self, place: _Place, path: str, name: str, gold: Any, said: Any) -> None:
        """Compare the values at a place; `path` is in the prediction, `name` is the path without indices."""
        gold, said = (None if each in ("", [], {}) else each for each in (gold, said))
        if place.rule(gold)[0] == SKIP or gold is said is None:
            return
        shapes = {
            "object" if isinstance(each, Mapping) else "list" if isinstance(each, list) else "value"
            for each in (gold, said)
            if each is not None
        }
        if shapes == {"list", "value"}:  # one value may stand for a list of it
            gold, said = (each if isinstance(each, list) else [each] for each in (gold, said))
            self._list(place, path, name, gold, said)
        elif len(shapes) == 2:  # of different kinds: count each side alone
            self.value(place, path, name, gold, None)
            self.value(place, path, name, None, said)
        elif shapes == {"object"}:
            self._object(place, path, name, gold or {}, said or {})
        elif shapes == {"list"}:
            self._list(place, path, name, gold or [], said or [])
        else:
            self._leaf(place, path, name, gold, said)

    def _object(
        self, place: _Place, path: str, name: str, gold: Mapping[str, Any], said: Mapping[str, Any]
    ) -> None:
        for key in dict.fromkeys((*gold, *said)):
            inner, is_named = place.of(key)
            if not inner.nodes and place.has_names:
                if gold.get(key) is not None:
                    self.scores.unknown.add(_joined(name, key))
                continue
            if is_named and inner.is_constant:
                continue
            within = _joined(name, key if is_named else "*")
            self.value(inner, _joined(path, key), within, gold.get(key), said.get(key))

    def _list(
        self, place: _Place, path: str, name: str, gold: Sequence[Any], said: Sequence[Any]
    ) -> None:
        if place.is_tuple:
            for i in range(max(len(gold), len(said))):
                pair = (each[i] if i < len(each) else None for each in (gold, said))
                self.value(place.entry(i), f"{path}[{i}]", f"{name}[{i}]", *pair)
            return
        at = [i for i, e in enumerate(said) if e is not None or self._is_undecided(f"{path}[{i}]")]
        pairs = match_entries(place.entry(), gold, [said[i] for i in at])
        counts = self.scores.lists.setdefault(f"{name}[]", Counter())
        counts.update(gold=len(gold), predicted=len(at))
        counts.update(missing=len(gold) - len(pairs), extra=len(at) - len(pairs))
        for i, entry in enumerate(gold):
            within = f"{path}[{at[pairs[i]]}]" if i in pairs else f"{path}[]"
            self.value(
                place.entry(), within, f"{name}[]", entry, said[at[pairs[i]]] if i in pairs else None
            )  # fmt: skip
        for j in set(range(len(at))) - {*pairs.values()}:
            self.value(place.entry(), f"{path}[{at[j]}]", f"{name}[]", None, said[at[j]])

    def _leaf(self, place: _Place, path: str, name: str, gold: Any, said: Any) -> None:
        rule, params = place.rule(gold if gold is not None else said)
        score = self.scores.fields.setdefault(name, FieldScore())
        score.rule = score.rule or rule
        outcome: Outcome | None = "undecided" if self._is_undecided(path) else "missing"
        if gold is None:
            if outcome == "undecided":
                return
            outcome = "invented"
        elif said is not None:
            outcome = _verdict(place, rule, params, gold, said)
        value = Difference(self.name, path, name, outcome or "not compared", gold, said)
        if outcome is None:
            self.scores.asked.append(value)
        else:
            self.scores.count(value)

    def _is_undecided(self, path: str) -> bool:
        """Whether a value, or an object or list around it, is undecided; "$" means the whole."""
        if "$" in self.undecided:
            return True
        while path:
            if path in self.undecided:
                return True
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return False


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


# --- a schema ---------------------------------------------------------------------------------

_SHAPES: Mapping[str, type | tuple[type, ...]] = {
    "object": Mapping, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool,
}  # fmt: skip


def _is_one(node: Mapping[str, Any], *types: str) -> bool:
    """Whether the `type` of a schema includes one of these types."""
    named = node.get("type")
    return any(each in types for each in (named if isinstance(named, list) else [named]))


class _Place(Struct, frozen=True):
    """The schemas that apply to a place; a keyword is taken from the first that has it."""

    root: Mapping[str, Any]
    nodes: tuple[Mapping[str, Any], ...] = ()

    def of(self, key: str) -> tuple[_Place, bool]:
        """The place of a property, and whether the schema names it."""
        named = [p[key] for p in self._all("properties", dict) if key in p]
        maps = [each for p in self._all("patternProperties", dict) for each in p.values()]
        return self.made(named or [*maps, *self._all("additionalProperties", dict)]), bool(named)

    def entry(self, i: int = 0) -> _Place:
        """The place of an entry of a list; for a tuple, of entry `i`."""
        tuples = [p[i] for p in self._tuples if i < len(p)]
        return self.made(tuples or self._all("items", dict))

    @property
    def is_constant(self) -> bool:
        """Whether the schema allows only one value, which is not extracted."""
        nodes = self.nodes
        given = [n.get("enum", [n.get("const")]) for n in nodes if {"enum", "const"} & n.keys()]
        is_one = len({json.dumps(each, sort_keys=True) for each in given}) == 1
        if any({"anyOf", "oneOf"} & node.keys() for node in nodes):
            return False
        is_closed = all({"enum", "const", "$ref", "allOf"} & node.keys() for node in nodes)
        return is_one and is_closed and len(given[0] or ()) == 1

    @property
    def has_names(self) -> bool:
        """Whether the schema names properties."""
        return bool(self._all("properties", dict))

    @property
    def is_tuple(self) -> bool:
        """Whether each entry of a list has its own schema."""
        return any(self._tuples)

    def key(self, value: Any, is_number: bool = False) -> Any:
        """The form by which values are compared; a text with a number becomes a number where the schema allows one."""
        if isinstance(value, bool):
            return (value,)
        forms = {node.get("format") for node in self.nodes if isinstance(node.get("format"), str)}
        is_number |= isinstance(value, int | float) or "decimal" in forms
        found: Any = None
        if is_number or any(_is_one(node, "number", "integer") for node in self.nodes):
            found = _number(value)
        elif "date" in forms:
            text = str(value).strip()
            dates = find_dates(text)  # a text that names several days is no date
            if len(dates) == 1 and dates[0].end - dates[0].start == len(text) and dates[0].period:
                found = dates[0].period.first
        elif "date-time" in forms:
            with suppress(ValueError):
                found = datetime.fromisoformat(str(value))
        return normalise(str(value)).strip() if found is None else found

    def rule(self, value: Any) -> tuple[str, Mapping[str, Any]]:
        """The rule for a value, and its parameters; "" if the schema has none."""
        fitting = [name for name, shape in _SHAPES.items() if isinstance(value, shape)]
        for node in self.nodes:
            is_of_type = value is None or "type" not in node or _is_one(node, *fitting)
            if CONFIG in node and is_of_type:
                config = node[CONFIG]
                rule, params = str(config)[:80], None
                with suppress(TypeError, KeyError, AttributeError):
                    metric = (config["metrics"] or [{"metric_id": SKIP}])[0]
                    rule, params = str(metric["metric_id"]), metric.get("params")
                is_url = node.get("format") in ("uri", "url", "iri") and rule == EXACT
                return "string_url" if is_url else rule, params or {}
        return "", {}

    @property
    def _tuples(self) -> list[list[Any]]:
        return self._all("prefixItems", list) + self._all("items", list)

    def _all(self, keyword: str, kind: type) -> list[Any]:
        return [node[keyword] for node in self.nodes if isinstance(node.get(keyword), kind)]

    def made(self, schemas: Iterable[Any]) -> _Place:
        found: list[Mapping[str, Any]] = []
        todo = [each for each in schemas if isinstance(each, Mapping)]
        while todo and len(found) < MAX_NODES:
            node = todo.pop(0)
            if any(node is each for each in found):
                continue
            found.append(node)
            more = [
                node.get("$ref"),
                *(e for key in ("allOf", "anyOf", "oneOf") for e in node.get(key) or ()),
            ]
            todo += [e for e in map(self._target, more) if isinstance(e, Mapping)]
        return _Place(self.root, tuple(found))

    def _target(self, what: Any) -> Any:
        """Resolve a reference within the root; return anything else unchanged."""
        if not isinstance(what, str) or not what.startswith("#"):
            return what
        node: Any = self.root
        for part in filter(None, what[1:].split("/")):
            node = node.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(node, Mapping) else None  # fmt: skip
        return node


MAX_NODES = 100  # Maximum schemas of one place

_TYPES: Mapping[str, Mapping[str, Any]] = {
    "int": {"type": "integer"}, "number": {"type": "number"}, "decimal": {"type": "number"},
    "bool": {"type": "boolean"}, "date": {"type": "string", "format": "date"},
}  # fmt: skip


def _schema_of(fields: Iterable[Field]) -> dict[str, Any]:
    """Convert fields to a JSON Schema, with only the parts that decide how values are compared."""
    root: dict[str, Any] = {"properties": {}}
    for leaf in fields:
        *around, name = leaf.name.split(".")
        at = root
        for part in around:
            at = at["properties"].setdefault(part, {"properties": {}})
        inner: Mapping[str, Any] = _TYPES.get(leaf.type, {"type": "string"})
        if leaf.fields:
            inner = _schema_of(leaf.fields)
            inner = inner["properties"].get(ENTRY, inner)
        kind = {"type": "array", "items": inner} if leaf.is_list else inner
        at["properties"][name] = {**kind}
    return root


# --- values -----------------------------------------------------------------------------------


def _verdict(
    place: _Place, rule: str, params: Mapping[str, Any], gold: Any, said: Any
) -> Outcome | None:
    """The outcome of a value; None if a model must compare the meanings."""
    is_number = any(isinstance(each, int | float) for each in (gold, said))
    if place.key(gold, is_number) == place.key(said, is_number):
        return "right"
    texts = [normalise(str(each)).strip() for each in (gold, said)]
    if rule in _BY_MODEL:
        return "right" if texts[0].casefold() == texts[1].casefold() else None
    if rule == "string_fuzzy":
        if not params.get("case_sensitive"):
            texts = [text.casefold() for text in texts]
        least = _number_of(params, "threshold", SIMILAR)
        similar = SequenceMatcher(None, texts[0], texts[1])
        is_right = similar.quick_ratio() >= least and similar.ratio() >= least
    elif rule == "number_tolerance":
        numbers = [_number(each) for each in (gold, said)]
        is_right = False
        with suppress(TypeError, ArithmeticError):
            distance = abs(numbers[0] - numbers[1])  # type: ignore[operator]
            is_right = distance <= Decimal(repr(_number_of(params, "tolerance", TOLERANCE)))
    elif rule == "string_case_insensitive":
        is_right = texts[0].casefold() == texts[1].casefold()
    elif rule == "string_url":
        is_right = _address(texts[0]) == _address(texts[1])
    else:
        return "wrong" if not rule or rule in _BY_TYPE else "not compared"
    return "right" if is_right else "wrong"


def _number_of(params: Mapping[str, Any], name: str, default: float) -> float:
    value = params.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else default  # type: ignore[arg-type]


def _address(text: str) -> str:
    text = text.casefold().removeprefix("https://").removeprefix("http://")
    return text.removeprefix("www.").removesuffix("/")


def _number(value: Any) -> Decimal | None:
    """The number of a JSON number, or of a text that is one."""
    with suppress(ArithmeticError):
        if not isinstance(value, bool) and "_" not in str(value):
            number = Decimal(str(value).strip())
            return number if number.is_finite() else None
    return None


# --- lists ------------------------------------------------------------------------------------


def match_entries(place: _Place, gold: Sequence[Any], said: Sequence[Any]) -> dict[int, int]:
    """Match gold entries to predicted ones so that most values are equal; pair the rest in order."""
    bags = [[Counter(_leaves(place, each, "")) for each in entries] for entries in (gold, said)]
    same: dict[frozenset[tuple[Any, int]], list[int]] = {}
    for j, bag in enumerate(bags[1]):
        same.setdefault(frozenset(bag.items()), []).append(j)
    # An optimal match that contains all equal pairs exists, so take these first.
    pairs: dict[int, int] = {}
    for i, bag in enumerate(bags[0]):
        if bag and (equal := same.get(frozenset(bag.items()))):
            pairs[i] = equal.pop(0)
    rows, columns = _left(pairs, gold, said)
    if rows and columns and len(rows) * len(columns) <= MAX_CELLS:
        from scipy.optimize import linear_sum_assignment  # takes long to import

        shared = _shared([bags[0][i] for i in rows], [bags[1][j] for j in columns])
        best = zip(*linear_sum_assignment(shared, maximize=True), strict=True)
        pairs |= {rows[i]: columns[j] for i, j in best if shared[i, j]}
    return pairs | dict(zip(*_left(pairs, gold, said), strict=False))


def _left(pairs: Mapping[int, int], gold: Sequence[Any], said: Sequence[Any]) -> tuple[list[int], list[int]]:  # fmt: skip
    taken = {*pairs.values()}
    rows = [i for i in range(len(gold)) if i not in pairs]
    return rows, [j for j in range(len(said)) if j not in taken]


def _leaves(place: _Place, value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the values of an entry with their fields, and then the words of its texts."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _leaves(place.of(key)[0], each, f"{name}.{key}")
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(place.entry(), each, f"{name}[]")
    elif value is not None and value != "":
        key = place.key(value)
        yield name, key
        if isinstance(key, str):
            yield from ((f"{name} ", word) for word in key.casefold().split()[:MAX_WORDS])


def _shared(first: Sequence[Counter[Any]], second: Sequence[Counter[Any]]) -> NDArray[np.int64]:
    """A matrix of weights: how much each entry of `first` shares with each of `second`."""
    import numpy as np

    where: dict[Any, tuple[list[int], list[int]]] = {}
    for j, bag in enumerate(second):
        for leaf, n in bag.items():
            columns, counts = where.setdefault(leaf, ([], []))
            columns.append(j)
            counts.append(n)
    shared = np.zeros((len(first), len(second)), dtype=np.int64)
    for i, bag in enumerate(first):
        for leaf in bag.keys() & where.keys():
            columns, counts = where[leaf]
            weight = 1 if leaf[0].endswith(" ") else EQUAL
            shared[i, columns] += weight * np.minimum(counts, bag[leaf])
    return shared


# --- gold files -------------------------------------------------------------------------------

_SUFFIX = ".gold.json"
MAX_NESTED = 64  # Maximum nesting of objects and lists
_FORM = 'rows read {"document": "a.txt", "value": {...}}, files of a folder NAME.gold.json'


class GoldFile(Struct, frozen=True):
    """The gold values of documents, and what could not be read."""

    values: dict[str, Any]
    rows: dict[str, Row]
    problems: list[DataError]

    def by_document(self, documents: Sequence[str]) -> dict[str, str]:
        """Map documents to names in the file: the same name, else the only one with this file name or stem."""
        found: dict[str, str] = {}
        for form in (str, lambda name: Path(name).name, _stem):
            names: dict[str, set[str]] = {}
            for name in self.values.keys() - {*found.values()}:
                names.setdefault(form(name), set()).add(name)
            left = [document for document in documents if document not in found]
            times = Counter(map(form, left))
            for document in left:
                if times[form(document)] == 1 and len(fit := names.get(form(document), set())) == 1:
                    found[document] = next(iter(fit))
        return found


def _stem(name: str) -> str:
    name = Path(name).name
    return name.removesuffix(_SUFFIX) if name.endswith(_SUFFIX) else Path(name).stem


def read_gold(path: Path) -> GoldFile:
    """Gold values: a file of rows, each with `document` (or `id`) and `value`, or with its fields; or a folder of NAME.gold.json."""
    gold = GoldFile({}, {}, [])
    read = map(_whole, sorted(path.rglob(f"*{_SUFFIX}"))) if path.is_dir() else read_file(path)
    for row in read:
        try:
            if isinstance(row, DataError):
                raise row
            name, value = _gold_of(row, gold.values)
            gold.values[name], gold.rows[name] = value, row
        except DataError as error:
            gold.problems.append(error)
    if not (gold.values or gold.problems):
        raise DataError(f"no file *{_SUFFIX} is in this folder", path=path, help=_FORM)
    return gold


def _whole(file: Path) -> Row | DataError:
    """Read a file that is the gold value of one document."""
    try:
        return Row({"document": file.name, "value": json.loads(file.read_bytes())}, str(file), 1)
    except (OSError, ValueError, RecursionError) as error:
        return DataError(f"no gold value: {error}", path=file, help=_FORM)


def _gold_of(row: Row, known: Container[str]) -> tuple[str, Any]:
    """The document of a row, and its values."""
    key = next((key for key in ("document", "id") if row.name(key)), "")
    name = row.name(key) if key else None
    if name is None:
        raise row.error("no document is named", help=_FORM)
    if name in known:
        raise row.error(f"'{name}' is there twice", help="one row for each document")
    value = row.fields.get("value")
    if not isinstance(value, Mapping | list):
        value = {name: each for name, each in row.fields.items() if name != key}
    if not value:
        raise row.error(f"'{name}' has no gold values", help=_FORM)
    depth, layer = 0, [value]
    while layer := [e for v in layer if isinstance(v, Mapping | list) for e in (v.values() if isinstance(v, Mapping) else v)]:  # fmt: skip
        depth += 1
        if depth > MAX_NESTED:
            raise row.error(f"'{name}' is nested more than {MAX_NESTED} deep", help=_FORM)
    return name, value


# --- meanings ---------------------------------------------------------------------------------


MAX_CHARACTERS = 20_000
"""Maximum characters of the texts in one request to a checker; a single pair may be longer."""


def checker_of(pearl: Pearl) -> Judge | None:
    """The checker of a `Pearl` as a judge; None if it has none."""
    from pearl.interpreter.checking import MAX_CLAIMS, read_verdicts
    from pearl.interpreter.prompt import check_messages
    from pearl.llm import CheckTask, Request
    from pearl.llm.concurrency import gather
    from pearl.llm.reply_limits import reply_limit

    limits, model = pearl.limits, pearl.calls(None, "checker")

    async def ask(batch: Sequence[tuple[str, str]]) -> list[bool | None]:
        task = CheckTask("gold", tuple(batch))
        most = reply_limit(task, limits.window, limits.max_output_tokens)
        said: Mapping[int, str] = {}
        with suppress(PearlError):  # values without a verdict are not compared
            request = Request(check_messages(task), task, max_output_tokens=most)
            said, _ = read_verdicts((await model.complete(request)).text, len(batch))
        return [said[i] == "supported" if i in said else None for i in range(1, len(batch) + 1)]

    async def judge(claims: Sequence[tuple[str, str]]) -> list[bool | None]:
        batches: list[list[tuple[str, str]]] = []
        room = 0
        for claim in claims:
            room -= sum(map(len, claim))
            if not batches or room < 0 or len(batches[-1]) == MAX_CLAIMS:
                batches.append([])
                room = MAX_CHARACTERS
            batches[-1].append(claim)
        return [each for found in await gather([ask(batch) for batch in batches]) for each in found]

    return None if limits.check == "off" else judge
