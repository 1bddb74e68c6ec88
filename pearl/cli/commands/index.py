"""`pearl index`: creates or updates the index of a corpus."""

from __future__ import annotations

from typing import Any

import click

from pearl.cli.files import corpus_options, open_index
from pearl.cli.options import Command, as_json, option
from pearl.cli.terminal import notice
from pearl.errors.escaping import counted, to_json

N_PROBLEMS = 5  # Maximum documents left out that are named


@click.command(cls=Command)
@click.argument("corpus", nargs=-1, required=True, metavar="CORPUS...")
@corpus_options
@option("--fresh", bool, "Rebuild the index from scratch.")
@as_json
def command(corpus: tuple[str, ...], fresh: bool, as_json: bool, **options: Any) -> int:
    """Index CORPUS for fast searches.

    CORPUS is a folder, files, or rows with `id` and `text`. Only changed files are read. `pearl
    search` updates the index, too. Exit code 1 if documents are left out.
    """
    index = open_index(corpus, options, is_fresh=fresh)
    opened = index.opened
    assert opened is not None
    if as_json:
        entry = {
            "documents": opened.state.contents.n_documents,
            "passages": opened.state.contents.n_passages,
            "left_out": opened.n_left_out,
            "other_files": opened.n_other,
            "new": opened.changes.n_new,
            "changed": opened.changes.n_changed,
            "removed": opened.changes.n_removed,
            "seconds": round(opened.seconds, 3),
            "at": str(opened.folder.path),
            "problems": list(opened.problems[:N_PROBLEMS]),
        }
        click.echo(to_json(entry, indent=2))
    else:
        for reason in opened.problems[1:N_PROBLEMS]:  # the first is among the notes
            notice(f"skipped: {reason}")
        changes = opened.changes
        counts = (
            (changes.n_new, "new"),
            (changes.n_changed, "changed"),
            (changes.n_removed, "removed"),
        )
        done = ", ".join(f"{n:,} {what}" for n, what in counts if n) or "nothing changed"
        left = f", {opened.n_left_out:,} left out" if opened.n_left_out else ""
        others = f", {counted(opened.n_other, 'file')} of other kinds" if opened.n_other else ""
        documents = counted(opened.state.contents.n_documents, "document")
        passages = counted(opened.state.contents.n_passages, "passage")
        click.echo(
            f"{documents}, {passages}{left}{others}; {done}; {opened.seconds:.1f} s; in {opened.folder.path}"
        )
    return 1 if opened.n_left_out else 0
