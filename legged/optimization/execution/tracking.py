"""A controller that executes a solution: its controls with linear feedback, and impacts when contacts are made."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.arguments import number
from legged.checked import checked
from legged.compiler import LookupTable, where
from legged.dynamics.frames import resolve_frame
from legged.errors import ArgumentError
from legged.optimization.equations.dynamics import contact_names
from legged.optimization.problem import Impact, Problem, Stage, control_bound
from legged.optimization.solution import Solution
from legged.robot.configuration import difference, integrate
from legged.spatial import Array

_TOUCH = 0.002  # [m g], force on a link that counts as contact
_INSTANT = 1e-9  # [s], so that rounding of t does not delay the beginning of a node


@checked
class Tracking:
    """A controller for `legged.simulate` that tracks a solution by time-varying linear feedback.

        u = u_k + K_k [difference(q*, q); v - v*]

    K is the gain of the solution: the linear-quadratic regulator of the problem, linearized about its solution, or that
    of `regulated`. The targets q* and v* are interpolated linearly between nodes. After the end, the last configuration
    at zero velocity is the target, with the last control and gain.

    With `early` or `late`, an impact of the plan takes place when a contact that begins there carries a force: the
    plan's time then jumps forward to that of the impact, or stands still before it. The memory is the time by which the
    plan is delayed, [s], and the number of impacts that have taken place, (2,).

    The feedback of a stage assumes its contacts. A landing, in which feet touch one after the other, is better left to
    a law for any contacts, such as `controllers.Locomotion`, to which `controllers.SwitchedLaw` switches by `landed`.

    Attributes:
        robot: The robot. share: Factor of K, dimensionless, by default 1.
        early, late: Largest times by which impacts take place before and after their planned time, [s].
    """

    def __init__(
        self,
        problem: Problem,
        solution: Solution,
        share: float = 1.0,
        *,
        lower: Any = None,
        upper: Any = None,
        early: float = 0.0,
        late: float = 0.0,
        settle: float = 0.0,
    ):
        """Prepare the tables of targets, controls and gains.

        Args:
            problem: The problem. solution: Its solution. share: Factor of K, dimensionless.
            lower, upper: Bounds of the controls, numbers or (nu,), [N m] or [N], joint axes; by default those of the
                problem. Wider ones leave torque to the feedback where the plan is at its bounds.
            early, late: As above, [s], at least 0.
            settle: Time from the planned landing until `landed` is 1, [s], at least 0; with 0 until the contact.
        """
        robot = problem.tree
        if solution.q.shape != (len(problem.nodes) + 1, robot.nq):
            raise ArgumentError("the solution must be one of this problem")
        for name, value in (("early", early), ("late", late), ("settle", settle)):
            if number(name, value) < 0.0:
                raise ArgumentError(f"{name} must be at least 0 s, got {value}")
        self.robot, self.share, self.early, self.late = robot, share, early, late
        self._actuated = problem.actuated
        pairs = (("lower", lower, problem.lower), ("upper", upper, problem.upper))
        self._bounds = [own if x is None else control_bound(name, x, 0.0, problem.nu) for name, x, own in pairs]
        self._start = (solution.q[0], solution.v[0])
        self._impacts = _impacts(problem, solution)
        flights = [k for k, node in enumerate(problem.nodes) if isinstance(node, Stage) and not node.contacts]
        landings = [impact for impact in self._impacts if flights and impact[0] >= solution.t[flights[-1]]]
        self._landing = landings[0] if landings else (float(solution.t[-1]), list[int]())
        if settle > 0.0:
            self._landing = (self._landing[0] + settle, [])
        stages = np.flatnonzero(solution.active)
        q, v = solution.q, solution.v
        ends = np.minimum(stages + 1, len(q) - 1)
        self._starts, self._end = solution.t[stages], solution.t[-1]
        durations = np.append(np.diff(solution.t)[stages], 1.0)
        moves = [difference(robot, q[k], q[e]) for k, e in zip(stages, ends, strict=True)]
        rates = v[ends] - v[stages]
        still = np.zeros(robot.nv)
        rows = [
            np.concatenate([q[stages], q[-1:]]),
            np.concatenate([v[stages], [still]]),
            np.array([*moves, still]),
            np.concatenate([rates, [still]]),
            np.concatenate([solution.u[stages], solution.u[stages[-1:]]]),
            np.concatenate([solution.gain[stages], solution.gain[stages[-1:]]]).reshape(len(stages) + 1, -1),
            durations[:, None],
            np.append(self._starts, solution.t[-1])[:, None],
        ]
        self._table = LookupTable(np.concatenate(rows, axis=1).ravel())
        self._sizes = [row.shape[1] for row in rows]

    @property
    def has_update(self) -> bool:
        """Whether the times of impacts depend on contacts."""
        return bool(self._impacts) and (self.early > 0.0 or self.late > 0.0)

    def start(self, robot: Any, ground: Any, q: Array, v: Array) -> Array:
        """Return the initial memory, (2,), or (0,) if the times of impacts do not depend on contacts.

        Args:
            robot, ground, q, v: As in `legged.simulation.controller.Controller`.
        """
        return np.zeros(2 if self.has_update else 0)

    def time(self, t: Any, memory: Array) -> Any:
        """Return the time of the plan, [s].

        Args:
            t: Time, [s]. memory: (2,) or (0,), mixed units.
        """
        if not len(memory):
            return t
        delay, passed = memory
        ends = [time - 2.0 * _INSTANT for time, _ in self._impacts]
        end = ends[0]
        for k, other in enumerate([*ends[1:], np.inf], 1):
            end = where(passed > k - 0.5, min(other, 1e9), end)
        return np.minimum(t - delay, end)

    def update(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the memory at the start of a time step, (2,).

        Args:
            t, phase, q, v, wrenches, memory: As in `legged.simulation.controller.Controller`.
        """
        if not len(memory):
            return memory
        delay, passed = memory
        now, after, count = t - delay + _INSTANT, delay, passed
        for k, (time, links) in enumerate(self._impacts):
            arrives = self._arrives(now, time, links, wrenches) & (passed > k - 0.5) & (passed < k + 0.5)
            after, count = where(arrives, t - time, after), where(arrives, k + 1.0, count)
        return np.stack([after, count])

    def landed(self, current: Any, t: Any, q: Array, v: Array, wrenches: Array) -> Any:
        """Return 1 from the landing after the last flight on, or `settle` after it, or the end of a plan without one.

        It is a choice of `controllers.SwitchedLaw` between this controller and one that lands or stands.

        Args:
            current: The result before. t, q, v, wrenches: As in `legged.simulation.controller.Controller`.
        """
        time, links = self._landing
        lands = self._arrives(t + _INSTANT, time, links, wrenches)
        return np.maximum(current, where(lands, 1.0, 0.0))

    def _arrives(self, now: Any, time: float, links: list[int], wrenches: Array) -> Any:
        """Return whether an impact takes place: a contact is made near its time, or it is late."""
        least = (_TOUCH * self.robot.mass) ** 2 * (self.robot.gravity @ self.robot.gravity)
        force = sum((wrenches[link][3:] @ wrenches[link][3:] for link in links), 0.0 * now)
        is_late = now > time + (self.late if links else 0.0)
        return (force > least) & (now > time - self.early) | is_late

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the forces of the joints, (nj,), [N m] or [N].

        Args:
            t, phase, q, v, wrenches, memory: As in `legged.simulation.controller.Controller`.
        """
        robot, nu = self.robot, len(self._actuated)
        t = self.time(t, memory)
        now = t + _INSTANT
        node = sum((where(now >= start, 1.0, 0.0) for start in [*self._starts[1:], self._end]), 0.0)
        width, parts, at = sum(self._sizes), list[Array](), 0
        for size in self._sizes:
            parts.append(np.array([self._table(node * width + (at + i + 0.5)) for i in range(size)]))
            at += size
        q0, v0, move, rate, u, gain, duration, start = parts
        elapsed = (t - start[0]) / duration[0]
        share = where(elapsed < 0.0, 0.0, where(elapsed > 1.0, 1.0, elapsed))
        dq = difference(robot, integrate(robot, q0, share * move), q)
        dx = np.concatenate([dq, v - (v0 + share * rate)])
        u = u + self.share * (gain.reshape(nu, 2 * robot.nv) @ dx)
        lower, upper = self._bounds
        u = [where(x < lo, lo, where(x > up, up, x)) for x, lo, up in zip(u, lower, upper, strict=True)]
        tau: list[Any] = [0.0] * robot.nj
        for entry, x in zip(self._actuated, u, strict=True):
            tau[entry - robot.base.nv] = x
        return np.array(tau)

    def update_times(self, until: float) -> Array:
        """Return the times of the nodes, (n,), [s].

        Args:
            until: End of the run, [s].
        """
        return self._starts[(self._starts > 0.0) & (self._starts < until)]

    def initial_state(self, robot: Any) -> tuple[Array, Array]:
        """Return the state at the start of the solution, (nq,) and (nv,).

        Args:
            robot: The robot.
        """
        return self._start


def _impacts(problem: Problem, solution: Solution) -> list[tuple[float, list[int]]]:
    """Return the time of each impact, [s], and the links of the contacts that begin there."""
    links = {c.name: resolve_frame(problem.tree, c.frame).link for c in problem.contacts}
    impacts, before = list[tuple[float, list[int]]](), set[str]()
    for k, node in enumerate(problem.nodes):
        names = contact_names(node.contacts)
        if isinstance(node, Impact):
            impacts.append((float(solution.t[k]), [links[name] for name in names if name not in before]))
        before = set(names)
    return impacts
