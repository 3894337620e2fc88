"""Schedules of many members: the same pieces for all, or pieces side by side, sample by sample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from legged.compiler.runtime.time_loop import Schedule
from legged.simulation.fixed import Piece


def aligned(plans: Sequence[Sequence[Piece]], of: np.ndarray) -> Schedule:
    """Return the schedule of a batch whose members follow different plans with the same samples.

    Between two samples a member may have a switch where another has none; then the other gets a piece without steps.

    Args:
        plans: The different plans. of: Which of them each member follows, (B,).
    """
    intervals = [_intervals(plan) for plan in plans]
    most = np.max([[len(part) for part in parts] for parts in intervals], axis=0)
    ends = np.cumsum(most)
    pieces = np.zeros((len(plans), int(ends[-1]), 4))
    for k, parts in enumerate(intervals):
        for part, end in zip(parts, ends.tolist(), strict=True):
            rows = [(p.start, p.h, p.count, p.phase) for p in part]
            pieces[k, end - len(rows) : end] = rows
    rows = np.full(int(ends[-1]), -1)
    rows[ends - 1] = np.arange(len(ends))
    return Schedule(pieces if len(plans) == 1 else pieces[of], rows)


def _intervals(plan: Sequence[Piece]) -> list[list[Piece]]:
    """Return the pieces up to each sample."""
    parts: list[list[Piece]] = [[]]
    for piece in plan:
        parts[-1].append(piece)
        if piece.sample is not None:
            parts.append([])
    return parts[:-1]
