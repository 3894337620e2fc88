"""`RslRlEnv`: a vector environment with the interface of rsl_rl, `rsl_rl.env.VecEnv`."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.arguments import shown
from legged.environments.snapshots import episode_steps
from legged.errors import ArgumentError, MissingError
from legged.learning.ppo import Tensor, torch

try:
    from tensordict import TensorDict
except ImportError as error:
    raise MissingError("rsl_rl needs its packages: pip install rsl-rl-lib") from error
try:
    from rsl_rl.env import VecEnv  # type: ignore[import-not-found]
except ImportError:  # the interface needs no class of rsl_rl, which does not check it
    VecEnv = object


class RslRlEnv(VecEnv):  # type: ignore[misc]
    """A `VectorEnvironment` with groups of observations, for the runners of rsl_rl.

        env = RslRlEnv(legged.environments.make("velocity", robot, num_envs=16, groups=True))

    `rsl_rl.runners.OnPolicyRunner(env, config, folder)` takes it. Observations are a `TensorDict` with a tensor
    (N, k) for each group. `extras` of `step` hold `time_outs`, (N,), and in `log` means over the ended episodes of
    their rewards, per second.

    Args:
        env: The environment, with `groups` and autoreset in the same step. seed: Of its first reset.

    Attributes:
        num_envs, num_actions, max_episode_length, device, cfg: See `rsl_rl.env.VecEnv`.

    Raises:
        ArgumentError: The environment has no groups, or starts episodes anew at other times.
    """

    def __init__(self, env: Any, seed: int = 1):
        observed, _ = env.reset(seed=seed)
        if not isinstance(observed, dict) or env.metadata["autoreset_mode"].name != "SAME_STEP":
            raise ArgumentError(f"rsl_rl needs groups=True and autoreset='same_step', got {shown(env)}")
        self.env, self.num_envs, self.num_actions = env, env.num_envs, env.single_action_space.shape[0]
        self.max_episode_length, self.device = env.task.episode_steps, "cpu"
        self.cfg: dict[str, Any] = {"robot": env.task.robot.name, "seed": seed}
        self._observed = self._tensors(observed)

    @property
    def unwrapped(self) -> Any:
        """The `VectorEnvironment`."""
        return self.env

    @property
    def episode_length_buf(self) -> Tensor:
        """Numbers of control steps since the start of each episode, (N,)."""
        return torch.from_numpy(episode_steps(self.env)).long()

    @episode_length_buf.setter
    def episode_length_buf(self, steps: Tensor) -> None:
        episode_steps(self.env)[:] = steps.numpy()

    def get_observations(self) -> TensorDict:
        """Return the present observations, (N, k) for each group."""
        return self._observed

    def reset(self) -> tuple[TensorDict, dict[str, Any]]:
        """Start new episodes of all robots; return (observations, extras)."""
        self._observed = self._tensors(self.env.reset()[0])
        return self._observed, {}

    def step(self, actions: Tensor) -> tuple[TensorDict, Tensor, Tensor, dict[str, Any]]:
        """Advance all robots by a control step; return (observations, rewards, dones, extras).

        Args:
            actions: (N, nj), dimensionless.
        """
        observed, reward, terminated, truncated, infos = self.env.step(actions.detach().numpy())
        self._observed = self._tensors(observed)
        extras: dict[str, Any] = {"time_outs": torch.from_numpy(truncated)}
        if "episode" in infos:
            chosen, task = infos["_episode"], self.env.task
            duration = np.maximum(infos["episode"]["l"][chosen], 1) * task.period
            extras["log"] = {  # rsl_rl logs a name with a slash as it is, and others under "Episode"
                f"/{name}": float((infos["episode"][name][chosen] / duration).mean())
                for name in infos["episode"]
                if name.startswith("reward.")
            }
        over = torch.from_numpy(terminated | truncated).long()
        return self._observed, torch.from_numpy(reward.astype(np.float32)), over, extras

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def _tensors(self, observed: dict[str, np.ndarray]) -> TensorDict:
        tensors: dict[str, Any] = {group: torch.from_numpy(values) for group, values in observed.items()}
        return TensorDict(tensors, batch_size=[self.num_envs])
