"""Public functions of the toolkit as functions of a robot and a state, in numbers of any type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import legged
from examples.studies.operations.algorithms import ALGORITHMS as COUNTED
from legged import loops
from legged.algorithms import (
    centroidal,
    composite,
    derivatives,
    divide_and_conquer,
    global_form,
    newton_euler,
    operational,
    operators,
)
from legged.algorithms.sparse import constraint_force


class Case(NamedTuple):
    """A robot and arrays of one type of numbers."""

    robot: legged.Robot
    q: np.ndarray
    v: np.ndarray
    vdot: np.ndarray
    tau: np.ndarray
    wrench: np.ndarray

    @property
    def wrenches(self) -> dict[str, np.ndarray]:
        return {self.robot.links[-1].name: self.wrench}

    @property
    def points(self) -> list[tuple[str, np.ndarray]]:
        return [(self.robot.links[-1].name, np.array([0.125, -0.25, 0.5])), (self.robot.links[0].name, np.zeros(3))]

    @property
    def tip(self) -> list[tuple[str, np.ndarray]]:
        return self.points[:1]

    @property
    def frame(self) -> str:
        return self.robot.links[-1].name

    @property
    def S(self) -> operators.SpatialOperators:
        return operators.SpatialOperators(self.robot, self.q)

    @property
    def space(self) -> operational.OperationalSpace:
        return operational.OperationalSpace(self.robot, self.q, self.tip, (3, 4, 5))

    @property
    def contact(self) -> operational.LinkContact:
        points, normals = np.array([[0.125, -0.25, 0.5], [0.25, 0.125, 0.5]]), np.array([[0.0, 0.6, 0.8]] * 2)
        return operational.LinkContact(self.frame, operational.contact_normals(points, normals))

    @property
    def contact_space(self) -> operational.ContactSpace:
        return operational.ContactSpace(self.robot, self.q, (self.contact,))


Function = Callable[[Case], Any]
FORWARD_DYNAMICS = COUNTED["forward dynamics"]


def _forward(name: str) -> Function:
    """Return an algorithm of forward dynamics that `examples.studies` counts, with wrenches on a link."""
    function = FORWARD_DYNAMICS[name]
    return lambda x: function(x.robot, x.q, x.v, x.tau, x.wrenches)


CORE: dict[str, Function] = {
    "inverse_dynamics": lambda x: legged.inverse_dynamics(x.robot, x.q, x.v, x.vdot, x.wrenches),
    "floating_inverse_dynamics": lambda x: legged.floating_inverse_dynamics(
        x.robot, x.q, x.v, x.vdot[x.robot.base.nv :], x.wrenches
    ),
    "bias_forces": lambda x: legged.bias_forces(x.robot, x.q, x.v, x.wrenches),
    "forward_dynamics": lambda x: legged.forward_dynamics(x.robot, x.q, x.v, x.tau, x.wrenches),
    "hybrid_dynamics": lambda x: legged.hybrid_dynamics(
        x.robot, x.q, x.v, x.vdot, x.tau, prescribed=[j.name for j in x.robot.joints[:1]]
    ),
    "inertia_matrix": lambda x: legged.inertia_matrix(x.robot, x.q),
    "joint_wrenches": lambda x: legged.joint_wrenches(x.robot, x.q, x.v, x.vdot, x.wrenches),
    "center_of_mass": lambda x: legged.center_of_mass(x.robot, x.q),
    "kinetic_energy": lambda x: legged.kinetic_energy(x.robot, x.q, x.v),
    "potential_energy": lambda x: legged.potential_energy(x.robot, x.q),
    "momentum": lambda x: legged.momentum(x.robot, x.q, x.v),
    "momentum_rate": lambda x: legged.momentum_rate(x.robot, x.q, x.v, x.vdot),
    "required_wrench": lambda x: legged.required_wrench(x.robot, x.q, x.v, x.vdot),
    "link_poses": lambda x: legged.link_poses(x.robot, x.q),
    "link_twists": lambda x: legged.link_twists(x.robot, x.q, x.v),
    "point_positions": lambda x: legged.point_positions(x.robot, x.q, x.points),
    "point_motion": lambda x: legged.point_motion(x.robot, x.q, x.v, x.points),
    "point_jacobian": lambda x: legged.point_jacobian(x.robot, x.q, *x.points[0]),
    "point_accelerations": lambda x: legged.point_accelerations(x.robot, x.q, x.v, x.vdot, x.points),
    "point_twist_rates": lambda x: legged.point_twist_rates(x.robot, x.q, x.v, x.vdot, x.points),
    "frame_pose": lambda x: legged.frame_pose(x.robot, x.q, x.frame),
    "frame_twist": lambda x: legged.frame_twist(x.robot, x.q, x.v, x.frame, "local"),
    "frame_acceleration": lambda x: legged.frame_acceleration(x.robot, x.q, x.v, x.vdot, x.frame),
    "frame_jacobian": lambda x: legged.frame_jacobian(x.robot, x.q, x.frame),
    "configuration_rate": lambda x: legged.configuration_rate(x.robot, x.q, x.v),
    "integrate": lambda x: legged.integrate(x.robot, x.q, x.v),
    "center_of_mass_jacobian": lambda x: legged.center_of_mass_jacobian(x.robot, x.q),
}
"""Functions of every robot."""

ALGORITHMS: dict[str, Function] = {
    "newton_euler": lambda x: newton_euler.inverse_dynamics(x.robot, x.q, x.v, x.vdot, x.wrenches),
    "newton_euler, absolute": lambda x: newton_euler.inverse_dynamics(
        x.robot, x.q, x.v, x.vdot, x.wrenches, coordinates="absolute"
    ),
    "regressor": lambda x: newton_euler.inverse_dynamics_regressor(x.robot, x.q, x.v, x.vdot),
    "articulated": _forward("articulated bodies"),
    "articulated, absolute": _forward("articulated bodies, absolute"),
    "composite": lambda x: composite.inertia_matrix(x.robot, x.q),
    "composite, absolute": lambda x: composite.inertia_matrix(x.robot, x.q, coordinates="absolute"),
    "by inverse dynamics": lambda x: composite.inertia_matrix_by_inverse_dynamics(x.robot, x.q),
    "by unit accelerations": lambda x: composite.inertia_matrix_by_unit_accelerations(x.robot, x.q),
    "global_form": _forward("global form"),
    "global_form, matrices": lambda x: global_form.global_form(x.robot, x.q),
    "centroidal": lambda x: centroidal.dynamics(x.robot, x.q, x.v),
    "momentum_matrix": lambda x: centroidal.momentum_matrix(x.robot, x.q),
    "sparsity": _forward("inertia matrix, L^T D L"),
    "derivatives, inverse": lambda x: derivatives.of_inverse_dynamics(x.robot, x.q, x.v, x.vdot, x.wrenches),
    "derivatives, forward": lambda x: derivatives.of_forward_dynamics(x.robot, x.q, x.v, x.tau, x.wrenches),
    "inverse_inertia": lambda x: derivatives.inverse_inertia(x.robot, x.q),
    "jacobian_rate": lambda x: derivatives.jacobian_rate(x.robot, x.q, x.v, x.frame),
    "of_frame_motion": lambda x: derivatives.of_frame_motion(x.robot, x.q, x.v, x.vdot, x.frame),
    "by_propagators": lambda x: operational.by_propagators(x.robot, x.q, x.points),
    "by_factors": lambda x: operational.by_factors(x.robot, x.q, x.points),
    "space.inertia": lambda x: x.space.inertia,
    "space.null_space_projector": lambda x: x.space.null_space_projector,
    "space.bias": lambda x: x.space.bias(x.v, x.wrenches),
    "space.forces": lambda x: x.space.forces(x.v, x.vdot[:3], x.tau),
    "loops of a tree": lambda x: loops.solve(loops.ClosedRobot(x.robot, (), ()), x.q, x.v, x.tau, x.wrenches),
}
"""Functions of robots without coupled joints."""

OPERATORS: dict[str, Function] = {
    "operators": _forward("spatial operators"),
    "by_operators": lambda x: operational.by_operators(x.robot, x.q, x.points),
    "S.mass": lambda x: x.S.mass.matrix(),
    "S.mass_inverse": lambda x: x.S.mass_inverse @ x.tau,
    "S.innovations": lambda x: (x.S.innovations @ x.S.D @ x.S.innovations.T).matrix(),
    "operators.bias_forces": lambda x: operators.bias_forces(x.S, x.v, x.wrenches),
    "innovations": lambda x: operators.innovations(x.S, x.tau),
    "residuals": lambda x: operators.residuals(x.S, x.v),
    "square_root": lambda x: operators.square_root(x.S).matrix(),
    "diagonal_bias": lambda x: operators.diagonal_bias(x.robot, x.q, x.v, x.wrenches),
    "tip_mobility": lambda x: operators.tip_mobility(x.S, x.tip),
    "tip_correction": lambda x: operators.tip_correction(x.S, x.tip, x.wrench),
}
"""Functions of robots without rotors with gyroscopic effects."""

PARALLEL: dict[str, Function] = {
    "divide_and_conquer": _forward("divide and conquer, pivoted"),
    "divide_and_conquer, inverse": _forward("divide and conquer, inverse"),
    "divide_and_conquer, matrix": lambda x: divide_and_conquer.inverse_inertia_matrix(x.robot, x.q),
    "constraint_force": _forward("constraint forces"),
    "constraint_force, matrix": lambda x: constraint_force.inverse_inertia_matrix(x.robot, x.q),
    "system": _forward("sparse system"),
    "by_division": lambda x: operational.by_division(x.robot, x.q, x.tip),
    "by_constraint_forces": lambda x: operational.by_constraint_forces(x.robot, x.q, x.tip),
}
"""Functions of robots all bodies of which have inertia, without armature."""

HYBRID: dict[str, Function] = {
    "contact_projectors": lambda x: operational.contact_projectors(
        x.contact.normals, operational.link_response(x.robot, x.q, x.v, x.tau, x.frame).Phi
    ),
    "link_response": lambda x: operational.link_response(x.robot, x.q, x.v, x.tau, x.frame, x.wrenches),
    "ContactSpace.inertia": lambda x: x.contact_space.inertia,
    "ContactSpace.force_projector": lambda x: x.contact_space.force_projector,
    "ContactSpace.contact_forces": lambda x: x.contact_space.contact_forces(x.v, x.tau),
    "ContactSpace.hybrid_forces": lambda x: x.contact_space.hybrid_forces(x.v, x.tau, x.wrench[:2]),
}
"""Motion and force control of robots whose last link touches a surface."""

MOVING: dict[str, Function] = {
    "spatial_acceleration": lambda x: legged.spatial_acceleration(x.v[:6], x.vdot[:6]),
    "conventional_acceleration": lambda x: legged.conventional_acceleration(x.v[:6], x.vdot[:6]),
    "motion_derivative": lambda x: legged.motion_derivative(x.v[:6], x.vdot[:6], x.tau[:6]),
    "force_derivative": lambda x: legged.force_derivative(x.v[:6], x.vdot[:6], x.tau[:6]),
}
"""Vectors in moving coordinates."""

LYAPUNOV: dict[str, Function] = {
    "convective_forces": lambda x: derivatives.convective_forces(x.robot, x.q, x.v, x.vdot),
    "reference_inverse_dynamics": lambda x: derivatives.reference_inverse_dynamics(x.robot, x.q, x.v, x.vdot, x.tau),
}
"""Velocity products of control laws with a Lyapunov function."""

GAINS: dict[str, Function] = {
    "velocity_gains": lambda x: legged.velocity_gains(x.robot, x.q, [x.robot.contacts[0].name]),
    "contact_dynamics": lambda x: legged.contact_dynamics(x.robot, x.q, x.v, x.tau, [x.robot.contacts[0].name]),
}
"""Functions of robots with contact points."""

SAME = {
    "inverse dynamics": ("inverse_dynamics", "newton_euler", "newton_euler, absolute"),
    "forward dynamics": (
        "forward_dynamics",
        "articulated",
        "articulated, absolute",
        "global_form",
        "sparsity",
        "loops of a tree",
        "operators",
        *("divide_and_conquer", "divide_and_conquer, inverse", "constraint_force", "system"),
    ),
    "inertia matrix": (
        "inertia_matrix",
        "composite",
        "composite, absolute",
        "by inverse dynamics",
        "by unit accelerations",
        "S.mass",
    ),
}
"""Functions with the same result."""


def numbers_of(result: Any) -> list[Any]:
    """Return the numbers in a result, in a fixed order."""
    if isinstance(result, np.ndarray):
        return list(result.ravel())
    if isinstance(result, (tuple, list)):
        return [x for part in result for x in numbers_of(part)]
    if isinstance(result, global_form.GlobalForm):
        return numbers_of([result.P, result.H, result.I, result.reflected_inertia])
    return [result]


def case_of(robot: legged.Robot, seed: int, kind: Callable[[float], Any]) -> Case:
    """Return a random state of a robot in one type of numbers, with quaternions of norm one in this type."""
    rng = np.random.default_rng(seed)
    q = legged.random_configuration(robot, rng)
    arrays = q, *rng.normal(size=(3, robot.nv)), rng.normal(size=6)
    q, *others = (array_of(x, kind) for x in arrays)
    quaternions = [slice(0, 4)] if robot.base.kind == "floating" else []
    for at in (*quaternions, *(body.q for body in robot.bodies if body.kind == "ball")):
        q[at] = q[at] / _root(sum(x * x for x in q[at]))  # exact to the precision of the type
    return Case(robot, q, *others)


def _root(x: Any) -> Any:
    context = getattr(type(x), "context", None) or getattr(x, "ctx", None)
    return np.sqrt(x) if context is None else context.sqrt(x)


def array_of(x: np.ndarray, kind: Callable[[float], Any]) -> np.ndarray:
    out = np.empty(x.shape, dtype=object)
    out[:] = [kind(entry) for entry in x.tolist()]
    return out
