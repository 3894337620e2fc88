"""Parameters of a rollout: named fields that differ between members.

`ParameterSweep` sets named fields of controller, gait, ground, pushes and free bodies for each member.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from legged.arguments import known_name, real_array
from legged.checked import checked
from legged.contact.rigid import FreeBody, Rigid
from legged.errors import DefinitionError, LeggedError, NotFiniteError, ShapeError, UnknownNameError
from legged.ground.ground import Ground
from legged.robot.construction.parameters import ParameterVector
from legged.robot.robot import Robot
from legged.simulation.controller import ControllerLike, adapt
from legged.simulation.loop.external_wrenches import ExternalWrench, Push
from legged.simulation.stepping.parameter_tree import part_names, part_of, undeclared, with_parts

Array = np.ndarray
ROBOT = "robot."
"""Beginning of the names of the robot's own parameters; see `Robot.parameters`."""


@dataclass(frozen=True, eq=False)
class Setup:
    """Robot, controller, ground, pushes and free bodies of one member."""

    robot: Robot
    controller: Any
    ground: Ground | Rigid | None
    pushes: tuple[Push | ExternalWrench, ...]
    bodies: tuple[FreeBody, ...] = ()


@dataclass(frozen=True, eq=False)
class ParameterSweep:
    """The setups of all members of a rollout.

    Attributes:
        nominal: Setup without variations.
        values: Name of a field -> its value for each member, (B, ...), in the units of the field.
        count: Number of members, B.
    """

    nominal: Setup
    values: dict[str, Array]
    count: int

    @classmethod
    def of(
        cls,
        nominal: Setup,
        vary: Mapping[str, Any],
        states: Mapping[str, tuple[Any, int]],
        count: int | None = None,
    ) -> ParameterSweep:
        """Return the setups of all members after a check of names and shapes.

        Args:
            nominal: Setup without variations.
            vary: Name of a field, such as "gait.stride" -> value for each member, (B, ...), in the units of the field.
            states: "q", "v" -> (initial states as given, length of one state), which may determine B.
            count: B if it is known.

        Raises:
            UnknownNameError: A field does not exist.
            ShapeError: The numbers of members or the shapes of values disagree.
            NotFiniteError: A value is NaN or infinite.
            DefinitionError: A field does not hold numbers.
        """
        values = {name: _checked(name, value, _find(nominal, name)) for name, value in vary.items()}
        counts = {} if count is None else {"num": count}
        counts |= {name: len(value) for name, value in values.items()}
        for name, (array, size) in states.items():
            shape = np.shape(array)
            if array is not None and (len(shape) not in (1, 2) or shape[-1] != size):
                raise ShapeError(f"{name} must be ({size},), or (B, {size}) with a row per member, got shape {shape}")
            if len(shape) == 2:
                counts[name] = shape[0]
        if len(set(counts.values())) > 1:
            lengths = ", ".join(f"{name} {n}" for name, n in counts.items())
            hint = "; num is the number of robots" if "num" in counts else ""
            raise ShapeError(f"all that varies must have one entry per member; numbers of entries: {lengths}{hint}")
        if 0 in counts.values():
            raise ShapeError(f"a rollout needs at least one member, got none for {', '.join(counts)}")
        return cls(nominal, values, next(iter(counts.values()), 1))

    def member(self, i: int) -> Setup:
        """Return the setup of member i. The constructors of the changed objects check their values."""
        if not self.values:
            return self.nominal
        if i not in self._last:  # which a start asks for several times
            setup = replace(self.nominal, robot=self.robot(i))
            for name, present in self._present.items():
                if name.startswith(ROBOT):
                    continue
                try:
                    setup = _replaced(setup, _path(name), _value(self.values[name][i], present))
                except LeggedError as error:
                    error.add_note(f"This is for {name!r} of member {i}.")
                    raise
            self._last.clear()
            self._last[i] = setup
        return self._last[i]

    @cached_property
    def _last(self) -> dict[int, Setup]:
        """The last member."""
        return {}

    @cached_property
    def _present(self) -> dict[str, Any]:
        """Values of the varying fields in the nominal setup."""
        return {name: _find(self.nominal, name) for name in self.values}

    def present(self, names: Iterable[str]) -> dict[str, Array]:
        """Return the values of some fields for each member: name -> (B, ...), in the units of the fields.

        Raises:
            UnknownNameError: A field does not exist. DefinitionError: it does not hold numbers.
        """
        nominal = {name: _find(self.nominal, name) for name in names if name not in self.values}
        repeated = {name: _checked(name, [value] * self.count, value) for name, value in nominal.items()}
        return {name: self.values[name] if name in self.values else repeated[name] for name in names}

    def changed(self, values: Mapping[str, Any]) -> ParameterSweep:
        """Return the sweep with other values of some fields.

        Args:
            values: Name of a field -> its value for all members, (...), or for each, (B, ...), in its units.

        Raises:
            As `of`.
        """
        rows = dict[str, Any](self.values)
        for name, present in self.present(values).items():
            shared = real_array(repr(name), values[name]).shape == present.shape[1:]
            rows[name] = [values[name]] * self.count if shared else values[name]
        return ParameterSweep.of(self.nominal, rows, {}, self.count)

    def robot_numbers(self, i: int) -> Array:
        """Return the entries of the varying parameters of robot i, (n,), in the units of the parameters."""
        own = (x[i].ravel() for name, x in self.values.items() if name.startswith(ROBOT))
        return np.concatenate([np.zeros(0), *own])

    @cached_property
    def robot_parameters(self) -> ParameterVector:
        """The robot's parameters that vary."""
        return self.nominal.robot.parameter_vector([n.removeprefix(ROBOT) for n in self.values if n.startswith(ROBOT)])

    @cached_property
    def _robots(self) -> dict[bytes, Robot]:
        return {b"": self.nominal.robot}

    def robot(self, i: int) -> Robot:
        """Return the robot of member i; members with equal parameters share one."""
        numbers = self.robot_numbers(i)
        key = numbers.tobytes()
        if key not in self._robots:
            try:
                self._robots[key] = self.robot_parameters.applied(numbers)
            except LeggedError as error:
                error.add_note(f"This is for the robot of member {i}.")
                raise
        return self._robots[key]

    def key(self, i: int) -> bytes:
        """Return a key of member i that is equal for members with the same robot, controller, gait and ground."""
        own = (values for name, values in self.values.items() if name.split(".")[0] not in ("pushes", "bodies"))
        return b"".join(values[i].tobytes() for values in own)


def _path(name: str) -> list[str]:
    """Return the fields along a name; "gait" stands for "controller.gait"."""
    parts = name.split(".")
    return ["controller", *parts] if parts[0] == "gait" else parts


def _find(setup: Setup, name: str) -> Any:
    """Return the present value of a field."""
    if name.startswith(ROBOT):
        known = setup.robot.parameters()
        return known[known_name("robot parameter", name.removeprefix(ROBOT), known)]
    present: Any = setup
    seen: list[str] = []
    for part in _path(name):
        names = _names(present)
        if part not in (names or ()):
            if not seen:
                raise UnknownNameError("part of a rollout", part, [*(names or ()), "gait"])
            kind = type(present).__name__ if names is not None else _without_parameters(present)
            raise UnknownNameError(f"field of {'.'.join(seen)} ({kind})", part, names or ())
        present = part_of(present, part)
        seen.append(part)
    return present


def _names(x: Any) -> list[str] | None:
    """Return the names of the parts of a definition that its constructor takes; None if it declares none."""
    computed = {f.name for f in fields(x) if not f.init} if is_dataclass(x) else set()
    names = part_names(x)
    return None if names is None else [name for name in names if name not in computed]


def _without_parameters(x: Any) -> str:
    """Return the kind of an object that declares no parameters, and how to declare some."""
    if isinstance(x, FunctionType | MethodType):
        return "a function, which has no parameters: write a dataclass with a method `torque`"
    return "nothing" if x is None else f"{undeclared(x)}" if hasattr(x, "__dict__") else type(x).__name__


def _value(entry: Array, present: Any) -> Any:
    """Return the value of a field for a member, in the type of the present one: a float, an array or a tuple."""
    if entry.ndim == 0:
        return float(entry)
    return entry.copy() if isinstance(present, np.ndarray) or entry.ndim > 1 else tuple(entry.tolist())


@checked
def rollout_parameters(
    robot: Robot,
    controller: ControllerLike = None,
    *,
    ground: Ground | Rigid | None = None,
    pushes: Sequence[Push | ExternalWrench] = (),
    bodies: Sequence[FreeBody] = (),
) -> dict[str, Any]:
    """Return the parameters of a `rollout` that `vary` accepts: name -> present value, a number or an array, (...).

    The names begin with "robot" (the names of `Robot.parameters` follow), "controller", "gait" (that of the
    controller), "ground", "pushes" and "bodies". They are the keys of `vary` in `rollout` and `Simulation`.

    Args:
        robot: The robot. controller: The control law, or None. ground: The ground, or None.
        pushes: `Push`es and `ExternalWrench`es on links and free bodies. bodies: Free bodies.
    """
    adapt(controller)  # refuses an object that is no controller
    return numbers_of(Setup(robot, controller, ground, tuple(pushes), tuple(bodies)))


def numbers_of(setup: Setup) -> dict[str, Any]:
    """Return the numbers of a setup: name -> present value, a number or an array, (...); see `rollout_parameters`."""
    known = {ROBOT + name: value for name, value in setup.robot.parameters().items()}
    for part in (_names(setup) or ())[1:]:
        _list_numbers(getattr(setup, part), part, known, set())
    return {name.replace("controller.gait.", "gait.", 1): value for name, value in known.items()}


def _list_numbers(x: Any, path: str, known: dict[str, Any], seen: set[int]) -> None:
    """Add the fields inside an object that hold numbers, by name."""
    if x is None or isinstance(x, str | bool) or id(x) in seen:
        return
    try:
        numbers = np.asarray(x, dtype=float)
    except (TypeError, ValueError):
        for name in _names(x) or ():
            _list_numbers(part_of(x, name), f"{path}.{name}", known, seen | {id(x)})
    else:
        if numbers.size:
            known[path] = x


def _checked(name: str, value: Any, present: Any) -> Array:
    """Return the values of a field as floats, (B, *shape of the field)."""
    try:
        shape = np.asarray(present, dtype=float).shape
        if present is None:
            raise TypeError
    except (TypeError, ValueError):
        raise DefinitionError(
            f"{name!r} cannot vary: it holds {present!r}, not a number or numbers; give it a number first"
        ) from None
    array = real_array(repr(name), value).astype(float)
    if array.ndim == 0 or array.shape[1:] != shape:
        wanted = f"(B, {', '.join(map(str, shape))})" if shape else "(B,)"
        raise ShapeError(f"{name!r} must be {wanted}, a value per member, got shape {array.shape}")
    if not np.isfinite(array).all():
        worst = int(np.argwhere(~np.isfinite(array))[0, 0])
        raise NotFiniteError(f"{name!r} must be finite, got {array[worst]} for member {worst}")
    return array


def _replaced(x: Any, path: list[str], value: Any) -> Any:
    """Return a copy of x with a value at the end of a path; the objects along the path are constructed anew."""
    if not path:
        return value
    part = {path[0]: _replaced(part_of(x, path[0]), path[1:], value)}
    if isinstance(x, tuple | list | Mapping):
        return with_parts(x, {name: part_of(x, name) for name in part_names(x) or ()} | part)
    if is_dataclass(x) and not isinstance(x, type):
        return replace(x, **part)
    replaced = getattr(x, "__replace__", None)
    if replaced is not None:  # what follows from the attribute is computed anew
        return replaced(**part)
    copied = copy.copy(x)  # a class with `parameter_names`
    setattr(copied, *part.popitem())
    return copied
