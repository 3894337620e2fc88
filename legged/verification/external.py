"""Comparison with Pinocchio and MuJoCo, which read the file of the robot or the exported robot.

Only rigid-body dynamics are compared: friction, springs, armature and rotors are left out on both sides.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from legged import conversions
from legged.arguments import known_name
from legged.conversions import Conversion
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.inverse import inverse_dynamics
from legged.errors import DefinitionError, LeggedError, MismatchError, MissingError
from legged.files.mjcf.reader import captured_warnings
from legged.files.urdf.export import to_urdf
from legged.robot.base import FloatingBase, MovingBase
from legged.robot.physics import JointPhysics
from legged.robot.robot import Robot
from legged.spatial import Array
from legged.verification.laws import Sample


@dataclass(frozen=True, eq=False)
class Engine:
    """A dynamics engine with a model of the robot.

    Attributes:
        name: Name of the engine and source of its model.
        rigid: The robot without joint physics.
        to: Conversion of vectors.
        inverse: Inverse dynamics of the engine as a function of its vectors q, v, vdot.
        forward: Forward dynamics of the engine as a function of its vectors q, v, tau; the result may be overwritten by
            the next call.
        model: The model of the engine.
    """

    name: str
    rigid: Robot
    to: Conversion
    inverse: Callable[[Array, Array, Array], Array]
    forward: Callable[[Array, Array, Array], Array]
    model: Any

    @property
    def laws(self) -> dict[str, Callable[[Sample], float]]:
        """Compared quantities, and functions that return their relative errors."""
        return {"inverse dynamics": self._inverse, "inertia matrix": self._inertia}

    def _inverse(self, s: Sample) -> float:
        ours = inverse_dynamics(self.rigid, s.q, s.v, s.vdot)
        return s.force_error(self._engine_forces(s.q, s.v, s.vdot), ours, s.vdot)

    def _inertia(self, s: Sample) -> float:
        rest, ours = 0.0 * s.v, inertia_matrix(self.rigid, s.q)
        columns = [self._engine_forces(s.q, rest, e) - self._engine_forces(s.q, rest, rest) for e in np.eye(len(rest))]
        return s.inertia_error(s.inertia + np.array(columns).T - ours)

    def _engine_forces(self, q: Array, v: Array, vdot: Array) -> Array:
        to = self.to
        theirs = to.to_configuration(q), to.to_velocity(q, v), to.to_acceleration(q, v, vdot)
        return to.from_force(theirs[0], self.inverse(*theirs))


def open_engine(name: str, robot: Robot) -> Engine:
    """Return an engine with a model of the robot; errors as in `verify`."""
    makers = {"pinocchio": _pinocchio, "mujoco": _mujoco}
    known_name("program to compare with", name, makers)
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        package = {"pinocchio": "pin"}.get(name, name)
        raise MissingError(f"comparing with {name} needs it installed: pip install {package}") from error
    return makers[name](module, _rigid(robot))


def _rigid(robot: Robot) -> Robot:
    """Return the robot without joint physics, both in its bodies and in its joint definitions."""
    none = JointPhysics()
    connections = tuple(replace(c, joint=replace(c.joint, physics=none)) for c in robot.connections)
    bodies = tuple(replace(b, physics=none) for b in robot.bodies)
    base = replace(robot.base, armature=0.0, damping=0.0) if isinstance(robot.base, MovingBase) else robot.base
    return replace(robot, base=base, bodies=bodies, connections=connections)


def _own_file(robot: Robot, endings: tuple[str, ...]) -> Path | None:
    """Return the file of the robot if it has one of these suffixes and the robot was not repaired, else None."""
    if robot.audit is None or robot.audit.repaired:
        return None
    path = Path(robot.audit.source)
    return path if path.suffix.lower() in endings and path.is_file() else None


def _pinocchio(pin: Any, robot: Robot) -> Engine:
    free = (pin.JointModelFreeFlyer(),) if isinstance(robot.base, FloatingBase) else ()
    path = _own_file(robot, (".urdf",))
    if path is not None:
        try:
            model = pin.buildModelFromUrdf(str(path), *free)
            return _with_pinocchio(pin, robot, model, path.name)
        except LeggedError:  # joints were locked or removed after loading
            pass
    try:
        model = pin.buildModelFromXML(to_urdf(robot).decode(), *free)
    except (RuntimeError, ValueError) as error:
        raise MismatchError(f"Pinocchio cannot read robot {robot.name!r} as exported: {error}") from error
    return _with_pinocchio(pin, robot, model, "as exported")


def _with_pinocchio(pin: Any, robot: Robot, model: Any, source: str) -> Engine:
    model.gravity.linear = np.array(robot.gravity)
    data = model.createData()
    to = conversions.pinocchio(robot, model)
    inverse, forward = (partial(f, model, data) for f in (pin.rnea, pin.aba))
    return Engine(f"Pinocchio ({source})", robot, to, inverse, forward, model)


def _mujoco(mujoco: Any, robot: Robot) -> Engine:
    path = _own_file(robot, (".xml", ".mjcf"))
    if path is not None:
        try:
            with captured_warnings(mujoco):
                model = mujoco.MjModel.from_xml_path(str(path))
            return _with_mujoco(mujoco, robot, model, path.name)
        except LeggedError:  # joints were locked or removed after loading
            pass
    try:
        model = conversions.mujoco_model(robot)
    except DefinitionError as error:
        raise MismatchError(f"MuJoCo cannot read robot {robot.name!r} as exported: {error}") from error
    return _with_mujoco(mujoco, robot, model, "as exported")


def _with_mujoco(mujoco: Any, robot: Robot, model: Any, source: str) -> Engine:
    model.opt.gravity[:] = robot.gravity
    data = mujoco.MjData(model)

    def inverse(q: Array, v: Array, vdot: Array) -> Array:
        data.qpos[:], data.qvel[:], data.qacc[:] = q, v, vdot
        forces = np.zeros(model.nv)
        with captured_warnings(mujoco):
            mujoco.mj_fwdPosition(model, data)
            mujoco.mj_fwdVelocity(model, data)
            mujoco.mj_rne(model, data, 1, forces)
        return forces

    def forward(q: Array, v: Array, tau: Array) -> Array:
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, tau
        mujoco.mj_forward(model, data)
        return data.qacc

    return Engine(f"MuJoCo ({source})", robot, conversions.mujoco(robot, model), inverse, forward, model)
