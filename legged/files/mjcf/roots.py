"""The robot among the moving bodies of an MJCF model, and bases that are written as chains of slides and hinges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.errors import FileError
from legged.robot.placement import Placement
from legged.rotations import quaternion_matrix
from legged.spatial import Array

FREE, BALL, SLIDE, HINGE = range(4)  # mjtJoint
WORLD = "world"
_AXIS_TOLERANCE = 1e-12  # largest deviation of an axis from that of a base


@dataclass(frozen=True, eq=False)
class RootChain:
    """Slides and hinges, or a ball, by which the root body of a model moves as a base does.

    Attributes:
        kind: "floating" or "planar".
        joints: Indices of the joints: the slides, then the hinges or the ball.
        place: Pose of the body in the world with its slides at `references` and its hinges or ball at rest.
        references: Values of q with which the bodies are drawn, one for each slide and hinge.
        slides: World axes of the slides as columns, (3, 3), or (2, 2) in x and z for a planar base.
        sequence: Axes of the hinges, "xyz" for example, "" for a ball. signs: 1 or -1 for each hinge.
    """

    kind: str
    joints: tuple[int, ...]
    place: Placement
    references: Array
    slides: Array
    sequence: str
    signs: Array


def choose_root(model: Any, names: list[str], root: str | None, source: str) -> tuple[int, list[int]]:
    """Return (the root body of the robot, 0 for the world; the moving bodies on the world that belong to the robot).

    The robot is the only moving body on the world. Among several it is the one with further joints on a free body or
    a base of slides and hinges, if no other has as many; without such a body, all of them are one robot on the world.

    Args:
        model: Compiled model (`mujoco.MjModel`). names: Names of its bodies. root: Name of the robot's root body, or
            "world" for all moving bodies; None to find it. source: Path, for messages.

    Raises:
        FileError: If `root` is no body on the world, or if several bodies might be the robot.
    """
    on_world = sorted({int(model.body_rootid[body]) for body in model.jnt_bodyid})
    if root == WORLD:
        return 0, on_world
    if root is not None:
        bodies = [i for i in range(1, model.nbody) if model.body_parentid[i] == 0]
        named = [i for i in bodies if names[i] == root]
        if not named:
            every = ", ".join(repr(names[i]) for i in bodies)
            raise FileError(source, f"has no body {root!r} on the world to be the root; there are {every}")
        return (named[0] if moves_freely(model, named[0]) else 0), named
    moving = [i for i in on_world if moves_freely(model, i)]
    if len(on_world) == 1 and moving:
        return moving[0], moving
    counts = {i: _joints_below(model, i) + (i not in moving and int(model.body_jntnum[i])) for i in on_world}
    most = max(counts.values(), default=0)
    best = [i for i in moving if counts[i] == most > 0]
    if not best or any(counts[i] == most for i in on_world if i not in moving):
        return 0, on_world
    if len(best) > 1:
        listed = ", ".join(repr(names[i]) for i in best)
        raise FileError(source, f"has several robots, {listed}; choose one with root={names[best[0]]!r}, or 'world'")
    return best[0], best


def moves_freely(model: Any, body: int) -> bool:
    """Return whether a body on the world has a free joint, or joints that move it as a base.

    Args:
        model: Compiled model. body: Index of the body.
    """
    first = int(model.body_jntadr[body])
    return first >= 0 and (int(model.jnt_type[first]) == FREE or root_chain(model, body) is not None)


def _joints_below(model: Any, body: int) -> int:
    """Return the number of joints of the bodies that hang on a body on the world."""
    return sum(int(model.body_rootid[b]) == body and int(b) != body for b in model.jnt_bodyid)


def root_chain(model: Any, body: int) -> RootChain | None:
    """Return the joints by which a body on the world moves as a floating or a planar base does; None for others.

    Three slides and a ball, or three hinges about different axes, are a floating base; two slides in the x-z plane of
    the world and a hinge about y are a planar base. Slides come before hinges, at the body's origin.

    Args:
        model: Compiled model. body: Index of the body.
    """
    first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
    joints = tuple(range(first, first + count))
    kinds = tuple(int(model.jnt_type[j]) for j in joints)
    if kinds not in ((SLIDE,) * 3 + (BALL,), (SLIDE,) * 3 + (HINGE,) * 3, (SLIDE,) * 2 + (HINGE,)):
        return None
    R = quaternion_matrix(model.body_quat[body] / np.linalg.norm(model.body_quat[body]))
    turning = [j for j, kind in zip(joints, kinds, strict=True) if kind != SLIDE]
    slides = (R @ model.jnt_axis[[j for j in joints if j not in turning]].T) + 0.0  # without -0.0
    if np.abs(model.jnt_pos[turning]).max() > 0.0:
        return None
    axes = [] if kinds[-1] == BALL else [_letter(model.jnt_axis[j]) for j in turning]
    sequence, signs = "".join(letter for letter, _ in axes), np.array([sign for _, sign in axes])
    if len(set(sequence)) < len(axes) or " " in sequence:
        return None
    is_planar = len(joints) == 3
    if is_planar:
        turned = np.abs(R @ np.eye(3)["xyz".index(sequence)] - (0.0, 1.0, 0.0)).max() > _AXIS_TOLERANCE
        if turned or np.abs(slides[1]).max() > _AXIS_TOLERANCE:
            return None
        slides = slides[[0, 2]]
    if abs(np.linalg.det(slides)) < 1e-6:
        return None
    references = np.array([model.qpos0[model.jnt_qposadr[j]] for j in joints if model.jnt_type[j] != BALL])
    place = Placement(R, model.body_pos[body].copy())
    return RootChain("planar" if is_planar else "floating", joints, place, references, slides, sequence, signs)


def why_no_base(model: Any, chain: RootChain) -> str:
    """Return why a chain of joints cannot be a base of the robot, in words; "" if it can.

    Args:
        model: Compiled model. chain: The chain.
    """
    joints = list(chain.joints)
    dofs = [d for d in range(model.nv) if int(model.dof_jntid[d]) in joints]
    forces = (model.dof_damping[dofs], model.dof_armature[dofs], model.dof_frictionloss[dofs])
    stops = model.jnt_limited[joints].any() or model.jnt_stiffness[joints].any()
    if stops or any(np.any(force) for force in forces) or _actuated(model) & set(joints):
        return "they have friction, armature, springs, stops or motors"
    if chain.kind == "planar" and chain.place.position[1]:
        return "their plane does not contain the world's origin"
    return ""


def other_base_joints(model: Any, body: int) -> list[int]:
    """Return the joints of a body on the world that move it without motors and with a slide, where others follow.

    Args:
        model: Compiled model. body: Index of the body.
    """
    first = int(model.body_jntadr[body])
    joints = list(range(first, first + int(model.body_jntnum[body]))) if first >= 0 else []
    slides = any(int(model.jnt_type[j]) == SLIDE for j in joints)
    return joints if slides and _joints_below(model, body) and not _actuated(model) & set(joints) else []


def _actuated(model: Any) -> set[int]:
    """Return the indices of the joints with motors."""
    on_joints = np.flatnonzero(model.actuator_trntype <= 1)  # mjTRN_JOINT and mjTRN_JOINTINPARENT
    return {int(model.actuator_trnid[i, 0]) for i in on_joints}


def _letter(axis: Array) -> tuple[str, float]:
    """Return (letter, sign) of a coordinate axis; a space for other axes."""
    k = int(np.argmax(np.abs(axis)))
    exact = np.abs(np.delete(axis, k)).max() <= _AXIS_TOLERANCE
    return ("xyz"[k] if exact else " "), float(np.sign(axis[k]))
