"""Standing robots, and their dense equations of motion with fixed feet."""

from __future__ import annotations

from functools import cache

import numpy as np

import controllers
import legged
import robots
from legged import Limb, Link, RobotBuilder
from legged.dynamics.kinematics import point_jacobian, point_twist_rates
from legged.spatial import Array
from robots.bipeds import crouch

SOLE = {f"{x}{y}": (0.1 * x, 0.05 * y, -0.05) for x in (-1, 1) for y in (-1, 1)}  # [m]


@cache
def shared_biped() -> legged.Robot:
    """Return the spatial biped, the same one in all tests of a process, so that its postures are searched once."""
    return robots.spatial_biped()


@cache
def shared_quadruped() -> legged.Robot:
    """Return the spatial quadruped, as `shared_biped`."""
    return robots.spatial_quadruped()


def standing_cases() -> dict[str, tuple[legged.Robot, Array, Array]]:
    """Return name -> (robot, q, v): near a standing posture, moving."""
    quadruped, euler = robots.spatial_quadruped(), robots.spatial_quadruped(legged.EulerBase("xyz"))
    planar, humanoid, biped = robots.planar_biped(), robots.humanoid(), robots.spatial_biped()
    made = {
        "biped": (biped, crouch(biped).q),
        "quadruped": (quadruped, controllers.Stand(hip_height=0.45).initial_state(quadruped)[0]),
        "quadruped, Euler angles": (euler, controllers.Stand(hip_height=0.45).initial_state(euler)[0]),
        "planar biped": (planar, controllers.Stand(hip_height=0.9).initial_state(planar)[0]),
        "humanoid": (humanoid, controllers.WorkspaceBalance().initial_state(humanoid)[0]),
        **{f"random {seed}": (robot := random_stander(seed), robot.neutral()) for seed in range(4)},
    }
    return {name: (robot, *_moved(robot, q, seed)) for seed, (name, (robot, q)) in enumerate(made.items())}


def _moved(robot: legged.Robot, q: Array, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return legged.integrate(robot, q, 0.1 * rng.normal(size=robot.nv)), 0.5 * rng.normal(size=robot.nv)


def random_stander(seed: int) -> legged.Robot:
    """Return a trunk on two to four legs, on soles or points, with an arm, a branch, springs, rotors and friction."""
    rng = np.random.default_rng(seed)
    base = legged.FloatingBase() if seed % 2 else legged.EulerBase("zyx")
    robot = RobotBuilder(f"stander {seed}", Link("trunk", _body(rng, 20.0)), base=base)
    for k in range(rng.integers(2, 5)):
        flat = bool(rng.integers(2)) if k > 1 else True
        robot.attach(_limb(rng, 6 if flat else 3, flat), to="trunk", at=rng.normal(size=3) * 0.3, prefix=f"leg{k}_")
    robot.attach(_limb(rng, 3, None), to="trunk", at=rng.normal(size=3) * 0.3, prefix="arm_")
    robot.attach(_limb(rng, 2, None), to="leg0_2", at=rng.normal(size=3) * 0.1, prefix="tail_")
    return robot.build()


def _limb(rng: np.random.Generator, joints: int, flat: bool | None) -> Limb:
    limb, at = Limb(), np.zeros(3)
    for k in range(joints):
        contacts = {} if flat is None or k < joints - 1 else SOLE if flat else {"tip": rng.normal(size=3) * 0.2}
        physics = legged.JointPhysics(
            damping=rng.uniform(0, 0.5), stiffness=rng.uniform(0, 5), armature=rng.uniform(0, 0.02)
        )
        axis = np.linalg.qr(rng.normal(size=(3, 3)))[0][0]
        slides = k == 3 and rng.uniform() < 0.5
        kind = legged.Prismatic if slides else legged.Revolute
        joint = kind(f"joint{k}", axis, physics=physics)
        limb.add(
            joint, Link(str(k), _body(rng, 2.0), contacts), at=at, rotation=np.linalg.qr(rng.normal(size=(3, 3)))[0]
        )
        at = rng.normal(size=3) * 0.3
    return limb


def _body(rng: np.random.Generator, mass: float) -> legged.Inertia:
    size = rng.uniform(0.1, 0.3, size=3)
    return legged.box_inertia(mass, size, 0.05 * rng.normal(size=3))


def held_rows(robot: legged.Robot, feet: tuple, q: Array, v: Array) -> tuple[Array, Array]:
    """Return (J, Jdot v) of the feet's middles, all their rows, world axes."""
    points = [(foot.link, foot.position) for foot in feet]
    rows = [6 * i + row for i, foot in enumerate(feet) for row in foot.rows]
    J = np.concatenate([point_jacobian(robot, q, *point) for point in points])
    return J[rows], point_twist_rates(robot, q, v, np.zeros(robot.nv), points).reshape(-1)[rows]


def held_acceleration(robot: legged.Robot, feet: tuple, q: Array, v: Array, tau: Array) -> Array:
    """Return vdot with feet that do not accelerate: M vdot + h = tau + J^T f, J vdot + Jdot v = 0."""
    J, bias = held_rows(robot, feet, q, v)
    M, h = legged.inertia_matrix(robot, q), legged.inverse_dynamics(robot, q, v, np.zeros(robot.nv))
    system = np.block([[M, -J.T], [J, np.zeros((len(J), len(J)))]])
    return np.linalg.solve(system, np.concatenate([tau - h, -bias]))[: robot.nv]


def base_acceleration(robot: legged.Robot, q: Array, v: Array, vdot: Array) -> Array:
    """Return [omega dot; acceleration of the base's origin], (6,), base axes."""
    base = robot.base
    return base.motion_matrix(q[: base.nq]) @ vdot[: base.nv] + base.motion_bias(q[: base.nq], v[: base.nv])
