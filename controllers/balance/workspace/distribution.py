"""Algorithm 5: which foot gives what, and algorithm 6: the torques that pass it on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from controllers.balance.workspace.feet import Foot, seen_from
from controllers.balance.workspace.passes import Outward
from legged.compiler.ir.annotations import item, stage
from legged.robot.robot import Robot
from legged.spatial import (
    Array,
    ElementaryTransform,
    Transform,
    Translation,
    cross,
    join,
    mirror,
    solve_symmetric,
)

STAGE_5 = "5 distribution"
STAGE_6 = "6 torques"


def grasp(robot: Robot, out: Outward, feet: Sequence[Foot]) -> list[Array]:
    """Return Ad^T of each foot, (6, rows): from its wrench at its place to that about the base's origin, base axes.

    A foot's wrench is written in the axes of the base here, in those of the foot in the paper: its norm is the same.
    """
    with stage(STAGE_5):
        places = [out.o[foot.body] + out.R[foot.body] @ foot.center for foot in feet]
        return [seen_from(place, foot.rows) for place, foot in zip(places, feet, strict=True)]


def least_norm(G: Array, wanted: Array, weights: Array) -> Array:
    """Return the feet's wrenches F, (rows,), with G F = wanted and the least sum of F_i^2 / w_i:

        F = W G^T (G W G^T)^-1 wanted

    Args:
        G: (n0, rows), of full row rank. wanted: (n0,). weights: w, (rows,), one each in the paper.

    Source: Wendlandt 1997, algorithm 5, eq. (3.12); weights are ours.
    """
    with stage(STAGE_5):
        weighted = G * weights
        return weighted.T @ solve_symmetric(mirror(weighted @ G.T), wanted)


def joint_torques(robot: Robot, out: Outward, ends: Sequence[tuple[int, Array]]) -> list[Array]:
    """Return the torques of each body's joint, (nv of the joint,), by which limbs bring wrenches to the central body.

        F~ outward of a joint: F_k = -Ad^T F~,   tau_k = H^T F_k,   F~ of the next joint: -F_k

    Args:
        robot: The robot. out: The outward pass.
        ends: (body, wrench) of each foot: the body it is on, and what it brings, (6,), about the base's origin in base
            axes. Where limbs branch, feet go their ways one by one, and their torques add up.

    Source: Wendlandt 1997, algorithm 6.
    """
    tau = [np.zeros(body.nv) for body in robot.bodies]
    with stage(STAGE_6):
        for end, F in ends:
            for k in reversed(robot.ancestors(end)[:-1]):
                with item((end, k)):
                    F = carried(out.X[k], F)
                    tau[k] = tau[k] - robot.bodies[k].P.T @ F
    return tau


def carried(X: Transform, w: Array) -> Array:
    """Return a wrench on the parent, (6,), as the child sees it: the inverse of X.T."""
    for step in X.steps:
        w = _carried(step, w)
    return w


def _carried(step: ElementaryTransform, w: Array) -> Array:
    if isinstance(step, Translation):
        return join(w[:3] - cross(step.r, w[3:]), w[3:])
    return step.twist(w)  # turned as a twist is
