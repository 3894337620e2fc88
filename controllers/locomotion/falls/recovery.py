"""Falls and rest: a law that damps the joints after a fall, stands up and goes on, and that lies and sits down."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

from controllers.locomotion.falls import turning
from controllers.locomotion.locomotion import Locomotion
from controllers.locomotion.started_locomotion import StartedLocomotion
from controllers.locomotion.velocity_command import Command
from controllers.wrappers.wrapper import Wrapper
from legged.algorithms.legs.rising import Rising, rising_postures
from legged.algorithms.legs.standing import Home, folded_posture
from legged.algorithms.legs.turning_postures import turning_postures
from legged.checked import checked
from legged.compiler.ir import where
from legged.contact.rigid import Rigid
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.kinematics import center_of_mass, momentum, point_motion
from legged.errors import DefinitionError, SimulationWarning
from legged.ground.ground import Ground
from legged.robot.robot import Robot
from legged.spatial import Array

MODES = (
    *("walks", "damps", "folds its legs", "stands up", "turns over", "lies", "sits"),
    *("spreads its arms", "raises its arms", "bends its arms", "pushes its trunk up", "draws its knees in"),
    *("sits on its heels", "squats", "rises from its squat"),
    *(f"{how} its {side} side" for how in ("turns onto", "falls forward from") for side in ("right", "left")),
    *("stands on hands and soles", "lifts its hands", "raises its trunk", "straightens"),
)
WALKS, DAMPS, FOLDS, STANDS_UP, TURNS, LIES, SITS = range(7)
SPREADS, RAISES, BENDS, PUSHES, DRAWS, HEELS, SQUATS, RISES, ONTO_RIGHT, ONTO_LEFT, FROM_RIGHT, FROM_LEFT = range(7, 19)
ON_HANDS, LIFTS, RAISES_TRUNK, STRAIGHTENS = range(19, 23)
# Durations in units of sqrt(h / g), with the height h of the center of mass of the standing robot:
_DURATIONS = (  # of each mode
    *(np.inf, 6.0, turning.FOLDED, 10.0, turning.HOLDS, np.inf, np.inf),
    *(3.5, 3.5, 3.5, 4.5, 5.5, 7.5, 5.0, 12.0, 6.0, 6.0, 6.0, 6.0),
    *(9.0, 6.0, 6.0, 9.0),
)
_MOVES = (  # of the motion to the posture of a mode, from its beginning
    *(1.0, 1.0, turning.FOLDS_WITHIN, 7.0, turning.MOVES, 7.0, 7.0),
    *(3.0, 3.0, 3.0, 4.0, 5.0, 6.0, 3.0, 1.0, 2.0, 2.0, 2.0, 2.0),
    *(6.0, 5.0, 5.0, 6.0),
)
_STIFFNESS, _DAMPING = 2.0, 0.1  # [m g h / rad], and [sqrt(h / g)] times the stiffness, of the joints after a fall
_STIFF = 1.0  # [inertia of the joint / period of the law^2], largest stiffness, so that light joints do not chatter
_STABLE, _STABLE_ON_TWO = 1.0, 0.3  # [inertia / period of the law], largest damping; of `bounding_inertias`, and of M
_TILT = 1.0  # [rad], inclination of the base beyond which the robot has fallen
_UPRIGHT = 0.6  # [rad], inclination below which it can stand up
_LOW, _STANDS = 0.4, 0.75
"""Heights of the base over the lowest foot, relative to the standing posture: of a fall, and of a robot that stands."""
_CANDIDATES = 200  # random postures that the search for motions tries
_TRIAL_STEP = 2.0  # [period of the law], time step of its simulations, whose servos are implicit
_RISEN = 0.9  # height of the base, as above, from which on a robot that rises from a squat follows its command
_SETTLES = 4.0  # [sqrt(h / g)], shortest time in which the law raises a robot before it follows its command
_PRONE = 0.6  # least size of the vertical component of the x axis of a base on its front, negative, or back, positive
_LEVEL = 0.06  # [h], largest difference of the heights of toes and heels of a robot that squats
_SQUATS = 0.33  # least height of the base in a squat, as above; that of a robot that sits on the ground is lower
_WITHIN = 0.1  # [foot length], least distance of the capture point from both ends of the soles
_RAISED = 1.0  # [rad], inclination of a trunk that rises over the hands from which on the law takes over
_ANKLES, _MOST = 0.5, 0.25  # [rad], rotation of the ankles per error of the capture point over h, and the largest one
_PLACE = 0.6  # of the capture point from the heels, 0, to the toes, 1, to which the ankles move it
_RISING_TILT, _RISING_LOW = 1.4, 0.25  # [rad], inclination and height, as above, at which rising from a squat fails


class _Memory(NamedTuple):
    """Mode, its beginning, [s], attempts so far, number of the posture of a turn, and joint positions then, (nj,)."""

    mode: Any
    since: Any
    attempts: Any
    posture: Any
    angles: Array

    @classmethod
    def of(cls, flat: Array) -> _Memory:
        return cls(flat[0], flat[1], flat[2], flat[3], flat[4:])

    def flat(self) -> Array:
        return np.concatenate([np.stack([self.mode, self.since, self.attempts, self.posture]), self.angles])


@checked
@dataclass(frozen=True, eq=False)
class Recovery(Wrapper):
    """`Locomotion` that stands up after a fall and goes on.

        sim = legged.Simulation(robot, controllers.Recovery(controllers.Locomotion("trot")), ground=ground, fall=False)

    A robot has fallen when its base is inclined by more than 1 rad, or lower than 0.4 of its height in the standing
    posture. Its joints are then damped. A robot with more than two legs folds its legs. On its side or its back it
    turns over by motions that simulations at the start have found (`controllers.locomotion.falls.turning`), folds its
    legs, and stretches them to the standing posture; the law then starts anew in the present place. HyQ and HyQReal
    remain on their back.

    A robot with two legs and two arms turns to its front by an arm and a leg, pushes its trunk up with its hands, draws
    its knees under its hips, sits back on its heels, and shifts its soles under its center of mass; see
    `legged.algorithms.legs.rising.rising_postures`. If its legs bend too little for this, it spreads them until hands
    and soles are on the ground, shifts its center of mass over the soles, and raises its trunk. As soon as its capture
    point is over its level soles, the law starts anew and raises it, before it follows its command. Without two arms
    that are long and strong enough, or without a squat of at most 0.7 of its standing height, it remains damped, with a
    warning at the start. A robot that falls again while it rises repeats the sequence. Apollo and TienKung 2 Lite do
    not succeed.

    With `rest` a robot that stands lies down, sits down and stands up when it is to.

        controllers.Recovery(law, lambda t: legged.where(t < 3.0, 1.0, 0.0))  # lies down, and stands up after 3 s

    The robot needs contact points on its trunk and its knees, with two legs also on its hands
    (`legged.environments.tasks.standing_up.with_body_contacts`), and the simulation the argument `fall=False`, since it
    otherwise ends at a fall.

    Attributes:
        law: The law, a `Locomotion`. Wrappers of sensors and actuators are around `Recovery`.
        rest: Function of time, [s], that returns 1 where the robot is to lie on folded legs, 2 where it is to sit on
            its rear legs, and 0 where it is to walk; None for always 0. It lies or sits down from a stand, so that the
            commanded velocity must be zero.

    Raises:
        DefinitionError: The law is no `Locomotion`, or a robot with two legs is to rest.

    Source:
        Ours.
    """

    rest: Callable[[Any], Any] | None = None
    _postures: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False, kw_only=True)
    _stiffness: Array = field(default_factory=lambda: np.zeros(0), repr=False, kw_only=True)
    _damping: Array = field(default_factory=lambda: np.zeros(0), repr=False, kw_only=True)
    _turning: turning.Turning | None = field(default=None, repr=False, kw_only=True)
    _rises: Rising | None = field(default=None, repr=False, kw_only=True)
    _walker: StartedLocomotion | None = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.law, Locomotion) and self._walker is None:
            raise DefinitionError(f"Recovery needs a Locomotion as its law, got {type(self.law).__name__}")

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> tuple[Self, Array]:
        """Return (law, memory); arguments and errors as in `Locomotion.start`."""
        assert isinstance(self.law, Locomotion)
        walker, _ = self.law.start(robot, ground, q, v)
        home = walker.home
        folded = folded_posture(robot, home)
        candidates = turning_postures(robot, home, folded, _CANDIDATES) if len(home.legs) > 2 else None
        if candidates is None and self.rest is not None:
            raise DefinitionError(f"robot {robot.name!r} has two legs, and does not lie or sit; leave out `rest`")
        sits = folded.copy()
        for leg in home.legs:
            if leg.hip[0] > np.mean([other.hip[0] for other in home.legs]):
                sits[list(leg.columns)] = home.angles[list(leg.columns)]
        rising = _rising(robot, home)
        risen = [] if rising is None else [*rising.postures, home.angles, *rising.turns]
        risen += [] if rising is None or rising.over_hands is None else [*rising.over_hands]
        postures = np.array([home.angles, home.angles, folded, home.angles, folded, folded, sits, *risen])
        if candidates is None:
            at_home = np.concatenate([robot.base.neutral(), home.angles])
            inertia, stable = np.diag(inertia_matrix(robot, at_home))[robot.base.nv :], _STABLE_ON_TWO
        else:
            inertia, stable = turning.bounding_inertias(robot, [home.angles, folded, *candidates]), _STABLE
        unit, rate = walker.planner.time_unit, walker.sampling_rate
        stiffness = np.minimum(_STIFFNESS * robot.mass * walker.gravity * walker.height, _STIFF * inertia * rate**2)
        damping = np.minimum(_DAMPING * unit * stiffness, stable * inertia * rate)
        motions = None
        if candidates is not None:
            servos = turning.Servos(stiffness, damping)
            motions = turning.turning_motions(robot, home, folded, candidates, servos, unit, _TRIAL_STEP / rate)
        fields = {"_postures": postures, "_stiffness": stiffness, "_damping": damping, "_walker": walker}
        prepared = replace(self, **fields, _rises=rising, _turning=motions)
        return super(Recovery, prepared).start(robot, ground, q, v)

    def mode(self, memory: Array) -> str:
        """Return the present mode of the robot, one of `MODES`.

        Args:
            memory: (m,), mixed units, such as a row of `Run.memory`.
        """
        return MODES[round(float(memory[0]))]

    @property
    def has_update(self) -> bool:
        """Whether the law has a discrete update: always."""
        return True

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the generalized forces, (nv,); arguments as in `GaitLaw.torque`."""
        own, law = _Memory.of(memory[: self._size]), memory[self._size :]
        walking = self._walking.torque(t, phase, q, v, wrenches, law, *command)
        return where(_walks(own.mode), walking, self._servos(t, q, v, own))

    def update(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the memory at the start of a time step, (m,); arguments as in `GaitLaw.torque`."""
        before, law = _Memory.of(memory[: self._size]), memory[self._size :]
        after = self._following(t, q, v, before, self._walking.memory(law).gait[1] > 0.5)
        walks = _walks(after.mode)
        fresh = where(walks & ~_walks(before.mode), self._walking.restart(t, q, v), law)
        if self._rises is not None:
            command = (where(after.mode > 0.5, 0.0, 1.0) * self._command(t, fresh, command),)
        walked = self._walking.update(t, phase, q, v, wrenches, fresh, *command)
        return np.concatenate([after.flat(), where(walks, walked, fresh)])

    def _fitted(self, robot: Robot) -> tuple[Self, Array]:
        return self, np.zeros(4 + robot.nj)

    @property
    def _walking(self) -> StartedLocomotion:
        """The started law."""
        if self._walker is None:
            raise DefinitionError("this Recovery has no robot; use the one that start(robot, ...) returns")
        return self._walker

    def _command(self, t: Any, law: Array, command: tuple[Array, ...]) -> Array:
        """Return the command of this time, (5,) to (7,), given that of a step and the memory of the law."""
        own = self._walking.commands
        if command:
            return command[0]
        if own is None or (isinstance(own, Command) and own.is_constant):
            return self._walking.memory(law).constant_command
        return np.asarray(own(t))

    def _following(self, t: Any, q: Array, v: Array, now: _Memory, steps: Any) -> _Memory:
        """Return the memory of the mode at this time, given whether the walking robot steps."""
        walker, unit = self._walking, self._walking.planner.time_unit
        robot, base = walker.robot, walker.home.base_height
        R, origin = robot.base.pose(q[: robot.base.nq])
        soles, _ = point_motion(robot, q, np.zeros(robot.nv), [(foot.link, foot.sole) for foot in walker.planner.feet])
        height = origin[2]
        for sole in soles:
            height = np.maximum(height, origin[2] - sole[2])
        if base <= 0.0:  # the frame of the base is at the feet, and its height tells nothing
            height = base + 1.0
        fell = (R[2, 2] < np.cos(_TILT)) | (height < _LOW * abs(base))
        upright = R[2, 2] > np.cos(_UPRIGHT)
        even = now.attempts - 2.0 * np.floor(0.5 * now.attempts)
        over = self._over(t, now, unit)
        posture, begins = 0.0 * even, float(DAMPS if self._turning is None else FOLDS)
        is_first = now.posture - 2.0 * np.floor(0.5 * now.posture) < 0.5
        if self._turning is not None:
            number = 2.0 * self._turning.number(R[2], even)
            posture = where(_is_mode(now.mode, TURNS), now.posture + 1.0, number)
        rising: tuple[Any, ...] = ()
        if self._rises is not None:
            begins, rising = self._following_on_two(
                q, v, now, over, t - now.since > _SETTLES * unit, R[2], height / abs(base), even
            )
        stands = upright & (height > _STANDS * abs(base))
        resting = 0.0 * t if self.rest is None else self.rest(t) + 0.0 * t
        asked = where(resting > 1.5, float(SITS), where(resting > 0.5, float(LIES), float(WALKS)))
        following = (
            where(fell, float(DAMPS), where(steps, float(WALKS), asked)),
            where(over, begins, float(DAMPS)),
            where(over, where(upright, float(STANDS_UP), float(TURNS)), float(FOLDS)),
            where(over, where(stands, float(WALKS), float(DAMPS)), float(STANDS_UP)),
            where(over & ((R[2, 2] > turning.UPRIGHT) | ~is_first), float(FOLDS), float(TURNS)),
            *[where(asked < 0.5, float(STANDS_UP), asked)] * 2,
            *rising,
        )
        mode = _of_mode(now.mode, following)
        turns = _is_mode(mode, TURNS)
        changes = ((mode - now.mode) * (mode - now.mode) > 0.5) | (over & turns)
        attempts = where(changes & turns & _is_mode(now.mode, FOLDS), now.attempts + 1.0, now.attempts)
        onto = changes & (mode > ONTO_RIGHT - 0.5) & (mode < FROM_LEFT + 0.5)
        attempts = where(onto, now.attempts + 1.0, where(mode < 0.5, 0.0, attempts))
        reached = q[robot.base.nq :]
        if self._rises is not None and self._rises.over_hands is not None:  # its springs remain under load
            reached = where(now.mode > SPREADS - 0.5, self._target(now.mode, now.posture), reached)
        return _Memory(
            mode,
            where(changes, t, now.since),
            attempts,
            where(changes, posture, now.posture),
            where(changes, reached, now.angles),
        )

    def _target(self, mode: Any, posture: Any) -> Array:
        """Return the posture of a mode, (nj,), [rad] or [m]; `posture` is its number in `TURNS`."""
        target = _of_mode(mode, self._postures)
        if self._turning is None:
            return target
        return where(_is_mode(mode, TURNS), _of_mode(posture, self._turning.postures.reshape(-1, target.size)), target)

    def _following_on_two(
        self, q: Array, v: Array, now: _Memory, over: Any, settled: Any, vertical: Array, height: Any, even: Any
    ) -> tuple[Any, tuple[Any, ...]]:
        """Return the mode with which a fallen robot with two legs begins, and those after each mode from `SPREADS` on.

        Args:
            q: Configuration, (nq,). v: Velocity, (nv,). now: The memory. over: Whether the time of the mode has passed.
            settled: Whether the mode has lasted longer than `_SETTLES`.
            vertical: Vertical components of the axes of the base, (3,), dimensionless.
            height: Of the base over the lowest foot, relative to that of the standing robot.
            even: 0 or 1, in turns, for the side to which the robot turns.
        """
        assert self._rises is not None
        rising, x, y, z = self._rises, *vertical
        share, difference, _ = self._capture_over_soles(q, v)
        over_soles = (share > _WITHIN) & (share < 1.0 - _WITHIN)
        on_soles = (difference < _LEVEL * self._walking.height) & (z > np.cos(_RISING_TILT)) & (height > _SQUATS)
        prone = (x < -_PRONE) | (z > np.cos(_UPRIGHT))
        onto = where(even > 0.5, float(ONTO_LEFT), float(ONTO_RIGHT))
        aside = where(y > 0.0, float(FROM_RIGHT), float(FROM_LEFT))
        start = where(prone, float(SPREADS), where(x > _PRONE, onto, aside))
        failed = (z < np.cos(_RISING_TILT)) | (height < _RISING_LOW)
        stands = (z > np.cos(_UPRIGHT)) & (height > _RISEN) & settled
        takes_over = on_soles & over_soles & (z > np.cos(_RAISED))
        drawn, over_hands = float(HEELS), ()
        if rising.over_hands is not None:
            drawn = float(ON_HANDS)
            over_hands = (
                where(over, float(LIFTS), float(ON_HANDS)),
                where(over, float(RAISES_TRUNK), float(LIFTS)),
                where(takes_over, float(RISES), where(over, float(STRAIGHTENS), float(RAISES_TRUNK))),
                where(takes_over, float(RISES), where(over, float(DAMPS), float(STRAIGHTENS))),
            )
        return start, (
            where(over, float(RAISES), float(SPREADS)),
            where(over, where(prone, float(BENDS), start), float(RAISES)),
            *(where(over, float(mode + 1), float(mode)) for mode in (BENDS, PUSHES)),
            where(over, drawn, float(DRAWS)),
            where(over, float(SQUATS), float(HEELS)),
            where(on_soles & over_soles, float(RISES), where(over, float(DAMPS), float(SQUATS))),
            where(stands, float(WALKS), where(over | failed, float(DAMPS), float(RISES))),
            *(where(over, start, float(mode)) for mode in (ONTO_RIGHT, ONTO_LEFT)),
            *(where(over, where(x > _PRONE, onto, float(SPREADS)), float(mode)) for mode in (FROM_RIGHT, FROM_LEFT)),
            *over_hands,
        )

    def _capture_over_soles(self, q: Array, v: Array) -> tuple[Any, Any, Any]:
        """Return the place of the capture point, and the difference of heights and the length of the soles, [m] each.

        The place is 0 at the heels and 1 at the toes; the heights are those of toes and heels.
        """
        assert self._rises is not None
        robot, rising = self._walking.robot, self._rises
        places, _ = point_motion(robot, q, np.zeros(robot.nv), [*rising.toes, *rising.heels])
        first, second, third, fourth = (place[2] for place in places)
        lowest = np.minimum(np.minimum(first, second), np.minimum(third, fourth))
        highest = np.maximum(np.maximum(first, second), np.maximum(third, fourth))
        ahead = 0.5 * (places[0] + places[1] - places[2] - places[3])[:2]
        capture = center_of_mass(robot, q) + self._walking.planner.time_unit / robot.mass * momentum(robot, q, v)[3:]
        beyond = (capture - 0.5 * (places[2] + places[3]))[:2]
        square = ahead @ ahead + 1e-12
        return beyond @ ahead / square, highest - lowest, np.sqrt(square)

    def _over(self, t: Any, now: _Memory, unit: float) -> Any:
        """Return whether the time of a mode has passed."""
        return t - now.since >= _of_mode(now.mode, [min(unit * x, 1e9) for x in _DURATIONS[: len(self._postures)]])

    def _servos(self, t: Any, q: Array, v: Array, now: _Memory) -> Array:
        """Return the generalized forces after a fall, (nv,): damping, and springs to the posture of the mode."""
        walker = self._walking
        robot, unit = walker.robot, walker.planner.time_unit
        lasts = _of_mode(now.mode, [unit * x for x in _MOVES[: len(self._postures)]])
        desired = turning.interpolated(now.angles, self._target(now.mode, now.posture), (t - now.since) / lasts)
        if self._rises is not None and self._rises.over_hands is not None:  # the ankles move the center of pressure
            share, _, length = self._capture_over_soles(q, v)
            shift = _ANKLES * length / walker.height * (share - _PLACE)
            shift = np.minimum(np.maximum(shift, -_MOST), _MOST)
            desired = desired - where(now.mode > ON_HANDS - 0.5, shift, 0.0) * self._rises.ankles
        spring = where((now.mode > DAMPS + 0.5), self._stiffness, np.zeros(robot.nj))
        joints = spring * (desired - q[robot.base.nq :]) - self._damping * v[robot.base.nv :]
        return np.concatenate([np.zeros(robot.base.nv), joints])


def _walks(mode: Any) -> Any:
    """Return whether the law acts in a mode."""
    return (mode < 0.5) | ((mode > RISES - 0.5) & (mode < RISES + 0.5))


def _rising(robot: Robot, home: Home) -> Rising | None:
    """Return the postures in which a robot with two legs rises, or None, with a warning, if it cannot."""
    if len(home.legs) > 2:
        return None
    try:
        return rising_postures(robot, home)
    except DefinitionError as error:
        warnings.warn(f"after a fall the robot remains damped: {error}", SimulationWarning, stacklevel=4)
        return None


def _is_mode(mode: Any, which: int) -> Any:
    """Return whether a mode is `which`."""
    return (mode > which - 0.5) & (mode < which + 0.5)


def _of_mode(mode: Any, values: Any) -> Any:
    """Return the value of a mode."""
    chosen = values[0]
    for k, value in enumerate(values[1:], 1):
        chosen = where(mode > k - 0.5, value, chosen)
    return chosen
