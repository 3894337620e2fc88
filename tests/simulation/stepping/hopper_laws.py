"""Controllers of a hopper, and comparisons of its motions."""

import numpy as np

import legged
from legged.ground import KelvinVoigt, VectorFriction
from legged.ground.ground import Ground

EULER = legged.SemiImplicitEuler(1e-3)
ROUNDING = 1e-9  # relative, after a few hundred steps on stiff ground: rounding, grown by an unstable motion
SPRINGS = Ground(KelvinVoigt(3e3, 60.0), VectorFriction(0.7, 50.0))


def standing(t, q, v, wrenches):
    return np.stack([-40.0 * q[3] - 2.0 * v[3], -2000.0 * q[4] - 60.0 * v[4]])


def servo(t, q, v, wrenches, command):
    return np.stack([40.0 * (command[0] - q[3]) - 2.0 * v[3], 2000.0 * (command[1] - q[4]) - 60.0 * v[4]])


class Integral:
    """A controller with a memory that has a rate, and a discrete update that counts its calls."""

    def start(self, robot, ground, q, v):
        return np.array([0.1 * q[4], 0.0])

    def torque(self, t, phase, q, v, wrenches, memory):
        return standing(t, q, v, wrenches) - np.stack([0.0, 50.0 * memory[0] + 1e-3 * memory[1]])

    def rate(self, t, phase, q, v, wrenches, memory):
        return np.stack([q[4], 0.0])

    def update(self, t, phase, q, v, wrenches, memory):
        return memory + np.array([0.0, 1.0])


class Excited(Integral):
    """The controller above with a torque that depends on time."""

    def torque(self, t, phase, q, v, wrenches, memory):
        return super().torque(t, phase, q, v, wrenches, memory) + np.stack([0.5 * np.sin(9.0 * t), 0.0 * t])


def close(one, two):
    assert (np.abs(one - two) <= ROUNDING * (np.abs(two).max(axis=0) + 1.0)).all()


def recorded(sim, count, n, *command):
    """Return q and v before and after each of some calls, with the robots last."""
    q, v = [sim.q], [sim.v]
    for _ in range(count):
        sim.step(*command, n=n)
        q.append(sim.q)
        v.append(sim.v)
    return np.array(q), np.array(v)
