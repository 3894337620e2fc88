"""`Scene`: robots, free bodies and a rigid ground, with a fixed list of places where they may touch.

By default the contact points of robots and the shapes of free bodies meet the terrain, and free bodies meet each other
and those links of robots that have shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from legged.algorithms.articulated import refuse_followers
from legged.compiler.ir.annotations import items
from legged.contact.contacts import Contacts
from legged.contact.free_body import FreeBody
from legged.contact.impact import Impact, impact
from legged.contact.listing import pairs_of
from legged.contact.pairs import Pair, Side
from legged.contact.rigid import Rigid
from legged.dynamics.kinematics import motion
from legged.robot.robot import Robot
from legged.spatial import Array, cross, join


class Candidate(NamedTuple):
    """A place where two things may touch.

    Attributes:
        name: For reports.
        first, second: Who; second is None for the terrain.
    """

    name: str
    first: Side
    second: Side | None


class Touches(NamedTuple):
    """All candidates at one moment.

    Attributes:
        gap: Distances, (m,), [m], negative where bodies overlap.
        frame: Rows n, t1, t2 of each contact frame, (m, 3, 3), world; n points from the second side to the first.
        point: Where impulses act, (m, 3), [m], world.
    """

    gap: Array
    frame: Array
    point: Array


@dataclass(frozen=True, eq=False)
class Scene:
    """What may touch what.

    Attributes:
        robots: The user's, then the free bodies as robots of one link.
        ground: The terrain and the law.
        pairs: What may touch, each with its touches; see `legged.contact.pairs`.
    """

    robots: tuple[Robot, ...]
    ground: Rigid
    pairs: tuple[Pair, ...]

    @classmethod
    def of(cls, robot: Robot, ground: Rigid, bodies: Sequence[FreeBody] = ()) -> Scene:
        """Return the scene of a robot and free bodies, under the robot's gravity.

        Raises:
            DefinitionError: for two things of one name, pairs that cannot touch, joints that follow others.
            UnknownNameError: for a pair of names that are not there.
        """
        refuse_followers(robot, "rigid contact")
        robots = (robot, *(body.robot(robot.gravity) for body in bodies))
        return cls(robots, ground, pairs_of(robots, ground.pairs))

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """All candidates, (m,), in the order of every array over contacts."""
        return tuple(Candidate(name, pair.first, pair.second) for pair in self.pairs for name in pair.names)

    def touches(self, qs: Sequence[Array]) -> Touches:
        """Return gaps, frames and points of the candidates.

        Args:
            qs: Configuration of each robot, (nq,).
        """
        poses = [motion(robot, q) for robot, q in zip(self.robots, qs, strict=True)]
        found = [touch for pair in items(self.pairs) for touch in pair.touch(poses, self.ground.terrain)]
        gap = np.array([touch.gap for touch in found])
        frame = np.array([touch.frame for touch in found]).reshape(-1, 3, 3)
        return Touches(gap, frame, np.array([touch.point for touch in found]).reshape(-1, 3))

    def impulses(
        self,
        qs: Sequence[Array],
        vs: Sequence[Array],
        v_free: Sequence[Array],
        extra: Sequence[Array],
        h: Any,
        touches: Touches,
        guess: Array,
    ) -> Impact:
        """Return the impulses of one step, and the velocities after it; see `impact`.

        Args:
            qs: Configuration of each robot, (nq,). vs: Velocities before the step, (nv,).
            v_free: Velocities after it without contacts, (nv,).
            extra: Added to the joints' own inertia, (nv,) of each robot; see `dynamics.forward.accelerations`.
            h: The step, [s].
            touches: At qs.
            guess: Impulses to start from, (m, 3), [N s], contact frames: those of the last step.

        Raises:
            DefinitionError: for robots with joints that follow others.
        """
        sides = [(candidate.first, candidate.second) for candidate in self.candidates]
        contacts = Contacts.of(self.robots, sides, qs, extra, touches.frame, touches.point)
        return impact(self.ground, contacts, vs, v_free, h, touches.gap, guess)

    def wrenches(self, qs: Sequence[Array], touches: Touches, forces: Array) -> list[Array]:
        """Return the wrenches of contact forces on the links of each robot, (n_links, 6), as controllers feel them.

        Args:
            qs: Configuration of each robot, (nq,). touches: At qs.
            forces: On the first sides, (m, 3), [N], contact frames.
        """
        poses = [motion(robot, q) for robot, q in zip(self.robots, qs, strict=True)]
        totals = [[np.zeros(6) for _ in robot.links] for robot in self.robots]
        for candidate, frame, point, force in zip(self.candidates, touches.frame, touches.point, forces, strict=True):
            for side, f in ((candidate.first, frame.T @ force), (candidate.second, -(frame.T @ force))):
                if side is not None:
                    link = self.robots[side.robot].links[side.link]
                    R = poses[side.robot].rotation[link.body] @ link.rotation
                    arm = R.T @ (point - side.point(poses, link.position))
                    own = R.T @ f
                    totals[side.robot][side.link] = totals[side.robot][side.link] + join(cross(arm, own), own)
        return [np.array(total) for total in totals]
