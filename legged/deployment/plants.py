"""Simulated robots with simulated sensors: the toolkit's own simulation as an interface, and MuJoCo for a server."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from legged import conversions
from legged.checked import checked
from legged.contact.rigid import Rigid
from legged.deployment.interface import JointCommand, Measurement, steps_per_measurement
from legged.errors import MissingError
from legged.estimation.instruments import Instruments
from legged.estimation.readings import Reading
from legged.estimation.replay import instrument_kernel
from legged.files.mjcf.export import save_mjcf
from legged.robot.robot import Robot
from legged.simulation.integrators import TimeStepping
from legged.simulation.stepping.simulation import Simulation
from legged.spatial import Array


class _Sensors:
    """The instruments of a simulated robot as machine code, with their memory and the number of the next reading k."""

    def __init__(self, robot: Robot, instruments: Instruments, dt: float, q: Array, v: Array):
        started, self._memory = instruments.start(robot, q, v)
        self._kernel, self.k, self.feet = instrument_kernel(started, dt), 0, started.sensed.feet
        self._seed = float(instruments.seed)

    def read(self, q: Array, v: Array, torques: Array, forces: Array) -> Reading:
        """Return the readings at a state with contact forces on the feet, (n, 3), [N], world axes."""
        reading, self._memory = self._kernel(self._seed, float(self.k), self._memory, q, v, torques, forces)
        self.k += 1
        return reading


@checked
class SimulatedRobot:
    """The toolkit's own simulation as a `RobotInterface`; its clock is the time of the simulation.

    Args:
        robot: The robot, on rigid ground.
        q: Initial configuration, (nq,), mixed units. v: Initial velocity, (nv,), mixed units; zero by default.
        instruments: Sensors; by default `Instruments()`. ground: The ground; by default a rigid plane.
        rate: Measurements per second, [1/s]. step: Time step, [s].

    Raises:
        ArgumentError: The time between measurements is not a whole number of time steps.
    """

    def __init__(
        self,
        robot: Robot,
        q: Array,
        v: Array | None = None,
        *,
        instruments: Instruments | None = None,
        ground: Rigid | None = None,
        rate: float = 500.0,
        step: float = 2e-3,
    ):
        self.robot, self._every = robot, steps_per_measurement(rate, step)
        self.simulation = Simulation(
            robot, ground=ground or Rigid(), q=q, v=v, integrator=TimeStepping(step), fall=False
        )
        self._sensors = _Sensors(robot, instruments or Instruments(), 1.0 / rate, self.simulation.q, self.simulation.v)
        self._command, self._torques, self._steps, self._last_period = None, np.zeros(robot.nj), 0, -1
        names = list(self.simulation.contact_names)
        self._feet = [names.index(point.name) for point in self._sensors.feet]

    def read(self) -> Measurement | None:
        """Return a measurement of the present state, or None if none is due since the last one."""
        period = self._steps // self._every
        if period == self._last_period:
            return None
        self._last_period = period
        q, v = self.simulation.q, self.simulation.v
        reading = self._sensors.read(q, v, self._torques, self.simulation.contacts.forces[self._feet])
        return Measurement(float(self.simulation.t), reading, np.concatenate([q, v]))

    def write(self, command: JointCommand) -> None:
        """Set the command of the next time steps."""
        self._command = command

    def clock(self) -> float:
        """Return the time of the simulation, [s]."""
        return float(self.simulation.t)

    def sleep_until(self, time: float) -> None:
        """Advance the simulation to a time, [s]."""
        base = self.robot.base
        while self.simulation.t < time - 1e-9:
            if self._command is not None:
                joints, rates = self.simulation.q[base.nq :], self.simulation.v[base.nv :]
                self._torques = self._command.actuation(joints, rates)
            self.simulation.step(self._torques)
            self._steps += 1

    def close(self) -> None:
        """Do nothing, since a simulation holds no resources."""


@checked
class MujocoPlant:
    """A robot in MuJoCo on its floor, for `legged.deployment.serve`.

    Args:
        robot: The robot. q: Initial configuration, (nq,), mixed units.
        instruments: Sensors; by default `Instruments()`.
        rate: Measurements per second, [1/s], the same as that of `serve`. step: Time step, [s].
        disturb: Function (data, time) that may change the `mujoco.MjData` before each step, such as to push the robot.

    Raises:
        MissingError: MuJoCo is not installed.
        ArgumentError: The time between measurements is not a whole number of time steps.
    """

    def __init__(
        self,
        robot: Robot,
        q: Array,
        *,
        instruments: Instruments | None = None,
        rate: float = 500.0,
        step: float = 1e-3,
        disturb: Callable[[Any, float], None] | None = None,
    ):
        steps_per_measurement(rate, step)
        try:
            self._mujoco: Any = import_module("mujoco")
        except ImportError as error:
            raise MissingError("MuJoCo is not installed: pip install 'legged[mujoco]'") from error
        with tempfile.TemporaryDirectory() as folder:
            path = save_mjcf(robot, Path(folder) / "robot.xml", scene=True, time_step=step)
            self.model = self._mujoco.MjModel.from_xml_path(str(path))
        # The stiffest dry friction of MuJoCo: with its default, friction reverses 10 ms before the velocity does.
        self.model.dof_solref[:] = 2.0 * step, 1.0
        self.data, self._to = self._mujoco.MjData(self.model), conversions.mujoco(robot, self.model)
        self.robot, self.nj, self.step, self._disturb = robot, robot.nj, step, disturb
        self.data.qpos[:], self.data.qvel[:] = self._to.to_configuration(q), 0.0
        self._mujoco.mj_forward(self.model, self.data)
        self._torques = np.zeros(robot.nj)
        instruments = instruments or Instruments()
        self._sensors = _Sensors(robot, instruments, 1.0 / rate, *self.state)
        self._feet = {self.model.geom(point.name).id: k for k, point in enumerate(self._sensors.feet)}

    @property
    def state(self) -> tuple[Array, Array]:
        """The state (q, v) of the robot, (nq,) and (nv,), mixed units."""
        q = self._to.from_configuration(self.data.qpos)
        return q, self._to.from_velocity(self.data.qpos, self.data.qvel)

    def measured(self) -> Measurement:
        """Return the present measurement."""
        q, v = self.state
        reading = self._sensors.read(q, v, self._torques, self._forces())
        return Measurement(float(self.data.time), reading, np.concatenate([q, v]))

    def advance(self, command: JointCommand) -> None:
        """Take one time step under a command."""
        q, v = self.state
        base = self.robot.base
        self._torques = command.actuation(q[base.nq :], v[base.nv :])
        force = np.concatenate([np.zeros(base.nv), self._torques])
        self.data.qfrc_applied[:] = self._to.to_force(q, force)
        if self._disturb is not None:
            self._disturb(self.data, float(self.data.time))
        self._mujoco.mj_step(self.model, self.data)

    def _forces(self) -> Array:
        """Return the force on each foot, (n, 3), [N], world axes."""
        forces, wrench = np.zeros((len(self._feet), 3)), np.zeros(6)
        for k, contact in enumerate(self.data.contact):
            for geom, sign in ((contact.geom1, -1.0), (contact.geom2, 1.0)):  # MuJoCo gives the force on the second
                if geom in self._feet:
                    self._mujoco.mj_contactForce(self.model, self.data, k, wrench)
                    forces[self._feet[geom]] += sign * contact.frame.reshape(3, 3).T @ wrench[:3]
        return forces
