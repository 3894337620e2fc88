"""The velocity task in NumPy on mjbatch: python peer.py FOLDER NUM THREADS SECONDS prints its speed as JSON.

It needs NumPy, MuJoCo and mjbatch alone, of any interpreter; `scene` writes the folder. Terms, noise, commands, pushes
and new starts are those of `legged.environments.velocity` and `rough`, for all robots at once.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from mjbatch import Batch  # type: ignore[import-not-found]

Array = np.ndarray
SETTINGS = {
    "MuJoCo's defaults, elliptic cones": {"cone": mujoco.mjtCone.mjCONE_ELLIPTIC},
    "pyramidal cones, 5 iterations": {"cone": mujoco.mjtCone.mjCONE_PYRAMIDAL, "iterations": 5, "ls_iterations": 8},
}


class Peer:
    """Robots that follow commanded velocities.

    Args:
        folder: Files of the task. num: Number of robots. threads: Number of threads.
        options: Fields of the options of MuJoCo.
    """

    def __init__(self, folder: Path, num: int, threads: int, options: dict[str, Any]):
        self.task, self.num, self.random = json.loads((folder / "task.json").read_text()), num, np.random.default_rng(0)
        model = mujoco.MjModel.from_xml_path(str(folder / "scene.xml"))
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        for name, value in options.items():
            setattr(model.opt, name, value)
        self.heights = np.load(folder / "heights.npy") if (folder / "heights.npy").exists() else None
        if self.heights is not None:  # rows of a height field run along y
            low, high = self.heights.min(), self.heights.max()
            model.hfield_data[:] = ((self.heights - low) / (high - low)).T.ravel()
        self.batch = Batch(model, num, num_threads=threads)
        bind = self.batch.bind
        self.q, self.v, self.targets = bind("qpos"), bind("qvel"), bind("ctrl")
        self.torques, self.places = bind("actuator_force"), bind("geom_xpos")
        self.feet = [model.geom(name).id for name in self.task["feet"]]
        self.friction, self.mass = self.batch.expand("geom_friction"), self.batch.expand("body_mass")
        self.nominal = self.mass[0, 1]
        nj, k = model.nu, num
        self.posture, self.scale = np.array(self.task["posture"]), np.array(self.task["action_scale"])
        self.action, self.last, self.command = np.zeros((k, nj)), np.zeros((k, nj)), np.zeros((k, 3))
        self.steps, self.wait, self.push = np.zeros(k, int), np.zeros(k), np.zeros(k)
        self.column = np.zeros(k)
        self.level = np.floor(self.random.uniform(0.0, 0.5 * self.task.get("levels", 1), k))
        self.outside = 0.0
        if self.heights is not None:
            grid = np.meshgrid(np.linspace(-0.8, 0.8, 17), np.linspace(-0.5, 0.5, 11), indexing="ij")
            self.grid = np.stack(grid, axis=-1).reshape(-1, 2)
        self.start(np.arange(num))

    def height_at(self, x: Array, y: Array) -> Array:
        """Return the nearest heights of the terrain, (...), [m]."""
        if self.heights is None:
            return np.zeros_like(x)
        (n, m), spacing, origin = self.heights.shape, self.task["spacing"], self.task["origin"]
        i = np.clip(np.floor((x - origin[0]) / spacing + 0.5), 0, n - 1).astype(int)
        j = np.clip(np.floor((y - origin[1]) / spacing + 0.5), 0, m - 1).astype(int)
        return self.heights[i, j]

    def start(self, rows: Array) -> None:
        """Start new episodes of some robots."""
        k, nj, draw = len(rows), len(self.posture), self.random.uniform
        at = np.zeros((k, 2))
        if self.heights is not None:
            away = np.hypot(*(self.q[rows, :2] - self.task["side"] * np.stack([self.level, self.column], 1)[rows]).T)
            change = np.where(self.steps[rows] > 0, np.where(away > 4.0, 1.0, -1.0), 0.0)
            self.level[rows] = np.clip(self.level[rows] + change, 0, self.task["levels"] - 1)
            self.column[rows] = np.floor(draw(0, self.task["columns"], k))
            at = self.task["side"] * np.stack([self.level[rows], self.column[rows]], axis=1)
        yaw, place = draw(-np.pi, np.pi, k), at + draw(-0.5, 0.5, (k, 2))
        zeros = np.zeros(k)
        self.q[rows, :2] = place
        self.q[rows, 2] = self.height_at(*place.T) + 1.05 * self.task["height"]
        self.q[rows, 3:7] = np.stack([np.cos(0.5 * yaw), zeros, zeros, np.sin(0.5 * yaw)], axis=1)
        self.q[rows, 7:] = self.posture + draw(-0.1, 0.1, (k, nj))
        self.v[rows, :6], self.v[rows, 6:] = draw(-0.5, 0.5, (k, 6)), 0.0
        self.friction[rows, :, 0] = draw(0.5, 1.25, k)[:, None]
        self.mass[rows, 1] = self.nominal * draw(0.8, 1.2, k)
        self.action[rows], self.last[rows], self.steps[rows] = 0.0, 0.0, 0
        self.push[rows] = draw(10.0, 15.0, k)
        self.new_commands(rows)

    def new_commands(self, rows: Array) -> None:
        """Draw new commands of some robots."""
        k, low, high = len(rows), np.array(self.task["low"]), np.array(self.task["high"])
        alone = np.floor(self.random.uniform(0.0, 6.0, (k, 1)))
        kept = (self.random.uniform(size=(k, 1)) < 0.9) & ((alone >= 3.0) | (alone == np.arange(3)))
        self.command[rows] = kept * self.random.uniform(low, high, (k, 3))
        self.wait[rows] = 10.0

    def step(self, action: Array) -> tuple[Array, Array, Array, Array]:
        """Return (observations, rewards, terminations, truncations) of a control step."""
        begin = time.process_time()
        self.last, self.action = self.action, action
        self.targets[:] = self.posture + self.scale * np.clip(action, -4.0, 4.0)
        before = self.v[:, 6:].copy()
        physics = time.process_time()
        self.batch.step(nstep=self.task["substeps"])
        physics = time.process_time() - physics
        self.steps += 1
        rotation, up, linear = self.rotations()
        values, weights = self.terms(rotation, up, linear, before), self.task["weights"]
        assert values.keys() == weights.keys(), "the terms of the peer are not those of the task"
        reward = self.task["period"] * sum(weights[name] * value for name, value in values.items())
        ended = self.fallen(up, self.q[:, 2] - self.height_at(self.q[:, 0], self.q[:, 1]))
        late = (self.steps >= self.task["episode_steps"]) & ~ended
        period = self.task["period"]
        self.wait -= period
        self.push -= period
        if (due := np.flatnonzero(self.wait <= 0.0)).size:
            self.new_commands(due)
        if (due := np.flatnonzero(self.push <= 0.0)).size:
            self.v[due, :2] += self.random.uniform(-0.5, 0.5, (len(due), 2))
            self.push[due] = self.random.uniform(10.0, 15.0, len(due))
        if (over := np.flatnonzero(ended | late)).size:
            self.start(over)
            rotation, up, linear = self.rotations()
        observations = self.observe(rotation, up, linear)
        self.outside += time.process_time() - begin - physics
        return observations, reward, ended, late

    def fallen(self, up: Array, height: Array) -> Array:
        """Return which robots have fallen, (N,)."""
        return (up[:, 2] < np.cos(1.2)) | (height < 0.4 * self.task["height"])

    def rotations(self) -> tuple[Array, Array, Array]:
        """Return rotations (N, 3, 3), the vertical and the velocity in base axes, (N, 3) each."""
        w, x, y, z = self.q[:, 3:7].T
        rows = [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
        rotation = np.moveaxis(np.array(rows), -1, 0)
        return rotation, rotation[:, 2], (rotation.transpose(0, 2, 1) @ self.v[:, :3, None])[..., 0]

    def terms(self, rotation: Array, up: Array, linear: Array, before: Array) -> dict[str, Array]:
        """Return the values of the reward terms of a control step, (N,) each."""
        c, d = rotation[:, 0, 0], rotation[:, 1, 0]
        norm = np.sqrt(c * c + d * d) + 1e-12
        c, d = c / norm, d / norm
        x, y = self.v[:, 0], self.v[:, 1]
        error = self.command[:, :2] - np.stack([c * x + d * y, c * y - d * x], axis=1)
        angular = self.v[:, 3:6]
        turn = self.command[:, 2] - (up * angular).sum(axis=1)
        places = self.places[:, self.feet]
        heights = places[..., 2] - self.height_at(places[..., 0], places[..., 1])
        touching, gait = heights < 2e-3, self.task["gait"]
        moves = (self.command**2).sum(axis=1) > 0.01
        phase = (self.steps[:, None] * (self.task["period"] / gait["period"]) - np.array(gait["touchdowns"])) % 1.0
        swing = np.maximum(phase - gait["duty"], 0.0) / (1.0 - gait["duty"])
        low = np.minimum(heights - 4.0 * gait["height"] * swing * (1.0 - swing), 0.0)
        height = self.q[:, 2] - self.height_at(self.q[:, 0], self.q[:, 1])
        return {
            "track_linear_velocity": np.exp(-16.0 * (error**2).sum(axis=1)),
            "track_yaw_rate": np.exp(-4.0 * turn**2),
            "linear_velocity_error": np.sqrt((error**2).sum(axis=1)),
            "yaw_rate_error": np.abs(turn),
            "alive": ~self.fallen(up, height),
            "vertical_velocity": linear[:, 2] ** 2,
            "flight": ~touching.any(axis=1),
            "roll_and_pitch_rates": (angular[:, :2] ** 2).sum(axis=1),
            "torques": (self.torques**2).sum(axis=1),
            "joint_accelerations": (((self.v[:, 6:] - before) / self.task["period"]) ** 2).sum(axis=1),
            "action_rate": ((self.action - self.last) ** 2).sum(axis=1),
            "height_error": (height - self.task["height"]) ** 2,
            "tilt": (up[:, :2] ** 2).sum(axis=1),
            "posture_error": ((self.q[:, 7:] - self.posture) ** 2).sum(axis=1),
            "gait_contacts": moves * ((phase < gait["duty"]) == touching).mean(axis=1),
            "swing_height": moves * (low**2).sum(axis=1),
        }

    def observe(self, rotation: Array, up: Array, linear: Array) -> Array:
        """Return the observations of the actor with noise, (N, 50) or with heights."""

        def noisy(x: Array, noise: float) -> Array:
            return x + self.random.uniform(-noise, noise, x.shape)

        parts = [noisy(linear, 0.1), noisy(self.v[:, 3:6], 0.2), noisy(-up, 0.05), self.command]
        parts += [noisy(self.q[:, 7:] - self.posture, 0.01), noisy(self.v[:, 6:], 1.5), self.action]
        phase = (2.0 * np.pi * self.task["period"] / self.task["gait"]["period"]) * self.steps[:, None]
        parts += [np.cos(phase), np.sin(phase)]
        if self.heights is not None:
            yaw = np.arctan2(rotation[:, 1, 0], rotation[:, 0, 0])[:, None]
            a, b = self.grid.T
            x = self.q[:, :1] + np.cos(yaw) * a - np.sin(yaw) * b
            y = self.q[:, 1:2] + np.sin(yaw) * a + np.cos(yaw) * b
            parts.append(noisy(self.q[:, 2:3] - self.height_at(x, y), 0.05))
        return np.clip(np.concatenate(parts, axis=1), -100.0, 100.0).astype(np.float32)


def main(folder: Path, num: int, threads: int, seconds: float) -> None:
    """Print a JSON object: name of the settings -> transitions per second, per second of a core, and share outside."""
    speeds = {}
    for name, options in SETTINGS.items():
        env, actions = Peer(folder, num, threads, options), np.random.default_rng(1).normal(size=(64, num, 12))
        for k in range(20):
            env.step(0.3 * actions[k])
        env.outside, count = 0.0, 0
        begin, cpu = time.perf_counter(), time.process_time()
        while time.process_time() - cpu < seconds:
            env.step(0.3 * actions[count % 64])
            count += 1
        wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
        speeds[name] = {"wall": count * num / wall, "core": count * num / cpu, "outside": env.outside / cpu}
    print(json.dumps(speeds))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
