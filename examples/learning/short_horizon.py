"""Short-horizon actor-critic beside proximal policy optimization: gradients through time steps, compared at equal cost.

    python examples/learning/short_horizon.py pendulum 60

lets both learn a task, pendulum, acrobot or hopper, for 60 s of processor time each, and prints the mean return of an
episode against processor time and transitions. Without arguments both learn the pendulum for two seconds.

The actor climbs the gradient of the rewards of the next control steps and of the value of the state after them, which
`legged.differentiation` carries back through the time steps. Source: Xu and others, "Accelerated policy learning with
parallel differentiable simulation", ICLR 2022. Different from there, the target of a value is the sum of the rewards up
to the end of the horizon and the value there (lambda = 1).
"""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

import legged
from legged import environments
from legged.differentiation import DifferentiableSimulation
from legged.environments import Observation, Reward, State, Task, terms
from legged.environments.draws import Draws
from legged.learning.ppo import PPO, ActorCritic, Settings

Array = np.ndarray


class Servos:
    """Joint servos whose targets are the command, or motors whose torques are the command, as in an environment."""

    def __init__(self, task: Task):
        self.kp, self.kd, self.is_torque = task.kp, task.kd, task.torque_control

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, command: Array) -> Array:
        """Return the torques, (nj,), [N m] or [N]; other arguments as in `legged.simulation.controller.Controller`."""
        n = len(command)
        return (command if self.is_torque else self.kp * command) - self.kp * q[-n:] - self.kd * v[-n:]

    @property
    def implicit_gains(self) -> tuple[Array, Array]:
        """(K_p, K_d), (nj,) each, which time steps integrate implicitly."""
        return self.kp, self.kd


class Differentiable:
    """The control steps of a task as functions of Torch: states are NumPy arrays, their deviations tensors of zeros.

    A deviation has the coordinates of `DifferentiableSimulation`. It carries derivatives alone, so that a loss which is
    computed from observations and rewards has a gradient with respect to all actions before.

    Args:
        task: A task whose rewards, observations and terminations use positions, velocities, command and actions.
    """

    def __init__(self, task: Task):
        steps = legged.TimeStepping(task.time_step)
        self.task, nj = task, task.robot.nj
        servos: Any = Servos(task)
        self.sim = DifferentiableSimulation(
            task.robot, servos, ground=task.ground, integrator=steps, command=nj, q=task.robot.neutral()
        )
        self.clock = np.array([0.0, task.time_step, 0.0])
        nq, nv = task.robot.nq, task.robot.nv
        shapes: dict[str, Any] = {"x": 2 * nv + 2 * nj, "q": nq, "v": nv, "command": task.command_size}
        self._seen: Callable[..., Any] = legged.compile(self._outputs, **shapes)

        def weighted(x: Array, q: Array, v: Array, command: Array, w: Array) -> Any:
            return w @ self._outputs(x, q, v, command)[0]

        product: Callable[..., Any] = legged.jacobian(weighted, "x", "reverse")
        shapes["w"] = self.observed + 1
        self._product: Callable[..., Any] = legged.compile(product, **shapes)

    @property
    def observed(self) -> int:
        """Number of entries of an observation."""
        task = self.task
        zeros = np.zeros(task.robot.nj), np.zeros(task.robot.nj), np.zeros(task.command_size)
        return len(task.observed(task.robot.neutral(), np.zeros(task.robot.nv), *zeros, 0.0))

    def _outputs(self, x: Array, q: Array, v: Array, command: Array) -> tuple[Array, Any]:
        """Return ([observation; reward], whether the episode ends) at [dq; dv; action; last action], traced."""
        task, nv, nj = self.task, self.task.robot.nv, self.task.robot.nj
        q, v, action, last = legged.integrate(task.robot, q, x[:nv]), v + x[nv : 2 * nv], x[-2 * nj : -nj], x[-nj:]
        s = State(task, None, q, v, v, np.zeros(0), action, last, command, {}, {}, 0.0, Draws(0.0, 0.0, 0.0))
        reward = sum(r.weight * task.period * r.function(s) for r in task.rewards.values())
        ended = sum([1.0 * legged.where(end(s) > 0.0, 1.0, 0.0) for end in task.terminations.values()], 0.0)
        seen = task.observed(q, v, action, last, command, 0.0)
        return np.concatenate([seen, np.stack([reward])]), ended + 0.0 * reward

    def advance(self, state: Array, deviation: Tensor, action: Tensor) -> tuple[Array, Tensor]:
        """Return (states, deviations) after a control step.

        Args:
            state: States of the members, (N, n), mixed units. deviation: (N, nx), mixed units.
            action: (N, nj), dimensionless.
        """
        task, sim, none = self.task, self.sim, np.zeros(0)
        scale, limit = torch.tensor(task.action_scale), task.action_limit
        command = torch.tensor(task.posture) + scale * action.double().clamp(-limit, limit)
        given, states, results = command.detach().numpy(), [state], list[Any]()
        for _ in range(task.substeps):
            results.append(sim.step(self.clock, none, given, states[-1]))
            states.append(results[-1].state)

        def back(w: Array) -> list[Array]:
            commands = np.zeros_like(given)
            for k in reversed(range(task.substeps)):
                gradient = sim.products(self.clock, none, given, states[k], results[k], w)
                w, commands = gradient.state, commands + gradient.command
            return [w, commands]

        return states[-1], _traced(np.zeros(deviation.shape), back, deviation, command)

    def see(self, state: Array, deviation: Tensor, action: Tensor, last: Tensor, command: Array) -> tuple[Any, ...]:
        """Return (observations (N, k), rewards (N,), whether episodes end (N,)) after a control step.

        Args:
            state, deviation: After it, (N, n) and (N, nx), mixed units.
            action, last: Of it and of the one before, (N, nj), dimensionless. command: (N, nc), in its units.
        """
        robot = self.task.robot
        nq, nv, nj = robot.nq, robot.nv, robot.nj
        moves = np.concatenate([action.detach().numpy(), last.detach().numpy()], axis=1)
        x = np.concatenate([np.zeros((len(state), 2 * nv)), moves], axis=1)
        at = x, state[:, :nq], state[:, nq : nq + nv], command
        outputs, ended = self._seen(*at)

        def back(w: Array) -> list[Array]:
            gradient = self._product(*at, w)
            rest = np.zeros((len(w), self.sim.nx - 2 * nv))
            return [
                np.concatenate([gradient[:, : 2 * nv], rest], axis=1),
                gradient[:, -2 * nj : -nj],
                gradient[:, -nj:],
            ]

        gradient = _traced(outputs, back, deviation, action.double(), last.double())
        return gradient[:, :-1].float(), gradient[:, -1].float(), ended > 0.0


class _Traced(torch.autograd.Function):
    """The result of a function of `legged` for Torch, with the products of weights with its derivatives."""

    @staticmethod
    def forward(ctx: Any, result: Array, back: Callable[[Array], list[Array]], *inputs: Tensor) -> Tensor:
        ctx.back = back
        return torch.from_numpy(result)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Any, ...]:
        products = ctx.back(grad_outputs[0].numpy())
        return None, None, *(torch.from_numpy(np.ascontiguousarray(x)) for x in products)


def _traced(result: Array, back: Callable[[Array], list[Array]], *inputs: Tensor) -> Tensor:
    """Return the result as a tensor whose gradients come from `back`."""
    apply: Callable[..., Tensor] = getattr(_Traced, "apply")  # noqa: B009 - its type is unknown to type checkers
    return apply(result, back, *inputs)


@dataclass(frozen=True)
class Horizon:
    """Numbers of the learner: control steps of a horizon, robots, discount, rates, and passes of the critic."""

    steps: int = 16
    robots: int = 128
    gamma: float = 0.99
    actor_rate: float = 2e-3
    critic_rate: float = 2e-3
    passes: int = 4
    hidden: tuple[int, ...] = (64, 64)


class ShortHorizon:
    """The learner: its networks and its robots, which start episodes as those of an environment.

    Args:
        task: The task, see `Differentiable`. settings: Numbers of the learner. seed: Of all random numbers.
    """

    def __init__(self, task: Task, settings: Horizon | None = None, seed: int = 1):
        self.settings, self.model = settings or Horizon(), Differentiable(task)
        N, nj = self.settings.robots, task.robot.nj
        self.env = environments.make(task, num_envs=N, groups=True, autoreset="disabled")
        self.env.reset(seed=seed)
        torch.manual_seed(seed)
        size = self.model.observed
        self.net = ActorCritic(size, size, nj, Settings(hidden=self.settings.hidden, deviation=0.5))
        self.actor = torch.optim.Adam([*self.net.actor.parameters(), self.net.log_deviation], self.settings.actor_rate)
        self.critic = torch.optim.Adam(self.net.critic.parameters(), self.settings.critic_rate)
        self.state, self.count, self.transitions = self._starts(), np.zeros(N, int), 0
        self.action = torch.zeros(N, nj)

    def _starts(self) -> Array:
        return self.model.sim.state(self.env.q, self.env.v)

    def _value(self, observed: Tensor) -> Tensor:
        return self.net.critic(self.net.actor_input(observed))[:, 0]

    def _mean(self, observed: Tensor) -> Tensor:
        """Return the mean actions within the limit of the task; beyond it actions have no effect and no gradient."""
        limit = self.model.task.action_limit
        return limit * torch.tanh(self.net.actor(self.net.actor_input(observed)) / limit)

    def act(self, observed: Array) -> Array:
        """Return the mean actions, (N, nj), dimensionless; `observed` is (N, k), mixed units."""
        with torch.no_grad():
            return self._mean(torch.from_numpy(observed).float()).numpy()

    def iterate(self) -> None:
        """Let all robots act for one horizon, and update the networks."""
        s, model, N = self.settings, self.model, len(self.state)
        deviation, last = torch.zeros(N, model.sim.nx, dtype=torch.float64), self.action
        observed, _, _ = model.see(self.state, deviation, last, last, self.env.commands)
        gain = torch.zeros(())
        seen, rewards, overs, ends = list[Tensor](), list[Tensor](), list[Tensor](), list[Tensor]()
        factor = torch.ones(N)  # discount since the start of the horizon or episode
        for _ in range(s.steps):
            seen.append(observed.detach())
            action = self._mean(observed)
            action = action + self.net.log_deviation.exp() * torch.randn(action.shape)
            self.state, deviation = model.advance(self.state, deviation, action)
            observed, reward, fell = model.see(self.state, deviation, action, last, self.env.commands)
            self.count, last = self.count + 1, action
            over = fell | (self.count >= model.task.episode_steps)
            # An episode whose time is over goes on by the value of its last state; one that has failed does not.
            value = self._value(observed) * torch.from_numpy(~fell)
            gain = gain + (factor * reward).sum() + (s.gamma * factor * value)[torch.from_numpy(over)].sum()
            factor = torch.where(torch.from_numpy(over), torch.ones(N), s.gamma * factor)
            rewards.append(reward.detach())
            overs.append(torch.from_numpy(over))
            ends.append(value.detach())
            if over.any():
                self.env.reset(options={"reset_mask": over})
                self.state = np.where(over[:, None], self._starts(), self.state)
                self.count[over] = 0
                kept = torch.from_numpy(~over)[:, None]
                deviation, last = deviation * kept, last * kept
                begun, _, _ = model.see(self.state, deviation, last, last, self.env.commands)
                observed = torch.where(kept, observed, begun)
        gain = gain + (factor * self._value(observed))[~overs[-1]].sum()
        self.actor.zero_grad()
        (-gain / (N * s.steps)).backward()
        torch.nn.utils.clip_grad_norm_([*self.net.actor.parameters(), self.net.log_deviation], 1.0)
        self.actor.step()
        self.action, self.transitions = last.detach(), self.transitions + N * s.steps
        following, targets = ends[-1], list[Tensor]()
        for reward, over, end in zip(rewards[::-1], overs[::-1], ends[::-1], strict=True):
            following = reward + s.gamma * torch.where(over, end, following)
            targets.append(following)
        self._fit(torch.cat(seen), torch.cat(targets[::-1]))

    def _fit(self, seen: Tensor, targets: Tensor) -> None:
        for _ in range(self.settings.passes):
            for rows in torch.randperm(len(seen)).chunk(4):
                self.critic.zero_grad()
                ((self._value(seen[rows]) - targets[rows]) ** 2).mean().backward()
                self.critic.step()
        with torch.no_grad():
            self.net.actor_input.update(self.net.actor_input(seen))


def pendulum() -> Task:
    """Return the swing-up of a pendulum with the formula of Pendulum-v1 for the state after each control step."""

    def cost(s: State) -> Any:
        away = s.q[0] - 2.0 * np.pi * np.floor(s.q[0] * (0.5 / np.pi) + 0.5)
        return away**2 + 0.1 * s.v[0] ** 2 + 0.001 * s.task.targets(s.action)[0] ** 2

    return environments.pendulum(rewards={"pendulum_cost": None, "cost": Reward(cost, -1.0)})


def acrobot() -> Task:
    """Return the swing-up of an acrobot, with the height of its tip as reward: that of Acrobot-v1 has no gradient."""

    def height(s: State) -> Any:
        return -np.cos(s.q[0]) - np.cos(s.q[0] + s.q[1])

    changed = {"below": None, "height": Reward(height, 1.0)}
    return environments.acrobot(rewards=changed, terminations={"above": None}, episode=10.0, time_step=0.01, substeps=5)


def hopper() -> Task:
    """Return the task of a leg with a body in a vertical plane that is to move forward at 1 m/s."""
    body, thigh, shank = (legged.box_inertia(m, (0.2, 0.1, 0.1)) for m in (8.0, 1.0, 0.5))
    builder = legged.RobotBuilder("hopper", legged.Link("rail"), base=legged.FixedBase())
    builder.add(legged.Prismatic("forward", "x"), legged.Link("slide"), to="rail")
    builder.add(legged.Prismatic("up", "z"), legged.Link("carriage"), to="slide")
    builder.add(legged.Revolute("pitch", "y"), legged.Link("body", body), to="carriage")
    builder.add(legged.Revolute("hip", "y"), legged.Link("thigh", thigh), to="body")
    lower = legged.Link("shank", shank, {"foot": (0.0, 0.0, -0.3)})
    robot = builder.add(legged.Revolute("knee", "y"), lower, to="thigh", at=(0.0, 0.0, -0.3)).build()
    posture, legs = np.array([0.0, 0.0, 0.0, 0.6, -1.2]), np.array([0.0, 0.0, 0.0, 1.0, 1.0])
    height = 0.6 * np.cos(0.6)

    def start(s: State) -> tuple[Array, Array]:
        joints = posture + legs * s.random.uniform(-0.1, 0.1, 5)
        clear = 0.3 * (np.cos(joints[3]) + np.cos(joints[3] + joints[4])) + 1e-3
        return joints + np.array([0.0, 1.0, 0.0, 0.0, 0.0]) * clear, np.zeros(5)

    rewards = {
        "speed": Reward(lambda s: (s.v[0] - 1.0) ** 2, -1.0),
        "alive": Reward(lambda s: 1.0, 2.0),
        "pitch": Reward(lambda s: s.q[2] ** 2, -1.0),
        "action_rate": Reward(lambda s: ((s.action - s.last_action) ** 2).sum(), -0.02),
    }
    seen = {
        "height": Observation(lambda s: s.q[1] - height, scale=5.0),
        "angles": Observation(lambda s: s.q[2:] - posture[2:]),
        "rates": Observation(lambda s: s.v, scale=np.array([1.0, 1.0, 0.2, 0.2, 0.2])),
        "last_action": Observation(terms.last_action),
    }
    return Task(
        robot=robot,
        ground=legged.Rigid(),
        posture=posture,
        height=height,
        observations={"actor": seen},
        rewards=rewards,
        terminations={"fallen": lambda s: np.maximum(0.6 * height - s.q[1], np.sqrt(s.q[2] ** 2) - 0.8)},
        start=start,
        kp=80.0 * legs,
        kd=1.5 * legs,
        action_scale=0.5 * legs,
        action_limit=2.0,
        episode=5.0,
    )


def score(task: Task, act: Callable[[Array], Array], robots: int = 64) -> float:
    """Return the mean of the rewards of one episode, from the same starts for all policies.

    Args:
        task: The task. act: The policy. robots: Number of episodes.
    """
    env = environments.make(task, num_envs=robots, autoreset="disabled", threads=1)
    seen, _ = env.reset(seed=99)
    total, alive = np.zeros(robots), np.ones(robots, bool)
    for _ in range(task.episode_steps):
        seen, reward, fell, late, _ = env.step(act(seen))
        total, alive = total + alive * reward, alive & ~(fell | late)
        if not alive.any():
            break
        env.reset(options={"reset_mask": fell | late}) if (fell | late).any() else None
    return float(total.mean())


def curve(task: Task, learner: Any, seconds: float, parts: int) -> Iterator[tuple[float, int, float]]:
    """Yield (processor time of learning [s], transitions, mean return of an episode) after equal parts of a training.

    Args:
        task: The task. learner: With the methods `iterate` and `act`. seconds: Processor time, [s].
        parts: Number of parts.
    """
    spent = 0.0
    for part in range(1, parts + 1):
        begin = time.process_time()
        while time.process_time() - begin < seconds * part / parts - spent:
            learner.iterate()
        spent += time.process_time() - begin
        yield spent, learner.transitions, score(task, learner.act)


def main(name: str = "pendulum", seconds: str = "2", seed: str = "1") -> None:
    """Print the curves of both learners."""
    task = TASKS[name]()
    torch.set_num_threads(1)
    hidden = Horizon().hidden
    env = environments.make(task, num_envs=256, groups=True, threads=1, dtype="float32")
    learners = {
        "short horizon": ShortHorizon(task, seed=int(seed)),
        "PPO": PPO(env, Settings(hidden=hidden), seed=int(seed)),
    }
    print(f"{name}: without learning {score(task, lambda seen: np.zeros((len(seen), task.robot.nj))):.1f}")
    for label, learner in learners.items():
        learner.iterate()  # compiles
        for spent, transitions, mean in curve(task, learner, float(seconds), 6 if float(seconds) > 10 else 2):
            print(f"{label:14s} {spent:6.1f} s {transitions:10d} transitions, return {mean:8.1f}", flush=True)


TASKS = {"pendulum": pendulum, "acrobot": acrobot, "hopper": hopper}


if __name__ == "__main__":
    main(*[argument for argument in sys.argv[1:] if not argument.startswith(("/", "-"))])
