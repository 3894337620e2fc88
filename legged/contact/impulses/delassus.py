"""The Delassus operator A = J (I + diag(extra))^-1 J^T of the contacts of a scene, from the O(n) recursions.

Blocks come from the extended-force-propagator algorithm on the articulated-body inertias of the smooth dynamics, which
are computed once if both are traced together. Contacts between the same bodies form a group, also where their frames
differ, so that the groups do not depend on the configuration. Blocks of A are computed inside groups only; groups
interact through the twists and wrenches of their bodies, which have six numbers for any number of contacts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir import Expression, items
from legged.contact.detection.pairs import Side
from legged.contact.impulses.dense import DenseInertia, LoopRows, twist_jacobian
from legged.dynamics.forward import rotor_inertia, velocity_jump
from legged.dynamics.inertia import articulate, mass_matrices
from legged.dynamics.kinematics import Motion, motion
from legged.dynamics.modules import by_body, by_module, serial_chains
from legged.dynamics.propagators import inverse_inertia_blocks
from legged.robot.robot import Robot
from legged.spatial import Array, mirror, skew, sum_of

Sides = tuple[Side, Side | None]
BlockMatrix = list[list[Array | None]]
"""A matrix of blocks; None for a zero block."""
PortMap = tuple[int, Array]
"""Number of a port, and C, (3, n), from the port's twist to the contact's velocity."""
ALIGNED = 1e-9
"""Sine of the angle between the frames of two contacts up to which they count as equal."""


class ContactGroups(NamedTuple):
    """Groups of contacts between the same bodies, and their interaction through ports.

    A port is the part of a body's twist that a group depends on: all six components for several contacts, three for a
    single contact.

    Attributes:
        members: Numbers of the contacts of each group.
        maps: For each contact its ports, with C, (3, n), from the port's twist, (n,), to the contact's velocity.
        mobility: Twists of ports per wrench on ports, blocks (n, n'); None for zero blocks.
    """

    members: Sequence[Sequence[int]]
    maps: Sequence[Sequence[PortMap]]
    mobility: BlockMatrix

    def wrenches(self, p: Any, of: Sequence[int] | None = None) -> dict[int, Array]:
        """Return the wrenches, (n,), on the ports of the given contacts, or of all, for impulses p, (m, 3), [N s]."""
        terms: dict[int, list[Array]] = {}
        for i in range(len(self.maps)) if of is None else of:
            for port, C in self.maps[i] if self.maps else ():
                terms.setdefault(port, []).append(C.T @ p[i])
        return {port: sum_of(term) for port, term in terms.items()}

    def velocities(self, group: Sequence[int], u: Any, w: dict[int, Array]) -> list[Array]:
        """Return the velocities of a group's contacts, (3,), due to wrenches on the ports of other groups.

        Args:
            group: Numbers of its contacts. u: Velocities without these wrenches, (m, 3), [m/s], contact frames.
            w: Wrench on each port, (n,), [N s] and [N m s], contact axes.
        """
        if not self.maps:
            return [u[i] for i in group]
        own = [port for port, _ in self.maps[group[0]]]
        twists = {port: self._twist(port, w, own) for port in own}
        return [
            sum_of([u[i], *(C @ twists[port] for port, C in self.maps[i] if twists[port] is not None)]) for i in group
        ]

    def _twist(self, port: int, w: dict[int, Array], own: Sequence[int]) -> Array | None:
        """Return the twist of a port, (n,), due to wrenches on the ports of other groups.

        The term of the previous group, the last one updated, comes last.
        """
        row = self.mobility[port]
        order = (*range(port, len(row)), *range(port))
        terms = [block @ w[other] for other in order if other not in own and (block := row[other]) is not None]
        return sum_of(terms) if terms else None


class ContactBody(NamedTuple):
    """A body that carries a group of contacts.

    Attributes:
        robot, body: Number of the robot in the scene, and of the body in `robot.bodies`.
        T: From the body's twist, in its axes, to its twist about the same origin in the contact axes of the group,
            which are the frame of its first contact, (6, 6).
    """

    robot: int
    body: int
    T: Array


class ContactSide(NamedTuple):
    """One side of a contact: number of its `ContactBody`, and C, (3, 6), from that body's twist to the velocity."""

    contact_body: int
    C: Array


@dataclass(frozen=True, eq=False)
class Contacts:
    """The contacts of a scene at one moment.

    Attributes:
        robots: The robots of the scene. qs: Their configurations, (nq,).
        extra: Added to the diagonals of their inertia matrices, (nv,).
        poses: Poses of their bodies.
        bodies: Bodies with contacts, one entry for each group of contacts on them.
        sides: For each contact its sides, the second with the opposite sign; the terrain is no side.
        loops: Constraints of the closed loops of the first robot, or None.
    """

    robots: Sequence[Robot]
    qs: Sequence[Array]
    extra: Sequence[Array]
    poses: list[Motion]
    bodies: list[ContactBody]
    sides: list[list[ContactSide]]
    loops: LoopRows | None = None

    @classmethod
    def of(
        cls,
        robots: Sequence[Robot],
        sides: Sequence[Sides],
        qs: Sequence[Array],
        extra: Sequence[Array],
        frames: Array,
        points: Array,
        loops: LoopRows | None = None,
        surfaces: Sequence[int] | None = None,
    ) -> Contacts:
        """Return the contacts between given sides.

        Args:
            robots: The robots of the scene. sides: The two sides of each contact; the second is None for the terrain.
            qs: Configuration of each robot, (nq,), mixed units.
            extra: Added to the diagonal of the inertia matrix of each robot, (nv,).
            frames: Rows n, t1, t2 of each contact frame, (m, 3, 3), dimensionless, world axes.
            points: Contact points, (m, 3), [m], world axes.
            loops: Constraints of the closed loops of the first robot, or None.
            surfaces: For each contact a number of the fixed surface, the terrain or an obstacle, that is its second
                side, dimensionless; by default contacts without a second body are with one surface.
        """
        poses = [motion(robot, q) for robot, q in zip(robots, qs, strict=True)]
        bodies: dict[Any, ContactBody] = {}
        axes: dict[Any, Array] = {}
        sides_of_contacts: list[list[ContactSide]] = []
        for both, surface, frame, point in zip(sides, surfaces or [0] * len(sides), frames, points, strict=True):
            sides_of_contacts.append([])
            group = (*((side.robot, side.body) for side in both if side is not None), surface)
            own = axes.setdefault(group, frame)
            is_turned = list(map(_identity, frame.ravel())) != list(map(_identity, own.ravel()))
            for side, sign in zip(both, (1.0, -1.0), strict=True):
                if side is not None:
                    at, k = poses[side.robot], side.body
                    key = side.robot, k, group
                    if key not in bodies:
                        R = own @ at.rotation[k]
                        T = np.block([[R, np.zeros((3, 3))], [np.zeros((3, 3)), R]])
                        bodies[key] = ContactBody(side.robot, k, T)
                    r = own @ (point - at.origin[k])
                    C = sign * np.hstack([-skew(r), np.eye(3)])
                    C = frame @ own.T @ C if is_turned else C
                    sides_of_contacts[-1].append(ContactSide(list(bodies).index(key), C))
        return cls(robots, qs, extra, poses, list(bodies.values()), sides_of_contacts, loops)

    def with_inertia(self, added: Array) -> Contacts:
        """Return the contacts with an addition to the diagonal of the inertia matrix of the first robot.

        Args:
            added: (nv,), mixed units.
        """
        return replace(self, extra=[self.extra[0] + added, *self.extra[1:]])

    @cached_property
    def dense(self) -> list[DenseInertia | None]:
        """The inertia matrix of each robot with closed loops or coupled joints; None for other robots."""
        inertias: list[DenseInertia | None] = []
        for n, (robot, q, extra) in enumerate(zip(self.robots, self.qs, self.extra, strict=True)):
            loops = None if n else self.loops
            inertias.append(DenseInertia(robot, q, extra, loops) if loops is not None or robot.coupled_joints else None)
        return inertias

    def jacobian(self, robot: int, body: int, rows: Array) -> Array:
        """Return the Jacobian of components of the twist of a body, (k, nv), projected onto the closed loops.

        Args:
            robot, body: Numbers of the robot and of its body.
            rows: Selects components, (k, 6), dimensionless, body axes.
        """
        J, dense = twist_jacobian(self.robots[robot], self.qs[robot], body, rows), self.dense[robot]
        return J if dense is None else dense.projected(J)

    def velocities(self, vs: Sequence[Array]) -> Array:
        """Return the velocities of the contacts, (m, 3), [m/s], in their frames.

        Args:
            vs: Velocity of each robot, (nv,), mixed units.
        """
        twists = [motion(robot, q, v).twist for robot, q, v in zip(self.robots, self.qs, vs, strict=True)]
        in_contact_axes = [body.T @ twists[body.robot][body.body] for body in self.bodies]
        velocities = [
            sum_of(side.C @ in_contact_axes[side.contact_body] for side in sides) for sides in items(self.sides)
        ]
        return np.array(velocities).reshape(-1, 3)

    def places(self) -> Array:
        """Return the places of the contact points from the origin of a body along t1, t2 and n, (m, 3), [m].

        Those of contacts that are not `aligned` have no meaning.
        """
        maps = (sides[0].C for sides in self.sides)
        return np.array([[C[2, 0], C[0, 1], C[1, 2]] for C in maps]).reshape(-1, 3)

    def aligned(self) -> list[Any]:
        """Return whether the frame of each contact is that of the first one of its group, (m,), numbers or traced."""
        flags: list[Any] = []
        for (_, C), *_ in self.sides:
            flags.append(C[0, 4] * C[0, 4] + C[0, 5] * C[0, 5] + C[1, 5] * C[1, 5] <= ALIGNED * ALIGNED)
        return flags

    def delassus(self) -> tuple[BlockMatrix, ContactGroups]:
        """Return A = J (I + diag(extra))^-1 J^T, [1/kg], in two parts.

        The first part has the blocks (3, 3) between contacts of a group, None between others; the second part has the
        interaction between groups.
        """
        groups: dict[tuple[int, ...], list[int]] = {}
        for i, sides in enumerate(self.sides):
            groups.setdefault(tuple(body for body, _ in sides), []).append(i)
        ports, maps = self._ports(list(groups.values()))
        mobility = self._mobility(ports)
        m = len(self.sides)
        blocks: BlockMatrix = [[None] * m for _ in range(m)]
        for group in groups.values():
            _fill_group(blocks, group, maps, mobility)
        return blocks, ContactGroups(list(groups.values()), maps, mobility)

    def after(self, v_free: Sequence[Array], p: Array, joints: Array | None = None) -> list[Array]:
        """Return the velocity of each robot, (nv,), after the impulses p.

        Args:
            v_free: Velocity of each robot without impulses, (nv,), mixed units.
            p: Impulses on the first sides, (m, 3), [N s], contact frames.
            joints: Generalized impulses on the first robot, (nv,), mixed units, or None.
        """
        in_contact_axes: list[Any] = [0.0] * len(self.bodies)
        for sides, impulse in zip(self.sides, p, strict=True):
            for k, C in sides:
                in_contact_axes[k] = in_contact_axes[k] + C.T @ impulse
        wrenches: list[dict[int, Array]] = [{} for _ in self.robots]
        for (r, k, T), w in zip(self.bodies, in_contact_axes, strict=True):
            wrenches[r][k] = wrenches[r].get(k, 0.0) + T.T @ w
        given = [joints, *[None] * (len(v_free) - 1)]
        parts = enumerate(zip(v_free, wrenches, given, strict=True))
        return [v + self._jump(n, w, tau) if w or tau is not None else v for n, (v, w, tau) in parts]

    def _jump(self, n: int, wrenches: dict[int, Array], tau: Array | None) -> Array:
        """Return the velocity change of robot n, (nv,), by impulses on bodies, (6,), body axes, and joints, (nv,)."""
        dense = self.dense[n]
        if dense is None:
            return velocity_jump(self.robots[n], self.qs[n], wrenches, self.extra[n], tau)
        terms = [self.jacobian(n, k, np.eye(6)).T @ w for k, w in wrenches.items()]
        return dense.solve(sum_of(terms if tau is None else [*terms, dense.projected(tau[None])[0]]))

    def _ports(self, groups: list[list[int]]) -> tuple[list[tuple[int, int, Array]], list[list[PortMap]]]:
        """Return the ports, (robot, body, rows of the body's twist), and the ports of each contact.

        The port of a group of several contacts is the twist of a body; that of a single contact is the velocity of its
        point.
        """
        ports: list[tuple[int, int, Array]] = []
        maps: list[list[PortMap]] = [[] for _ in self.sides]
        for group in groups:
            for same_body in zip(*(self.sides[i] for i in group), strict=True):
                robot, body, T = self.bodies[same_body[0].contact_body]
                single = len(group) == 1
                for i, (_, C) in zip(group, same_body, strict=True):
                    maps[i].append((len(ports), np.eye(3) if single else C))
                ports.append((robot, body, same_body[0].C @ T if single else T))
        return ports, maps

    def _mobility(self, ports: list[tuple[int, int, Array]]) -> BlockMatrix:
        """Return the twists of ports per wrench on ports, blocks (n, n'); None between robots."""
        mobility: BlockMatrix = [[None] * len(ports) for _ in ports]
        for n, (robot, q, extra) in enumerate(zip(self.robots, self.qs, self.extra, strict=True)):
            own = [number for number, (r, *_) in enumerate(ports) if r == n]
            places = [ports[number][1:] for number in own]
            if own and self.dense[n] is not None:
                blocks = self._dense_mobility(n, places)
            else:
                blocks = _port_mobility(robot, q, extra, places) if own else []
            for i, a in enumerate(own):
                for j, b in enumerate(own[i:], i):
                    mobility[a][b] = blocks[i][j]
                    mobility[b][a] = blocks[i][j].T if i < j else blocks[i][i]
        return mobility

    def _dense_mobility(self, n: int, ports: Sequence[tuple[int, Array]]) -> list[list[Array]]:
        """Return the blocks between ports of a robot with closed loops or coupled joints; see `_port_mobility`."""
        dense = self.dense[n]
        assert dense is not None
        J = [self.jacobian(n, body, G) for body, G in ports]
        responses = [np.array([dense.solve(row) for row in rows]).T for rows in J]
        return [
            [mirror(rows @ response) if i == j else rows @ response for j, response in enumerate(responses)]
            for i, rows in enumerate(J)
        ]


def _fill_group(blocks: BlockMatrix, group: list[int], maps: list[list[PortMap]], mobility: BlockMatrix) -> None:
    """Set the blocks between the contacts of a group."""
    for at, j in items(enumerate(group)):
        response = {a: sum_of(M @ C.T for b, C in maps[j] if (M := mobility[a][b]) is not None) for a, _ in maps[j]}
        for i in group[: at + 1]:
            block = sum_of(C @ response[a] for a, C in maps[i])
            blocks[i][j] = mirror(block) if i == j else block
            blocks[j][i] = blocks[i][j].T  # type: ignore[union-attr]


def _port_mobility(robot: Robot, q: Array, extra: Array, ports: Sequence[tuple[int, Array]]) -> list[list[Array]]:
    """Return the blocks of G J (I + diag(extra))^-1 J^T G^T between ports, (n, n'), zeros below the diagonal.

    Args:
        robot: The robot. q: Configuration, (nq,). extra: Added to the diagonal of the inertia matrix, (nv,).
        ports: (body, G (n, 6)) each; G selects components of the body's twist in its axes.
    """
    chains = serial_chains(robot, q)
    rotors = by_module(robot, [rotor_inertia(body, extra) for body in robot.bodies])
    modules = articulate(chains, mass_matrices(robot), rotors)
    factors = by_body([module.factors for module in modules])
    Psi = [np.zeros((6, robot.base.nv)), *(f.Psi for f in factors[1:])]
    X, h = by_body([chain.A_k for chain in chains]), by_body([chain.p_k for chain in chains])
    return inverse_inertia_blocks(robot, X, h, [f.I_hat for f in factors], Psi, [(body, G.T) for body, G in ports])


def _identity(x: Any) -> Any:
    """Return a key that is equal for equal entries of frames: a number itself, a traced value by its identity."""
    return id(x) if isinstance(x, Expression) else float(x)
