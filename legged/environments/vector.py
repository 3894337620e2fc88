"""`VectorEnvironment`: many robots that perform a task side by side, as a vector environment of Gymnasium."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.arguments import known_name, real_array, whole
from legged.compiler import Kernel, Members, check_threads, default_threads, thread_limit, trace
from legged.environments.physics import Physics
from legged.environments.task import Task
from legged.environments.transition import Transition
from legged.errors import ArgumentError, MissingError, NotFiniteError, ShapeError

try:
    import gymnasium as gymnasium
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode, VectorEnv
except ImportError as error:
    raise MissingError("environments need gymnasium: pip install 'legged[rl]'") from error

Array = np.ndarray
_LEAST = 2  # robots in each call of machine code: one alone would take the code for one state, which rounds differently
_AUTORESET = {
    "same_step": AutoresetMode.SAME_STEP,
    "next_step": AutoresetMode.NEXT_STEP,
    "disabled": AutoresetMode.DISABLED,
}


class VectorEnvironment(VectorEnv):
    """N robots that perform a task side by side, as a `gymnasium.vector.VectorEnv`.

    A control step is two calls of machine code for all robots, on any number of threads: the time steps with servos,
    motors and contacts; and the functions of the task with random numbers and the new starts of robots whose episode
    has ended. Results do not depend on the number of threads, and those of a robot not on the number of robots.

    Observations are those of the group `actor`, (N, k), or a dictionary of all groups if `groups` is true.
    Infos of `step`: `terms`, weight * function * period of each reward, (N, r), in the order of `Task.rewards`; where
    episodes have ended, `episode` with the return `r`, the number of control steps `l`, and the sum of each term by its
    name, and the mask `_episode`; with autoreset in the same step, `final_obs` and its mask `_final_obs`.

    Args:
        task: The task. num_envs: Number of robots, N.
        autoreset: When a robot whose episode has ended starts anew: "same_step", "next_step" or "disabled"; see
            `gymnasium.vector.AutoresetMode`.
        groups: Whether observations are a dictionary of all groups.
        threads: Number of threads; by default the number of processors.
        dtype: Type of the numbers of the time steps, "float64" or "float32"; observations are float32 anyway.
        first: Number of the first robot, by which random numbers of environments in several processes differ.

    Attributes:
        task: The task.

    Raises:
        ArgumentError, UnknownNameError, DefinitionError: An argument or a part of the task is wrong.
        TraceError: A function of the task cannot be traced; the message names it.
    """

    def __init__(
        self,
        task: Task,
        num_envs: int = 1,
        *,
        autoreset: str = "same_step",
        groups: bool = False,
        threads: int | None = None,
        dtype: Any = None,
        first: int = 0,
    ):
        self.task, self.num_envs = task, whole("num_envs", num_envs, 1)
        self._mode = _AUTORESET[known_name("autoreset mode", autoreset, _AUTORESET)]
        self.metadata = {
            "autoreset_mode": self._mode,
            "render_modes": [],
            "render_fps": round(1.0 / task.period),
        }
        self._groups, self._threads = groups, default_threads() if threads is None else check_threads(threads)
        self._physics = Physics(task, dtype)
        self._transition = Transition(task, self._physics, self._mode == AutoresetMode.SAME_STEP)
        layout, nj = self._transition.layout, task.robot.nj
        self._parts, number = layout, self._physics.element.dtype
        n, m = self._physics.size, layout.size
        shapes = {"state": (n,), "record": (m,), "seed": (), "member": ()}
        self._start = Kernel(trace(self._transition.start, shapes), "start", dtype=number)
        order = ("state", "record", "action", "failed", "seed", "member")
        shapes |= {"action": (nj,), "failed": ()}
        self._step = Kernel(trace(self._transition.step, {name: shapes[name] for name in order}), "step", dtype=number)
        self._sizes = dict(zip(task.observations, self._start.graph.outputs[2:], strict=True))
        N = max(self.num_envs, _LEAST)
        self._members = Members.at(np.zeros((N, n)), 0, number)
        self._record = np.repeat(self._transition.blank()[None].astype(number), N, axis=0)
        self._numbers = np.zeros((N, self._physics.parameters), number)
        self._actions = np.zeros((N, 2 * nj), number)
        self._member = (first + np.arange(N)).astype(number)
        self._seed = 0.0
        self._observed: dict[str, Array] = {}
        self._over = np.ones(self.num_envs, dtype=bool)
        self._advance: Any = None
        self.single_action_space = spaces.Box(-task.action_limit, task.action_limit, (nj,), np.float32)
        self.action_space = spaces.Box(-task.action_limit, task.action_limit, (self.num_envs, nj), np.float32)
        self.single_observation_space = self._space(())
        self.observation_space = self._space((self.num_envs,))

    def _space(self, lead: tuple[int, ...]) -> Any:
        boxes = {}
        for group, shape in self._sizes.items():
            limits = max(term.limit for term in self.task.observations[group].values())
            boxes[group] = spaces.Box(-limits, limits, (*lead, *shape), np.float32)
        return spaces.Dict(boxes) if self._groups else boxes["actor"]

    # States.

    @property
    def q(self) -> Array:
        """Configurations, (N, nq), mixed units; a copy."""
        return self._members.state[: self.num_envs, : self.task.robot.nq].copy()

    @property
    def v(self) -> Array:
        """Velocities, (N, nv), mixed units; a copy."""
        nq = self.task.robot.nq
        return self._members.state[: self.num_envs, nq : nq + self.task.robot.nv].copy()

    @property
    def commands(self) -> Array:
        """Commands, (N, nc), in their units; a copy."""
        return self._record[: self.num_envs, self._parts["command"]].copy()

    @commands.setter
    def commands(self, values: Any) -> None:
        at = self._parts["command"]
        given = real_array("commands", values)
        size = at.stop - at.start
        if given.shape not in ((size,), (self.num_envs, size)):
            raise ShapeError(f"commands must be ({size},) or ({self.num_envs}, {size}), got shape {given.shape}")
        self._record[: self.num_envs, at] = given

    @property
    def parameters(self) -> dict[str, Array]:
        """Numbers in which robots differ: name -> (N, ...), in the unit of the number; copies."""
        return {
            name: value.copy()
            for name, value in self._physics.at(self._record[: self.num_envs, self._parts["parameters"]]).items()
        }

    # Motion.

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start new episodes of all robots, or of those in `options["reset_mask"]`; return (observations, infos).

        Args:
            seed: Seed of the random numbers of all robots; None goes on with those of the last seed.
            options: `reset_mask`, (N,), bool; the other robots and their observations stay as they are.

        Raises:
            ArgumentError: The mask has another shape or type.
        """
        super().reset(seed=seed)
        mask = (options or {}).get("reset_mask")
        if mask is None:
            mask = np.ones(self.num_envs, dtype=bool)
        elif not isinstance(mask, np.ndarray) or mask.dtype != bool or mask.shape != (self.num_envs,) or not mask.any():
            raise ArgumentError(
                f"reset_mask must be an array of {self.num_envs} truth values, at least one of them true"
            )
        if not self._observed and not mask.all():
            raise ArgumentError("the first reset is one of all robots: leave out reset_mask")
        rows = np.arange(len(self._record)) if mask.all() else np.flatnonzero(mask)
        if seed is not None:
            self._seed = float(np.random.SeedSequence(seed).generate_state(1)[0] >> 8)
            self._record[rows, self._parts["count"]] = 0.0
        self._restart(rows)
        return self._shown(self._observed), {}

    def _restart(self, rows: Array) -> None:
        """Start new episodes of some robots.

        Args:
            rows: Their numbers, (k,), dimensionless.
        """
        members, rows = self._members, rows if len(rows) >= _LEAST else np.repeat(rows, _LEAST)
        with thread_limit(self._threads):
            state, record, found = self._start(members.state[rows], self._record[rows], self._seed, self._member[rows])
        members.state[rows], self._record[rows], members.outcome[rows] = state, record, 0.0
        for group, values in found.items():
            if group not in self._observed:
                self._observed[group] = np.zeros((len(members.state), *values.shape[1:]), np.float32)
            self._observed[group][rows] = values
        self._over[rows[rows < self.num_envs]] = False

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        """Advance all robots by a control step; return (observations, rewards, terminations, truncations, infos).

        Args:
            actions: (N, nj), dimensionless; see `Task.targets`.

        Raises:
            ShapeError, NotFiniteError: The actions have a wrong shape or are not finite; the robots do not change.
            ArgumentError: There was no `reset`, or with autoreset "disabled" a robot whose episode has ended.
        """
        nj, members, record = self.task.robot.nj, self._members, self._record
        given = np.asarray(actions)
        if given.shape != (self.num_envs, nj):
            raise ShapeError(f"actions must be ({self.num_envs}, {nj}), got shape {given.shape}")
        if not np.isfinite(given).all():
            raise NotFiniteError(
                f"the action of robot {int(np.flatnonzero(~np.isfinite(given).all(axis=1))[0])} is not finite"
            )
        if not self._observed:
            raise ArgumentError("call reset before the first step")
        ended = np.flatnonzero(self._over)
        if len(ended) and self._mode == AutoresetMode.DISABLED:
            raise ArgumentError(f"the episode of robot {ended[0]} has ended: call reset(options={{'reset_mask': ...}})")
        self._actions[: len(given), :nj], self._actions[:, nj:] = given, record[:, self._parts["action"]]
        np.copyto(self._numbers, record[:, self._parts["parameters"]])
        kept = members.state[ended], record[ended]
        if self._advance is None:
            self._advance = self._physics.prepared(members, self._numbers, self._actions)
        self._advance(self._threads)
        failed = (members.outcome[:, 0] != 0.0).astype(record.dtype)
        with thread_limit(self._threads):
            found = self._step(members.state, record, self._actions[:, :nj], failed, self._seed, self._member)
        members.state[:], self._record[:] = found.state, found.record
        if self._mode == AutoresetMode.SAME_STEP:
            members.outcome[:] = 0.0
        for group, values in found.observations.items():
            self._observed[group][:] = values
        own = slice(self.num_envs)
        rewards = found.reward[own].astype(np.float64)
        terminated, truncated = found.terminated[own] > 0.0, found.truncated[own] > 0.0
        infos: dict[str, Any] = {"terms": found.terms[own]}
        if len(ended):  # these start anew instead
            members.state[ended], self._record[ended] = kept
            self._restart(ended)
            rewards[ended], terminated[ended], truncated[ended] = 0.0, False, False
        over = terminated | truncated
        if over.any():
            self._add_ended(infos, found, over)
        self._over = over & (self._mode != AutoresetMode.SAME_STEP)
        return self._shown(self._observed), rewards, terminated, truncated, infos

    def _add_ended(self, infos: dict[str, Any], found: Any, over: Array) -> None:
        """Add returns, lengths and last observations of the episodes that have ended to the infos."""
        returns = np.where(over[:, None], found.returns[: len(over)], 0.0)
        names = {f"reward.{name}": returns[:, k] for k, name in enumerate(self.task.rewards)}
        infos["episode"] = {
            "r": returns.sum(axis=1),
            "l": np.where(over, found.length[: len(over)], 0.0).astype(int),
            **names,
        }
        infos["_episode"] = over
        if self._mode == AutoresetMode.SAME_STEP:
            final = np.full(self.num_envs, None, dtype=object)
            for i in np.flatnonzero(over):
                own = {group: values[i].astype(np.float32) for group, values in found.final.items()}
                final[i] = own if self._groups else own["actor"]
            infos["final_obs"], infos["_final_obs"] = final, over

    def _shown(self, observed: dict[str, Array]) -> Any:
        if self._groups:
            return {group: values[: self.num_envs].copy() for group, values in observed.items()}
        return observed["actor"][: self.num_envs].copy()
