"""`Policy`: a neural network as a controller, with the observations and servos of the task that it has learned."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from controllers.networks import Network
from controllers.zero_order_hold import is_sample_time, sample_times
from legged.arguments import array, instance, shown
from legged.compiler import Kernel
from legged.compiler import compile as compile_function
from legged.compiler.ir import Expression, where
from legged.contact.rigid import Rigid
from legged.errors import ArgumentError, ShapeError
from legged.ground.ground import Ground
from legged.robot.robot import Robot

Array = np.ndarray


class PolicyTask(Protocol):
    """Interface of the task of a policy: observations, targets and gains of servos; `legged.environments.Task` has it.

    Attributes:
        period: Time between two actions, [s]. kp, kd: Gains of the servos, (nj,), [N m/rad] and [N m s/rad].
        command_size: Number of entries of the command, nc.
    """

    @property
    def period(self) -> float: ...
    @property
    def kp(self) -> Any: ...
    @property
    def kd(self) -> Any: ...
    @property
    def command_size(self) -> int: ...
    def targets(self, action: Array) -> Array:
        """Return the targets of the servos, (nj,), [rad] or [m].

        Args:
            action: (nj,), dimensionless.
        """
        ...

    def observed(self, q: Array, v: Array, action: Array, last_action: Array, command: Array, steps: Any) -> Array:
        """Return the observation of the actor without noise, (k,); see `legged.environments.State`.

        A task whose actor observes memory has `actor_memory` and `remembered`, too, and the memory is the last argument
        of both functions; see `legged.environments.Task`.
        """
        ...


@dataclass(frozen=True, eq=False)
class Policy:
    """A feedback law by a neural network: at a fixed rate it maps observations to the targets of joint servos.

        task = legged.environments.velocity(robot)
        law = controllers.Policy(network, task)
        run = legged.simulate(robot, law, ground=legged.Rigid(), until=0.1, integrator=legged.TimeStepping(0.005))

    It needs an integrator with fixed steps, which starts a step at every action. The memory holds the present and the
    last action, (nj,) each, what the observations remember, `task.actor_memory`, and the state of the network.

    Attributes:
        network: The network, or a function from an observation, (k,), to an action, (nj,), dimensionless.
        task: The task: observations, servos, and the time between actions.
        command: The command, (nc,), in its units, of runs that give none; zero by default.

    Raises:
        ArgumentError: The network cannot be called, or the task lacks a part.
    """

    network: Any
    task: PolicyTask
    command: Any = None

    def __post_init__(self) -> None:
        if not callable(self.network):
            raise ArgumentError(f"network must be a Network or a function of an observation, got {shown(self.network)}")
        parts = ("period", "kp", "kd", "command_size", "targets", "observed")
        if missing := [name for name in parts if not hasattr(self.task, name)]:
            raise ArgumentError(
                f"task has no {', '.join(missing)}, got {shown(self.task)}; see legged.environments.Task"
            )
        if self.command is not None:
            object.__setattr__(self, "command", array("command", self.command, (self.task.command_size,)))

    def _check(self, robot: Robot) -> None:
        """Raise a `ShapeError` if the task is one of a robot with another number of joints."""
        instance("robot", robot, Robot, "a legged.Robot")
        if np.shape(self.task.kp) not in ((), (robot.nj,)):
            raise ShapeError(f"robot {robot.name!r} has {robot.nj} joints, but the task has {len(self.task.kp)} servos")

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> tuple[StartedPolicy, Array]:
        """Return (policy, memory) for a robot, the memory (m,); see `Controller.start`.

        Raises:
            ShapeError: The command, or the observations and actions of the network, have another size than the task.
        """
        self._check(robot)
        size, nj = self.task.command_size, robot.nj
        command = np.zeros(size) if self.command is None else self.command
        network = self.network
        states = network.memory if isinstance(network, Network) else 0
        kept = np.asarray(getattr(self.task, "actor_memory", np.zeros(0)))
        memory = np.concatenate([np.zeros(2 * nj), kept, np.zeros(states)])
        law = StartedPolicy(robot, network, self.task, command, len(kept))
        q, v = array("q", q, (robot.nq,)), array("v", v, (robot.nv,))
        action, _ = law.chosen(0.0, q, v, memory, command)
        if np.shape(action) != (nj,):
            raise ShapeError(f"the network returns actions of shape {np.shape(action)}, but the robot has {nj} joints")
        return law, memory

    def kernel(self, robot: Robot) -> Kernel:
        """Return the law as machine code: a function (t, q, v, memory, command) that returns (memory, torques).

        It is the controller of `legged.simulate`: at the times of the task it chooses an action from the observation,
        with the filters of observations and targets, and else keeps the last one; servos act at every call.
        `to_c` writes it as one C99 file.

        Args:
            robot: The robot. t is in seconds, q and v as everywhere, the memory, (m,), at the start that of `start`:
                zero, but for the start of `task.actor_memory` after 2 nj entries.
        """
        self._check(robot)
        law, memory = self.start(robot, None, robot.neutral(), np.zeros(robot.nv))

        def policy(t: Any, q: Array, v: Array, memory: Array, command: Array) -> tuple[Array, Array]:
            kept = law.update(t, 0.0, q, v, np.zeros(0), memory, command)
            return kept, law.torque(t, 0.0, q, v, np.zeros(0), kept, command)

        shapes: dict[str, Any] = {"t": (), "q": (robot.nq,), "v": (robot.nv,)}
        shapes |= {"memory": memory.shape, "command": law.command.shape}
        return compile_function(policy, **shapes)

    def to_c(self, robot: Robot, path: str | Path, precision: str | None = None) -> tuple[Path, Path]:
        """Write the law as one C99 file with its header, path.c and path.h; return their paths.

        The C function is that of `kernel`, `policy(&t, q, v, memory, command, new_memory, torques)`.

        Args:
            robot: The robot. path: Path of the files, with or without a suffix. precision: "double" or "float".
        """
        return self.kernel(robot).to_c(path, precision)

    def initial_state(self, robot: Robot) -> tuple[Array, Array]:
        """Return (q, v) in the posture of a zero action, (nq,) and (nv,), if the task knows its height."""
        self._check(robot)
        height = getattr(self.task, "height", None)
        if height is None:
            raise ArgumentError("the task of the policy has no height: give the initial state q")
        joints = self.task.targets(np.zeros(robot.nj))
        return np.concatenate([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, height], joints]), np.zeros(robot.nv)


@dataclass(frozen=True, eq=False)
class StartedPolicy:
    """A started `Policy`.

    Attributes:
        robot: The robot. network, task: As in `Policy`. command: The command of runs that give none, (nc,).
        remembered: Number of entries of what the observations remember.
    """

    robot: Robot
    network: Any
    task: PolicyTask
    command: Array
    remembered: int = 0

    def chosen(self, t: Any, q: Array, v: Array, memory: Array, command: Array) -> tuple[Array, Array]:
        """Return (action, next rest of the memory), (nj,) dimensionless and (m,); arguments as in `update`."""
        nj, steps = self.robot.nj, np.floor(t * (1.0 / self.task.period) + 0.5)
        given: tuple[Any, ...] = (q, v, memory[:nj], memory[nj : 2 * nj], command, steps)
        kept, state = memory[2 * nj :][: self.remembered], memory[2 * nj + self.remembered :]
        if self.remembered:
            task: Any = self.task
            kept = where(steps > 0.0, task.remembered(*given, kept), kept)
            given = (*given, kept)
        seen = self.task.observed(*given)
        if isinstance(self.network, Network):
            action, state = self.network(seen, state)
        else:
            action = self.network(seen)
        return action, np.concatenate([kept, state])

    def update(
        self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, command: Any = None
    ) -> Array:
        """Return the memory at the start of a time step at t, (m,): a new action at the times of the task.

        Args:
            t: Time, [s]. phase: Not used. q: Configuration, (nq,). v: Velocity, (nv,).
            wrenches: Not used, (n_links, 6), [N m] and [N], link axes.
            memory: Memory at the end of the previous time step, (m,). command: The command, (nc,), in its units.
        """
        due = is_sample_time(t, 1.0 / self.task.period)
        if not isinstance(due, Expression) and not due:
            return memory
        action, rest = self.chosen(t, q, v, memory, self.command if command is None else command)
        return where(due, np.concatenate([action, memory[: self.robot.nj], rest]), memory)

    def torque(
        self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, command: Any = None
    ) -> Array:
        """Return the torques of the servos, (nj,), [N m] or [N]; arguments as in `update`."""
        nj = self.robot.nj
        targets = self.task.targets(memory[:nj])
        if getattr(self.task, "torque_control", False):  # the targets are torques in place of kp target
            return targets - self.task.kp * q[-nj:] - self.task.kd * v[-nj:]
        return self.task.kp * (targets - q[-nj:]) - self.task.kd * v[-nj:]

    @property
    def implicit_gains(self) -> tuple[Array, Array]:
        """(K_p, K_d) of the servos, (nj,) each; see `Controller.implicit_gains`."""
        return np.asarray(self.task.kp), np.asarray(self.task.kd)

    def update_times(self, until: float) -> Array:
        """Return the times of actions between 0 and `until`, (n,), [s]."""
        return sample_times(until, 1.0 / self.task.period)

    @property
    def has_clock(self) -> bool:
        """Whether `update` must run at times of its own: always."""
        return True

    @property
    def takes_command(self) -> bool:
        """Whether it takes the command of `legged.Simulation.step`."""
        return True
