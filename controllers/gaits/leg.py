"""Closed-form inverse kinematics of legs with two links, in the plane and in space, and the legs of the paper's robots.

Angles are zero with the leg straight down and the foot level. Hip and knee turn about -y, so forward swing is positive;
abduction turns about +x. The formulas accept floats, arrays of floats, `Taylor` series and traced expressions. Numbers
are checked for reach; traced expressions are not, and a foot out of reach evaluates to NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.checked import checked
from legged.errors import DefinitionError, ReachError, ShapeError
from legged.spatial import is_zero
from legged.taylor import Taylor

KNEES = {"forward": 1, "backward": -1}


@checked
@dataclass(frozen=True)
class Leg:
    """Geometry of a leg with two links: an optional abduction joint, hip, knee and an optional ankle.

    Attributes:
        name: Name of the leg in support phases and error messages.
        hip: Position of the hip axes, (x, y, z), [m], base axes, from the base's origin.
        thigh, shank: Lengths of the two links, [m].
        knee: Direction of the bent knee: "forward" (as of humans) or "backward".
        abducts: Whether the first joint turns the leg about +x. Without it the leg stays in the vertical plane of its
            hip.
        offset: Distance from the abduction axis to the plane of the leg, [m], positive to the left.
        flat_foot: Whether a last joint, the ankle, keeps the foot level.
        sole: Height of the ankle over the sole, [m]; 0 for a point foot.
        signs: Sign of each joint, -1 where the robot's joint turns the other way; empty for all +1.
        columns: Indices of the joints among the robot's joint coordinates; empty for those that follow the previous
            leg's.
    """

    name: str
    hip: tuple[float, float, float]
    thigh: float
    shank: float
    knee: str = "forward"
    abducts: bool = False
    offset: float = 0.0
    flat_foot: bool = False
    sole: float = 0.0
    signs: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not (self.thigh > 0 and self.shank > 0):
            raise DefinitionError(
                f"leg {self.name!r} needs links of positive length, got {self.thigh} m and {self.shank} m"
            )
        _bend(self.knee)
        for what, given in (("signs", self.signs), ("columns", self.columns)):
            if given and len(given) != self.n_joints:
                raise DefinitionError(f"leg {self.name!r} has {self.n_joints} joints, but {len(given)} {what}")
        if set(self.signs) - {1, -1}:
            raise DefinitionError(f"the signs of leg {self.name!r} must be 1 or -1, got {self.signs}")
        if self.offset and not self.abducts:
            raise DefinitionError(f"leg {self.name!r} has an offset but no abduction; put the offset into `hip`")

    @property
    def n_joints(self) -> int:
        """Number of joint coordinates: hip, knee, and abduction and ankle if the leg has them."""
        return 2 + self.abducts + self.flat_foot

    @property
    def reach(self) -> float:
        """Largest distance from the hip to the ankle, [m]."""
        return self.thigh + self.shank

    def extension(self, knee: float) -> float:
        """Return the distance from hip to ankle, [m], at an angle of the knee, [rad], zero for a straight leg."""
        return float(np.sqrt(self.thigh**2 + self.shank**2 + 2.0 * self.thigh * self.shank * np.cos(knee)))

    @property
    def stance(self) -> tuple[float, float]:
        """Horizontal position of the foot with the leg straight down, (x, y), [m], base axes."""
        return self.hip[0], self.hip[1] + self.offset

    def angles(self, foot: Any) -> list[Any]:
        """Return the joint angles, [rad], that put the sole at `foot`.

        Args:
            foot: Position of the middle of the sole, (3,), [m], axes of the level base, from the base's origin. A leg
                without abduction ignores y.

        Raises:
            ReachError: `foot` is out of the leg's reach (numbers only). ShapeError: It is not (3,).
        """
        if len(foot) != 3:
            raise ShapeError(f"the foot of leg {self.name!r} must be at (3,), [m], got {len(foot)} numbers")
        return self.hip_angles(foot[0] - self.hip[0], foot[1] - self.hip[1], self.hip[2] - foot[2])

    def hip_angles(self, forward: Any, left: Any, down: Any) -> list[Any]:
        """Return the joint angles, [rad], that put the sole at these distances from the hip, [m]; see `angles`."""
        down = down - self.sole
        angles = []
        if self.abducts:
            abduction, down = abduct(left, down, self.offset, self.name)
            angles.append(abduction)
        hip, knee = two_link_angles(forward, down, self.thigh, self.shank, self.knee, self.name)
        angles += [hip, knee]
        if self.flat_foot:
            angles.append(-(hip + knee))
        return [angle * sign for angle, sign in zip(angles, self.signs or (1,) * len(angles), strict=True)]

    def foot(self, angles: Any) -> np.ndarray:
        """Return the position of the sole, (3,), [m], base axes, at these joint angles: the inverse of `angles`.

        An abducted leg with an ankle tilts its foot sideways; the sole is still taken vertically below the ankle.
        """
        if len(angles) != self.n_joints:
            raise ShapeError(f"leg {self.name!r} has {self.n_joints} joints, got {len(angles)} angles")
        angles = [angle * sign for angle, sign in zip(angles, self.signs or (1,) * self.n_joints, strict=True)]
        abduction = angles.pop(0) if self.abducts else 0.0
        hip, knee = angles[:2]
        forward = self.thigh * np.sin(hip) + self.shank * np.sin(hip + knee)
        down = self.thigh * np.cos(hip) + self.shank * np.cos(hip + knee)
        c, s = np.cos(abduction), np.sin(abduction)
        left, down = self.offset * c + down * s, down * c - self.offset * s
        return np.array([self.hip[0] + forward, self.hip[1] + left, self.hip[2] - down - self.sole])


@dataclass(frozen=True)
class FittedLeg:
    """The geometry that gaits need of a leg without closed-form inverse kinematics, found by `NumericalGait`.

    Attributes:
        name: As in `legs_of`.
        hip: Horizontal position of the sole in the standing posture and height of the hip, (x, y, z), [m], base axes.
        reach: Largest distance from the hip to the sole, [m].
        columns: Indices of the joints among the robot's joint coordinates.
        flat_foot: Whether several contact points keep the foot level.
    """

    name: str
    hip: tuple[float, float, float]
    reach: float
    columns: tuple[int, ...]
    flat_foot: bool
    offset: float = 0.0
    sole: float = 0.0

    @property
    def stance(self) -> tuple[float, float]:
        """Horizontal position of the sole in the standing posture, (x, y), [m], base axes."""
        return self.hip[0], self.hip[1]


def two_link_angles(
    forward: Any, down: Any, thigh: float, shank: float, knee: str = "forward", name: str = "leg"
) -> tuple[Any, Any]:
    """Return (hip, knee), the joint angles of a planar leg with two links, [rad].

        L^2 = forward^2 + down^2,   cos alpha = (L^2 - a^2 - b^2) / (2 a b)
        hip = atan2(forward, down) + atan2(b sin alpha, a + b cos alpha),   knee = -alpha

    for links of lengths a and b. For equal lengths the second term is alpha / 2. With the knee backward, alpha is
    negative.

    Args:
        forward, down: Position of the ankle from the hip, [m], ahead and below.
        thigh, shank: Lengths a and b, [m].
        knee: "forward" (as of humans) or "backward".
        name: Name of the leg in the error message.

    Raises:
        ReachError: The distance of the ankle is a + b or more, or |a - b| or less. At these limits the leg is straight
            or folded, and joint rates are unbounded (numbers only).

    Source:
        Law of cosines; Shah, Saha, Dutt 2012, section 5.1.1 mentions this inverse kinematics without formulas.
    """
    square = forward * forward + down * down
    cosine = (square - (thigh**2 + shank**2)) / (2 * thigh * shank)
    _check_reach(name, square, cosine, thigh, shank)
    alpha = _bend(knee) * np.arccos(cosine)
    lead = alpha / 2 if is_zero(thigh - shank) else np.arctan2(shank * np.sin(alpha), thigh + shank * np.cos(alpha))
    return np.arctan2(forward, down) + lead, -alpha


def abduct(left: Any, down: Any, offset: float = 0.0, name: str = "leg") -> tuple[Any, Any]:
    """Return (abduction angle about +x [rad], distance [m] from the hip along the abducted leg plane) of a foot.

    With offset d the foot is at R_x(angle) (forward, d, -distance), so distance^2 = left^2 + down^2 - d^2.

    Args:
        left, down: Position of the foot from the abduction axis, [m], to the left and below.
        offset: d, [m].
        name: Name of the leg in the error message.

    Raises:
        ReachError: The foot is nearer to the abduction axis than the offset (numbers only).
    """
    if offset == 0.0 and isinstance(left, float) and left == 0.0:
        return 0.0, down  # no operations for a leg that stays in its plane
    if offset == 0.0:
        return np.arctan2(left, down), np.sqrt(left * left + down * down)
    square = left * left + down * down - offset**2
    plain = _plain(square)
    if plain is not None and not (plain > 0).all():
        near = float(np.sqrt(plain.min() + offset**2))
        raise ReachError(
            f"leg {name!r} cannot reach a foot {near:.6g} m from its abduction axis: its offset is {abs(offset)} m"
        )
    distance = np.sqrt(square)
    return np.arctan2(left, down) - np.arctan2(offset, distance), distance


def _bend(knee: str) -> int:
    if knee not in KNEES:
        raise DefinitionError(f"knee must be 'forward' or 'backward', got {knee!r}")
    return KNEES[knee]


def _plain(x: Any) -> np.ndarray | None:
    """Return the value of a number, an array of numbers or a `Taylor` series of them; None for traced expressions."""
    x = x.value if isinstance(x, Taylor) else x
    return np.asarray(x, dtype=float) if isinstance(x, (int, float, np.number, np.ndarray)) else None


def _check_reach(name: str, square: Any, cosine: Any, thigh: float, shank: float) -> None:
    plain, cosine = _plain(square), _plain(cosine)
    if plain is None or cosine is None:
        return
    if not (np.abs(cosine) < 1).all():
        worst = np.argmax(np.nan_to_num(np.abs(cosine), nan=np.inf))
        distance = float(np.sqrt(plain.ravel()[worst]))
        shortest, longest = abs(thigh - shank), thigh + shank
        raise ReachError(
            f"leg {name!r} cannot reach {distance:.6g} m from its hip: with links of {thigh} m and {shank} m the "
            f"distance must be between {shortest:.6g} m and {longest:.6g} m",
            distance=distance,
            shortest=shortest,
            longest=longest,
        )


# Legs of the robots in the demonstrations of Shah, Saha, Dutt 2012, section 5; hip positions from the authors' models.


def paper_biped() -> tuple[Leg, ...]:
    """Return the legs of the planar biped: hips 0.25 m below the trunk's center of mass, flat feet."""
    return tuple(Leg(name, (0.0, 0.0, -0.25), thigh=0.5, shank=0.5, flat_foot=True) for name in ("a", "b"))


def paper_quadruped() -> tuple[Leg, ...]:
    """Return the legs of the spatial quadruped: rear right, rear left, front right, front left, with abduction."""
    places = [(-0.5, -0.25), (-0.5, 0.25), (0.5, -0.25), (0.5, 0.25)]
    return tuple(Leg(f"leg{i + 1}", (x, y, 0.0), 0.3, 0.3, abducts=True) for i, (x, y) in enumerate(places))


def paper_hexapod() -> tuple[Leg, ...]:
    """Return the legs of the hexapod, from the rear to the front, right before left."""
    places = [(x, y) for x in (-0.6, 0.0, 0.6) for y in (-0.25, 0.25)]
    return tuple(Leg(f"leg{i + 1}", (x, y, 0.0), 0.3, 0.3) for i, (x, y) in enumerate(places))
