"""Proximal policy optimization on the processor: the learner of the examples, for any `VectorEnvironment`.

The learning rate follows the divergence of the policies before and after an update.

Source: Schulman, Wolski, Dhariwal, Radford, Klimov, arXiv:1707.06347, 2017.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


@dataclass
class Settings:
    """Numbers of the learner.

    Attributes:
        steps: Control steps of each robot between two updates. epochs: Passes over them. batches: Parts of each pass.
        gamma: Discount per control step. lam: Lambda of generalized advantage estimation.
        clip: Largest relative change of a probability. entropy: Weight of the entropy. value: Weight of the value loss.
        divergence: Desired divergence of the policies before and after an update. rate: First learning rate.
        hidden: Sizes of the hidden layers. deviation: First standard deviation of actions.
    """

    steps: int = 24
    epochs: int = 5
    batches: int = 4
    gamma: float = 0.99
    lam: float = 0.95
    clip: float = 0.2
    entropy: float = 0.005
    value: float = 1.0
    divergence: float = 0.01
    rate: float = 1e-3
    hidden: tuple[int, ...] = (128, 128, 64)
    deviation: float = 1.0


class Normalizer(nn.Module):
    """Observations minus their mean over their standard deviation, both from all observations so far."""

    def __init__(self, size: int):
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("variance", torch.ones(size))
        self.register_buffer("count", torch.tensor(1e-4))

    def update(self, x: Tensor) -> None:
        """Add observations, (n, k)."""
        n, mean, variance = len(x), x.mean(0), x.var(0, unbiased=False)
        total, change = self.count + n, mean - self.mean
        self.variance.copy_((self.variance * self.count + variance * n + change**2 * self.count * n / total) / total)
        self.mean.add_(change * n / total)
        self.count.copy_(total)

    def forward(self, x: Tensor) -> Tensor:
        """Return normalized observations, (n, k)."""
        return (x - self.mean) / torch.sqrt(self.variance + 1e-4)


def network(sizes: list[int]) -> nn.Sequential:
    """Return dense layers with ELU between them."""
    layers: list[nn.Module] = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), nn.ELU()]
    return nn.Sequential(*layers[:-1])


class ActorCritic(nn.Module):
    """Policy and value function.

    Attributes:
        actor, critic: Networks of normalized observations. log_deviation: Of actions, (n,).
    """

    def __init__(self, observed: int, privileged: int, actions: int, settings: Settings):
        super().__init__()
        hidden = [*settings.hidden]
        self.actor_input, self.critic_input = Normalizer(observed), Normalizer(privileged)
        self.actor = network([observed, *hidden, actions])
        self.critic = network([privileged, *hidden, 1])
        with torch.no_grad():
            self.actor[-1].weight.mul_(0.1)
        self.log_deviation = nn.Parameter(torch.full((actions,), float(np.log(settings.deviation))))

    def policy(self, x: Tensor) -> Tensor:
        """Return the mean actions, (n, actions), of observations, (n, observed)."""
        return self.actor(self.actor_input(x))

    def values(self, x: Tensor) -> Tensor:
        """Return the values, (n,), of observations of the critic, (n, privileged)."""
        return self.critic(self.critic_input(x))[:, 0]


class Learner:
    """The learner with its environment.

    Args:
        env: A `VectorEnvironment` with groups of observations. settings: Numbers of the learner. seed: Of everything.
    """

    def __init__(self, env: Any, settings: Settings | None = None, seed: int = 1):
        torch.manual_seed(seed)
        self.env, self.settings = env, settings or Settings()
        self.observation, _ = env.reset(seed=seed)
        sizes = [self.observation[group].shape[1] for group in ("actor", "critic")]
        self.net = ActorCritic(*sizes, env.single_action_space.shape[0], self.settings)
        self.rate = self.settings.rate
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=self.rate)
        self.transitions, self.seconds = 0, {"environment": 0.0, "policy": 0.0, "learner": 0.0}
        self.episodes: list[dict[str, Any]] = []

    def learn(self, until: Callable[[Learner], bool], report: Callable[[dict[str, float]], None] = print) -> None:
        """Collect and update until a condition holds.

        Args:
            until: Whether to end, after each update. report: Takes the numbers of each update by name.
        """
        while True:
            data = self._collect()
            numbers = self._update(data)
            report({**numbers, **self._summary()})
            if until(self):
                return

    def _collect(self) -> dict[str, Tensor]:
        s, rows = self.settings, []
        rewards = None
        for _ in range(s.steps):
            begin = time.perf_counter()
            actor, critic = (torch.from_numpy(self.observation[group]) for group in ("actor", "critic"))
            with torch.no_grad():
                self.net.actor_input.update(actor)
                self.net.critic_input.update(critic)
                mean, value = self.net.policy(actor), self.net.values(critic)
                deviation = self.net.log_deviation.exp()
                action = mean + deviation * torch.randn_like(mean)
                probability = _log_probability(action, mean, deviation)
            middle = time.perf_counter()
            self.observation, reward, terminated, truncated, infos = self.env.step(action.numpy())
            end = time.perf_counter()
            self.seconds["policy"] += middle - begin
            self.seconds["environment"] += end - middle
            rewards = torch.from_numpy(reward.astype(np.float32))
            with torch.no_grad():  # the value of the state in which time has run out stands for the rest of the episode
                for i in np.flatnonzero(truncated):
                    final = torch.from_numpy(infos["final_obs"][i]["critic"])[None]
                    rewards[i] += s.gamma * self.net.values(final)[0]
            over = torch.from_numpy((terminated | truncated).astype(np.float32))
            rows.append((actor, critic, action, mean, probability, value, rewards, over))
            if "episode" in infos:
                ended = infos["_episode"]
                self.episodes += [
                    {name: float(values[i]) for name, values in infos["episode"].items()} for i in np.flatnonzero(ended)
                ]
            self.transitions += len(reward)
        begin = time.perf_counter()
        actor, critic, action, mean, probability, value, reward, over = map(torch.stack, zip(*rows, strict=True))
        with torch.no_grad():
            following = self.net.values(torch.from_numpy(self.observation["critic"]))
            advantage, running = torch.zeros_like(reward), torch.zeros(reward.shape[1])
            for t in reversed(range(s.steps)):
                error = reward[t] + s.gamma * (1.0 - over[t]) * following - value[t]
                running = error + s.gamma * s.lam * (1.0 - over[t]) * running
                advantage[t], following = running, value[t]
        returns = advantage + value
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        self.seconds["learner"] += time.perf_counter() - begin
        names = ("actor", "critic", "action", "mean", "probability", "value", "advantage", "returns")
        parts = (actor, critic, action, mean, probability, value, advantage, returns)
        data = {name: x.flatten(0, 1) for name, x in zip(names, parts, strict=True)}
        data["deviation"] = self.net.log_deviation.detach().exp().clone()
        return data

    def _update(self, data: dict[str, Tensor]) -> dict[str, float]:
        begin, s, count = time.perf_counter(), self.settings, len(data["action"])
        before = data["deviation"]
        losses = []
        for _ in range(s.epochs):
            for rows in torch.randperm(count).chunk(s.batches):
                part = {name: x[rows] for name, x in data.items() if name != "deviation"}
                mean, deviation = self.net.policy(part["actor"]), self.net.log_deviation.exp()
                with torch.no_grad():
                    divergence = (
                        (
                            torch.log(deviation / before)
                            + (before**2 + (part["mean"] - mean) ** 2) / (2.0 * deviation**2)
                            - 0.5
                        )
                        .sum(1)
                        .mean()
                    )
                    if divergence > 2.0 * s.divergence:
                        self.rate = max(1e-5, self.rate / 1.5)
                    elif 0.0 < divergence < 0.5 * s.divergence:
                        self.rate = min(1e-2, self.rate * 1.5)
                for group in self.optimizer.param_groups:
                    group["lr"] = self.rate
                ratio = torch.exp(_log_probability(part["action"], mean, deviation) - part["probability"])
                clipped = ratio.clamp(1.0 - s.clip, 1.0 + s.clip)
                policy = -torch.min(ratio * part["advantage"], clipped * part["advantage"]).mean()
                value = self.net.values(part["critic"])
                near = part["value"] + (value - part["value"]).clamp(-s.clip, s.clip)
                error = torch.max((value - part["returns"]) ** 2, (near - part["returns"]) ** 2).mean()
                loss = policy + s.value * error - s.entropy * torch.log(deviation).sum()
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
                self.optimizer.step()
                losses.append((policy.item(), error.item()))
        self.seconds["learner"] += time.perf_counter() - begin
        policy, error = np.mean(losses, axis=0)
        return {"policy_loss": policy, "value_loss": error, "rate": self.rate, "deviation": float(before.mean())}

    def _summary(self) -> dict[str, float]:
        recent, self.episodes = self.episodes[-200:], self.episodes[-200:]
        names = recent[0] if recent else {}
        means = {name: float(np.mean([episode[name] for episode in recent])) for name in names}
        return {"transitions": float(self.transitions), **self.seconds, **means}

    def save(self, path: str | Path) -> None:
        """Write a checkpoint with all that training needs to go on."""
        torch.save(
            {
                "net": self.net.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "settings": asdict(self.settings),
                "rate": self.rate,
                "transitions": self.transitions,
            },
            path,
        )


def _log_probability(action: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    """Return the logarithm of the density of actions, (n,)."""
    return (-0.5 * ((action - mean) / deviation) ** 2 - torch.log(deviation) - 0.9189385332046727).sum(-1)
