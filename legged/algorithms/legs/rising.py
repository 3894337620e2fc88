"""Arms, and the postures in which a robot with two legs and two arms rises from its front to a squat."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from legged.algorithms.legs.posture_search import inner_limits
from legged.algorithms.legs.standing import Home
from legged.checked import checked
from legged.compiler import compile
from legged.dynamics.kinematics import center_of_mass, link_poses, point_positions
from legged.errors import DefinitionError
from legged.robot.robot import Robot
from legged.spatial import Array

# Places of the hands, from the shoulders forward, outward and up, [arm length], base axes; and rotations of hip, knee
# and ankle in the directions in which they bend in the standing posture, [rad], as far as their ranges allow:
_BENT = 9.0  # [rad], beyond every range: the joint bends to its limit
_RISING = (
    ((-0.1, 0.9, 0.1), (0.0, 0.3, _BENT)),  # arms sideways, out of the way of the trunk
    ((0.5, 0.4, 0.83), (0.0, 0.3, _BENT)),  # arms up, which is ahead on the ground
    ((0.39, 0.4, -0.1), (0.0, 0.3, _BENT)),  # hands beside the shoulders
    ((0.92, 0.4, -0.23), (0.0, 0.2, _BENT)),  # trunk pushed up, on knees and hands
    ((0.9, 0.4, -0.03), (2.3, 2.3, _BENT)),  # knees under the hips
    ((0.74, 0.2, -0.53), (_BENT, _BENT, _BENT)),  # hips over the heels; see `_HEELS`
)
_ORDER = ((5, None), (4, 5), (3, 4), (1, 4), (2, 3), (0, None))
"""Order of the inverse kinematics: a posture, and the one near which its arms are, None for the standing posture."""
# The same for the upper and the lower side of a robot that turns from its back onto a side, and then to its front:
_ONTO = (((-0.95, 0.1, 0.1), (0.9, 1.8, 0.0)), ((0.0, 0.1, -0.97), (0.0, 0.1, 0.0)))
_FROM = (((0.95, 0.1, 0.0), (2.2, 2.2, 0.0)), ((0.8, 0.3, 0.0), (0.0, 0.1, 0.0)))
_SQUAT = (0.94, 0.2, -0.07)  # place of the hands in the squat, as in `_RISING`
_SQUAT_PITCHES = (0.75, 0.5, 0.25)  # [rad], candidates of the forward inclination of the trunk
_SQUAT_LEAST, _SQUAT_MOST = 0.36, 0.7  # [of that of standing], heights of the base
_SQUAT_LOW, _ANKLE = 0.48, 0.7  # the same, [rad], highest squat and least range of the ankles to rise from the heels
# Center of mass from heels to toes, [sole length], height of the hands and distance ahead of the toes, [leg length],
# NaN for free arms, and inclination of the trunk, [rad], NaN for free, of a robot that rises over its hands and soles:
_OVER_HANDS = (
    (0.8, 0.0, 0.9, np.nan),
    (0.7, 0.05, 0.4, np.nan),
    (0.6, np.nan, np.nan, 1.2),
    (0.55, np.nan, np.nan, 0.8),
)
_OUTWARD, _PARALLEL = 0.2, 0.1  # [leg length], of the hands from the shoulders; weight of the directions of the soles
_FORWARD = (-1.0, 3.0)  # [rad], range of the inclination of the trunk
_SQUAT_BEHIND = 0.15  # [foot length] of the center of mass behind the toes
_HEELS = 1.2  # [rad], angle of the knee less that of the hip of a robot on its heels
_FARTHEST = (2.5, 2.85, 0.9)  # [rad], largest rotations of hip, knee and ankle, also of joints with a wider range
_ARM = 0.6  # [leg length], least length of an arm
_PUSH = 0.07  # [m g arm length], least torque of the shoulder and the elbow
_STRONG = 4  # number of joints, from the shoulder on, that need this torque
_HEAVY = 0.004  # least share of the mass of the robot in the last link of a limb
_ERROR = 0.5  # largest norm of the errors of a squat, ten times distances over the length of the legs
_REST = 0.03  # [1/rad], weight of distances from the initial posture beside the dimensionless errors

_Side = tuple[tuple[float, float, float], tuple[float, float, float]]  # place of the hand, and rotations of the leg


class Arm(NamedTuple):
    """An arm.

    Attributes:
        columns: Indices of its joints among the robot's joint coordinates, from the shoulder on.
        shoulder, hand: Indices of its first and last link.
        end: End of the hand, (3,), [m], axes of the last link.
        length: Sum of the distances between the joints and the end of the hand, [m].
    """

    columns: tuple[int, ...]
    shoulder: int
    hand: int
    end: Array
    length: float


class Rising(NamedTuple):
    """Postures that rise from the front, and points of the feet.

    Attributes:
        postures: Joint positions, (7, nj), [rad] or [m], in the order of the motion; the last is the squat.
        over_hands: Joint positions, (4, nj), that follow the fifth of them if the legs bend too little: hands and soles
            on the ground, hands lifted, and two with a trunk that rises; None otherwise.
        turns: Joint positions, (4, nj), that turn a robot on its back onto its right and its left side, and from its
            right and its left side to its front.
        ankles: Directions in which the ankles bend in the standing posture, (nj,), 1 or -1; 0 for other joints.
        toes, heels: Foremost and rearmost points of the two soles, (link, position (3,), [m], link axes).
    """

    postures: Array
    over_hands: Array | None
    turns: Array
    ankles: Array
    toes: list[tuple[int, Array]]
    heels: list[tuple[int, Array]]


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
        arms.append(Arm(tuple(column for column, _ in own), own[0][1], hand, end, length))
    return arms[0], arms[1]


@checked
def rising_postures(robot: Robot, home: Home) -> Rising:
    """Return the postures in which a robot rises from its front.

    The arms go sideways, up, and beside the shoulders; they push the trunk up; the knees are drawn under the hips, the
    toes on the ground; the hips move back over the heels; and the soles are on the ground in a squat, with the center
    of mass over them. A robot whose lowest squat has more than 0.48 of its standing height, or whose ankles bend by
    less than 0.7 rad, spreads its legs instead until hands and soles are on the ground, and raises its trunk. Its arms
    are to be at least 0.6 of the length of the legs, and to push with 0.07 of the weight.

    Args:
        robot: The robot. home: Its standing posture.

    Raises:
        DefinitionError: The robot has other than two legs with three pitch joints each, feet with fewer than three
            contact points, no two arms of three joints or more, short or weak ones, or no squat of at most 0.7 of its
            standing height within the limits of its joints.
    """
    legs = home.legs
    if len(legs) != 2 or any(len(leg.pitch_columns) != 3 for leg in legs):
        raise DefinitionError(f"robot {robot.name!r} has no two legs with pitch joints at hip, knee and ankle")
    if any(len(leg.contacts) < 3 for leg in legs):
        raise DefinitionError(f"robot {robot.name!r} has feet with fewer than three contact points, no soles")
    arms = arms_of(robot, home)
    length = float(np.mean([leg.length for leg in legs]))
    least = _PUSH * robot.mass * float(np.linalg.norm(robot.gravity)) * arms[0].length
    efforts = np.full(robot.nv, np.inf)
    for joint in robot.joints:
        efforts[joint.v] = joint.definition.physics.effort
    weakest = min(efforts[robot.base.nv + column] for arm in arms for column in arm.columns[:_STRONG])
    if len(arms[0].columns) < 3:
        raise DefinitionError(
            f"robot {robot.name!r} has arms with {len(arms[0].columns)} joints; at least 3 are needed"
        )
    if arms[0].length < _ARM * length:
        raise DefinitionError(
            f"robot {robot.name!r} has arms of {arms[0].length:.3g} m; at least {_ARM * length:.3g} m, {_ARM:g} of the "
            f"length of its legs, are needed"
        )
    if weakest < least:
        raise DefinitionError(
            f"robot {robot.name!r} has arms that are too weak to push it up: a joint has {weakest:.3g} N m, less than "
            f"{least:.3g} N m"
        )
    search = _RisingSearch(robot, home, arms)
    postures = [search.rest] * (len(_RISING) + 1)
    for k, near in _ORDER:
        postures[k] = search.posture(_RISING[k], _RISING[k], None if near is None else postures[near])
    squatting = _SQUAT, (_FARTHEST[0], _BENT, _BENT)
    postures[-1], height = search.squat(search.posture(squatting, squatting, postures[4]))
    from_heels = height < _SQUAT_LOW and search.ankles >= _ANKLE
    over_hands = None if from_heels else search.over_hands()
    turns = [search.posture(*order) for upper, lower in (_ONTO, _FROM) for order in ((upper, lower), (lower, upper))]
    ankles = np.zeros(robot.nj)
    ankles[search.pitch[:, 2]] = search.signs[:, 2]
    return Rising(np.array(postures), over_hands, np.array(turns), ankles, search.toes, search.heels)


class _RisingSearch:
    """Inverse kinematics of these postures."""

    def __init__(self, robot: Robot, home: Home, arms: tuple[Arm, Arm]):
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
        ankles = self.pitch[:, 2]
        self.ankles = float(np.where(self.signs[:, 2] > 0.0, self.upper[ankles], -self.lower[ankles]).min())
        # The inclination of the trunk is a further variable after the joint positions in `over_hands`.
        self.lower, self.upper = np.append(self.lower, _FORWARD[0]), np.append(self.upper, _FORWARD[1])
        hands = [point for arm in arms for point in ((arm.shoulder, np.zeros(3)), (arm.hand, arm.end))]
        soles = [(c.link, c.position) for own in contacts for c in own]
        points = [*hands, *self.toes, *self.heels, *soles]

        def places(angles: Array) -> tuple[Array, Array]:
            q = np.concatenate([robot.base.neutral(), angles])
            return point_positions(robot, q, points), center_of_mass(robot, q)

        self.places = compile(places, None, angles=(robot.nj,))

    def posture(self, left: _Side, right: _Side, near: Array | None = None) -> Array:
        """Return joint positions, (nj,), [rad] or [m].

        Args:
            left, right: Place of the hand and rotations of the leg of each side, as in `_RISING`.
            near: Initial positions of the arms, (nj,); None for those of the standing posture.
        """
        angles = self.rest.copy()
        bends = np.array([(left if leg.hip[1] > 0.0 else right)[1] for leg in self.home.legs])
        angles[self.pitch] = np.clip(self.signs * bends, self.lower[self.pitch], self.upper[self.pitch])
        folded = bends[:, 0] >= _BENT
        hips, knees = self.pitch[folded, 0], self.pitch[folded, 1]
        angles[hips] = self.signs[folded, 0] * np.minimum(np.abs(angles[hips]), np.abs(angles[knees]) - _HEELS)
        columns = np.array([column for arm in self.arms for column in arm.columns])
        targets = np.array([left[0], right[0]]) * [[1.0, 1.0, 1.0], [1.0, -1.0, 1.0]]

        def errors(angles: Array) -> Array:
            points, _ = self.places(angles)
            return 3.0 * ((points[[1, 3]] - points[[0, 2]]) / self.arms[0].length - targets).ravel()

        return self._least(errors, angles, columns, near)

    def over_hands(self) -> Array:
        """Return joint positions, (4, nj), from hands and soles on the ground to a raised trunk, `_OVER_HANDS`.

        The legs spread as far as level soles at this inclination of the trunk require.
        """
        leg_columns = [column for leg in self.home.legs for column in leg.columns]
        arm_columns = [column for arm in self.arms for column in arm.columns]
        standing = self.places(self.rest)[0]
        level = standing[8:, 2] - standing[4:8, 2].mean()
        sole = float(np.mean((standing[4:6] - standing[6:8])[:, 0]))
        bent = (0.9, 0.2, -0.2), (1.8, 0.3, 0.3)
        angles, postures = np.append(self.posture(bent, bent), 1.3), []
        for share, lift, distance, pitch in _OVER_HANDS:

            def errors(
                x: Array, share: float = share, lift: float = lift, distance: float = distance, pitch: float = pitch
            ) -> Array:
                points, mass = self.places(x[:-1])
                up = np.array([-np.sin(x[-1]), 0.0, np.cos(x[-1])])
                ahead = np.array([np.cos(x[-1]), 0.0, np.sin(x[-1])])
                toes, heels, hands = points[4:6], points[6:8], points[[1, 3]]
                ground = (points[4:8] @ up).mean()
                turned = _PARALLEL * np.array([*((toes - heels) @ ahead - sole), *(toes - heels)[:, 1]])
                over = (mass - heels.mean(axis=0)) @ ahead - share * sole
                lengths = [*(points[8:] @ up - level - ground), *turned, over, (toes[0] - toes[1]) @ ahead]
                if np.isnan(lift):
                    return np.array([*(10.0 / self.length * np.array(lengths)), 3.0 * (x[-1] - pitch)])
                lengths += [*(hands @ up - ground - lift * self.length)]
                lengths += [*((hands - toes.mean(axis=0)) @ ahead - distance * self.length)]
                beside = ((hands - points[[0, 2]])[:, 1] * [1.0, -1.0]) / self.length - _OUTWARD
                return np.array([*(10.0 / self.length * np.array(lengths)), *beside])

            columns = np.array(leg_columns + ([] if np.isnan(lift) else arm_columns) + [self.robot.nj])
            angles = self._least(errors, angles, columns, None)
            postures.append(angles[:-1])
        return np.array(postures)

    def squat(self, angles: Array) -> tuple[Array, float]:
        """Return joint positions, (nj,), with level soles, the center of mass over them, and an inclined trunk.

        Of several inclinations it is the one of the lowest squat above a least height. The height of the base, relative
        to that of the standing posture, is returned, too.

        Args:
            angles: Initial joint positions, (nj,).
        """
        upright = self.places(self.rest)[0][4:8, 2]
        best: tuple[float, Array] | None = None
        for pitch in _SQUAT_PITCHES:
            up = np.array([-np.sin(pitch), 0.0, np.cos(pitch)])
            ahead = np.array([np.cos(pitch), 0.0, np.sin(pitch)])

            def errors(angles: Array, up: Array = up, ahead: Array = ahead) -> Array:
                points, mass = self.places(angles)
                toes, heels = points[4:6], points[6:8]
                heights = points[4:8] @ up - upright
                behind = (toes - mass).mean(axis=0) @ ahead - _SQUAT_BEHIND * (toes - heels).mean(axis=0) @ ahead
                apart = (toes[0] - toes[1]) @ ahead
                return 10.0 / self.length * np.array([*(heights - heights[2:].mean()), behind, apart])

            found = self._least(errors, angles, self.pitch.ravel(), None)
            share = float(np.mean(self.places(found)[0][4:8] @ up) / np.mean(upright))
            if np.linalg.norm(errors(found)) < _ERROR and share > _SQUAT_LEAST and (best is None or share < best[0]):
                best = share, found
        if best is None:
            raise DefinitionError(f"robot {self.robot.name!r} cannot squat within the limits of its joints")
        if best[0] > _SQUAT_MOST:
            raise DefinitionError(
                f"robot {self.robot.name!r} has a lowest squat of {best[0]:.2g} of its standing height within the "
                f"limits of its joints, more than {_SQUAT_MOST:g}"
            )
        return best[1], best[0]

    def _least(self, errors: Callable[[Array], Array], rest: Array, columns: Array, near: Array | None) -> Array:
        """Return joint positions, (nj,), with the least errors and small distances from rest.

        Args:
            errors: Function of joint positions, (nj,), (k,), relative to lengths. rest: (nj,).
            columns: Joints that move. near: Initial joint positions, (nj,); None for `rest`.
        """
        from scipy.optimize import least_squares  # imported here: importing it takes as long as all other imports

        free = columns[self.upper[columns] > self.lower[columns]]

        def with_free(values: Array) -> Array:
            angles = rest.copy()
            angles[free] = values
            return angles

        def residuals(values: Array) -> Array:
            return np.concatenate([errors(with_free(values)), _REST * (values - rest[free])])

        lower, upper = self.lower[free], self.upper[free]
        start = np.clip((rest if near is None else near)[free], lower + 1e-6, upper - 1e-6)
        return with_free(least_squares(residuals, start, bounds=(lower, upper)).x)
