"""A question and its conversation → a standalone question."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pearl.data.samples import Turn
from pearl.documents.dates import years_in
from pearl.documents.passages import terms
from pearl.documents.tokens import Counter
from pearl.dsl.checker import CheckedPlan
from pearl.dsl.literals import UNTYPED
from pearl.dsl.nodes import Item, Step, String
from pearl.dsl.signatures import Action
from pearl.errors import UNUSABLE_KINDS, ModelError
from pearl.errors.patterns import lazy_pattern
from pearl.llm import Message, Model, Request, StandaloneTask, Usage
from pearl.llm.reply_limits import reply_limit
from pearl.trace import QuestionUnderstood, Trace

PLACEHOLDER = lazy_pattern(r"\bANSWER_[1-9]\d{0,4}\b")

MAX_ANSWER = 300  # Maximum characters of an inserted answer

MAX_NAME, MAX_NAME_WORDS = 60, 3
"""Maximum characters of what an answer names, and words of an answer that is a name as it stands."""

NOT_CLEAR = "the question could not be made standalone and is left unchanged"


def earlier_answers(question: str, history: Sequence[Turn]) -> dict[str, str]:
    """Placeholder → answer, on one line and shortened."""
    if any(PLACEHOLDER.search(text) for text in (question, *(turn.question for turn in history))):
        return {}
    return {
        f"ANSWER_{number}": _shortened(UNTYPED.sub("", " ".join(turn.answer.split())), MAX_ANSWER)
        for number, turn in enumerate(history, start=1)
        if turn.answer.strip()
    }


def filled(text: str, answers: Mapping[str, str]) -> str:
    """A text with the answers in quotation marks; a placeholder alone becomes the answer itself.

    Example:
        >>> filled("why ANSWER_1 left", {"ANSWER_1": "Ada, the owner"})
        'why "Ada, the owner" left'
        >>> filled("ANSWER_1", {"ANSWER_1": "Ada"})
        'Ada'
    """
    if text in answers:
        return answers[text]

    def quoted(match: re.Match[str]) -> str:
        answer = answers.get(match[0])
        return match[0] if answer is None else '"{}"'.format(answer.replace('"', "'"))

    return PLACEHOLDER.sub(quoted, text)


def filled_plan(checked: CheckedPlan, answers: Mapping[str, str], question: str) -> CheckedPlan:
    """A plan with the answers in its strings, attributed to the question with the answers."""
    if not answers:
        return checked

    # Answers are data: they stand in strings alone, never where a prompt gives instructions.
    named = {name: f"the answer to question {name.rpartition('_')[2]}" for name in answers}

    def item(given: Item) -> Item:
        if not isinstance(given, String) or (value := filled(given.value, answers)) == given.value:
            return given
        return String(value, has_answer=True)

    def step(given: Step) -> Step:
        return replace(given.with_items(item), explanation=filled(given.explanation, named))

    def action(given: Action) -> Action:
        return replace(given, definition=filled(given.definition, named))

    plan = checked.plan
    new = tuple(map(action, plan.new_actions))
    own = {given.name for given in plan.new_actions}
    actions = checked.actions.extended(
        action(given)
        for given in checked.actions.values()
        if given.name.removeprefix("EACH_") in own
    )
    plan = replace(plan, steps=tuple(map(step, plan.steps)), new_actions=new, question=question)
    return replace(checked, plan=plan, actions=actions)


def _shortened(line: str, most: int) -> str:
    return line if len(line) <= most else f"{line[: most - 4].rstrip()} ..."


MAX_LENGTH = 1_000  # Maximum characters by which a reply may exceed the question

MAX_QUESTION = 300  # Maximum characters of an earlier question in a prompt

MAX_TURNS = 12
"""Maximum earlier turns in a prompt: the first, which names the topic, and the latest ones."""

MAX_TOKENS = 2_048  # Maximum tokens of the turns in a prompt, and at most a quarter of the window

_SYSTEM = """\
You rewrite the last question of a conversation about a document, so that it can be understood by \
somebody who has not read the conversation. You do not answer it."""

_RULES = """\
Rewrite the question as one question that is clear by itself:
- Say what its pronouns and words such as "that", "this change" or "the two" stand for, and put in what \
it leaves out: who or what, which figure, which period or unit.
- Change nothing else. Keep its own periods, names, numbers and units; where it names a period, that one \
takes the place of the earlier one.
- ANSWER_1 stands for the answer to the first question, which you cannot see: write ANSWER_1 where the \
question refers to it, and take all other words from the questions. Compute nothing and do not answer.
- A question that is clear already stays as it is.
- Reply with the question alone, on one line."""

_LABEL = lazy_pattern(
    r"\A\W*(?:(?:standalone|rewritten|rephrased|new|clear|final)\s+)*question\W*:\W*(?=\S)", re.I
)
_QUOTES = {'"': '"', "“": "”", "'": "'", "`": "`", "«": "»"}
_MARKS = ("?", "？", "؟")
_ASKING = lazy_pattern(
    r"(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|has|have|had|can|could"
    r"|will|would|should|by|in|at|on|for|from|of|to|with|as|if|compare|compute|calculate|count|describe"
    r"|explain|find|give|identify|list|name|quote|say|show|sum|summari[sz]e|tell)\b",
    re.I,
)
_NUMBER = lazy_pattern(r"\d+(?:[.,]\d+)*")
_SHIFTS = lazy_pattern(
    r"\b(?:before|after|ago|later|earlier|previous|prior|preced\w+|next|following|subsequent|succeeding"
    r"|last|past|since|then|decade|years?|quarters?|periods?)\b",
    re.I,
)
_SMALL = 12
"""Maximum number that may replace a number word of the conversation, if the question keeps its own numbers."""
_SPOKEN = lazy_pattern(
    r"\b(?:I|[Yy]ou|[Yy]ours?|[Mm]y|me|[Ww]e|us|[Oo]urs?|[Nn]ot|[Nn]ever|[Nn]o)\b|n['’]t\b"
)
"""Words of assistant phrases, and negations: adding one makes it another question."""
_ASKED_HOW = frozenset(["who", "whom", "whose", "when", "where", "why", "how"])
_AGAIN = (" again ", " repeat ", " once more ")
_PLAIN = frozenset(
    terms(
        "value amount figure number year quarter period date time person people character thing reason part"
        " mention give name same one first second last specific again document text passage story article report according"
    )
)
"""Terms that a rewritten question may add, because they name nothing."""


@dataclass(frozen=True, slots=True)
class Standalone:
    """A question of a conversation, rewritten to be standalone if possible."""

    question: str
    notes: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    n_calls: int = 0
    n_cached: int = 0


async def make_standalone(
    question: str, history: Sequence[Turn], model: Model, *, max_output_tokens: int | None = None
) -> Standalone:
    """Replace the pronouns of a question and add its omitted words."""
    if not history:
        return Standalone(question)
    answers = earlier_answers(question, history)
    turns = tuple(
        Turn(turn.question, name if (name := f"ANSWER_{number}") in answers else "")
        for number, turn in enumerate(history, start=1)
    )
    task = StandaloneTask(question, turns)
    messages = standalone_messages(question, shown_turns(turns, model))
    limit = reply_limit(task, model.window, max_output_tokens)
    usage, n_cached, problem = Usage(), 0, ""
    for n_calls in (1, 2):
        try:
            completion = await model.complete(Request(messages, task, limit))
        except ModelError as error:
            if error.kind not in UNUSABLE_KINDS:
                raise
            problem, usage = error.message, usage + (error.usage or Usage())
            continue
        usage += completion.usage
        n_cached += completion.is_remembered
        standalone, problem = read_reply(completion.text, question, turns)
        if not problem:
            return Standalone(standalone, (), usage, n_calls, n_cached)
        messages = unusable_messages(messages, completion.text, problem)
    note = f"{NOT_CLEAR}: {problem}"
    return Standalone(question, (note,), usage, n_calls, n_cached)


def shown_turns(history: Sequence[Turn], model: Model) -> tuple[Turn, ...]:
    """The turns that a prompt shows: the first and the latest ones that fit, questions shortened."""
    counter = Counter.for_model(model.name)
    left = MAX_TOKENS if model.window is None else min(MAX_TOKENS, model.window // 4)
    first, *rest = (
        Turn(_shortened(" ".join(turn.question.split()), MAX_QUESTION), turn.answer)
        for turn in history
    )
    left -= counter.count(_turn(first))
    latest: list[Turn] = []
    for turn in reversed(rest[1 - MAX_TURNS :]):
        left -= counter.count(_turn(turn))
        if latest and left < 0:
            break
        latest.insert(0, turn)
    return (first, *latest)


def standalone_messages(question: str, turns: Sequence[Turn]) -> tuple[Message, ...]:
    """Request the standalone question."""
    parts = [
        _RULES,
        "The conversation so far:\n\n" + "\n\n".join(map(_turn, turns)),
        f"Rewrite this question: {question}",
    ]
    return Message("system", _SYSTEM), Message("user", "\n\n".join(parts))


def unusable_messages(messages: Sequence[Message], reply: str, problem: str) -> tuple[Message, ...]:
    """Request another reply after one that cannot be used."""
    request = (
        f"This cannot be used: {problem}. Reply with the rewritten question alone, on one line."
    )
    return *messages, Message("assistant", reply[:MAX_LENGTH]), Message("user", request)


def read_reply(reply: str, question: str, history: Sequence[Turn]) -> tuple[str, str]:
    """The question in a reply, and its flaw; one of the two is "".

    Example:
        >>> turns = [Turn("What were net sales in 2008?", "ANSWER_1")]
        >>> read_reply("Question: What were net sales in 2009?", "and in 2009?", turns)
        ('What were net sales in 2009?', '')
        >>> read_reply("$7 million", "and in 2009?", turns)
        ('', 'it is not a question')
    """
    text = _unwrapped(reply.strip())
    if "\n" in text:
        return "", "it has more than one line"
    text = " ".join(text.split())
    if not any(character.isalnum() for character in text):
        return "", "it is blank"
    if len(text) > len(question) + MAX_LENGTH:
        return "", f"it has more than {len(question) + MAX_LENGTH:,} characters"
    if text == question:
        return text, ""
    if not _is_question(text, question):
        return "", "it is not a question"
    if lost := sorted({*years_in(question)} - {*years_in(text)}):
        return "", f"it leaves out {lost[0]}, which the question names"
    why = _differs(text, question, history)
    return ("", why) if why else (text, "")


def _differs(text: str, question: str, history: Sequence[Turn]) -> str:
    """Why a text is not a standalone form of the question; "" if it may be one."""
    earlier = [turn.question for turn in history]
    if unknown := {*PLACEHOLDER.findall(text)} - {turn.answer for turn in history}:
        return f"there is no {min(unknown)}"
    words = PLACEHOLDER.sub(" ", text)
    questions = [question, *earlier]
    if invented := _invented(words, questions):
        return f"it has {invented}, which neither the question nor the conversation names"
    if spoken := {*_SPOKEN.findall(words)} - {*_SPOKEN.findall(" ".join(questions))}:
        return f"it says '{min(spoken)}', which no question does"
    known = {*_PLAIN, *(term for each in questions for term in terms(each))}
    letters = {*"".join(questions).casefold()}
    for term in terms(words, drop_stop_words=True):
        is_part = len(term) <= 2 and not term.isascii() and letters.issuperset(term)
        if not (term in known or is_part or any(map(str.isdigit, term))):
            return f"it has words that no question has: '{term}'"
    own = {*terms(question, drop_stop_words=True)} - _PLAIN
    own = {term for term in own if term.isalpha() and (len(term) > 2 or term.isascii())}
    if 2 * len(own - {*terms(words)}) > len(own):
        return "it leaves out the words of the question"
    how, asked = ({*_bare(each).split()} & _ASKED_HOW for each in (question, words))
    if left := how - asked:
        return f"it does not ask '{min(left)}', as the question does"
    is_bare = not own and not _NUMBER.search(question)
    is_again = any(each in f" {_bare(question)} " for each in _AGAIN)
    if is_bare and _bare(words) in map(_bare, earlier) and not is_again:
        return "it is an earlier question"
    return ""


def _bare(question: str) -> str:
    return " ".join(re.findall(r"\w+", question.casefold()))


def _unwrapped(text: str) -> str:
    """A reply without a label before the question and quotation marks around it."""
    text = _LABEL.sub("", text, count=1)
    closing = _QUOTES.get(text[:1])
    if closing and len(text) > 2 and text.endswith(closing) and closing not in text[1:-1]:
        text = text[1:-1]
    return text.strip()


def _is_question(text: str, question: str) -> bool:
    """Whether a text is a question, in the form of the original."""
    end = max(map(text.rfind, _MARKS))
    behind = text[end + 1 :].strip()
    # only a remark in brackets may follow the question mark
    if end >= 0 and (not behind or (behind[0] == "(" and behind[-1] == ")")):
        return True
    if question.rstrip().endswith(_MARKS):
        return False
    same = text.casefold().startswith(question.casefold().split()[0])
    return same or _ASKING.match(text) is not None


def _invented(text: str, asked: Sequence[str]) -> str:
    """The first number of a text that no question has; "" for none."""
    question = asked[0]
    known = {_plain(number) for part in asked for number in _NUMBER.findall(part)}
    known |= {str(year) for part in asked for year in years_in(part)}
    kept = {_plain(number) for number in _NUMBER.findall(text)}
    own = {_plain(number) for number in _NUMBER.findall(question) if not years_in(number)}
    is_replaced = not own <= kept
    may_shift = _SHIFTS.search(question) is not None
    for number in _NUMBER.findall(text):
        plain = _plain(number)
        is_small = not is_replaced and plain.isdigit() and int(plain[:6]) <= _SMALL
        if plain in known or is_small or (may_shift and years_in(plain)):
            continue
        return str(number)
    return ""


def _plain(number: str) -> str:
    """A number without thousands separators and without zeros at its end."""
    plain = number.replace(",", "")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def _turn(turn: Turn) -> str:
    return f"Question: {turn.question}" + (f"\nAnswer: {turn.answer}" if turn.answer else "")


@dataclass(frozen=True, slots=True)
class Understood:
    """A question as it is planned."""

    asked: str
    question: str
    notes: tuple[str, ...] = ()
    planned: str = ""
    answers: Mapping[str, str] = field(default_factory=dict)

    def filled(self, plan: CheckedPlan) -> CheckedPlan:
        """A plan with the answers in place of the placeholders."""
        return filled_plan(plan, self.answers, self.question)

    @property
    def unnamed(self) -> tuple[str, ...]:
        """The answers that may be whole sentences, by their placeholders."""
        answers = self.answers.items()
        return tuple(name for name, said in answers if len(said.split()) > MAX_NAME_WORDS)

    def naming(self, names: Mapping[str, str]) -> Understood:
        """The question with these names in place of answers; as it was asked if an answer has none."""
        if lost := [name for name in self.unnamed if not names.get(name)]:
            return Understood(
                self.asked, self.asked, (f"{NOT_CLEAR}: {lost[0]} names nothing",), self.asked
            )
        answers = {**self.answers, **names}
        return replace(self, question=filled(self.planned, answers), answers=answers)

    @property
    def says_more(self) -> bool:
        """Whether the question was changed or has notes."""
        return self.question != self.asked or bool(self.notes)


async def understand(
    question: str,
    model: Model,
    *,
    history: Sequence[Turn] = (),
    max_output_tokens: int | None = None,
    trace: Trace | None = None,
) -> Understood:
    """Make a question standalone; the model is called only if there are earlier turns."""
    made = await make_standalone(question, history, model, max_output_tokens=max_output_tokens)
    alone, notes = made.question, made.notes
    known = earlier_answers(question, history)
    answers = {name: known[name] for name in PLACEHOLDER.findall(alone) if name in known}
    understood = Understood(question, filled(alone, answers), notes, alone, answers)
    if trace is not None and (understood.says_more or made.n_calls):
        trace.append(
            QuestionUnderstood(
                asked=question, question=understood.question, notes=notes,
                usage=made.usage, n_calls=made.n_calls, n_cached=made.n_cached,
            )
        )  # fmt: skip
    return understood
