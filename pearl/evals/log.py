"""`EvalLog`: an evaluation as versioned JSON lines: a header, then a record for each sample, method and seed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from pearl.data.log_files import read_journal
from pearl.llm import Usage
from pearl.llm.prices import Price
from pearl.runs.identity import RunConfig

Key = tuple[str, str, int]  # Sample, method and seed


class Header(RunConfig, frozen=True, kw_only=True):
    """What was evaluated, and how."""

    kind: Literal["pearl-eval-log"] = "pearl-eval-log"
    v: Literal[1] = 1
    created: str  # ISO 8601, UTC
    data: str
    data_sha256: str
    """Digest of ids, questions, documents, options and right answers of the samples."""
    n_samples: int
    n_bad_rows: int = 0  # Rows of the data that could not be evaluated
    prompts: dict[str, str] = field(default_factory=dict)
    """Digests of the modules that hold the templates of prompts, by name."""
    mapper: str | None = None
    """The model that maps answers in words to options; None without options."""
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    temperature: float | None
    token_budget: int | None = None
    """Input tokens a method could spend on a sample's document; None for no limit."""
    part_tokens: int | None = None
    """Tokens of a call of `map-reduce`, and of the passages that `retrieve` shows."""
    price: Price | None = None
    scorer: str = "exact"  # The scorer of answers in words; options are right or wrong


class PlanShape(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The size of a plan."""

    n_steps: int
    n_calls: int
    depth: int
    width: int


class Call(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One reply that a record is made of; `pearl runs reply KEY` shows it with its prompt."""

    key: str  # In the store; "" without one
    purpose: str  # question, plan, step, combine or choose
    step: str = ""
    model: str  # As the server names it
    fingerprint: str = ""  # As the server reports it
    temperature: float | None = None  # The temperature sent; None if none was


class EvalRecord(Struct, frozen=True, kw_only=True):  # older logs have more fields
    """One sample under one method and one seed."""

    sample: str
    method: str
    seed: int = 0
    status: Literal["answered", "fell_back", "failed"]
    """`fell_back`: answered without a valid plan, where that was allowed; `failed`: no answer, or one that
    is undecided. Failures count as wrong."""
    question: str
    document: str = ""
    subsets: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    gold: int | None = None
    reference: str | None = None
    answer: str = ""  # The answer in words; "" if the method chose an option directly
    reply: str = ""  # The reply to the request for an option
    choice: int | None = None  # The option read from the reply; None is unmapped, and wrong
    score: Annotated[float, Meta(ge=0, le=1)] = 0.0  # 0 to 1; for options 1 is right and 0 wrong
    error: str | None = None
    plan: str | None = None
    shape: PlanShape | None = None
    coverage: float | None = None  # Smallest share of the document in a reading call
    calls: tuple[Call, ...] = ()
    n_calls: int = 0
    usage: Usage = Usage()
    planning_usage: Usage = Usage()  # The part of `usage` for writing the plan
    cost_usd: float | None = None
    duration_s: float = 0.0

    @property
    def key(self) -> Key:
        """Sample, method and seed."""
        return self.sample, self.method, self.seed

    @property
    def credit(self) -> float:
        """Its score, 0 to 1; 0 for a failure."""
        return 0.0 if self.status == "failed" else self.score

    @property
    def is_correct(self) -> bool:
        """Whether it has the full score."""
        return self.credit == 1.0

    @property
    def is_unmapped(self) -> bool:
        """Whether its answer names none of the options."""
        return self.status != "failed" and bool(self.options) and self.choice is None


class EvalLog(Struct, frozen=True):
    """A header and its records, at most one for each sample, method and seed."""

    header: Header
    records: tuple[EvalRecord, ...]

    def of(self, method: str, subset: str | None = None) -> tuple[EvalRecord, ...]:
        """The records of a method, or of one subset of them, in the order of the log."""
        return tuple(
            record
            for record in self.records
            if record.method == method and (subset is None or subset in record.subsets)
        )

    @property
    def subsets(self) -> tuple[str, ...]:
        """Every subset that a record belongs to, sorted."""
        return tuple(sorted({name for record in self.records for name in record.subsets}))

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods with records: those of the header first, then later ones."""
        have = dict.fromkeys(record.method for record in self.records)
        first = [method for method in self.header.methods if method in have]
        return tuple(dict.fromkeys([*first, *have]))


def read_log(path: str | Path) -> EvalLog:
    """Read a log from its file; an incomplete last line is left out."""
    header, rows = read_journal(Path(path), Header, EvalRecord)
    records: dict[Key, EvalRecord] = {}
    for record in rows:
        records.pop(record.key, None)  # a later attempt replaces a failed one
        records[record.key] = record
    return EvalLog(header, tuple(records.values()))
