"""One step's impulses: the problem of all contacts, solved for impact and for rest, over any element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from legged.contact.delassus import body_mobilities, turned
from legged.contact.rigid import Rigid
from legged.contact.solver import Blocks, Problem, residual, swept, velocities
from legged.dynamics.forward import velocity_jump
from legged.dynamics.kinematics import Motion, motion
from legged.robot.robot import Robot
from legged.spatial import Array, cross, join
from legged.trace.labels import stage
from legged.trace.where import where

RECOVERED = 0.2
"""Share of an overlap that a step makes good, up to the speed `Rigid.recovery`."""
_TINY = 1e-200  # keeps 0 / 0 away where nothing is shared


class Impact(NamedTuple):
    """What the contacts of a scene do in one step.

    Attributes:
        p: Impulses on the first sides, (m, 3), [N s], contact frames.
        v_next: Velocities of each robot after them, (nv,).
        residual: By how much the law is broken, [m/s]; see `legged.contact.solver.residual`.
    """

    p: Array
    v_next: list[Array]
    residual: Any


class Handle(NamedTuple):
    """One side of a contact: the robot and body that it is on, and G, (3, 6), its twist in the world to the contact."""

    robot: int
    body: int
    G: Array


@dataclass(frozen=True, eq=False)
class Contacts:
    """Contacts at one moment, with what robots make of impulses there.

    Attributes:
        robots: The scene's. qs: Their configurations. extra: Added to their joints' own inertia.
        poses: Where their bodies are.
        handles: For each contact its sides, the second with the opposite sign; none for the terrain.
    """

    robots: Sequence[Robot]
    qs: Sequence[Array]
    extra: Sequence[Array]
    poses: list[Motion]
    handles: list[list[Handle]]

    @classmethod
    def of(cls, robots: Sequence[Robot], candidates, qs, extra, frames: Array, points: Array) -> Contacts:
        """Return the contacts of candidates with given frames (m, 3, 3) and points (m, 3)."""
        poses = [motion(robot, q) for robot, q in zip(robots, qs, strict=True)]
        handles = []
        for candidate, frame, point in zip(candidates, frames, points, strict=True):
            sides = [(candidate.first, 1.0), (candidate.second, -1.0)]
            handles.append([_handle(poses, side, sign * frame, point) for side, sign in sides if side is not None])
        return cls(robots, qs, extra, poses, handles)

    def velocities(self, vs: Sequence[Array]) -> Array:
        """Return the contacts' velocities in their frames, (m, 3), [m/s], of robots that move by vs, (nv,) each."""
        twists = [motion(robot, q, v).twist for robot, q, v in zip(self.robots, self.qs, vs, strict=True)]
        found = []
        for sides in self.handles:
            parts = [G @ (turned(self.poses[r].rotation[k]) @ twists[r][k]) for r, k, G in sides]
            found.append(sum(parts[1:], parts[0]))
        return np.array(found).reshape(-1, 3)

    def inertia(self) -> Blocks:
        """Return A, (m, m) blocks (3, 3), [1/kg], None where two contacts share no robot."""
        felt = self._felt()
        m = len(self.handles)
        blocks: Blocks = [[None] * m for _ in range(m)]
        for i, sides in enumerate(self.handles):
            for j in range(i, m):
                parts = [
                    side.G @ felt[j][side.robot, side.body] for side in sides if (side.robot, side.body) in felt[j]
                ]
                if parts:
                    block = sum(parts[1:], parts[0])
                    blocks[i][j] = _mirrored(block) if i == j else block
                    blocks[j][i] = blocks[i][j].T  # type: ignore[union-attr]
        return blocks

    def after(self, v_free: Sequence[Array], p: Array) -> list[Array]:
        """Return the velocities of each robot with impulses p, (m, 3), on top of v_free."""
        wrenches: list[dict[int, Array]] = [{} for _ in self.robots]
        for sides, impulse in zip(self.handles, p, strict=True):
            for r, k, G in sides:
                w = turned(self.poses[r].rotation[k]).T @ (G.T @ impulse)
                wrenches[r][k] = wrenches[r][k] + w if k in wrenches[r] else w
        return [
            v + velocity_jump(robot, q, w, extra) if w else v
            for robot, q, extra, v, w in zip(self.robots, self.qs, self.extra, v_free, wrenches, strict=True)
        ]

    def _felt(self) -> list[dict[tuple[int, int], Array]]:
        """Return for each contact how bodies' twists jump per impulse there, (6, 3), by (robot, body)."""
        bodies: list[list[int]] = [
            sorted({k for sides in self.handles for r, k, _ in sides if r == n}) for n in range(len(self.robots))
        ]
        mobility = [
            body_mobilities(robot, q, at, extra, ks) if ks else {}
            for robot, q, at, extra, ks in zip(self.robots, self.qs, self.poses, self.extra, bodies, strict=True)
        ]
        felt = []
        for sides in self.handles:
            found: dict[tuple[int, int], Array] = {}
            for r, k, G in sides:
                for j in bodies[r]:
                    block = mobility[r][j, k] if j <= k else mobility[r][k, j].T
                    part = block @ G.T
                    found[r, j] = found[r, j] + part if (r, j) in found else part
            felt.append(found)
        return felt


def _handle(poses: list[Motion], side: Any, frame: Array, point: Array) -> Handle:
    arm = point - poses[side.robot].origin[side.body]
    return Handle(side.robot, side.body, np.array([join(cross(arm, d), d) for d in frame]))


def _mirrored(block: Array) -> Array:
    return np.array([[block[min(i, j), max(i, j)] for j in range(3)] for i in range(3)])


def impact(
    ground: Rigid, contacts: Contacts, vs: Sequence[Array], v_free: Sequence[Array], h: Any, gap: Array, guess: Array
) -> Impact:
    """Return the impulses with which a step of length h from vs, without contacts to v_free, ends lawfully.

    Args:
        ground: The law. contacts: Where and on whom.
        vs, v_free: Velocities of each robot before the step and after it without contacts, (nv,).
        h: The step, [s]. gap: Distances of the contacts, (m,), [m].
        guess: Impulses to start from, (m, 3), [N s].
    """
    if not len(gap):
        return Impact(np.zeros((0, 3)), list(v_free), 0.0)
    with stage("contact problem"):
        approach, free = -contacts.velocities(vs)[:, 0], contacts.velocities(v_free)
        problem = Problem(contacts.inertia(), free, ground.friction)
        rest = [_resting(ground, d, h) for d in gap]
    with stage("contact solver"):
        p, target = _solved(ground, problem, rest, approach, h, gap, guess)
    with stage("contact response"):
        return Impact(p, contacts.after(v_free, p), residual(problem, target, p))


def _solved(
    ground: Rigid, problem: Problem, rest: list[Any], approach: Array, h: Any, gap: Array, guess: Array
) -> tuple[Array, list[Any]]:
    """Return (impulses, the normal velocities that they aim at).

    Half of the sweeps go to the problem without restitution; with it the other half goes on from there.
    """
    if isinstance(ground.restitution, float) and ground.restitution == 0.0:
        return swept(problem, rest, guess, ground.sweeps), rest
    first = ground.sweeps - ground.sweeps // 2
    soft = swept(problem, rest, guess, first)
    target = []
    for velocity, d, u in zip(rest, gap, approach, strict=True):
        bounces = (d < h * u) & (u > ground.threshold)
        target.append(where(bounces, np.maximum(ground.restitution * u, velocity), velocity))
    hard = swept(problem, target, soft, ground.sweeps - first, first)
    return soft + _share(problem, soft, hard) * (hard - soft), target


def _share(problem: Problem, soft: Array, hard: Array) -> Any:
    """Return how far to go from the impulses without restitution to those with it, 0 to 1, so that no energy comes.

    Impulses p change the kinetic energy by p . (u_free + u) / 2, which those without restitution never raise, while
    Newton's law of restitution with friction may (Kane's paradox). Between the two every mean obeys the cones.
    """
    step, u = hard - soft, velocities(problem, soft)
    du = velocities(problem, hard) - u
    start = 0.5 * (soft * (problem.u_free + u)).sum()
    spare = np.maximum(-start, 0.0)
    a, b = (step * du).sum(), (step * u).sum()
    root = np.sqrt(b * b + 2.0 * a * spare)
    return where(b + 0.5 * a <= spare, 1.0, 2.0 * spare / (b + root + _TINY))


def _resting(ground: Rigid, gap: Any, h: Any) -> Any:
    """Return the normal velocity at which a contact neither sinks in nor bounces, [m/s]."""
    return where(gap > 0.0, -gap / h, np.minimum(-RECOVERED * gap / h, ground.recovery))
