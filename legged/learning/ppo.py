"""Proximal policy optimization on the processor, the learner of `legged train`, for any `VectorEnvironment`.

Source: Schulman, Wolski, Dhariwal, Radford, Klimov, arXiv:1707.06347, 2017; the advantages: Schulman, Moritz, Levine,
Jordan, Abbeel, arXiv:1506.02438, 2015, eq. 16. The learning rate follows the divergence of the policies before and
after an update, as in Schulman et al. 2017, section 4, but changes the step size instead of a penalty.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from controllers.networks import Network
from legged.arguments import shown
from legged.environments.snapshots import restore, snapshot
from legged.errors import ArgumentError, MissingError
from legged.learning.mirror import Mirror

try:
    import torch
    from torch import Tensor, nn
except ImportError as error:
    raise MissingError("learning needs torch: pip install 'legged[train]'") from error

GROUPS = ("actor", "critic")
_ROWS = 4096  # of a part of a minibatch, whose numbers in the layers take a few megabytes


@dataclass(frozen=True)
class Settings:
    """Numbers of the learner.

    Attributes:
        steps: Control steps of each robot between two updates. epochs: Passes over them.
        batches: Number of minibatches of a pass, each of random control steps of all robots.
        gamma: Discount per control step. lam: Lambda of generalized advantage estimation.
        clip: Largest relative change of a probability that is rewarded. entropy: Weight of the entropy of actions.
        divergence: Desired Kullback-Leibler divergence of the policies before and after an update.
        rate: First learning rate. largest_norm: To which gradients are scaled down.
        hidden: Sizes of the hidden layers. deviation: First standard deviation of actions, dimensionless.
        halving: Number of transitions in which the largest standard deviation of actions, at first `deviation`, halves;
            None for no bound. Without a bound a policy may need the noise of its actions to begin a gait: its mean
            actions then stand where the noisy ones walk.
        least_deviation: To which this bound falls, dimensionless.
        mirrored: Whether half of the data of each pass teach the policy as their reflections from left to right, so
            that it learns a symmetric gait; see `legged.learning.mirror`.
    """

    steps: int = 24
    epochs: int = 2
    batches: int = 4
    gamma: float = 0.99
    lam: float = 0.95
    clip: float = 0.2
    entropy: float = 0.005
    divergence: float = 0.01
    rate: float = 1e-3
    largest_norm: float = 1.0
    hidden: tuple[int, ...] = (128, 64)
    deviation: float = 0.7
    halving: float | None = None
    least_deviation: float = 0.1
    mirrored: bool = False

    def bound(self, transitions: int) -> float:
        """Return the largest standard deviation of actions after a number of transitions, dimensionless."""
        if self.halving is None:
            return np.inf
        return max(self.least_deviation, self.deviation * 0.5 ** (transitions / self.halving))


class Normalizer(nn.Module):
    """Observations minus their mean over their standard deviation, both of all observations so far."""

    mean: Tensor
    variance: Tensor
    count: Tensor

    def __init__(self, size: int):
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("variance", torch.ones(size))
        self.register_buffer("count", torch.zeros(()))

    def update(self, x: Tensor) -> None:
        """Add observations that have been normalized, (n, k), dimensionless."""
        part, unit = len(x) / (self.count + len(x)), self.deviation()
        variance, mean = torch.var_mean(x, 0, unbiased=False)
        change = mean * unit
        self.variance.lerp_(variance * unit**2 + (1.0 - part) * change**2, part)
        self.mean.add_(change * part)
        self.count.add_(len(x))

    def average(self, order: np.ndarray, signs: np.ndarray) -> None:
        """Average the mean and the variance with those of reflected observations; see `mirror.Reflection`."""
        self.mean.lerp_(self.mean[order] * torch.from_numpy(signs).float(), 0.5)
        self.variance.lerp_(self.variance[order], 0.5)

    def deviation(self) -> Tensor:
        """Return the standard deviations, (k,), in the units of observations."""
        return torch.sqrt(self.variance + 1e-4)

    def forward(self, x: Tensor) -> Tensor:
        """Return normalized observations, (n, k), dimensionless."""
        return (x - self.mean) / self.deviation()


class ActorCritic(nn.Module):
    """A policy and its value function: dense layers with ELU between them, of normalized observations.

    Attributes:
        actor, critic: The networks. log_deviation: Logarithms of the standard deviations of actions, (actions,).
    """

    def __init__(self, observed: int, privileged: int, actions: int, settings: Settings):
        super().__init__()
        self.actor_input, self.critic_input = Normalizer(observed), Normalizer(privileged)
        self.actor = _dense([observed, *settings.hidden, actions])
        self.critic = _dense([privileged, *settings.hidden, 1])
        self.log_deviation = nn.Parameter(torch.full((actions,), float(np.log(settings.deviation))))
        with torch.no_grad():
            next(self.actor[-1].parameters()).mul_(0.01)  # the first policy stays near the posture of a zero action


def _dense(sizes: list[int]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), nn.ELU(inplace=True)]
    return nn.Sequential(*layers[:-1])


class PPO:
    """The learner and its environment.

        learner = PPO(legged.environments.make("velocity", robot, num_envs=16, groups=True))
        figures = learner.iterate()
        law = controllers.Policy(learner.network(), learner.env.task)

    Results are the same for the same seed and the same number of threads of Torch.

    Args:
        env: A `VectorEnvironment` with `groups`; without a group `critic` the value function sees the group `actor`.
        settings: Numbers of the learner. seed: Of the environment, the networks and the actions.

    Attributes:
        net: The networks. transitions: Number of control steps of all robots so far.
        seconds: Wall time so far of "environment", "policy" and "learner", [s].

    Raises:
        ArgumentError: The environment is of another kind. DefinitionError: `mirrored`, and the task has no reflection.
    """

    def __init__(self, env: Any, settings: Settings | None = None, seed: int = 1):
        self.env, self.settings = env, settings or Settings()
        self._mirror = Mirror.of(env.task) if self.settings.mirrored else None
        observed, _ = env.reset(seed=seed)
        if not isinstance(observed, dict):
            raise ArgumentError(f"PPO needs a VectorEnvironment with groups=True, got {shown(env)}")
        self._groups = [group if group in observed else "actor" for group in GROUPS]
        self._random = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            seen, privileged = (observed[group].shape[1] for group in self._groups)
            self.net = ActorCritic(seen, privileged, env.single_action_space.shape[0], self.settings)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=self.settings.rate, fused=True)
        self.observed = self._tensors(observed)
        self.transitions = 0
        self.seconds = dict.fromkeys(("environment", "policy", "learner"), 0.0)

    def iterate(self) -> dict[str, float]:
        """Let all robots act for `Settings.steps` control steps, and update the networks; return figures by name.

        `return` and `length` are means over the episodes that have ended, `reward.NAME` means per second.
        """
        data, figures = self._collected()
        begin = time.perf_counter()
        figures |= self._updated(data)
        for name, normal in zip(GROUPS, (self.net.actor_input, self.net.critic_input), strict=True):
            normal.update(data[name].flatten(0, 1))
        if self._mirror is not None:
            self.net.actor_input.average(self._mirror.observation.order, self._mirror.observation.signs)
        self.seconds["learner"] += time.perf_counter() - begin
        return {"transitions": float(self.transitions), **figures}

    @torch.no_grad()
    def act(self, observed: np.ndarray) -> np.ndarray:
        """Return the mean actions, (N, nj), dimensionless.

        Args:
            observed: Observations of the group `actor`, (N, k), single precision, mixed units.
        """
        return self.net.actor(self.net.actor_input(torch.from_numpy(observed))).numpy()

    def network(self) -> Network:
        """Return the policy without noise, with the normalization of its observations."""
        layers = [
            (part.weight.detach().double().numpy(), part.bias.detach().double().numpy())
            for part in self.net.actor
            if isinstance(part, nn.Linear)
        ]
        normal = self.net.actor_input
        return Network.of_layers(layers, "elu", normal.mean.double().numpy(), normal.deviation().double().numpy())

    def state(self) -> dict[str, Any]:
        """Return all on which further iterations depend besides task, settings and number of threads; see `restore`."""
        return {
            "net": self.net.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": self._random.get_state(),
            "environment": {name: torch.from_numpy(values) for name, values in snapshot(self.env).items()},
            "transitions": self.transitions,
            "seconds": dict(self.seconds),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state of a learner with the same task, number of robots and settings.

        Args:
            state: A result of `state`.

        Raises:
            ShapeError: The environment was another one. RuntimeError: the networks have other sizes.
        """
        observed = restore(self.env, {name: values.numpy() for name, values in state["environment"].items()})
        self.net.load_state_dict(state["net"])
        self.optimizer.load_state_dict(state["optimizer"])
        self._random.set_state(state["random"])
        self.transitions, self.seconds = state["transitions"], dict(state["seconds"])
        self.observed = self._tensors(observed)

    # Parts of an iteration.

    def _tensors(self, observed: dict[str, np.ndarray]) -> tuple[Tensor, Tensor]:
        actor, critic = (torch.from_numpy(observed[group]) for group in self._groups)  # shares memory
        return actor, critic

    @torch.no_grad()
    def _collected(self) -> tuple[dict[str, Tensor], dict[str, float]]:
        """Return (normalized observations, actions, advantages and returns, each (steps, N, ...); figures)."""
        s, net, N = self.settings, self.net, self.env.num_envs
        nj, inputs = len(net.log_deviation), (net.actor_input, net.critic_input)
        data = {name: torch.empty(s.steps, N, len(x.mean)) for name, x in zip(GROUPS, inputs, strict=True)}
        data |= {name: torch.empty(s.steps, N, nj) for name in ("action", "mean")}
        value, reward, over = (torch.empty(s.steps, N) for _ in range(3))
        deviation, ended, terms = net.log_deviation.exp(), [], np.zeros(len(self.env.task.rewards))
        for t in range(s.steps):
            begin = time.perf_counter()
            for name, x, normal in zip(GROUPS, self.observed, inputs, strict=True):
                data[name][t] = normal(x)
            data["mean"][t] = net.actor(data["actor"][t])
            value[t] = net.critic(data["critic"][t])[:, 0]
            noise = torch.randn(N, nj, generator=self._random)
            data["action"][t] = data["mean"][t] + deviation * noise
            middle = time.perf_counter()
            observed, earned, terminated, truncated, infos = self.env.step(data["action"][t].numpy())
            end = time.perf_counter()
            self.observed, reward[t] = self._tensors(observed), torch.from_numpy(earned)
            if truncated.any():  # the value of the last state stands for the rest of an episode whose time is over
                last = np.stack([x[self._groups[1]] for x in infos["final_obs"][truncated]])
                rest = net.critic(net.critic_input(torch.from_numpy(last)))[:, 0]
                reward[t, torch.from_numpy(truncated)] += s.gamma * rest
            over[t] = torch.from_numpy(terminated | truncated)
            terms = terms + infos["terms"].mean(axis=0)
            if "episode" in infos:
                chosen = infos["_episode"]
                ended.append((infos["episode"]["r"][chosen], infos["episode"]["l"][chosen], terminated[chosen]))
            self.seconds["environment"] += end - middle
            self.seconds["policy"] += middle - begin + time.perf_counter() - end
        begin = time.perf_counter()
        following = net.critic(net.critic_input(self.observed[1]))[:, 0]
        advantage = _advantages(reward, value, following, over, s)
        data["returns"] = advantage + value
        data["advantage"] = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        self.transitions += s.steps * N
        self.seconds["learner"] += time.perf_counter() - begin
        period = self.env.task.period
        figures = {
            f"reward.{k}": float(x) / (s.steps * period) for k, x in zip(self.env.task.rewards, terms, strict=True)
        }
        if ended:
            returns, lengths, falls = (np.concatenate(x) for x in zip(*ended, strict=True))
            figures |= {"return": float(returns.mean()), "length": period * float(lengths.mean())}
            figures["falls"] = float(falls.sum()) / (s.steps * N * period)
        return data, figures

    def _updated(self, data: dict[str, Tensor]) -> dict[str, float]:
        """Change the networks by passes over the data; return figures by name.

        Gradients of a minibatch are sums over parts that fit into the cache.
        """
        s, net, group = self.settings, self.net, self.optimizer.param_groups[0]
        before, figures = net.log_deviation.detach().clone(), []
        data["probability"] = _log_probability(data["action"], data["mean"], before)
        for _ in range(s.epochs):
            for chosen in torch.randperm(s.steps, generator=self._random).chunk(s.batches):
                total, error, divergence = len(chosen) * self.env.num_envs, 0.0, 0.0
                half = 0 if self._mirror is None else len(chosen) // 2
                self.optimizer.zero_grad(set_to_none=False)
                for part in self._parts(data, chosen, half):
                    sums = self._backward(part, before, total)
                    error += sums[0] / total
                    divergence += sums[1] / (total - half * self.env.num_envs)
                if divergence > 2.0 * s.divergence:
                    group["lr"] = max(1e-5, group["lr"] / 1.5)
                elif 0.0 < divergence < 0.5 * s.divergence:
                    group["lr"] = min(1e-2, group["lr"] * 1.5)
                nn.utils.clip_grad_norm_(net.parameters(), s.largest_norm)
                self.optimizer.step()
                with torch.no_grad():
                    net.log_deviation.clamp_(max=float(np.log(s.bound(self.transitions))))
                figures.append((error, divergence))
        error, divergence = np.mean(figures, axis=0)
        shown = {"value_error": error, "divergence": divergence, "rate": group["lr"], "deviation": before.exp().mean()}
        return {name: float(x) for name, x in shown.items()}

    def _parts(self, data: dict[str, Tensor], chosen: Tensor, half: int) -> Iterator[dict[str, Tensor]]:
        """Yield rows of some control steps in parts that fit into the cache, the first `half` of them reflected."""
        for steps, mirror in ((chosen[:half], self._mirror), (chosen[half:], None)):
            rows = {name: x[steps].flatten(0, 1) for name, x in data.items()}
            if mirror is not None:
                for name, reflection in (("actor", mirror.observation), ("action", mirror.action)):
                    rows[name] = rows[name][:, reflection.order] * torch.from_numpy(reflection.signs).float()
                del rows["mean"]  # the policy before the update is symmetric only about
            for part in zip(*(x.split(_ROWS) for x in rows.values()), strict=True):
                yield dict(zip(rows, part, strict=True))

    def _backward(self, part: dict[str, Tensor], before: Tensor, total: int) -> tuple[float, float]:
        """Add gradients of the loss of some rows of a minibatch; return sums of (squared errors of values, divergence).

        Args:
            part: The rows; those of reflected ones have no `mean` and no divergence.
            before: Logarithms of the standard deviations of the policy that acted, (actions,).
            total: Number of rows of the minibatch.
        """
        s, net = self.settings, self.net
        mean, log_deviation = net.actor(part["actor"]), net.log_deviation
        ratio = torch.exp(_log_probability(part["action"], mean, log_deviation) - part["probability"])
        clipped = ratio.clamp(1.0 - s.clip, 1.0 + s.clip)
        gain = torch.min(ratio * part["advantage"], clipped * part["advantage"]).sum()
        error = ((net.critic(part["critic"])[:, 0] - part["returns"]) ** 2).sum()
        entropy = len(ratio) * log_deviation.sum()
        ((error - gain - s.entropy * entropy) / total).backward()
        if "mean" not in part:
            return error.item(), 0.0
        with torch.no_grad():
            spread = (torch.exp(2.0 * before) + (part["mean"] - mean) ** 2) / (2.0 * torch.exp(2.0 * log_deviation))
            divergence = (log_deviation - before + spread - 0.5).sum()
        return error.item(), divergence.item()


def _advantages(reward: Tensor, value: Tensor, last: Tensor, over: Tensor, settings: Settings) -> Tensor:
    """Return generalized advantage estimates, (steps, N).

    Args:
        reward, value: Rewards of the steps and values of the states before them, (steps, N).
        last: Values of the states after the last step, (N,). over: 1.0 where an episode has ended, (steps, N).
        settings: The discount gamma and lambda.
    """
    advantage, running, following = torch.zeros_like(reward), torch.zeros_like(last), last
    for t in reversed(range(len(reward))):
        goes_on = settings.gamma * (1.0 - over[t])
        running = reward[t] + goes_on * following - value[t] + goes_on * settings.lam * running
        advantage[t], following = running, value[t]
    return advantage


def _log_probability(action: Tensor, mean: Tensor, log_deviation: Tensor) -> Tensor:
    """Return the logarithm of the density of actions, (n,), up to a constant."""
    return -(0.5 * ((action - mean) * torch.exp(-log_deviation)) ** 2 + log_deviation).sum(-1)
