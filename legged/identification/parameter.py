"""Parameters to identify, and the robot, motors, encoders and ground (the plant) with given values of them.

The names are those of `vary` in `legged.rollout`, "robot.<name of Robot.parameters>" and "ground.<field>", and these:

| name | meaning |
| --- | --- |
| `robot.<link>.inertia` | change of a link's inertial parameters, (10,), dimensionless; see `inertia_change` |
| `motors.<joint>.kp`, `motors.<joint>.kd` | gains of the servo, [N m/rad] and [N m s/rad], or [N/m] and [N s/m] |
| `motors.<joint>.delay` | time from a command to its effect, [s] |
| `motors.<joint>.gain` | torque of the motor over that which was commanded, dimensionless |
| `sensors.<joint>.offset` | reading of the joint's encoder minus the joint position, [rad] or [m] |

An entry of an array is named as in `legged.sweep`, "robot.trunk.center[2]". A name with `*` stands for one value that
all matching parameters share: "motors.*.delay".
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from legged.arguments import array, known_name
from legged.checked import checked
from legged.errors import DefinitionError, InertiaError
from legged.ground.ground import Ground
from legged.robot.inertia import Inertia
from legged.robot.robot import Robot
from legged.simulation import rollout_parameters
from legged.spatial import Array

PerJoint = float | Array | tuple[float, ...] | list[float]
_ENTRY = re.compile(r"(.+)\[(\d+(?:,\d+)*)\]")
_INERTIA_WIDTH = 0.5  # typical change of an entry of `inertia_change`
_MOTOR = ("kp", "kd", "delay", "gain")


@checked
@dataclass(frozen=True)
class Parameter:
    """A number to identify, or an array of such numbers, all with the same bounds.

    Attributes:
        nominal: Value from which the fit starts, [the parameter's unit]; None for that of the robot, motors or ground.
        lower, upper: Bounds, [the parameter's unit].
        frozen: Whether the parameter keeps its nominal value.
    """

    nominal: float | None = None
    lower: float = -np.inf
    upper: float = np.inf
    frozen: bool = False

    def __post_init__(self) -> None:
        if self.lower > self.upper or (self.lower == self.upper and not self.frozen):
            raise DefinitionError(f"the lower bound {self.lower} must lie below the upper bound {self.upper}")
        if self.nominal is not None and not self.lower <= self.nominal <= self.upper:
            raise DefinitionError(
                f"the nominal value {self.nominal} lies outside its bounds {self.lower}, {self.upper}"
            )


@checked
@dataclass(frozen=True, eq=False)
class Motors:
    """Servos of the joints: torque = gain (kp (command(t - delay) - reading) - kd rate), within the joint's limits.

    Commands that are torques give torque = gain command(t - delay). The reading is the joint position plus the offset
    of the encoder, the rate that of the joint. Between samples the command is interpolated linearly, so that
    predictions are differentiable in the delay.

    Attributes:
        kp: Position gains, [N m/rad] or [N/m], one or (n_joints,).
        kd: Rate gains, [N m s/rad] or [N s/m], one or (n_joints,).
        delay: Time from a command to its effect, [s], one or (n_joints,).
        gain: Torque over that which was commanded, dimensionless, one or (n_joints,).
    """

    kp: PerJoint = 0.0
    kd: PerJoint = 0.0
    delay: PerJoint = 0.0
    gain: PerJoint = 1.0

    def __post_init__(self) -> None:
        for name in _MOTOR:
            if (np.asarray(getattr(self, name)) < 0.0).any():
                raise DefinitionError(f"{name} of motors must not be negative, got {getattr(self, name)}")


@checked
def pseudo_inertia(inertia: Inertia) -> Array:
    """Return the pseudo-inertia, (4, 4), [kg m^2, kg m, kg]: [[tr(I)/2 1 - I, m c], [m c^T, m]], link axes.

    I is the inertia tensor about the link's origin. A body is physically possible if this matrix is positive definite.

    Args:
        inertia: Inertial parameters.

    Source: Wensing, Kim, Slotine 2018, "Linear matrix inequalities for physically-consistent inertial parameter
    identification: a statistical perspective on the mass distribution".
    """
    about, first = inertia.about_origin, inertia.mass * np.asarray(inertia.center)
    second = 0.5 * np.trace(about) * np.eye(3) - about
    return np.block([[second, first[:, None]], [first[None, :], np.array([[inertia.mass]])]])


@checked
def inertia_of(pseudo: Array) -> Inertia:
    """Return the inertial parameters of a pseudo-inertia.

    Args:
        pseudo: Pseudo-inertia, (4, 4), [kg m^2, kg m, kg], link axes.

    Raises:
        InertiaError: The matrix is not the pseudo-inertia of a body.
    """
    mass, center, tensor = _parts(array("pseudo", pseudo, (4, 4)))
    return Inertia(float(mass), center, (tensor + tensor.T) / 2)


def _parts(pseudo: Array) -> tuple[Any, Array, Array]:
    """Return mass, center of mass (3,) and inertia tensor about it (3, 3) of a pseudo-inertia, which may be traced."""
    mass, center = pseudo[3, 3], pseudo[:3, 3] / pseudo[3, 3]
    second = pseudo[:3, :3] - mass * np.outer(center, center)
    return mass, center, (second[0, 0] + second[1, 1] + second[2, 2]) * np.eye(3) - second


def inertia_change(inertia: Inertia, numbers: Array) -> tuple[Any, Array, Array]:
    """Return mass [kg], center of mass (3,) [m] and inertia tensor about it (3, 3) [kg m^2], link axes, after a change.

    With the pseudo-inertia P = U U^T and U upper triangular, the changed one is (U V)(U V)^T, where

        V = exp a [[exp d1, s12, s13, t1], [0, exp d2, s23, t2], [0, 0, exp d3, t3], [0, 0, 0, 1]]

    Any numbers give a physically possible body; zeros leave the body as it is.

    Args:
        inertia: Inertial parameters.
        numbers: (a, d1, d2, d3, s12, s23, s13, t1, t2, t3), (10,), [1].

    Raises:
        InertiaError: The body is a point, a line or a plate, whose pseudo-inertia is singular.

    Source: Rucker, Wensing 2022, "Smooth parameterization of rigid-body inertia"; here the parameters are relative to a
        body.
    """
    flipped = pseudo_inertia(inertia)[::-1, ::-1]
    try:
        U = np.linalg.cholesky(flipped)[::-1, ::-1]
    except np.linalg.LinAlgError:
        raise InertiaError("a point, a line or a plate has no log-Cholesky parameters; identify its mass") from None
    a, d1, d2, d3, s12, s23, s13, t1, t2, t3 = numbers
    V = np.array(
        [[np.exp(d1), s12, s13, t1], [0.0, np.exp(d2), s23, t2], [0.0, 0.0, np.exp(d3), t3], [0.0, 0.0, 0.0, 1.0]],
        dtype=object if np.asarray(numbers).dtype == object else float,
    )
    L = U @ (np.exp(a) * V)
    return _parts(L @ L.T)


@dataclass(frozen=True, eq=False)
class Plant:
    """A robot with its motors, encoders and ground, of numbers or traced scalars.

    Attributes:
        robot: The robot. ground: Compliant ground, or None.
        kp, kd, delay, gain, offset: Servos and encoder offsets of the joints, (n_joints,), as `Motors` states them.
    """

    robot: Robot
    ground: Ground | None
    kp: Array
    kd: Array
    delay: Array
    gain: Array
    offset: Array


class ParameterSet:
    """The free parameters of a plant as one vector.

    Args:
        robot: The robot. motors: Its servos. ground: Compliant ground, or None.
        parameters: Name or pattern -> parameter.

    Attributes:
        names: Names of the free entries, numbers to identify. nominal, lower, upper: Their nominal values and bounds,
            (n,).
        width: Scale of each entry, (n,): the distance between its bounds if they are finite, else the absolute nominal
            value, else a typical size.

    Raises:
        UnknownNameError: A name that the plant does not have, or a pattern that no name matches.
        DefinitionError: A parameter is given twice, its value lies outside of its bounds, or none is free.
    """

    def __init__(self, robot: Robot, motors: Motors, ground: Ground | None, parameters: Mapping[str, Parameter]):
        self.robot, self.ground = robot, ground
        self.joints = [joint.name for joint in robot.joints]
        self._known = self._values(motors)
        self._entries: list[tuple[str, tuple[int, ...], int | None, float]] = []  # field, index, free entry, value
        names, rows = [], []
        taken: set[tuple[str, tuple[int, ...]]] = set()
        for name, parameter in parameters.items():
            groups = self._targets(name)
            for label, targets in groups:
                value = parameter.nominal
                value = (
                    float(np.mean([self._known[field][index] for field, index in targets])) if value is None else value
                )
                if not parameter.lower <= value <= parameter.upper:
                    raise DefinitionError(f"{label} is {value:.6g}, outside of its bounds; give another nominal value")
                if repeated := taken.intersection(targets):
                    raise DefinitionError(f"{min(repeated)[0]} is given twice, the second time by {name!r}")
                taken.update(targets)
                column = None if parameter.frozen else len(names)
                self._entries += [(*target, column, value) for target in targets]
                if not parameter.frozen:
                    names.append(label)
                    rows.append((value, parameter.lower, parameter.upper))
        if not names:
            raise DefinitionError("no parameter is free: give at least one that is not frozen")
        self.names = tuple(names)
        self.nominal, self.lower, self.upper = np.array(rows).T
        spans = self.upper - self.lower
        sizes = np.array([_INERTIA_WIDTH if ".inertia[" in n else 1e-3 if n.endswith("delay") else 1.0 for n in names])
        self.width = np.where(np.isfinite(spans), spans, np.where(self.nominal == 0.0, sizes, np.abs(self.nominal)))

    def _values(self, motors: Motors) -> dict[str, Array]:
        """Return name -> value in the given robot, motors and ground of everything that can be a parameter."""
        known: dict[str, Any] = {}
        for name, value in rollout_parameters(self.robot, ground=self.ground).items():
            known[name] = np.asarray(value, float)
        for link in self.robot.links:
            if link.inertia.mass:
                known[f"robot.{link.name}.inertia"] = np.zeros(10)
        n = len(self.joints)
        for field in _MOTOR:
            value = np.asarray(getattr(motors, field), float)
            if value.shape not in ((), (n,)):
                raise DefinitionError(f"{field} of motors must be one number or ({n},), got shape {value.shape}")
            known |= {f"motors.{j}.{field}": x for j, x in zip(self.joints, np.broadcast_to(value, n), strict=True)}
        return known | {f"sensors.{j}.offset": np.zeros(()) for j in self.joints}

    def _targets(self, name: str) -> list[tuple[str, list[tuple[str, tuple[int, ...]]]]]:
        """Return, for each entry of a name or pattern, (its name, the [(field, index)] that have its value)."""
        match = _ENTRY.fullmatch(name)
        base, index = (match[1], tuple(map(int, match[2].split(",")))) if match else (name, None)
        fields = [k for k in self._known if fnmatchcase(k, base)] if "*" in base else []
        fields = fields or [known_name("parameter", base, self._known)]
        shapes = {self._known[field].shape for field in fields}
        if len(shapes) > 1:
            raise DefinitionError(f"the parameters that {name!r} matches have different shapes {sorted(shapes)}")
        shape = shapes.pop()
        if index is not None and (len(index) != len(shape) or any(i >= n for i, n in zip(index, shape, strict=True))):
            raise DefinitionError(f"{base} has shape {shape}, so that {name!r} names no entry of it")
        indices: Iterable[tuple[int, ...]] = np.ndindex(shape) if index is None else [index]
        if index is None and base.endswith(".tensor"):
            raise DefinitionError(f"{name!r} would not stay physically possible; identify the link's inertia instead")
        return [(f"{base}[{','.join(map(str, i))}]" if i else base, [(field, i) for field in fields]) for i in indices]

    def values_by_name(self, numbers: Array) -> dict[str, Any]:
        """Return name -> value of every parameter, free or frozen.

        Args:
            numbers: Values of the free entries, (n,), mixed units, which may be traced.
        """
        values: dict[str, Any] = {}
        for field, index, column, value in self._entries:
            if field not in values:
                values[field] = np.array(self._known[field], object if np.asarray(numbers).dtype == object else float)
            values[field][index] = value if column is None else numbers[column]
        return values

    def plant(self, numbers: Array) -> Plant:
        """Return the plant with values of the free entries.

        Args:
            numbers: Values of the free entries, (n,), mixed units, which may be traced.
        """
        values = {name: x if x.ndim else x[()] for name, x in self.values_by_name(numbers).items()}
        robot_values: dict[str, Any] = {}
        for name, value in values.items():
            field = name.removeprefix("robot.")
            if not name.startswith("robot."):
                continue
            if not field.endswith(".inertia"):
                robot_values[field] = value
                continue
            link = self.robot.link(field.removesuffix(".inertia"))
            parts = inertia_change(link.inertia, value)
            robot_values |= {f"{link.name}.{k}": x for k, x in zip(("mass", "center", "tensor"), parts, strict=True)}
        ground = self.ground
        for name, value in values.items():
            if name.startswith("ground."):
                ground = _with_value(ground, name.split(".")[1:], value)
        arrays = [
            np.array([values.get(name, self._known[name]) for name in (f"{part}.{j}.{field}" for j in self.joints)])
            for part, field in (*(("motors", field) for field in _MOTOR), ("sensors", "offset"))
        ]
        return Plant(self.robot.with_parameters(robot_values) if robot_values else self.robot, ground, *arrays)

    def delays(self) -> tuple[Array, Array]:
        """Return the delays that are not free, (n_joints,), [s], and the index of the free entry or -1, (n_joints,)."""
        fixed, columns = np.zeros(len(self.joints)), np.full(len(self.joints), -1)
        for i, joint in enumerate(self.joints):
            name = f"motors.{joint}.delay"
            entries = [entry for entry in self._entries if entry[0] == name]
            fixed[i] = entries[0][3] if entries else float(self._known[name])
            columns[i] = -1 if not entries or entries[0][2] is None else entries[0][2]
        return fixed, columns


def _with_value(x: Any, path: list[str], value: Any) -> Any:
    """Return a copy of a frozen definition with another value at a path; checks are skipped, as it may be traced."""
    if isinstance(x, tuple | list):
        i = int(path[0])
        return type(x)([_with_value(part, path[1:], value) if k == i else part for k, part in enumerate(x)])
    new = copy.copy(x)
    part = value if len(path) == 1 else _with_value(getattr(x, path[0]), path[1:], value)
    object.__setattr__(new, path[0], part)
    return new
