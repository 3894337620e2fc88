"""Landing places of swinging feet from the divergent component of motion, and the ground that the robot stands on.

The center of mass c over feet obeys c'' = omega^2 (c - p) with the center of pressure p, and its divergent component
xi = c + c' / omega is where the robot has to step to come to rest. A gait defines a periodic motion of xi: in axes that
move with the commanded velocity, feet stand at their places under the body, p is the mean of the feet that stand, and
xi is the mean of all p to come, weighted by omega exp(-omega t) (`nominal_divergence`). It includes the sway of a
biped, of a pace and of a bound. The deviation of xi that the feet on the ground cannot remove before the next
touchdown moves the landing place (`FootstepLaw.landing`), and the touchdown comes earlier if it would be out of reach
(`FootstepLaw.relative_cadence`).

Source:
    J. Englsberger, C. Ott, A. Albu-Schaeffer, "Three-dimensional bipedal walking control based on divergent component
    of motion", IEEE Transactions on Robotics 31(2), 2015; M. H. Raibert, "Legged robots that balance", 1986, for the
    foot under the hip in the middle of its stance; M. Khadiv, A. Herzog, S. A. A. Moosavian, L. Righetti, "Walking
    control based on step timing adaptation", IEEE Transactions on Robotics 36(3), 2020, for the time of touchdown, here
    in closed form; the periodic motion for any schedule is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from controllers.balance.divergent_component import Support
from controllers.locomotion.gait.schedule import EARLY, GaitState
from controllers.locomotion.gait.step_sequence import beyond_soles
from legged.compiler.ir import where
from legged.spatial import Array, solve_symmetric, sum_of

_SAMPLES = 20  # of a cycle, for the periodic motion of the divergent component
_HARMONICS = 4  # of the sway
_REACH = 0.6  # largest displacement of the center of pressure by control, relative to the extent of the support
_SLOW, _FAST = 0.2, 0.35  # [omega length of a leg], speeds from which on steps count on it less, and not at all
_STEP = 0.55  # of a leg's length: displacement of a landing place from which on touchdowns come earlier
CADENCE = 2.0  # largest cadence, relative to that of the schedule
_EXTENSION = 0.97  # of a leg's length: its largest extension at touchdown and in the middle of the step
_UPRIGHT, _UPRIGHT_DAMPING = 0.6, 0.8  # [omega], natural frequency and damping of rotations that steps correct
WIDTH = 0.5  # least lateral distance between the feet of a row, relative to that of standing
_PLANE = 0.1  # of the hip height: spread of the feet below which the slope of the ground counts as unknown


class Landings(NamedTuple):
    """Landing places of the feet, and deviations of the divergent component of motion xi.

    Attributes:
        places, undisturbed: Next landing place of each foot, with and without deviation, (n, 2), [m], world axes.
        deviation: Of xi from its periodic motion over the feet that stand, now, (2,), [m], world axes.
        standing_deviation: Of xi from the mean place of all feet after those in the air have landed, if none lifts off
            before, (2,), [m], world axes. Landing places move by the deviation, so that it is the deviation at the last
            touchdown times the fraction of the feet that stand now.
    """

    places: list[Array]
    undisturbed: list[Array]
    deviation: Array
    standing_deviation: Array


@dataclass(frozen=True, eq=False)
class FootstepLaw:
    """The landing places of the feet of one robot.

    Attributes:
        stances: Place of each foot under the standing robot relative to its center of mass, (n, 2), [m], heading axes.
        hips: Position of each hip, (n, 3), [m], base axes.
        lengths: Length of each leg from the hip, (n,), [m]. omega: sqrt(g / height of the center of mass), [1/s].
        neighbors: Index of the foot on the other side of the same row, or None, (n,).
        narrow: Whether steps keep the body upright forward and to the side, (2,): a single foot gives no moment by its
            extent in this direction, or, to the side, legs are heavy. False for robots with more than two feet, of
            which several stand.
        soles: Displacements forward and to the side of the center of pressure under a sole on which steps of a robot
            with two feet count, (2,), [m], see `sole_extents`; zero for points and with more feet.
    """

    stances: Array
    hips: Array
    lengths: Array
    neighbors: tuple[int | None, ...]
    omega: float
    narrow: tuple[bool, bool] = (False, False)
    soles: tuple[float, float] = (0.0, 0.0)

    def nominal_divergence(self, state: GaitState, velocity: Array, yaw_rate: Any) -> Array:
        """Return the periodic divergent component of motion now, (2,), [m], heading axes.

        It is relative to a point that moves with the commanded velocity, in whose axes the feet have their places.

        Args:
            state: State of the gait. velocity: Commanded velocity, (2,), [m/s], heading axes.
            yaw_rate: Commanded rate of the heading, [rad/s].
        """
        decay = np.exp(-self.omega * state.period / _SAMPLES)
        gain, offset = 1.0, np.zeros(2)
        for p, stands in reversed(self._pressures(state, velocity, yaw_rate)):  # xi_k = p_k + (xi_k+1 - p_k) e
            e = where(stands, decay, 1.0)
            gain, offset = gain * e, p * (1.0 - e) + offset * e
        return offset / np.maximum(1.0 - gain, 1e-3)

    def sway(self, state: GaitState, velocity: Array, yaw_rate: Any) -> Sway:
        """Return the periodic motion of the center of mass over these feet, around its mean; zero for a robot at rest.

        With the Fourier coefficients p_n of the center of pressure, those of c'' = omega^2 (c - p) are
        c_n = p_n / (1 + (n w / omega)^2) at the frequency w of the gait. In flights p counts as zero.

        Args:
            state: State of the gait. velocity: Commanded velocity, (2,), [m/s], heading axes.
            yaw_rate: Commanded rate of the heading, [rad/s].
        """
        cyclic = state._replace(walking=1.0, planted=np.zeros(len(state.planted)))
        samples = [where(stands, 1.0, 0.0) * p for p, stands in self._pressures(cyclic, velocity, yaw_rate)]
        w = 2.0 * np.pi / state.period
        cosines, sines = [], []
        for n in range(1, _HARMONICS + 1):
            angles = 2.0 * np.pi * n * (np.arange(_SAMPLES) + 0.5) / _SAMPLES
            ratio = n * w / self.omega
            gain = state.walking * (2.0 / _SAMPLES) / (1.0 + ratio * ratio)
            cosines.append(gain * sum_of(x * p for x, p in zip(np.cos(angles).tolist(), samples, strict=True)))
            sines.append(gain * sum_of(x * p for x, p in zip(np.sin(angles).tolist(), samples, strict=True)))
        start: Any = 0.0
        if len(self.stances) == 2:  # with more feet the weight hardly shifts, and fast trots start worse
            start = where(state.starts > 0.5, reduce(np.minimum, state.time_to_lift_off), 0.0)
        return Sway(w, np.array(cosines), np.array(sines), self.omega, start)

    def _pressures(self, state: GaitState, velocity: Array, yaw_rate: Any) -> list[tuple[Array, Any]]:
        """Return (nominal center of pressure, (2,), heading axes; whether a foot stands) over a cycle from now on."""
        pressures = []
        for k in range(_SAMPLES):
            share = (k + 0.5) / _SAMPLES
            total, count = np.zeros(2), 0.0
            rows = zip(self.stances, state.local, state.duty, state.stance_after(share * state.period), strict=True)
            for place, s, duty, stands in rows:
                s = s + share
                s = s - np.floor(s)
                ahead = place_ahead(place, velocity, yaw_rate, self._until_middle(s, duty) * state.period)
                total = total + stands * (place + ahead)
                count = count + stands
            pressures.append((total / np.maximum(count, 1.0), count > 0.5))
        return pressures

    def landing(
        self, state: GaitState, feet: Array, xi: Array, heading: Array, velocity: Array, yaw_rate: Any
    ) -> Landings:
        """Return the next landing places and the deviations of xi that they correct.

        The feet that stand define where a robot without deviation would be now; the deviation of xi from the periodic
        motion there, as far as the center of pressure cannot remove it, grows by exp(omega t) until touchdown. Between
        feet that stand it moves along the line that joins them, and under a sole that carries a robot with two feet. If
        a step also corrected what the center of pressure removes, it would be too long: the next deviation would have
        the opposite sign, and steps would become wider and wider.

        Args:
            state: State of the gait. feet: Positions of the feet, (n, 3), [m], world axes.
            xi: Divergent component of motion, (2,), [m], world axes.
            heading: Forward and left unit vectors of the heading, (2, 2), world axes.
            velocity: Commanded velocity, (2,), [m/s], heading axes.
            yaw_rate: Commanded rate of the heading, [rad/s].
        """
        stance, to_world = state.stance, heading.T
        walking = state.walking
        nominal = self.nominal_divergence(state, velocity, yaw_rate)
        count = sum_of(stance)
        center = np.zeros(2)
        for place, foot, stands, s, duty in zip(self.stances, feet, stance, state.local, state.duty, strict=True):
            past = self._until_middle(s, duty) * state.period * walking
            own = place + place_ahead(place, velocity, yaw_rate, past)
            center = center + stands * (foot[:2] - to_world @ own)
        # At a velocity v over a center of pressure at rest in these axes, xi is a with omega a - yaw_rate e_z x a = v:
        ratio = yaw_rate / self.omega
        ahead = (velocity + ratio * np.array([-velocity[1], velocity[0]])) / (self.omega * (1.0 + ratio * ratio))
        free = xi - to_world @ (nominal * walking + ahead)  # where the robot would be without a deviation
        center = where(count > 0.5, center / np.maximum(count, 1.0), free)
        error = free - center
        support = Support.of(feet, [np.maximum(k, 1e-3) for k in stance])
        along = support.project(error)
        norm = support.norm(along)

        def deviation(time: Any, soles: tuple[float, float] = (0.0, 0.0)) -> Array:
            growth = np.exp(self.omega * time)
            remaining = np.maximum(norm - _REACH * (1.0 - 1.0 / growth), 0.0) / norm
            left = (error - along + remaining * along) * growth
            reach = self.reliance(velocity) * np.array(soles)
            return beyond_soles(left, self.omega * time, reach, heading) if any(soles) else left

        places, undisturbed, last = [], [], 0.0
        rows = zip(self.stances, state.time_to_touchdown, state.duty, stance, strict=True)
        for place, left, duty, stands in rows:
            time = np.minimum(left, (1.0 - duty) * state.period)
            last = np.maximum(last, (1.0 - stands) * time)
            ahead = place + place_ahead(place, velocity, yaw_rate, 0.5 * duty * state.period)
            way = _turned(velocity * left, 0.5 * yaw_rate * left) + _turned(ahead, yaw_rate * left)
            undisturbed.append(center + to_world @ way)
            places.append(undisturbed[-1] + deviation(time, self.soles))
        return Landings(places, undisturbed, error, deviation(last) * (count / len(stance)))

    def reliance(self, velocity: Array) -> Any:
        """Return how much steps count on the soles at a commanded velocity, from 0 to 1.

        Args:
            velocity: (2,), [m/s], heading axes.
        """
        speed = np.sqrt(velocity @ velocity + 1e-12) / (self.omega * float(np.min(self.lengths)))
        return np.minimum(np.maximum((_FAST - speed) / (_FAST - _SLOW), 0.0), 1.0)

    def _until_middle(self, s: Any, duty: Any) -> Any:
        """Return the share of the cycle until the middle of the stance of a foot that stands, from its local phase.

        A foot of more than two that touches the ground in the second half of its swing stands ahead of its place at
        touchdown. Others beyond their lift-off count as lifting off: TRON1 drifts otherwise.
        """
        ahead = s - 1.0 if len(self.stances) > 2 else duty
        return 0.5 * duty - where(s > duty + EARLY * (1.0 - duty), ahead, np.minimum(s, duty))

    def relative_cadence(self, state: GaitState, period: Any, deviation: Any) -> Any:
        """Return the number of steps per time, relative to that of the schedule, from 1 to 2, for balance.

        A deviation of the divergent component grows by exp(omega t). The next foot touches down before it exceeds 0.55
        of the length of a leg.

        Args:
            state: State of the gait. period: Scheduled duration, [s]. deviation: Magnitude of that of xi now, [m].
        """
        left = period * reduce(np.minimum, [1.0 - s for s in state.local])
        most = _STEP * float(np.min(self.lengths))
        available = np.log(most / np.maximum(deviation, 1e-3 * most)) / self.omega
        return np.minimum(np.maximum(left / np.maximum(available, 1e-3 * period), 1.0), CADENCE)

    def stance_cadence(
        self, state: GaitState, period: Any, feet: Array, position: Array, heading: Array, command: Array, most: float
    ) -> Any:
        """Return the number of steps per time, relative to that of the schedule, from 1 to 2, that keeps legs in reach.

        At the commanded velocity each foot that stands lifts off before it is too far behind its place under the body.
        A robot that starts to walk stands for longer on its last foot than in a cycle, on a foot that was not ahead.

        Args:
            state: State of the gait. period: Scheduled duration of a cycle, [s].
            feet: Positions of the feet, (n, 3), [m], world axes. position: Center of mass, (3,), [m], world axes.
            heading: As in `landing`, (2, 2). command: Velocity and yaw rate, (3,), [m/s] and [rad/s], heading axes.
            most: Largest distance of a foot behind its place under the body, [m].
        """
        cadence, scale = 1.0, period / state.period
        rows = zip(self.stances, feet, state.stance, state.duty, state.time_to_lift_off, strict=True)
        for place, foot, stands, duty, left in rows:
            velocity = command[:2] + command[2] * np.array([-place[1], place[0]])
            speed = np.sqrt(velocity @ velocity + 1e-12)
            behind = (place - heading @ (foot[:2] - position[:2])) @ velocity / speed
            needed = speed * left * scale / np.maximum(most - behind, 1e-3 * most)
            cadence = np.maximum(cadence, where((stands > 0.5) & (duty < 1.0), needed, 1.0))
        return np.minimum(cadence, CADENCE)

    def within_reach(
        self, landing: Array, i: int, hip: Array, feet: Array, stance: Sequence[Any], heading: Array, height: Any
    ) -> Array:
        """Return the nearest landing place, (2,), [m], world axes, that the leg reaches without crossing its neighbor.

        Args:
            landing: Desired landing place, (2,), [m], world axes.
            i: Index of the foot.
            hip: Position of its hip at touchdown, (3,), [m], world axes.
            feet: Positions of all feet, (n, 3), [m], world axes.
            stance: 1 for each foot that stands, (n,).
            heading: As in `landing`, (2, 2).
            height: Height of the ground at the landing place, [m], world z.
        """
        other = self.neighbors[i]
        if other is not None:
            apart = self.stances[i, 1] - self.stances[other, 1]
            lateral = heading[1] @ (landing - feet[other][:2])
            missing = np.maximum(WIDTH * abs(apart) - np.sign(apart) * lateral, 0.0)
            landing = landing + stance[other] * np.sign(apart) * missing * heading[1]
        square = (_EXTENSION * self.lengths[i]) ** 2 - (hip[2] - height) ** 2
        radius = np.sqrt(np.maximum(square, (0.1 * self.lengths[i]) ** 2))
        arm = landing - hip[:2]
        distance = np.sqrt(arm @ arm + 1e-12)
        return hip[:2] + arm * np.minimum(1.0, radius / distance)

    def upright_displacement(
        self, error: Array, rate: Array, inertia: Array, weight: float, heading: Array, turning: Any = 0.0
    ) -> Array:
        """Return the displacement of landing places that turns the body upright, (2,), [m], world axes.

        A force through a single point changes the angular momentum L about the center of mass and its velocity
        together, c'' = omega^2 (c - p) - [L_y'; -L_x'] / (m h). With a foot displaced by [-L_y'; L_x'] / (m g) the
        motion of the center of mass stays as it is, and L has the rate L' with which the rotation of the body
        oscillates to zero at 0.6 omega with a damping ratio of 0.8. It is zero along axes along which a foot extends.

        Args:
            error: Rotation of the body from its reference, (3,), [rad], world axes.
            rate: Angular velocity of the body, (3,), [rad/s], world axes.
            inertia: About the center of mass, (3, 3), [kg m^2], world axes.
            weight: m g, [N].
            heading: As in `landing`, (2, 2).
            turning: As in `MotionPlanner.turning`: 1 if a single point of each foot carries the robot.
        """
        w = _UPRIGHT * self.omega
        L = inertia @ (-w * w * error - 2.0 * _UPRIGHT_DAMPING * w * rate) / weight
        narrow = np.maximum(np.array(self.narrow, dtype=float), turning)
        return heading.T @ (narrow * (heading @ np.stack([-L[1], L[0]])))


def place_ahead(place: Array, velocity: Array, yaw_rate: Any, time: Any) -> Array:
    """Return how far a foot at a place of the body is ahead of it some time before the middle of its stance, (2,), [m].

    The second-order term is that of a curve: a body that turns comes from the side, and the heading was another.

    Args:
        place: From the center of mass, (2,), [m], heading axes. time: [s].
        velocity: Commanded velocity, (2,), [m/s], heading axes. yaw_rate: Commanded rate of the heading, [rad/s].
    """
    angle = yaw_rate * time
    way = velocity * time + angle * np.array([-place[1], place[0]])
    return way + 0.5 * angle * (np.array([-way[1], way[0]]))


class Sway(NamedTuple):
    """A periodic motion of the center of mass, in axes that move with the commanded velocity.

        c(t) = sum over n = 1, 2, ... of cosines_n cos(n w t) + sines_n sin(n w t)

    Attributes:
        frequency: w, [rad/s].
        cosines: (N, 2), [m], heading axes.
        sines: (N, 2), [m], heading axes.
        omega: sqrt(g / h), [1/s].
        start: Time from now at which it begins, [s]: the first lift-off of a robot that starts to walk on two feet.
            Before, the divergent component grows to that of the sway over a center of pressure between the feet.
    """

    frequency: Any
    cosines: Array
    sines: Array
    omega: float = 1.0
    start: Any = 0.0

    def after(self, time: Any) -> tuple[Array, Array]:
        """Return (position, velocity) after a time from now, (2,) each, [m] and [m/s], heading axes.

        Args:
            time: [s].
        """
        late = np.maximum(time, self.start)
        c1, s1 = np.cos(self.frequency * late), np.sin(self.frequency * late)
        c, s, position, velocity = 1.0, 0.0, np.zeros(2), np.zeros(2)
        for n, (a, b) in enumerate(zip(self.cosines, self.sines, strict=True), 1):
            c, s = c * c1 - s * s1, s * c1 + c * s1  # cos(n w t), sin(n w t)
            position = position + c * a + s * b
            velocity = velocity + (n * self.frequency) * (c * b - s * a)
        begun = where(time >= self.start, 1.0, 0.0)
        before = 0.5 * np.exp(self.omega * (time - late)) * (position + velocity / self.omega)
        return begun * position + (1.0 - begun) * before, begun * velocity + (1.0 - begun) * self.omega * before


class GroundPlane(NamedTuple):
    """The plane through the feet, on which the robot stands.

    Attributes:
        point: A point of the plane, (3,), [m], world axes.
        slope: Rise of the plane per meter along world x and y, (2,).
    """

    point: Array
    slope: Array

    def height(self, place: Array) -> Any:
        """Return the height over a place, [m], world z.

        Args:
            place: (2,), [m], world axes.
        """
        return self.point[2] + self.slope @ (place - self.point[:2])

    @property
    def normal(self) -> Array:
        """The upward unit normal, (3,), world axes."""
        up = 1.0 / np.sqrt(1.0 + self.slope @ self.slope)
        return np.array([-self.slope[0] * up, -self.slope[1] * up, up])


def plane_of(places: Sequence[Array], hip_height: float) -> GroundPlane:
    """Return the plane through the last places of contact of all feet, by least squares.

    Across directions in which the feet are close together the plane is level.

    Args:
        places: Last place of contact of each foot, (n, 3), [m], world axes. hip_height: [m].
    """
    center = sum_of(places) / float(len(places))
    arms = [place - center for place in places]
    spread = sum_of(np.outer(arm[:2], arm[:2]) for arm in arms) + (_PLANE * hip_height) ** 2 * np.eye(2)
    return GroundPlane(center, solve_symmetric(spread, sum_of(arm[:2] * arm[2] for arm in arms)))


def _turned(place: Array, angle: Any) -> Array:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([c * place[0] - s * place[1], s * place[0] + c * place[1]])
