"""Scenes of rigid bodies for several programs: bodies, obstacles, friction and gravity, and their simulated motions.

A slope is level ground under inclined gravity, so that all programs use the same plane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

import legged
from legged.contact import Box, Capsule, Cylinder, FreeBody, Hull, Rigid, Sphere
from legged.robot.shapes import Shape
from legged.rotations import quaternion_matrix
from legged.spatial import Array

G = 9.81
"""Gravity, [m/s^2]."""
DOWN = (0.0, 0.0, -G)


@dataclass(frozen=True, eq=False)
class Solid:
    """A rigid body of uniform density.

    Attributes:
        name, shape, mass: Mass in [kg]; the center of the shape is the origin of the body.
        position, quaternion, velocity, spin: Initial state as in `FreeBody`.
    """

    name: str
    shape: Any
    mass: float
    position: Sequence[float]
    quaternion: Sequence[float] = (1.0, 0.0, 0.0, 0.0)
    velocity: Sequence[float] = (0.0, 0.0, 0.0)
    spin: Sequence[float] = (0.0, 0.0, 0.0)

    @property
    def inertia(self) -> legged.Inertia:
        """Inertia about the origin, body axes."""
        shape, mass = self.shape, self.mass
        if isinstance(shape, Sphere):
            return legged.sphere_inertia(mass, shape.radius)
        if isinstance(shape, Box):
            return legged.box_inertia(mass, shape.size)
        if isinstance(shape, Hull):
            return _hull_inertia(mass, shape)
        half = np.array([0.0, 0.0, 0.5 * shape.length])
        return legged.cylinder_inertia(mass, shape.radius, -half, half)


def _hull_inertia(mass: float, hull: Hull) -> legged.Inertia:
    """Return the inertia of a hull of uniform density: the sum over tetrahedra from its center to its faces."""
    from scipy.spatial import ConvexHull

    corners = hull.vertices[ConvexHull(hull.vertices).simplices] - hull.center
    weights = np.abs(np.linalg.det(corners))
    weights *= mass / weights.sum()
    first = np.einsum("t,tki->i", weights, corners) / 4.0 / mass
    sums = corners.sum(axis=1)
    second = np.einsum("t,tki,tkj->ij", weights, corners, corners) + np.einsum("t,ti,tj->ij", weights, sums, sums)
    second = second / 20.0 - mass * np.outer(first, first)
    return legged.Inertia(mass, hull.center + first, np.trace(second) * np.eye(3) - second)


@dataclass(frozen=True, eq=False)
class World:
    """Bodies on the plane z = 0.

    Attributes:
        solids: The bodies. friction, restitution: Of all contacts. gravity: (3,), [m/s^2].
        pairs: Pairs of names that collide, "ground" for the plane; None for all.
    """

    solids: Sequence[Solid]
    friction: float = 0.5
    restitution: float = 0.0
    gravity: Sequence[float] = DOWN
    pairs: Sequence[tuple[str, str]] | None = None


@dataclass(frozen=True, eq=False)
class Motion:
    """Sampled motion of the bodies of a world.

    Attributes:
        times: (T,), [s].
        position: Body -> origin, (T, 3), [m]. rotation: Body -> body to world axes, (T, 3, 3).
        velocity: Body -> velocity of the origin, (T, 3), [m/s]. spin: Body -> (T, 3), [rad/s], world axes.
        warning: Words of the program about the run; empty if it gave none.
    """

    times: Array
    position: dict[str, Array] = field(default_factory=dict)
    rotation: dict[str, Array] = field(default_factory=dict)
    velocity: dict[str, Array] = field(default_factory=dict)
    spin: dict[str, Array] = field(default_factory=dict)
    warning: str = ""

    def energy(self, world: World) -> Array:
        """Return kinetic and potential energy, (T,), [J]."""
        total = np.zeros(len(self.times))
        for solid in world.solids:
            R, name = self.rotation[solid.name], solid.name
            own = np.einsum("tji,tj->ti", R, self.spin[name])
            total += 0.5 * solid.mass * (self.velocity[name] ** 2).sum(axis=1)
            total += 0.5 * np.einsum("ti,ij,tj->t", own, np.asarray(solid.inertia.tensor), own)
            total -= solid.mass * self.position[name] @ np.asarray(world.gravity)
        return total

    def tilt(self, name: str) -> Array:
        """Return the angle of a body's z axis to that at the start, (T,), [deg]."""
        axis = self.rotation[name][:, :, 2]
        return np.degrees(np.arccos(np.clip(axis @ axis[0], -1.0, 1.0)))


Program = Callable[..., Motion]
"""Function of a world, the end time, the time step and the interval of samples, [s], that returns the motion."""


def ours(world: World, until: float, step: float = 1e-3, sample: float = 0.01, **law: Any) -> Motion:
    """Return the motion by `legged.simulate`; `law` are attributes of `Rigid`."""
    first = world.solids[0]
    robot, q, v, bodies, ground = placed(world, **law)
    options: Any = {"ground": ground, "bodies": bodies, "q": q, "v": v, "fall": False, "sample": max(sample, step)}
    run = legged.simulate(robot, None, until=until, integrator=legged.TimeStepping(step), **options)
    motion = Motion(run.times, warning="; ".join(run.warnings))
    for solid in world.solids:
        if solid is first:
            R = np.array([quaternion_matrix(q[:4]) for q in run.q])
            place, speed = run.q[:, 4:7], np.einsum("tij,tj->ti", R, run.v[:, 3:6])
            spin = np.einsum("tij,tj->ti", R, run.v[:, :3])
        else:
            body = run.body(solid.name)
            R, place, speed, spin = body.rotation, body.position, body.velocity, body.spin
        motion.position[solid.name], motion.rotation[solid.name] = place, R
        motion.velocity[solid.name], motion.spin[solid.name] = speed, spin
    return motion


def placed(world: World, **law: Any) -> tuple[legged.Robot, Array, Array, list[FreeBody], Rigid]:
    """Return the first body as a robot, its q and v, the others as free bodies, and the ground.

    Args:
        world: The world. law: Attributes of `Rigid`.
    """
    first, *others = world.solids
    link = legged.Link(first.name, first.inertia, shapes=[first.shape])
    robot = legged.RobotBuilder(first.name, link, gravity=world.gravity).build()
    q, v = FreeBody(first.name, first.inertia, [first.shape], *_state(first)).state()
    bodies = [FreeBody(solid.name, solid.inertia, [solid.shape], *_state(solid)) for solid in others]
    return robot, q, v, bodies, Rigid(world.friction, world.restitution, pairs=_pairs(world), **law)


def _state(solid: Solid) -> tuple[Any, ...]:
    return solid.position, solid.quaternion, solid.velocity, solid.spin


def _pairs(world: World) -> tuple[tuple[str, str], ...]:
    names = [solid.name for solid in world.solids]
    everything = [(a, b) for i, a in enumerate(names) for b in [*names[i + 1 :], "ground"]]
    pairs = everything if world.pairs is None else world.pairs
    return tuple((a, "terrain" if b == "ground" else b) for a, b in pairs)


SOLREF = "0.002 1"
"""MuJoCo's time constant [s] and damping ratio of contacts: two time steps of 1 ms, its stiffest setting."""
_GEOMS = {Sphere: "sphere", Box: "box", Capsule: "capsule", Cylinder: "cylinder"}


def mujoco_file(world: World, step: float, solref: str = SOLREF) -> str:
    """Return the MJCF file of a world with stiff contacts, elliptic cones and MuJoCo's recommended friction settings.

    Args:
        world: The world. step: Time step, [s]. solref: Parameters of the contacts.
    """
    contact = f'friction="{world.friction!r} 0 0" condim="3" solref="{solref}" solimp="0.99 0.999 0.0001"'
    bodies = []
    for solid in world.solids:
        at = f'pos="{_words(solid.position)}" quat="{_words(solid.quaternion)}"'
        size = _words(_size(solid.shape))
        m, c = np.asarray(solid.inertia.tensor), solid.mass
        inertia = f'<inertial pos="0 0 0" mass="{c!r}" diaginertia="{_words(np.diag(m))}"/>'
        geom = f'<geom name="{solid.name}" type="{_GEOMS[type(solid.shape)]}" size="{size}" {contact}/>'
        bodies.append(f'<body name="{solid.name}" {at}><freejoint/>{inertia}{geom}</body>')
    pairs = ""
    if world.pairs is not None:
        extra = f'condim="3" friction="{world.friction!r} {world.friction!r} 0 0 0" solref="{solref}"'
        pairs = "".join(f'<pair geom1="{a}" geom2="{b}" {extra} solimp="0.99 0.999 0.0001"/>' for a, b in world.pairs)
    apart = "" if world.pairs is None else 'contype="0" conaffinity="0"'
    geoms = "".join(bodies).replace("<geom ", f"<geom {apart} ")
    return (
        f'<mujoco><option timestep="{step!r}" gravity="{_words(world.gravity)}" cone="elliptic" impratio="100" '
        f'integrator="implicitfast" iterations="200" tolerance="1e-12" noslip_iterations="0"/><worldbody>'
        f'<geom name="ground" type="plane" size="50 50 1" {contact} {apart}/>{geoms}</worldbody>'
        f"<contact>{pairs}</contact></mujoco>"
    )


def mujoco(world: World, until: float, step: float = 1e-3, sample: float = 0.01, solref: str = SOLREF) -> Motion:
    """Return the motion in MuJoCo; see `mujoco_file`."""
    library: Any = import_module("mujoco")
    model = library.MjModel.from_xml_string(mujoco_file(world, step, solref))
    data = library.MjData(model)
    for k, solid in enumerate(world.solids):
        R = quaternion_matrix(np.asarray(solid.quaternion, float))
        data.qvel[6 * k : 6 * k + 6] = np.r_[solid.velocity, R.T @ np.asarray(solid.spin)]
    every = max(round(sample / step), 1)
    times = np.arange(round(until / step) // every + 1) * every * step
    motion = Motion(times)
    states: list[tuple[Array, Array]] = []
    for k in range(len(times)):
        if k:
            library.mj_step(model, data, every)
        states.append((data.qpos.copy(), data.qvel.copy()))
    q, v = (np.array(part) for part in zip(*states, strict=True))
    for k, solid in enumerate(world.solids):
        R = np.array([quaternion_matrix(x) for x in q[:, 7 * k + 3 : 7 * k + 7]])
        motion.position[solid.name], motion.rotation[solid.name] = q[:, 7 * k : 7 * k + 3], R
        motion.velocity[solid.name] = v[:, 6 * k : 6 * k + 3]
        motion.spin[solid.name] = np.einsum("tij,tj->ti", R, v[:, 6 * k + 3 : 6 * k + 6])
    return motion


def _size(shape: Shape) -> Sequence[float]:
    if isinstance(shape, Sphere):
        return [shape.radius]
    if isinstance(shape, Box):
        return shape.half.tolist()
    return [shape.radius, 0.5 * shape.length]  # type: ignore[union-attr]


def _words(numbers: Any) -> str:
    return " ".join(repr(float(x)) for x in numbers)
