"""A rigid body on massless legs that trots, bounds and paces by the forces of predictive control, and is pushed."""

import numpy as np
import pytest
from oracles.predictive_problems import GRAVITY, OFFSETS, activity, control_arguments, control_kernel
from scipy.spatial.transform import Rotation

from controllers.locomotion.forces.predictive import Plan
from controllers.locomotion.forces.rigid_body import Problem, suited_weights

N, STEP, INTERVAL, DT = (
    6,
    0.06,
    0.01,
    0.002,
)  # steps of the horizon, their duration, that of a control step, of a motion
LENGTH, MASS = 0.3, 15.0
HIPS = LENGTH * np.array([[0.65, 0.45, 0.0], [0.65, -0.45, 0.0], [-0.65, 0.45, 0.0], [-0.65, -0.45, 0.0]])
INERTIA = MASS * np.diag([0.3 * LENGTH, 0.7 * LENGTH, 0.75 * LENGTH]) ** 2


@pytest.fixture(scope="module")
def control():
    return control_kernel(N, 4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gait", "period", "duty", "velocity", "yaw_rate"),
    [
        ("trot", 0.4, 0.5, (0.8, 0.0), 0.0),
        ("trot", 0.4, 0.6, (0.5, 0.3), 1.0),
        ("trot", 0.3, 0.35, (1.5, 0.0), 0.0),  # with flights
        ("pace", 0.3, 0.5, (0.6, 0.0), 0.0),
        ("bound", 0.3, 0.4, (1.0, 0.0), 0.0),  # with flights
    ],
)
def test_the_body_follows_a_commanded_velocity_and_recovers_from_a_push(
    control, gait, period, duty, velocity, yaw_rate
):
    """A push of 0.7 m/s obliquely; a second later the mean velocity over a period is the commanded one again."""
    motion = Motion(control, gait, period, duty, np.array([*velocity, 0.0]), yaw_rate)
    motion.advance(0.5)
    motion.v = motion.v + np.array([0.5, 0.5, 0.0])
    motion.advance(1.0)
    errors, heights = [], []
    for _ in range(round(period / DT)):
        motion.advance(DT)
        errors.append(motion.v - motion.command)
        heights.append(motion.c[2])
    assert np.linalg.norm(np.mean(errors, axis=0)) < 0.06 * np.sqrt(GRAVITY * LENGTH)
    assert min(heights) > 0.9 * LENGTH and max(heights) < 1.15 * LENGTH
    assert motion.largest_tilt < 0.8  # [rad], of a pace that is pushed sideways
    assert motion.largest_residual < 0.1 * GRAVITY


class Motion:
    """The exact motion of a rigid body; feet land under the hips, corrected for the error of the velocity."""

    def __init__(self, control, gait, period, duty, velocity, yaw_rate):
        self.control, self.gait, self.period, self.duty = control, gait, period, duty
        self.velocity, self.yaw_rate, self.t = velocity, yaw_rate, 0.0
        self.c, self.v, self.R, self.omega = np.array([0.0, 0.0, LENGTH]), velocity, np.eye(3), np.zeros(3)
        self.feet, self.contact = self.c * [1.0, 1.0, 0.0] + HIPS, np.ones(4, bool)
        self.forces, self.costates = np.zeros((4, 3)), np.zeros((N, 6))
        self.largest_tilt = self.largest_residual = 0.0

    def heading(self, t):
        return Rotation.from_rotvec([0.0, 0.0, self.yaw_rate * t]).as_matrix()

    @property
    def command(self):
        return self.heading(self.t) @ self.velocity

    def advance(self, duration):
        for _ in range(round(duration / DT)):
            phases = self.t / self.period + np.array(OFFSETS[self.gait])
            contact = phases % 1.0 < self.duty
            for i in np.flatnonzero(contact & ~self.contact):
                self.feet[i] = self.landing(self.c, self.v, i, self.t)
            self.contact = contact
            if round(self.t / DT) % round(INTERVAL / DT) == 0:
                self.plan()
            forces = np.where(contact[:, None], self.forces, 0.0)
            moment, inertia = np.cross(self.feet - self.c, forces).sum(axis=0), self.R @ INERTIA @ self.R.T
            gyroscopic = np.cross(self.omega, inertia @ self.omega)
            self.omega = self.omega + DT * np.linalg.solve(inertia, moment - gyroscopic)
            self.R = Rotation.from_rotvec(DT * self.omega).as_matrix() @ self.R
            self.v = self.v + DT * (forces.sum(axis=0) / MASS - np.array([0.0, 0.0, GRAVITY]))
            self.c, self.t = self.c + DT * self.v, self.t + DT
            self.largest_tilt = max(self.largest_tilt, np.arccos(np.clip(self.R[2, 2], -1.0, 1.0)))

    def landing(self, c, v, i, t):
        """Return the place below the hip that is symmetrical to the coming stance, with capture of half the error."""
        correction = 0.5 * np.sqrt(LENGTH / GRAVITY) * (v - self.heading(t) @ self.velocity)
        place = c + self.heading(t) @ HIPS[i] + 0.5 * self.duty * self.period * v + correction
        return place * [1.0, 1.0, 0.0]

    def plan(self):
        ends, command = STEP * np.arange(1, N + 1)[:, None], self.command
        start = self.t / self.period
        active = activity(self.gait, start, self.period, self.duty, 4, N, STEP)
        centers = self.c + (ends - 0.5 * STEP) * command
        places = np.array([[self.place(k, i, centers[k]) for i in range(4)] for k in range(N)])
        heading = self.heading(self.t)
        problem = Problem(
            position=self.c,
            velocity=self.v,
            orientation=Rotation.from_matrix(self.R @ heading.T).as_rotvec(),
            angular_velocity=self.omega,
            positions=np.hstack([(self.c + ends * command)[:, :2], np.full((N, 1), LENGTH)]),
            velocities=np.tile(command, (N, 1)),
            orientations=ends * [0.0, 0.0, self.yaw_rate],
            angular_velocities=np.tile([0.0, 0.0, self.yaw_rate], (N, 1)),
            mass=MASS,
            inertia=self.R @ INERTIA @ self.R.T,
            gravity=np.array([0.0, 0.0, -GRAVITY]),
            arms=places - centers[:, None],
            normals=np.tile([0.0, 0.0, 1.0], (N, 4, 1)),
            active=active,
            friction=0.6,
            most=100.0 * MASS * GRAVITY,
            weights=suited_weights(MASS, LENGTH, GRAVITY, 4),
            time_step=STEP,
        )
        plan = Plan(*self.control(*control_arguments(problem, self.costates)))
        self.forces, self.costates = plan.forces[0], plan.costates
        self.largest_residual = max(self.largest_residual, plan.residual)

    def place(self, k, i, center):
        """Return where foot i stands in step k of the horizon: its place now, or that of its next landing."""
        offset, middle = OFFSETS[self.gait][i], self.t + (k + 0.5) * STEP
        cycle = np.floor(middle / self.period + offset)
        if self.contact[i] and cycle == np.floor(self.t / self.period + offset):
            return self.feet[i]
        touchdown = max((cycle - offset) * self.period, self.t)
        return self.landing(self.c + (touchdown - self.t) * self.command, self.v, i, touchdown)
