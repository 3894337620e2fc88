"""Falls and rest: a law that damps the joints after a fall, stands up and goes on, and that lies and sits down."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from controllers.locomotion.falls import rising, turning
from controllers.locomotion.falls.trials import Servos, interpolated
from controllers.locomotion.locomotion import Locomotion
from controllers.locomotion.started_locomotion import StartedLocomotion
from controllers.wrappers.serial import OnSerialEquivalent
from controllers.wrappers.wrapper import Wrapper
from legged import arguments
from legged.algorithms.legs.rising import RisingPostures
from legged.algorithms.legs.standing import folded_posture
from legged.algorithms.legs.turning_postures import turning_postures
from legged.checked import checked
from legged.compiler.ir import where
from legged.contact.rigid import Rigid
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.kinematics import point_motion
from legged.errors import DefinitionError, SimulationWarning
from legged.ground.ground import Ground
from legged.loops.closed_robot import ClosedRobot
from legged.robot.robot import Robot
from legged.spatial import Array

MODES = ("walks", "damps", "folds its limbs", "stands up", "turns over", "lies", "sits", "rises")
WALKS, DAMPS, FOLDS, STANDS_UP, TURNS, LIES, SITS, RISES = range(8)
# Durations in units of sqrt(h / g), with the height h of the center of mass of the standing robot; of each mode, and of
# the motion to its posture from its beginning. Those of `RISES` depend on the posture.
_DURATIONS = np.inf, 6.0, turning.FOLDED, 10.0, turning.HOLDS, np.inf, np.inf
_MOVES = 1.0, 1.0, turning.FOLDS_WITHIN, 7.0, turning.MOVES, 7.0, 7.0
_STIFFNESS, _DAMPING = 2.0, 0.1  # [m g h / rad], and [sqrt(h / g)] times the stiffness, of the joints after a fall
_STIFF = 1.0  # [inertia of the joint / period of the law^2], largest stiffness, so that light joints do not chatter
_STABLE, _STABLE_ON_TWO = 1.0, 0.3  # [inertia / period of the law], largest damping; of `bounding_inertias`, and of M
_TILT = 1.0  # [rad], inclination of the base beyond which the robot has fallen
_UPRIGHT = 0.6  # [rad], inclination below which it can stand up
_LOW, _STANDS = 0.4, 0.75
"""Heights of the base over the lowest foot, relative to the standing posture: of a fall, and of a robot that stands."""
_CANDIDATES = 200  # random postures that the search for motions tries
_TRIAL_STEP = 2.0  # [period of the law], time step of trials, with implicit servos; with two legs 1.0, explicit
_ON_COURSE = 0.7  # least cosine of the angle between the direction upward, base axes, and that in the trials


class _Memory(NamedTuple):
    """Mode, its beginning, [s], and joint positions then, (nj,); attempts to turn over so far, number of the posture of
    a motion, and attempts to rise that failed."""

    mode: Any
    since: Any
    attempts: Any
    posture: Any
    failures: Any
    angles: Array

    @classmethod
    def of(cls, flat: Array) -> _Memory:
        return cls(flat[0], flat[1], flat[2], flat[3], flat[4], flat[5:])

    def flat(self) -> Array:
        return np.concatenate([np.stack(self[:5]), self.angles])


@checked
@dataclass(frozen=True, eq=False)
class Recovery(Wrapper):
    """`Locomotion` that stands up after a fall and goes on.

        sim = legged.Simulation(robot, controllers.Recovery(controllers.Locomotion("trot")), ground=ground, fall=False)

    A robot has fallen when its base is inclined by more than 1 rad, or lower than 0.4 of its height in the standing
    posture. Its joints are then damped. A robot with more than two legs folds its legs. On its side or its back it
    turns over by motions that simulations at the start have found (`controllers.locomotion.falls.turning`), folds its
    legs, and stretches them to the standing posture; the law then starts anew in the present place. For HyQ,
    HyQReal and HyQReal 2 none is found, and they mostly remain on their back.

    A robot with two legs and two arms first moves its arms sideways (mode "folds its limbs"), turns to its front, and
    rises by a motion that simulations at the start have found as well (`controllers.locomotion.falls.rising`): its
    hands push the trunk up, its legs are drawn under the trunk, it gets onto its soles, supported by its hands or by
    rolling over its toes from its heels, and raises its trunk; then the law starts anew. After an attempt that fails
    the next one is the second best motion, if the search has found two. If none is found
    (as for NAO, H1 and Talos), or if it has no two arms, it remains damped, with a warning at the start.
    The search for rising takes one to eight minutes and gives a warning; its result is kept in the cache folder. A
    robot that falls again repeats the sequence.

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
    _rising: rising.Rising | None = field(default=None, repr=False, kw_only=True)
    _balance: Callable[[Array, Array], Array] | None = field(default=None, repr=False, kw_only=True)
    _walker: StartedLocomotion | None = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.law, Locomotion) and self._walker is None:
            raise DefinitionError(f"Recovery needs a Locomotion as its law, got {type(self.law).__name__}")

    def on_closed_robot(self, closed: ClosedRobot) -> OnSerialEquivalent:
        """Return this law for a robot with closed loops; see `Locomotion.on_closed_robot`."""
        return OnSerialEquivalent(self, closed)

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> tuple[Self, Array]:
        """Return (law, memory); arguments and errors as in `Locomotion.start`."""
        assert isinstance(self.law, Locomotion)
        walker, _ = self.law.start(robot, ground, q, v)
        home = walker.home
        on_two, unit, rate = len(home.legs) == 2, walker.planner.time_unit, walker.sampling_rate
        if on_two and self.rest is not None:
            raise DefinitionError(f"robot {robot.name!r} has two legs, and does not lie or sit; leave out `rest`")
        rises, motions, candidates, balance, goal = None, None, None, None, np.array([0.0, 0.0, 1.0])
        folded = home.angles if on_two else folded_posture(robot, home)
        if on_two:
            at_home = np.concatenate([robot.base.neutral(), home.angles])
            inertia, stable = np.diag(inertia_matrix(robot, at_home))[robot.base.nv :], _STABLE_ON_TWO
        else:
            candidates = turning_postures(robot, home, folded, _CANDIDATES)
            inertia, stable = turning.bounding_inertias(robot, [home.angles, folded, *candidates]), _STABLE
        stiffness = np.minimum(_STIFFNESS * robot.mass * walker.gravity * walker.height, _STIFF * inertia * rate**2)
        damping = np.minimum(_DAMPING * unit * stiffness, stable * inertia * rate)
        servos, step = Servos(stiffness, damping, is_implicit=not on_two), (1.0 if on_two else _TRIAL_STEP) / rate
        if on_two:
            try:
                postures = RisingPostures(robot, home)
                balance = partial(postures.balancing_rotations, unit=unit)
                rises = rising.rising_motions(postures, replace(servos, balance=balance), unit, step)
                folded, goal = postures.nominal[0], rising.PRONE
                candidates = turning_postures(robot, home, folded, _CANDIDATES, postures.arms)
            except DefinitionError as error:
                message = f"after a fall the robot remains damped: {error}"
                warnings.warn(message, SimulationWarning, stacklevel=3)
        if candidates is not None:
            motions = turning.turning_motions(robot, folded, goal, candidates, servos, unit, step)
        sits = folded.copy()
        for leg in home.legs:
            if leg.hip[0] > np.mean([other.hip[0] for other in home.legs]):
                sits[list(leg.columns)] = home.angles[list(leg.columns)]
        modes = np.array([home.angles, home.angles, folded, home.angles, folded, folded, sits])
        fields = {"_postures": modes, "_stiffness": stiffness, "_damping": damping, "_walker": walker}
        prepared = replace(self, **fields, _rising=rises, _turning=motions, _balance=balance)
        return super(Recovery, prepared).start(robot, ground, q, v)

    def mode(self, memory: Array) -> str:
        """Return the present mode of the robot, one of `MODES`.

        Args:
            memory: (m,), mixed units, such as a row of `Run.memory`.
        """
        return MODES[round(float(arguments.rounded_array("memory", memory, (None,))[0]))]

    @property
    def has_update(self) -> bool:
        """Whether the law has a discrete update: always."""
        return True

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the generalized forces, (nv,); arguments as in `GaitLaw.torque`."""
        own, law = _Memory.of(memory[: self._size]), memory[self._size :]
        walking = self._walking.torque(t, phase, q, v, wrenches, law, *command)
        return where(own.mode < 0.5, walking, self._servos(t, q, v, own))

    def update(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the memory at the start of a time step, (m,); arguments as in `GaitLaw.torque`."""
        before, law = _Memory.of(memory[: self._size]), memory[self._size :]
        after = self._following(t, q, v, before, self._walking.memory(law).gait[1] > 0.5)
        walks = after.mode < 0.5
        fresh = where(walks & (before.mode > 0.5), self._walking.restart(t, q, v), law)
        walked = self._walking.update(t, phase, q, v, wrenches, fresh, *command)
        return np.concatenate([after.flat(), where(walks, walked, fresh)])

    def _fitted(self, robot: Robot) -> tuple[Self, Array]:
        return self, np.zeros(5 + robot.nj)

    @property
    def _walking(self) -> StartedLocomotion:
        """The started law."""
        if self._walker is None:
            raise DefinitionError("this Recovery has no robot; use the one that start(robot, ...) returns")
        return self._walker

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
        even = now.attempts - 2.0 * np.floor(0.5 * now.attempts)
        over = self._over(t, now, unit)
        vertical = R[2, 2] if self._rising is None else R[2] @ rising.PRONE
        has_turned = vertical > np.cos(_UPRIGHT)  # upright, or with two legs on its front
        posture, begins = 0.0 * even, float(DAMPS if self._turning is None else FOLDS)
        is_first = now.posture - 2.0 * np.floor(0.5 * now.posture) < 0.5
        if self._turning is not None:
            number = 2.0 * self._turning.number(R[2], even)
            posture = where(_is_mode(now.mode, TURNS), now.posture + 1.0, number)
        rises, stands_up = 0.0 * even, float(STANDS_UP)
        if self._rising is not None:
            is_last = now.posture > self._rising.moves.shape[1] - 1.5
            on_course = R[2] @ self._of_rising(now, self._rising.verticals) > _ON_COURSE
            ends = where(R[2, 2] > np.cos(_UPRIGHT), float(WALKS), float(DAMPS))
            rises = where(over, where(is_last, ends, where(on_course, float(RISES), float(DAMPS))), float(RISES))
            stands_up = float(RISES)
        stands = has_turned & (height > _STANDS * abs(base))
        resting = 0.0 * t if self.rest is None else self.rest(t) + 0.0 * t
        asked = where(resting > 1.5, float(SITS), where(resting > 0.5, float(LIES), float(WALKS)))
        following = (
            where(fell, float(DAMPS), where(steps, float(WALKS), asked)),
            where(over, begins, float(DAMPS)),
            where(over, where(has_turned, stands_up, float(TURNS)), float(FOLDS)),
            where(over, where(stands, float(WALKS), float(DAMPS)), float(STANDS_UP)),
            where(over & ((vertical > turning.UPRIGHT) | ~is_first), float(FOLDS), float(TURNS)),
            *[where(asked < 0.5, float(STANDS_UP), asked)] * 2,
            rises,
        )
        mode = _of_mode(now.mode, following)
        turns = _is_mode(mode, TURNS)
        changes = ((mode - now.mode) * (mode - now.mode) > 0.5) | (over & (turns | _is_mode(mode, RISES)))
        attempts = where(changes & turns & _is_mode(now.mode, FOLDS), now.attempts + 1.0, now.attempts)
        rose = _is_mode(now.mode, RISES)
        posture = where(_is_mode(mode, RISES), where(rose, now.posture + 1.0, 0.0), posture)
        return _Memory(
            mode,
            where(changes, t, now.since),
            where(mode < 0.5, 0.0, attempts),
            where(changes, posture, now.posture),
            where(rose & _is_mode(mode, DAMPS), now.failures + 1.0, now.failures),
            where(changes, where(rose, self._target(now), q[robot.base.nq :]), now.angles),
        )

    def _target(self, now: _Memory) -> Array:
        """Return the posture of a mode, (nj,), [rad] or [m]."""
        target = _of_mode(now.mode, self._postures)
        if self._turning is not None:
            turns = self._turning.postures.reshape(-1, target.size)
            target = where(_is_mode(now.mode, TURNS), _of_mode(now.posture, turns), target)
        if self._rising is not None:
            target = where(_is_mode(now.mode, RISES), self._of_rising(now, self._rising.postures), target)
        return target

    def _of_rising(self, now: _Memory, values: Array) -> Any:
        """Return the value of the present posture of the present motion; after a failure the next motion follows.

        Args:
            now: The memory. values: Of the postures of each motion, (n, 9, ...).
        """
        n, postures = values.shape[:2]
        number = now.failures - n * np.floor(now.failures / n)
        return _of_mode(postures * number + now.posture, values.reshape(n * postures, *values.shape[2:]))

    def _over(self, t: Any, now: _Memory, unit: float) -> Any:
        """Return whether the time of a mode has passed."""
        lasts = _of_mode(now.mode, [min(unit * x, 1e9) for x in _DURATIONS])
        if self._rising is not None:
            lasts = where(_is_mode(now.mode, RISES), unit * _of_mode(now.posture, rising.LASTS), lasts)
        return t - now.since >= lasts

    def _servos(self, t: Any, q: Array, v: Array, now: _Memory) -> Array:
        """Return the generalized forces after a fall, (nv,): damping, and springs to the posture of the mode."""
        walker = self._walking
        robot, unit = walker.robot, walker.planner.time_unit
        lasts = _of_mode(now.mode, [unit * x for x in _MOVES])
        if self._rising is not None:
            lasts = where(_is_mode(now.mode, RISES), unit * self._of_rising(now, self._rising.moves), lasts)
        desired = interpolated(now.angles, self._target(now), (t - now.since) / lasts)
        if self._rising is not None and self._balance is not None:
            balances = where(_is_mode(now.mode, RISES) & (now.posture > rising.BALANCES - 0.5), 1.0, 0.0)
            desired = desired + balances * self._balance(q, v)
        spring = where((now.mode > DAMPS + 0.5), self._stiffness, np.zeros(robot.nj))
        joints = spring * (desired - q[robot.base.nq :]) - self._damping * v[robot.base.nv :]
        return np.concatenate([np.zeros(robot.base.nv), joints])


def _is_mode(mode: Any, which: int) -> Any:
    """Return whether a mode is `which`."""
    return (mode > which - 0.5) & (mode < which + 0.5)


def _of_mode(mode: Any, values: Any) -> Any:
    """Return the value of a mode."""
    chosen = values[0]
    for k, value in enumerate(values[1:], 1):
        chosen = where(mode > k - 0.5, value, chosen)
    return chosen
