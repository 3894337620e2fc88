"""The gait of this time: from the time or the commanded speed, with a duty factor that suits the speed, or of a jump.

Source:
    R. McN. Alexander, "The gaits of bipedal and quadrupedal animals", International Journal of Robotics Research 3(2),
    1984: animals change gaits at equal speeds relative to sqrt(g h), and their duty factors fall as they run faster.
    The values are ours. By the cost of transport a trot is best at almost all speeds, and a gallop at none
    (`python -m benchmarks.locomotion Go2 --rows costs`); a slow walk has smaller torques.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from controllers.locomotion.gait.schedule import ContactSchedule, GaitState
from legged.compiler.ir import where
from legged.spatial import Array, join, sum_of

AUTOMATIC = "automatic"
"""Name of the choice of a gait by the commanded speed."""
SPEEDS = {"walk": 0.0, "trot": 0.12}
"""Speed from which on each gait of robots with more than two feet is chosen, [sqrt(g h)]; see also `UNSTEADY`."""
UNSTEADY = ("trot", "pace", "gallop")
"""Gaits in which a robot whose four legs cannot move their feet to the side falls, such as Solo8."""
_LEAVES = 0.8  # of the speed at which a gait begins: it ends below
_TRAVEL, _TRAVEL_ON_TWO = 0.95, 0.7
"""Distance that the body moves in a stance, from which on period and duty factor become smaller, [h]; with soles, which
stay flat while the leg behind the body is stretched, it is less."""
_OF_REACH, _LEAST_TRAVEL = 1.3, 0.5
"""On two feet it is at most this multiple of the reach of the legs, but at least this, [h]: quick steps need torque."""
_SHORTEST_SWING = 1.0  # [sqrt(h / g)], swing at the largest speed of two feet
_LATERAL, _TURNING = 2.0, 2.2
"""Factors of a distance to the side and in a turn in this one, with more than two feet: the body moves further away
from the line between two feet that stand, and this line turns. Feet of the trailing side land farther out than
planned, to keep away from those of the other side, so that long distances stretch their legs."""
_FASTER = 1.5  # largest ratio of actual and commanded speed that the period follows
_SLOWEST = 0.2  # [sqrt(g h)], least speed to which the actual one is compared
_PATIENCE = 1.5  # [sqrt(h / g)], longest time for which the gait waits for a foot at an obstacle or over low ground
_LOWEST, _HIGHEST = 0.01, 1.0  # [h], least and largest rise of the center of mass in a jump
_DEPTH = 0.45  # [h], distance by which it moves down before at most
_UNLOADED = 0.5  # [g], largest acceleration of the motion down
_SHORTEST = 0.3  # of the scheduled period: least one of a low jump
_FREE = 0.2  # of the speed from which on the period becomes shorter: speed without a limit by loads
_LATE = 0.14  # [sqrt(h / g)], half a step of predictive control, whose last forces act for half of a step


@dataclass(frozen=True, eq=False)
class GaitChoice:
    """The parameters of the gait of one robot.

    Attributes:
        schedules: (beginning, gait) of each gait; the beginning is a time, [s], or a speed, [m/s].
        by_speed: Whether beginnings are speeds.
        least_duty: Duty factor down to which that of a faster gait falls.
        radius: Largest distance of a foot from the center of mass, [m].
        sides: 1, 0 or -1 for feet in front of the center of mass, beside it or behind, and for those on the left or
            right, (n, 2).
        height: h, of the center of mass of the standing robot, [m].
        gravity: Magnitude, [m/s^2].
        reach: Horizontal distance from the hip to the end of a straight leg at the height of standing, [m].
    """

    schedules: tuple[tuple[float, ContactSchedule], ...]
    by_speed: bool
    least_duty: float
    radius: float
    sides: Array
    height: float
    gravity: float
    reach: float = np.inf

    def chosen(self, t: Any, command: Array, last: Any) -> Any:
        """Return the index of the gait in `schedules`.

        Args:
            t: Time, [s]. command: As in `Command`, (7,). last: The index before.
        """
        index, value = 0.0 * t, self.speed(command) if self.by_speed else t
        for k, (begin, _) in enumerate(self.schedules[1:], 1):
            least = where(last > k - 0.5, _LEAVES * begin, begin) if self.by_speed else begin
            index = where(value >= least, float(k), index)
        return index

    def target(self, chosen: Any, first: Array) -> Array:
        """Return the parameters of a gait, (1 + 2 n,), as in `ContactSchedule.parameters`.

        Args:
            chosen: Its index. first: Those of the first gait, (1 + 2 n,), mixed units.
        """
        target = first
        for k, (_, schedule) in enumerate(self.schedules[1:], 1):
            target = where(chosen > k - 0.5, schedule.parameters, target)
        return target

    def at_speed(self, target: Array, command: Array) -> Array:
        """Return the parameters of a gait with a shorter period and lower duty factors at high speed, (1 + 2 n,).

        The body then moves by at most 0.95 h in a stance, on two feet 0.7 h; with more than two feet, ways to the side
        and in turns count more. The period and the duty factor fall by the same factor until the duty factor is the
        least, and then the period alone. On two feet the duty factor falls first: a swing that takes longer needs less
        torque and momentum of heavy legs.

        Args:
            target: Parameters of the gait, (1 + 2 n,), mixed units. command: As in `Command`, (7,).
        """
        n = (len(target) - 1) // 2
        duty = target[1 : 1 + n]
        stance = target[0] * duty[0] / self._travel(n)
        turn = np.abs(command[2]) * self.radius
        if n == 2:
            excess = np.maximum(1.0, self.speed(command) * stance)
            slower = np.maximum(1.0, (np.abs(command[0]) + turn) * stance)
        else:
            along = np.sqrt(command[0] * command[0] + _LATERAL**2 * command[1] * command[1] + 1e-12)
            excess = np.maximum(1.0, (along + _TURNING * turn) * stance)
            slower = np.sqrt(np.maximum(1.0, (along + turn) * stance))
        factor = np.minimum(slower, np.maximum(duty[0] / self.least_duty, 1.0))
        return np.concatenate([np.stack([target[0] * factor / excess]), duty / factor, target[1 + n :]])

    def followed(self, command: Array, actual: Array, target: Array) -> Array:
        """Return the command with its velocity raised to the actual speed if the robot is faster, (7,).

        It is raised at most 1.5 times, and on two feet it is unchanged.

        Stances that suit a slower command are too long for such a robot: its feet stay behind, so that it leans forward
        and becomes still faster. The velocity of the command is multiplied by one factor. In gaits whose speed changes
        in a cycle, the speed beyond the command counts from the unevenness times sqrt(g h) on.

        Args:
            command: As in `Command`, (7,), mixed units. actual: Velocity and yaw rate, (3,), [m/s] and
                [rad/s], heading axes.
            target: Parameters of the gait, (1 + 2 n,), mixed units.
        """
        if len(self.sides) == 2:
            return command
        unit, units = float(np.sqrt(self.gravity * self.height)), np.array([1.0, 1.0, self.radius])
        wanted = units * command[:3]
        speed = np.sqrt(wanted @ wanted + 1e-12)
        beyond = (wanted @ (units * actual)) / speed - self.unevenness(target) * unit
        factor = np.minimum(np.maximum(beyond / np.maximum(speed, _SLOWEST * unit), 1.0), _FASTER)
        return join(factor * command[:3], command[3:])

    def patience(self, parameters: Array, command: Array) -> Any:
        """Return the longest time for which the gait waits for a foot, [s].

        Feet that stand are then as far behind their places under the body as at the end of the longest stance. It is
        zero at speeds at which the period is shorter than its scheduled value.

        Args:
            parameters: Of the gait, (1 + 2 n,), mixed units. command: As in `Command`, (7,).
        """
        speed = self.speed(command)
        ahead = 0.5 * (self._travel((len(parameters) - 1) // 2) - speed * parameters[0] * parameters[1])
        left = np.maximum(ahead, 0.0) / np.maximum(speed, 1e-3 * np.sqrt(self.gravity * self.height))
        return np.minimum(left, _PATIENCE * np.sqrt(self.height / self.gravity))

    def unevenness(self, target: Array, together: float = 1.0) -> Any:
        """Return how unevenly a gait loads the feet in the course of a cycle, dimensionless, zero in a trot.

        It is the sum of the squares of the first Fourier coefficients of the number of feet that stand, and of its
        differences between front and rear and between left and right, relative to the mean number: 0.26 in a pace and a
        bound with duty factors of 0.6 (sides and rows in turn) and in a pronk (all feet in turn with a flight), and
        0.07 in a walk.

        Args:
            target: Parameters of the gait, (1 + 2 n,), mixed units. together: Weight of the number of feet.
        """
        n = len(self.sides)
        duty, middle = target[1 : 1 + n], 2.0 * np.pi * (target[1 + n :] + 0.5 * target[1 : 1 + n])
        size = np.sin(np.pi * duty) / (np.pi * n * duty)
        total: Any = 0.0
        for factor, weights in ((together, np.ones(n)), *((1.0, side) for side in self.sides.T)):
            cosine, sine = weights @ (size * np.cos(middle)), weights @ (size * np.sin(middle))
            total = total + factor * (cosine * cosine + sine * sine)
        return total

    def free_speed(self, target: Array) -> Any:
        """Return the speed up to which a gait is followed whatever the loads of the robot, see `SpeedLimit`, [m/s].

        It is a fifth of that from which on the period becomes shorter.

        Args:
            target: Parameters of the gait, (1 + 2 n,), mixed units.
        """
        return _FREE * self._travel((len(target) - 1) // 2) / (target[0] * target[1])

    def _travel(self, n: int) -> float:
        """Return the longest way of the body in a stance with n feet, [m].

        A leg that is straight before its lift-off pulls the body down, and the other foot lands late.
        """
        if n != 2:
            return _TRAVEL * self.height
        return min(_TRAVEL_ON_TWO * self.height, max(_OF_REACH * self.reach, _LEAST_TRAVEL * self.height))

    def fastest_in_reach(self, duty: float) -> float:
        """Return the speed of two feet at which a stance is 1.3 times the reach and a swing takes sqrt(h / g), [m/s].

        Args:
            duty: Duty factor at this speed.
        """
        swing = _SHORTEST_SWING * float(np.sqrt(self.height / self.gravity))
        return (1.0 - duty) / duty * _OF_REACH * self.reach / swing

    def speed(self, command: Array) -> Any:
        """Return the largest commanded speed of a place of the feet relative to the body, [m/s].

        Args:
            command: As in `Command`, (7,), mixed units.
        """
        return np.sqrt(command[:2] @ command[:2]) + np.abs(command[2]) * self.radius

    def jump(self, rise: Any) -> Jump:
        """Return a jump.

        Args:
            rise: Of the center of mass, [m], see `jump_state`.
        """
        h, g = self.height, self.gravity
        acts, rise = np.abs(rise) > 0.0, np.minimum(np.maximum(np.abs(rise), _LOWEST * h), _HIGHEST * h)
        depth, unit = np.minimum(rise, _DEPTH * h), float(np.sqrt(h / g))
        return Jump(acts, rise, depth, _LATE * unit, g)


class Jump(NamedTuple):
    """A jump: the body moves down, all feet push, lift off and fly together.

    Attributes:
        acts: Whether there is a jump.
        rise: Rise of the center of mass in the flight, [m].
        depth: Distance by which it moves down before it is pushed up to its lift-off, [m].
        late: Time from the end of the push to the lift-off of the feet, [s].
        gravity: Magnitude, [m/s^2].
        elapsed: Time since its begin, [s].
    """

    acts: Any
    rise: Any
    depth: Any
    late: float
    gravity: float
    elapsed: Any = 0.0

    @property
    def velocity(self) -> Any:
        """Vertical velocity at lift-off, [m/s]."""
        return np.sqrt(2.0 * self.gravity * self.rise)

    @property
    def durations(self) -> tuple[Any, Any, Any]:
        """Durations of the motion down, of the push, and of the flight, [s]."""
        v, g = self.velocity, self.gravity
        down = np.pi * np.sqrt(self.depth / (2.0 * _UNLOADED * g))
        return down, 2.0 * self.depth / v, 2.0 * v / g

    def parameters(self, state: GaitState, flies: Any, height: Any, velocity: Any) -> Array:
        """Return the parameters of the gait of n feet, (1 + 2 n,), as in `ContactSchedule.parameters`.

        In flight the period is that with which the feet land when the body is at the height of standing.

        Args:
            state: State of the gait. flies: Whether the feet are in the air.
            height: Of the center of mass over that of the standing robot, [m]. velocity: Its rate, [m/s].
        """
        down, push, flight = self.durations
        n, period, stance = len(state.planted), down + push + flight, down + push + self.late
        duty, g = stance / period, self.gravity
        left = (velocity + np.sqrt(np.maximum(velocity * velocity + 2.0 * g * height, 0.0))) / g
        landing = np.maximum(left, 0.0) / np.maximum(1.0 - state.phase, 1e-3)
        period = where(flies, np.maximum(landing, _SHORTEST * period), period)
        return np.concatenate([np.stack([period]), np.stack([duty] * n), np.zeros(n)])

    def after(self, time: Any) -> tuple[Any, Any]:
        """Return (height over that of standing, its rate) of the center of mass after a time from now, [m] and [m/s].

        A half wave of a cosine down, constant acceleration up, and the parabola of free flight; zero after it.

        Args:
            time: [s].
        """
        t, v, g = self.elapsed + time, self.velocity, self.gravity
        down, push, flight = self.durations
        w = np.pi / down
        lower = -0.5 * self.depth * (1.0 - np.cos(w * t)), -0.5 * self.depth * w * np.sin(w * t)
        late = t - down
        up = 0.5 * v / push * late * late - self.depth, v / push * late
        fall = late - push
        fly = fall * (v - 0.5 * g * fall), v - g * fall
        motions = zip(lower, up, fly, strict=True)
        rows = [where(t < down, a, where(late < push, b, where(fall < flight, c, 0.0))) for a, b, c in motions]
        return where(self.acts, rows[0], 0.0), where(self.acts, rows[1], 0.0)


def jump_state(last: Any, wanted: Any, state: GaitState) -> Any:
    """Return the rise of the center of mass in the present jump, [m], negative from its lift-off on; zero without one.

    A jump begins when all feet rest on the ground, and ends when they do so again.

    Args:
        last: The rise before. wanted: The commanded rise, [m]. state: State of the gait.
    """
    standing = sum_of(state.stance)
    rests = (state.walking < 0.5) & (standing > len(state.planted) - 0.5)
    return where(last > 0.0, where(standing < 0.5, -last, last), where(rests, np.maximum(wanted, 0.0), last))
