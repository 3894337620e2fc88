"""Closed loops of ours, prepared once and then run again and again: what is timed is the machine code's loop."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import legged
from legged.compiler.runtime.stepping import Members
from legged.contact import FreeBody, Rigid
from legged.ground import Ground
from legged.simulation.batch import Batch, BatchLoop
from legged.simulation.rollout import Task
from legged.simulation.variation import Setting, Variation


def prepared(
    robot: legged.Robot,
    controller: Any,
    ground: Ground | Rigid | None,
    v: np.ndarray,
    steps: int,
    step: float,
    *,
    q: np.ndarray | None = None,
    vary: Mapping[str, Any] | None = None,
    bodies: Sequence[FreeBody] = (),
) -> Callable[[int], Members]:
    """Return a function of the number of threads that takes all members through the steps and returns them.

    Args:
        robot, controller, ground, q, vary, bodies: As `legged.rollout` takes them.
        v: Initial velocities, (B, nv).
        steps: How many. step: Their length, [s].
    """
    given = Setting(controller, ground, (), tuple(bodies))
    variation = Variation.of(given, vary or {}, {"q": (q, robot.nq), "v": (v, robot.nv)})
    rule = legged.TimeStepping(step) if isinstance(ground, Rigid) else legged.SemiImplicitEuler(step)
    judge = None if ground is None else legged.Fall()
    batch = Batch(robot, variation, q, v, judge, steps * step)
    loop = BatchLoop(batch, batch.starts, rule.rule)
    assert loop.disagreement() < 1e-6, "machine code and plain equations must agree"
    task = Task(batch, rule, np.array([0.0, steps * step]))
    return lambda threads: task.compiled(loop, threads, lambda t: None)


def unharmed(members: Members) -> None:
    """Check that no member has ended early, which would make the rest look fast."""
    assert (members.outcome[:, 0] == 0.0).all(), "all members must reach the end"
