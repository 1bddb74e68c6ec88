"""`Refinement` → one HTML page: no scripts, no external resources, all text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from pearl.mining.refine.library import lineage
from pearl.mining.refine.refinement import (
    DraftFate,
    LibraryComparison,
    Refinement,
    Round,
    ShardRecord,
)

__all__ = ["refinement_page"]

_STYLE = """\
:root { color-scheme: light }
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 70rem;
  margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2.2rem }
table { border-collapse: collapse; font-size: 0.9rem } table.wide { width: 100% }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 0.6rem; border-bottom: 1px solid #ddd;
  overflow-wrap: break-word }
th { background: #f5f5f2; font-weight: 600; white-space: nowrap }
td.n, th.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
code { font: 0.85rem/1.4 ui-monospace, monospace }
.quiet { color: #666 } .bad { color: #a30000 }
details { margin: 0.4rem 0 } summary { cursor: pointer } pre { white-space: pre-wrap;
  background: #f8f8f6; padding: 0.6rem; font-size: 0.8rem }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); gap: 1.5rem }
.columns ul { columns: 14rem; padding-left: 1.1rem; margin: 0 }"""

_STAGES = {
    "exact": "same text",
    "name": "same name",
    "definition": "same meaning",
    "model": "by the model",
    "room": "to make room",
    "malformed": "malformed",
}


def refinement_page(refinement: Refinement) -> str:
    """The page: figures, library with lineage, rounds, drafts and the optional comparison."""
    parts = [
        f"<h1>{len(refinement.actions)} actions from {len(refinement.drafts)} drafts</h1>",
        f'<p class="quiet">{escape(refinement.source)}, refined by {escape(refinement.model)}; '
        f"pearl {escape(refinement.pearl_version)}</p>",
        _figures(refinement),
        _library(refinement),
        *([_comparison(refinement.comparison)] if refinement.comparison else []),
        _rounds(refinement.rounds),
        _dropped(refinement.drafts),
        _unread(refinement.unread),
        _drafts(refinement.drafts),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Refined actions</title>\n<style>\n{_STYLE}\n</style>\n</head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + "\n</body>\n</html>\n"
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, css: str = "wide") -> str:
    """A table of HTML cells; a heading that ends in `#` marks a numeric column."""
    numbers = [head.endswith("#") for head in heads]

    def row(tag: str, cells: Sequence[str]) -> str:
        shown = (
            f"<{tag} class={'n' if is_number else 't'}>{cell}</{tag}>"
            for cell, is_number in zip(cells, numbers, strict=True)
        )
        return f"<tr>{''.join(shown)}</tr>"

    titles = [head.removesuffix("#") for head in heads]
    head = f"<thead>{row('th', titles)}</thead>\n" if any(titles) else ""
    body = "\n".join(row("td", cells) for cells in rows)
    return f"<table class={css}>\n{head}<tbody>\n{body}\n</tbody>\n</table>"


def _code(text: str) -> str:
    """An action or its name as code, with line-break opportunities in long names."""
    return f"<code>{escape(text).replace('_', '_<wbr>')}</code>"


def _figures(refinement: Refinement) -> str:
    count, usage = refinement.count, refinement.usage
    limit = f"at most {refinement.max_tokens:,}" if refinement.max_tokens else "no limit"
    rows = [
        ("Drafts in", len(refinement.drafts), ""),
        *((f"Merged: {_STAGES[s]}", count("merged", s), "") for s in list(_STAGES)[:5]),
        ("Dropped: malformed", count("dropped", "malformed"), ""),
        ("Dropped: by the model", count("dropped", "model"), ""),
        ("Dropped: no room, or the name was taken", count("dropped", "room"), ""),
        ("Kept as they are", count("kept"), ""),
        ("Actions out", len(refinement.actions), f"at most {refinement.max_actions}"),
        ("Tokens of the library", refinement.n_tokens, f"{limit}; {refinement.token_count}"),
        ("Calls to the model", refinement.calls(), _faults(refinement)),
        ("Tokens to the model", usage.n_input_tokens, f"{usage.n_output_tokens:,} from it"),
    ]
    return _table(
        ["", "#", ""],
        ((escape(label), f"{n:,}", escape(note)) for label, n, note in rows),
        css="figures",
    )


def _faults(refinement: Refinement) -> str:
    failed, unusable = refinement.calls("failed"), refinement.calls("unusable")
    return f"{failed} failed, {unusable} with a reply that is not usable"


def _library(refinement: Refinement) -> str:
    rows = []
    for action in refinement.actions:
        mark = " <span class=quiet>computed</span>" if action.is_native else ""
        signature, _, definition = action.text.partition(" : ")
        rows.append(
            (
                f"{_code(signature)}{mark}",
                escape(definition),
                escape(", ".join(lineage(refinement, action))),
                str(len(action.questions) or len(action.drafts)),
            )
        )
    return "<h2>Library</h2>\n" + _table(["Action", "Definition", "Stands for", "Support#"], rows)


def _comparison(comparison: LibraryComparison) -> str:
    def names(title: str, found: Sequence[str]) -> str:
        items = "".join(f"<li>{_code(name)}</li>" for name in found)
        return f"<div><h3>{escape(title)} ({len(found)})</h3><ul>{items}</ul></div>"

    nearest = _table(
        ["Theirs", "Nearest of ours", "Likeness#"],
        (
            (
                _code(found.name),
                _code(found.nearest) if found.likeness else "none",
                f"{found.likeness:.2f}",
            )
            for found in comparison.only_theirs
        ),
    )
    return (
        f"<h2>Beside {escape(comparison.library)}</h2>\n<div class=columns>"
        f"{names('In both', comparison.in_both)}{names('Only here', comparison.only_ours)}"
        f"</div>\n<h3>Only there ({len(comparison.only_theirs)})</h3>\n{nearest}"
    )


def _rounds(rounds: Sequence[Round]) -> str:
    if not rounds:
        return "<h2>Rounds of the model</h2>\n<p>None: the library fitted, or none were wanted.</p>"
    parts = ["<h2>Rounds of the model</h2>"]
    for round in rounds:
        parts.append(f"<h3>Round {round.number}: {round.n_before} → {round.n_after} actions</h3>")
        parts += (_shard(number, shard) for number, shard in enumerate(round.shards, start=1))
    return "\n".join(parts)


def _shard(number: int, shard: ShardRecord) -> str:
    status = "" if shard.status == "merged" else f' <span class="bad">{shard.status}</span>'
    used = f"{shard.usage.n_input_tokens:,} + {shard.usage.n_output_tokens:,} tokens"
    problems = "".join(f"<li class=bad>{escape(problem)}</li>" for problem in shard.problems)
    reply = f"<pre>{escape(shard.reply)}</pre>" if shard.reply else ""
    return (
        f"<details><summary>Shard {number}: {shard.n_before} → {shard.n_after}, "
        f"{shard.max_actions} wanted; {used}{status}</summary>"
        f"{f'<ul>{problems}</ul>' if problems else ''}{reply}</details>"
    )


def _dropped(drafts: Sequence[DraftFate]) -> str:
    rows = [
        (_code(draft.text), escape(draft.why or ""), _stage(draft))
        for draft in drafts
        if draft.fate == "dropped"
    ]
    return f"<h2>Dropped ({len(rows)})</h2>\n" + _table(["Draft", "Why", "Stage"], rows)


def _unread(unread: Sequence[str]) -> str:
    if not unread:
        return ""
    items = "".join(f"<li>{escape(problem)}</li>" for problem in unread)
    return f"<h2>Could not be read ({len(unread)})</h2>\n<ul>{items}</ul>"


def _drafts(drafts: Sequence[DraftFate]) -> str:
    rows = (
        (
            str(draft.number),
            _code(draft.text),
            escape("seed" if draft.is_seed else draft.question or ""),
            draft.fate if draft.fate != "merged" else f"into {_code(draft.into or '')}",
            _stage(draft),
        )
        for draft in drafts
    )
    table = _table(["#", "Draft", "Question", "Fate", "Stage"], rows)
    return (
        f"<h2>Every draft</h2>\n<details><summary>{len(drafts)} drafts</summary>\n{table}</details>"
    )


def _stage(draft: DraftFate) -> str:
    shown = _STAGES.get(draft.stage or "", "")
    return f"{shown}, round {draft.round}" if draft.round else shown
