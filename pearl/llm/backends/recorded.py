"""`recorded:NAME`: replies of a language model, recorded by `experiments/record_demo.py`, to the same requests."""

from __future__ import annotations

from pathlib import Path

from pearl.documents.document import file_source
from pearl.errors import ModelError, UsageError, suggest
from pearl.llm import PlanTask, Request
from pearl.llm.backends import Abilities, ModelSettings
from pearl.llm.backends.scripted import Scripted, read_rules

DESCRIPTION = "recorded replies of a language model: recorded:demo"

FOLDER = Path(__file__).parents[1] / "recordings"


class Recorded(Scripted):
    """A model with recorded replies, by the key of the request."""

    reads_prompts = True


def key(request: Request) -> str:
    """Key of a request: of a first plan its question, because its prompt has all actions of today; else the digest of the messages."""
    task = request.task
    return task.question if isinstance(task, PlanTask) and not task.round else request.digest


def create(name: str, settings: ModelSettings) -> Recorded:
    """Create the model of a recording; `name` may end with the recorded models, as in `Model.name`."""
    name = name.partition(": ")[0]
    path = FOLDER / f"{name}.json"
    if not path.is_file():
        names = sorted(path.stem for path in FOLDER.glob("*.json"))
        raise UsageError(f"unknown recording '{name}'", help=suggest(name, names, "recordings"))
    rules = read_rules(path)
    replies = {rule.match: rule.reply for rule in rules}
    models = "; ".join(sorted({rule.model for rule in rules}))

    def reply(request: Request) -> str:
        if key(request) not in replies:
            raise ModelError(
                f"the recording '{name}' has no reply to this request",
                kind="bad_request",
                help="it replies to the commands that 'pearl demo' shows; for other questions name a "
                "model, for example --model openai:gpt-4o",
            )
        return replies[key(request)]

    model = Recorded(
        reply,
        name=f"recorded:{name}: {models}",
        source=file_source(path),
        window=settings.window,
        is_recording=False,
    )
    model.notice = f"{model.name}; no model is asked now"
    return model


ABILITIES = Abilities("NAME")
