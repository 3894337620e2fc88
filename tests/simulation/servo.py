"""A servo with a memory, for runs of a standing quadruped."""

import numpy as np


def standing(robot, height=0.6):
    q = robot.neutral()
    q[6] = height
    return q


class Servo:
    """Holds the joints, with an integrator of the error as memory and references that switch at 0.1 s and 0.2 s."""

    def __init__(self, kp=200.0, ki=50.0, kd=8.0):
        self.gains = kp, ki, kd

    def start(self, robot, ground, q, v):
        self.nq, self.nv = robot.base.nq, robot.base.nv
        return np.zeros(robot.nj)

    def reference(self, t, phase):
        n = 12
        return np.full(n, 0.02) * phase, np.zeros(n), np.zeros(n)

    def torque(self, t, phase, q, v, wrenches, memory):
        kp, ki, kd = self.gains
        error = self.reference(t, phase)[0] - q[self.nq :]
        return kp * error + ki * memory - kd * v[self.nv :]

    def rate(self, t, phase, q, v, wrenches, memory):
        return self.reference(t, phase)[0] - q[self.nq :]

    def switches(self, until):
        return [0.1, 0.2]
