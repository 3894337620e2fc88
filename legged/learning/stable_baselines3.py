"""`StableBaselines3Env`: a vector environment with the interface of Stable-Baselines3, its own `VecEnv`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from legged.arguments import shown
from legged.errors import ArgumentError, MissingError

try:
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise MissingError("this needs Stable-Baselines3: pip install stable-baselines3") from error

Array = np.ndarray


class StableBaselines3Env(VecEnv):
    """A `VectorEnvironment` for the algorithms of Stable-Baselines3.

        env = StableBaselines3Env(legged.environments.make("velocity", robot, num_envs=16))

    `stable_baselines3.PPO("MlpPolicy", env)` takes it. Infos of an ended episode have
    `terminal_observation`, `TimeLimit.truncated`, and `episode` with `r` and `l`.
    `seed` of Stable-Baselines3 gives a seed for each robot; the environment takes the first for all of them.

    Args:
        env: The environment, with autoreset in the same step; with `groups` observations are dictionaries, for
            "MultiInputPolicy".

    Raises:
        ArgumentError: The environment starts episodes anew at other times.
    """

    def __init__(self, env: Any):
        mode = env.metadata.get("autoreset_mode")
        if getattr(mode, "name", "") != "SAME_STEP":
            raise ArgumentError(
                f"Stable-Baselines3 needs a VectorEnvironment with autoreset='same_step', got {shown(env)}"
            )
        self.env = env
        self._actions = np.zeros((env.num_envs, *env.single_action_space.shape), np.float32)
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

    def reset(self) -> Any:
        """Start new episodes of all robots; return the observations, (N, k), or a dictionary of them."""
        observed, _ = self.env.reset(seed=self._seeds[0])
        self._reset_seeds()
        self._reset_options()
        return observed

    def step_async(self, actions: Array) -> None:
        """Keep the actions for `step_wait`.

        Args:
            actions: (N, nj), dimensionless.
        """
        self._actions = actions

    def step_wait(self) -> Any:
        """Advance all robots by a control step; return (observations, rewards, dones, infos of each robot)."""
        observed, reward, terminated, truncated, step_infos = self.env.step(self._actions)
        over = terminated | truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(over):
            infos[i] = {
                "terminal_observation": step_infos["final_obs"][i],
                "TimeLimit.truncated": bool(truncated[i]),
                "episode": {
                    "r": float(step_infos["episode"]["r"][i]),
                    "l": int(step_infos["episode"]["l"][i]),
                    "t": 0.0,  # computing time in the Monitor of Stable-Baselines3, not measured here
                },
            }
        return observed, reward.astype(np.float32), over, infos

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the environment, once for each robot."""
        return [getattr(self.env, attr_name)] * len(self._chosen(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of the environment, which all robots share."""
        setattr(self.env, attr_name, value)

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """Return the result of a method of the environment, which is called once for all robots."""
        return [getattr(self.env, method_name)(*method_args, **method_kwargs)] * len(self._chosen(indices))

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Return False for each robot: the environment has no wrappers."""
        return [False] * len(self._chosen(indices))

    def _chosen(self, indices: Any) -> Sequence[int]:
        return [*self._get_indices(indices)]
