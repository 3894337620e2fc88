"""`Reference`: a motion of a robot that a task follows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import controllers
from legged.algorithms.legs.standing import home_of
from legged.arguments import number
from legged.checked import checked
from legged.contact.rigid import Rigid
from legged.environments.state import State
from legged.environments.tasks.common import Rows
from legged.errors import ArgumentError, FileError, ShapeError
from legged.robot.robot import Robot
from legged.simulation.integrators import TimeStepping
from legged.simulation.results.run import Run
from legged.simulation.simulate import simulate

Array = np.ndarray


@checked
class Reference:
    """A motion, sampled at the control steps of a task.

    Args:
        robot: The robot, with a floating base.
        motion: A `Run`; the path of a saved run or of an npz file with the arrays t, q and perhaps v; such arrays in a
            mapping or as attributes of an object, which an optimized trajectory has; or (t, q) or (t, q, v): times
            (T,) [s], configurations (T, nq) and velocities (T, nv), mixed units. Without v, differences of q.
        period: Duration of a control step, [s].
        is_cyclic: Whether the motion repeats, each time from where the base has got to.

    Attributes:
        q, v: Configurations (n, nq) and velocities (n, nv), mixed units. period: [s]. is_cyclic: As above.
        displacement: Motion of the base in a cycle, (2,), [m], world axes.

    Raises:
        ArgumentError, ShapeError, NotFiniteError: The arrays do not fit the robot, or there are less than two samples.
        FileError: The file cannot be read.
    """

    def __init__(self, robot: Robot, motion: Any, period: float = 0.02, is_cyclic: bool = False):
        number("period", period, "s", above=0.0)
        run = _run_of(robot, motion)
        if run.q.shape[1:] != (robot.nq,) or run.v.shape[1:] != (robot.nv,):
            raise ShapeError(
                f"the reference has q {run.q.shape} and v {run.v.shape}, but robot {robot.name!r} needs "
                f"(T, {robot.nq}) and (T, {robot.nv})"
            )
        times = np.asarray(run.times) - run.times[0]
        count = int(times[-1] / period + 1e-6) + 1
        if count < 2:
            raise ArgumentError(f"the reference lasts {times[-1]:g} s, less than a control step, period {period:g} s")
        at = np.arange(count) * period
        q, v = np.array(run.q, dtype=float), np.asarray(run.v, dtype=float)
        turns = np.cumprod(np.where((q[1:, :4] * q[:-1, :4]).sum(axis=1) < 0.0, -1.0, 1.0))
        q[1:, :4] *= turns[:, None]
        q, v = (np.stack([np.interp(at, times, column) for column in x.T], axis=1) for x in (q, v))
        q[:, :4] /= np.linalg.norm(q[:, :4], axis=1, keepdims=True)
        self.period, self.is_cyclic = period, is_cyclic
        self.displacement = q[-1, 4:6] - q[0, 4:6]
        if is_cyclic:  # the last sample is the first one of the next cycle
            q, v = q[:-1], v[:-1]
        self.q, self.v = q, v
        self._rows = Rows(np.concatenate([q, v], axis=1))

    def __len__(self) -> int:
        return len(self.q)

    def _sample(self, s: State) -> tuple[Any, Any]:
        """Return (number of the sample, number of complete cycles) at a state."""
        k, n = s.memory.get("start", 0.0) + s.steps, float(len(self))
        if not self.is_cyclic:
            return np.minimum(k, n - 1.0), 0.0
        cycle = np.floor(k * (1.0 / n) + 0.5 / n)  # half a sample more: no error of rounding at whole cycles
        return k - n * cycle, cycle

    def phase(self, s: State) -> Any:
        """Return the phase of the motion at a state, from 0 to 1."""
        return self._sample(s)[0] * (1.0 / len(self))

    def at(self, s: State) -> tuple[Array, Array]:
        """Return (q, v) of the motion at a state, (nq,) and (nv,), mixed units."""
        number, cycle = self._sample(s)
        row, nq = self._rows(number), self.q.shape[1]
        q = row[:nq]
        if self.is_cyclic:
            q = np.concatenate([q[:4], q[4:6] + cycle * self.displacement, q[6:]])
        return q, row[nq:]

    @classmethod
    def of_locomotion(
        cls, robot: Robot, speed: float | None = None, duration: float = 4.0, period: float = 0.02
    ) -> Reference:
        """Return the motion of `controllers.Locomotion`, which walks or trots forward from a standing posture.

        Args:
            robot: The robot. speed: [m/s]; by default 0.2 sqrt(g h) with the height h of the base.
            duration: [s]. period: Duration of a control step, [s].
        """
        home = home_of(robot)
        if speed is None:
            speed = 0.2 * float(np.sqrt(np.linalg.norm(robot.gravity) * home.base_height))
        gait = "walk" if len(home.legs) == 2 else "trot"
        law = controllers.Locomotion(gait, command=controllers.Command(speed))
        run = simulate(robot, law, ground=Rigid(), until=duration, integrator=TimeStepping(0.002))
        return cls(robot, run, period)


def _run_of(robot: Robot, motion: Any) -> Run:
    """Return a motion of any kind as a run."""
    if isinstance(motion, Run):
        return motion
    if isinstance(motion, str | Path):
        arrays = _arrays_in(Path(motion))
        return Run.load(motion) if arrays is None else _run_of(robot, arrays)
    if isinstance(motion, tuple | list) and len(motion) in (2, 3):
        return Run.from_motion(robot, *motion)
    names = {"t": ("t", "times"), "q": ("q",), "v": ("v",)}
    known = motion if isinstance(motion, Mapping) else getattr(motion, "__dict__", {})
    parts = {}
    for name, others in names.items():
        parts[name] = next((known[other] for other in others if other in known), None)
        if parts[name] is None and not isinstance(motion, Mapping):
            parts[name] = next((getattr(motion, other) for other in others if hasattr(motion, other)), None)
    if parts["t"] is None or parts["q"] is None:
        raise ArgumentError(f"motion must be a run, a path, or times t and configurations q, got {type(motion)}")
    return Run.from_motion(robot, parts["t"], parts["q"], parts["v"])


def _arrays_in(path: Path) -> dict[str, Array] | None:
    """Return the arrays t, q and v of an npz file; None if it has no such arrays."""
    try:
        with np.load(path, allow_pickle=False) as file:
            if not {"t", "q"} <= set(file.files):
                return None
            return {name: file[name] for name in ("t", "q", "v") if name in file.files}
    except OSError as error:
        raise FileError(str(path), f"cannot be read: {error}") from error
    except ValueError:
        return None
