"""Exact balance of momentum in a time step with impulses, of robots that only contacts and forces connect to the world.

With the linear momentum P, the angular momentum L about the center of mass c, and the impulse p of all forces but
gravity, whose moment about the center of mass in the middle of the step, c + h/2 P / m, is n, a step h gives

    P+ = P + p + h m g,      L+ = L + n,      c+ = c + h/2 (P + P+) / m.

The equations of a step evaluate velocity-product terms at one velocity, and satisfy this up to errors of the third
order in h, and of the first order in a step with an impact, in which the velocity jumps. `FreePart.balanced` moves and
turns a robot as a whole at the end of the step, so that the sums hold up to rounding: equal and opposite impulses
between robots cancel, and free flight keeps P - m g t, L and the parabola of c. Joints keep their positions and rates.

Source: momentum as a constraint of the update: Simo, Tarnow, Wong, "Exact energy-momentum conserving algorithms and
symplectic schemes for nonlinear dynamics", Computer Methods in Applied Mechanics and Engineering 100, 1992.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir import items
from legged.contact.scene import ContactGeometry, Scene
from legged.dynamics.kinematics import motion
from legged.dynamics.modules import transforms
from legged.robot.base import EulerBase, FixedBase, PlanarBase
from legged.robot.joint import Free, Planar
from legged.robot.robot import Robot
from legged.spatial import Array, cross, is_zero, join, solve_symmetric


class Momentum(NamedTuple):
    """Momentum of a part of a robot.

    Attributes:
        center: Center of mass, (3,), [m], world axes.
        angular: Angular momentum about it, (3,), [kg m^2/s], world axes.
        linear: Linear momentum, (3,), [kg m/s], world axes.
    """

    center: Array
    angular: Array
    linear: Array


@dataclass(frozen=True, eq=False)
class FreePart:
    """A part of a robot that moves freely: all of it on a moving base, or one robot of a group.

    Attributes:
        robot: The whole robot.
        carriers: Numbers of the bodies between the world and the root link of the part, the root last: the stages of
            the joint that carries it in a group, or the base alone.
        bodies: Numbers of its bodies, the root first.
        v: Entries of the root in the velocity.
    """

    robot: Robot
    carriers: tuple[int, ...]
    bodies: tuple[int, ...]
    v: slice

    @cached_property
    def mass(self) -> Any:
        """Its mass, [kg]."""
        return sum(self.robot.bodies[k].moments.mass for k in self.bodies)

    def momentum(self, q: Array, v: Array) -> Momentum:
        """Return its momentum.

        Args:
            q: Configuration, (nq,), mixed units. v: Velocity, (nv,), mixed units.
        """
        return self._momentum(q, v)[0]

    def impulse(self, h: Any, q: Array, forces: Array, wrenches: Array | None) -> Array:
        """Return the impulse [n; p] of forces on it in a step, (6,), [N m s] and [N s], about the world's origin.

        Args:
            h: The step, [s]. q: Configuration at which they act, (nq,), mixed units.
            forces: Generalized forces, (nv,), [N m] and [N], of which those of the root act from the world.
            wrenches: Wrenches [n; f] on the links, (n_links, 6), [N m] and [N], link axes, or None.
        """
        total = np.zeros(6)
        if not all(is_zero(x) for x in forces[self.v]):
            total = total + self.on_root(q, forces[self.v])
        if wrenches is not None:
            at = motion(self.robot, q)
            for link in items([link for link in self.robot.links if link.body in self.bodies]):
                R, o = at.rotation[link.body], at.origin[link.body]
                total = total + _about_origin(R @ link.rotation, o + R @ link.position, wrenches[link.index])
        return h * total

    def on_root(self, q: Array, forces: Array) -> Array:
        """Return the wrench [n; f] of generalized forces of the root, (6,), [N m] and [N], about the world's origin.

        Given generalized impulses, such as the root's rows of M dv, it returns an impulse.

        Args:
            q: Configuration, (nq,), mixed units. forces: At the root's entries of v, (n,), mixed units.
        """
        S = self._twists(q)
        w = S @ forces
        if isinstance(self.robot.base, EulerBase):  # whose coordinates have no orthonormal twists
            w = solve_symmetric(S @ S.T, w)
        return _about_origin(*self._poses(q)[-1], w)

    def balanced(self, h: Any, before: Momentum, impulse: Array, q: Array, v: Array) -> tuple[Array, Array]:
        """Return the state after a step with the exact center of mass and momentum, (nq,) and (nv,).

        Args:
            h: The step, [s]. before: Momentum before it.
            impulse: Impulse [n; p] of all forces but gravity, (6,), [N m s] and [N s], about the world's origin.
            q, v: State after the step, (nq,) and (nv,), mixed units.
        """
        half, (R, _) = 0.5 * h * (1.0 / self.mass), self._poses(q)[-1]
        after, arm, inertia = self._momentum(q, v)
        linear = before.linear + impulse[3:] + h * self.mass * self.robot.gravity
        middle = before.center + half * before.linear
        angular = before.angular + impulse[:3] - cross(middle, impulse[3:])
        change = linear - after.linear
        missing = join(R.T @ (angular - after.angular), R.T @ change)
        missing = join(missing[:3] + cross(arm, missing[3:]), missing[3:])
        S, velocity = self._twists(q), list(v)
        velocity[self.v] = list(v[self.v] + solve_symmetric(S.T @ inertia @ S, S.T @ missing))
        return self._shifted(q, middle + half * linear - after.center), np.stack(velocity)

    def _momentum(self, q: Array, v: Array) -> tuple[Momentum, Array, Array]:
        """Return the momentum, the center of mass in axes of the root, (3,), and the inertia about its origin, (6, 6).

        The share of a joint is the composite inertia of all bodies outward of it times its twist.
        """
        robot, X = self.robot, transforms(self.robot, q)
        inertia = {k: robot.bodies[k].M for k in self.bodies}
        wrench = {k: robot.bodies[k].rotor_momentum @ v[robot.bodies[k].v] for k in self.bodies}
        for body in items([robot.bodies[k] for k in reversed(self.bodies[1:])]):
            k, parent = body.index, body.parent
            inertia[parent] = inertia[parent] + X[k].transform_inertia(inertia[k])
            wrench[parent] = wrench[parent] + X[k].T @ (wrench[k] + inertia[k] @ (body.P @ v[body.v]))
        root, (R, o) = self.bodies[0], self._poses(q)[-1]
        own, w = inertia[root], wrench[root] + inertia[root] @ (self._twists(q) @ v[self.v])
        arm = np.stack([own[2, 4], own[0, 5], own[1, 3]]) * (1.0 / self.mass)  # of the first moment of mass
        return Momentum(o + R @ arm, R @ (w[:3] - cross(arm, w[3:])), R @ w[3:]), arm, own

    def _poses(self, q: Array) -> list[tuple[Array, Array]]:
        """Return the poses of the carriers: their axes to world axes, (3, 3), and origins, (3,), [m], world axes."""
        poses = [self.robot.base.pose(q)]
        for body in (self.robot.bodies[k] for k in self.carriers if k):
            poses.append(body.transform(q).child_pose(*poses[-1]))
        return poses[-len(self.carriers) :]

    def _twists(self, q: Array) -> Array:
        """Return S, (6, n), with the twist S v of the root for its entries of v, root axes."""
        S = self.robot.base.motion_matrix(q[: self.robot.base.nq])
        for body in (self.robot.bodies[k] for k in self.carriers if k):
            columns = [body.transform(q) @ column for column in S.T]
            S = np.stack([*columns, *body.P.T], axis=1)
        return S

    def _shifted(self, q: Array, shift: Array) -> Array:
        """Return the configuration, (nq,), with the part moved by a shift, (3,), [m], world axes."""
        base, moved = self.robot.base, list(q)
        if self.carriers == (0,):
            axes = (0, 2) if isinstance(base, PlanarBase) else (0, 1, 2)  # of the positions, which come last
            for entry, axis in zip(range(base.nq - len(axes), base.nq), axes, strict=True):
                moved[entry] = moved[entry] + shift[axis]
        for body, (R, _) in zip((self.robot.bodies[k] for k in self.carriers), self._poses(q), strict=True):
            if body.kind == "prismatic":
                moved[body.q.start] = moved[body.q.start] + R @ body.P[3:, 0] @ shift
        return np.stack(moved)


def contact_impulse(scene: Scene, robot: int, bodies: Collection[int], geometry: ContactGeometry, p: Array) -> Array:
    """Return the impulse [n; p] of contacts on bodies, (6,), [N m s] and [N s], about the world's origin.

    Args:
        scene: The scene. robot: Number of the robot in it. bodies: Numbers of its bodies. geometry: The contacts.
        p: Impulses on the first sides, (m, 3), [N s], contact frames.
    """
    total = np.zeros(6)
    for candidate, frame, point, own in zip(scene.candidates, geometry.frame, geometry.point, p, strict=True):
        sides = ((side, sign) for side, sign in ((candidate.first, 1.0), (candidate.second, -1.0)) if side is not None)
        on = [sign for side, sign in sides if side.robot == robot and side.body in bodies]
        if len(on) == 1:  # impulses between two of the bodies cancel
            f = frame.T @ (on[0] * own)
            total = total + join(cross(point, f), f)
    return total


def _about_origin(R: Array, o: Array, w: Array) -> Array:
    """Return a wrench at a point, (6,), as one about the world's origin, world axes."""
    f = R @ w[3:]
    return join(R @ w[:3] + cross(o, f), f)


def free_parts(robot: Robot) -> tuple[FreePart, ...]:
    """Return the parts of a robot that only contacts and forces connect to the world.

    Robots with armature, friction or springs of their base are not among them: these act from the world.

    Args:
        robot: The robot.
    """
    bodies, parts = robot.bodies, list[FreePart]()
    carried = {j.v.start: j for j in robot.joints if isinstance(j.definition, Free | Planar)}
    is_fixed = isinstance(robot.base, FixedBase)
    roots: list[tuple[int, ...]] = [] if is_fixed else [(0,)]
    for first in (bodies[k] for k in robot.children[0] if is_fixed and bodies[k].v.start in carried):
        joint, carriers = carried[first.v.start], [first.index]
        while bodies[carriers[-1]].v.stop < joint.v.stop:
            carriers.append(robot.children[carriers[-1]][0])
        roots.append(tuple(carriers))
    for carriers in roots:
        own = {carriers[-1]: None}  # in order
        for body in bodies:
            if body.parent in own:
                own[body.index] = None
        physics = [bodies[k] for k in carriers]
        if not any(b.has_friction or b.has_springs or _is_heavy(b.physics.armature) for b in physics):
            v = slice(bodies[carriers[0]].v.start, bodies[carriers[-1]].v.stop)
            parts.append(FreePart(robot, carriers, tuple(own), v))
    return tuple(parts)


def _is_heavy(armature: Any) -> bool:
    return not all(is_zero(x) for x in np.ravel(armature))
