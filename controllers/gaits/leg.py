"""Legs of two links in closed form: from a foot's place to joint angles, in the plane and in space.

Angles are zero with the leg straight down and the foot level; forward swing is positive (about -y), abduction turns
about +x. Formulas run over any element: floats, arrays of floats, `Taylor`, traced or not. Plain numbers are checked
for reach; while tracing there is no check, and a foot out of reach becomes NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.errors import DefinitionError, ReachError
from legged.taylor import Taylor

KNEES = {"forward": 1, "backward": -1}


@dataclass(frozen=True)
class Leg:
    """One leg of a robot: where it hangs and how long its links are.

    Attributes:
        name: What supports and errors call it.
        hip: From the base's origin to the hip axes, (x, y, z), [m], base axes.
        thigh, shank: Lengths of the two links, [m].
        knee: Where the knee points when bent: "forward" (human-like) or "backward".
        abducts: The first joint turns the leg about +x; without it the leg stays in the plane of its hip.
        offset: From the abduction axis to the plane of the leg, [m], to the left.
        flat_foot: A last joint holds the foot level; the leg then ends at the ankle.
        sole: Height of the ankle over the sole, or 0 for a point foot, [m].
        signs: +1 or -1 per joint, -1 where the robot's joint turns the other way; empty for all +1.
        columns: Places of the joints among the robot's joint coordinates; empty for "right after the leg before".
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
        if self.offset and not self.abducts:
            raise DefinitionError(f"leg {self.name!r} has an offset but no abduction; put the offset into `hip`")

    @property
    def n_joints(self) -> int:
        """Number of joint coordinates: abduction, hip, knee and ankle, as far as the leg has them."""
        return 2 + self.abducts + self.flat_foot

    @property
    def reach(self) -> float:
        """How far the ankle gets from the hip, [m]."""
        return self.thigh + self.shank

    @property
    def stance(self) -> tuple[float, float]:
        """The place of the foot, (x, y), [m], base axes, when the leg hangs straight down."""
        return self.hip[0], self.hip[1] + self.offset

    def angles(self, foot: Any) -> list[Any]:
        """Return the joint angles, [rad], that put the sole at `foot`.

        Args:
            foot: From the base's origin to the middle of the sole, (3,), [m], base axes; the base is level. A leg
                without abduction ignores y.

        Raises:
            ReachError: The leg is too short or too long for it (plain numbers only).
        """
        return self.stretch(foot[0] - self.hip[0], foot[1] - self.hip[1], self.hip[2] - foot[2])

    def stretch(self, forward: Any, left: Any, down: Any) -> list[Any]:
        """Return the joint angles that put the sole so far ahead, to the left and below the hip, [m]; see `angles`."""
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
        """Return where the joint angles put the sole, (3,), [m], base axes: the inverse of `angles`.

        With abduction a foot with an ankle leans sideways; the sole is then taken below the ankle all the same.
        """
        angles = [angle * sign for angle, sign in zip(angles, self.signs or (1,) * self.n_joints, strict=True)]
        abduction = angles.pop(0) if self.abducts else 0.0
        hip, knee = angles[:2]
        forward = self.thigh * np.sin(hip) + self.shank * np.sin(hip + knee)
        down = self.thigh * np.cos(hip) + self.shank * np.cos(hip + knee)
        c, s = np.cos(abduction), np.sin(abduction)
        left, down = self.offset * c + down * s, down * c - self.offset * s
        return np.array([self.hip[0] + forward, self.hip[1] + left, self.hip[2] - down - self.sole])


def two_link_angles(
    forward: Any, down: Any, thigh: float, shank: float, knee: str = "forward", name: str = "leg"
) -> tuple[Any, Any]:
    """Return (hip, knee), the angles of a planar two-link leg, [rad].

        L^2 = forward^2 + down^2,   cos alpha = (L^2 - a^2 - b^2) / (2 a b)
        hip = atan2(forward, down) + atan2(b sin alpha, a + b cos alpha),   knee = -alpha

    for links a and b; for equal links the second term is alpha / 2. With the knee backward alpha changes sign.

    Args:
        forward, down: From the hip to the ankle, [m], ahead and below.
        thigh, shank: Lengths a and b, [m].
        knee: "forward" (human-like) or "backward".
        name: Of the leg, for the error.

    Raises:
        ReachError: The ankle is farther than a + b, nearer than |a - b|, or just there, where the leg is straight or
            folded and its rates have no bound (plain numbers only).

    Source:
        Shah, Saha, Dutt 2012, section 5.1.1 names the step; the formulas are the law of cosines.
    """
    square = forward * forward + down * down
    cosine = (square - (thigh**2 + shank**2)) / (2 * thigh * shank)
    _check_reach(name, square, cosine, thigh, shank)
    alpha = _bend(knee) * np.arccos(cosine)
    lead = alpha / 2 if thigh == shank else np.arctan2(shank * np.sin(alpha), thigh + shank * np.cos(alpha))
    return np.arctan2(forward, down) + lead, -alpha


def abduct(left: Any, down: Any, offset: float = 0.0, name: str = "leg") -> tuple[Any, Any]:
    """Return (abduction angle [rad] about +x, distance [m] down the turned leg plane) of a foot beside its hip.

    With offset d the foot is at R_x(angle) (forward, d, -distance), so distance^2 = left^2 + down^2 - d^2.

    Raises:
        ReachError: The foot is nearer to the abduction axis than the offset (plain numbers only).
    """
    if offset == 0.0 and isinstance(left, float) and left == 0.0:
        return 0.0, down  # a leg that never leaves its plane costs nothing
    if offset == 0.0:
        return np.arctan2(left, down), np.sqrt(left * left + down * down)
    square = left * left + down * down - offset**2
    plain = _plain(square)
    if plain is not None and not (plain > 0).all():
        near = float(np.sqrt(plain.min() + offset**2))
        raise ReachError(f"{name!r} cannot reach {near:.6g} m beside its abduction axis: its offset is {abs(offset)} m")
    distance = np.sqrt(square)
    return np.arctan2(left, down) - np.arctan2(offset, distance), distance


def _bend(knee: str) -> int:
    if knee not in KNEES:
        raise DefinitionError(f"a knee points 'forward' or 'backward', not {knee!r}")
    return KNEES[knee]


def _plain(x: Any) -> np.ndarray | None:
    """Return the value of a number, an array of numbers or a `Taylor` of them; None for anything traced."""
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
            f"leg {name!r} cannot reach {distance:.6g} m from its hip: with links of {thigh} m and {shank} m it "
            f"reaches from {shortest:.6g} m to {longest:.6g} m, both ends left out",
            distance=distance,
            shortest=shortest,
            longest=longest,
        )
