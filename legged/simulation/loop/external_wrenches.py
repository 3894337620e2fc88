"""External wrenches: forces and torques from outside that act on links and free bodies, such as pushes, wind and loads.

`Push` delivers a given impulse; `ExternalWrench` is constant or a function of time. A time step applies the mean of
each wrench over the step, the integral over the step divided by its length. The impulses of all steps therefore add up
to that of the wrench, whatever the lengths and starts of steps; a step need not begin where a wrench does.

The loads of k wrenches are an array (k, 9) with rows [torque; force; point]: torque [N m] and force [N] in the axes of
the wrench's `frame`, and the point of application, [m], link axes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from legged.arguments import known_name, real_array
from legged.checked import checked
from legged.compiler.ir import where
from legged.dynamics.kinematics import motion
from legged.errors import DefinitionError, NotFiniteError, ShapeError, UnknownNameError
from legged.robot.placement import Vector
from legged.robot.robot import Robot
from legged.spatial import cross, join, sum_of

Array = np.ndarray
SHORTEST = 1e-6
"""Shortest duration, [s]: a `Push` of less, or of zero, takes this long."""
FRAMES = ("world", "link")
_NODES = (0.5 * (1.0 - math.sqrt(0.6)), 0.5, 0.5 * (1.0 + math.sqrt(0.6)))  # of Gauss and Legendre on [0, 1]
_WEIGHTS = (5.0 / 18.0, 8.0 / 18.0, 5.0 / 18.0)


class External(Protocol):
    """Interface of external wrenches.

    Attributes:
        link: Name of the link or free body on which it acts.
        frame: "world" or "link": axes in which torque and force are given.
        edges: Times at which it is not smooth, [s].
    """

    @property
    def link(self) -> str: ...

    @property
    def frame(self) -> str: ...

    @property
    def edges(self) -> tuple[float, ...]: ...

    def _load_at(self, t: Any) -> Array:
        """Return [torque; force; point] at a time, (9,), [N m], [N] and [m]; see the module.

        Args:
            t: Time, [s].
        """
        ...

    def _mean_load(self, t: Any, h: Any) -> Array:
        """Return the mean of `_load_at` over a time step, (9,).

        Args:
            t: Start of the step, [s]. h: The step, [s].
        """
        ...


@checked
@dataclass(frozen=True)
class Push:
    """A force on a link or free body with the time profile of half a sine wave, which is continuous.

    Attributes:
        link: Name of the link, or of a free body.
        impulse: Integral of the force over time, (3,), [N s], world axes.
        at: Start time, [s].
        duration: Duration, [s]; zero for an impulse, which takes 1 us.
        point: Point of application, (3,), [m], link axes.
    """

    link: str
    impulse: Vector
    at: float
    duration: float = 0.1
    point: Vector = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        if not self.duration >= 0.0:
            raise DefinitionError(f"the duration of a push must not be negative, got {self.duration} s")
        for name in ("impulse", "point"):
            object.__setattr__(self, name, _numbers(name, getattr(self, name)))

    @property
    def frame(self) -> str:
        """Axes of the impulse: "world"."""
        return "world"

    @property
    def edges(self) -> tuple[float, float]:
        """Start and end time, [s]."""
        return self.at, self.at + max(self.duration, SHORTEST)

    def force(self, t: Any) -> Array:
        """Return the force, (3,), [N], world axes.

        Args:
            t: Time, [s].
        """
        return np.sin(np.pi * self._fraction(t)) * (0.5 * np.pi / self._length) * np.stack(list(self.impulse))

    def _load_at(self, t: Any) -> Array:
        """Return [torque; force; point] at a time, (9,), [N m], [N] and [m].

        Args:
            t: Time, [s].
        """
        return _load(np.zeros(3), self.force(t), self.point)

    def _mean_load(self, t: Any, h: Any) -> Array:
        """Return the mean of `_load_at` over a time step, (9,).

        Args:
            t: Start of the step, [s]. h: The step, [s].
        """
        share = 0.5 * (np.cos(np.pi * self._fraction(t)) - np.cos(np.pi * self._fraction(t + h)))  # of the impulse
        return _load(np.zeros(3), share / h * np.stack(list(self.impulse)), self.point)

    @property
    def _length(self) -> Any:
        return np.maximum(self.duration, SHORTEST)

    def _fraction(self, t: Any) -> Any:
        """Return the part of the duration that has passed, from 0 to 1."""
        return np.minimum(np.maximum((t - self.at) / self._length, 0.0), 1.0)


@checked
@dataclass(frozen=True)
class ExternalWrench:
    """A force and a torque on a link or free body, constant or as functions of time.

        wind = legged.ExternalWrench("trunk", force=(5.0, 0.0, 0.0))                                # [N], from t = 0
        tug = legged.ExternalWrench("trunk", force=lambda t: (0.0, 0.0, 20.0 * np.sin(t)), point=(0.2, 0.0, 0.0))
        thrust = legged.ExternalWrench("box", force=(0.0, 0.0, 30.0), frame="link", start=1.0, duration=0.5)

    Attributes:
        link: Name of the link, or of a free body.
        force: Force, [N]: (3,), or a function of time [s] that returns (3,). In `Simulation.step` also (N, 3), one for
            each robot.
        torque: Torque, [N m], likewise.
        point: Point of application of the force, (3,), [m], link axes: by default the origin of the link, not its
            center of mass.
        frame: Axes of force and torque: "world", or "link" for those of the link, with which they turn.
        start: Time at which it begins, [s].
        duration: How long it acts, [s]; infinite by default.

    Raises:
        DefinitionError, ShapeError, NotFiniteError: A field has a wrong shape or value.
    """

    link: str
    force: Any = (0.0, 0.0, 0.0)
    torque: Any = (0.0, 0.0, 0.0)
    point: Vector = (0.0, 0.0, 0.0)
    frame: str = "world"
    start: float = 0.0
    duration: float = math.inf

    def __post_init__(self) -> None:
        known_name("frame of an external wrench", self.frame, FRAMES)
        if not self.duration >= 0.0:
            raise DefinitionError(f"the duration of an external wrench must not be negative, got {self.duration} s")
        for name in ("force", "torque", "point"):
            if not (callable(getattr(self, name)) and name != "point"):
                what = f"the {name} of the external wrench on {self.link!r}"
                object.__setattr__(self, name, _numbers(what, getattr(self, name), per_robot=name != "point"))

    @property
    def edges(self) -> tuple[float, ...]:
        """Start and end time, [s]; without those at which it does not change."""
        return tuple(t for t in (self.start, self.start + self.duration) if 0.0 < t < math.inf)

    @property
    def has_function(self) -> bool:
        """Whether force or torque is a function of time."""
        return callable(self.force) or callable(self.torque)

    @property
    def is_constant(self) -> bool:
        """Whether force and torque are numbers, and act at all times."""
        return self.start <= 0.0 and self.duration == math.inf and not self.has_function

    def _load_at(self, t: Any) -> Array:
        """Return [torque; force; point] at a time, (9,), [N m], [N] and [m].

        Args:
            t: Time, [s].
        """
        acts = where((t >= self.start) & (t < self.start + self.duration), 1.0, 0.0) if self._has_edges else 1.0
        return _load(acts * self._value("torque", t), acts * self._value("force", t), self.point)

    def _mean_load(self, t: Any, h: Any) -> Array:
        """Return the mean of `_load_at` over a time step, (9,); of functions by Gaussian quadrature with three nodes.

        Args:
            t: Start of the step, [s]. h: The step, [s].
        """
        begin, end, share = t, t + h, 1.0
        if self._has_edges:
            last = self.start + self.duration
            begin, end = (np.minimum(np.maximum(x, self.start), last) for x in (begin, end))
            share = (end - begin) / h
        if not self.has_function:
            return _load(share * self._value("torque", t), share * self._value("force", t), self.point)
        nodes = [begin + x * (end - begin) for x in _NODES]
        torque, force = (
            sum_of([weight * self._value(name, x) for weight, x in zip(_WEIGHTS, nodes, strict=True)])
            for name in ("torque", "force")
        )
        return _load(share * torque, share * force, self.point)

    @property
    def _has_edges(self) -> bool:
        """Whether it begins or ends, or may do so where these numbers are traced."""
        numbers = isinstance(self.start, (int, float)) and isinstance(self.duration, (int, float))
        return not (numbers and self.start <= 0.0 and self.duration == math.inf)

    def _value(self, name: str, t: Any) -> Array:
        """Return force or torque at a time, (3,), [N] or [N m]."""
        value = getattr(self, name)
        if not callable(value):
            return np.stack(list(value))
        vector = np.asanyarray(value(t))
        if vector.shape != (3,):
            raise ShapeError(
                f"the {name} of the external wrench on {self.link!r} must return (3,), got shape {vector.shape}"
            )
        if vector.dtype != object and not np.isfinite(vector).all():
            raise NotFiniteError(f"the {name} of the external wrench on {self.link!r} is {vector} at t = {t:.6g} s")
        return vector


class StepWrench:
    """An external wrench whose numbers every time step is given; see `Simulation.step`.

    Attributes:
        link, frame: As in `ExternalWrench`. numbers: [torque; force; point], (9,), which may change in place.
    """

    edges = ()

    def __init__(self, link: str, frame: str, numbers: Array):
        self.link, self.frame, self.numbers = link, frame, numbers

    def _load_at(self, t: Any) -> Array:
        """Return the numbers, (9,); see `External._load_at`."""
        return self.numbers

    def _mean_load(self, t: Any, h: Any) -> Array:
        """Return the numbers, (9,); see `External._mean_load`."""
        return self.numbers

    def on(self, link: str) -> StepWrench:
        """Return the wrench under another name of its link."""
        return StepWrench(link, self.frame, self.numbers)


LOAD = 9
"""Length of a row of loads."""


def loads_at(wrenches: Sequence[External], t: Any) -> Array:
    """Return the loads at a time, (k, 9); see the module.

    Args:
        wrenches: The k wrenches. t: Time, [s].
    """
    return _rows([wrench._load_at(t) for wrench in wrenches])


def mean_loads(wrenches: Sequence[External], t: Any, h: Any) -> Array:
    """Return the means of loads over a time step, (k, 9); see the module.

    Args:
        wrenches: The k wrenches. t: Start of the step, [s]. h: The step, [s].
    """
    return _rows([wrench._mean_load(t, h) for wrench in wrenches])


def push_wrenches(
    robot: Robot, wrenches: Sequence[External], loads: Sequence[Array] | Array, q: Array, v: Array
) -> tuple[Array, Any]:
    """Return the wrenches of loads on the links, (n_links, 6), and their power, [W].

    Args:
        robot: The robot. wrenches: External wrenches on its links.
        loads: Their loads, (k, 9), mixed units and frames; see the module.
        q: Configuration, (nq,). v: Velocity, (nv,).

    Returns:
        Wrenches [n; f], [N m] and [N], about the origin of each link in its axes, and the power.
    """
    on_links, power, at = [np.zeros(6) for _ in robot.links], 0.0, motion(robot, q, v)
    for wrench, row in zip(wrenches, loads, strict=True):
        link = robot.link(wrench.link)
        n, f, r = row[:3], row[3:6], row[6:]
        if wrench.frame == "world":
            to_link = (at.rotation[link.body] @ link.rotation).T
            n, f = to_link @ n, to_link @ f
        own, twist = join(n + cross(r, f), f), at.twist[link.body]
        moved = twist[3:] + cross(twist[:3], link.position)
        power = power + own @ join(link.rotation.T @ twist[:3], link.rotation.T @ moved)
        on_links[link.index] = on_links[link.index] + own
    return np.stack(on_links), power


def names_in(robot: Robot, bodies: Sequence[Any]) -> dict[str, None]:
    """Return the names on which external wrenches can act, in order.

    Args:
        robot: The robot. bodies: The free bodies.
    """
    return dict.fromkeys([link.name for link in robot.links] + [body.name for body in bodies])


def check_wrenches(wrenches: Sequence[External], robot: Robot, bodies: Sequence[Any]) -> None:
    """Raise an error if a wrench acts on no link or body, or has numbers for each robot outside of a time step.

    Args:
        wrenches: The wrenches. robot: The robot. bodies: The free bodies.

    Raises:
        UnknownNameError: There is no such link or body. ShapeError: force or torque is (N, 3).
    """
    names = names_in(robot, bodies)
    for wrench in wrenches:
        if wrench.link not in names:
            raise UnknownNameError("link or free body" if bodies else "link", wrench.link, names)
        for name in ("force", "torque"):
            if isinstance(wrench, ExternalWrench) and np.ndim(getattr(wrench, name)) == 2:
                raise ShapeError(
                    f"the {name} of the external wrench on {wrench.link!r} must be (3,) here, got "
                    f"{np.shape(getattr(wrench, name))}; rows for each robot are for Simulation.step, or for vary"
                )


def _numbers(what: str, value: Any, per_robot: bool = False) -> Any:
    """Return (3,) as a tuple of floats, and (N, 3) as an array."""
    vector = real_array(what, value)
    if vector.shape != (3,) and not (per_robot and vector.ndim == 2 and vector.shape[1] == 3):
        raise ShapeError(f"{what} must be (3,), got shape {vector.shape}")
    if not np.isfinite(np.asarray(vector, dtype=float)).all():
        raise NotFiniteError(f"{what} must be finite, got {value}")
    return tuple(map(float, vector)) if vector.ndim == 1 else vector.astype(float)


def _load(torque: Array, force: Array, point: Any) -> Array:
    return np.concatenate([torque, force, np.stack(list(point))])


def _rows(rows: list[Array]) -> Array:
    return np.stack(rows) if rows else np.zeros((0, LOAD))
