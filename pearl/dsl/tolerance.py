"""Split a plan text into lines, each with its errors and their fixes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise, takewhile
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from pearl.dsl import scanner
from pearl.dsl.literals import GLUED, UNTYPED, terminal
from pearl.errors import Diagnostic, Fix, Span, apply_fixes
from pearl.errors.patterns import lazy_pattern

Role = Literal[
    "question", "block", "declared", "heading", "none", "action", "step", "blank", "comment", "surplus"
]  # fmt: skip

_JUNK = UNTYPED.pattern[1:-1]

QUESTION = lazy_pattern(  # "Question: " or "**question**: " before a text
    rf"(?:Question: (?=[^ \xa0{_JUNK}])|(?i:[\s`*#>]*+question[\s`*]*+:[\s`*{_JUNK}]*+(?=.)))"
)
HEADING = lazy_pattern(
    r"[\s`*#>]*+new\s++actions?[\s`*]*+:?[\s`*]*+(none[\s`*.]*+)?\Z",  # "## New actions: none"
    re.I,
)

_BLOCKS = ("Parameters:", "Sources:")
"""The headings of the names that a plan declares; only files have such blocks, which are read strictly."""

_TURN = lazy_pattern(
    r"[\s`*#>_]*+(?:(?:user|human|assistant|q)[\s`*_]*+:|question(?:\s?#?\d{1,4}+)?[\s`*_]*+(?::|\Z))"
    r"|\s*+(?:<\|(?:im_start|start_header_id|user)|\[INST\])",
    re.I,
)
"""The beginning of another turn of a conversation: `User:`, `Question 2:`, `<|im_start`."""
_COMMENT = lazy_pattern(r"\s*+#(?!#+\s*+(?:new actions|question)\b)", re.I)
"""Two or more `#` are a heading of Markdown if a part of the plan follows them."""
_BULLET = lazy_pattern(r"[\s`*>]*+[-+*•–]\s")  # "- ", "> * "
_CALL = lazy_pattern(r"(?<![A-Z0-9_])[A-Z][A-Z0-9_]++\(")  # FIND(
_LIKE_STEP = lazy_pattern(
    # one word, maybe a type, a sign and a call: "ans := FIND(", "let ans: str = FIND(", "the\\_key <- FIND("
    r"""(?:(?:let|const|var)\s++)?+[^\s=:(,"'<>←→＝|]++(?:\s*+:\s*+\w++(?:\[[^\]]*+\])?)?"""
    r"""\s*+(?::?=>?|<-|-?>|[|＝←→])[\s`*]*+[\w.]++[(（]"""
    r"|return\s++[\w.]++\("  # "return FIND("
)
"""A step in another notation, which is reported as an error, not dropped as prose."""
_BRACKETS = lazy_pattern(  # strings are skipped, brackets counted, an open quote noticed
    r""""(?:[^"\\\n]|\\.)*+"|[“„][^“”"\n]*+[”“"]|(?<=[(\[,=\s])'[^'\n]*+'"""  # strings
    r"""|(?P<open>[(\[])|(?P<close>[)\]])|(?P<quote>["“”])"""
)
_MAX_LINES = 20  # Maximum lines of a call


class Line(Struct):
    """A line: its form, the role derived from its neighbours, and its errors."""

    span: Span
    form: Literal["blank", "comment", "fence", "block", "heading", "none", "question", "turn", "control", "text"]  # fmt: skip
    number: int | None = None
    is_bullet: bool = False
    is_call: bool = False  # NAME(...: a declaration, or a step without its output
    is_step: bool = False  # name = ACTION(..., or a number before name =
    is_like_step: bool = False  # a step, certainly or in another notation
    role: Role = "surplus"
    is_misplaced: bool = False
    found: list[Diagnostic] = []
    names: list[str] = []
    calls: list[scanner.NamedCall] = []
    is_readable: bool = True

    @property
    def body(self) -> Span:
        """The part that a start rule of the grammar parses."""
        start = self.span.start + len("- ") * (self.role in ("action", "declared"))
        return Span(start, self.span.end)


def rows(text: str, *, with_comments: bool = False) -> list[Line]:
    r"""Every line of a text, with its role; lines end in `\n`. Only files have comments."""
    found: list[Line] = []
    for span in _spans(text.removesuffix("\n")):
        source = text[span.start : span.end]
        is_comment = with_comments and _COMMENT.match(source)
        found.append(Line(span, "comment", role="comment") if is_comment else _row(source, span))
    for line, below in pairwise(found):
        for comment, blank in ((line, below), (below, line)):
            if comment.form == "comment" and blank.form == "blank":
                blank.role = "blank"
    others = [line for line in found if line.form != "comment"]
    begin, end = _region(others)
    if not any(line.is_step for line in others[end:]):
        headings = (i for i, line in enumerate(others[end:], end) if line.form == "heading")
        is_declaring = any(_unnumbered(others[i + 1 : i + 4], "is_call") for i in headings)
        end = len(others) if is_declaring else end
    _give_roles(text, others[begin:end])
    return found


def _spans(text: str) -> Iterator[Span]:
    """Split a text into lines; a call over several lines counts as one, two steps on one line as two."""
    sources = text.split("\n")
    at = i = 0
    while i < len(sources):
        n = _n_lines(sources[i : i + _MAX_LINES])
        end = at + sum(map(len, sources[i : i + n])) + n - 1
        start = at
        for glue in GLUED.finditer(text, at, end):
            above = Span(start, glue.start())
            is_closed = text.count('"', above.start, above.end) % 2 == 0
            if is_closed and _row(text[above.start : above.end], above).is_like_step:
                yield above
                start = glue.end()
        yield Span(start, end)
        at, i = end + 1, i + n


def _n_lines(sources: Sequence[str]) -> int:
    """The number of lines of the call that begins in the first one; 1 if it does not end in these lines."""
    depth = _depth(sources[0])
    if depth <= 0 or len(sources) == 1:
        return 1
    others = (_row(source, Span(0, 0)) for source in sources)
    first = next(others)
    if not (first.is_step or first.is_call):
        return 1
    for n, row in enumerate(others, start=2):
        if row.form != "text" or row.is_step or (row.is_like_step and row.number is not None):
            break
        depth += (more := _depth(sources[n - 1]))
        if depth == 0 and more < 0:
            return n
    return 1


def _depth(source: str) -> int:
    """The number of brackets that a line leaves open; -10^9 if it leaves a quote open."""
    depth = 0
    for found in _BRACKETS.finditer(source):
        if found["quote"]:
            return -(10**9)
        depth += bool(found["open"]) - bool(found["close"])
    return depth


def _row(source: str, span: Span) -> Line:
    if not (bare := source.strip()):
        return Line(span, "blank")
    if bare.startswith(("```", "~~~")) and all(
        each.isalnum() or each in " _+.-" for each in bare.lstrip("`~")
    ):  # "```text"
        return Line(span, "fence")
    if source in _BLOCKS:
        return Line(span, "block")
    if HEADING.match(source):
        return Line(span, "heading")
    if QUESTION.match(source):
        return Line(span, "question")
    if _TURN.match(source):
        return Line(span, "turn")
    if bare.strip("`*>•-. ").casefold() in ("none", "none needed"):  # "- None needed."
        return Line(span, "none")
    if scanner.CONTROL.match(source):
        return Line(span, "control", is_like_step=True)
    row = Line(span, "text", is_bullet=bool(_BULLET.match(source)))
    head = scanner.HEAD.match(source)
    assert head  # it matches the empty string, too
    if head["digits"]:
        row.number = int(head["digits"][:7])
    name = terminal("NAME").match(source, head.end())
    if name and (assigns := scanner.ASSIGNS.match(source, name.end())):
        action = terminal("NAME").match(source, assigns.end())
        is_call = bool(action and scanner.OPENS.match(source, action.end()))
        row.is_step, row.is_like_step = is_call or row.number is not None, True
    elif name and scanner.OPENS.match(source, name.end()):
        row.is_call = row.is_bullet or (len(name[0]) > 1 and name[0] == name[0].upper())
        row.is_like_step = row.is_call or row.number is not None
    elif _LIKE_STEP.match(source, head.end()):
        row.is_like_step = True
    elif row.number is not None:
        row.is_like_step = bool(_CALL.search(source))
    return row


def _region(found: Sequence[Line]) -> tuple[int, int]:
    """The lines that hold the plan, as a half-open range."""
    is_begun = False
    for i, row in enumerate(found):
        if is_begun and row.form in ("question", "turn"):
            found = found[:i]
            break
        is_begun = is_begun or row.is_step
    is_certain = any(row.is_step for row in found)
    steps = [row if row.is_step or (row.is_like_step and not is_certain) else None for row in found]
    fences = [i for i, row in enumerate(found) if row.form == "fence"]
    blocks = [
        (opening, closing)
        for opening, closing in zip(fences[::2], fences[1::2], strict=False)
        if any(steps[opening:closing])
    ]
    headings = [i for i, row in enumerate(found) if row.form == "heading"]
    stretches = pairwise([*headings, len(found)])
    last = max((i for i, end in stretches if _begins(steps[i:end])), default=-1)
    # A fence that is never closed begins another plan, which was cut off.
    if blocks and len(fences) % 2 and blocks[-1][1] < fences[-1] < last:
        return _region(found[: fences[-1]])
    if not blocks or last > blocks[-1][1]:
        return (last, len(found)) if last >= 0 and any(steps[:last]) else (0, len(found))
    begin = max((i for i, end in blocks if _begins(steps[i:end])), default=blocks[0][0])
    if not any(begin < i < blocks[-1][1] for i in headings):
        # The heading and its actions may stand in a fence of their own, or in none.
        above = max((i for i in headings if i < begin), default=begin)
        begin = begin if any(steps[above:begin]) else above
    return begin, blocks[-1][1]


def _begins(steps: Sequence[Line | None]) -> bool:
    """Whether a new plan begins here, rather than continuing the numbering."""
    first = next((step for step in steps if step), None)
    return first is not None and (first.number or 1) == 1


def _give_roles(text: str, region: Sequence[Line]) -> None:
    """Assign a role to every line of the region: question, heading, actions, then steps."""
    heading = next((i for i, row in enumerate(region) if row.form == "heading"), len(region))
    first = _first_step(region, heading)
    begin = heading if heading < first else _bare_declarations(text, region, first)
    for row in region[:begin]:
        if row.form == "question":
            row.role = "question"
            break
    for at, block in enumerate(region[:begin]):
        below = region[at + 1 : begin] if block.form == "block" else []
        for row in takewhile(lambda row: row.is_bullet, below):
            name = text[row.span.start : row.span.end].partition(":")[0]
            if re.search(r"\w", name):  # a bullet without a name is nothing
                block.role, row.role = "block", "declared"
    for row in reversed(region[begin:first]):
        if row.form == "none":
            row.role = "none"
        elif row.is_bullet or row.is_call or (row.number and _is_declared(text, row)):
            row.role = "action"
        elif row.number is not None:  # a broken step, unless declarations follow
            row.role = (
                "action"
                if any(r.role in ("none", "action") for r in region[begin:first])
                else "step"
            )
    if begin < first and begin == heading:
        region[heading].role = "heading"
    is_declaring = False
    for i, row in enumerate(region[first:], start=first):
        if row.form == "heading" and _unnumbered(region[i + 1 : i + 4], "is_call"):
            row.role, row.is_misplaced, is_declaring = "heading", True, True
        elif is_declaring and row.is_call and row.number is None:
            row.role, row.is_misplaced = "action", True
        elif row.is_like_step or (
            # a number above a step without one belongs to that step
            row.number is not None and not _unnumbered(region[i + 1 : i + 4], "is_step")
        ):  # fmt: skip
            row.role, is_declaring = "step", False


def _unnumbered(below: Sequence[Line], what: Literal["is_call", "is_step"]) -> bool:
    """Whether a call or a step without a number follows, perhaps after a blank line and a fence."""
    row = next((row for row in below if row.form not in ("blank", "fence")), None)
    return row is not None and row.number is None and getattr(row, what)


def _first_step(region: Sequence[Line], heading: int) -> int:
    """Index of the first step; without any, the first line that resembles one."""
    is_certain = any(row.is_step for row in region)
    first = len(region)
    for i, row in enumerate(region):
        is_declared = row.is_call and row.number is None and (row.is_bullet or i > heading)
        if row.is_step or (row.is_like_step and not is_certain and not is_declared):
            first = i
            break
    while 0 < first < len(region) and _leads_to(region[first - 1], region[first], first > heading):
        first -= 1
    return first


def _leads_to(above: Line, row: Line, is_below_heading: bool) -> bool:
    """Whether a line right above a step is a broken step rather than prose or a declaration."""
    if above.number is not None:
        return row.number is not None and above.number < row.number
    is_code = above.form == "control"
    return above.is_like_step and not above.is_bullet and (is_code or not is_below_heading)


def _bare_declarations(text: str, region: Sequence[Line], first: int) -> int:
    """Index of the first of the declarations that stand right above the steps without a heading."""
    begin = first
    for i in range(first - 1, -1, -1):
        row = region[i]
        if row.form == "blank":
            continue
        if not (row.is_bullet and _is_declared(text, row)):
            break
        begin = i
    return begin


def _is_declared(text: str, row: Line) -> bool:
    """Whether a line is a declaration of an action, or can be fixed to be one."""
    return all(found.fix for found in scanner.scan_action(text, row.span).found)


def mend(text: str) -> tuple[str, list[Diagnostic]]:
    """Apply every fix; returns the text and the fixes as notes, with positions in the given text."""
    found = [found for line in lines(text) for found in line.found]
    notes = [replace(d, code="leniency", severity="note") for d in found if d.fix]
    return apply_fixes(text, [note.fix for note in notes if note.fix]), notes


def lines(text: str, *, with_comments: bool = False) -> list[Line]:
    """Every line with its role and its errors."""
    found = rows(text, with_comments=with_comments)
    steps = [line for line in found if line.role == "step"]
    words = set(re.findall(r"\w+", text)) if steps else set()
    _check_layout(text, found)
    n_steps = 0
    for above, line in zip([None, *found], found, strict=False):
        if line.role == "action":
            _take(line, scanner.scan_action(text, line.span))
        if line.role != "step":
            continue
        gap = Span(above.span.end if above else line.span.start, line.span.start)
        if above and text[gap.start : gap.end] != "\n":
            why = "two steps on one line"
            line.found.append(Diagnostic("syntax", why, gap, fix=Fix(gap, "\n")))
        n_steps += 1
        _take(line, scanner.scan_step(text, line.span, n_steps, words))
    if misplaced := next((line for line in found if line.is_misplaced), None):
        why = "new actions must precede the steps"
        advice = "move 'New actions:' and its lines above the first step"
        misplaced.found.insert(0, Diagnostic("syntax", why, misplaced.span, help=advice))
    # Each fence, and each run of other surplus lines, is reported once.
    for key, run in groupby(found, lambda x: x.span if x.form == "fence" else x.role == "surplus"):
        if key:
            _remove(text, list(run))
    return found


def _take(line: Line, scan: scanner.Scan) -> None:
    line.found += scan.found
    line.names += scan.names
    line.calls += scan.calls
    line.is_readable = not scan.found


def _check_layout(text: str, found: Sequence[Line]) -> None:
    """Diagnose the layout: headings, blank lines, surplus lines."""
    above_steps = takewhile(lambda line: line.role != "step", found)
    has_action = any(line.role == "action" for line in above_steps)
    above: Role | None = None
    blank: Line | None = None  # the first blank line since the last line of the plan
    heading: Line | None = None  # a heading that no line has followed yet
    for line in found:
        if line.form == "blank":
            blank = blank or line
        if line.role in ("blank", "comment"):
            continue
        if line.role == "none" and (has_action or above == "none"):
            line.role = "surplus"
        if line.role == "surplus" or line.is_misplaced:
            continue
        if heading is not None:
            above = _follow_heading(text, heading, line.role)
            heading = None
        # Whether two parts of a plan are separated by a blank line
        if (
            above == "question"
            or (above == "declared" and line.role != "declared")
            or (above in ("none", "action") and line.role == "step")
            or (above == "step" and line.role == "heading")
        ):
            if blank is None:
                _insert(line, line.span.start, "\n", "no blank line")
            else:
                blank.role = "blank"
                _should_read(text, blank, "", "blanks in a blank line")
        if line.role == "heading":
            heading = line
        elif line.role == "none":
            _should_read(text, line, "- None", "'none' reads '- None'")
        elif line.role == "question":
            match = QUESTION.match(text, line.span.start, line.span.end)
            assert match
            words = text[match.end() : line.span.end]
            if match[0] != "Question: " or not terminal("TEXT").fullmatch(words):
                line.is_readable = False
                wanted = f"Question: {UNTYPED.sub(' ', words)}"
                _should_read(
                    text, line, wanted, "the question reads 'Question: ...', in plain characters"
                )
        elif line.role == "declared":
            form = rf"- (?:{terminal('NAME').pattern})(?: ?: (?:{terminal('TEXT').pattern}))?"
            line.is_readable = bool(re.fullmatch(form, text[line.span.start : line.span.end]))
            if not line.is_readable:
                why, advice = (
                    "this does not follow the grammar",
                    "a line reads: - name : what it is",
                )
                line.found.append(Diagnostic("syntax", why, line.span, help=advice))
        elif line.role == "action" and above in (None, "question", "declared"):
            _insert(line, line.span.start, "New actions:\n", "no heading 'New actions:'")
        above, blank = line.role, None


def _insert(line: Line, at: int, wanted: str, why: str) -> None:
    place = Span(at, at)
    line.found.append(Diagnostic("syntax", why, place, fix=Fix(place, wanted)))


def _follow_heading(text: str, heading: Line, below: Role) -> Role:
    """Diagnose the heading, given the role of the next line, and return the role that precedes it."""
    match = HEADING.match(text, heading.span.start, heading.span.end)
    assert match
    if below not in ("none", "action") and match[1]:
        why = "'- None' must be on its own line"
        _should_read(text, heading, "New actions:\n- None", why)
        return "none"
    _should_read(text, heading, "New actions:", "the heading reads 'New actions:'")
    if below in ("none", "action"):
        return "heading"
    _insert(heading, heading.span.end + 1, "- None\n", "no '- None' under the heading")
    return "none"


def _should_read(text: str, line: Line, wanted: str, why: str) -> None:
    if text[line.span.start : line.span.end] != wanted:
        line.found.append(scanner.should_read(text, line.span, wanted, why))


def _remove(text: str, run: Sequence[Line]) -> None:
    line = next((line for line in run if line.form != "blank"), run[0])
    source = text[line.span.start : line.span.end]
    lead = len(source) - len(source.lstrip()) if source.strip() else 0
    why = {
        "fence": "a code fence around the plan",
        "blank": "unexpected blank line",
        "none": "'- None' beside something else",
    }.get(line.form, "text that is not part of a plan")
    if len(run) > 1:
        why += f" ({len(run)} lines)"
    end = min(run[-1].span.end + 1, len(text))  # its line break goes, too
    where = Span(line.span.start + lead, line.span.end)
    fix = Fix(Span(run[0].span.start, end), "")
    line.found.append(Diagnostic("syntax", why, where, fix=fix))
