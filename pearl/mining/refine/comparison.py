"""Compares a refined library with another one: shared names and nearest actions."""

from __future__ import annotations

from pearl.actions.library import read_actions
from pearl.actions.likeness import Likeness, by_words
from pearl.dsl.signatures import ActionLibrary
from pearl.mining.refine.refinement import LibraryComparison, Neighbour, Refinement


def compared(
    refinement: Refinement, other: ActionLibrary, likeness: Likeness = by_words
) -> Refinement:
    """The refinement with a comparison to another library."""
    ours = read_actions("\n".join(action.text for action in refinement.actions))[0]
    names = {action.name for action in ours}
    alike = likeness([*ours, *other.values()])[len(ours) :, : len(ours)]
    theirs = []
    for row, name in zip(alike, other, strict=True):
        if name not in names:
            at = int(row.argmax())
            theirs.append(
                Neighbour(name=name, nearest=ours[at].name, likeness=round(float(row[at]), 3))
            )
    comparison = LibraryComparison(
        library=other.name,
        in_both=tuple(sorted(names & set(other))),
        only_ours=tuple(sorted(names - set(other))),
        only_theirs=tuple(sorted(theirs, key=lambda neighbour: neighbour.name)),
    )
    return refinement.model_copy(update={"comparison": comparison})
