"""Arguments of the methods of `Simulation`: robots, states, commands and external wrenches, and their copies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from legged.arguments import SQUARED_NORM_TOLERANCE, rounded_array, shown
from legged.dynamics.arguments import read
from legged.errors import ArgumentError, ShapeError, UnknownNameError
from legged.loops.closed_robot import ClosedRobot
from legged.robot.configuration import quaternion_blocks
from legged.robot.robot import Robot
from legged.simulation.controller import needs_command
from legged.simulation.forces import beyond_range, check_range
from legged.simulation.loop.closed_chains import check_closed
from legged.simulation.loop.external_wrenches import LOAD, ExternalWrench, names_in
from legged.simulation.stepping.batch import RolloutBatch
from legged.simulation.stepping.engines import StepInput

Array = np.ndarray
_FLOAT = np.dtype(float)


class Commands:
    """The commands and the external wrenches of all robots in the present step.

    Args:
        batch: The robots. num: Number of robots, N; None for one robot without a leading axis.

    Attributes:
        held: The commands, (N, nu), any unit, a copy; None before the first one. It changes with each call of `hold`.
        places: (link, frame) of each place for a wrench. A call takes the first places that fit, and adds missing ones.
        has_wrenches: Whether any step has been given some.
    """

    def __init__(self, batch: RolloutBatch, num: int | None):
        self.held: Array | None = None
        self._num, self._dtype = num, batch.element.dtype
        # The lengths that a command may have; any length if empty, and a command is then required; None for no command.
        self._sizes: tuple[int, ...] | None = None
        self._is_required = False
        if getattr(batch.first.loop.controller, "takes_command", False):
            self._sizes = (batch.robot.nj, batch.robot.nv) if batch.sweep.nominal.controller is None else ()
            self._is_required = needs_command(batch.first.loop.controller)
        self._shape: tuple[int, ...] | None = None  # of the commands of all robots
        self._present = self._next = np.zeros((0, 0))  # two copies, (N, nu): the next command goes into the second
        self.places: list[tuple[str, str]] = []
        self.has_wrenches, self._names = False, names_in(batch.robot, batch.sweep.nominal.bodies)
        self._joined = np.zeros((num or 1, 0), self._dtype)  # commands and wrenches, (N, nu + 9 k)

    @property
    def given(self) -> StepInput:
        """The inputs of each step: the length of the command, and the places of the external wrenches so far."""
        return StepInput(None if self.held is None else self.held.shape[1], tuple(self.places))

    def hold(self, command: Any) -> Array:
        """Return the commands of all robots, `held`; a command that is refused leaves the one before.

        Args:
            command: (nu,), or (N, nu) with one for each robot, any unit.

        Raises:
            ArgumentError, ShapeError, NotFiniteError: As `Simulation.step`.
        """
        if type(command) is not np.ndarray or command.dtype not in (_FLOAT, self._dtype):
            command = rounded_array("command", command)
        if self._shape is None or command.shape not in (self._shape, self._shape[-1:]):
            self._check_shape(command.shape)
            size = rounded_array("command", command).shape[-1]
            self._shape = (size,) if self._num is None else (self._num, size)
            self._present, self._next = np.zeros((2, self._num or 1, size), self._dtype)
        if self._dtype is _FLOAT:
            self._next[:] = command
        else:
            with np.errstate(over="ignore"):  # numbers beyond those of float32 become infinite
                self._next[:] = command
        squares = np.vdot(self._next, self._next)  # not finite for entries that are not, and for very large ones
        if not math.isfinite(squares) and not np.isfinite(self._next).all():
            rounded_array("command", self._next.reshape(self._shape))  # raises the error that names the entry
        self._next, self._present = self._present, self._next
        self.held = self._present
        return self._present

    def clear(self) -> Array | None:
        """Set all commands to zero and return them, (N, nu), any unit.

        None before the first one, and for a law whose command has a default value, which it then takes.

        Raises:
            ShapeError: The controller needs a command.
        """
        if self._sizes == ():
            if self._is_required:
                raise ShapeError("the controller takes a command: step(command), an array (nu,), or (N, nu)")
            self.held = None  # the default value of the law
        if self.held is not None:
            self.held[:] = 0.0
        return self.held

    def known(self) -> Array | None:
        """Return the commands of the last step, (N, nu), any unit; None if there are none.

        Raises:
            ArgumentError: The controller needs a command and has not been given one.
        """
        if self.held is None and self._sizes == () and self._is_required:
            raise ArgumentError("tau and command are known after the first step, which gives the command")
        return self.held

    def hold_all(self, command: Any, wrenches: Any) -> Array:
        """Return commands and external wrenches side by side, (N, nu + 9 k), in an array that calls of one kind share.

        Args:
            command: As in `hold`, or None for that of `clear`. wrenches: An `ExternalWrench`, or several.

        Raises:
            ArgumentError, ShapeError, UnknownNameError: As `Simulation.step`; nothing changes.
        """
        places, numbers = self._placed(wrenches)
        held, self.has_wrenches, self.places = self.clear() if command is None else self.hold(command), True, places
        nu = 0 if held is None else held.shape[1]
        if self._joined.shape[1] != nu + LOAD * len(places):
            self._joined = np.zeros((len(numbers), nu + LOAD * len(places)), self._dtype)
        if held is not None:
            self._joined[:, :nu] = held
        self._joined[:, nu:] = numbers.reshape(len(numbers), -1)
        return self._joined

    def _placed(self, wrenches: Any) -> tuple[list[tuple[str, str]], Array]:
        """Return the places of all external wrenches, and their numbers, (N, k, 9), mixed units and frames."""
        given = [wrenches] if isinstance(wrenches, ExternalWrench) else wrenches
        if not (isinstance(given, list | tuple) and all(isinstance(wrench, ExternalWrench) for wrench in given)):
            raise ArgumentError(f"wrenches must be an ExternalWrench or a list of them, got {shown(wrenches)}")
        places, rows = list(self.places), dict[int, Array]()
        for wrench in given:
            if not wrench.is_constant:
                raise ArgumentError(
                    f"the external wrench on {wrench.link!r} of a step acts as long as the call: give force and torque "
                    f"as numbers, without start and duration; others are for `pushes` of the Simulation"
                )
            parts = [np.asarray(getattr(wrench, name)) for name in ("torque", "force", "point")]
            for name, part in zip(("torque", "force"), parts, strict=False):
                if part.shape not in ((3,), (self._num, 3)):
                    wanted = "(3,)" if self._num is None else f"(3,) or ({self._num}, 3)"
                    raise ShapeError(
                        f"the {name} of the external wrench on {wrench.link!r} must be {wanted}, got {part.shape}"
                    )
            if wrench.link not in self._names:
                raise UnknownNameError("link or free body", wrench.link, self._names)
            place = wrench.link, wrench.frame
            at = next((i for i, known in enumerate(places) if known == place and i not in rows), len(places))
            if at == len(places):
                places.append(place)
            rows[at] = np.concatenate([np.broadcast_to(part, (self._num or 1, 3)) for part in parts], axis=1)
        numbers = np.zeros((self._num or 1, len(places), LOAD))
        for at, row in rows.items():
            numbers[:, at] = row
        return places, numbers

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise an error if a command has a wrong shape, or the controller takes none."""
        if self._sizes is None:
            raise ArgumentError(
                "the controller takes no command; give it an argument `command`, as in law(t, q, v, wrenches, command)"
            )
        sizes = self._sizes if self._shape is None else self._shape[-1:]
        size, leads = shape[-1] if shape else 0, [()] if self._num is None else [(), (self._num,)]
        if shape not in [(*lead, size) for lead in leads] or (sizes and size not in sizes):
            wanted = " or ".join(str((*lead, n)) for lead in leads for n in dict.fromkeys(sizes or ("nu",)))
            raise ShapeError(f"the command must be {wanted.replace(chr(39), '')}, got shape {shape}")


def selected_robots(where: Any, num: int | None) -> Array:
    """Return the indices, (n,), in ascending order, of robots given by a mask, indices, or None for all.

    Raises:
        ArgumentError, ShapeError: `where` is neither.
    """
    count = 1 if num is None else num
    if where is None:
        return np.arange(count)
    try:
        chosen = np.asarray(where)
    except Exception:  # conversions of other libraries raise errors of any kind
        raise ArgumentError(f"where must be a mask or indices of robots, got {shown(where)}") from None
    if chosen.dtype == bool:
        if chosen.shape != (() if num is None else (count,)):
            raise ShapeError(f"where must be a mask ({count},), an entry per robot, got shape {chosen.shape}")
        return np.flatnonzero(chosen)
    if chosen.dtype.kind not in "iu" or chosen.ndim != 1:
        raise ArgumentError(f"where must be a mask or indices of robots, got {shown(where)}")
    if ((chosen < 0) | (chosen >= count)).any():
        raise ArgumentError(f"where names robot {int(chosen[(chosen < 0) | (chosen >= count)][0])} of {count}")
    return np.unique(chosen)


def rows_of(name: str, value: Any, count: int, size: int) -> Array:
    """Return an argument, (size,) or (count, size), as a row for each robot, (count, size), in its units.

    Raises:
        ShapeError: It has another shape.
    """
    rows = rounded_array(name, value)
    if rows.dtype == object or rows.shape not in ((size,), (count, size)):
        raise ShapeError(f"{name} must be ({size},), or ({count}, {size}) with a row per robot, got {rows.shape}")
    return np.broadcast_to(rows, (count, size))


def check_states(robot: Robot, closed: ClosedRobot | None, q: Array, v: Array) -> None:
    """Raise the error of the first state that is not valid.

    Args:
        robot: The robot. closed: The robot with closed loops, if it has some.
        q: Configurations, (n, nq), mixed units. v: Velocities, (n, nv), mixed units.
    """
    bad = beyond_range(robot, q)
    for entries, _ in quaternion_blocks(robot):
        bad |= np.abs((q[:, entries] ** 2).sum(axis=1) - 1.0) > SQUARED_NORM_TOLERANCE
    for i in np.flatnonzero(bad).tolist():
        read(robot, q=q[i], v=v[i])
        check_range(robot, q[i])
    if closed is not None:
        for q_i, v_i in zip(q, v, strict=True):
            check_closed(closed, q_i, v_i)
