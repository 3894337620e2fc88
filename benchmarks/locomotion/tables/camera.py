"""Terrain that the robot sees by a depth camera, beside the same walks with the terrain known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import controllers
import legged
from benchmarks.estimation.__main__ import ACCELEROMETER_BIAS, GYRO_BIAS
from benchmarks.locomotion.tables.seen import FRICTION, LANES, STEP, seen_lines, walks
from benchmarks.locomotion.walkers import Walker
from legged import estimation
from legged.errors import LeggedError
from legged.ground import RollingHeightMap
from legged.sensors import DepthCamera
from legged.table import Table

_CELLS, _SPACING = 130, 0.05
"""Number of cells of the map along each axis; their size, [h]."""
_AHEAD, _ABOVE, _PITCH, _RANGE = 0.3, 0.15, 35.0, 8.0
"""Place of the camera ahead of the front feet and above the origin of the base, [h]; its pitch, [deg]; range, [h]."""
_CHUNK = 0.5
"""Time between two looks at the places of the robots, [s]."""


def camera_table(walkers: list[Walker]) -> Table:
    """Return the numbers of walks over each terrain without a fall to its end, by what the robot knows of it."""
    lines = []
    for walker in walkers:
        lines.append((walker.name, "height map", *seen_lines(walker)))
        lines.append((walker.name, "camera", *_measure(walker, False)))
        lines.append((walker.name, "camera, estimated state", *_measure(walker, True)))
    camera = DepthCamera("")
    notes = (
        "Walks of `--rows seen`, with the footsteps planned on the terrain itself, on the map of a depth camera",
        f"({camera.shape[0]} x {camera.shape[1]} pixels, {camera.rate:g} images/s, noise {camera.noise:g} d^2,",
        f"{100 * camera.dropout:g} % missing, {_PITCH:g} degrees down, cells of {_SPACING:g} h) at the true pose,",
        "and at the pose of `InvariantFilter`, which the law receives, too.",
    )
    return Table("Locomotion, terrain seen by a camera", ("robot", "terrain", *LANES), tuple(lines), notes, left=2)


def mounted_camera(walker: Walker) -> DepthCamera:
    """Return a depth camera at the front of the base, which looks down at the ground ahead."""
    robot, h, pitch = walker.robot, walker.height, np.radians(_PITCH)
    started, _ = walker.law().start(robot, None, *walker.law().initial_state(robot))
    place = np.array([started.steps.stances[:, 0].max() + _AHEAD * h, 0.0, _ABOVE * h])
    c, s = np.cos(pitch), np.sin(pitch)
    rotation = np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
    return DepthCamera(legged.Frame(walker.trunk, place, rotation), far=_RANGE * h)


def _measure(walker: Walker, is_estimated: bool) -> list[str]:
    """Return the numbers of successful walks of each lane on the map of the camera."""
    try:
        own = walks(walker)
        count, path = len(own.q), "controller."
        law = replace(own.law, terrain=RollingHeightMap((_CELLS, _CELLS), _SPACING * walker.height, count))
        vary = {}
        if is_estimated:
            instruments = estimation.Instruments(gyro_bias=GYRO_BIAS, accelerometer_bias=ACCELEROMETER_BIAS)
            law, path = controllers.Estimated(law, estimation.InvariantFilter(), instruments), "controller.law."
            vary = {"controller.instruments.seed": np.arange(float(count))}
        vary |= {f"{path}{name}": values for name, values in own.vary.items()}
        ground = legged.Rigid(friction=FRICTION, terrain=own.terrain)
        sim = legged.Simulation(
            walker.robot, law, ground=ground, num=count, q=own.q, v=own.v, vary=vary, integrator=STEP
        )
        seeing, farthest = controllers.Seeing(sim, mounted_camera(walker)), own.q[:, 4]
        steps = round(_CHUNK / STEP.step)
        for _ in range(int(np.ceil(own.until / _CHUNK))):
            seeing.step(n=steps)
            farthest = np.maximum(farthest, sim.q[:, 4])
    except LeggedError as error:
        print(f"{walker.name}, camera: {error}", flush=True)
        return ["-"] * len(LANES)
    return own.successes(walker, farthest)
