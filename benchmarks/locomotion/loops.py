"""Rollouts of the trials of a robot: one compiled closed loop for each kind of trial and each control law."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import controllers
import legged
from benchmarks.locomotion.trials import ACTUATED, DELAYED, PLAIN, RATES, STAIRS, STONES, UNKNOWN, WAVES, Trial
from benchmarks.locomotion.walkers import Walker
from legged import sweeps
from legged.errors import DefinitionError
from legged.ground import Slope, Stairs
from legged.spatial import Array

DURATION = {PLAIN: 5.0, RATES: 4.0, DELAYED: 4.0, ACTUATED: 4.0, STAIRS: 8.0, WAVES: 8.0, STONES: 8.0}  # [s]
PUSHED_AT = 2.5  # [s], time of the earliest push
SAMPLE = 0.01  # [s]
_STEP = legged.TimeStepping(2e-3)
_DELAY_PERIODS = 5
_STEPS, _DEPTH, _FIRST = 6, 1.2, 1.5  # stairs: number of steps, depth of each and distance of the first one, [h]
_WAVE = 6.0  # [h], length of waves
_STONE, _DEEP, _GAPS = 0.7, 0.4, 8  # stones: length of each and depth of the gaps, [h], and number of gaps
# Standard deviations of the noise of multiple 1:
_TILT, _PLACE, _ANGLE = 0.005, 0.003, 0.001  # [rad], [m], [rad]: orientation and place of the base, joints
_TURN, _DRIFT, _RATE = 0.05, 0.03, 0.1  # [rad/s], [m/s], [rad/s]: velocities of the base, joints


@dataclass(frozen=True, eq=False)
class Motions:
    """The motions of trials.

    Attributes:
        trials: The trials.
        runs: Their rollout.
        tau: Generalized forces of the controller, (B, T, nv), [N m] or [N]; None if they are not in its memory.
    """

    trials: list[Trial]
    runs: legged.Rollouts
    tau: Array | None


@dataclass(frozen=True)
class Waves:
    """Ground whose height along x is a sine wave.

    Attributes:
        inclination: Of the steepest part, [rad].
        length: From crest to crest, [m].
        start: Place of a trough along x, [m].
    """

    inclination: float
    length: float
    start: float = 0.0

    def height(self, x: Any, y: Any) -> Any:
        """Return the height of the surface at (x, y), [m], world z."""
        k = 2.0 * np.pi / self.length
        return np.tan(self.inclination) / k * (1.0 - np.cos(k * (x - self.start))) + 0.0 * y

    def normal(self, x: Any, y: Any) -> Any:
        """Return the outward unit normal at (x, y), (..., 3), world axes."""
        slope = np.tan(self.inclination) * np.sin(2.0 * np.pi / self.length * (x - self.start)) + 0.0 * y
        up = 1.0 / np.sqrt(1.0 + slope * slope)
        return np.stack([-slope * up, 0.0 * up, up], axis=-1)


def simulate(setup: sweeps.Setup, walker: Walker, trials: list[Trial]) -> Motions:
    """Return the motions of trials by the setup of these trials."""
    return motions_of(walker, trials, setup, setup.rollout({"trial": np.arange(len(trials))}))


def simulate_locomotion(walker: Walker, trials: list[Trial]) -> Motions:
    """Return the motions of trials of one kind under `Locomotion`."""
    return simulate(locomotion_setup(walker, trials), walker, trials)


def simulate_balanced(walker: Walker, trials: list[Trial]) -> Motions:
    """Return the motions of trials of one kind and one speed under `Balanced`, whose gait has a stride, no command."""
    return simulate(balanced_setup(walker, trials), walker, trials)


def motions_of(walker: Walker, trials: list[Trial], setup: sweeps.Setup, runs: legged.Rollouts) -> Motions:
    """Return the motions of some trials of a setup, with the generalized forces in the memory of `Locomotion`."""
    law = setup.controller
    while hasattr(law, "law"):
        law = law.law
    if not isinstance(law, controllers.Locomotion):
        return Motions(trials, runs, None)
    start, whole = law.initial_state(walker.robot), setup.controller
    own = len(law.start(walker.robot, None, *start)[1])
    if walker.equivalent is not None:
        whole = whole.on_closed_robot(walker.equivalent.closed)
        start = walker.equivalent.configuration(start[0]), np.zeros(walker.tree.nv)
    size = len(whole.start(walker.tree, None, *start)[1])
    return Motions(trials, runs, runs.rest[:, :, size - own : size - own + walker.robot.nv])


def locomotion_setup(walker: Walker, trials: list[Trial]) -> sweeps.Setup:
    """Return the setup of trials of one kind under `Locomotion`; its sample "trial" is the index of a trial."""
    kind, robot = trials[0].kind, walker.robot
    known = None if kind.startswith(UNKNOWN) else _terrain(walker, kind)
    law = replace(walker.law(walker.schedule(walker.gait)), terrain=known)
    loop, path = _wrapped(walker, law, kind)
    gaits = [walker.schedule(trial.gait or walker.gait) for trial in trials]
    names = ("vx", "vy", "yaw_rate")
    units = np.array([walker.speed, walker.speed, walker.turning])
    commands = units * np.array([trial.command for trial in trials])
    vary = {f"{path}command.{name}": commands[:, i] for i, name in enumerate(names)}
    vary |= {
        f"{path}gait.period": np.array([gait.period for gait in gaits]),
        f"{path}gait.duty": np.array([gait.duty for gait in gaits]),
        f"{path}gait.touchdowns": np.array([gait.touchdowns for gait in gaits]),
        f"{path}friction": np.array([trial.assumed for trial in trials]),
        f"{path}rate": np.array([trial.rate for trial in trials]),
    }
    paths = [] if known is None else [f"{path}terrain."]
    vary |= _terrain_values(walker, trials, *paths) | _plant_values(walker, trials)
    starts = [replace(law, terrain=_terrain(walker, kind, trial)).initial_state(robot)[0] for trial in trials]
    own = walker.equivalent
    q = np.array(starts if own is None else [own.configuration(q) for q in starts])
    return _setup(walker, loop, trials, [gait.period for gait in gaits], q, np.zeros(walker.tree.nv), vary)


def balanced_setup(walker: Walker, trials: list[Trial]) -> sweeps.Setup:
    """Return the setup of trials of one kind and one speed under `Balanced`; as `locomotion_setup`."""
    robot, kind = walker.robot, trials[0].kind
    motion = controllers.Walk if walker.feet == 2 else controllers.Tripod if walker.feet == 6 else controllers.Trot
    usual = controllers.suited(motion, robot, home=walker.home)
    period = usual.gait.period
    gait = controllers.suited(motion, robot, home=walker.home, stride=trials[0].command[0] * walker.speed * period)
    law = controllers.suited_law(controllers.Balanced, gait)
    loop, _ = _wrapped(walker, law, kind)
    level, v = law.initial_state(robot)
    starts = [
        replace(walker.law(), terrain=Slope(trial.slope)).initial_state(robot)[0] if trial.slope else level
        for trial in trials
    ]
    vary = _terrain_values(walker, trials) | _plant_values(walker, trials)
    periods = [2.0 * period] * len(trials)
    return _setup(walker, loop, trials, periods, np.array(starts), v, vary)


def _wrapped(walker: Walker, law: Any, kind: str) -> tuple[Any, str]:
    """Return the law in the wrappers of a kind of trials, and the path to the law in the names of its parameters."""
    if kind in (PLAIN, RATES):
        zero = np.zeros(walker.tree.nv)
        nominal = controllers.NominalModel(law, walker.tree)
        return controllers.SensorNoise(nominal, zero, zero, frequency=500.0), "controller.law.law."
    if kind == DELAYED:
        return controllers.Delay(law, delay=0.005, frequency=_DELAY_PERIODS / 0.005), "controller.law."
    if kind == ACTUATED:
        lag = controllers.ActuatorLag(controllers.NominalModel(law, walker.tree), 0.004)
        return lag, "controller.law.law."
    return law, "controller."


def _terrain(walker: Walker, kind: str, trial: Trial | None = None) -> Slope | Stairs | Waves:
    h, size, start, kind = walker.height, 0.0, 0.0, kind.removeprefix(UNKNOWN)
    if trial:
        size, start = trial.rise, trial.start
    if kind == WAVES:
        return Waves(size, _WAVE * h, start * h)
    if kind == STAIRS:
        return Stairs(tuple(h * (_FIRST + start + _DEPTH * k) for k in range(_STEPS)), (h * size,) * _STEPS)
    if kind == STONES:
        gap = size or _STONE
        edges = [h * (_FIRST + start + (_STONE + gap) * k + end) for k in range(_GAPS) for end in (0.0, gap)]
        return Stairs(tuple(edges), (-_DEEP * h, _DEEP * h) * _GAPS)
    return Slope(trial.slope if trial else 0.0)


def _terrain_values(walker: Walker, trials: list[Trial], *paths: str) -> dict[str, Any]:
    """Return the varying parameters of the terrain, of the ground and of those at other paths."""
    terrains = [_terrain(walker, trial.kind, trial) for trial in trials]
    varying = {STAIRS: ("rises", "edges"), WAVES: ("inclination", "start"), STONES: ("edges",)}
    names = varying.get(trials[0].kind.removeprefix(UNKNOWN), ("angle",))
    values = {name: np.array([getattr(terrain, name) for terrain in terrains]) for name in names}
    return {f"{path}{name}": values[name] for path in ("ground.terrain.", *paths) for name in names}


def _plant_values(walker: Walker, trials: list[Trial]) -> dict[str, Any]:
    """Return the varying parameters of robot, ground, pushes and wrappers."""
    robot, kind = walker.tree, trials[0].kind
    values: dict[str, Any] = {"ground.friction": np.array([trial.friction for trial in trials])}
    if kind in (PLAIN, RATES):
        n = robot.nj
        position = np.concatenate([np.full(3, _TILT), np.full(3, _PLACE), np.full(n, _ANGLE)])
        velocity = np.concatenate([np.full(3, _TURN), np.full(3, _DRIFT), np.full(n, _RATE)])
        noise = np.array([[trial.noise] for trial in trials])
        values |= {"controller.position": noise * position, "controller.velocity": noise * velocity}
        values["controller.seed"] = np.array([float(trial.seed) for trial in trials])
        mass, name = robot.mass * np.array([trial.payload for trial in trials]), f"{walker.trunk}.mass"
        if walker.equivalent is None:  # parameters of a robot with closed loops do not vary
            values[f"robot.{name}"] = float(robot.parameters()[name]) + mass
        elif mass.any():
            raise DefinitionError(f"the payload of {walker.name!r}, which has closed loops, cannot vary")
    if kind == DELAYED:
        delays = np.array([trial.delay for trial in trials])
        values |= {"controller.delay": delays, "controller.frequency": _DELAY_PERIODS / delays}
    if kind == ACTUATED:
        values["controller.time_constant"] = np.array([trial.lag for trial in trials])
        unit = robot.mass * walker.gravity * walker.height
        gears, known = unit * np.array([trial.gears for trial in trials]), robot.parameters()
        for joint in robot.joints:
            if f"{joint.name}.friction" in known:
                values[f"robot.{joint.name}.friction"] = float(known[f"{joint.name}.friction"]) + gears
    return values


def _setup(
    walker: Walker, law: Any, trials: list[Trial], periods: list[float], q: Array, v: Array, vary: dict[str, Any]
) -> sweeps.Setup:
    """Return the setup of trials from states q, (B, nq), and v, (nv,)."""
    kind = trials[0].kind
    pushes = []
    if kind == PLAIN:
        pushes = [legged.Push(walker.trunk, (0.0, 0.0, 0.0), at=PUSHED_AT)]
        angles = np.array([trial.direction for trial in trials])
        sizes = walker.robot.mass * walker.speed * np.array([trial.push for trial in trials])
        at = [PUSHED_AT + trial.phase * period for trial, period in zip(trials, periods, strict=True)]
        impulses = sizes[:, None] * np.stack([np.cos(angles), np.sin(angles), 0.0 * angles], axis=1)
        vary = vary | {"pushes.0.impulse": impulses, "pushes.0.at": np.array(at)}
    options = {
        "ground": legged.Rigid(friction=0.6, terrain=_terrain(walker, kind)),
        "v": v,
        "pushes": pushes,
        "integrator": _STEP,
    }
    values = vary | {"q": q}

    def of_trials(samples: dict[str, Array]) -> dict[str, Array]:
        chosen = samples["trial"].astype(int)
        return {name: np.asarray(x)[chosen] for name, x in values.items()}

    return sweeps.Setup(
        walker.plant, law, DURATION[kind.removeprefix(UNKNOWN)], {}, of_trials, sample=SAMPLE, options=options
    )
