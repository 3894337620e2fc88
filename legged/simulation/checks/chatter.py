"""Detection of joints that chatter: the integration reverses their acceleration at every time step.

Damping d of a servo on a joint of effective inertia I makes explicit steps h overshoot for h d > 2 I. The velocity then
alternates around its mean with an amplitude that the motor limits bound, also where the robot should be at rest.

A run is examined by probes: `STEPS` further time steps from a sample. A joint chatters if its change of velocity
alternates in sign over all of them and is never below `AMPLITUDE`. No resolved motion does: an oscillation of frequency
omega reverses its acceleration after pi / (omega h) steps, more than three for the largest sensible h omega = 1; in an
overdamped but stable servo the amplitude decays; and random numbers alternate twelve times in one of 2000 cases. Since
the criterion takes the time steps as they are, it needs no model of the controller and sees motor limits, too. The
chatter of a servo with a sample rate below that of the time steps is a property of the servo and is not reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from legged.compiler import Members, Schedule
from legged.robot.robot import Robot
from legged.simulation.integrators import FixedStep, SmoothInterval, StateSample

Array = np.ndarray
Advance = Callable[[Members, Schedule], None]
"""Function that advances members in other states through a schedule, in place."""
STEPS = 12
"""Time steps of a probe."""
AMPLITUDE = 0.5
"""Smallest change of velocity in a step that is reported, [rad/s] or [m/s]."""
_MOST_PROBES = 100  # of a run
_MEMBER_PROBES = 8  # of a batch
_STEPS_PER_PROBE = 200  # time steps of a batch between two probes, which then take at most 6 % of its time


def amplitudes(robot: Robot, velocities: Array) -> Array:
    """Return the smallest change of velocity of each joint coordinate that chatters, 0.0 elsewhere, (..., nj).

    Args:
        robot: The robot.
        velocities: Velocities at consecutive time steps, (STEPS + 1, ..., nv), mixed units.
    """
    changes = np.diff(velocities[..., robot.base.nv :], axis=0)
    smallest = np.abs(changes).min(axis=0)
    alternates = (changes[1:] * changes[:-1] < 0.0).all(axis=0)
    return np.where(alternates & (smallest > AMPLITUDE), smallest, 0.0)


def message(robot: Robot, t: float, h: float, changes: Array) -> str:
    """Return the warning about a joint that chatters.

    Args:
        robot: The robot. t: Time, [s]. h: Time step, [s]. changes: Result of `amplitudes`, (nj,).
    """
    k = int(changes.argmax()) + robot.base.nv
    joint = next(joint for joint in robot.joints if joint.v.start <= k < joint.v.stop)
    return (
        f"joint {joint.name!r} chatters at t = {t:.3g} s: its velocity changes by {changes.max():.3g} rad/s or m/s "
        f"with alternating sign at each time step of {h:g} s, so that the motion is not that of the robot; take a "
        f"smaller step, a lower damping gain of the servo, a softer ground, or an implicit integrator, "
        f"legged.simulation.BDF()"
    )


def chatter_of_run(robot: Robot, advance: Advance, integrator: object, states: Sequence[StateSample]) -> str:
    """Return the warning about a joint that chatters in a run, or "".

    A probe begins with one step, and goes on if this changes the velocity of a joint by more than `AMPLITUDE`.

    Args:
        robot: The robot. advance: Advances it from other states. integrator: Only fixed steps are examined.
        states: The samples.
    """
    if not isinstance(integrator, FixedStep):
        return ""
    count = 0
    for (t, phase, q, s), after in pairwise(states):
        (sequence,) = integrator.step_sequences([SmoothInterval(phase, t, after.t, np.array([after.t]))])
        if t + STEPS * sequence.h > states[-1].t or count == _MOST_PROBES:
            break
        start = np.concatenate([q, s])[None], np.array([[t, sequence.h, phase]])
        is_known = sequence.count == 1  # the next sample is the state after the first step
        velocities = np.stack([s[: robot.nv], after.s[: robot.nv]])
        first = amplitudes(robot, velocities) if is_known else _probe(robot, advance, *start, 1)
        if not first.any():
            continue
        count += 1
        changes = _probe(robot, advance, *start)[0]
        if changes.any():
            return message(robot, t, sequence.h, changes)
    return ""


def _probe(robot: Robot, advance: Advance, states: Array, intervals: Array, count: int = STEPS) -> Array:
    """Return `amplitudes` of members after a state, (B, nj); 0.0 for members that end within the probe.

    Args:
        states: States [q; s], (B, n), mixed units. intervals: Time [s], time step [s] and phase, (B, 3) or (1, 3).
        count: Number of time steps.
    """
    offsets, ones = np.arange(count), np.ones(count)
    start, h, phase = (x[:, None] for x in intervals.T)
    steps = np.stack([start + offsets * h, h * ones, 0.0 * h + ones, phase * ones], axis=-1)
    probe = Members.at(states, count, states.dtype)
    advance(probe, Schedule(steps, offsets))
    v = slice(robot.nq, robot.nq + robot.nv)
    has_all = probe.outcome[:, 2] == count  # the stored states of other members are undefined
    stored = np.where(has_all[:, None, None], probe.stored[..., v], 0.0)
    changes = amplitudes(robot, np.concatenate([states[None, :, v], np.moveaxis(stored, 1, 0)]))
    return np.where(has_all[:, None], changes, 0.0)


def chatter_of_members(robot: Robot, advance: Advance, schedule: Schedule, members: Members, times: Array) -> str:
    """Return the warning about the first member with a joint that chatters, or "".

    Args:
        robot: The robot. advance: Advances members in other states through a schedule, in place.
        schedule: The intervals of the whole rollout. members: The members at the end. times: Sample times, (T,), [s].
    """
    ends = np.flatnonzero(schedule.samples >= 0)
    steps = np.cumsum(schedule.steps)[ends]
    count = min(int(steps[-1] // _STEPS_PER_PROBE), _MEMBER_PROBES)
    last = int(np.searchsorted(steps, steps[-1] - STEPS, side="right")) - 1  # with the probe inside the rollout
    for k in np.unique(np.linspace(0, last, count + 1)[1:].astype(int)).tolist() if last > 0 else []:
        valid = members.outcome[:, 2] > k
        group = schedule.intervals[:, ends[k] + 1 : ends[k + 1] + 1]
        start, h, _, phase = group[np.arange(len(group)), (group[..., 2] > 0.0).argmax(axis=1)].T
        states = np.where(valid[:, None], members.stored[:, k], members.stored[:, 0])
        changes = _probe(robot, advance, states, np.stack([start, h, phase], axis=1))
        changes = np.where(valid[:, None], changes, 0.0)
        chattering = np.flatnonzero(changes.any(axis=1)).tolist()
        if chattering:
            i = chattering[0]
            return f"member {i}: {message(robot, float(times[k]), float(h[min(i, len(h) - 1)]), changes[i])}"
    return ""


def chatter_of_states(
    robot: Robot, advance: Advance, states: Array, running: Array, times: Array, h: float, phases: Array
) -> tuple[int, str]:
    """Return the first robot with a joint that chatters in the steps after the present states, and the warning, or "".

    Args:
        robot: The robot. advance: Advances members in other states through a schedule, in place.
        states: Present states [q; s], (N, n), mixed units. running: Whether robots have not ended, (N,), dimensionless.
        times: Present times, (N,), [s]. h: Time step, [s]. phases: Phases, (N,), dimensionless.
    """
    changes = _probe(robot, advance, states, np.stack([times, np.full(len(times), h), phases], axis=1))
    changes = np.where(running[:, None], changes, 0.0)
    i = int(changes.any(axis=1).argmax())
    return i, message(robot, float(times[i]), h, changes[i]) if changes[i].any() else ""
