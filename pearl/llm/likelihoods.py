"""Messages + candidates for the beginning of the reply → their log-likelihoods.

They are requested like a reply (`Request.candidates`), so that they pass the same middleware: counted,
limited, deduplicated and kept. The text of such a completion is the numbers (`write_numbers`).

A model prefers some texts whatever it is asked. `against_null` subtracts what it thinks of a candidate
under questions that say nothing; candidates are compared by the difference, never by raw likelihood.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pearl.errors import ModelError
from pearl.llm import Completion, Message, Model, Request, Task


async def log_likelihoods(
    model: Model, messages: Sequence[Message], candidates: Sequence[str], task: Task
) -> tuple[tuple[float, ...], Completion]:
    """Compute the log-likelihood of each candidate as the beginning of the reply."""
    if not model.constrains.likelihoods:
        raise ModelError(
            f"{model.name} tells no likelihoods",
            kind="bad_request",
            help="llamacpp:, transformers:, llama-server: and vllm: do (--server for others like them)",
        )
    request = Request(tuple(messages), task, max_output_tokens=1, candidates=tuple(candidates))
    completion = await model.complete(request)
    return read_numbers(completion.text, len(candidates), model.name), completion


def write_numbers(values: Sequence[float]) -> str:
    """Log-likelihoods as the text of a completion.

    Example:
        >>> write_numbers([-1.25, -3.0])
        '-1.25 -3.0'
    """
    return " ".join(map(repr, map(float, values)))


def read_numbers(text: str, n: int, name: str) -> tuple[float, ...]:
    """Log-likelihoods from the text of a completion."""
    try:
        values = tuple(map(float, text.split()))
    except ValueError:
        values = ()
    # Sums of rounded logarithms may be slightly above 0.
    if len(values) != n or not all(math.isfinite(value) and value < 1e-3 for value in values):
        raise ModelError(
            f"{name} tells no likelihoods of the {n} candidates: {text[:80]!r}", kind="malformed"
        )
    return values


def against_null(asked: Sequence[float], null: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Pointwise mutual information of each candidate with the question, in nats.

    Source:
        Holtzman et al., Surface Form Competition (2021): domain-conditional PMI; several null
        prompts as in Zhao et al., Calibrate Before Use (2021).

    Example:
        >>> against_null([-2.0, -3.0], [[-2.0, -6.0], [-3.0, -6.0]])
        (0.5, 3.0)
    """
    return tuple(value - sum(each) / len(null) for value, *each in zip(asked, *null, strict=True))
