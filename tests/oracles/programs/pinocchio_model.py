"""Any robot as a Pinocchio model, built joint by joint from the robot's *definition*.

Only the graph (joints and their placements), the links' inertias and the base's type are read, not the frames, bodies
and slices of our recursions. A joint of several degrees of freedom becomes Pinocchio's own joint where there is
one with our coordinates (free flyer, spherical), else a chain of one-DoF joints. Along a coordinate axis these are
Pinocchio's own for that axis, its fastest; where the axis points the other way the coordinate changes sign.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
import pinocchio as pin

import legged
from legged.spatial import Array

_NAMED = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


_TURNS = pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ, pin.JointModelRevoluteUnaligned
_SCREWS = pin.JointModelHX, pin.JointModelHY, pin.JointModelHZ, pin.JointModelHelicalUnaligned
_SLIDES = pin.JointModelPX, pin.JointModelPY, pin.JointModelPZ, pin.JointModelPrismaticUnaligned
Stage = tuple[pin.JointModel, float]
"""A one-DoF joint (or one of Pinocchio's own of several), and the sign of its coordinate against ours."""


def _axis(axis) -> Array:
    if isinstance(axis, str):
        return (-1.0 if axis[0] == "-" else 1.0) * np.array(_NAMED[axis[-1]])
    return np.asarray(axis, float)


def _along(axis, kinds: tuple, *numbers: float) -> Stage:
    """Return the joint of one of the `kinds` along an axis: that for a coordinate axis if it is one."""
    direction = _axis(axis)
    k = int(np.argmax(np.abs(direction)))
    if np.count_nonzero(direction) == 1:
        return kinds[k](*numbers), float(np.sign(direction[k]))
    return kinds[-1](direction, *numbers), 1.0


@dataclass(frozen=True, eq=False)
class PinocchioTwin:
    """A Pinocchio model of a robot, and how our vectors map to its own.

    Attributes:
        model, data: Pinocchio's.
        q_index, v_index: Where our entry i of q and v sits in Pinocchio's.
        q_sign, v_sign: 1, or -1 where our entry i has the other sign there.
        where: Link name -> (joint id, the link's frame in that joint's frame).
    """

    model: pin.Model
    data: pin.Data
    q_index: Array
    v_index: Array
    q_sign: Array
    v_sign: Array
    where: Mapping[str, tuple[int, pin.SE3]]

    def q(self, q: Array) -> Array:
        out = np.empty(self.model.nq)
        out[self.q_index] = self.q_sign * q
        return out

    def v(self, v: Array) -> Array:
        out = np.empty(self.model.nv)
        out[self.v_index] = self.v_sign * v
        return out

    def ours(self, v: Array) -> Array:
        """Return a vector of Pinocchio's, or rows of such, in our order."""
        return v[..., self.v_index] * self.v_sign

    def forces(self, robot: legged.Robot, wrenches: Array) -> pin.StdVec_Force:
        """Return external forces joint by joint, from (n_links, 6) about each link's origin in its axes."""
        total = [pin.Force.Zero() for _ in range(self.model.njoints)]
        for link, w in zip(robot.links, wrenches, strict=True):
            joint, place = self.where[link.name]
            total[joint] += place.act(pin.Force(w[3:], w[:3]))
        return pin.StdVec_Force(total)

    def inverse_dynamics(self, robot, q, v, vdot, wrenches) -> Array:
        force = self.forces(robot, wrenches)
        return self.ours(pin.rnea(self.model, self.data, self.q(q), self.v(v), self.v(vdot), force))

    def forward_dynamics(self, robot, q, v, tau, wrenches) -> Array:
        force = self.forces(robot, wrenches)
        return self.ours(pin.aba(self.model, self.data, self.q(q), self.v(v), self.v(tau), force))

    def inertia_matrix(self, q) -> Array:
        upper = np.triu(pin.crba(self.model, self.data, self.q(q)))
        full = upper + np.triu(upper, 1).T
        return full[np.ix_(self.v_index, self.v_index)] * np.outer(self.v_sign, self.v_sign)


class _Build:
    def __init__(self, robot: legged.Robot) -> None:
        self.robot = robot
        self.model = pin.Model()
        self.model.gravity.linear = np.array(robot.gravity)
        self.where: dict[str, tuple[int, pin.SE3]] = {}
        self.inertia = {link.name: link.inertia for link in robot.links}
        self.q_of: dict[str, list[int]] = {}  # joint name ("" for the base) -> entries of Pinocchio's q, in our order
        self.v_of: dict[str, list[int]] = {}
        self.signs: dict[str, tuple[list[float], list[float]]] = {}  # of the same entries, of q and v

    def chain(self, parent: int, place: pin.SE3, name: str, stages: list[Stage]) -> int:
        """Add one-DoF joints one after the other, and record where their coordinates went."""
        self.q_of[name], self.v_of[name], self.signs[name] = [], [], ([], [])
        for number, (stage, sign) in enumerate(stages):
            parent = self.model.addJoint(parent, stage, place, f"{name}#{number}")
            nq, nv = self.model.nqs[parent], self.model.nvs[parent]
            self.q_of[name] += range(self.model.idx_qs[parent], self.model.idx_qs[parent] + nq)
            self.v_of[name] += range(self.model.idx_vs[parent], self.model.idx_vs[parent] + nv)
            for signs, size in zip(self.signs[name], (nq, nv), strict=True):
                signs += [sign] * size
            place = pin.SE3.Identity()
        return parent

    def base(self) -> int:
        base: Any = self.robot.base
        here = pin.SE3.Identity()
        slide = [_along(axis, _SLIDES) for axis in "xyz"]
        if base.kind == "planar":
            joint = self.chain(0, here, "", [slide[0], slide[2], _along("y", _TURNS)])
            order = [2, 0, 1]  # ours: phi, x, z
        elif base.kind == "euler":
            joint = self.chain(0, here, "", [*slide, *_euler(base.sequence)])
            order = [3, 4, 5, 0, 1, 2]  # ours: angles, position
        elif base.kind == "floating":
            joint = self.chain(0, here, "", [(pin.JointModelFreeFlyer(), 1.0)])
            self.q_of[""] = [self.q_of[""][i] for i in (6, 3, 4, 5, 0, 1, 2)]  # theirs: position, x y z w
            order = [3, 4, 5, 0, 1, 2]  # theirs: linear, angular
        else:
            return self.chain(0, here, "", [])
        if base.kind != "floating":
            self.q_of[""] = [self.q_of[""][i] for i in order]
        self.v_of[""] = [self.v_of[""][i] for i in order]
        return joint

    def joint(self, parent: int, place: pin.SE3, joint: Any) -> int:
        name, kind = joint.name, joint.kind
        if kind == "revolute":
            return self.chain(parent, place, name, [_along(joint.axis, _TURNS)])
        if kind == "prismatic":
            return self.chain(parent, place, name, [_along(joint.axis, _SLIDES)])
        if kind == "screw":
            return self.chain(parent, place, name, [_along(joint.axis, _SCREWS, joint.pitch)])
        if kind == "cylindrical":
            return self.chain(parent, place, name, [_along(joint.axis, kinds) for kinds in (_SLIDES, _TURNS)])
        if kind == "universal":
            return self.chain(parent, place, name, [_along(axis, _TURNS) for axis in (joint.first, joint.second)])
        if kind == "planar":
            a, b = _axis(joint.first), _axis(joint.second)
            return self.chain(
                parent, place, name, [_along(a, _SLIDES), _along(b, _SLIDES), _along(np.cross(a, b), _TURNS)]
            )
        if kind == "spherical" and joint.sequence is not None:
            return self.chain(parent, place, name, _euler(joint.sequence))
        slides = [_along(axis, _SLIDES) for axis in "xyz"] if kind == "free" else []
        added = self.chain(parent, place, name, [*slides, (pin.JointModelSpherical(), 1.0)])
        *position, x, y, z, w = self.q_of[name]
        self.q_of[name] = [*position, w, x, y, z]
        return added

    def links(self, root: str) -> None:
        """Add all links, depth first, as Pinocchio needs it."""
        waiting = [(root, self.base(), pin.SE3.Identity(), None)]
        while waiting:
            name, joint, place, moves = waiting.pop()
            if moves is not None:
                joint, place = self.joint(joint, place, moves), pin.SE3.Identity()
            self.where[name] = joint, place
            self.weight(self.inertia[name], joint, place)
            for _, child, edge in reversed(list(self.robot.graph.out_edges(name, data=True))):
                start = place * pin.SE3(edge["rotation"], edge["at"])
                waiting.append((child, joint, start, None if edge["kind"] == "fixed" else edge["definition"]))

    def weight(self, inertia: legged.Inertia, joint: int, place: pin.SE3) -> None:
        if inertia.mass > 0:
            body = pin.Inertia(inertia.mass, np.asarray(inertia.center), np.asarray(inertia.tensor))
            self.model.appendBodyToJoint(joint, body, place)


def _euler(sequence: str) -> list[Stage]:
    return [_along(axis, _TURNS) for axis in sequence]


def pinocchio_twin(robot: legged.Robot) -> PinocchioTwin:
    """Return the robot's Pinocchio twin."""
    build = _Build(robot)
    (root,) = (name for name, degree in nx.DiGraph(robot.graph).in_degree() if degree == 0)
    build.links(root)
    order = ["", *(joint.name for joint in robot.joints)]
    q_index = np.array([i for name in order for i in build.q_of[name]], dtype=int)
    v_index = np.array([i for name in order for i in build.v_of[name]], dtype=int)
    q_sign, v_sign = (np.array([s for name in order for s in build.signs[name][k]]) for k in range(2))
    return PinocchioTwin(build.model, build.model.createData(), q_index, v_index, q_sign, v_sign, build.where)
