"""One time step of a `Plant`, the readings of its sensors, and their derivatives, which are compiled.

The step is the implicit midpoint rule with two iterations of a simplified Newton method. Its Jacobian is the inertia
matrix plus h/2 d with the slopes d of friction and servos, so that stiff friction does not limit the step; other
derivatives are left out, and both iterations use the same matrix. The step has second order. With a ground, one
iteration is taken, of first order, with the contact forces at the end of the step, see
`legged.ground.ground.implicit_forces`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from legged.compiler import BatchKernel, jacobian, record, where
from legged.dynamics.forward import accelerations
from legged.dynamics.frames import Frame
from legged.dynamics.passive import friction_slopes
from legged.errors import DefinitionError
from legged.ground.ground import contact_masses, contact_motion, contact_wrenches, implicit_forces
from legged.identification.parameter import ParameterSet, Plant
from legged.robot.configuration import as_vector, difference, integrate, scatter
from legged.robot.physics import motor_force
from legged.sensors import gyro, specific_force
from legged.spatial import Array, is_finite

CHANNELS = {
    "positions": 1e-3,
    "rates": 0.05,
    "torques": 0.1,
    "base": 2e-3,
    "twist": 0.02,
    "gyro": 0.01,
    "accelerometer": 0.1,
}
"""Channel of a log -> standard deviation of its noise by default, in the units of the channel."""


class PlantStep:
    """The step and the readings of a plant as functions of its state, command and parameters.

    Derivatives are with respect to z = [dq; dv; dp], (2 nv + n,), changes of the state and the parameters: dq lies in
    the tangent space of the configuration, and the command of a joint with a free delay changes by minus its rate times
    the change of the delay.

    Args:
        parameters: The free parameters of the plant.
        has_servos: Whether the commands are joint positions; otherwise they are torques.
        imu: Frame of the inertial measurement unit, or None.
    """

    def __init__(self, parameters: ParameterSet, has_servos: bool, imu: str | Frame | None):
        self.parameters, self.has_servos, self.imu = parameters, has_servos, imu
        self.robot = parameters.robot
        self.nq, self.nv, self.nj = self.robot.nq, self.robot.nv, len(self.robot.joints)
        self.columns = parameters.delays()[1]

    def step(self, q: Array, v: Array, u: Array, h: Any, p: Array) -> tuple[Array, Array]:
        """Return (q, v) after a time step, (nq,) and (nv,).

        Args:
            q: Configuration, (nq,), [rad] and [m]. v: Velocity, (nv,), base axes and joint axes.
            u: Commands, (nj,), [rad] or [m], or torques [N m] or [N], joint axes. h: Time step, [s].
            p: Values of the free parameters, (n,), mixed units.
        """
        plant = self.parameters.plant(p)
        middle = integrate(plant.robot, q, 0.5 * h * v)
        vdot = self._acceleration(plant, middle, v, u, h)
        after = v + h * vdot
        return integrate(plant.robot, q, 0.5 * h * (v + after)), after

    def _acceleration(self, plant: Plant, q: Array, v: Array, u: Array, h: Any) -> Array:
        """Return the mean acceleration in a time step h, (nv,)."""
        tau, slopes = self._torques(plant, q, v, u)
        robot = plant.robot
        extra = scatter(self.nv, [(b.v, 0.5 * h * friction_slopes(b, v)) for b in robot.bodies]) + 0.5 * h * slopes
        if plant.ground is not None:
            points, velocities = contact_motion(robot, q, v)
            ground = plant.ground.under(robot)
            contact = implicit_forces(ground, points, velocities, np.zeros(0), 0.5 * h)
            masses = contact_masses(robot, q, h * contact.damping)
            return accelerations(robot, q, v, tau, contact_wrenches(robot, q, contact.forces), extra, masses)
        first = accelerations(robot, q, v, tau, None, extra)
        middle = v + 0.5 * h * first  # the second iteration starts here, with the same matrix
        tau, _ = self._torques(plant, q, middle, u)
        return accelerations(robot, q, middle, tau + extra * first, None, extra)

    def _torques(self, plant: Plant, q: Array, v: Array, u: Array) -> tuple[Array, Array]:
        """Return the torques of the motors and their decrease per velocity, (nv,) each, base rows zero."""
        nb = self.robot.base.nv
        torques, slopes = ([(slice(0, nb), np.zeros(nb))] for _ in range(2))
        for i, joint in enumerate(plant.robot.joints):
            rate = v[joint.v][0]
            torque, slope = u[i], 0.0
            if self.has_servos:
                reading = q[joint.q][0] + plant.offset[i]
                torque, slope = plant.kp[i] * (u[i] - reading) - plant.kd[i] * rate, plant.kd[i]
            physics = joint.definition.physics
            torque, slope = plant.gain[i] * torque, plant.gain[i] * slope
            effort, speed = (np.asarray(x).ravel()[0] for x in (physics.effort, physics.speed))
            if is_finite(effort):
                most, least = motor_force(effort, speed, rate), -motor_force(effort, speed, -rate)
                limited = np.minimum(np.maximum(torque, least), most)
                slope = where(np.abs(limited - torque) > 0.0, 0.0, slope)
                torque = limited
            torques.append((joint.v, as_vector([torque])))
            slopes.append((joint.v, as_vector([slope])))
        return scatter(self.nv, torques), scatter(self.nv, slopes)

    def residual(self, channels: Sequence[str], q: Array, v: Array, u: Array, p: Array, y: Array) -> Array:
        """Return predicted minus measured readings, (m,), in the units of the channels.

        Args:
            channels: Names of channels, keys of `CHANNELS`. q, v, u, p: As in `step`.
            y: Measured readings, (m,), channel after channel, in their units, the base as [quaternion; position].
        """
        plant = self.parameters.plant(p)
        robot, nb, parts, at = plant.robot, self.robot.base.nv, [], 0
        joints = [joint.q.start for joint in robot.joints]
        rates = [joint.v.start for joint in robot.joints]
        for channel in channels:
            size = self.size(channel)
            measured, at = y[at : at + size], at + size
            if channel == "base":
                whole = np.concatenate([measured, q[self.robot.base.nq :]])
                parts.append(difference(robot, whole, q)[:nb])
                continue
            if channel == "positions":
                predicted = q[joints] + plant.offset
            elif channel == "rates":
                predicted = v[rates]
            elif channel == "torques":
                predicted = self._torques(plant, q, v, u)[0][rates]
            elif channel == "twist":
                predicted = v[:nb]
            elif channel == "gyro":
                predicted = gyro(robot, q, v, self._imu)
            else:
                predicted = specific_force(robot, q, v, self._acceleration(plant, q, v, u, 0.0), self._imu)
            parts.append(predicted - measured)
        return np.concatenate(parts)

    @property
    def _imu(self) -> str | Frame:
        if self.imu is None:
            raise DefinitionError("give the frame of the inertial measurement unit: imu=... of `Model`")
        return self.imu

    def size(self, channel: str) -> int:
        """Return the number of readings of a channel, its columns in a log."""
        sizes = {"base": self.robot.base.nq, "twist": self.robot.base.nv, "gyro": 3, "accelerometer": 3}
        return sizes.get(channel, self.nj)

    def residual_size(self, channel: str) -> int:
        """Return the number of residuals of a channel; that of a pose lies in the tangent space."""
        return self.robot.base.nv if channel == "base" else self.size(channel)

    def _moved(self, z: Array, q: Array, v: Array, u: Array, rate: Array, p: Array) -> tuple[Array, ...]:
        """Return (q, v, u, p) after a change z; `rate` is that of the commands."""
        nv = self.nv
        shift = z[2 * nv :]
        moved = [u[i] - rate[i] * shift[c] if c >= 0 else u[i] for i, c in enumerate(self.columns)]
        return integrate(self.robot, q, z[:nv]), v + z[nv : 2 * nv], as_vector(moved), p + shift

    def step_derivatives(self) -> Traced:
        """Return the step with its derivatives with respect to z: (q, v, Jacobian (2 nv, 2 nv + n))."""

        def end(z: Array, q: Array, v: Array, u: Array, rate: Array, h: Any, p: Array, after: Array) -> Array:
            moved_q, moved_v, moved_u, moved_p = self._moved(z, q, v, u, rate, p)
            next_q, next_v = self.step(moved_q, moved_v, moved_u, h, moved_p)
            return np.concatenate([difference(self.robot, after, next_q), next_v])

        def with_derivatives(q: Array, v: Array, u: Array, rate: Array, h: Any, p: Array) -> tuple[Array, Array, Array]:
            after, speeds = self.step(q, v, u, h, p)
            zero = np.zeros(2 * self.nv + len(p))
            return after, speeds, jacobian(end, "z", "forward")(zero, q, v, u, rate, h, p, after)

        return Traced(with_derivatives, self._shapes | {"h": (), "p": (len(self.parameters.names),)})

    def residual_derivatives(self, channels: Sequence[str]) -> Traced:
        """Return the residual with its derivatives with respect to z: (m,) and Jacobian (m, 2 nv + n)."""

        def residual(z: Array, q: Array, v: Array, u: Array, rate: Array, p: Array, y: Array) -> Array:
            moved_q, moved_v, moved_u, moved_p = self._moved(z, q, v, u, rate, p)
            return self.residual(channels, moved_q, moved_v, moved_u, moved_p, y)

        def with_derivatives(q: Array, v: Array, u: Array, rate: Array, p: Array, y: Array) -> tuple[Array, Array]:
            zero = np.zeros(2 * self.nv + len(p))
            slopes = jacobian(residual, "z", "forward")(zero, q, v, u, rate, p, y)
            return self.residual(channels, q, v, u, p, y), slopes

        sizes = {"p": (len(self.parameters.names),), "y": (sum(map(self.size, channels)),)}
        return Traced(with_derivatives, self._shapes | sizes)

    @property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {"q": (self.nq,), "v": (self.nv,), "u": (self.nj,), "rate": (self.nj,)}


class Traced(NamedTuple):
    """A function whose last result is a Jacobian, and the shapes of its arguments."""

    function: Callable[..., Any]
    shapes: dict[str, tuple[int, ...]]

    def nonzero_entries(self) -> Array:
        """Return row and column of each entry of the Jacobian that is not zero for all arguments, (k, 2)."""
        graph = record(self.function, self.shapes)
        matrix = graph.outputs[-1]
        entries = np.array([not (isinstance(x, float) and x == 0.0) for x in graph.results[-int(np.prod(matrix)) :]])
        return np.argwhere(entries.reshape(matrix))

    def kernel(self, layout: Array) -> BatchKernel:
        """Return the compiled function, with the entries of the Jacobian arranged in a given layout.

        Args:
            layout: Row and column of each entry, or -1 for a zero, (..., 2), [1].
        """

        def arranged(*arrays: Array) -> tuple[Any, ...]:
            *results, full = self.function(*arrays)
            flat = [full[i, j] if i >= 0 else 0.0 for i, j in layout.reshape(-1, 2).tolist()]
            return *results, np.stack(flat).reshape(layout.shape[:-1])

        return BatchKernel(arranged, self.shapes)
