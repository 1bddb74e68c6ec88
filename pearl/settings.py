"""The settings: one field each, with its help, its checks, who may set it and where it is used.

Derived from this schema: click options and their `PEARL_...` variables, keys of TOML files, groups of
`--help-all`, the settings kept with a run, the headers of logs, the fingerprint of results, and the
keyword arguments of `pearl.Pearl`. To add a setting, add a field here and the code that reads it.

A Struct that inherits from one of these has its fields. Annotations are objects here, not texts, as all of them are read.
"""

from collections.abc import Mapping
from datetime import date
from functools import cache
from typing import Annotated, Any, Literal

from msgspec import Struct

from pearl.errors import UsageError

Stage = Literal["calling", "drafting", "planning", "reading", "answering", "mapping"]
"""The first stage that uses a setting: a model call, prompts with the library, planning, reading, `ask`, or matching answers to options."""


class Setting(Struct, frozen=True):
    """The metadata of a setting."""

    help: str
    group: str
    stage: Stage
    flag: str = ""  # The option; "" if it is the name with dashes
    variable: str = ""
    metavar: str | None = None
    completes: str = ""  # The plug-in package whose names complete the option
    least: float | None = None
    above: float | None = None
    most: float | None = None
    set_by: Literal["anyone", "trusted", "user"] = "anyone"
    """Who may set it: `trusted` allows a pearl.toml of the working folder if the user trusts that
    file, because the setting decides where documents are sent, what the planner is told about them,
    or which files and plug-ins are used. `user` never allows that file."""
    is_kept: bool = True
    """Whether `pearl runs resume` takes the value from the run; if not, the user has to repeat it."""
    is_first: bool = False  # Whether the short `--help` shows it

    def checked(self, value: Any) -> Any:
        """Return the value if it is within the limits; raise a `ValueError` if not, or if it is NaN."""
        if value is not None and self.least is not None and not value >= self.least:
            raise ValueError(f"must be at least {self.least:g}")
        if value is not None and self.above is not None and not value > self.above:
            raise ValueError(f"must be above {self.above:g}")
        if value is not None and self.most is not None and not value <= self.most:
            raise ValueError(f"must be at most {self.most:g}")
        return value


_DOCUMENT, _PLAN, _MODEL = "Question and document", "Plan", "Model"
_ROWS, _LIMITS, _SEARCH = "Rows", "Limits", "Search"


class Deciding(Struct, frozen=True, kw_only=True):
    """Settings that affect results: runs that differ in one of these have different fingerprints."""

    # fmt: off
    planner_model: Annotated[str | None, Setting(
        "Model that writes plans [default: --model].",
        _MODEL, "planning", metavar="BACKEND:NAME", completes="pearl.llm.backends", set_by="trusted",
    )] = None
    rows_model: Annotated[str | None, Setting(
        "Model that reads single rows, as for FILTER [default: --model].",
        _MODEL, "reading", metavar="BACKEND:NAME", completes="pearl.llm.backends", set_by="trusted",
    )] = None
    escalate_model: Annotated[str | None, Setting(
        "Model for rows and fields that stay undecided, and for no others [default: none].",
        _MODEL, "reading", metavar="BACKEND:NAME", completes="pearl.llm.backends", set_by="trusted",
    )] = None
    checker_model: Annotated[str | None, Setting(
        "Model that checks whether quotes support an answer [default: --model].",
        _MODEL, "reading", metavar="BACKEND:NAME", completes="pearl.llm.backends", set_by="trusted",
    )] = None
    mapper_model: Annotated[str | None, Setting(
        "Model that maps answers in words to options [default: --model].",
        _MODEL, "mapping", metavar="BACKEND:NAME", completes="pearl.llm.backends", set_by="trusted",
    )] = None
    window: Annotated[int | None, Setting(
        "Context window of the model [default: the server's, a known model's, else 128000].",
        _MODEL, "calling", metavar="TOKENS", least=1,
    )] = None
    max_output_tokens: Annotated[int | None, Setting(
        "Maximum tokens of one reply, hidden ones included [default: by kind, 8192 for a step].",
        _MODEL, "calling", metavar="TOKENS", least=1,
    )] = None
    top_p: Annotated[float | None, Setting(
        "Draw tokens from this share of the probability only [default: the server's].",
        _MODEL, "calling", metavar="SHARE", above=0, most=1,
    )] = None
    constrain: Annotated[Literal["auto", "grammar", "json", "off"], Setting(
        "Constrain plans, and replies of steps that have a form, by a grammar or a JSON schema.",
        _MODEL, "drafting",
    )] = "auto"
    nearest: Annotated[int | None, Setting(
        "Show the planner only the N examples nearest to the question, and such actions [default: what fits].",
        _PLAN, "planning", metavar="N", least=1,
    )] = None
    max_steps: Annotated[int, Setting(
        "Maximum steps of a plan; longer plans are refused.",
        _PLAN, "planning", metavar="N", least=1,
    )] = 40
    max_repairs: Annotated[int, Setting(
        "Maximum repair attempts, in which the model is shown the errors of its plan.",
        _PLAN, "planning", metavar="N", least=0,
    )] = 4
    fallback: Annotated[Literal["direct", "none"], Setting(
        "If the model writes no valid plan, or is too small for plans: ask the question itself in one step, "
        "and say so, or fail.",
        _PLAN, "answering",
    )] = "direct"
    context: Annotated[str, Setting(
        "Documents longer than the window: full, map-reduce, retrieve or auto.",
        _DOCUMENT, "reading", metavar="STRATEGY",
    )] = "auto"
    ocr: Annotated[Literal["auto", "off", "force"], Setting(
        "Read pictures of text by OCR: pages without text (auto), no page, or every page (force).",
        _DOCUMENT, "reading",
    )] = "auto"
    ocr_language: Annotated[str, Setting(
        "Language of the pictures, as Tesseract names it: eng, deu, eng+fra.",
        _DOCUMENT, "reading", metavar="CODE",
    )] = "eng"
    pdf_tables: Annotated[Literal["auto", "off"], Setting(
        "Recognise tables in PDFs, if pdfplumber is installed.",
        _DOCUMENT, "reading",
    )] = "auto"
    hidden: Annotated[bool, Setting(
        "Read what Office files and pages hide, too: sheets, rows and columns, slides, text.",
        _DOCUMENT, "reading",
    )] = False
    ranker: Annotated[str, Setting(
        "Ranking of passages: bm25, dense or hybrid.",
        _DOCUMENT, "reading", metavar="NAME", set_by="trusted",
    )] = "bm25"
    as_of: Annotated[date | None, Setting(
        "Date from which the planner understands 'last year', ...: 2024-05-01 or today [default: today where "
        "the domain is dated, else none].",
        _DOCUMENT, "planning", metavar="DATE", set_by="trusted",
    )] = None
    fiscal_year_end: Annotated[tuple[int, int], Setting(
        "Last day of fiscal years; requires --as-of.",
        _DOCUMENT, "planning", metavar="MM-DD", set_by="trusted",
    )] = (12, 31)
    compose: Annotated[Literal["auto", "off"], Setting(
        "Let the model write one answer from several results, with their quotes (auto), or show the "
        "results, each with its label (off).",
        _PLAN, "reading",
    )] = "auto"
    check: Annotated[Literal["auto", "all", "off"], Setting(
        "Let a model check whether quotes support an answer: where that is not certain anyway (auto), "
        "everywhere (all), or nowhere (off).",
        _PLAN, "reading",
    )] = "auto"
    passes: Annotated[int, Setting(
        "How often an extraction reads a document: again for missing values and further entries of lists.",
        _PLAN, "reading", metavar="N", least=1,
    )] = 1
    looks: Annotated[int, Setting(
        "How often a step that finds nothing in its passages searches again: at the next ranks, by other words, "
        "in the periods before and after (the answer says so); 0: never.",
        _PLAN, "reading", metavar="N", least=0,
    )] = 3
    items_per_call: Annotated[int, Setting(
        "Maximum rows per call.",
        _ROWS, "reading", metavar="N", least=1,
    )] = 32
    row_quotes: Annotated[int, Setting(
        "Ask for the words that decide each row, in steps over at most N rows; 0: never.",
        _ROWS, "reading", metavar="N", least=0,
    )] = 200
    strict: Annotated[bool, Setting(
        "Fail a step whose reply is truncated or refused, and an answer that is degraded, for example by a "
        "quote that is not in the document. Rows that do not state what FILTER asks are undecided. By "
        "default the answer is kept, with its status.",
        _ROWS, "reading",
    )] = False
    embeddings: Annotated[str | None, Setting(
        "Embedder for the rankers dense and hybrid, and for extractive: openai:NAME, "
        "model2vec:NAME.",
        _SEARCH, "reading", metavar="NAME", set_by="trusted", is_kept=False,
    )] = None
    # fmt: on


class Settings(Deciding, frozen=True, kw_only=True):
    """All settings: those that affect results, and addresses, file names and speed, which do not."""

    # fmt: off
    model: Annotated[str, Setting(
        "extractive (no network), openai:NAME, anthropic:NAME, ollama:NAME, llamacpp:FILE, "
        "...: all in docs/servers.md.",
        _MODEL, "calling", metavar="BACKEND[:NAME]", completes="pearl.llm.backends", set_by="trusted", is_first=True,
    )] = "extractive"
    base_url: Annotated[str | None, Setting(
        "Server of --model [default: $OPENAI_BASE_URL, then OpenAI; of ollama: $OLLAMA_HOST, then this "
        "machine].",
        _MODEL, "calling", metavar="URL", set_by="trusted", is_first=True,
    )] = None
    api_key_env: Annotated[str | None, Setting(
        "Environment variable with the API key [default: PEARL_API_KEY, then OPENAI_API_KEY].",
        _MODEL, "calling", metavar="VARIABLE", set_by="user", is_kept=False,
    )] = None
    server: Annotated[str | None, Setting(
        "Kind of server, if it cannot be detected: vllm, sglang, llamacpp, ollama, ...",
        _MODEL, "drafting", metavar="KIND", completes="pearl.llm.backends.openai.servers", set_by="trusted",
    )] = None
    prefix: Annotated[Literal["auto", "off"], Setting(
        "Send the first call over a document alone, so that the server caches it, unless the wait costs more.",
        _MODEL, "reading",
    )] = "auto"
    domain: Annotated[str, Setting(
        "Kind of document; selects a library and examples.",
        _DOCUMENT, "drafting", metavar="NAME", completes="pearl.data.domains", set_by="trusted", is_first=True,
    )] = "generic"
    library: Annotated[str | None, Setting(
        "Action library, by name or file [default: the domain's].",
        _PLAN, "drafting", metavar="NAME|FILE", set_by="trusted",
    )] = None
    examples: Annotated[str | None, Setting(
        "Examples for the planner, by name or folder [default: the domain's].",
        _PLAN, "drafting", metavar="NAME|FOLDER", set_by="trusted",
    )] = None
    concurrency: Annotated[int, Setting(
        "Maximum concurrent model calls and tasks.",
        _LIMITS, "calling", metavar="N", least=1,
    )] = 8
    timeout_s: Annotated[float, Setting(
        "Timeout of one call.",
        _LIMITS, "calling", metavar="SECONDS", least=0.1,
    )] = 600.0
    requests_per_minute: Annotated[float | None, Setting(
        "Maximum calls per minute [default: what the server accepts].",
        _LIMITS, "calling", flag="--rpm", variable="PEARL_RPM", metavar="N", above=0,
    )] = None
    tokens_per_minute: Annotated[float | None, Setting(
        "Maximum tokens per minute, prompts and replies together.",
        _LIMITS, "calling", flag="--tpm", variable="PEARL_TPM", metavar="N", above=0,
    )] = None
    # fmt: on

    def __post_init__(self) -> None:
        for name, (_, setting) in schema().items():
            try:
                setting.checked(getattr(self, name))
            except ValueError as error:
                raise UsageError(f"{name} {error}") from None


_ANNOTATIONS = {**Settings.__annotations__, **Deciding.__annotations__}

SETTINGS = tuple(_ANNOTATIONS)
"""Names of all settings, which are the keys of a TOML file."""

DEFAULTS = dict(zip(Settings.__struct_fields__, Settings.__struct_defaults__, strict=True))
"""Name → value of a setting that nobody set."""

ROLES = tuple(name for name in SETTINGS if name.endswith("_model"))
"""The settings that name models for some of the calls."""


@cache
def schema() -> Mapping[str, tuple[Any, Setting]]:
    """Name → type and setting."""
    return {name: (kind.__origin__, kind.__metadata__[-1]) for name, kind in _ANNOTATIONS.items()}


def values_for(kind: type[Any], settings: Settings) -> dict[str, Any]:
    """The values of those settings that are also fields of a class."""
    # Dataclasses and Structs both name their fields so.
    return {name: getattr(settings, name) for name in kind.__match_args__ if name in SETTINGS}


def resumed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the settings that a resumed run does not take from its store."""
    return {
        name: value
        for name, value in values.items()
        if name not in SETTINGS or schema()[name][1].is_kept
    }
