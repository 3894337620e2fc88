"""Computed parts of `docs/howto/estimate.md`: errors of the invariant filter along walks of Go2."""

from __future__ import annotations

from benchmarks.estimation import heading
from benchmarks.estimation.__main__ import HEADS, WALKS, errors
from benchmarks.locomotion.walkers import walkers
from benchmarks.pages.parts import Part, table

_COLUMNS = [0, 2, 3, 4, 5, 8, 9]  # of the rows: without the filter and the errors of evo
_SECONDS, _SEEDS, _HEADING_SEEDS = 60.0, 20, 40


def drift() -> str:
    """Return the table of the walks."""
    (walker,) = walkers(["Go2"])
    rows = [row for name in WALKS for row in errors(walker, name, ["invariant"], _SECONDS, _SEEDS)]
    return table([HEADS[k] for k in _COLUMNS], [[row[k] for k in _COLUMNS] for row in rows])


def headings() -> str:
    """Return the table of stated and measured headings."""
    (walker,) = walkers(["Go2"])
    return table(heading.HEADS, heading.rows(walker, _SECONDS, _HEADING_SEEDS))


# Walks are chaotic, and the versions of MuJoCo differ: other walks of the same kind have drifts within these limits.
PARTS = {
    "drift": Part("howto/estimate.md", drift, relative=0.4, absolute=0.15, slow=True),
    "heading": Part("howto/estimate.md", headings, relative=0.3, absolute=0.1, slow=True),
}
