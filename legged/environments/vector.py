"""`VectorEnvironment`: many robots that perform a task side by side, as a vector environment of Gymnasium."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from legged.arguments import instance, known_name, real_array, shown, whole
from legged.compiler import BatchKernel, FusedCalls, Members, check_threads, default_threads, diagnose
from legged.environments.physics import Physics
from legged.environments.rendering import RENDER_MODES, Pictures, Recording
from legged.environments.task import Task, array_of
from legged.environments.transition import Result, Transition
from legged.errors import ArgumentError, MissingError, NotFiniteError, ShapeError

try:
    import gymnasium as gymnasium
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode, VectorEnv
except ImportError as error:
    raise MissingError("environments need gymnasium: pip install 'legged[rl]'") from error

Array = np.ndarray
_LEAST = 2  # robots of a time loop: one alone would take the code for one state, which rounds differently
_AUTORESET = {
    "same_step": AutoresetMode.SAME_STEP,
    "next_step": AutoresetMode.NEXT_STEP,
    "disabled": AutoresetMode.DISABLED,
}


class VectorEnvironment(VectorEnv):
    """N robots that perform a task side by side, as a `gymnasium.vector.VectorEnv`.

    A control step is one call of machine code on any number of threads, which takes each chunk of robots through the
    time steps with servos, motors and contacts, and then through the functions of the task with random numbers. A
    second call starts the robots whose episode has ended. Results depend neither on the number of threads nor on the
    other robots.

    Observations are those of the group `actor`, (N, k), or a dictionary of all groups if `groups` is true; groups that
    are not returned are not computed. Infos of `step`: `terms`, weight * function * period of each reward, (N, r), in
    the order of `Task.rewards`; where episodes have ended, `episode` with the return `r`, the number of control steps
    `l`, the sum of each reward and whether each termination holds, by `reward.name` and `termination.name`, and the
    mask `_episode`; with autoreset in the same step, `final_obs` and its mask `_final_obs`.

    Args:
        task: The task. num_envs: Number of robots, N.
        autoreset: When a robot whose episode has ended starts anew: "same_step", "next_step" or "disabled"; see
            `gymnasium.vector.AutoresetMode`. Robots take the same episodes in all three.
        groups: Whether observations are a dictionary of all groups.
        threads: Number of threads; by default the number of processors.
        dtype: Type of the numbers of the time steps, "float64" or "float32"; observations are float32 anyway.
        first: Number of the first robot, by which random numbers of environments in several processes differ.
        copy: Whether observations and `terms` are new arrays. Otherwise they are the memory that the environment
            writes: it stays as it is until the next call but one of `step`, and until the next call of `reset`.
        render_mode: "rgb_array": `render` returns a picture of each of the robots `rendered`. "human": the viewer shows
            the first of them in real time. None for neither.
        rendered: Numbers of the robots that `render` shows; None for all, as the wrapper `RecordVideo` asks.

    Attributes:
        task: The task. autoreset_mode: As in `gymnasium.vector.SyncVectorEnv`.

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
        copy: bool = True,
        render_mode: str | None = None,
        rendered: Sequence[int] | None = None,
    ):
        self.task, self.num_envs = instance("task", task, Task), whole("num_envs", num_envs, 1)
        self.autoreset_mode = _AUTORESET[known_name("autoreset mode", autoreset, _AUTORESET)]
        self.render_mode = None if render_mode is None else known_name("render mode", render_mode, RENDER_MODES)
        self.metadata = {
            "autoreset_mode": self.autoreset_mode,
            "render_modes": list(RENDER_MODES),
            "render_fps": round(1.0 / task.period),
        }
        self._groups, self._threads = groups, default_threads() if threads is None else check_threads(threads)
        self._copy = copy
        self._rendered = self._robots("rendered", np.arange(self.num_envs) if rendered is None else rendered)
        self._physics = Physics(task, dtype)
        self._transition = Transition(task, self._physics, tuple(task.observations) if groups else ("actor",))
        layout, nj, number = self._transition.layout, task.robot.nj, self._physics.element.dtype
        one: dict[str, tuple[int, ...]] = {"state": (self._physics.size,), "record": (layout.size,)}
        last: dict[str, tuple[int, ...]] = {"seed": (), "member": ()}
        self._start = BatchKernel(self._transition.start, {**one, **last}, number)
        self._step = BatchKernel(self._transition.step, {**one, "action": (nj,), "outcome": (3,), **last}, number)
        self._observe = BatchKernel(self._transition.observe, {**one, **last}, number)
        N = max(self.num_envs, _LEAST)
        self._actions, self._outcome = np.zeros((N, nj), number), np.zeros((N, 3), number)
        self._member, self._seed = (first + np.arange(N)).astype(number), np.zeros((), number)
        # Arrays of two control steps, of which each reads one and writes the other.
        self._arrays, self._seen = (
            [[np.zeros((N, *shape), number) for shape in kernel.graph.outputs] for _ in range(2)]
            for kernel in (self._step, self._observe)
        )
        self._results: list[Result] = [self._step.graph.rebuild(iter(arrays)) for arrays in self._arrays]
        self._observed: list[dict[str, Array]] = [self._observe.graph.rebuild(iter(arrays)) for arrays in self._seen]
        self._now, self._begun, self._over = 0, False, np.ones(self.num_envs, dtype=bool)
        self._result.record[:] = self._transition.blank()
        self._shown = [
            {group: np.zeros((self.num_envs, *x.shape[1:]), np.float32) for group, x in observed.items()}
            for observed in self._observed
        ]
        self._recordings: list[Recording] = []
        self.single_action_space = spaces.Box(-task.action_limit, task.action_limit, (nj,), np.float32)
        self.action_space = spaces.Box(-task.action_limit, task.action_limit, (self.num_envs, nj), np.float32)
        self.single_observation_space = self._space(())
        self.observation_space = self._space((self.num_envs,))

    def _space(self, lead: tuple[int, ...]) -> Any:
        boxes = {}
        for group, values in self._observed[0].items():
            limits = max(term.limit for term in self.task.observations[group].values())
            boxes[group] = spaces.Box(-limits, limits, (*lead, *values.shape[1:]), np.float32)
        return spaces.Dict(boxes) if self._groups else boxes["actor"]

    def _robots(self, name: str, robots: Any) -> tuple[int, ...]:
        """Return numbers of robots of an argument."""
        numbers = robots if isinstance(robots, Sequence | np.ndarray) else [robots]
        return tuple(whole(name, k, 0, self.num_envs - 1) for k in numbers)

    @property
    def _result(self) -> Result:
        """The arrays of the last control step."""
        return self._results[self._now]

    @cached_property
    def _advance(self) -> list[FusedCalls]:
        """The control step of all robots from the arrays of either control step to the other ones."""
        own, calls = self._transition.layout["action"].stop, []
        for k, (state, record, *_) in enumerate(self._arrays):
            N = len(state)
            members = Members(state, self._outcome, np.empty((N, 0, state.shape[1]), state.dtype))
            motion = self._physics.prepared(members, record[:, :own], self._actions)
            given = state, record, self._actions, self._outcome, self._seed, self._member
            end = self._step.prepare(N, *given, results=self._arrays[1 - k])
            seen = self._observe.prepare(
                N, *self._arrays[1 - k][:2], self._seed, self._member, results=self._seen[1 - k]
            )
            calls.append(FusedCalls([motion.described(), end.described(), seen.described()], motion.width, ignored=[0]))
        return calls

    @cached_property
    def _new_starts(self) -> tuple[FusedCalls, list[Array], list[Array]]:
        """The call that starts the first robots of some arrays; these arrays, and those of the results."""
        N, number = len(self._member), self._actions.dtype
        given = [self._result.state.copy(), self._result.record.copy(), self._member.copy()]
        begun, seen = (
            [np.zeros((N, *shape), number) for shape in kernel.graph.outputs] for kernel in (self._start, self._observe)
        )
        start = self._start.prepare(N, *given[:2], self._seed, given[2], results=begun)
        observe = self._observe.prepare(N, *begun, self._seed, given[2], results=seen)
        lanes = self._physics.code.lanes(N)
        return FusedCalls([start.described(), observe.described()], lanes), given, [*begun, *seen]

    # States.

    @property
    def q(self) -> Array:
        """Configurations, (N, nq), mixed units; a copy."""
        return self._result.state[: self.num_envs, : self.task.robot.nq].copy()

    @property
    def v(self) -> Array:
        """Velocities, (N, nv), mixed units; a copy."""
        nq = self.task.robot.nq
        return self._result.state[: self.num_envs, nq : nq + self.task.robot.nv].copy()

    @property
    def commands(self) -> Array:
        """Commands, (N, nc), in their units; a copy."""
        return self._part("command").copy()

    @commands.setter
    def commands(self, values: Any) -> None:
        given, own = real_array("commands", values), self._part("command")
        size = own.shape[1]
        if given.shape not in ((size,), (self.num_envs, size)):
            raise ShapeError(f"commands must be ({size},) or ({self.num_envs}, {size}), got shape {given.shape}")
        own[:] = given

    @property
    def parameters(self) -> dict[str, Array]:
        """Numbers in which robots differ: name -> (N, ...), in the unit of the number; copies."""
        return {name: value.copy() for name, value in self._physics.at(self._part("parameters")).items()}

    def _part(self, name: str) -> Array:
        """Return a part of the records of all robots, (N, size), mixed units."""
        return self._result.record[: self.num_envs, self._transition.layout[name]]

    # Motion.

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start new episodes of all robots, or of those in `options["reset_mask"]`; return (observations, infos).

        Args:
            seed: Seed of the random numbers of all robots, which begin as in a new environment, also their memory of
                earlier episodes, such as the level of a curriculum; None goes on with the last seed.
            options: `reset_mask`, (N,), bool; the other robots and their observations stay as they are.

        Raises:
            ArgumentError: The mask has another shape or type.
        """
        if seed is not None:
            whole("seed", seed, least=0)
        if not isinstance(options, Mapping | None):
            raise ArgumentError(f"options must be a mapping or None, got {shown(options)}")
        mask = (options or {}).get("reset_mask")
        if mask is None:
            mask = np.ones(self.num_envs, dtype=bool)
        elif not isinstance(mask, np.ndarray) or mask.dtype != bool or mask.shape != (self.num_envs,) or not mask.any():
            raise ArgumentError(
                f"reset_mask must be an array of {self.num_envs} truth values, at least one of them true"
            )
        if not self._begun and not mask.all():
            raise ArgumentError("the first reset is one of all robots: leave out reset_mask")
        super().reset(seed=seed)
        rows = np.arange(len(self._member)) if mask.all() else np.flatnonzero(mask)
        if seed is not None:
            self._seed[()] = float(np.random.SeedSequence(seed).generate_state(1)[0] >> 8)
            self._result.state[rows], self._result.record[rows] = 0.0, self._transition.blank()
        self._restart(rows)
        self._begun = True
        self._show()
        return self._observations(), {}

    def _restart(self, rows: Array) -> None:
        """Start new episodes of some robots.

        Args:
            rows: Their numbers, (k,), dimensionless.
        """
        call, given, results = self._new_starts
        present = [*self._arrays[self._now][:2], *self._seen[self._now]]
        for array, values in zip(given, (*present[:2], self._member), strict=True):
            np.take(values, rows, axis=0, out=array[: len(rows)])
        if (failed := call(self._threads, len(rows))) >= 0:
            raise self._failure(self._start, given[:2], results[:2], given[2], failed)
        for array, values in zip(present, results, strict=True):
            array[rows] = values[: len(rows)]
        self._outcome[rows] = 0.0
        own = rows[rows < self.num_envs]
        self._over[own] = False
        for recording in self._recordings:
            recording.begin(own)

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        """Advance all robots by a control step; return (observations, rewards, terminations, truncations, infos).

        Args:
            actions: (N, nj), dimensionless; see `Task.targets`. An array of NumPy, or of a library that shares memory
                by DLPack, such as a tensor of Torch in the memory of the processor.

        Raises:
            ShapeError, NotFiniteError: The actions have a wrong shape or are not finite; the robots do not change.
            ArgumentError: There was no `reset`, or with autoreset "disabled" a robot whose episode has ended.
            NotFiniteError: A function of the task has no finite result; the message names it. `reset` is needed then.
        """
        given = array_of("actions", actions)
        if given.shape != self.action_space.shape:
            raise ShapeError(f"actions must be {self.action_space.shape}, got shape {given.shape}")
        if not np.isfinite(given).all():
            wrong = int(np.flatnonzero(~np.isfinite(given).all(axis=1))[0])
            raise NotFiniteError(f"actions must be finite; that of robot {wrong} is not")
        if not self._begun:
            raise ArgumentError("call reset before the first step")
        ended = np.flatnonzero(self._over)
        if len(ended) and self.autoreset_mode == AutoresetMode.DISABLED:
            raise ArgumentError(f"the episode of robot {ended[0]} has ended: call reset(options={{'reset_mask': ...}})")
        self._actions[: self.num_envs] = given
        before = self._result
        kept = before.state[ended]
        failed = self._advance[self._now](self._threads)
        self._now = 1 - self._now
        if failed >= 0:
            given = [before.state, before.record, self._actions, self._outcome]
            raise self._failure(self._step, given, self._arrays[self._now], self._member, failed)
        now, own = self._result, slice(self.num_envs)
        rewards, terminated, truncated = now.reward[own].astype(float), now.terminated[own] > 0, now.truncated[own] > 0
        infos: dict[str, Any] = {"terms": now.terms[own].copy() if self._copy else now.terms[own]}
        for recording in self._recordings:
            recording.add(~self._over)
        if len(ended):  # these start anew instead
            now.state[ended], now.record[ended] = kept, before.record[ended]
            self._restart(ended)
            rewards[ended], terminated[ended], truncated[ended], now.terms[ended] = 0.0, False, False, 0.0
        over = terminated | truncated
        if over.any():
            self._add_ended(infos, over)
        self._over[:] = over
        if self.autoreset_mode == AutoresetMode.SAME_STEP and over.any():
            self._restart(np.flatnonzero(over))
        self._show()
        return self._observations(), rewards, terminated, truncated, infos

    def _failure(
        self, kernel: BatchKernel, given: Sequence[Array], results: Sequence[Array], member: Array, i: int
    ) -> Exception:
        """Return the error of a kernel, or of the observations of its results, that are not finite in row i."""
        self._begun = False
        if all(np.isfinite(values[i]).all() for values in results):
            kernel, given = self._observe, results[:2]
        numbers = [*(np.ravel(x[i]) for x in given), [self._seed], [member[i]]]
        return diagnose(kernel, np.concatenate(numbers, dtype=float), (int(member[i] - self._member[0]),))

    def _add_ended(self, infos: dict[str, Any], over: Array) -> None:
        """Add returns, lengths and last observations of the episodes that have ended to the infos."""
        returns = np.where(over[:, None], self._part("returns"), 0.0)
        causes = over[:, None] & (self._result.causes[: self.num_envs] > 0.0)
        infos["episode"] = {
            "r": returns.sum(axis=1),
            "l": np.where(over, self._part("steps")[:, 0], 0.0).astype(int),
            **{f"reward.{name}": returns[:, k] for k, name in enumerate(self.task.rewards)},
            **{f"termination.{name}": causes[:, k] for k, name in enumerate(self.task.terminations)},
        }
        infos["_episode"] = over
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            final, rows = np.full(self.num_envs, None, dtype=object), np.flatnonzero(over)
            last = {group: values[rows].astype(np.float32) for group, values in self._observed[self._now].items()}
            for k, i in enumerate(rows):
                final[i] = {group: values[k] for group, values in last.items()} if self._groups else last["actor"][k]
            infos["final_obs"], infos["_final_obs"] = final, over

    def _observations(self) -> Any:
        """Return the observations of all robots: new arrays, or the memory of this control step."""
        shown = {}
        for group, values in self._observed[self._now].items():
            own = values[: self.num_envs]
            if self._copy:
                own = own.astype(np.float32)
            elif own.dtype != np.float32:
                np.copyto(self._shown[self._now][group], own, casting="same_kind")
                own = self._shown[self._now][group]
            shown[group] = own
        return shown if self._groups else shown["actor"]

    # Pictures.

    @cached_property
    def _pictures(self) -> Pictures:
        return Pictures(self.task)

    def _show(self) -> None:
        if self.render_mode == "human":
            self._pictures.show(self.q[self._rendered[0]])

    def render(self) -> tuple[Array, ...] | None:
        """Return a picture of each of the robots `rendered`, (384, 512, 3), uint8; None for the mode "human".

        Raises:
            ArgumentError: The environment has no render mode, or there was no `reset`.
        """
        if self.render_mode is None or not self._begun:
            raise ArgumentError("render needs a render_mode, such as make(..., render_mode='rgb_array'), and a reset")
        if self.render_mode == "human":
            return None
        times, q = self.task.period * self._part("steps")[:, 0], self.q
        return tuple(self._pictures.picture(float(times[i]), q[i]) for i in self._rendered)

    def record(self, robots: int | Sequence[int] = 0) -> Recording:
        """Return a recording of the motions of some robots from now on, until its method `stop` or the end of `with`.

        Args:
            robots: Numbers of robots.
        """
        if not self._begun:
            raise ArgumentError("call reset before record")
        recording = Recording(self, self._robots("robots", robots), self._recordings)
        recording.begin(np.arange(self.num_envs))
        return recording

    def close_extras(self, **kwargs: Any) -> None:
        """Close the viewer."""
        if "_pictures" in vars(self):
            self._pictures.close()
