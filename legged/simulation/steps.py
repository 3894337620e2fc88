"""Many steps of one run in one call: the closed loop and its integrator in machine code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from legged.compiler.runtime.time_loop import Members, Schedule, TimeLoop
from legged.simulation.chart import normalized
from legged.simulation.closed_loop import ClosedLoop
from legged.simulation.fixed import Piece
from legged.simulation.system import State

Array = np.ndarray
_AT_ONCE = 2e8  # operations in one call, some tenths of a second: the user may want to interrupt, or to see progress


def stepped(loop: ClosedLoop, rule: str, clock: Any, state: Array) -> Array:
    """Return the state [q; s] after a step, by a method of `ClosedLoop`, over any element.

    Args:
        loop: The equations. rule: "semi_implicit", "runge_kutta" or "time_stepping".
        clock: [t, h, phase]. state: [q; s].
    """
    t, h, phase = clock
    q, s = getattr(loop, rule)(t, h, phase, state[: loop.robot.nq], state[loop.robot.nq :])
    return np.concatenate([normalized(loop.robot, q) if rule == "semi_implicit" else q, s])


class Steps:
    """The steps of one closed loop by one rule."""

    def __init__(self, loop: ClosedLoop, rule: str):
        self.nq, n = loop.robot.nq, loop.robot.nq + loop.size
        self.code = TimeLoop.of(lambda clock, parameters, state: (stepped(loop, rule, clock, state), 0.0), 0, n)

    def take(self, pieces: Sequence[Piece], q: Array, s: Array) -> tuple[list[State], int]:
        """Return (states at samples, how many pieces were taken); see `Backend.repeat`."""
        pieces = self._next(pieces)
        schedule, samples = shared_schedule(pieces)
        members = Members.at(np.concatenate([q, s])[None], len(samples))
        self.code.run(members, np.zeros((1, 0)), schedule, threads=1)
        reached = int(members.outcome[0, 2])
        taken = samples[reached - 1] + 1 if reached else 0
        states = zip(samples[:reached], members.stored[0, :reached], strict=True)
        return [self._state(pieces[k], y) for k, y in states], taken

    def _next(self, pieces: Sequence[Piece]) -> Sequence[Piece]:
        """Return the first pieces, some tenths of a second of work, up to a sample."""
        room = _AT_ONCE / max(len(self.code.graph.nodes), 1)
        for k, piece in enumerate(pieces):
            room -= piece.count
            if room < 0 and piece.sample is not None:
                return pieces[: k + 1]
        return pieces

    def _state(self, piece: Piece, y: Array) -> State:
        assert piece.sample is not None
        return State(piece.sample, piece.phase, y[: self.nq], y[self.nq :])


def shared_schedule(pieces: Sequence[Piece]) -> tuple[Schedule, list[int]]:
    """Return (the schedule of pieces that all members share, the indices of those that end at samples)."""
    samples = [k for k, piece in enumerate(pieces) if piece.sample is not None]
    rows = np.full(len(pieces), -1)
    rows[samples] = np.arange(len(samples))
    steps = np.array([[p.start, p.h, p.count, p.phase] for p in pieces], dtype=float)
    return Schedule(steps[None], rows), samples
