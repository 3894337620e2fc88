"""A run of the benchmarks beside an older one: each ratio, how much it changed, and whether beyond the spread."""

from typing import NamedTuple

from benchmarks.record import RATIO, Quantity, Record
from benchmarks.words import cell
from legged.table import Table

REPEATS = 10.0
"""[%]; runs of the same source were seen to differ by 9: the rounds of one share the places in memory, and the load."""


class Change(NamedTuple):
    """A ratio now and before."""

    now: Quantity
    before: Quantity

    @property
    def percent(self) -> float:
        """By how much the median has grown, [%]."""
        return 100.0 * (self.now.median / self.before.median - 1.0)

    @property
    def is_beyond_spread(self) -> bool:
        """Whether each median lies outside of the other's spread, and by more than runs of one source differ."""
        now, before = self.now, self.before
        apart = not (before.low <= now.median <= before.high) and not (now.low <= before.median <= now.high)
        return apart and abs(self.percent) > REPEATS


def changes(new: Record, old: Record) -> list[Change]:
    """Return the ratios that both records have."""
    before = {q.name: q for q in old.quantities if q.unit == RATIO}
    return [Change(q, before[q.name]) for q in new.quantities if q.unit == RATIO and q.name in before]


def table(new: Record, old: Record) -> Table:
    """Return the ratios of both, with a mark where they differ by more than both spreads."""
    both = changes(new, old)
    rows = [(", ".join(c.now.name), cell(c.before), cell(c.now), f"{c.percent:+.0f} %", _mark(c)) for c in both]
    marked = sum(c.is_beyond_spread for c in both)
    notes = [
        f"{marked} of {len(both)} ratios changed by more than both spreads and {REPEATS:g} %.",
        "Marks: '>' has grown, '<' has shrunk.",
    ]
    notes += [f"Other circumstances: {words}." for words in _circumstances(new, old)]
    title = f"Ratios of {_of(new)} beside those of {_of(old)}"
    return Table(title, ("ratio", "before", "now", "change", ""), tuple(rows), tuple(notes))


def _mark(change: Change) -> str:
    if not change.is_beyond_spread:
        return ""
    return ">" if change.percent > 0.0 else "<"


def _of(record: Record) -> str:
    return f"{record.date} ({record.commit or 'no commit'})"


def _circumstances(new: Record, old: Record) -> list[str]:
    """Return in words what else differs between the runs, and what only one of them has."""
    words = []
    for now, before in ((new.machine, old.machine), (new.versions, old.versions)):
        for name in {**before, **now}:
            if now.get(name) != before.get(name):
                words.append(f"{name} was {before.get(name, 'missing')}, is {now.get(name, 'missing')}")
    names = [{q.name for q in record.quantities if q.unit == RATIO} for record in (new, old)]
    for here, there, which in ((names[0], names[1], "new"), (names[1], names[0], "gone")):
        if here - there:
            words.append(f"{len(here - there)} ratios are {which}")
    return words
