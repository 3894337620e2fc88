"""Derivatives of dynamics with given contacts, beside Pinocchio's: `python -m benchmarks.optimization.derivatives`.

Both compute the accelerations, the contact forces and all their derivatives by configuration, velocity and torques, at
random states near a standing posture, with contacts at rest. Constraints have no velocity gain and no damping. The
errors are those beside central differences and between the programs, relative to the largest entry. The table is in
docs/howto/optimal_control.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import files
from typing import Any

import numpy as np

import legged
from legged import optimization as oc
from legged.compiler import BatchKernel, FusedCalls, thread_limit
from legged.optimization.equations.dynamics import ContactModel
from legged.optimization.linearization import motion_derivatives

Array = np.ndarray
BATCH, REPEATS = 64, 30
STEPS = 10.0 ** np.arange(-3, -8, -1)  # of central differences, [rad], [m] and units of v and u
SUBJECTS = {
    "Go2, 4 feet": ("go2.urdf", ["FL_foot", "FR_foot", "RL_foot", "RR_foot"], False, 0.7),
    "Go2, 2 feet": ("go2.urdf", ["FL_foot", "RR_foot"], False, 0.7),
    "G1, 2 soles": ("g1_29dof_rev_1_0.urdf", ["left_ankle_roll_link", "right_ankle_roll_link"], True, 0.3),
}


class Derivatives:
    """The derivatives of the motion of a robot with all contacts, of many states.

    Attributes:
        robot: The robot. model: Its equations of motion.
    """

    def __init__(self, robot: legged.Robot, contacts: list[str], surface: bool):
        self.robot = robot
        self.model = ContactModel(robot, tuple(oc.Contact(c, surface) for c in contacts), tuple(range(6, robot.nv)))
        nq, nv = robot.nq, robot.nv
        self._mask = np.ones(len(contacts))
        m, lead = self.model.rows, (BATCH,)
        self._state = np.zeros((BATCH, nq)), np.zeros((BATCH, nv)), np.zeros((BATCH, nv - 6))
        shapes = ((nv,), (m,), (nv, nv), (m, nv), (m, m), (nv + m, 3 * nv - 6))
        results = [np.zeros(lead + shape) for shape in shapes]
        kernel = BatchKernel(self._compute, {"q": (nq,), "v": (nv,), "u": (nv - 6,)})
        self._kernel = kernel.prepare(BATCH, *self._state, results=results)
        self._result = np.zeros((BATCH, nv + m, 3 * nv - 6))
        places = self._result[:, nv:], self._result[:, :nv], np.tile([1.0, -1.0], (BATCH, 1))
        self._solution = FusedCalls(motion_derivatives(results[2:], *places), 1)
        self.motion = BatchKernel(self._motion, {"q": (nq,), "v": (nv,), "u": (nv - 6,)})

    def _motion(self, q: Array, v: Array, u: Array) -> tuple:
        return tuple(self.model.solve(q, v, u, self._mask))

    def _compute(self, q: Array, v: Array, u: Array) -> tuple:
        a, f = self.model.solve(q, v, u, self._mask)
        by_u = np.zeros((self.robot.nv + len(f), len(u)))
        by_u[6 : self.robot.nv] = -np.eye(len(u))
        by_x = self.model.derivatives(q, v, a, f, self._mask)
        return a, f, *self.model.inverse(q, self._mask), np.concatenate([*by_x, by_u], axis=1)

    def __call__(self, q: Array, v: Array, u: Array) -> Array:
        """Return d[a; f]/d[dq, v, u], (BATCH, nv + m, 2 nv + nu), of as many states."""
        for place, value in zip(self._state, (q, v, u), strict=True):
            place[...] = value
        self._kernel()
        self._solution(1)
        return self._result

    def resting(self, q: Array, v: Array) -> Array:
        """Return the velocity closest to v at which the contacts do not move, (nv,).

        Otherwise Pinocchio constrains another acceleration of surfaces.
        """
        rows = slice(0 if self.model.contacts[0].surface else 3, 6)
        J = np.concatenate([legged.frame_jacobian(self.robot, q, c.frame, "local")[rows] for c in self.model.contacts])
        return v - np.linalg.pinv(J) @ (J @ v)

    def differences(self, q: Array, v: Array, u: Array, step: float) -> Array:
        """Return the central differences of one state, (nv + m, 2 nv + nu)."""
        nv, n = self.robot.nv, 2 * self.robot.nv + len(u)
        moves = step * np.concatenate([np.eye(n), -np.eye(n)])
        moved = np.array([legged.integrate(self.robot, q, x[:nv]) for x in moves])
        values = np.concatenate(self.motion(moved, v + moves[:, nv : 2 * nv], u + moves[:, 2 * nv :]), axis=-1)
        return (values[:n] - values[n:]).T / (2 * step)


class Pinocchio:
    """The same by Pinocchio, one state after the other."""

    def __init__(self, robot: legged.Robot, path: str, contacts: list[str], surface: bool):
        pin: Any = import_module("pinocchio")
        self._pin, self.model = pin, pin.buildModelFromUrdf(path, pin.JointModelFreeFlyer())
        self.model.armature[:] = self.model.damping[:] = self.model.friction[:] = 0.0
        self.data, self._to = self.model.createData(), legged.conversions.pinocchio(robot, self.model)
        kind = pin.ContactType.CONTACT_6D if surface else pin.ContactType.CONTACT_3D
        self._constraints, self._constraint_data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        for name in contacts:
            frame = self.model.frames[self.model.getFrameId(name)]
            one = pin.RigidConstraintModel(kind, self.model, frame.parentJoint, frame.placement, pin.LOCAL)
            self._constraints.append(one)
            self._constraint_data.append(one.createData())
        self._settings = pin.ProximalSettings(1e-12, 0.0, 1)
        pin.initConstraintDynamics(self.model, self.data, self._constraints, self._constraint_data)
        basis = np.eye(robot.nv)
        home = robot.neutral()
        self._order = np.array([self._to.to_velocity(home, row).argmax() for row in basis])

    def states(self, q: Array, v: Array, u: Array) -> list[tuple[Array, Array, Array]]:
        """Return configurations, velocities and forces of states in Pinocchio's order."""
        tau = np.concatenate([np.zeros((len(u), 6)), u], axis=1)
        return [
            (self._to.to_configuration(a), self._to.to_velocity(a, b), self._to.to_force(a, c))
            for a, b, c in zip(q, v, tau, strict=True)
        ]

    def run(self, states: list[tuple[Array, Array, Array]]) -> None:
        """Compute the derivatives of states."""
        pin, both = self._pin, (self._constraints, self._constraint_data)
        for q, v, tau in states:
            pin.constraintDynamics(self.model, self.data, q, v, tau, *both, self._settings)
            pin.computeConstraintDynamicsDerivatives(self.model, self.data, *both, self._settings)

    def accelerations(self) -> Array:
        """Return da/d[dq, v, u] of the last state in our order, (nv, 2 nv + nu)."""
        order, data = self._order, self.data
        blocks = [data.ddq_dq, data.ddq_dv, data.ddq_dtau]
        return np.concatenate([x[np.ix_(order, order)] for x in blocks], axis=1)


def _shortest(call: Callable[[], Any]) -> float:
    best = np.inf
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def accuracy_and_time() -> str:
    """Return the table of errors and times."""
    lines = [
        "| robot | freedoms | difference from Pinocchio | from central differences | Pinocchio [us] | "
        "batch of 64 [us] | ratio |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, (file, contacts, surface, bend) in SUBJECTS.items():
        path = next(str(f.locate()) for f in files("example-robot-data") or () if f.name == file)
        loaded = legged.load(path)
        names = [n for n in loaded.parameters() if n.endswith((".damping", ".friction", ".armature"))]
        robot = loaded.with_parameters(dict.fromkeys(names, 0.0))
        ours, theirs = Derivatives(robot, contacts, surface), Pinocchio(robot, path, contacts, surface)
        rng = np.random.default_rng(0)
        posture = robot.neutral()
        q = np.array([legged.integrate(robot, posture, bend * rng.normal(size=robot.nv)) for _ in range(BATCH)])
        v, u = rng.normal(size=(BATCH, robot.nv)), 5.0 * rng.normal(size=(BATCH, robot.nv - 6))
        v = np.array([ours.resting(a, b) for a, b in zip(q, v, strict=True)])
        with thread_limit(1):
            Z, states = ours(q, v, u), theirs.states(q, v, u)
            times = _shortest(lambda o=ours, x=(q, v, u): o(*x)), _shortest(lambda t=theirs, s=states: t.run(s))
        beside, fine = 0.0, np.inf
        nv = robot.nv
        for k in range(4):
            theirs.run(states[k : k + 1])
            other = np.delete(theirs.accelerations(), range(2 * nv, 2 * nv + 6), axis=1)
            beside = max(beside, np.abs(Z[k, :nv] - other).max() / np.abs(other).max())
        scale = np.abs(Z[0]).max()
        fine = min(np.abs(ours.differences(q[0], v[0], u[0], step) - Z[0]).max() / scale for step in STEPS)
        one, two = (1e6 * x / BATCH for x in times)
        lines.append(f"| {name} | {nv} | {beside:.0e} | {fine:.0e} | {two:.0f} | {one:.1f} | {two / one:.1f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(accuracy_and_time())
