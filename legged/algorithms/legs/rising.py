"""Arms, and the postures in which a robot with two legs and two arms rises from its front to a squat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from legged.algorithms.legs.posture_search import inner_limits
from legged.algorithms.legs.standing import Home
from legged.checked import checked
from legged.compiler import compile, jacobian
from legged.dynamics.kinematics import center_of_mass, link_poses, momentum, point_motion, point_positions
from legged.errors import DefinitionError
from legged.robot.robot import Robot
from legged.spatial import Array

BENT = 9.0  # [rad], beyond every range: the joint bends to its limit
# Places of the hands, from the shoulders forward, outward and up, [arm length], base axes; and rotations of hip, knee
# and ankle in the directions in which they bend in the standing posture, [rad], as far as their ranges allow:
NOMINAL = (
    ((-0.1, 0.9, 0.1), (0.0, 0.3, BENT)),  # arms sideways, out of the way of the trunk
    ((0.5, 0.4, 0.83), (0.0, 0.3, BENT)),  # arms up, which is ahead on the ground
    ((0.39, 0.4, -0.1), (0.0, 0.3, BENT)),  # hands beside the shoulders
    ((0.92, 0.4, -0.23), (0.2, 0.4, BENT)),  # trunk pushed up, on knees and hands
    ((0.9, 0.4, -0.03), (2.3, 2.3, BENT)),  # knees under the hips
    ((0.74, 0.2, -0.53), (1.6, BENT, BENT)),  # hips over the heels
    ((0.9, 0.2, -0.2), (1.8, 0.3, 0.3)),  # hands and soles on the ground
    ((0.94, 0.2, -0.07), (2.5, BENT, BENT)),  # squat
)
"""Postures of a robot that rises from its front, of which `RisingPostures` has joint positions."""
_ORDER = ((5, None), (4, 5), (3, 4), (1, 4), (2, 3), (0, None), (6, None), (7, 4))
"""Order of the inverse kinematics: a posture, and the one near which its arms are, None for the standing posture."""
_OUTWARD, _PARALLEL = 0.2, 0.1  # [leg length], of the hands from the shoulders; weight of the directions of the soles
_FORWARD = (-1.0, 3.0)  # [rad], range of the inclination of the trunk
_FARTHEST = (2.5, 2.85, 0.9)  # [rad], largest rotations of hip, knee and ankle, also of joints with a wider range
_HEAVY = 0.004  # least share of the mass of the robot in the last link of a limb
_REST = 0.03  # [1/rad], weight of distances from the initial posture beside the dimensionless errors
_TOLERANCE = 1e-4  # relative, of the least squares
_ANKLES, _MOST = 0.5, 0.25  # [rad], rotation of the ankles per error of the capture point over h, and the largest one
PLACE = 0.6  # of the capture point from the heels, 0, to the toes, 1, where it is best


class Arm(NamedTuple):
    """An arm.

    Attributes:
        columns: Indices of its joints among the robot's joint coordinates, from the shoulder on.
        shoulder, hand: Indices of its first and last link.
        end: End of the hand, (3,), [m], axes of the last link.
        length: Sum of the distances between the joints and the end of the hand, [m].
        place: Origin of the first link in the standing posture, (3,), [m], base axes.
    """

    columns: tuple[int, ...]
    shoulder: int
    hand: int
    end: Array
    length: float
    place: Array


def limb_ends(robot: Robot) -> dict[int, Array]:
    """Return the ends of links without children that have no contact points, by link, (3,), [m], link axes.

    Links with less than 0.004 of the mass of the robot, such as fingers and bearings, do not count. The end is twice as
    far from the origin of the link as the center of mass of all links of its body, as in a uniform rod.

    Args:
        robot: The robot.
    """
    rotations, origins = link_poses(robot, robot.neutral())
    inner = {robot.link(joint.parent).body for joint in robot.joints}
    inner |= {robot.links[contact.link].body for contact in robot.contacts}
    ends = {}
    for joint in robot.joints:
        link = robot.link(joint.child)
        parts = [part for part in robot.links if part.body == link.body]
        mass = sum(part.inertia.mass for part in parts)
        if link.body not in inner and mass > _HEAVY * robot.mass:
            moments = [p.inertia.mass * (origins[p.index] + rotations[p.index] @ p.inertia.center) for p in parts]
            ends[link.index] = 2.0 * rotations[link.index].T @ (np.sum(moments, axis=0) / mass - origins[link.index])
    return ends


def arms_of(robot: Robot, home: Home) -> tuple[Arm, Arm]:
    """Return the left and the right arm: the chain of most joints on each side that move no foot, without the waist.

    Args:
        robot: The robot. home: Its standing posture.

    Raises:
        DefinitionError: The robot has no arm on one side.
    """
    rotations, origins = link_poses(robot, np.concatenate([robot.base.neutral(), home.angles]))
    in_legs = {column for leg in home.legs for column in (*leg.columns, *leg.toe_columns)}
    children = {robot.link(joint.child).body: joint for joint in robot.joints}
    chains = []
    for joint in robot.joints:
        link = robot.link(joint.child)
        path = [children[body] for body in robot.ancestors(link.body)[-2::-1] if body in children]
        moved = [
            (k - robot.base.nv, robot.link(each.child).index) for each in path for k in range(each.v.start, each.v.stop)
        ]
        columns = [column for column, _ in moved]
        mass = sum(part.inertia.mass for part in robot.links if part.body == link.body)
        if not in_legs & set(columns) and mass > _HEAVY * robot.mass:
            chains.append((columns, [index for _, index in moved], link.index))
    sides = []
    for sign in (1.0, -1.0):
        beside = [chain for chain in chains if sign * origins[chain[2], 1] > 0.1 * home.hip_height]
        if not beside:
            raise DefinitionError(f"robot {robot.name!r} has no arm on its {'left' if sign > 0.0 else 'right'}")
        sides.append(max(beside, key=lambda chain: len(chain[0])))
    waist = set(sides[0][0]) & set(sides[1][0])
    arms = []
    for columns, links, hand in sides:
        own = [(column, link) for column, link in zip(columns, links, strict=True) if column not in waist]
        end = limb_ends(robot).get(hand)
        end = 2.0 * robot.links[hand].inertia.center if end is None else end
        places = [*(origins[link] for _, link in own), origins[hand] + rotations[hand] @ end]
        length = float(np.sum(np.linalg.norm(np.diff(places, axis=0), axis=1)))
        arms.append(Arm(tuple(column for column, _ in own), own[0][1], hand, end, length, origins[own[0][1]]))
    return arms[0], arms[1]


@checked
class RisingPostures:
    """Postures in which a robot with two legs and two arms rises from its front.

    Attributes:
        nominal: Joint positions of `NOMINAL`, (8, nj), [rad] or [m].
        length: Mean length of the legs, [m].
        knee: Largest rotation of the knees, [rad].
        toes, heels: Foremost and rearmost points of the two soles, (link, position (3,), [m], link axes).

    Args:
        robot: The robot. home: Its standing posture.

    Raises:
        DefinitionError: The robot has other than two legs with three pitch joints each, feet with fewer than three
            contact points, or no two arms of three joints or more.
    """

    def __init__(self, robot: Robot, home: Home):
        legs = home.legs
        if len(legs) != 2 or any(len(leg.pitch_columns) != 3 for leg in legs):
            raise DefinitionError(
                f"robot {robot.name!r} does not have two legs with one pitch joint each at hip, knee and ankle"
            )
        if any(len(leg.contacts) < 3 for leg in legs):
            raise DefinitionError(
                f"robot {robot.name!r} has feet with fewer than three contact points, which are no soles"
            )
        arms = arms_of(robot, home)
        if len(arms[0].columns) < 3:
            raise DefinitionError(
                f"robot {robot.name!r} has arms with {len(arms[0].columns)} joints; at least 3 are needed"
            )
        self.robot, self.home, self.arms = robot, home, arms
        self.length = float(np.mean([leg.length for leg in home.legs]))
        self.lower, self.upper = (limit.copy() for limit in inner_limits(robot))
        self.rest = np.clip(home.angles, self.lower, self.upper)
        rotations, origins = link_poses(robot, np.concatenate([robot.base.neutral(), self.rest]))
        self.pitch = np.array([leg.pitch_columns for leg in home.legs])
        self.signs = np.where(home.angles[self.pitch] < 0.0, -1.0, 1.0)
        for columns in self.pitch:
            for column, most in zip(columns, _FARTHEST, strict=True):
                self.lower[column] = max(self.lower[column], -most)
                self.upper[column] = min(self.upper[column], most)
        contacts = [[robot.contact(name) for name in leg.contacts] for leg in home.legs]
        self.toes: list[tuple[int, Array]] = []
        self.heels: list[tuple[int, Array]] = []
        for own in contacts:
            x = np.array([(origins[c.link] + rotations[c.link] @ c.position)[0] for c in own])
            for ends, chosen in (
                (self.toes, x >= x.max() - 0.1 * np.ptp(x)),
                (self.heels, x <= x.min() + 0.1 * np.ptp(x)),
            ):
                chosen_contacts = [c for c, is_end in zip(own, chosen, strict=True) if is_end]
                ends.append((chosen_contacts[0].link, np.mean([c.position for c in chosen_contacts], axis=0)))
        self.ankles = np.zeros(robot.nj)
        self.ankles[self.pitch[:, 2]] = self.signs[:, 2]
        knees, positive = self.pitch[:, 1], self.signs[:, 1] > 0.0
        self.knee = float(np.where(positive, self.upper[knees], -self.lower[knees]).min())
        # The inclination of the trunk is a further variable after the joint positions in `over_soles`.
        self.lower, self.upper = np.append(self.lower, _FORWARD[0]), np.append(self.upper, _FORWARD[1])
        hands = [point for arm in arms for point in ((arm.shoulder, np.zeros(3)), (arm.hand, arm.end))]
        soles = [(c.link, c.position) for own in contacts for c in own]
        points = [*hands, *self.toes, *self.heels, *soles]

        def places(angles: Array) -> tuple[Array, Array]:
            q = np.concatenate([robot.base.neutral(), angles])
            return point_positions(robot, q, points), center_of_mass(robot, q)

        standing = places(self.rest)[0]
        level = standing[8:, 2] - standing[4:8, 2].mean()
        sole = float(np.mean((standing[4:6] - standing[6:8])[:, 0]))
        opposite = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 1.0]])

        def of_hands(x: Array, place: Array) -> Array:
            points, _ = places(x)
            return 3.0 * ((points[[1, 3]] - points[[0, 2]]) / arms[0].length - opposite * place).ravel()

        def over_soles(x: Array, aims: Array) -> tuple[Array, Array, Array]:
            points, mass = places(x[:-1])
            up = np.array([-np.sin(x[-1]), 0.0 * x[-1], np.cos(x[-1])])
            ahead = np.array([np.cos(x[-1]), 0.0 * x[-1], np.sin(x[-1])])
            toes, heels, ends = points[4:6], points[6:8], points[[1, 3]]
            ground = (points[4:8] @ up).mean()
            turned = _PARALLEL * np.array([*((toes - heels) @ ahead - sole), *(toes - heels)[:, 1]])
            over = (mass - heels.mean(axis=0)) @ ahead - aims[0] * sole
            soles = np.array([*(points[8:] @ up - level - ground), *turned, over, (toes[0] - toes[1]) @ ahead])
            hands = np.array([*(ends @ up - ground), *((ends - toes.mean(axis=0)) @ ahead)])
            beside = (ends - points[[0, 2]])[:, 1] * opposite[:, 1]
            return soles / self.length, hands / self.length, beside / self.length

        def on_soles(x: Array, aims: Array) -> Array:
            soles, _, _ = over_soles(x, aims)
            return np.array([*(10.0 * soles), 3.0 * (x[-1] - aims[1])])

        def on_hands(x: Array, aims: Array) -> Array:
            soles, hands, beside = over_soles(x, aims)
            return np.array([*(10.0 * soles), *(10.0 * (hands - np.repeat(aims[1:], 2))), *(beside - _OUTWARD)])

        self.of_hands = _with_jacobian(of_hands, robot.nj, 3)
        self.on_soles, self.on_hands = (
            _with_jacobian(on_soles, robot.nj + 1, 2),
            _with_jacobian(on_hands, robot.nj + 1, 3),
        )
        self.nominal = np.tile(self.rest, (len(NOMINAL), 1))
        for k, near in _ORDER:
            hand, bends = np.array(NOMINAL[k])
            self.nominal[k] = self.limbs(hand, bends, self.rest if near is None else self.nominal[near])

    def capture_place(self, q: Array, v: Array, unit: float) -> tuple[Any, Any]:
        """Return the place of the capture point from the heels, 0, to the toes, 1, and the length of the soles, [m].

        Args:
            q: Configuration, (nq,). v: Velocity, (nv,). unit: sqrt(h / g) with the height h of the center of mass, [s].
        """
        robot = self.robot
        places, _ = point_motion(robot, q, np.zeros(robot.nv), [*self.toes, *self.heels])
        ahead = 0.5 * (places[0] + places[1] - places[2] - places[3])[:2]
        capture = center_of_mass(robot, q) + unit / robot.mass * momentum(robot, q, v)[3:]
        square = ahead @ ahead + 1e-9
        return (capture - 0.5 * (places[2] + places[3]))[:2] @ ahead / square, np.sqrt(square)

    def balancing_rotations(self, q: Array, v: Array, unit: float) -> Array:
        """Return rotations of the ankles that move the center of pressure towards a capture point, (nj,), [rad].

        Arguments as in `capture_place`.
        """
        share, length = self.capture_place(q, v, unit)
        height = unit * unit * float(np.linalg.norm(self.robot.gravity))
        shift = _ANKLES * length / height * (share - PLACE)
        return -np.minimum(np.maximum(shift, -_MOST), _MOST) * self.ankles

    def limbs(self, hand: Array, bends: Array, near: Array) -> Array:
        """Return joint positions, (nj,), [rad] or [m].

        Args:
            hand, bends: Place of the hands and rotations of the legs, (3,) each, as in `NOMINAL`.
            near: Initial positions of the joints, (nj,), [rad] or [m], joint coordinates.
        """
        angles = self.rest.copy()
        angles[self.pitch] = np.clip(self.signs * bends, self.lower[self.pitch], self.upper[self.pitch])
        columns = np.array([column for arm in self.arms for column in arm.columns])
        return self._least(self.of_hands, hand, angles, columns, near)

    def over_soles(self, start: Array, share: float, pitch: float, hands: tuple[float, float] | None = None) -> Array:
        """Return joint positions, (nj,), [rad] or [m], with level soles at the same height.

        The legs spread as far as this requires.

        Args:
            start: Initial joint positions, (nj,), [rad] or [m].
            share: Place of the center of mass from heels, 0, to toes, 1.
            pitch: Inclination of the trunk, [rad]; with `hands` its initial value.
            hands: Height of the hands over the ground and distance ahead of the toes, [leg length]; None for arms at
                rest.
        """
        columns = [column for leg in self.home.legs for column in leg.columns] + [self.robot.nj]
        columns += [] if hands is None else [column for arm in self.arms for column in arm.columns]
        initial = np.append(start, pitch)
        if hands is None:
            return self._least(self.on_soles, np.array([share, pitch]), initial, np.array(columns), initial)[:-1]
        return self._least(self.on_hands, np.array([share, *hands]), initial, np.array(columns), initial)[:-1]

    def _least(self, errors: _Errors, aims: Array, rest: Array, columns: Array, near: Array) -> Array:
        """Return joint positions, (nj,), with the least errors and small distances from rest.

        Args:
            errors: Function of the variables, joint positions, (nj,), or with the inclination of the trunk, (nj + 1,),
                and of `aims`; it returns errors relative to lengths, (k,), and their Jacobian, (k, nj or nj + 1).
            aims: Desired places, as `errors` has them. rest: Variables, as these.
            columns: Variables that change. near: Initial values, as these.
        """
        from scipy.optimize import least_squares  # imported here: importing it takes as long as all other imports

        free = columns[self.upper[columns] > self.lower[columns]]
        regularization = _REST * np.eye(len(free))

        def with_free(values: Array) -> Array:
            angles = rest.copy()
            angles[free] = values
            return angles

        def residuals(values: Array) -> Array:
            return np.concatenate([errors(with_free(values), aims)[0], _REST * (values - rest[free])])

        def derivatives(values: Array) -> Array:
            return np.concatenate([errors(with_free(values), aims)[1][:, free], regularization])

        lower, upper = self.lower[free], self.upper[free]
        start = np.clip(near[free], lower + 1e-6, upper - 1e-6)
        tol = _TOLERANCE
        ends = lower, upper
        found = least_squares(residuals, start, derivatives, ends, xtol=tol, ftol=tol, gtol=tol)  # type: ignore[arg-type]
        return with_free(found.x)


_Errors = Callable[[Array, Array], tuple[Array, Array]]


def _with_jacobian(errors: Callable[[Array, Array], Array], variables: int, aims: int) -> _Errors:
    """Return the compiled function that returns errors and their Jacobian with respect to the variables."""

    def both(x: Array, aims: Array) -> tuple[Array, Array]:
        return errors(x, aims), jacobian(errors, "x", "forward")(x, aims)

    return compile(both, None, x=(variables,), aims=(aims,))
