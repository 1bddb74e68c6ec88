"""CONCAT(S1, S2, ...): texts, joined by a blank line."""

from pearl.actions.values import Value
from pearl.dsl.signatures import Action, Parameter

ACTION = Action(
    "CONCAT",
    (Parameter("S1"), Parameter("S2")),
    "Join the texts in the order given",
    is_variadic=True,
    is_native=True,
)


def run(*texts: str) -> Value:
    r"""Join the texts that are not blank, each stripped of outer blank lines.

    Example:
        >>> run("a", "b")
        'a\n\nb'
    """
    return "\n\n".join(text.strip("\n") for text in texts if text.strip())
